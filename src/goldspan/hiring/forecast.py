"""What accuracy a vote of the first 1, 2, … workers will have, and what a target costs.

A forecast is no measurement: it says what follows if a model holds. Workers' chances of being right
are drawn from their posteriors, never taken to be the shares in their tests: of the best of many
workers those are too high (.990 promised, .862 had). Labels of items are drawn, the votes of all
prefixes of the ranking counted, and this for many draws of the chances.

Without a difficulty workers err independently. Real ones do not, and the forecast of a large team
is then far too high: learn the difficulty from items with gold, and check the forecast on others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from goldspan.errors import InputError
from goldspan.hiring.beta import LEVEL, Reliability
from goldspan.hiring.curve import Curve
from goldspan.hiring.difficulty import Difficulty
from goldspan.hiring.prefix_votes import prefix_accuracy, vote_weights
from goldspan.hiring.selection import read_prices

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
    random_state: int = 0,
) -> Forecast:
    """Forecast the accuracy of the vote of the first workers of a ranking, for every size.

    Args:
        ranked: Workers in the order in which they are hired: `team.tested`.
        difficulty: Draws of `fit_difficulty`; None lets workers err independently.
        vote: "linear", weights L m - 1 with the posterior means m; "log"; or "majority".
        sizes: Team sizes; by default all up to 40 workers, else 40 of them up to 500.
        prices: Money per answer, as for `select_workers`.
        answering: bool [n_patterns, n_workers], who answers an item; a pattern is drawn for every
            item, and items without an answer do not count. By default everybody answers.
        level: Of the interval, between 0 and 1.
        draws: Draws of the workers' chances.
        n_items: Items drawn for each of them.
        random_state: Seed.

    Raises:
        InputError: There is no worker, a size is none of 1 … n_workers, or the difficulty is of
            other workers or labels.
        UnknownNameError: There is no such vote.

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
    weights, rng = vote_weights(first, vote), np.random.default_rng(random_state)
    found = []
    for draw in range(draws):
        labels = draw_labels(first, difficulty, draw, n_items, rng)
        if patterns is not None:
            labels = np.where(patterns[rng.integers(0, len(patterns), n_items)], labels, -1)
        truth = np.zeros(n_items, np.int64)
        right, n = prefix_accuracy(labels, truth, weights, first.n_labels, chosen)
        found.append(right / np.maximum(n, 1))
    mean, low, high = _summary(np.array(found), n_items, level)
    mistakes = "independent" if difficulty is None else difficulty.mistakes
    return Forecast(chosen, mean, low, high, level, cost, money is not None, vote, mistakes)


def read_sizes(sizes: ArrayLike | None, n_workers: int) -> NDArray[np.int64]:
    """Give the team sizes, increasing.

    Raises:
        InputError: There is no worker, or a size is none of 1 … n_workers.
    """
    most = min(n_workers, MOST_WORKERS)
    if not n_workers:
        raise InputError("there is no worker whose votes could be forecast: the team is empty")
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
    """Refuse a difficulty of other labels.

    Raises:
        InputError: See above.
    """
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
) -> NDArray[np.int64]:
    """Draw the labels that workers give to items whose truth is called 0.

    Returns:
        int64 [n_items, n_workers].
    """
    size = (n_items, len(ranked))
    if difficulty is None:
        wrong = rng.random(size) >= rng.beta(ranked.a, ranked.b)
        return np.where(wrong, _wrong_labels(size, ranked.n_labels, np.inf, rng), 0)
    chances = difficulty.draw_chances(ranked.worker_ids, draw, n_items, rng)
    at = draw % len(difficulty.spread)
    wrong = rng.random(size) >= chances
    labels = np.where(wrong, _wrong_labels(size, ranked.n_labels, difficulty.alpha[at], rng), 0)
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
    """Give mean, low and high over the draws, float64 [n_sizes] each.

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
