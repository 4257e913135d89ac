"""What tests say about workers: the posterior against integration, the pool's prior, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from goldspan.errors import InputError
from goldspan.workers import Reliability
from goldspan.workers.beta import distinct_results


def test_mean_and_tail_are_those_of_the_integrated_posterior() -> None:
    tested = Reliability.from_counts([7, 0, 3], [10, 4, 3], prior=(2, 1.5))

    def density(w: float, right: float, total: float) -> float:
        return w ** (1 + right) * (1 - w) ** (0.5 + total - right)

    for n, (right, total) in enumerate(zip(tested.right, tested.total, strict=True)):
        whole = quad(density, 0, 1, args=(right, total))[0]
        mean = quad(lambda w, r=right, t=total: w * density(w, r, t), 0, 1)[0] / whole
        above = quad(density, 0.6, 1, args=(right, total))[0] / whole
        assert tested.mean[n] == pytest.approx(mean, abs=1e-9)
        assert tested.p_above(0.6)[n] == pytest.approx(above, abs=1e-9)


def test_an_interval_holds_its_level_of_the_posterior() -> None:
    tested = Reliability.from_counts([7, 0, 30.5], [10, 4, 33], prior=(1, 1))
    low, high = tested.interval(0.9)
    for one, edge, mass in zip(tested.mean, low, high, strict=True):
        assert edge < one < mass
    tails = [tested.p_above(float(edge))[n] for n, edge in enumerate(low)]
    assert tails == pytest.approx([0.95] * 3, abs=1e-9)


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    rng = np.random.default_rng(1)
    w = rng.beta(4, 2, 40_000)
    asked = rng.choice([2, 5, 20, 60], 40_000)
    tested = Reliability.from_counts(rng.binomial(asked, w), asked)
    low, high = tested.interval(0.9)
    for n in (2, 5, 20, 60):
        own = asked == n
        assert ((low <= w) & (w <= high))[own].mean() == pytest.approx(0.9, abs=0.012)


def test_nobody_tested_leaves_the_prior() -> None:
    tested = Reliability.from_counts([0, 0], [0, 0])
    assert tested.mean.tolist() == [0.5, 0.5]
    assert np.isnan(tested.share).all()
    assert tested.to_arrow().column("share").to_pylist() == [None, None]


@pytest.mark.parametrize(
    ("right", "total", "options", "message"),
    [
        ([3], [2], {}, "worker 0: 3 of 2"),
        ([-1], [2], {}, "-1 of 2"),
        ([np.nan], [2], {}, "nan of 2"),
        ([1], [2], {"n_labels": 1}, "at least 2, not 1"),
        ([1, 2, 3], [4, 5], {}, "totals of shape"),
        ([1], [2], {"prior": (0, 1)}, "pair of positive numbers"),
        ([1], [2], {"prior": "flat"}, "not 'flat'"),
        ([1], [2], {"worker_ids": ["a", "b"]}, "2 worker ids for 1 workers"),
    ],
)
def test_counts_that_make_no_sense_are_refused(right, total, options, message) -> None:
    with pytest.raises(InputError, match=message):
        Reliability.from_counts(right, total, **options)


def test_levels_and_thresholds_outside_are_refused() -> None:
    tested = Reliability.from_counts([1], [2])
    with pytest.raises(InputError, match="between 0 and 1, not 1"):
        tested.interval(1)
    with pytest.raises(InputError, match="not 2"):
        tested.p_above(2)


@pytest.mark.parametrize("step", [1.0, 0.5])
def test_equal_results_are_grouped(step) -> None:
    rng = np.random.default_rng(0)
    total = rng.integers(0, 30, 500) * step
    right = np.floor(rng.random(500) * (total / step + 1)) * step
    pairs, inverse, times = distinct_results(right, total)
    assert times.tolist() == np.bincount(inverse).tolist()
    assert pairs[:, inverse].tolist() == [right.tolist(), total.tolist()]
