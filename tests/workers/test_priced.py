from itertools import combinations

import numpy as np
import pytest

from goldspan.workers import Reliability, select_workers
from goldspan.workers.teams import affordable, greedy_team


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


def test_the_choice_is_near_the_best_of_all_affordable_sets_and_its_bound_holds():
    shares = []
    for scores, prices, limit, rng in _pools(300):
        choice = greedy_team(scores, prices, limit, None, rng)
        best = max(0.0, _best_affordable(scores, prices, limit))
        found = _value(scores[choice.chosen])
        assert prices[choice.chosen].sum() <= limit
        assert choice.ratio * best <= found + 1e-9 <= best + 2e-9
        if best:
            shares.append(found / best)
            assert found == pytest.approx(choice.curve.max())
            assert found >= scores[prices <= limit].max() - 1e-9
    assert np.mean(shares) > 0.99
    assert np.mean(np.array(shares) > 1 - 1e-9) > 0.85
    assert min(shares) > 0.8


def test_a_guarantee_below_the_best_is_said():
    scores, prices = np.array([1.0, 0.9, 0.9]), np.array([3, 4, 4])
    assert greedy_team(scores, prices, 8, None, np.random.default_rng(0)).ratio < 1
    pool = Reliability.from_counts([29, 28, 28], 30)
    team = select_workers(pool, budget=8, prices=[3, 4, 4])
    least = f"worth at least {100 * team.ratio:.1f} % of the best team"
    assert team.guarantee == f"{least} for at most 8.00 per item"


def test_of_a_large_pool_much_is_guaranteed():
    rng = np.random.default_rng(0)
    scores, prices = rng.random(5000) ** 2, rng.integers(10_000, 200_000, 5000)
    assert greedy_team(scores, prices, 1_000_000, None, rng).ratio > 0.9


def test_who_is_too_expensive_for_the_rest_is_passed_over():
    prices = np.array([5, 4, 3, 2, 1])
    assert affordable(np.arange(5), prices, 9).tolist() == [0, 1]
    assert affordable(np.arange(5), prices, 8).tolist() == [0, 2]
    assert affordable(np.arange(5), prices, 7).tolist() == [0, 3]


def test_the_seed_decides_among_equal_workers_with_prices():
    scores, prices = np.ones(6), np.array([5, 5, 5, 5, 5, 3])
    choices = [greedy_team(scores, prices, 13, None, np.random.default_rng(n)) for n in range(12)]
    teams = {tuple(sorted(choice.chosen.tolist())) for choice in choices}
    assert len(teams) > 3
    assert all(5 in team for team in teams)
