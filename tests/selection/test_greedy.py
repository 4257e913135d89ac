"""Greedy coverage: equal to the plain algorithm to the item, and as good as is promised."""

from __future__ import annotations

import math

import numpy as np
import pytest
from naive_greedy import best_of_all, naive_cover, random_items, value_of

from goldspan.selection.features import Incidence
from goldspan.selection.greedy import Spending, Wanted, cover

SEEDS = range(25)


@pytest.mark.parametrize("order", ["levels", "capped"])
@pytest.mark.parametrize("w", [1, 2, 3])
def test_unit_costs_give_the_picks_of_plain_greedy(w, order):
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        items, ranks = random_items(rng, 40, 25, 8), rng.permutation(40)
        out = rng.random(40) < 0.1
        wanted = Wanted(w, order, counts=rng.integers(0, 2, 25))
        spending = Spending(int(rng.integers(1, 45)))
        found = cover(items, wanted, spending, ranks, out)
        picked, gains, levels = naive_cover(items, wanted, spending, ranks, out)
        assert (found.item.tolist(), found.gain.tolist()) == (picked, gains)
        assert found.level.tolist() == levels


@pytest.mark.parametrize("order", ["levels", "capped"])
@pytest.mark.parametrize("w", [1, 3])
def test_weights_and_costs_give_the_picks_of_plain_greedy_to_the_bit(w, order):
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        items, ranks = random_items(rng, 40, 25, 8), rng.permutation(40)
        wanted = Wanted(w, order, weights=rng.choice([0.0, 0.1, 0.7, 3.3], 25))
        cost = rng.integers(1, 9, 40).astype(float)
        spending = Spending(30, cost, 60.0, None if seed % 3 == 0 else cost)
        found = cover(items, wanted, spending, ranks)
        picked, gains, levels = naive_cover(items, wanted, spending, ranks)
        if found.item.tolist() != picked:  # the best single item was better
            alone = max(value_of([one], items, wanted) for one in range(40) if cost[one] <= 60)
            assert alone > value_of(picked, items, wanted)
            continue
        assert (found.gain.tolist(), found.level.tolist()) == (gains, levels)


def test_one_pick_in_n_has_the_promised_share_of_the_best_at_unit_costs():
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        items, n = random_items(rng, 10, 14, 5), int(rng.integers(1, 5))
        for wanted in (Wanted(1), Wanted(2, "capped")):
            found = cover(items, wanted, Spending(n), np.arange(10))
            best = best_of_all(items, wanted, Spending(n))
            assert value_of(found.item, items, wanted) >= (1 - 1 / math.e) * best - 1e-9


def test_unequal_costs_have_the_promised_share_of_the_best():
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        items = random_items(rng, 10, 14, 5)
        cost = rng.choice([1.0, 2.0, 7.0, 10.0], 10)
        spending = Spending(10, cost, 12.0, cost)
        for wanted in (Wanted(1, weights=rng.random(14)), Wanted(2, "capped")):
            found = cover(items, wanted, spending, np.arange(10))
            assert cost[found.item].sum() <= 12
            share = value_of(found.item, items, wanted)
            assert share >= (1 - 1 / math.e) / 2 * best_of_all(items, wanted, spending) - 1e-9


def test_the_best_single_item_saves_greedy_by_ratio():
    items = Incidence.of_sets([range(100), {100, 101}])
    cost = np.array([100.0, 1.0])
    found = cover(items, Wanted(), Spending(2, cost, 100.0, cost), np.arange(2))
    assert found.item.tolist() == [0]
    assert found.gain.tolist() == [100.0]
    assert found.stopped == "budget"


def test_level_wise_can_be_worse_than_the_bound_of_the_capped_order():
    items = Incidence.of_sets([{0, 1, 2}, {0, 1, 2}, {3}])
    wanted = Wanted(2)
    levels = cover(items, wanted, Spending(2), np.arange(3))
    capped = cover(items, Wanted(2, "capped"), Spending(2), np.arange(3))
    assert levels.item.tolist() == [0, 2]
    assert capped.item.tolist() == [0, 1]
    assert value_of(levels.item, items, wanted) == 4
    assert value_of(capped.item, items, wanted) == 6


@pytest.mark.parametrize(
    ("most", "budget", "stopped"),
    [(1, np.inf, "budget"), (3, np.inf, "saturated"), (3, 3.0, "budget"), (3, 6.0, "saturated")],
)
def test_it_says_why_it_stopped(most, budget, stopped):
    items = Incidence.of_sets([{0, 1}, {2}, {0}])
    spend = None if np.isinf(budget) else np.array([3.0, 3.0, 1.0])
    assert cover(items, Wanted(), Spending(most, spend, budget), np.arange(3)).stopped == stopped


def test_a_pool_that_is_used_up_is_exhausted():
    found = cover(Incidence.of_sets([{0}, {1}]), Wanted(), Spending(5), np.arange(2))
    assert (len(found.item), found.stopped) == (2, "exhausted")


def test_costs_that_are_fractions_may_add_up_to_the_budget():
    items = Incidence.of_sets([{0}, {1}, {2}])
    cost = np.full(3, 0.1)
    assert len(cover(items, Wanted(), Spending(3, cost, 0.3, cost), np.arange(3)).item) == 3


def test_the_value_that_was_wanted_is_named():
    items = Incidence.of_sets([{0, 1, 2}, {2, 3}])
    assert cover(items, Wanted(), Spending(2), np.arange(2)).value.tolist() == [0, 3]
    weighed = Wanted(weights=np.array([1.0, 5.0, 2.0, 1.0]))
    assert cover(items, weighed, Spending(2), np.arange(2)).value.tolist() == [1, 3]
