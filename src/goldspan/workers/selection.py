"""Which few workers to choose under a budget: Algorithm 1 of Li and Liu (2015), with prices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.errors import InputError, UnknownNameError
from goldspan.money import from_micro, to_micro
from goldspan.workers.beta import LEVEL, Reliability

# --------------------------------------------------------------------------------------------------
# How much a worker adds to a weighted vote: (L w - 1)², as a test lets us know it.


SCORES = ("posterior", "unbiased", "plugin")
LEAST_QUESTIONS = {"posterior": 0.0, "unbiased": 2.0, "plugin": 0.0}
"""Judged answers that a score needs; all need more than none."""


def worker_scores(reliability: Reliability, score: str = "posterior") -> NDArray[np.float64]:
    """Estimate (L w - 1)² of every worker.

    Args:
        reliability: The test results.
        score: "posterior", "unbiased" or "plugin".

    Returns:
        float64 [n_workers]; NaN where there are too few judged answers: none, or fewer than two
        for "unbiased".

    Raises:
        UnknownNameError: Unknown score.

    >>> tested = Reliability.from_counts([18, 2, 0], [20, 2, 0], prior=(2, 2))
    >>> [worker_scores(tested, name).round(3).tolist() for name in SCORES]
    [[0.529, 0.25, nan], [0.621, 1.0, nan], [0.64, 1.0, nan]]
    """
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
    """Return the chance of being right that a score goes by, float64 [n_workers].

    For "posterior" (1 + C) / (L + n): below chance just where C / n is.
    """
    if score != "posterior":
        return reliability.share
    return np.asarray((1 + reliability.right) / (reliability.n_labels + reliability.total))


def score_ranges(reliability: Reliability) -> NDArray[np.float64]:
    """Return the widths R_i of the ranges that unbiased scores lie in, float64 [n_workers].

    R = (L - 1)² - 1 + (2n - 2 + L)² / (4n (n - 1)): the largest value is that of ŵ = 1, the least
    that of ŵ = (2n - 2 + L) / (2 L n). NaN for n < 2.
    """
    n, labels = np.where(reliability.total >= 2, reliability.total, np.nan), reliability.n_labels
    return np.asarray((labels - 1) ** 2 - 1 + (2 * n - 2 + labels) ** 2 / (4 * n * (n - 1)))


def team_values(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return F of every prefix, k^(-1/2) times the sum of the first k scores, float64 [n]."""
    return np.asarray(np.cumsum(scores) / np.sqrt(np.arange(1, len(scores) + 1)))


def error_bound(value: float, n_labels: int) -> float:
    """Bound the share of wrong labels of a weighted vote: exp(-F² / (2 (L - 1)⁴) + ln(L - 1)).

    It holds when F is the true one and every worker counts L w - 1; it is far from tight.

    >>> round(error_bound(2.0, 2), 3)
    0.135
    """
    if not value > 0:
        return 1.0
    exponent = -(value**2) / (2 * (n_labels - 1) ** 4) + np.log(n_labels - 1)
    return min(1.0, float(np.exp(exponent)))


# --------------------------------------------------------------------------------------------------
# The best workers first, and how many of them: Algorithm 1 of Li and Liu (2015).


@dataclass(frozen=True, eq=False)
class Choice:
    """Workers chosen among candidates.

    Attributes:
        chosen: int64 [n_chosen], positions among the candidates, best first.
        curve: float64 [n_sizes], F of the best team found with 1, 2, … workers.
        ratio: F of the chosen ones by the largest F that any affordable set can have, at least:
            1 where the choice is proved to be best, None where nothing is promised.
    """

    chosen: NDArray[np.int64]
    curve: NDArray[np.float64]
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

    Args:
        scores: float64 [n_candidates], no NaN.
        most: The budget B.
        rng: Decides the order of equal scores.

    >>> choice = best_prefix(np.array([0.1, 4.0, 3.5]), 3, np.random.default_rng(0))
    >>> choice.chosen.tolist(), choice.curve.round(3).tolist()
    ([1, 2], [4.0, 5.303, 4.388])
    """
    ranked = rank(scores, most, rng)
    curve = team_values(scores[ranked])
    size = int(np.argmax(curve)) + 1 if len(curve) else 0
    return Choice(ranked[:size], curve)


def in_order(order: NDArray[np.int64], scores: NDArray[np.float64]) -> Choice:
    """Take all of an order, nothing promised."""
    return Choice(order, team_values(scores[order]), ratio=None)


# --------------------------------------------------------------------------------------------------
# How often the weighted vote of the first 1, 2, … workers of a ranking is right.


VOTES = ("linear", "log", "majority")


def vote_weights(tested: Reliability, vote: str) -> NDArray[np.float64]:
    """Return what answers count, float64 [n_workers], by the posterior means m.

    "linear": L m - 1; "log": ln((L - 1) m / (1 - m)); "majority": 1.
    """
    if vote not in VOTES:
        raise UnknownNameError("vote", vote, VOTES)
    mean, labels = tested.mean, tested.n_labels
    if vote == "majority":
        return np.ones(len(mean))
    if vote == "linear":
        return np.asarray(labels * mean - 1)
    return np.asarray(np.log((labels - 1) * mean / (1 - mean)))


def prefix_accuracy(
    labels: NDArray[np.int64],
    truth: NDArray[np.int64],
    weights: NDArray[np.float64],
    n_labels: int,
    sizes: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Count items that the votes of the first workers get right.

    Args:
        labels: int64 [n_items, n_workers], -1 where a worker gave none.
        truth: int64 [n_items].
        weights: float64 [n_workers].
        n_labels: Number of labels.
        sizes: int64 [n_sizes], how many of the first workers vote.

    Returns:
        The items that are right, float64 [n_sizes] (of n equal labels each counts 1 / n), and the
        items that anybody answered, int64 [n_sizes].

    >>> labels = np.array([[0, 1, 1], [1, 1, -1]])
    >>> sizes = np.array([1, 3])
    >>> right, n = prefix_accuracy(labels, np.array([0, 1]), np.array([2.0, 1.5, 1.0]), 2, sizes)
    >>> right.tolist(), n.tolist()
    ([2.0, 1.0], [2, 2])
    """
    last = sizes - 1
    best = np.full((len(labels), len(sizes)), -np.inf)
    of_truth, n_best = np.zeros_like(best), np.zeros_like(best)
    for label in range(n_labels):
        sums = np.cumsum(np.where(labels == label, weights, 0.0), axis=1)[:, last]
        # Sums of equal weights in another order may differ in their last bits.
        above, equal = sums > best + 1e-9, np.abs(sums - best) <= 1e-9
        n_best = np.where(above, 1, n_best + equal)
        best = np.where(above, sums, best)
        of_truth = np.where((truth == label)[:, None], sums, of_truth)
    answered = np.cumsum(labels >= 0, axis=1)[:, last] > 0
    right = answered & (of_truth >= best - 1e-9)
    return (right / n_best).sum(axis=0), answered.sum(axis=0)


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
# The workers that were chosen, what they promise, and how sure that is.


SHOWN = 20
"""Workers that are printed by name."""


@dataclass(frozen=True, eq=False)
class WorkerSelection:
    """Workers who shall answer every item.

    Attributes:
        tested: The test results of the chosen workers, in order of rank.
        index: int64 [n_chosen], their places in the pool.
        scores: float64 [n_chosen], estimates of (L w - 1)²; see `goldspan.workers.selection`.
        curve: float64 [n_sizes], F of the best team found with 1, 2, … workers: the first ones of
            the ranking, or with prices the best that the budget pays. NaN where a worker drawn at
            random has no score.
        budget: Workers per item, or millionths of money per item.
        price: What an item costs, in millionths; None without prices.
        ratio: F of this team by the largest F that any affordable set can have, at least: 1 where
            it is proved to be the best, None where nothing is promised.
        score: Name of the score.
        below: What happens to workers below chance: "drop" or "negative".
        strategy: "selected", "top" or "random".
        why_nobody: Why the team is empty; "" where it is not.
        notes: What else should be known, in sentences.
    """

    tested: Reliability
    index: NDArray[np.int64]
    scores: NDArray[np.float64]
    curve: NDArray[np.float64]
    budget: int
    price: int | None
    ratio: float | None
    score: str
    below: str
    strategy: str
    why_nobody: str = ""
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Count the chosen workers."""
        return len(self.index)

    @property
    def worker_ids(self) -> pa.Array:
        """Arrow string array [n_chosen], in order of rank."""
        return self.tested.worker_ids

    @property
    def value(self) -> float:
        """F of the team by its scores; 0 for an empty one."""
        return float(self.scores.sum() / np.sqrt(len(self))) if len(self) else 0.0

    @property
    def expected(self) -> float:
        """F as the workers' posterior expects it, Σ E (L w - 1)² / √k; 0 for an empty team."""
        if not len(self):
            return 0.0
        tested, labels = self.tested, self.tested.n_labels
        spread = tested.mean * (1 - tested.mean) / (tested.a + tested.b + 1)
        squares = (labels * tested.mean - 1) ** 2 + labels**2 * spread
        return float(squares.sum() / np.sqrt(len(self)))

    @property
    def weights(self) -> NDArray[np.float64]:
        """What the answers count in the vote, L w - 1 by the score's w, float64 [n_chosen]."""
        return np.asarray(self.tested.n_labels * estimate(self.tested, self.score) - 1)

    @property
    def guarantee(self) -> str:
        """What is proved about this choice, in a sentence."""
        if not len(self):
            return "nobody was chosen"
        if self.ratio is None:
            return f"none: the team is {'the best by score' if self.strategy == 'top' else 'drawn'}"
        if self.ratio >= 1:
            return (
                f"no set of candidates within the budget has a larger F by the {self.score} score"
            )
        return (
            f"F is at least {100 * self.ratio:.2f} % of the largest that any set of candidates "
            f"within the budget has by the {self.score} score"
        )

    @cached_property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """Intervals of the true F at 95 %: "hoeffding", "bootstrap" and "posterior".

        The first two are for teams that were fixed before the test; of a team chosen by its results
        they hold too rarely (`goldspan.workers.selection`). They are NaN where a worker has fewer
        than two judged answers. All are (0, 0) for an empty team.
        """
        return {name: score_interval(self.tested, kind=name) for name in INTERVALS}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        rows = zip(
            self.worker_ids.to_pylist(), self.scores.tolist(), self.weights.tolist(),
            self.tested.mean.tolist(), self.tested.right.tolist(), self.tested.total.tolist(),
            strict=True,
        )  # fmt: skip
        names = ("worker", "score", "weight", "mean", "right", "total")
        return {
            "workers": [dict(zip(names, row, strict=True)) for row in rows],
            "value": self.value,
            "expected": self.expected,
            "intervals": {name: list(pair) for name, pair in self.intervals.items()},
            "error_bound": error_bound(self.value, self.tested.n_labels),
            "curve": self.curve.tolist(),
            "budget": self.budget if self.price is None else from_micro(self.budget),
            "price": None if self.price is None else from_micro(self.price),
            "guarantee": self.guarantee,
            "score": self.score,
            "below": self.below,
            "strategy": self.strategy,
            "why_nobody": self.why_nobody,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        """Return who was chosen, for the command line."""
        if not len(self):
            return "\n".join([f"Nobody was chosen: {self.why_nobody}.", *self.notes])
        ids = self.worker_ids[:SHOWN].to_pylist()
        more = f" and {len(self) - SHOWN} more" if len(self) > SHOWN else ""
        cost = "" if self.price is None else f", {from_micro(self.price)} per item"
        # Who was chosen by results has lucky ones among them: see `goldspan.workers.selection`.
        low, high = self.intervals["posterior"]
        how = f"{self.strategy}, {self.score} score{cost}"
        lines = [
            f"{len(self)} worker{'' if len(self) == 1 else 's'} ({how}): {', '.join(ids)}{more}",
            (
                f"F = {self.value:.3f} by the score, {self.expected:.3f} by the posterior "
                f"(95 %: {low:.3f} … {high:.3f})"
            ),
            f"Guarantee: {self.guarantee}.",
        ]
        return "\n".join([*lines, *self.notes])


# --------------------------------------------------------------------------------------------------
# Worker selection: the workers whose weighted vote promises most (Li & Liu 2015, Algorithm 1).


BELOW = ("drop", "negative")
STRATEGIES = ("selected", "top", "random")
EVIDENCE = 0.9
"""A posterior team needs one worker who is better than chance with this probability,"""
TEAM_EVIDENCE = 0.999
"""or a vote that tells the truth from chance with this one: many short tests tell it together."""


def select_workers(
    reliability: Reliability,
    *,
    budget: Any,
    score: str = "posterior",
    prices: Mapping[str, Any] | Sequence[Any] | NDArray[Any] | None = None,
    below: str = "drop",
    strategy: str = "selected",
    random_state: int = 0,
) -> WorkerSelection:
    """Choose workers whose answers every item shall get.

    Args:
        reliability: What tests say about the workers.
        budget: Workers per item; with `prices` the money per item, in the unit of the prices.
        score: "posterior", "unbiased" (the paper's) or "plugin"; see `goldspan.workers.selection`.
        prices: Money per answer: one amount, by worker id, or one per worker; 0 is free. By
            default all cost alike.
        below: Workers below chance by their score: "drop" them, or keep them as "negative" (the
            paper): a weighted vote then counts their answers against what they say.
        strategy: "selected" (Algorithm 1), "top" (as many of the best as the budget allows), or
            "random" (as many as it allows, drawn from the whole pool).
        random_state: Seed of the draw, and of the order of workers with equal scores.

    Returns:
        The team, in order of rank; empty where nobody is informative, and it says why.

    Raises:
        InputError: The budget or a price is no number, or negative; prices do not fit the workers.
        UnknownNameError: Unknown score, rule or strategy.

    >>> tested = Reliability.from_counts([19, 18, 17, 11, 10], 20)
    >>> team = select_workers(tested, budget=4)
    >>> team.worker_ids.to_pylist()
    ['0', '1', '2']
    """
    for what, name, allowed in (("rule", below, BELOW), ("strategy", strategy, STRATEGIES)):
        if name not in allowed:
            raise UnknownNameError(what, name, allowed)
    costs = None if prices is None else read_prices(prices, reliability)
    limit = read_size(budget) if costs is None else to_micro(budget, "the budget")
    scores = worker_scores(reliability, score)
    drops = below == "drop" and strategy != "random"
    under = _below_chance(reliability, score) if drops else np.zeros(len(scores), np.bool_)
    kept = np.isfinite(scores) & ~under
    candidates = np.arange(len(scores)) if strategy == "random" else np.flatnonzero(kept)
    payable = None if costs is None else costs[candidates]
    rng = np.random.default_rng(random_state)
    choice = choose(strategy, scores[candidates], payable, limit, rng)
    index = candidates[choice.chosen]
    why, team = (
        _why_nobody(reliability, scores, kept, index, limit, payable),
        reliability.take(index),
    )
    if not why and strategy == "selected":
        why = _why_uninformative(reliability.take(kept), scores[index], team, score, below)
    index = index[:0] if why else index
    return WorkerSelection(
        tested=reliability.take(index),
        index=index,
        scores=scores[index],
        curve=choice.curve,
        budget=limit,
        price=None if costs is None else int(costs[index].sum()),
        ratio=choice.ratio,
        score=score,
        below=below,
        strategy=strategy,
        why_nobody=why,
        notes=_notes(scores, under, len(candidates), None if costs is not None else limit, score),
    )


def choose(
    strategy: str,
    scores: NDArray[np.float64],
    prices: NDArray[np.int64] | None,
    limit: int,
    rng: np.random.Generator,
) -> Choice:
    """Choose among candidates by a strategy.

    Args:
        strategy: "selected", "top" or "random".
        scores: float64 [n_candidates].
        prices: int64 [n_candidates], or None where all cost one of the budget.
        limit: The budget.
        rng: For the draw and for equals.
    """
    n = len(scores)
    if strategy == "selected":
        if prices is None:
            return best_prefix(scores, min(limit, n), rng)
        return best_within(scores, prices, limit, rng)
    most = n if prices is not None else min(limit, n)
    order = rng.permutation(n)[:most] if strategy == "random" else rank(scores, most, rng)
    return in_order(order if prices is None else affordable(order, prices, limit), scores)


def read_size(budget: Any) -> int:
    """Take a number of workers."""
    whole = isinstance(budget, int | np.integer) and not isinstance(budget, bool)
    if not whole or budget < 0:
        raise InputError(
            f"the budget is a whole number of workers per item, 0 or more, not {budget!r}; "
            "money needs prices=…"
        )
    return int(budget)


def read_prices(
    prices: Mapping[str, Any] | Sequence[Any] | NDArray[Any], reliability: Reliability
) -> NDArray[np.int64]:
    """Return what an answer of every worker costs, in millionths, int64 [n_workers]."""
    if isinstance(prices, Mapping):
        ids = reliability.worker_ids.to_pylist()
        missing = [name for name in ids if name not in prices]
        if missing:
            more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
            raise InputError(f"no price for worker {', '.join(missing[:5])}{more}")
        listed = [prices[name] for name in ids]
    elif isinstance(prices, str | int | float | Decimal):
        listed = [prices] * len(reliability)
    else:
        listed = prices.tolist() if isinstance(prices, np.ndarray) else list(prices)
    if len(listed) != len(reliability):
        raise InputError(f"{len(listed)} prices for {len(reliability)} workers")
    # A million workers have few different prices, and reading one is slow.
    known = {price: to_micro(price, "a price") for price in set(listed)}
    found = [known[price] for price in listed]
    if sum(found) > np.iinfo(np.int64).max:
        raise InputError("all prices together are more money than can be counted")
    return np.array(found, np.int64)


def _below_chance(reliability: Reliability, score: str) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        return np.asarray(estimate(reliability, score) < reliability.chance)


def _why_nobody(
    reliability: Reliability,
    scores: NDArray[np.float64],
    kept: NDArray[np.bool_],
    index: NDArray[np.int64],
    limit: int,
    payable: NDArray[np.int64] | None,
) -> str:
    """Return why nobody could be chosen at all, "" where somebody was."""
    if len(index):
        return ""
    if not len(reliability):
        return "the pool is empty"
    if not np.isfinite(scores).any():
        return "no worker has enough judged answers to be scored"
    if not kept.any():
        return "every worker who can be scored is below chance"
    if payable is not None and limit < payable.min():
        cheapest = from_micro(int(payable.min()))
        return f"the budget is {from_micro(limit)} and the cheapest candidate costs {cheapest}"
    return "the budget is 0" if not limit else "nobody's score is above 0: all may be guessing"


def _why_uninformative(
    candidates: Reliability, scores: NDArray[np.float64], team: Reliability, score: str, below: str
) -> str:
    """Return why the best selection is not worth its price, "" where it is."""
    if scores.sum() <= 0:
        return "nobody's score is above 0: all may be guessing"
    if score != "posterior":
        return ""
    above = candidates.p_above(candidates.chance)
    sure = float(np.maximum(above, 1 - above).max() if below == "negative" else above.max())
    if sure >= EVIDENCE or _informs(team, below) >= TEAM_EVIDENCE:
        return ""
    return (
        f"the surest worker is better than guessing with probability {sure:.2f} only, less than "
        f"{EVIDENCE}"
    )


def _informs(team: Reliability, below: str) -> float:
    """Return the probability that the gap Σ v (L w - 1) is above 0, by its first two moments."""
    from scipy.special import ndtr

    weight = team.n_labels * estimate(team, "posterior") - 1
    if below == "drop":
        weight = np.maximum(weight, 0)
    spread = team.n_labels * np.sqrt((weight**2 * _variance(team)).sum())
    gap = (weight * (team.n_labels * team.mean - 1)).sum()
    return float(ndtr(gap / spread)) if spread > 0 else 0.0


def _variance(team: Reliability) -> NDArray[np.float64]:
    """Return the variance of every worker's posterior."""
    return np.asarray(team.mean * (1 - team.mean) / (team.a + team.b + 1))


def _notes(
    scores: NDArray[np.float64],
    under: NDArray[np.bool_],
    n_candidates: int,
    size: int | None,
    score: str,
) -> tuple[str, ...]:
    """Return who was no candidate, and whether the budget was more than enough."""
    found = []
    if unknown := int(np.isnan(scores).sum()):
        needed = "two judged answers" if LEAST_QUESTIONS[score] else "any judged answer"
        found.append(f"{unknown} of {len(scores)} workers cannot be scored: not {needed}.")
    if dropped := int((under & np.isfinite(scores)).sum()):
        found.append(
            f"Left out, for they were right less often than guessers: {dropped} of {len(scores)}."
        )
    if size is not None and size > n_candidates:
        found.append(f"The budget of {size} covers all {n_candidates} candidates.")
    return tuple(found)


# --------------------------------------------------------------------------------------------------
# How sure F of a team is: three intervals for F(S) = |S|^(-1/2) Σ_{i in S} (L w_i - 1)².


INTERVALS = ("hoeffding", "bootstrap", "posterior")
DRAWS = 2000
MANY = 1000
"""Workers beyond which a sum over them is taken as normal."""

Draws = NDArray[np.float64]


def score_interval(
    tested: Reliability,
    *,
    kind: str = "bootstrap",
    level: float = LEVEL,
    draws: int = DRAWS,
    random_state: int = 0,
) -> tuple[float, float]:
    """Return an interval of F for a team.

    Args:
        tested: The test results of the team.
        kind: "hoeffding", "bootstrap" or "posterior".
        level: How often it should hold, between 0 and 1.
        draws: Of the bootstrap and the posterior.
        random_state: Seed of them.

    Returns:
        Low and high; never below 0, where F cannot be. NaN where the kind needs two judged
        answers of everybody and somebody has fewer; (0, 0) for no team.

    Raises:
        InputError: The level does not lie between 0 and 1.
        UnknownNameError: Unknown interval.

    >>> team = Reliability.from_counts([18, 17, 15], 20)
    >>> [round(end, 2) for end in score_interval(team, kind="hoeffding")]
    [0.0, 2.18]
    """
    if kind not in INTERVALS:
        raise UnknownNameError("interval", kind, INTERVALS)
    if not 0 < level < 1:
        raise InputError(f"a level lies between 0 and 1, not {level}")
    if not len(tested):
        return 0.0, 0.0
    if kind != "posterior" and (tested.total < 2).any():
        return float("nan"), float("nan")
    rng = np.random.default_rng(random_state)
    if kind == "posterior":
        values = _drawn_values(tested, draws, rng)
        low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2]).tolist()
        return float(low), float(high)
    value = float(worker_scores(tested, "unbiased").sum() / np.sqrt(len(tested)))
    if kind == "hoeffding":
        half = hoeffding_width(tested, level)
    else:
        half = float(np.quantile(np.abs(_drawn_errors(tested, draws, rng)), level))
    return max(0.0, value - half), max(0.0, value + half)


def hoeffding_width(tested: Reliability, level: float = LEVEL) -> float:
    """Return half the width of Hoeffding's interval: √(Σ R_i² ln(2/δ) / (2k)), δ = 1 - level."""
    squares = float((score_ranges(tested) ** 2).sum())
    return float(np.sqrt(squares * np.log(2 / (1 - level)) / (2 * len(tested))))


def _drawn_values(tested: Reliability, draws: int, rng: np.random.Generator) -> Draws:
    """Draw F from the posterior, float64 [draws]."""

    def draw(some: Reliability) -> NDArray[np.float64]:
        chance = rng.beta(some.a, some.b, (draws, len(some)))
        return np.asarray((some.n_labels * chance - 1) ** 2)

    return np.asarray(_sums(tested, draw, draws, rng) / np.sqrt(len(tested)))


def _drawn_errors(tested: Reliability, draws: int, rng: np.random.Generator) -> Draws:
    """Draw what F̂ of a test like this one misses F by, float64 [draws].

    A worker with all answers right would be drawn all right again, without any error: his chance
    is taken as (C + 1) / (n + 2).
    """

    def draw(some: Reliability) -> NDArray[np.float64]:
        labels, n = some.n_labels, np.rint(some.total)
        chance = (some.right + 1) / (some.total + 2)
        share = rng.binomial(n.astype(np.int64), chance, (draws, len(some))) / n
        drawn = (labels * share - 1) ** 2 - labels**2 * share * (1 - share) / (n - 1)
        return np.asarray(drawn - (labels * chance - 1) ** 2)

    return np.asarray(_sums(tested, draw, draws, rng) / np.sqrt(len(tested)))


def _sums(
    tested: Reliability,
    draw: Callable[[Reliability], NDArray[np.float64]],
    draws: int,
    rng: np.random.Generator,
) -> Draws:
    """Add up what is drawn for every worker, float64 [draws].

    Workers with equal results have equal distributions: the sum over many of them is normal, and
    its mean and variance come from one worker's draws.
    """
    if len(tested) <= MANY:
        return np.asarray(draw(tested).sum(axis=1))
    few, _, times = tested.distinct()
    mean = variance = 0.0
    for start in range(0, len(times), MANY):
        some = np.arange(start, min(start + MANY, len(times)))
        drawn, weight = draw(few.take(some)), times[some]
        mean += float(drawn.mean(axis=0) @ weight)
        variance += float(drawn.var(axis=0) @ weight)
    return np.asarray(mean + np.sqrt(variance) * rng.standard_normal(draws))
