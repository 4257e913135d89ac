"""The best team for the money where workers have different prices.

Maximise |S|^(-1/2) Σ_{i in S} G_i subject to Σ_{i in S} p_i ≤ B. For a fixed size k this is a
knapsack problem with exactly k things, so that sorting does not solve it.

* Small pools are solved exactly: for every k the teams of k workers that no other team of k
  workers beats in both price and score (the Pareto front), one worker after the other.
* Large pools: for a price λ of money take the k workers with the largest G_i - λ p_i, for many λ,
  and keep the best affordable team. No set of k workers within the budget has more than
  min over λ of (the sum of the k largest (G_i - λ p_i) + λ B) / √k (Lagrange), which says how much
  the choice can fall short.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from goldspan.hiring.ranking import Choice, best_prefix

MOST_STATES = 400_000
"""Teams on all fronts together, beyond which a pool is large."""
MOST_STEPS = 60_000
"""Workers times sizes, beyond which a pool is large."""
GRID = 48
"""Prices λ that are tried for a large pool, twice: everywhere, then around the best."""
PASSES = 30
"""How often the workers who are too expensive for the rest of the money are passed over."""
NO_TEAM = Choice(np.zeros(0, np.int64), np.zeros(0))


def best_within(
    scores: NDArray[np.float64], prices: NDArray[np.int64], limit: int, rng: np.random.Generator
) -> Choice:
    """Choose the affordable set with the largest F.

    Args:
        scores: float64 [n_candidates], no NaN.
        prices: int64 [n_candidates], at least 0.
        limit: The budget in the unit of the prices.
        rng: Decides among equals.

    Returns:
        The choice; its curve has the best F found for every size, and its ratio says how near the
        best possible one it is.

    >>> scores, prices = np.array([1.0, 0.9, 0.9]), np.array([4, 2, 2])
    >>> sorted(best_within(scores, prices, 4, np.random.default_rng(0)).chosen.tolist())
    [1, 2]
    """
    # Whoever adds nothing lowers F, and whoever costs more than all cannot be paid.
    useful = rng.permutation(np.flatnonzero((scores > 0) & (prices <= limit)))
    if not len(useful):
        return NO_TEAM
    gain, cost = scores[useful], prices[useful]
    cheapest = np.cumsum(np.sort(cost))
    most = int(np.searchsorted(cheapest, limit, side="right"))
    if most == len(useful) or cost.min() == cost.max():
        choice = best_prefix(gain, most, rng)
    else:
        choice = exact_choice(gain, cost, limit, most) or relaxed_choice(gain, cost, limit, most)
    return Choice(useful[choice.chosen], choice.curve, choice.ratio)


@dataclass
class Fronts:
    """The teams that are worth a look, by their size, and the log of how they were made.

    Attributes:
        cost: One array int64 per size k = 0 … most, increasing.
        gain: The sums of their scores, increasing as well.
        state: Their places in the log.
        worker: The log: the worker added last.
        parent: The log: the team he was added to.
        n_states: Length of the log.
    """

    cost: list[NDArray[np.int64]]
    gain: list[NDArray[np.float64]]
    state: list[NDArray[np.int64]]
    worker: list[NDArray[np.int64]] = field(default_factory=list)
    parent: list[NDArray[np.int64]] = field(default_factory=list)
    n_states: int = 1

    @classmethod
    def empty(cls, most: int) -> Fronts:
        """Begin with the team of nobody, state 0."""
        cost = [np.zeros(int(k == 0), np.int64) for k in range(most + 1)]
        gain = [np.zeros(int(k == 0)) for k in range(most + 1)]
        state = [np.zeros(int(k == 0), np.int64) for k in range(most + 1)]
        return cls(cost, gain, state, [np.array([-1])], [np.array([-1])])

    def add(self, size: int, worker: int, gain: float, cost: int, limit: int) -> None:
        """Extend the teams of size - 1 by a worker, and keep what nothing beats."""
        fits = self.cost[size - 1] <= limit - cost
        n_new, parents = int(fits.sum()), self.state[size - 1][fits]
        if not n_new:
            return
        costs = np.concatenate([self.cost[size], self.cost[size - 1][fits] + cost])
        gains = np.concatenate([self.gain[size], self.gain[size - 1][fits] + gain])
        source = np.concatenate([self.state[size], self.n_states + np.arange(n_new)])
        order = np.lexsort((-gains, costs))
        ranked = gains[order]
        before = np.concatenate([[-np.inf], np.maximum.accumulate(ranked)[:-1]])
        kept = order[ranked > before]
        self.cost[size], self.gain[size], self.state[size] = costs[kept], gains[kept], source[kept]
        self.worker.append(np.full(n_new, worker))
        self.parent.append(parents)
        self.n_states += n_new

    def members(self, state: int) -> NDArray[np.int64]:
        """Follow the log from a team back to nobody."""
        worker, parent = np.concatenate(self.worker), np.concatenate(self.parent)
        found = []
        while state:
            found.append(int(worker[state]))
            state = int(parent[state])
        return np.array(found[::-1], np.int64)


def exact_choice(
    scores: NDArray[np.float64], prices: NDArray[np.int64], limit: int, most: int
) -> Choice | None:
    """Find the best affordable team of at most `most` workers; None where the pool is too large."""
    if len(scores) * most > MOST_STEPS:
        return None
    fronts = Fronts.empty(most)
    order = np.argsort(-scores, kind="stable")
    for done, worker in enumerate(order.tolist()):
        for size in range(min(done + 1, most), 0, -1):
            fronts.add(size, worker, float(scores[worker]), int(prices[worker]), limit)
        if fronts.n_states > MOST_STATES:
            return None
    curve = np.array([fronts.gain[k][-1] / np.sqrt(k) for k in range(1, most + 1)])
    size = int(np.argmax(curve)) + 1
    return Choice(_best_first(fronts.members(int(fronts.state[size][-1])), scores), curve)


def relaxed_choice(
    scores: NDArray[np.float64], prices: NDArray[np.int64], limit: int, most: int
) -> Choice:
    """Find a good affordable team of at most `most` workers, and bound what it falls short by."""
    search = _Search(scores, prices, limit, most)
    rates = scores[prices > 0] / prices[prices > 0]
    # Beyond the largest score per price, nobody who costs anything is worth hiring.
    grid = [0.0, *np.geomspace(rates.min() / 4, rates.max(), GRID - 1).tolist()]
    for rate in grid:
        search.look(rate)
    near = grid.index(search.best_rate)
    low, high = grid[max(near - 1, 0)], grid[min(near + 1, GRID - 1)]
    for rate in np.linspace(low, high, GRID + 2)[1:-1].tolist():
        search.look(rate)
    ratio = min(1.0, search.best / float(search.bound.max()))
    return Choice(_best_first(search.chosen, scores), search.curve, ratio)


class _Search:
    """The best teams found so far, by size, and the least upper bounds."""

    def __init__(
        self, scores: NDArray[np.float64], prices: NDArray[np.int64], limit: int, most: int
    ) -> None:
        self.scores, self.prices, self.limit, self.most = scores, prices, limit, most
        self.curve, self.bound = np.zeros(most), np.full(most, np.inf)
        self.best, self.best_rate, self.chosen = -np.inf, 0.0, np.zeros(0, np.int64)

    def look(self, rate: float) -> None:
        """Try a price of money, the score that a unit of it must bring."""
        worth = self.scores - rate * self.prices
        among = np.arange(len(worth))
        if self.most < len(worth):
            among = np.argpartition(-worth, self.most - 1)[: self.most]
        order = among[np.argsort(-worth[among], kind="stable")]
        sizes = np.sqrt(np.arange(1, self.most + 1))
        limits = (np.cumsum(worth[order[: self.most]]) + rate * self.limit) / sizes
        self.bound = np.minimum(self.bound, limits)
        order = affordable(order, self.prices, self.limit)
        found = np.cumsum(self.scores[order]) / sizes[: len(order)]
        self.curve[: len(order)] = np.maximum(self.curve[: len(order)], found)
        size = int(np.argmax(found))
        if found[size] > self.best:
            self.best, self.best_rate = float(found[size]), rate
            self.chosen = order[: size + 1]


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


def _best_first(members: NDArray[np.int64], scores: NDArray[np.float64]) -> NDArray[np.int64]:
    return members[np.argsort(-scores[members], kind="stable")]
