"""The review: what judges, whom it hires, what it promises, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import karat
from karat.crowd import Crowd, read_crowd
from karat.errors import InputError, UnknownNameError
from karat.hiring import (
    Review,
    judge_workers,
    measure_reliability,
    review_workers,
    select_workers,
)
from karat.report.hiring import cost_curve
from karat.simulate import draw_truth, simulate_crowd


@pytest.fixture(scope="module")
def whole() -> Crowd:
    truth = draw_truth(80, ["no", "yes"], seed=1)
    return simulate_crowd(truth, ["flip(0.1) x4", "bad=flip(0.45)", "con=spammer(constant)"])


@pytest.fixture(scope="module")
def crowd(whole) -> Crowd:
    """Enough gold to judge by, too little to learn a difficulty from, which takes its time."""
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
    assert [s.kind for v in review.verdicts if v.worker == "con" for s in v.signs] == ["constant"]


def test_the_forecast_learns_from_gold_how_alike_mistakes_are(whole, review):
    found = review_workers(whole, budget=3)
    assert found.forecast.shared
    assert not found.notes
    assert found.team_forecast.sizes.tolist() == [3]
    assert not review.forecast.shared
    assert "independent" in review.notes[0]


@pytest.mark.parametrize(
    ("n_known", "wanted"), [(15, "gold"), (9, "both"), (0, "crowd")], ids=["enough", "few", "none"]
)
def test_gold_judges_where_there_is_enough(crowd, n_known, wanted):
    found = review_workers(known_of(crowd, n_known), budget=2)
    assert found.reliability.source == wanted
    assert found.method == (None if wanted == "gold" else "ds")
    assert any("9 items with gold" in note for note in found.notes) == (wanted == "both")


def test_the_crowd_alone_forgets_the_gold(crowd):
    by_crowd = review_workers(crowd, source="crowd", budget=2)
    without = review_workers(crowd.with_gold(None), budget=2)
    assert by_crowd.to_dict() == without.to_dict()
    result = karat.aggregate(crowd.with_gold(None), "ds")
    expected = measure_reliability(crowd.with_gold(None), result=result)
    assert by_crowd.reliability.right.tolist() == expected.right.tolist()


def test_gold_beside_the_crowd_counts_as_its_own(crowd):
    truth = {name: tags[0] for name, tags in crowd.tagged_by_id().items() if tags != ["?"]}
    found = review_workers(crowd.with_gold(None), truth, budget=3)
    assert found.to_dict() == review_workers(crowd, budget=3).to_dict()


def test_one_price_for_all_buys_as_many_workers(crowd, review):
    found = review_workers(crowd, budget="0.15", prices="0.05")
    assert sorted(found.team.index) == sorted(review.team.index)
    assert found.team_forecast.to_dict()["cost"] == ["0.15"]
    curve = cost_curve(found)
    assert curve.unit == "money per item"
    assert curve.cost[:3] == pytest.approx([0.05, 0.1, 0.15])
    assert curve.chosen[0] == pytest.approx(0.15)


def test_without_a_budget_everybody_can_be_paid(crowd):
    free = review_workers(crowd)
    assert free.team.budget == crowd.n_workers
    paid = review_workers(crowd, prices=[0.05] * 5 + [0.1])
    assert paid.team.to_dict()["budget"] == "0.35"


def test_a_budget_of_nothing_hires_nobody_and_still_has_a_curve(crowd):
    found = review_workers(crowd, budget=0)
    assert (len(found.team), found.team.why_nobody) == (0, "the budget is 0")
    assert found.team_forecast is None
    assert found.to_dict()["expected"] is None
    assert cost_curve(found).chosen is None


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
    assert rows[5]["signs"].startswith("constant: 100 %")


def test_steps_are_told_as_they_begin(crowd):
    told = []
    review_workers(known_of(crowd, 0), budget=2, step=told.append)
    assert told[0] == "aggregating with ds"
    assert len(told) == 4


def test_a_crowd_without_answers_is_refused():
    with pytest.raises(InputError, match="no answer"):
        review_workers(draw_truth(5))


def test_unknown_sources_and_missing_gold_are_refused(crowd):
    with pytest.raises(UnknownNameError, match="auto, gold, crowd, both"):
        review_workers(crowd, source="vote")
    with pytest.raises(InputError, match="give its gold"):
        review_workers(crowd.with_gold(None), source="both")
