from itertools import combinations

import numpy as np
import pytest

from goldspan.workers import Reliability, select_workers
from goldspan.workers import teams as priced
from goldspan.workers.teams import affordable, best_within, relaxed_choice


def _value(scores):
    return scores.sum() / np.sqrt(len(scores)) if len(scores) else 0.0


def _best_affordable(scores, prices, limit):
    sizes = range(1, len(scores) + 1)
    sets = (list(s) for k in sizes for s in combinations(range(len(scores)), k))
    return max((_value(scores[s]) for s in sets if prices[s].sum() <= limit), default=0.0)


def _pools(n):
    rng = np.random.default_rng(0)
    for _ in range(n):
        size = rng.integers(2, 9)
        yield rng.normal(1, 1, size), rng.integers(0, 12, size), int(rng.integers(1, 40)), rng


def test_the_choice_is_the_best_of_all_affordable_sets():
    for scores, prices, limit, rng in _pools(200):
        choice = best_within(scores, prices, limit, rng)
        best = max(0.0, _best_affordable(scores, prices, limit))
        assert _value(scores[choice.chosen]) == pytest.approx(best, abs=1e-9)
        assert prices[choice.chosen].sum() <= limit
        assert choice.ratio == 1


def test_what_is_found_for_a_large_pool_lies_below_the_best_and_that_below_its_bound():
    for all_scores, all_prices, limit, _ in _pools(100):
        useful = (all_scores > 0) & (all_prices <= limit)
        scores, prices = all_scores[useful], all_prices[useful]
        if not prices.any():
            continue
        most = int((np.cumsum(np.sort(prices)) <= limit).sum())
        choice = relaxed_choice(scores, prices, limit, most)
        found, best = _value(scores[choice.chosen]), _best_affordable(scores, prices, limit)
        assert prices[choice.chosen].sum() <= limit
        assert found == pytest.approx(choice.curve.max())
        assert found <= best + 1e-9 <= found / choice.ratio + 2e-9


@pytest.mark.parametrize("name", ["MOST_STEPS", "MOST_STATES"])
def test_a_pool_too_large_to_be_solved_exactly_says_what_is_guaranteed(monkeypatch, name):
    rng = np.random.default_rng(0)
    right, prices = rng.binomial(30, 0.8, 60), rng.integers(1, 30, 60)
    pool = Reliability.from_counts(right, 30)
    exact = select_workers(pool, budget=60, prices=prices)
    monkeypatch.setattr(priced, name, 10)
    relaxed = select_workers(pool, budget=60, prices=prices)
    assert exact.ratio == 1
    assert 0.95 < relaxed.ratio < 1
    assert relaxed.value >= relaxed.ratio * exact.value
    assert "F is at least" in relaxed.guarantee


def test_a_large_pool_is_solved_almost_exactly():
    rng = np.random.default_rng(0)
    scores, prices = rng.random(5000) ** 2, rng.integers(10_000, 200_000, 5000)
    assert best_within(scores, prices, 1_000_000, rng).ratio > 0.99


def test_a_cheap_pair_can_beat_an_expensive_expert():
    choice = best_within(
        np.array([1.0, 0.9, 0.9]), np.array([4, 2, 2]), 4, np.random.default_rng(0)
    )
    assert sorted(choice.chosen.tolist()) == [1, 2]


def test_nobody_is_chosen_where_nobody_is_useful_and_affordable():
    choice = best_within(np.array([-1.0, 5.0]), np.array([1, 9]), 4, np.random.default_rng(0))
    assert len(choice.chosen) == 0


def test_who_is_too_expensive_for_the_rest_is_passed_over():
    prices = np.array([5, 4, 3, 2, 1])
    assert affordable(np.arange(5), prices, 9).tolist() == [0, 1]
    assert affordable(np.arange(5), prices, 8).tolist() == [0, 2]
    assert affordable(np.arange(5), prices, 7).tolist() == [0, 3]


def test_the_seed_decides_among_equal_workers_with_prices():
    scores, prices = np.ones(6), np.array([5, 5, 5, 5, 5, 3])
    teams = {
        tuple(sorted(best_within(scores, prices, 13, np.random.default_rng(seed)).chosen.tolist()))
        for seed in range(12)
    }
    assert len(teams) > 3
    assert all(5 in team for team in teams)
