"""A forecast beside what the same votes had on items with gold that nobody was tested on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.hiring.beta import LEVEL, Reliability
from goldspan.hiring.difficulty import Difficulty
from goldspan.hiring.forecast import Forecast, check_labels, forecast_accuracy
from goldspan.hiring.prefix_votes import prefix_accuracy, vote_weights
from goldspan.hiring.truth import find_truth


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
        ranked: Workers in the order in which they are hired, tested on other items.
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
    >>> from goldspan.hiring import measure_reliability
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
    """Give the labels of single-label items, int64 [n_items, n_ranked], -1 for none.

    Raises:
        InputError: A worker is not in the crowd.
    """
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
