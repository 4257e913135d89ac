"""The best team for a budget: the best workers first, or the best for the money.

Members of a family, who err together, count as fewer (`goldspan.workers.scores.team_values`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations

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
# The best team for the money where workers have different prices.


MOST_STATES = 400_000
"""Teams on all fronts together, beyond which a pool is large."""
MOST_STEPS = 60_000
"""Workers times sizes, beyond which a pool is large."""
GRID = 48
"""Prices λ that are tried for a large pool, twice: everywhere, then around the best."""
PASSES = 30
"""How often the workers who are too expensive for the rest of the money are passed over."""
TIE = 1e-12
"""Share of F that is no difference."""
NO_TEAM = Choice(np.zeros(0, np.int64), np.zeros(0))


def best_within(
    scores: NDArray[np.float64], prices: NDArray[np.int64], limit: int, rng: np.random.Generator
) -> Choice:
    """Choose the affordable set with the largest F.

    >>> scores, prices = np.array([1.0, 0.9, 0.9]), np.array([4, 2, 2])
    >>> sorted(best_within(scores, prices, 4, np.random.default_rng(0)).chosen.tolist())
    [1, 2]
    """
    # scores float64 [n_candidates], no NaN; prices int64 [n_candidates], at least 0
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
    """The teams that are worth a look, by their size, and the log of how they were made."""

    cost: list[NDArray[np.int64]]  # One array int64 per size k = 0 … most, increasing
    gain: list[NDArray[np.float64]]  # The sums of their scores, increasing as well
    state: list[NDArray[np.int64]]  # Their places in the log
    worker: list[NDArray[np.int64]] = field(default_factory=list)  # The log: the worker added last
    parent: list[NDArray[np.int64]] = field(default_factory=list)  # The log
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


def all_fronts(
    scores: NDArray[np.float64], prices: NDArray[np.int64], limit: int, most: int
) -> Fronts | None:
    """Find the teams that nothing beats, of all sizes; None where the pool is too large."""
    if len(scores) * most > MOST_STEPS:
        return None
    fronts = Fronts.empty(most)
    order = np.argsort(-scores, kind="stable")
    for done, worker in enumerate(order.tolist()):
        for size in range(min(done + 1, most), 0, -1):
            fronts.add(size, worker, float(scores[worker]), int(prices[worker]), limit)
        if fronts.n_states > MOST_STATES:
            return None
    return fronts


def exact_choice(
    scores: NDArray[np.float64], prices: NDArray[np.int64], limit: int, most: int
) -> Choice | None:
    """Find the best affordable team of at most `most` workers; None where the pool is too large."""
    fronts = all_fronts(scores, prices, limit, most)
    if fronts is None:
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
    # Beyond the largest score per price, nobody who costs anything is worth selecting.
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


# --------------------------------------------------------------------------------------------------
# The best team where some workers err together.


IDLE = 0.1
"""Who adds less than this share of his score to the members of his family is passed over."""
MOST_SUBSETS = 8
"""Members of a family of whom all subsets are tried; of more, the best and the best for money."""
MOST_MEMBERS = 100
"""Members of a family of whom the best 1, 2, … are tried."""
MOST_MIXTURES = 2_000
"""Ways to take members of all families, none worse than another in everything, that are tried."""
MOST_CELLS = 4_000_000
"""Ways times sizes that are looked at."""


def best_with_kin(
    scores: NDArray[np.float64],  # [n_candidates], no NaN
    prices: NDArray[np.int64] | None,  # [n_candidates], at least 0; None: 1 each
    limit: int,  # The budget in the unit of the prices
    kin: Kin,
    rng: np.random.Generator,  # Decides among equals
) -> Choice:
    """Choose the affordable set with the largest F, where members of families count as fewer.

    Members of the families are tried in all ways, and the best of the others added to each. Of
    pools too large for that the best prefix of an order is taken, and nothing is promised.

    >>> twins = Kin(np.array([0, 0, 1]), np.array([1.0, 0.0]))
    >>> scores = np.array([4.0, 4.0, 3.0])
    >>> sorted(best_with_kin(scores, None, 2, twins, np.random.default_rng(0)).chosen.tolist())
    [0, 2]
    """
    costs = np.ones(len(scores), np.int64) if prices is None else prices
    useful = rng.permutation(np.flatnonzero((scores > 0) & (costs <= limit)))
    if not len(useful):
        return NO_TEAM
    gain, cost, own = scores[useful], costs[useful], kin.take(useful)
    choice = _tried(gain, cost, limit, own, is_money=prices is not None)
    if choice is None:
        choice = _by_order(gain, cost, limit, own)
    return Choice(useful[choice.chosen], choice.curve, choice.ratio)


@dataclass(frozen=True, eq=False)
class _Ways:
    """Ways to take members of families: what they cost, add to Σ u s and Σ u, and who they are."""

    cost: NDArray[np.int64]
    gain: NDArray[np.float64]
    size: NDArray[np.float64]
    members: list[tuple[int, ...]]

    def joined(self, other: _Ways, limit: int) -> _Ways:
        """Return all pairs of ways that can be paid, but for those that others beat in all."""
        cost = np.add.outer(self.cost, other.cost).ravel()
        gain = np.add.outer(self.gain, other.gain).ravel()
        size = np.add.outer(self.size, other.size).ravel()
        order = np.lexsort((size, cost, -gain))
        kept: list[int] = []
        for one in order[cost[order] <= limit].tolist():
            if not (kept and ((cost[kept] <= cost[one]) & (size[kept] <= size[one])).any()):
                kept.append(one)
                if len(kept) > MOST_MIXTURES:
                    break
        pairs = [divmod(one, len(other.members)) for one in kept]
        members = [self.members[a] + other.members[b] for a, b in pairs]
        return _Ways(cost[kept], gain[kept], size[kept], members)


def _tried(
    gain: NDArray[np.float64], cost: NDArray[np.int64], limit: int, kin: Kin, *, is_money: bool
) -> Choice | None:
    """Try all ways to take members of families; None where there are too many."""
    sizes = np.bincount(kin.number, minlength=len(kin.rho))
    alone = np.flatnonzero((sizes == 1)[kin.number] | (kin.rho == 0)[kin.number])
    alone = alone[np.argsort(-gain[alone], kind="stable")]
    ways = _Ways(np.zeros(1, np.int64), np.zeros(1), np.zeros(1), [()])
    for one in np.flatnonzero((sizes > 1) & (kin.rho > 0)).tolist():
        members = np.flatnonzero(kin.number == one)
        if len(members) > (MOST_SUBSETS if is_money else MOST_MEMBERS):
            return None
        own = _ways_of(members, gain, cost, float(kin.rho[one]), is_money=is_money)
        ways = ways.joined(own, limit)
        if len(ways.members) > MOST_MIXTURES:
            return None
    if is_money:
        return _beside_money(ways, alone, gain, cost, limit)
    return _beside_size(ways, alone, gain, limit)


def _beside_size(
    ways: _Ways, alone: NDArray[np.int64], gain: NDArray[np.float64], limit: int
) -> Choice | None:
    """Add the best of those who err alone, best first; all workers cost 1."""
    most = min(limit, len(alone))
    if len(ways.members) * (most + 1) > MOST_CELLS:
        return None
    sums = np.concatenate([[0.0], np.cumsum(gain[alone])])[: most + 1]
    fits = ways.cost[:, None] + np.arange(most + 1) <= limit
    return _best_of(ways, np.where(fits, sums, -np.inf), gain, lambda _, m: alone[:m])


def _beside_money(
    ways: _Ways, alone: NDArray[np.int64], gain: NDArray[np.float64], cost: NDArray[np.int64],
    limit: int,
) -> Choice | None:  # fmt: skip
    """Add the best of those who err alone for the rest of the money."""
    cheapest = np.cumsum(np.sort(cost[alone]))
    most = int(np.searchsorted(cheapest, limit, side="right"))
    fronts = all_fronts(gain[alone], cost[alone], limit, most)
    if fronts is None:
        return None
    found = fronts  # for the closure below
    rest = np.full((len(ways.members), most + 1), -np.inf)
    place = np.zeros(rest.shape, np.int64)
    for size in range(most + 1):
        place[:, size] = np.searchsorted(found.cost[size], limit - ways.cost, side="right") - 1
        there = place[:, size] >= 0
        rest[there, size] = found.gain[size][place[there, size]]
    return _best_of(
        ways, rest, gain, lambda way, m: alone[found.members(int(found.state[m][place[way, m]]))]
    )


def _ways_of(
    members: NDArray[np.int64], gain: NDArray[np.float64], cost: NDArray[np.int64], rho: float,
    *, is_money: bool,
) -> _Ways:  # fmt: skip
    """List ways to take some of a family: where all cost alike, the best ones."""
    ranked = members[np.argsort(-gain[members], kind="stable")].tolist()
    sets: list[tuple[int, ...]] = [tuple(ranked[:n]) for n in range(len(ranked) + 1)]
    if is_money:
        sets = [one for n in range(len(ranked) + 1) for one in combinations(ranked, n)]
    n = np.array([len(one) for one in sets])
    share = 1 / (1 + np.maximum(n - 1, 0) * rho)
    sums = np.array([gain[list(one)].sum() for one in sets])
    costs = np.array([cost[list(one)].sum() for one in sets], np.int64)
    return _Ways(costs, share * sums, share * n, sets)


_Others = Callable[[int, int], NDArray[np.int64]]
"""Returns the others of a way, so many of them."""


def _best_of(
    ways: _Ways, rest: NDArray[np.float64], gain: NDArray[np.float64], others: _Others
) -> Choice:
    """Take the way and the number of others with the largest F, of equals the fewest workers."""
    # rest float64 [n_ways, n_sizes]; gain float64 [n_candidates], the scores
    n_others = np.arange(rest.shape[1])
    size = ways.size[:, None] + n_others
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.where(size > 0, (ways.gain[:, None] + rest) / np.sqrt(size), -np.inf)
    count = np.array([len(one) for one in ways.members])[:, None] + n_others
    curve = np.full(int(count.max()) + 1, -np.inf)
    np.maximum.at(curve, count, value)
    curve = curve[1 : int(np.flatnonzero(np.isfinite(curve)).max()) + 1]
    # Sums in another order may differ in their last bits: of equals, the fewest.
    least = int(np.argmax(curve >= curve.max() * (1 - TIE))) + 1
    curve = np.where(np.isfinite(curve), curve, np.nan)
    way, m = np.unravel_index(np.argmax(np.where(count == least, value, -np.inf)), value.shape)
    chosen = np.concatenate([np.array(ways.members[way], np.int64), others(int(way), int(m))])
    return Choice(_best_first(chosen, gain), curve)


def _by_order(gain: NDArray[np.float64], cost: NDArray[np.int64], limit: int, kin: Kin) -> Choice:
    """Take the best prefix of the affordable workers by what they add, or add for their price."""
    best = NO_TEAM
    added = discounted(gain, kin)
    for worth in (added, added / np.maximum(cost, 1)):
        order = np.argsort(-worth, kind="stable")
        order = affordable(order[added[order] >= IDLE * gain[order]], cost, limit)
        curve = team_values(gain[order], kin.take(order))
        if len(curve) and curve.max() > best.curve.max(initial=-np.inf):
            best = Choice(order[: int(np.argmax(curve)) + 1], curve, None)
    return best


def discounted(scores: NDArray[np.float64], kin: Kin) -> NDArray[np.float64]:
    """Return scores times what workers add to the number of the better ones of their families.

    >>> discounted(np.array([2.0, 3.0, 1.0]), Kin(np.array([0, 0, 1]), np.array([1.0, 0.0])))
    array([0., 3., 1.])
    """
    order = np.argsort(-scores, kind="stable")
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
