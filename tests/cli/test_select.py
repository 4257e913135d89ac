"""`goldspan select`: what it reads, writes and refuses."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import goldspan
from goldspan.crowd import CrowdBuilder
from goldspan.selection import select_items
from goldspan.tagger import CRF

COMMAND = "select"


WORDS = ["ant", "bee", "cow", "doe", "elk", "fox", "gnu", "hen", "ibis"]


@pytest.fixture
def pool(tmp_path):
    lines = [
        {"item": f"t{n}", "text": f"{WORDS[n % 9]} {WORDS[n % 7]} {WORDS[n % 4]}.", "year": n}
        for n in range(40)
    ]
    path = tmp_path / "pool.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "mails.csv"
    rows = ["id,age,town", *(f"m{n},{n * 7 % 50},{'Rome' if n % 3 else ''}" for n in range(20))]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_batch_is_written_with_reasons_and_other_fields(run, pool, tmp_path):
    code, out, _ = run(pool, "--budget", "40tokens", "-o", "batch.jsonl", "--seed", 3)
    rows = lines_of(tmp_path / "batch.jsonl")
    assert code == 0
    assert "of 40 items" in out
    assert sum(len(row["tokens"]) for row in rows) <= 40
    assert rows[0]["year"] == int(rows[0]["item"][1:])
    assert [row["select"]["rank"] for row in rows] == list(range(1, len(rows) + 1))
    assert {row["select"]["rule"] for row in rows} == {"random", "coverage"}
    builder = CrowdBuilder()
    for n in range(40):
        words = f"{WORDS[n % 9]} {WORDS[n % 7]} {WORDS[n % 4]} .".split()
        builder.add_item(f"t{n}", words)
    library = select_items(builder.build(), budget="40tokens", random_state=3)
    assert [row["item"] for row in rows] == library.item_ids


def test_a_batch_can_be_tagged_and_is_out_of_the_next(run, pool, tmp_path):
    run(pool, "-n", 10, "-o", "one.jsonl")
    run(pool, "-n", 10, "-o", "two.jsonl", "--labelled", "one.jsonl", "--by", "coverage")
    one, two = (lines_of(tmp_path / f"{name}.jsonl") for name in ("one", "two"))
    assert not {row["item"] for row in one} & {row["item"] for row in two}


def test_models_choose_from_the_second_round_on(run, root, tmp_path):
    crowd = goldspan.read_crowd(root / "examples" / "crowd.tsv").select_items(np.arange(20))
    model = CRF(templates=["lower"], max_iter=3)
    model.fit(crowd.tokens_list, crowd.tagset.decode(crowd.gold_tagged)).save(
        tmp_path / "m.goldspan"
    )
    source = root / "examples" / "crowd.tsv"
    code, out, _ = run(source, "-b", "10items", "--model", "m.goldspan", "--json")
    facts = json.loads(out)
    assert code == 0
    assert facts["rules"] == {"random": 1, "mnlp": 9}
    assert facts["round"] == 1
    words = ["--model", "m.goldspan", "--model", "m.goldspan", "--by", "vote", "-n", 3, "--json"]
    assert json.loads(run(source, *words)[1])["rules"] == {"vote": 3}
    early = run(source, "-n", 5, "--model", "m.goldspan", "--round", 0, "--json")[1]
    assert "coverage" in json.loads(early)["rules"]


@pytest.mark.compiles
def test_a_table_of_attributes_is_a_pool(run, table, tmp_path):
    words = ["--by", "coverage-paper", "--numeric", "nearest(10)", "-n", 5, "-o", "b.csv"]
    code, out, _ = run(table, "--attributes", *words)
    rows = list(csv.DictReader((tmp_path / "b.csv").read_text(encoding="utf-8").splitlines()))
    assert code == 0
    assert "5 of 20 items" in out
    assert rows[0]["item"].startswith("m")
    assert rows[0]["why"].startswith("level 1: age=")
    code, out, _ = run(table, "--attributes", *words[:-2], "--missing", "value", "-o", "-")
    row = json.loads(out.splitlines()[0])
    assert (code, set(row)) == (0, {"item", "age", "town", "select"})


def test_money_is_counted_to_the_cent(run, pool):
    words = ["-b", "1money", "--fixed", "0.02", "--per-token", "0.005", "--answers", 3]
    facts = json.loads(run(pool, *words, "--by", "random", "--json")[1])
    assert facts["unit"] == "micro"
    # 4 tokens: 3 * (0.02 + 4 * 0.005) = 0.12 each
    assert (facts["items"], facts["cost"]) == (8, 960_000)
    assert "cost 0.96" in run(pool, *words, "--by", "random")[1]


def test_errors_bend_the_coverage(run, pool, tmp_path):
    (tmp_path / "wrong.csv").write_text("item,error\nt1,1\nt2,0\n", encoding="utf-8")
    (tmp_path / "gold.jsonl").write_text(
        "".join(pool.read_text(encoding="utf-8").splitlines(keepends=True)[:6]), encoding="utf-8"
    )
    rule = ["--by", "coverage(errors_as=target)", "-n", 4]
    words = [pool, *rule, "--labelled", "gold.jsonl", "--json"]
    plain, bent = (json.loads(run(*words, *more)[1]) for more in ([], ["--errors", "wrong.csv"]))
    assert plain["labelled"] == bent["labelled"] == 6
    assert plain["picks"] != bent["picks"]


def test_text_comes_from_standard_input(run, monkeypatch, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("Rome is old.\n\nIt rains.\n", encoding="utf-8")
    with text.open("rb") as file:
        monkeypatch.setattr("sys.stdin", type("In", (), {"buffer": file}))
        code, out, _ = run("-", "--format", "text", "--by", "random", "-o", "-")
    assert code == 0
    assert {json.loads(line)["text"] for line in out.splitlines()} == {"Rome is old.", "It rains."}


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["pool.jsonl", "-b", "5 pounds"], 1, "it must look like 100"),
        (["pool.jsonl", "--by", "mnlp", "-n", "3"], 1, "give one"),
        (["pool.jsonl", "--by", "coverge"], 1, "did you mean 'coverage'"),
        (["pool.jsonl", "-b", "3money"], 1, "needs costs"),
        (["pool.jsonl", "--format", "xml"], 1, "unknown format of a pool"),
        (["nothing.jsonl"], 1, "nothing.jsonl"),
        (["pool.jsonl", "--labelled", "no.conll"], 1, "there is no such file"),
        (["pool.jsonl", "-o", "pool.jsonl"], 1, "is an input too"),
        (["pool.jsonl", "-o", "x.xml"], 2, "must end in"),
        (["pool.jsonl", "-o", "-", "--json"], 2, "choose one"),
        (["pool.jsonl", "--answers", "3"], 2, "--answers multiplies"),
        (["pool.jsonl", "--by", "random", "--round", "2"], 2, "--round is for schedules"),
        (["mails.csv", "--attributes", "-f", "text"], 2, "leave out --format"),
        (["twice.csv", "--attributes"], 1, "columns 'a' appear twice"),
        (["mails.csv", "--attributes", "--templates", "hmm"], 2, "a table has columns"),
        (["mails.csv", "--attributes", "-b", "9tokens"], 1, "no tokens to count"),
        (["mails.csv", "--attributes", "--column", "agee=log2"], 1, "did you mean 'age'"),
        (["mails.csv"], 1, "--attributes in goldspan select"),
        (["twice.jsonl"], 1, "item a appears in the pool twice"),
        (["pool.jsonl", "--labelled", "other.jsonl"], 1, "item t1 has other words"),
        (["pool.jsonl", "--errors", "bad.csv"], 1, "bad.csv line 2"),
        (["pool.jsonl", "--errors", "good.csv"], 1, "is not labelled"),
    ],
)
def test_what_makes_no_sense_is_refused(run, pool, table, tmp_path, words, code, message):
    assert pool.exists()
    assert table.exists()
    for name, text in {
        "twice.csv": "id,a,a\nx,1,2\n",
        "twice.jsonl": '{"item": "a", "text": "x"}\n{"item": "a", "text": "y"}\n',
        "other.jsonl": '{"item": "t1", "text": "something else"}\n',
        "bad.csv": "item,error\nt1,much\n",
        "good.csv": "item\nt1\n",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    found, _, err = run(*words)
    assert found == code
    assert message in err
