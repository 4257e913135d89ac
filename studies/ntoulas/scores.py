"""The measures of figure 3 of Ntoulas et al., in per cent, and their means over repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from studies.ntoulas.split import Labels


@dataclass(frozen=True)
class Scores:
    """How good a classifier is, in per cent; what has a denominator of 0 is 0.

    Attributes:
        precision: Of what it calls positive, the share that is.
        recall: Of what is positive, the share that it finds; the true-positive rate.
        f: Harmonic mean of both.
        fpr: Of what is negative, the share that it calls positive: the false-positive rate.
    """

    precision: float
    recall: float
    f: float
    fpr: float

    @classmethod
    def of(cls, truth: Labels, found: Labels) -> Scores:
        """Score labels, bool [n_items] each.

        >>> Scores.of(np.array([True, True, False, False]), np.array([True, False, True, False])).f
        50.0
        """
        hits = int((truth & found).sum())
        called, there = int(found.sum()), int(truth.sum())
        return cls(
            _percent(hits, called),
            _percent(hits, there),
            _percent(2 * hits, called + there),
            _percent(called - hits, len(truth) - there),
        )


def mean_and_error(values: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean and its standard error; of a single value there is no error.

    >>> mean_and_error([1.0, 3.0])
    (2.0, 1.0)
    """
    n = len(values)
    error = float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else None
    return float(np.mean(values)), error


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0
