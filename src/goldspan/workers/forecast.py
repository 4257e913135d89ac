"""The accuracy that a team is expected to reach, and the check of that forecast on known items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from goldspan.crowd import Crowd
from goldspan.errors import InputError, UnknownNameError
from goldspan.money import from_micro
from goldspan.workers.beta import LEVEL, Reliability
from goldspan.workers.difficulty import Difficulty
from goldspan.workers.reliability import find_truth
from goldspan.workers.scores import Kin
from goldspan.workers.selection import kin_of, read_prices

if TYPE_CHECKING:
    from goldspan.aggregation.families import Families

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
    labels: NDArray[np.int64],  # [n_items, n_workers], -1 where a worker gave none
    truth: NDArray[np.int64],  # [n_items]
    weights: NDArray[np.float64],  # [n_workers]
    n_labels: int,
    sizes: NDArray[np.int64],  # [n_sizes], how many of the first workers vote
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Count items that the votes of the first workers get right.

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
# What accuracy votes of the first 1, 2, … workers have: forecast or measured, and at what cost.


class Reach(NamedTuple):
    """What it takes to reach a target; size and cost are None where it is out of reach."""

    size: int | None
    cost: int | None
    reason: str


@dataclass(frozen=True, eq=False)
class Curve:
    """Accuracy of votes of teams of growing size; a subclass says where it is from.

    Attributes:
        sizes: int64 [n_sizes], how many of the first workers vote.
        accuracy: float64 [n_sizes], the mean.
        low: float64 [n_sizes], lower end of the interval.
        high: float64 [n_sizes], its upper end.
        level: Of that interval.
        cost: int64 [n_sizes], millionths of money per item, or workers without prices.
        in_money: Whether cost is money.
    """

    sizes: NDArray[np.int64]
    accuracy: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    level: float
    cost: NDArray[np.int64]
    in_money: bool

    @property
    def label(self) -> str:
        """What it rests on, in a sentence."""
        raise NotImplementedError  # pragma: no cover

    @property
    def model_based(self) -> bool:
        """Whether it follows from a model, and was not measured."""
        raise NotImplementedError  # pragma: no cover

    @property
    def quantity(self) -> str:
        """What `accuracy` is, in a word."""
        return "accuracy"

    def at(self, size: int) -> Self:
        """Return the same curve of one size."""
        place = np.flatnonzero(self.sizes == size)
        if not len(place):
            raise InputError(f"unknown size {size}: choose from {self.sizes.tolist()}")
        return replace(
            self, sizes=self.sizes[place], accuracy=self.accuracy[place], low=self.low[place],
            high=self.high[place], cost=self.cost[place],
        )  # fmt: skip

    def cost_to(self, target: float, *, surely: bool = False) -> Reach:
        """Find the smallest team that reaches an accuracy."""
        if not 0 < target <= 1:
            raise InputError(f"a target is an accuracy between 0 and 1, not {target}")
        reached = np.flatnonzero((self.low if surely else self.accuracy) >= target)
        if len(reached):
            first = int(reached[0])
            return Reach(int(self.sizes[first]), int(self.cost[first]), "")
        best = int(np.argmax(self.low if surely else self.accuracy))
        size = int(self.sizes[best])
        shown = f"{self.accuracy[best]:.3f} ({self.low[best]:.3f} … {self.high[best]:.3f})"
        workers = f"{size} worker{'' if size == 1 else 's'}"
        return Reach(None, None, f"not reachable: the best is {shown} with {workers}")

    def costs(self) -> list[Any]:
        """Return the cost of every size: money as text, else numbers of workers."""
        values = self.cost.tolist()
        return [from_micro(cost) for cost in values] if self.in_money else values

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return {
            "model_based": self.model_based,
            "label": self.label,
            "sizes": self.sizes.tolist(),
            "cost": self.costs(),
            "accuracy": self.accuracy.tolist(),
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "level": self.level,
        }

    def columns(self) -> dict[str, list[str]]:
        """Return what a table shows beside size and accuracy: names and a cell per size."""
        return {"cost": [str(cost) for cost in self.costs()]} if self.in_money else {}

    def __str__(self) -> str:
        """Show a row per size, for the command line."""
        more = self.columns()
        widths = [max(map(len, [name, *cells])) for name, cells in more.items()]
        head = "".join(f"  {name:>{w}}" for name, w in zip(more, widths, strict=True))
        lines = [self.label, f"workers{head}  {self.quantity:>8}  {100 * self.level:g} % interval"]
        for n, size in enumerate(self.sizes.tolist()):
            cells = zip(more.values(), widths, strict=True)
            middle = "".join(f"  {column[n]:>{w}}" for column, w in cells)
            interval = f"{self.low[n]:.3f} … {self.high[n]:.3f}"
            lines.append(f"{size:7}{middle}  {self.accuracy[n]:8.3f}  {interval}")
        return "\n".join(lines)


# --------------------------------------------------------------------------------------------------
# What accuracy a vote of the first 1, 2, … workers will have, and what a target costs.


MOST_SIZES = 40
"""Sizes that are forecast by default."""
MOST_WORKERS = 500
"""Workers whose votes are drawn."""
DRAWS, ITEMS = 200, 200
"""Draws of the workers' chances, and items drawn for each."""
HOW = {
    "independent": "if workers err independently, not a measurement",
    "as on gold": "if items differ in difficulty, not a measurement",
    "typical": "as workers of public crowds share their mistakes, no gold of yours",
}
"""What a forecast says of mistakes that workers share."""


@dataclass(frozen=True, eq=False)
class Forecast(Curve):
    """Accuracy that a model expects of votes if all of a team answer every item.

    The interval is that of the accuracy on very many items.

    Attributes:
        vote: "linear", "log" or "majority".
        mistakes: How workers share their mistakes: "independent", "as on gold", or "typical".
    """

    vote: str
    mistakes: str

    @property
    def label(self) -> str:
        """What it rests on, in a sentence."""
        return f"model-based: a forecast of the {self.vote} vote {HOW[self.mistakes]}"

    @property
    def model_based(self) -> bool:
        """It follows from a model."""
        return True


def forecast_accuracy(
    ranked: Reliability,
    *,
    difficulty: Difficulty | None = None,
    vote: str = "linear",
    sizes: ArrayLike | None = None,
    prices: Mapping[str, Any] | Sequence[Any] | NDArray[Any] | None = None,
    answering: NDArray[np.bool_] | None = None,
    level: float = LEVEL,
    draws: int = DRAWS,
    n_items: int = ITEMS,
    families: Families | None = None,
    random_state: int = 0,
) -> Forecast:
    """Forecast the accuracy of the vote of the first workers of a ranking, for every size.

    Args:
        ranked: Workers in the order in which they are selected: `team.tested`.
        difficulty: Draws of `fit_difficulty`; None lets workers err independently.
        vote: "linear", weights L m - 1 with the posterior means m; "log"; or "majority".
        sizes: WorkerSelection sizes; by default all up to 40 workers, else 40 of them up to 500.
        prices: Money per answer, as for `select_workers`.
        answering: bool [n_patterns, n_workers], who answers an item; a pattern is drawn for every
            item, and items without an answer do not count. By default everybody answers.
        level: Of the interval, between 0 and 1.
        draws: Draws of the workers' chances.
        n_items: Items drawn for each of them.
        families: Workers who err together, as for `select_workers`: with probability rho two of a
            family err, or do not, as one, and the vote heeds it.
        random_state: Seed.

    Raises:
        InputError: There is no worker, a size is none of 1 … n_workers, or the difficulty is of
            other workers or labels.
        UnknownNameError: Unknown vote.

    >>> found = forecast_accuracy(Reliability.from_counts([18, 17, 17], 20, prior=(1, 1)))
    >>> found.sizes.tolist(), found.accuracy.round(2).tolist()
    ([1, 2, 3], [0.86, 0.86, 0.93])
    """
    chosen = read_sizes(sizes, len(ranked))
    if not 0 < level < 1:
        raise InputError(f"a level lies between 0 and 1, not {level}")
    if draws < 1 or n_items < 1:
        raise InputError(f"draws and n_items must be at least 1, not {draws} and {n_items}")
    money = None if prices is None else read_prices(prices, ranked)[: chosen[-1]]
    cost = chosen if money is None else np.cumsum(money)[chosen - 1]
    first = ranked.take(np.arange(chosen[-1]))
    if difficulty is not None:
        check_labels(difficulty, first)
    patterns = None if answering is None else answering[:, : len(first)]
    kin = kin_of(families, first)
    weights, rng = vote_weights(first, vote), np.random.default_rng(random_state)
    found = []
    for draw in range(draws):
        labels = draw_labels(first, difficulty, draw, n_items, rng, kin)
        if patterns is not None:
            labels = np.where(patterns[rng.integers(0, len(patterns), n_items)], labels, -1)
        truth = np.zeros(n_items, np.int64)
        right, n = _counted(labels, truth, weights, first.n_labels, chosen, kin)
        found.append(right / np.maximum(n, 1))
    mean, low, high = _summary(np.array(found), n_items, level)
    mistakes = "independent" if difficulty is None else difficulty.mistakes
    return Forecast(chosen, mean, low, high, level, cost, money is not None, vote, mistakes)


def _counted(
    labels: NDArray[np.int64], truth: NDArray[np.int64], weights: NDArray[np.float64],
    n_labels: int, sizes: NDArray[np.int64], kin: Kin | None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:  # fmt: skip
    """Count as `prefix_accuracy` does; with families what members count depends on the size."""
    if kin is None:
        return prefix_accuracy(labels, truth, weights, n_labels, sizes)
    found = []
    for size in sizes.tolist():
        team = np.arange(size)
        own = weights[team] * kin.take(team).shares()
        found.append(prefix_accuracy(labels[:, team], truth, own, n_labels, np.array([size])))
    return np.concatenate([one[0] for one in found]), np.concatenate([one[1] for one in found])


def read_sizes(sizes: ArrayLike | None, n_workers: int) -> NDArray[np.int64]:
    """Return the team sizes, increasing."""
    most = min(n_workers, MOST_WORKERS)
    if not n_workers:
        raise InputError("no worker whose votes could be forecast: the selection is empty")
    if sizes is None:
        spread = np.geomspace(1, most, MOST_SIZES)
        return np.unique(np.rint(spread if most > MOST_SIZES else np.arange(1, most + 1))).astype(
            np.int64
        )
    found = np.unique(np.atleast_1d(np.asarray(sizes)))
    whole = found.dtype.kind in "iu" and len(found) > 0
    if not whole or found[0] < 1 or found[-1] > most:
        raise InputError(f"sizes must be whole numbers of 1 … {most}, not {sizes!r}")
    return found.astype(np.int64)


def check_labels(difficulty: Difficulty, ranked: Reliability) -> None:
    """Reject a difficulty of other labels."""
    if difficulty.n_labels != ranked.n_labels:
        raise InputError(
            f"the difficulty is of {difficulty.n_labels} labels and the reliability of "
            f"{ranked.n_labels}"
        )


def draw_labels(
    ranked: Reliability,
    difficulty: Difficulty | None,
    draw: int,
    n_items: int,
    rng: np.random.Generator,
    kin: Kin | None = None,
) -> NDArray[np.int64]:
    """Draw the labels that workers give to items whose truth is called 0.

    Every member of a family takes luck and wrong label from the family with probability sqrt(rho).
    """
    # returns int64 [n_items, n_workers]
    n = len(ranked)
    size = (n_items, n if kin is None else n + len(kin.rho))
    if difficulty is None:
        luck, chances = rng.random(size), rng.beta(ranked.a, ranked.b)
        others = _wrong_labels(size, ranked.n_labels, np.inf, rng)
    else:
        chances = difficulty.draw_chances(ranked.worker_ids, draw, n_items, rng)
        at = draw % len(difficulty.spread)
        luck = rng.random(size)
        others = _wrong_labels(size, ranked.n_labels, difficulty.alpha[at], rng)
    if kin is not None:
        alike = rng.random((n_items, n)) < np.sqrt(kin.rho[kin.number])
        source = np.where(alike, n + kin.number, np.arange(n))
        luck = np.take_along_axis(luck, source, axis=1)
        others = np.take_along_axis(others, source, axis=1)
    labels = np.where(luck >= chances, others, 0)
    if difficulty is None:
        return labels
    misled = rng.random((n_items, 1)) < difficulty.misleading[at]
    # Where an item misleads, label 1 takes the place of the truth.
    return np.where(misled & (labels <= 1), 1 - labels, labels)


def _wrong_labels(
    size: tuple[int, int], n_labels: int, alpha: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw labels 1 … n_labels - 1, whose shares differ from item to item if alpha is finite."""
    if n_labels == 2:
        return np.ones(size, np.int64)
    if np.isinf(alpha):
        return rng.integers(1, n_labels, size)
    shares = rng.dirichlet(np.full(n_labels - 1, alpha / (n_labels - 1)), size[0])
    edges = np.cumsum(shares, axis=1)[:, :-1]
    return np.asarray(1 + (rng.random(size)[:, :, None] > edges[:, None, :]).sum(axis=2))


def _summary(
    found: NDArray[np.float64], n_items: int, level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return mean, low and high over the draws, float64 [n_sizes] each.

    A draw's accuracy scatters because its items are few, and because the chances were drawn. Only
    the latter is about very many items: the former is taken out of the interval's width.
    """
    mean, variance = found.mean(axis=0), found.var(axis=0)
    of_items = mean * (1 - mean) / n_items
    of_mean = variance / len(found)
    kept = np.sqrt(np.maximum(variance - of_items, 0) + of_mean) / np.sqrt(variance + 1e-12)
    ends = np.quantile(found, [(1 - level) / 2, (1 + level) / 2], axis=0)
    low, high = mean + np.minimum(kept, 1) * (ends - mean)
    return mean, np.maximum(low, 0), np.minimum(high, 1)


# --------------------------------------------------------------------------------------------------
# A forecast beside what the same votes had on items with gold that nobody was tested on.


@dataclass(frozen=True, eq=False)
class ForecastCheck:
    """A forecast and what came true.

    Attributes:
        forecast: The forecast for items that are answered as these were.
        had: float64 [n_sizes], accuracy of the votes.
        n_items: int64 [n_sizes], items that it was measured on.
        low: float64 [n_sizes], lower end of what the forecast lets expect on so many items.
        high: float64 [n_sizes], its upper end.
    """

    forecast: Forecast
    had: NDArray[np.float64]
    n_items: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def bias(self) -> float:
        """How much too high the forecast is on the average over sizes."""
        return float((self.forecast.accuracy - self.had).mean())

    @property
    def mean_error(self) -> float:
        """Mean size of the difference."""
        return float(np.abs(self.forecast.accuracy - self.had).mean())

    @property
    def coverage(self) -> float:
        """Share of sizes whose accuracy lies within the interval."""
        return float(((self.low <= self.had) & (self.had <= self.high)).mean())

    def __str__(self) -> str:
        """Show a row per size."""
        lines = [self.forecast.label, "workers  forecast  had    items  expected"]
        rows = zip(
            self.forecast.sizes, self.forecast.accuracy, self.had, self.n_items, self.low,
            self.high, strict=True,
        )  # fmt: skip
        for size, mean, had, n, low, high in rows:
            lines.append(f"{size:7}  {mean:8.3f}  {had:.3f}  {n:5}  {low:.3f} … {high:.3f}")
        return "\n".join(lines)


def check_forecast(
    ranked: Reliability,
    crowd: Crowd,
    gold: Any = None,
    *,
    difficulty: Difficulty | None = None,
    vote: str = "linear",
    sizes: ArrayLike | None = None,
    level: float = LEVEL,
    random_state: int = 0,
) -> ForecastCheck:
    r"""Compare a forecast with the votes on held-out items.

    The forecast is made for the answers that there are: a worker who gave none to an item gives
    none in the forecast either.

    Args:
        ranked: Workers in the order in which they are selected, tested on other items.
        crowd: Answers of the same workers to the held-out items: single labels.
        gold: Known labels as for `measure_reliability`; the crowd's own by default.
        difficulty: As for `forecast_accuracy`, learnt from other items.
        vote: As for `forecast_accuracy`.
        sizes: As for `forecast_accuracy`.
        level: Of the interval.
        random_state: Seed.

    Raises:
        InputError: Items are not single labels, have no gold, or a worker is not in the crowd.

    >>> import goldspan
    >>> from goldspan.workers import measure_reliability
    >>> rows = "".join(f"{i},{w},{'y' if i % 5 else 'n'}\n" for i in range(40) for w in "ab")
    >>> crowd = goldspan.read_crowd(f"item,worker,label\n{rows}".encode())
    >>> crowd = crowd.with_gold(np.full(40, crowd.tagset.tags.index("y"), np.int16))
    >>> test, rest = crowd.select_items(np.arange(20)), crowd.select_items(np.arange(20, 40))
    >>> check_forecast(measure_reliability(test), rest).had.tolist()
    [0.8, 0.8]
    """
    truth = find_truth(crowd, gold, None)
    if not truth.crowd.is_classification:
        raise InputError("a forecast is checked on single labels, and these items are tagged")
    if difficulty is not None:
        check_labels(difficulty, ranked)
    labels = answer_table(truth.crowd, ranked)
    known = (truth.gold[0] >= 0) & (labels >= 0).any(axis=1)
    if not known.any():
        raise InputError("these workers answered no item with gold: there is nothing to check")
    labels, codes = labels[known], truth.gold[0][known].astype(np.int64)
    found = forecast_accuracy(
        ranked, difficulty=difficulty, vote=vote, sizes=sizes, answering=labels >= 0, level=level,
        random_state=random_state,
    )  # fmt: skip
    n_labels = max(ranked.n_labels, len(truth.crowd.tagset.tags))
    weights = vote_weights(ranked, vote)
    right, n = prefix_accuracy(labels, codes, weights, n_labels, found.sizes)
    return ForecastCheck(found, right / np.maximum(n, 1), n, *_expected(found, n))


def answer_table(crowd: Crowd, ranked: Reliability) -> NDArray[np.int64]:
    """Return the labels of single-label items, int64 [n_items, n_ranked], -1 for none."""
    places = [crowd.worker_index(name) for name in ranked.worker_ids.to_pylist()]
    column = np.full(crowd.n_workers, -1)
    column[places] = np.arange(len(places))
    answers = crowd.latest
    used = column[answers.worker] >= 0
    found = np.full((crowd.n_items, len(places)), -1, np.int64)
    found[answers.item[used], column[answers.worker[used]]] = answers.codes[used]
    return found


def _expected(
    found: Forecast, n_items: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Widen the interval by the scatter of so many items: both parts as of normal ones."""
    from scipy.special import ndtri

    mean = found.accuracy
    scatter = ndtri((1 + found.level) / 2) ** 2 * mean * (1 - mean) / np.maximum(n_items, 1)
    low = mean - np.sqrt((mean - found.low) ** 2 + scatter)
    high = mean + np.sqrt((found.high - mean) ** 2 + scatter)
    return np.maximum(low, 0), np.minimum(high, 1)
