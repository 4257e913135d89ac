"""The study of worker models: what each can see, errors by kind, and its quick form."""

from __future__ import annotations

import pytest

from goldspan import read_crowd
from goldspan.runners import Threads
from studies import bsc_simulated, run_study


@pytest.fixture(scope="module")
def simulated(root):
    """The tables of two crowds of every habit, on the example's sentences."""
    over = []
    truth = read_crowd(root / "examples" / "crowd.tsv")
    tables = bsc_simulated.simulate(truth, 2, 150, runner=Threads(1), told=lambda: over.append(1))
    assert len(over) == 2 * len(bsc_simulated.SCENES)
    return {table.caption.partition(": ")[2].split(",")[0]: table.to_dict() for table in tables}


def _by_habit(table):
    return {row["habit"]: row for row in table["rows"]}


def test_who_always_gives_the_frequent_label_deceives_acc_and_no_confusion_matrix(simulated):
    row = _by_habit(simulated["span F1 of the labels"])["always gives the frequent label"]
    assert row["acc"] < row["cm"] - 40


def test_only_memory_sees_spans_that_end_late(simulated):
    labels = _by_habit(simulated["span F1 of the labels"])["ends spans two tokens late"]
    hidden = _by_habit(simulated["hidden answers of the habit's workers"])[labels["habit"]]
    assert labels["seq"] > labels["cm"] + 30
    assert hidden["seq"] < 0.6 * min(hidden[model] for model in ("acc", "mace", "cv", "cm"))


def test_a_confusion_vector_does_not_see_which_label_is_wrong(simulated):
    rows = {row["what is given"]: row for row in simulated["how often in per cent"]["rows"]}
    right = rows["B-LOC where B-ORG is right"]
    wrong = rows["B-PER where B-ORG is right"]
    assert right["cv"] == pytest.approx(wrong["cv"])
    assert right["cm"] > 5 * wrong["cm"]
    assert (right["really"] > 50, wrong["really"]) == (True, 0)


def test_what_really_happens_is_what_the_workers_were_told_to_do(simulated):
    rows = {
        row["what is given"]: row["really"] for row in simulated["how often in per cent"]["rows"]
    }
    assert rows["O where a span begins"] == rows["O where the truth is O"] == 100
    assert rows["I where O is right, after O"] == 0
    assert rows["I where O is right, after B or I"] > 50


def test_claims_have_a_p_and_a_verdict(simulated):
    table = simulated["what the paper says of its worker models; second model less first"]
    assert len(table["rows"]) == len(bsc_simulated.SCENES)
    for row in table["rows"]:
        shown = row["p"] < bsc_simulated.SURE
        better = row["hidden answers"] < 0
        assert row["so"] == ("not shown" if not shown else "holds" if better else "contradicted")


@pytest.fixture(scope="module")
def quick(data):
    return run_study("bsc", data, quick=True, methods=("mv-token", "ds"), repeats=0)


@pytest.mark.realdata
def test_the_quick_form_shows_no_published_figure(quick):
    assert quick.notes[0].startswith("QUICK")
    assert "ublished" not in quick.markdown()


@pytest.mark.realdata
def test_every_gold_span_is_right_or_has_an_error(quick):
    scores, _, types, errors, _ = (table.to_dict()["rows"] for table in quick.tables)
    n_gold = int(quick.tables[3].caption.split(", ")[2].split()[0])
    recall = {row["method"]: row["R"] for row in scores if row["half"] == "test"}
    names = ("early start", "late start", "early end", "late end")
    assert [row["method"] for row in errors] == [
        "mv-token, ties to O",
        "mv-token, ties to spans",
        "mv-token, ties to O, raw",
        "mv-token, ties to spans, raw",
        "ds",
    ]
    for row in errors:
        wrong = round(n_gold * (1 - recall[row["method"]] / 100))
        moved = sum(row[name] for name in names)
        others = sum(row[name] for name in ("split", "merged", "missed", "wrong type"))
        assert moved / 2 + others <= wrong <= moved + others
    assert set(types[0]) == {"method", "LOC", "MISC", "ORG", "PER"}


@pytest.mark.realdata
def test_the_best_worker_is_better_than_the_worst(quick):
    rows = quick.tables[1].to_dict()["rows"]
    assert [row["worker"].split(":")[0] for row in rows] == ["best", "worst"] * 3
    for best, worst in zip(rows[::2], rows[1::2], strict=True):
        assert best["F1"] > worst["F1"]
        assert min(best["gold spans"], worst["gold spans"]) >= 50
