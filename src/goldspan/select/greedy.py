"""Greedy coverage on arrays (paper 003, section 3; MATH section 9).

f(S) = sum over values v of weight_v * min(w, count_v(labelled) + count_v(S)), monotone submodular.

The paper takes the item with the most new attribute–value pairs, "until we have covered all the
attribute–value pairs at least w times", and leaves the order open. `order="levels"` finishes one
cover of everything before it begins the second, so that every prefix is good; `order="capped"`
takes the gain of f itself. Items without any gain are never picked.

What is guaranteed: with unit costs, f of n picks is at least 1 - 1/e of the best for w = 1, and for
any w with `order="capped"` (Nemhauser, Wolsey and Fisher 1978); level-wise this holds within each
level, not for f (0.60 was seen at w = 2). With unequal costs the better of greedy by gain per cost
and the best single item reaches (1 - 1/e) / 2 at w = 1 or capped; greedy by ratio alone is not
bounded at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan.select.incidence import Incidence
from goldspan.select.kernels.lazy import pick_weighted
from goldspan.select.kernels.levels import pick_unweighted

Floats = NDArray[np.float64]

ORDERS = ("levels", "capped")
BUDGET, SATURATED, EXHAUSTED = "budget", "saturated", "exhausted"
"""Why picking stops: nothing more fits, nothing more is gained, nothing is left."""


@dataclass(frozen=True, eq=False)
class Wanted:
    """What is to be covered, and what has been.

    Attributes:
        w: How often every value is to be covered.
        order: "levels" or "capped".
        counts: int64 [n_values], how often labelled items have every value; None for never.
        weights: float64 [n_values], not negative; None: all alike.
    """

    w: int = 1
    order: str = "levels"
    counts: NDArray[np.int64] | None = None
    weights: Floats | None = None

    def value(self, counts: NDArray[np.int64]) -> float:
        """Give f, from how often every value is covered."""
        covered = np.minimum(self.w, counts)
        return float(covered.sum() if self.weights is None else covered @ self.weights)


@dataclass(frozen=True, eq=False)
class Purse:
    """What may be spent.

    Attributes:
        most: Number of items.
        spend: float64 [n_items], what every item takes from `budget`; None: nothing.
        budget: In the unit of `spend`.
        shares: float64 [n_items], positive: gains are divided by it; None: they are not.
    """

    most: int
    spend: Floats | None = None
    budget: float = np.inf
    shares: Floats | None = None


class Picks(NamedTuple):
    """What was picked, in order.

    Attributes:
        item: int64 [n].
        gain: float64 [n], weights of what was still needed at the pick's level.
        level: int64 [n], counted from 1; 0 with `order="capped"`.
        value: int32 [n], the foremost value that was still needed.
        stopped: "budget", "saturated" or "exhausted".
        counts: int64 [n_values], how often every value is covered in the end.
    """

    item: NDArray[np.int64]
    gain: Floats
    level: NDArray[np.int64]
    value: NDArray[np.int32]
    stopped: str
    counts: NDArray[np.int64]


def cover(
    items: Incidence,
    wanted: Wanted,
    purse: Purse,
    ranks: NDArray[np.int64],
    is_out: NDArray[np.bool_] | None = None,
) -> Picks:
    """Pick items greedily.

    Args:
        items: Which item has which values.
        wanted: What is to be covered.
        purse: What may be spent.
        ranks: int64 [n_items], items by rank: of equals the first is picked.
        is_out: bool [n_items], items that cannot be picked.

    >>> one = Incidence.of_sets([{0, 1}, {1, 2, 3}, {0}])
    >>> cover(one, Wanted(), Purse(most=3), np.arange(3)).item.tolist()
    [1, 0]
    """
    out = np.zeros(items.n_items, np.bool_) if is_out is None else is_out.copy()
    start = np.zeros(items.n_values, np.int64) if wanted.counts is None else wanted.counts
    found = _levels(items, wanted, purse, ranks, out.copy(), start)
    if purse.spend is None or purse.shares is None or not len(found.item):
        return found
    best, single = _best_single(items, wanted, purse, ranks, out, start)
    if best < 0 or single <= wanted.value(found.counts) - wanted.value(start):
        return found
    return _begun_with(best, single, items, wanted, purse, ranks, out, start)


def _levels(
    items: Incidence, wanted: Wanted, purse: Purse, ranks: NDArray[np.int64],
    out: NDArray[np.bool_], start: NDArray[np.int64],
) -> Picks:  # fmt: skip
    """Run through the levels until the purse or the pool is empty; `out` is changed."""
    counts, left, most = start.copy(), _room(purse), purse.most
    kept: list[tuple[NDArray[np.int64], Floats, NDArray[np.int32], int]] = []
    is_tight = False
    is_leveled = wanted.order == "levels"
    for level in range(1, wanted.w + 1) if is_leveled else (wanted.w,):
        need = np.maximum(0, level - counts).astype(np.int32)
        if wanted.weights is not None:
            need[wanted.weights <= 0] = 0
        picked, gains, why, left, tight = _one_pass(
            items, wanted.weights, purse, ranks, need, out, most, left
        )
        most -= len(picked)
        is_tight |= tight
        kept.append((picked, gains, why, level if is_leveled else 0))
        counts += np.bincount(items.take(picked).ids, minlength=items.n_values)
        if not most:
            break
    levels = np.concatenate([np.full(len(part[0]), part[3], np.int64) for part in kept])
    stopped = BUDGET if is_tight or (not most and not out.all()) else SATURATED
    return Picks(
        np.concatenate([part[0] for part in kept]),
        np.concatenate([part[1] for part in kept]),
        levels,
        np.concatenate([part[2] for part in kept]),
        EXHAUSTED if out.all() else stopped,
        counts,
    )


def _one_pass(
    items: Incidence, weights: Floats | None, purse: Purse, ranks: NDArray[np.int64],
    need: NDArray[np.int32], out: NDArray[np.bool_], most: int, left: float,
) -> tuple[NDArray[np.int64], Floats, NDArray[np.int32], float, bool]:  # fmt: skip
    most = min(most, items.n_items)
    picked, gains, why = np.empty(most, np.int64), np.empty(most), np.empty(most, np.int32)
    if weights is None and purse.spend is None and purse.shares is None:
        n = pick_unweighted(
            items.bounds, items.ids, *items.by_value, ranks, need, out, picked, gains, why
        )
        return picked[:n], gains[:n], why[:n], left, False
    even = np.ones(items.n_items)
    n, left, is_tight = pick_weighted(
        items.bounds, items.ids,
        np.ones(items.n_values) if weights is None else weights,
        even if purse.shares is None else purse.shares,
        np.zeros(items.n_items) if purse.spend is None else purse.spend,
        left, ranks, need, out, picked, gains, why,
    )  # fmt: skip
    return picked[:n], gains[:n], why[:n], left, is_tight


def _room(purse: Purse) -> float:
    """Give the budget, a hair wider for costs that are fractions: their sums round."""
    if purse.spend is None or not (purse.spend % 1).any():
        return float(purse.budget)
    return float(purse.budget) * (1 + 1e-12)


def _best_single(
    items: Incidence, wanted: Wanted, purse: Purse, ranks: NDArray[np.int64],
    out: NDArray[np.bool_], start: NDArray[np.int64],
) -> tuple[int, float]:  # fmt: skip
    """Find the item that fits and gains most of f alone; -1 if none does."""
    weights = np.ones(items.n_values) if wanted.weights is None else wanted.weights
    gains = items.sums(np.where(start < wanted.w, weights, 0.0))
    spend = np.zeros(items.n_items) if purse.spend is None else purse.spend
    gains[out | (spend > _room(purse))] = 0.0
    best = int(ranks[np.argmax(gains[ranks])])
    return (best, float(gains[best])) if gains[best] > 0 else (-1, 0.0)


def _begun_with(
    first: int, gain: float, items: Incidence, wanted: Wanted, purse: Purse,
    ranks: NDArray[np.int64], out: NDArray[np.bool_], start: NDArray[np.int64],
) -> Picks:  # fmt: skip
    """Pick an item and go on greedily from there."""
    row = items.row(first)
    counts = start.copy()
    counts[row] += 1
    out[first] = True
    spend = np.zeros(items.n_items) if purse.spend is None else purse.spend
    left = Purse(purse.most - 1, purse.spend, purse.budget - spend[first], purse.shares)
    rest = _levels(items, wanted, left, ranks, out, counts)
    weights = np.ones(items.n_values) if wanted.weights is None else wanted.weights
    value = row[np.argmax(np.where(start[row] < wanted.w, weights[row], -1.0))]
    return Picks(
        np.concatenate([[first], rest.item]),
        np.concatenate([[gain], rest.gain]),
        np.concatenate([[int(wanted.order == "levels")], rest.level]),
        np.concatenate([[value], rest.value]).astype(np.int32),
        rest.stopped,
        rest.counts,
    )
