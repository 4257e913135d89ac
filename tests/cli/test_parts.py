"""Commands on crowds whose items have parts: spans that overlap count, and items are whole."""

from __future__ import annotations

import json

import pytest

from goldspan import read_crowd
from goldspan.aggregation.written import read_confidences

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


def test_an_item_is_asked_about_again_as_a_whole(run):
    words = ("crowd.jsonl", "-m", "ds", "--confidence", "0.999999", "--ask", "eve")
    found = _json(run, "next", *words)
    assert found["items"] == sum(found["status"].values()) == 12
    asked = [row["item"] for row in found["next"]]
    assert sorted(asked) == sorted({*asked}) == sorted(f"s{n}" for n in range(12))
    assert {row["answers"] for row in found["next"]} == {3}
    found = _json(run, "next", *words, "--max", "3", "--gold", "gold.jsonl")
    assert found["status"]["at the maximum of answers"] == 12
    assert found["finished_right"] == 1.0


def test_whole_items_are_selected_and_learnt_from(run, tmp_path):
    assert run("convert", "crowd.jsonl", "-o", "crowd.parquet")[0] == 0
    found = _json(run, "select", "crowd.parquet", "--by", "random", "-n", "20", "-f", "crowd")
    assert sorted(row["item"] for row in found["picks"]) == sorted(f"s{n}" for n in range(12))
    code, out, err = run("train", "gold.jsonl", "-o", "ner.goldspan")
    assert code == 0
    assert "items: 12" in out
    assert "the tagger learns the outermost ones alone" in err
    assert (tmp_path / "ner.goldspan").exists()


def test_simulated_workers_answer_whole_items(run):
    words = ("gold.jsonl", "-w", "flip(0.2) x4", "--per-item", "2", "-o", "made.jsonl")
    found = _json(run, "simulate", *words)
    assert (found["items"], found["answers"]) == (12, 24)
    assert sum(one["n_answers"] for one in found["workers"]) == 24
    found = _json(run, "inspect", "made.jsonl")
    assert (found["items"], found["answers"]) == (12, 24)


@pytest.mark.parametrize(
    "words",
    [
        ("gold-questions", "crowd.jsonl", "--gold", "gold.jsonl", "-n", "3"),
        ("audit", "draw", "gold.jsonl", "-n", "10", "-o", "check.jsonl"),
    ],
)
def test_what_takes_no_parts_names_what_helps(run, words):
    code, _, err = run(*words)
    assert code == 1
    assert "--overlapping longest" in err
    assert run(*words, "--overlapping", "longest")[0] == 0


def test_confidences_of_spans_that_overlap_are_read_again(run, tmp_path):
    assert run("aggregate", "crowd.jsonl", "-m", "mv-token", "-o", "labels.jsonl")[0] == 0
    labels = read_crowd(tmp_path / "labels.jsonl")
    found = read_confidences(str(tmp_path / "labels.jsonl"), labels)
    assert sorted({*found.span_confidence.round(2).tolist()}) == pytest.approx(
        [0.67, 1.0], abs=0.01
    )
    assert len(found.span_confidence) == 48
    assert run("convert", "gold.jsonl", "-o", "back.jsonl")[0] == 0


def test_gold_with_overlaps_is_kept_where_answers_have_none(run, tmp_path):
    answers = [{"worker": who, "spans": SPANS[:1]} for who in ("ann", "bob")]
    row = {"item": "s0", "text": f"{TEXT} 0", "answers": answers}
    (tmp_path / "flat.jsonl").write_text(json.dumps(row) + "\n")
    words = ("aggregate", "flat.jsonl", "-m", "mv-token", "--gold", "gold.jsonl", "--json")
    code, out, _ = run(*words)
    assert code == 0
    micro = json.loads(out)["score"]["micro"]
    assert (micro["n_right"], micro["n_predicted"]) == (1, 1)
    assert micro["n_true"] > 1
