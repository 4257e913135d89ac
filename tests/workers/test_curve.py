"""What forecasts and measured curves have in common."""

from __future__ import annotations

import pytest

from goldspan.errors import InputError
from goldspan.workers import Reliability, forecast_accuracy


def test_a_point_of_the_curve_is_the_curve_of_one_size():
    found = forecast_accuracy(Reliability.from_counts([9, 8, 7], 10), prices=["0.1"] * 3)
    one, whole = found.at(2).to_dict(), found.to_dict()
    assert one["cost"] == ["0.20"]
    for name in ("sizes", "accuracy", "low", "high"):
        assert one[name] == [whole[name][1]]


def test_a_size_that_is_not_in_the_curve_is_refused():
    with pytest.raises(InputError, match=r"unknown size 4: choose from \[1, 2\]"):
        forecast_accuracy(Reliability.from_counts([9, 8], 10)).at(4)


def test_one_worker_is_no_workers():
    found = forecast_accuracy(Reliability.from_counts([9], 10))
    assert found.cost_to(1).reason.endswith("with 1 worker")


def test_a_model_shows_what_is_paid_and_no_answers_that_nobody_counted():
    tested = Reliability.from_counts([9, 8], 10)
    assert str(forecast_accuracy(tested)).splitlines()[1].split()[:2] == ["workers", "accuracy"]
    paid = str(forecast_accuracy(tested, prices=["0.1", "0.15"])).splitlines()
    assert paid[1].split()[:3] == ["workers", "cost", "accuracy"]
    assert paid[3].split()[:2] == ["2", "0.25"]
