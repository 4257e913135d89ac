"""The best team for a budget: the best workers first, or the best for the money.

Members of a family, who err together, count as fewer (`goldspan.workers.scores.team_values`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from goldspan.workers.scores import Kin, team_values

# --------------------------------------------------------------------------------------------------
# The best workers first, and how many of them: Algorithm 1 of Li and Liu (2015).


@dataclass(frozen=True, eq=False)
class Choice:
    """Workers chosen among candidates."""

    chosen: NDArray[np.int64]  # [n_chosen], positions among the candidates, best first
    curve: NDArray[np.float64]  # [n_sizes], F of the best team found with 1, 2, … workers
    # F of the chosen ones by the largest F that any affordable set can have, at least
    ratio: float | None = 1.0


def rank(scores: NDArray[np.float64], most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the positions of the `most` largest scores, decreasing; `rng` decides among equals.

    >>> rank(np.array([1.0, 3.0, 2.0]), 2, np.random.default_rng(0)).tolist()
    [1, 2]
    """
    chance = rng.random(len(scores))
    if most <= 0:
        return np.zeros(0, np.int64)
    among = np.arange(len(scores))
    if most < len(scores):
        # Only those that reach the last place's score need sorting; equals of it stay among them.
        among = np.flatnonzero(scores >= np.partition(scores, len(scores) - most)[-most])
    order = np.lexsort((chance[among], -scores[among]))
    return among[order[:most]]


def best_prefix(scores: NDArray[np.float64], most: int, rng: np.random.Generator) -> Choice:
    """Choose the set of at most `most` workers with the largest F; the smaller of equals.

    >>> choice = best_prefix(np.array([0.1, 4.0, 3.5]), 3, np.random.default_rng(0))
    >>> choice.chosen.tolist(), choice.curve.round(3).tolist()
    ([1, 2], [4.0, 5.303, 4.388])
    """
    # scores float64 [n_candidates], no NaN
    ranked = rank(scores, most, rng)
    curve = team_values(scores[ranked])
    size = int(np.argmax(curve)) + 1 if len(curve) else 0
    return Choice(ranked[:size], curve)


def in_order(
    order: NDArray[np.int64], scores: NDArray[np.float64], kin: Kin | None = None
) -> Choice:
    """Take all of an order, nothing promised."""
    return Choice(order, team_values(scores[order], kin and kin.take(order)), ratio=None)


# --------------------------------------------------------------------------------------------------
# Different prices, and workers who err together: greedy, by score and by score for the money.


PASSES = 30
"""How often the workers who are too expensive for the rest of the money are passed over."""
IDLE = 0.1
"""Who adds less than this share of their score to the members of their family is passed over."""
NO_TEAM = Choice(np.zeros(0, np.int64), np.zeros(0))


def greedy_team(
    scores: NDArray[np.float64],  # [n_candidates], no NaN
    prices: NDArray[np.int64] | None,  # [n_candidates], at least 0; None: 1 each
    limit: int,  # The budget in the unit of the prices
    kin: Kin | None,
    rng: np.random.Generator,  # Decides among equals
) -> Choice:
    """Choose a good affordable set: the best prefix of three greedy orders.

    By score, by score per price, and by score per root of the price: F is s √(B / p) if a budget B
    buys B / p workers of score s and price p. The first order begins with the best worker, so that
    F of the choice is at least 1 / √k of the largest, which k workers have. `ratio` is what holds
    of this choice: its F by a bound on that of all affordable sets. Where all cost alike and nobody
    errs together, the choice is that of Algorithm 1, the best.

    >>> scores, prices = np.array([1.0, 0.9, 0.9]), np.array([4, 2, 2])
    >>> choice = greedy_team(scores, prices, 4, None, np.random.default_rng(0))
    >>> sorted(choice.chosen.tolist()), round(choice.ratio, 2)
    ([1, 2], 1.0)
    """
    costs = np.ones(len(scores), np.int64) if prices is None else prices
    # Whoever adds nothing lowers F, and whoever costs more than all cannot be paid.
    useful = rng.permutation(np.flatnonzero((scores > 0) & (costs <= limit)))
    if not len(useful):
        return NO_TEAM
    gain, cost = scores[useful], costs[useful]
    if kin is None and cost.min() == cost.max():
        most = len(useful) if not cost[0] else min(len(useful), limit // int(cost[0]))
        choice = best_prefix(gain, most, rng)
        return Choice(useful[choice.chosen], choice.curve)
    useful = useful[np.argsort(cost, kind="stable")]  # of equals the cheapest first
    gain, cost, own = scores[useful], costs[useful], kin and kin.take(useful)
    best, top = NO_TEAM, -np.inf
    for power in (0, 0.5, 1):
        price = np.maximum(cost, 1) ** power
        added = gain if own is None else discounted(gain, own, gain / price)
        order = np.argsort(-added / price, kind="stable")
        order = affordable(order[added[order] >= IDLE * gain[order]], cost, limit)
        curve = team_values(gain[order], own and own.take(order))
        if curve.max() > top:
            top = float(curve.max())
            best = Choice(useful[order[: int(np.argmax(curve)) + 1]], curve)
    # Sums in another order may differ in their last bits.
    ratio = min(1.0, top * (1 + 1e-12) / _largest(gain, cost, limit))
    return replace(best, ratio=ratio)


def _largest(gain: NDArray[np.float64], cost: NDArray[np.int64], limit: int) -> float:
    """Bound F of all affordable sets from above.

    The scores of a team of size x are at most those of the x best, and those that the budget buys
    if workers can be bought in part. Families only lower both x and the sum.
    """
    rate = gain / np.maximum(cost, 1e-9)
    order = np.argsort(-rate, kind="stable")
    spent, sums = np.cumsum(cost[order]), np.cumsum(gain[order])
    n = int(np.searchsorted(spent, limit, side="right"))
    bought = float(sums[n - 1]) if n else 0.0
    if n < len(order):
        bought += float(rate[order[n]]) * (limit - (int(spent[n - 1]) if n else 0))
    best = np.cumsum(np.sort(gain)[::-1])
    size = np.arange(1, len(best) + 1)
    n = int(np.searchsorted(best, bought))  # so many of the best are worth less than is bought
    found = float((best[:n] / np.sqrt(size[:n])).max(initial=0.0))
    if n == len(best):
        return found
    part = n + (bought - (best[n - 1] if n else 0.0)) / (best[n] - (best[n - 1] if n else 0.0))
    return max(found, bought / float(np.sqrt(part)))


def affordable(
    order: NDArray[np.int64], prices: NDArray[np.int64], limit: int
) -> NDArray[np.int64]:
    """Take workers in order as long as money is left, passing over who is too expensive for it.

    >>> affordable(np.array([0, 1, 2, 3]), np.array([3, 4, 2, 1]), 6).tolist()
    [0, 2, 3]
    """
    taken, left = [order[:0]], limit
    for _ in range(PASSES):
        spent = np.cumsum(prices[order])
        n = int(np.searchsorted(spent, left, side="right"))
        taken.append(order[:n])
        left -= int(spent[n - 1]) if n else 0
        order = order[n:]
        order = order[prices[order] <= left]
        if not len(order):
            break
    return np.concatenate(taken)


def discounted(
    scores: NDArray[np.float64], kin: Kin, worth: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return scores times what workers add to the number of the better ones of their families.

    Better by `worth`, by default the score.

    >>> discounted(np.array([2.0, 3.0, 1.0]), Kin(np.array([0, 0, 1]), np.array([1.0, 0.0])))
    array([0., 3., 1.])
    """
    order = np.argsort(-(scores if worth is None else worth), kind="stable")
    found = np.empty(len(scores))
    found[order] = scores[order] * kin.take(order).marginals(scores[order])[1]
    return found


def rank_with_kin(
    scores: NDArray[np.float64], most: int, kin: Kin, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Rank workers by what they add to the better members of their families.

    Who adds next to nothing is left out.
    """
    # scores float64 [n_candidates]
    mixed = rng.permutation(len(scores))
    added = discounted(scores[mixed], kin.take(mixed))
    order = np.argsort(-added, kind="stable")
    order = order[added[order] >= IDLE * scores[mixed][order]]
    return np.asarray(mixed[order[:most]])
