"""The review: what judges, whom it selects, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from goldspan.crowd import Crowd, read_crowd
from goldspan.errors import InputError, UnknownNameError
from goldspan.simulation import draw_truth, simulate_crowd
from goldspan.workers import judge_workers, measure_reliability, review_workers, select_workers
from goldspan.workers.review import Review


@pytest.fixture(scope="module")
def whole() -> Crowd:
    truth = draw_truth(80, ["no", "yes"], seed=1)
    return simulate_crowd(truth, ["flip(0.1) x4", "bad=flip(0.45)", "con=spammer(constant)"])


@pytest.fixture(scope="module")
def crowd(whole) -> Crowd:
    """Enough gold to judge by."""
    return known_of(whole, 15)


@pytest.fixture(scope="module")
def review(crowd) -> Review:
    return review_workers(crowd, budget=3)


def known_of(crowd: Crowd, n: int) -> Crowd:
    return crowd.with_gold(np.where(np.arange(crowd.n_tokens) < n, crowd.gold, -1).astype(np.int16))


def test_its_parts_are_those_of_the_functions_it_calls(crowd, review):
    reliability = measure_reliability(crowd)
    assert review.reliability.right.tolist() == reliability.right.tolist()
    assert (review.reliability.source, review.method, review.threshold) == ("gold", None, 0.75)
    plain = judge_workers(reliability)
    assert [v.p_above for v in review.verdicts] == [v.p_above for v in plain]
    assert review.team.index.tolist() == select_workers(reliability, budget=3).index.tolist()
    assert [s.kind for v in review.verdicts if v.worker == "con" for s in v.flags] == ["constant"]


def test_verdicts_that_contradict_the_team_are_counted_and_explained(whole):
    found = review_workers(known_of(whole, 15), budget=3, threshold=0.97)
    kinds = {v.worker: v.verdict for v in found.verdicts}
    own = [kinds[name] for name in found.team.worker_ids.to_pylist()]
    for kind in ("drop", "test more"):
        assert (f"{kind} {own.count(kind)}" in found.contradiction) == (kind in own)
    assert set(own) & {"drop", "test more"}
    assert "threshold of 97 %" in found.to_dict()["contradiction"]
    assert not review_workers(whole, budget=3, threshold=0.6).contradiction


def test_nobody_who_set_no_budget_is_told_of_one(whole):
    assert not any("budget" in note for note in review_workers(whole).team.notes)
    assert any("budget of 9" in note for note in review_workers(whole, budget=9).team.notes)


def test_a_method_that_is_not_used_is_refused_or_told(whole):
    with pytest.raises(InputError, match="leave out the method 'ds'"):
        review_workers(whole, source="gold", method="ds")
    found = review_workers(whole, method="ds")
    assert any("the method ds was not used" in note for note in found.notes)


def test_gold_that_nobody_gave_is_told(whole):
    truth = {name: tags[0] for name, tags in whole.tagged_by_id().items()}
    truth[next(iter(truth))] = "maybe"
    found = review_workers(whole.with_gold(None), truth, budget=3)
    assert any("'maybe'" in note for note in found.notes)


@pytest.mark.parametrize(
    ("n_known", "wanted"), [(15, "gold"), (9, "both"), (0, "crowd")], ids=["enough", "few", "none"]
)
def test_gold_judges_where_there_is_enough(crowd, n_known, wanted):
    found = review_workers(known_of(crowd, n_known), budget=2)
    assert found.reliability.source == wanted
    assert found.method == (None if wanted == "gold" else "auto")
    assert any("9 items with gold" in note for note in found.notes) == (wanted == "both")


def test_the_crowd_alone_forgets_the_gold(crowd):
    by_crowd = review_workers(crowd, source="crowd", budget=2)
    without = review_workers(crowd.with_gold(None), budget=2)
    assert by_crowd.to_dict() == without.to_dict()
    result = goldspan.aggregate(crowd.with_gold(None))
    expected = measure_reliability(crowd.with_gold(None), result=result)
    assert by_crowd.reliability.right.tolist() == expected.right.tolist()


def test_gold_beside_the_crowd_counts_as_its_own(crowd):
    truth = {name: tags[0] for name, tags in crowd.tagged_by_id().items() if tags != [None]}
    found = review_workers(crowd.with_gold(None), truth, budget=3)
    assert found.to_dict() == review_workers(crowd, budget=3).to_dict()


def test_one_price_for_all_buys_as_many_workers(crowd, review):
    found = review_workers(crowd, budget="0.15", prices="0.05")
    assert sorted(found.team.index) == sorted(review.team.index)
    assert found.team.to_dict()["price"] == "0.15"


def test_without_a_budget_everybody_can_be_paid(crowd):
    free = review_workers(crowd)
    everybody = select_workers(free.reliability, budget=6, strategy="top")
    assert free.team.budget == len(everybody)
    paid = review_workers(crowd, prices=[0.05] * 5 + [0.1])
    assert paid.team.to_dict()["budget"] == "0.35"


def test_a_budget_of_nothing_selects_nobody(crowd):
    found = review_workers(crowd, budget=0)
    assert (len(found.team), found.team.why_nobody) == (0, "the budget is 0")


def test_tags_are_reviewed_by_their_spans(root):
    tagged = read_crowd(root / "examples" / "crowd.tsv")
    found = review_workers(tagged, budget=3)
    assert found.reliability.measure == "span_f1"
    assert found.team.worker_ids.to_pylist()[0] == "ana"
    verdicts = {v.worker: v.verdict for v in found.verdicts}
    assert (verdicts["ana"], verdicts["gus"]) == ("keep", "drop")


def test_the_table_has_a_row_per_worker(crowd, review):
    rows = review.to_arrow().to_pylist()
    assert [row["worker"] for row in rows] == crowd.worker_ids.to_pylist()
    assert sum(row["in_team"] for row in rows) == 3
    assert rows[5]["flags"].startswith("constant: 100 %")


def test_steps_are_told_as_they_begin(crowd):
    told = []
    review_workers(known_of(crowd, 0), budget=2, step=told.append)
    assert told[0] == "aggregating with auto"
    assert len(told) == 3


def test_a_crowd_without_answers_is_refused():
    with pytest.raises(InputError, match="no answer"):
        review_workers(draw_truth(5))


def test_unknown_sources_and_missing_gold_are_refused(crowd):
    with pytest.raises(UnknownNameError, match="auto, gold, crowd, both"):
        review_workers(crowd, source="vote")
    with pytest.raises(InputError, match="give its gold"):
        review_workers(crowd.with_gold(None), source="both")
