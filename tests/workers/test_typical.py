"""Mistakes shared as in public crowds, where there is no gold."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from goldspan.simulation import draw_truth, simulate_crowd
from goldspan.workers import forecast_accuracy, measure_reliability, typical_difficulty
from goldspan.workers.difficulty import WRONG_RESULTS


def test_the_share_of_wrong_results_is_drawn_from_public_crowds_and_not_learnt():
    crowd = simulate_crowd(draw_truth(40, ["no", "yes"]), ["flip(0.02) x5"]).with_gold(None)
    found = typical_difficulty(goldspan.aggregate(crowd, "ds"))
    a, b = WRONG_RESULTS
    assert found.misleading.mean() == pytest.approx(a / (a + b), abs=0.03)
    assert "40 items alone" in str(found)


def test_a_forecast_from_the_crowd_alone_promises_no_certainty():
    crowd = simulate_crowd(draw_truth(40, ["no", "yes"]), ["flip(0.02) x9"]).with_gold(None)
    result = goldspan.aggregate(crowd, "ds")
    tested = measure_reliability(crowd, result=result)
    alone = forecast_accuracy(tested)
    found = forecast_accuracy(tested, difficulty=typical_difficulty(result))
    assert alone.low[-1] > 0.99
    assert found.accuracy[-1] < 0.9
    assert found.low[-1] < 0.6
    assert found.label.endswith(
        "as workers of public crowds share their mistakes, no gold of yours"
    )


@pytest.mark.realdata
@pytest.mark.parametrize("name", ["bluebirds", "face_sentiment", "snow_temp"])
def test_its_interval_holds_what_public_crowds_had(data, name):
    folder = data / "classification" / name
    crowd = goldspan.read_crowd(str(folder / "labels.csv"), gold=str(folder / "truth.csv"))
    result = goldspan.aggregate(crowd.with_gold(None), "ds")
    tested = measure_reliability(crowd.with_gold(None), result=result)
    found = forecast_accuracy(tested, difficulty=typical_difficulty(result))
    known = crowd.gold >= 0
    code = np.array([crowd.tagset.index[tag] for tag in result.tagset.tags])[result.codes]
    had = (code == crowd.gold)[known].mean()
    assert found.low[-1] < had < found.high[-1]
