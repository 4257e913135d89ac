"""The pool's prior: against brute-force integration, on known pools, and how often it holds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import betaln, expit

from goldspan.workers import Reliability
from goldspan.workers.beta import MEANS, STRENGTHS, PoolPrior, pool_prior


def integrated(right, total, worker):
    """Return mean and variance of a worker's posterior by a fine grid over the hyper-parameters."""
    x, y = np.meshgrid(np.linspace(*MEANS, 350), np.linspace(*STRENGTHS, 250), indexing="ij")
    a, b = expit(x) * np.exp(y), expit(-x) * np.exp(y)
    logs = np.log(expit(x) * expit(-x)) - y / 2
    for hits, asked in zip(right, total, strict=True):
        logs = logs + betaln(a + hits, b + asked - hits) - betaln(a, b)
    weight = np.exp(logs - logs.max())
    weight /= weight.sum()
    whole = a + b + total[worker]
    first = (a + right[worker]) / whole
    second = first * (a + right[worker] + 1) / (whole + 1)
    mean = (weight * first).sum()
    return mean, (weight * second).sum() - mean**2


@pytest.mark.parametrize(
    ("right", "total"),
    [
        ([8, 5, 7, 7, 6, 6, 6, 8], [10] * 8),
        ([2, 0, 55, 9, 10], [2, 5, 60, 10, 20]),
        ([998] * 30, [1000] * 30),
        ([1, 0], [1, 1]),
    ],
)
def test_every_posterior_has_the_moments_of_brute_force(right, total):
    tested = Reliability.from_counts(right, total)
    for worker in {0, len(right) - 1}:
        mean, variance = integrated(right, np.array(total), worker)
        a, b = tested.a[worker], tested.b[worker]
        assert a / (a + b) == pytest.approx(mean, abs=3e-3)
        assert a * b / (a + b) ** 2 / (a + b + 1) == pytest.approx(variance, rel=0.05, abs=1e-6)


def test_a_large_pool_is_known():
    rng = np.random.default_rng(2)
    asked = rng.choice([5, 20, 60], 5000)
    tested = Reliability.from_counts(rng.binomial(asked, rng.beta(6, 3, 5000)), asked)
    assert tested.prior == (pytest.approx(6, rel=0.12), pytest.approx(3, rel=0.12))


def test_equal_results_are_one_result_with_a_count():
    few = pool_prior(np.array([3.0, 9.0]), np.array([10.0, 10.0]), np.array([2, 5]))
    many = pool_prior(np.repeat([3.0, 9.0], [2, 5]), np.full(7, 10.0), np.ones(7, np.int64))
    assert few.weight == pytest.approx(many.weight)


def test_one_tested_worker_says_nothing_of_the_pool():
    assert Reliability.from_counts([3, 0], [4, 0]).prior == (pytest.approx(1), pytest.approx(1))


def test_one_beta_for_certain_is_the_plain_posterior():
    found = PoolPrior.of(2.0, 3.0).posterior(np.array([4.0]), np.array([9.0]))
    assert found[:, 0].tolist() == pytest.approx([6, 8])


@pytest.mark.parametrize(("workers", "least"), [(5, 0.9), (8, 0.9), (31, 0.91)])
def test_intervals_hold_in_small_pools_too(workers, least):
    held = []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        chance = rng.beta(6, 3, workers)
        low, high = Reliability.from_counts(rng.binomial(10, chance), 10).interval()
        held += ((low <= chance) & (chance <= high)).tolist()
    assert np.mean(held) >= least
