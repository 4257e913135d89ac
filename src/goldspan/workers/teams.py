"""How much a team's weighted vote is worth (Li and Liu 2015), and the best team for a budget."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import UnknownNameError
from goldspan.workers.beta import LEVEL, Reliability

# --------------------------------------------------------------------------------------------------
# How much a worker adds to a weighted vote: (L w - 1)², as a test lets us know it.


SCORES = ("posterior", "unbiased", "plugin")
LEAST_QUESTIONS = {"posterior": 0.0, "unbiased": 2.0, "plugin": 0.0}
"""Judged answers that a score needs; all need more than none."""


def worker_scores(reliability: Reliability, score: str = "posterior") -> NDArray[np.float64]:
    """Estimate (L w - 1)² of every worker."""
    # returns float64 [n_workers]
    if score not in SCORES:
        raise UnknownNameError("score", score, SCORES)
    total, labels = reliability.total, reliability.n_labels
    known = (total > 0) & (total >= LEAST_QUESTIONS[score])
    gap = labels * estimate(reliability, score) - 1
    found = gap**2
    if score == "unbiased":
        share = reliability.share
        rest = np.where(known, total - 1, 1)
        found = found - labels**2 * share * (1 - share) / rest
    return np.where(known, found, np.nan)


def estimate(reliability: Reliability, score: str) -> NDArray[np.float64]:
    """Return the chance of being right that a score goes by, float64 [n_workers]."""
    # For "posterior" (1 + C) / (L + n): below chance just where C / n is
    if score != "posterior":
        return reliability.share
    return np.asarray((1 + reliability.right) / (reliability.n_labels + reliability.total))


def team_values(
    scores: NDArray[np.float64], grouping: Grouping | None = None
) -> NDArray[np.float64]:
    """Return F of every prefix, k^(-1/2) times the sum of the first k scores, float64 [n].

    With families it is Σ u s / √(Σ u), where u = 1 / (1 + (n - 1) rho) for each of n members of a
    family in the prefix: they count as n u independent workers with their mean score.
    """
    if grouping is None:
        return np.asarray(np.cumsum(scores) / np.sqrt(np.arange(1, len(scores) + 1)))
    gain, size = grouping.marginals(scores)
    return np.asarray(np.cumsum(gain) / np.sqrt(np.cumsum(size)))


class Grouping(NamedTuple):
    """Families among some workers."""

    number: NDArray[np.int64]  # [n_workers], family of every worker
    rho: NDArray[np.float64]  # [n_families], correlation of their members' mistakes

    def take(self, which: NDArray[Any]) -> Grouping:
        """Return the families among some of the workers."""
        return Grouping(self.number[which], self.rho)

    def shares(self) -> NDArray[np.float64]:
        """Return u = 1 / (1 + (n - 1) rho) of every worker of this team, float64 [n_workers]."""
        n = np.bincount(self.number, minlength=len(self.rho))[self.number]
        return np.asarray(1 / (1 + (n - 1) * self.rho[self.number]))

    def marginals(
        self, scores: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what every worker adds to those of their family before them."""
        # scores float64 [n_workers]
        order = np.argsort(self.number, kind="stable")
        own = self.number[order]
        first = np.ones(len(own), np.bool_)
        first[1:] = own[1:] != own[:-1]
        begin = np.maximum.accumulate(np.where(first, np.arange(len(own)), 0))
        n = np.arange(len(own)) - begin + 1
        sums = np.cumsum(scores[order])
        sums -= (sums - scores[order])[begin]
        share = 1 / (1 + (n - 1) * self.rho[own])
        gain, size = np.empty(len(own)), np.empty(len(own))
        for found, total in ((gain, share * sums), (size, share * n)):
            found[order] = total - np.where(first, 0.0, np.roll(total, 1))
        return gain, size


# --------------------------------------------------------------------------------------------------
# How sure F of a team is: an interval for F(S) = |S|^(-1/2) Σ_{i in S} (L w_i - 1)².


DRAWS = 2000
MANY = 1000
"""Workers beyond which a sum over them is taken as normal."""


def score_interval(
    tested: Reliability,  # The test results of the team
    share: NDArray[np.float64] | None = None,  # [n_workers], what an answer counts beside others
    draws: int = DRAWS,
) -> tuple[float, float]:
    """Return a credible interval of F for a team, by draws of the workers' chances."""
    if not len(tested):
        return 0.0, 0.0
    counts = np.ones(len(tested)) if share is None else share
    values = _drawn_sums(tested, counts, draws) / np.sqrt(counts.sum())
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    return low, high


def _drawn_sums(
    tested: Reliability, counts: NDArray[np.float64], draws: int
) -> NDArray[np.float64]:
    """Draw Σ (L w - 1)² from the posterior, float64 [draws]."""
    # Workers with equal results have equal distributions
    rng = np.random.default_rng(0)

    def draw(some: Reliability) -> NDArray[np.float64]:
        chance = rng.beta(some.a, some.b, (draws, len(some)))
        return np.asarray((some.n_labels * chance - 1) ** 2)

    if len(tested) <= MANY:
        return draw(tested) @ counts
    few, which, times = tested.distinct()
    whole = np.bincount(which, counts, len(times))
    squares = np.bincount(which, counts**2, len(times))
    mean = variance = 0.0
    for start in range(0, len(times), MANY):
        some = np.arange(start, min(start + MANY, len(times)))
        drawn = draw(few.take(some))
        mean += float(drawn.mean(axis=0) @ whole[some])
        variance += float(drawn.var(axis=0) @ squares[some])
    return np.asarray(mean + np.sqrt(variance) * rng.standard_normal(draws))


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
    """Return the positions of the `most` largest scores, decreasing; `rng` decides among equals."""
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
    """Choose the set of at most `most` workers with the largest F; the smaller of equals."""
    # scores float64 [n_candidates], no NaN
    ranked = rank(scores, most, rng)
    curve = team_values(scores[ranked])
    size = int(np.argmax(curve)) + 1 if len(curve) else 0
    return Choice(ranked[:size], curve)


def in_order(
    order: NDArray[np.int64], scores: NDArray[np.float64], grouping: Grouping | None = None
) -> Choice:
    """Take all of an order, nothing promised."""
    return Choice(order, team_values(scores[order], grouping and grouping.take(order)), ratio=None)


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
    grouping: Grouping | None,
    rng: np.random.Generator,  # Decides among equals
) -> Choice:
    """Choose a good affordable set: the best prefix of three greedy orders.

    By score, by score per price, and by score per root of the price: F is s √(B / p) if a budget B
    buys B / p workers of score s and price p. The first order begins with the best worker, so that
    F of the choice is at least 1 / √k of the largest, which k workers have. `ratio` is what holds
    of this choice: its F by a bound on that of all affordable sets. Where all cost alike and nobody
    errs together, the choice is that of Algorithm 1, the best.
    """
    costs = np.ones(len(scores), np.int64) if prices is None else prices
    # Whoever adds nothing lowers F, and whoever costs more than all cannot be paid.
    useful = rng.permutation(np.flatnonzero((scores > 0) & (costs <= limit)))
    if not len(useful):
        return NO_TEAM
    gain, cost = scores[useful], costs[useful]
    if grouping is None and cost.min() == cost.max():
        most = len(useful) if not cost[0] else min(len(useful), limit // int(cost[0]))
        choice = best_prefix(gain, most, rng)
        return Choice(useful[choice.chosen], choice.curve)
    useful = useful[np.argsort(cost, kind="stable")]  # of equals the cheapest first
    gain, cost, own = scores[useful], costs[useful], grouping and grouping.take(useful)
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
    """Bound F of all affordable sets from above."""
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
    """Take workers in order as long as money is left, passing over who is too expensive for it."""
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
    scores: NDArray[np.float64], grouping: Grouping, worth: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return scores times what workers add to the number of the better ones of their families.

    Better by `worth`, by default the score.
    """
    order = np.argsort(-(scores if worth is None else worth), kind="stable")
    found = np.empty(len(scores))
    found[order] = scores[order] * grouping.take(order).marginals(scores[order])[1]
    return found


def rank_with_families(
    scores: NDArray[np.float64], most: int, grouping: Grouping, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Rank workers by what they add to the better members of their families."""
    # Who adds next to nothing is left out
    # scores float64 [n_candidates]
    mixed = rng.permutation(len(scores))
    added = discounted(scores[mixed], grouping.take(mixed))
    order = np.argsort(-added, kind="stable")
    order = order[added[order] >= IDLE * scores[mixed][order]]
    return np.asarray(mixed[order[:most]])
