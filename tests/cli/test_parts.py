"""Commands on crowds whose items have parts: spans that overlap count, and items are whole."""

from __future__ import annotations

import json

import pytest

TEXT = "The Bank of England in London raised rates on Monday 3 May"
SPANS = [[4, 19, "ORG"], [12, 19, "LOC"], [23, 29, "LOC"], [46, 58, "DATE"]]


@pytest.fixture(autouse=True)
def _files(tmp_path):
    answers = {"ann": SPANS, "bob": [SPANS[0], *SPANS[2:]], "cal": SPANS}
    rows = [
        {"item": f"s{n}", "text": f"{TEXT} {n}",
         "answers": [{"worker": who, "spans": own} for who, own in answers.items()]}
        for n in range(12)
    ]  # fmt: skip
    (tmp_path / "crowd.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    gold = [{"item": row["item"], "text": row["text"], "gold": SPANS} for row in rows]
    (tmp_path / "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in gold))


def _json(run, *words):
    code, out, err = run(*words, "--json")
    assert code == 0, err
    return json.loads(out)


def test_whole_items_are_counted(run):
    found = _json(run, "inspect", "crowd.jsonl")
    assert [found[name] for name in ("items", "parts", "answers")] == [12, 24, 36]
    assert found["next"].endswith("-o gold.jsonl")
    code, out, _ = run("aggregate", "crowd.jsonl", "-m", "mv-token", "--gold", "gold.jsonl")
    assert code == 0
    assert "12 items in 24 parts" in out
    assert "36 answers of 3 workers, 48 spans" in out
    assert "12 items, sets of spans" in out


def test_scores_are_of_exact_sets(run, tmp_path):
    assert run("aggregate", "crowd.jsonl", "-m", "mv-token", "-o", "labels.jsonl")[0] == 0
    found = _json(run, "score", "labels.jsonl", "gold.jsonl", "--bootstrap", "100")
    assert (found["accuracy"], found["micro"]["f1"], found["n_items"]) == (1.0, 1.0, 12)
    first = json.dumps({"item": "s0", "text": f"{TEXT} 0", "gold": SPANS[:1]})
    (tmp_path / "some.jsonl").write_text(first + "\n")
    code, out, _ = run("score", "some.jsonl", "gold.jsonl", "--wrong")
    assert code == 0
    assert "s0    missed  LOC   [12, 19)" in out


def test_agreement_is_also_that_of_sets(run):
    found = _json(run, "agreement", "crowd.jsonl")
    assert found["masi_alpha"] is not None
    assert [row["answers"] for row in found["workers"]] == [12, 12, 12]


def test_an_answer_is_paid_once(run):
    code, out, _ = run("bill", "crowd.jsonl", "--per-answer", "0.05")
    assert code == 0
    assert "1.80 for 3 workers" in out


def test_partitions_refuse_parts_and_name_what_helps(run):
    words = ("convert", "crowd.jsonl", "--partitions", "2", "-o", "parts")
    code, _, err = run(*words)
    assert code == 1
    assert "--overlapping longest" in err
    assert run(*words, "--overlapping", "longest")[0] == 0
