"""Greedy cover of attribute values (Ntoulas et al.): level-wise or capped, weighted, with costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan._kernel import inner, kernel
from goldspan.selection.features import Incidence

# --------------------------------------------------------------------------------------------------
# Greedy coverage with weights and costs: a heap of gains, most of them out of date.


@inner
def gain_of(
    item: int,
    bounds: NDArray[np.int64],
    ids: NDArray[np.int32],
    weights: NDArray[np.float64],
    need: NDArray[np.int32],
) -> float:
    """Add up the weights of an item's values that are still needed."""
    gain = 0.0
    for place in range(bounds[item], bounds[item + 1]):
        if need[ids[place]] > 0:
            gain += weights[ids[place]]
    return gain


@kernel
def pick(  # noqa: C901 - one loop for Numba
    bounds: NDArray[np.int64],  # [n_items + 1]
    ids: NDArray[np.int32],  # [nnz], the values of every item
    weights: NDArray[np.float64],  # [n_values], not negative
    shares: NDArray[np.float64],  # [n_items], what a gain is divided by, positive
    spend: NDArray[np.float64],  # [n_items], what an item takes from the budget
    left: float,
    order: NDArray[np.int64],  # [n_items], the permutation that decides ties
    need: NDArray[np.int32],  # How often a value is still needed; changed
    is_out: NDArray[np.bool_],  # [n_items], items that cannot be picked (any more); changed
    picked: NDArray[np.int64],  # [most], written
    gains: NDArray[np.float64],  # [most], written
    why: NDArray[np.int32],  # [most], the weightiest value that was needed; written
) -> tuple[int, float, bool]:
    """Pick by gain per cost until no item brings anything, fits, or there is no more room."""
    n_items, most = len(bounds) - 1, len(picked)
    heap = [(0.0, 0) for _ in range(0)]  # gain per cost, negative, and rank
    n, is_tight = 0, False
    for rank in range(n_items):
        item = order[rank]
        if is_out[item]:
            continue
        gain = gain_of(item, bounds, ids, weights, need)
        if gain > 0:
            heap.append((-gain / shares[item], rank))
    heapify(heap)
    while len(heap) > 0 and n < most:
        last, rank = heap[0]
        item = order[rank]
        gain = gain_of(item, bounds, ids, weights, need)
        key = gain / shares[item]
        fits = spend[item] <= left
        if gain > 0 and not fits:
            is_tight = True
        if gain > 0 and fits and key < -last:
            heapreplace(heap, (-key, rank))
            continue
        heappop(heap)
        if gain <= 0 or not fits:
            continue
        is_out[item] = True
        left -= spend[item]
        picked[n], gains[n], why[n] = item, gain, -1
        heaviest = 0.0
        for place in range(bounds[item], bounds[item + 1]):
            value = ids[place]
            if need[value] > 0:
                if weights[value] > heaviest:
                    heaviest, why[n] = weights[value], value
                need[value] -= 1
        n += 1
    return n, left, is_tight


# --------------------------------------------------------------------------------------------------
# Greedy coverage on arrays (Ntoulas et al.; docs/math.md, section 9).


Floats = NDArray[np.float64]

ORDERS = ("levels", "capped")
BUDGET, SATURATED, EXHAUSTED = "budget", "saturated", "exhausted"
"""Why picking stops: nothing more fits, nothing more is gained, nothing is left."""


@dataclass(frozen=True, eq=False)
class Wanted:
    """What is to be covered, and what has been."""

    w: int = 1  # How often every value is to be covered
    order: str = "levels"  # "levels" or "capped"
    counts: NDArray[np.int64] | None = None  # [n_values], how often labelled items have every value
    weights: Floats | None = None  # [n_values], not negative; None: all alike

    def value(self, counts: NDArray[np.int64]) -> float:
        """Return f, from how often every value is covered."""
        covered = np.minimum(self.w, counts)
        return float(covered.sum() if self.weights is None else covered @ self.weights)


@dataclass(frozen=True, eq=False)
class Spending:
    """What may be spent."""

    most: int
    spend: Floats | None = None  # [n_items], what every item takes from `budget`; None: nothing
    budget: float = np.inf  # In the unit of `spend`
    shares: Floats | None = None  # [n_items], positive: gains are divided by it; None: they are not


class Picks(NamedTuple):
    """What was picked, in order."""

    item: NDArray[np.int64]  # [n]
    gain: Floats  # [n], weights of what was still needed at the pick's level
    level: NDArray[np.int64]  # [n], counted from 1; 0 with `order="capped"`
    value: NDArray[np.int32]  # [n], the foremost value that was still needed
    stopped: str  # "budget", "saturated" or "exhausted"
    counts: NDArray[np.int64]  # [n_values], how often every value is covered in the end


def cover(
    items: Incidence,  # Which item has which values
    wanted: Wanted,  # What is to be covered
    spending: Spending,  # What may be spent
    ranks: NDArray[np.int64],  # [n_items], items by rank: of equals the first is picked
    is_out: NDArray[np.bool_] | None = None,  # [n_items], items that cannot be picked
) -> Picks:
    """Pick items greedily."""
    out = np.zeros(items.n_items, np.bool_) if is_out is None else is_out.copy()
    start = np.zeros(items.n_values, np.int64) if wanted.counts is None else wanted.counts
    found = _levels(items, wanted, spending, ranks, out.copy(), start)
    spend = spending.spend
    if spend is None or spending.shares is None or not len(found.item):
        return found
    # The item that fits and gains most of f alone may be better than all of them
    weights = np.ones(items.n_values) if wanted.weights is None else wanted.weights
    gains = items.sums(np.where(start < wanted.w, weights, 0.0))
    gains[out | (spend > _room(spending))] = 0.0
    best = int(ranks[np.argmax(gains[ranks])])
    if gains[best] <= wanted.value(found.counts) - wanted.value(start):
        return found
    row, counts = items.row(best), start.copy()
    counts[row] += 1
    out[best] = True
    left = replace(spending, most=spending.most - 1, budget=spending.budget - spend[best])
    rest = _levels(items, wanted, left, ranks, out, counts)
    value = row[np.argmax(np.where(start[row] < wanted.w, weights[row], -1.0))]
    return Picks(
        np.concatenate([[best], rest.item]),
        np.concatenate([[gains[best]], rest.gain]),
        np.concatenate([[int(wanted.order == "levels")], rest.level]),
        np.concatenate([[value], rest.value]).astype(np.int32),
        rest.stopped,
        rest.counts,
    )


def _levels(
    items: Incidence, wanted: Wanted, spending: Spending, ranks: NDArray[np.int64],
    out: NDArray[np.bool_], start: NDArray[np.int64],
) -> Picks:  # fmt: skip
    """Run through the levels until the budget or the pool is used up; `out` is changed."""
    weights = np.ones(items.n_values) if wanted.weights is None else wanted.weights
    shares = np.ones(items.n_items) if spending.shares is None else spending.shares
    spend = np.zeros(items.n_items) if spending.spend is None else spending.spend
    counts, left, most = start.copy(), _room(spending), min(spending.most, items.n_items)
    kept: list[tuple[NDArray[np.int64], Floats, NDArray[np.int32], NDArray[np.int64]]] = []
    is_tight = False
    is_leveled = wanted.order == "levels"
    for level in range(1, wanted.w + 1) if is_leveled else (wanted.w,):
        need = np.maximum(0, level - counts).astype(np.int32)
        need[weights <= 0] = 0
        picked, gains, why = np.empty(most, np.int64), np.empty(most), np.empty(most, np.int32)
        n, left, tight = pick(
            items.bounds, items.ids, weights, shares, spend, left, ranks, need, out, picked, gains,
            why,
        )  # fmt: skip
        most -= n
        is_tight |= tight
        kept.append((picked[:n], gains[:n], why[:n], np.full(n, level if is_leveled else 0)))
        counts += np.bincount(items.take(picked[:n]).ids, minlength=items.n_values)
        if not most:
            break
    item, gain, value, levels = map(np.concatenate, zip(*kept, strict=True))
    stopped = BUDGET if is_tight or (not most and not out.all()) else SATURATED
    return Picks(item, gain, levels, value, EXHAUSTED if out.all() else stopped, counts)


def _room(spending: Spending) -> float:
    """Return the budget, a hair wider for costs that are fractions: their sums round."""
    if spending.spend is None or not (spending.spend % 1).any():
        return float(spending.budget)
    return float(spending.budget) * (1 + 1e-12)
