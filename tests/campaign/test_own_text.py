"""People's own text in a campaign: it comes back whole, and pools grow."""

from __future__ import annotations

import csv
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from campaign.tiny import ledger_of, plan_of, telling
from goldspan.campaign import Campaign, read_inputs, read_plan
from goldspan.campaign.protocols import Waiting
from goldspan.errors import FaultsError, InputError
from goldspan.spans import tokenize
from own_text import own_texts

SECTIONS = {
    "task": {"types": ["LOC"], "labels": []},
    "crowd": {"source": "files", "truth": None, "workers": []},
    "redundancy": {"min": 1, "max": 1},
    "aggregate": {"method": "ibcc"},
    "model": {"name": "none"},
}


def sections(file, **more):
    task = {**SECTIONS["task"], **more.pop("task", {})}
    return {**SECTIONS, "task": task, "pool": {"file": file, **more.pop("pool", {})}, **more}


def inputs_of(folder, file, **more):
    return read_inputs(read_plan(plan_of(**sections(file, **more))), folder)


def run(inputs, ledger):
    """Run a campaign until it waits, and return what it told."""
    told = []
    assert isinstance(Campaign(inputs, ledger, on_event=telling(told)).run(), Waiting)
    return told


def of_lines(path, texts):
    path.write_bytes("".join(f"{text}\n" for text in texts).encode())


def of_table(path, texts, *, ids=True):
    buffer = io.StringIO(newline="")
    rows = csv.writer(buffer, delimiter="\t" if path.suffix == ".tsv" else ",")
    rows.writerow(["id", "text", "n"] if ids else ["text", "n"])
    rows.writerows([f"t{n}", text, n] if ids else [text, n] for n, text in enumerate(texts))
    path.write_bytes(buffer.getvalue().encode())


def of_json(path, texts):
    path.write_text(
        "".join(json.dumps({"text": text, "n": n}) + "\n" for n, text in enumerate(texts))
    )


def of_array(path, texts):
    path.write_text(json.dumps([{"id": f"t{n}", "text": text} for n, text in enumerate(texts)]))


def of_parquet(path, texts):
    pq.write_table(pa.table({"text": texts}), path)


def of_conll(path, texts):
    lines = []
    for text in texts:
        lines.append(f"# text = {json.dumps(text)}")
        lines += [f"{text[a:b]}\tO" for a, b in tokenize(text)] + [""]
    path.write_bytes("\n".join(lines).encode())


def of_folder(path, texts):
    path.mkdir(exist_ok=True)
    for n, text in enumerate(texts):
        (path / f"t{n:03}.txt").write_bytes(f"{text}\n".encode())


POOLS = {
    "pool.txt": of_lines, "pool.csv": of_table, "pool.tsv": of_table, "pool.jsonl": of_json,
    "pool.json": of_array, "pool.parquet": of_parquet, "pool.conll": of_conll, "texts": of_folder,
}  # fmt: skip


@pytest.mark.parametrize("file", POOLS)
def test_300_texts_come_back_from_the_store_code_point_for_code_point(file, tmp_path):
    texts = own_texts(300)
    POOLS[file](tmp_path / file, texts)
    inputs = inputs_of(tmp_path, file)
    with ledger_of(inputs, tmp_path / "c.sqlite") as ledger:
        run(inputs, ledger)
        crowd = ledger.crowd("pool")
        assert crowd.texts.to_pylist() == texts
        assert crowd.token_start is not None
        for n, text in enumerate(texts):
            starts = crowd.token_start[slice(*crowd.offsets[n : n + 2])].tolist()
            bounds = [(a, a + len(w)) for a, w in zip(starts, crowd.tokens_list[n], strict=True)]
            assert bounds == tokenize(text)
            assert [text[a:b] for a, b in bounds] == crowd.tokens_list[n]


def test_a_single_label_is_about_the_text_alone_and_other_columns_are_attributes(tmp_path):
    texts = own_texts(20)
    of_table(tmp_path / "pool.csv", texts)
    inputs = inputs_of(
        tmp_path, "pool.csv", task={"types": [], "labels": ["a", "b"]},
        aggregate={"method": "one-coin"},
    )  # fmt: skip
    with ledger_of(inputs, tmp_path / "c.sqlite") as ledger:
        run(inputs, ledger)
        crowd = ledger.crowd("pool")
        assert crowd.texts.to_pylist() == texts
        assert crowd.attributes.column("n").to_pylist() == [str(n) for n in range(20)]
    (tasks,) = (tmp_path / "tasks").glob("*.jsonl")
    for line in tasks.read_text(encoding="utf-8").splitlines():
        task = json.loads(line)
        assert task["text"] == texts[int(task["item"][1:])]
        assert "n" not in task


def test_the_labels_of_a_campaign_have_the_texts(tmp_path):
    texts = own_texts(12)
    of_lines(tmp_path / "pool.txt", texts)
    inputs = inputs_of(tmp_path, "pool.txt")
    with ledger_of(inputs, tmp_path / "c.sqlite") as ledger:
        campaign = Campaign(inputs, ledger)
        campaign.run()
        lines = []
        for path in (tmp_path / "tasks").glob("*.jsonl"):
            for line in path.read_text(encoding="utf-8").splitlines():
                task = json.loads(line)
                text = texts[int(task["item"]) - 1]
                assert (task["text"], task["token_start"]) == (text, [a for a, _ in tokenize(text)])
                labels = ["B-LOC", *["O"] * (len(task["tokens"]) - 1)]
                facts = {"campaign": task["campaign"], "worker": "ann", "item": task["item"]}
                lines.append(json.dumps({**facts, "labels": labels}))
        (tmp_path / "answers" / "ann.jsonl").write_text("\n".join(lines))
        campaign.run()
        crowd = campaign.progress.result.crowd
    assert crowd.n_items == 10
    by_id = dict(zip(crowd.item_ids.to_pylist(), crowd.texts.to_pylist(), strict=True))
    assert by_id == {name: texts[int(name) - 1] for name in by_id}
    assert crowd.token_start is not None


@pytest.mark.parametrize("file", POOLS)
def test_items_can_be_added_to_the_end_of_a_pool(file, tmp_path):
    texts = own_texts(25)
    POOLS[file](tmp_path / file, texts[:9])
    inputs = inputs_of(tmp_path, file)
    with ledger_of(inputs, tmp_path / "c.sqlite") as ledger:
        run(inputs, ledger)
        before = ledger.crowd("pool")
        POOLS[file](tmp_path / file, texts)
        told = run(inputs_of(tmp_path, file), ledger)
        after = ledger.crowd("pool")
        assert "changed: 16 items were added to the pool" in told
        assert after.texts.to_pylist() == texts
        assert after.item_ids.to_pylist()[:9] == before.item_ids.to_pylist()
        if before.groups is not None:
            assert after.groups.to_pylist()[:9] == before.groups.to_pylist()
        ledger.verify()


@pytest.mark.parametrize("file", ["pool.txt", "pool.jsonl", "pool.parquet", "pool.conll"])
def test_an_item_in_the_middle_of_a_pool_without_ids_is_refused_and_explained(file, tmp_path):
    texts = own_texts(9)
    POOLS[file](tmp_path / file, texts[:8])
    inputs = inputs_of(tmp_path, file)
    with ledger_of(inputs, tmp_path / "c.sqlite") as ledger:
        run(inputs, ledger)
        POOLS[file](tmp_path / file, [*texts[:6], texts[8], *texts[6:8]])
        with pytest.raises(FaultsError, match="add new ones at its end") as error:
            run(inputs_of(tmp_path, file), ledger)
        assert {fault.item for fault in error.value.faults} >= {"8"}
        assert ledger.crowd("pool").texts.to_pylist() == texts[:8]


def test_items_with_ids_may_be_put_in_another_order_but_not_changed(tmp_path):
    texts = own_texts(9)
    rows = [{"id": f"t{n}", "text": text} for n, text in enumerate(texts)]
    path = tmp_path / "pool.json"
    path.write_text(json.dumps(rows[:8]))
    inputs = inputs_of(tmp_path, "pool.json")
    with ledger_of(inputs, tmp_path / "c.sqlite") as ledger:
        run(inputs, ledger)
        path.write_text(json.dumps(rows[::-1]))
        run(inputs_of(tmp_path, "pool.json"), ledger)
        by_id = dict(
            zip(*(ledger.crowd("pool").content()[k] for k in ("items", "texts")), strict=True)
        )
        assert by_id == {row["id"]: row["text"] for row in rows}
        path.write_text(json.dumps([{**rows[0], "text": texts[0] + "!"}, *rows[1:]]))
        with pytest.raises(
            FaultsError, match=r"item t0: is in the store with other content .*text"
        ):
            run(inputs_of(tmp_path, "pool.json"), ledger)


def test_a_campaign_that_has_begun_keeps_its_rule(tmp_path):
    texts = own_texts(9)
    of_lines(tmp_path / "pool.txt", texts)
    inputs = inputs_of(tmp_path, "pool.txt")
    with ledger_of(inputs, tmp_path / "c.sqlite") as ledger:
        run(inputs, ledger)
        run(inputs_of(tmp_path, "pool.txt", task={"tokens": "fine"}), ledger)  # as it was
        with pytest.raises(InputError, match=r"task.tokens was not set and is 'space'"):
            run(inputs_of(tmp_path, "pool.txt", task={"tokens": "space"}), ledger)


def test_known_labels_in_characters_fit_tokens_that_are_cut_finer(tmp_path):
    text, end = "a Toyota's new", len("a Toyota")
    of_lines(tmp_path / "pool.txt", [text, "another"])
    gold = {"id": "1", "text": text, "label": [[2, end, "LOC"]]}
    (tmp_path / "gold.jsonl").write_text(json.dumps(gold) + "\n")
    inputs = inputs_of(tmp_path, "pool.txt", control={"n": 1, "gold": "gold.jsonl"})
    tags, words = inputs.control["1"], inputs.words[0]
    found = [word for word, tag in zip(words, tags, strict=True) if tag == "B-LOC"]
    assert found == ["Toyota"]


def test_a_price_per_token_counts_the_tokens_of_the_rule(tmp_path):
    of_lines(tmp_path / "pool.txt", ["Toyota's Apple-Watch-Hülle"])
    prices = {"prices": {"per_answer": "0", "per_token": "0.01"}}
    costs = {
        rule: inputs_of(tmp_path, "pool.txt", task={"tokens": rule}, **prices).costs.tolist()
        for rule in ("fine", "space")
    }
    assert costs == {"fine": [80_000], "space": [20_000]}


def test_a_rule_for_tokens_belongs_to_spans():
    task = {"types": [], "labels": ["a", "b"], "tokens": "fine"}
    with pytest.raises(FaultsError, match=r"task.tokens: belongs to types of spans"):
        read_plan(plan_of(**sections("pool.txt", task=task)))


def test_what_was_left_out_of_a_pool_is_told_at_the_start(tmp_path):
    (tmp_path / "pool.csv").write_text("id,text\na,Rome is old\nb,\n")
    inputs = inputs_of(tmp_path, "pool.csv")
    with ledger_of(inputs, tmp_path / "c.sqlite") as ledger:
        told = run(inputs, ledger)
        assert "pool: 1 items are empty, with nothing to label, and left out: b" in told
