"""A quality flag, its thresholds, and the context in which flags are looked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.workers.reliability import Judged, Truth, judge_answers

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class QualityFlag:
    """Something in a worker's answers that good work seldom shows.

    Attributes:
        worker: Id of the worker.
        kind: Name of the flag in `goldspan.workers.quality_flags.FLAGS`.
        strength: How marked it is, 0 to 1; every kind says what of.
        p_value: How probable it is that any worker without it would show so much: times the
            number of workers (or pairs) that were tested (Bonferroni), at most 1.
        evidence: A sentence.
        numbers: What the sentence is made of.
    """

    worker: str
    kind: str
    strength: float
    p_value: float
    evidence: str
    numbers: Mapping[str, float | str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON; the worker is left out."""
        facts = {"kind": self.kind, "strength": self.strength, "p_value": self.p_value}
        return {**facts, "evidence": self.evidence, **self.numbers}

    def __str__(self) -> str:
        """Return kind and evidence."""
        return f"{self.kind}: {self.evidence}"


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """From where on something is flagged."""

    alpha: float = 0.05  # Chance that a crowd without it shows a flag of one kind at all
    least: int = 20  # Fewest answers of a worker that are tested
    constant: float = 0.95  # Share of equal answers, at least
    departs: float = 0.25  # Departs from them less than this share of how often the others do
    information: float = 0.2  # Labels tell less than this share of what the median worker's tell
    copies: float = 2.0  # Equal wrong answers, as a multiple of those expected
    fast: float = 1 / 3  # Median time, as a share of the median worker's
    drift: float = 0.1  # Difference of shares right before and after a change, at least

    def __post_init__(self) -> None:
        for name in ("alpha", "constant", "departs", "information", "fast", "drift"):
            if not 0 < getattr(self, name) < 1:
                raise InputError(f"{name} lies between 0 and 1, not {getattr(self, name)}")
        if self.least < 2 or self.copies < 1:
            raise InputError("least is at least 2 answers, and copies at least 1 times")


@dataclass(frozen=True, eq=False)
class FlagContext:
    """What flags are looked for in."""

    truth: Truth  # The crowd, its gold, and a result for where there is no gold
    limits: Thresholds  # From where on something is flagged
    # Answers of models to the same items that count for nothing else, or None
    probes: Crowd | None = None

    @property
    def crowd(self) -> Crowd:
        """The crowd."""
        return self.truth.crowd

    @cached_property
    def judged(self) -> Judged:
        """Every answer's labels by gold, else by the result."""
        measure = "accuracy" if self.crowd.is_classification else "token_accuracy"
        return judge_answers(self.truth, measure)

    @cached_property
    def n_answers(self) -> NDArray[np.int64]:
        """Answers of every worker, int64 [n_workers]."""
        return np.bincount(self.crowd.latest.worker, minlength=self.crowd.n_workers)

    def name(self, worker: int) -> str:
        """Return a worker's id."""
        return str(self.crowd.worker_ids[worker].as_py())

    def significant(
        self, p_value: NDArray[np.float64], n_tests: int
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Correct p-values for the number of tests, and say which pass."""
        corrected = np.minimum(p_value * max(1, n_tests), 1.0)
        return corrected, np.asarray(corrected < self.limits.alpha)


def at_least(
    count: NDArray[Any], total: NDArray[Any], rate: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    """Return P(X >= count) of X ~ Binomial(total, rate), element by element."""
    from scipy.special import betainc

    hits, rest = np.asarray(count, np.float64), np.asarray(total - count + 1, np.float64)
    return np.where(hits > 0, betainc(np.maximum(hits, 1), rest, rate), 1.0)


def at_most(
    count: NDArray[Any], total: NDArray[Any], rate: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    """Return P(X <= count) of X ~ Binomial(total, rate), element by element."""
    return at_least(total - count, total, 1 - rate)


LEAST_USUAL = 20
"""Of fewer pairs or people it is not known how far they lie apart."""


def beside_spread(p_value: Floats, distance: Floats, usual: NDArray[np.bool_]) -> Floats:
    """Raise p-values where the whole crowd lies further apart than chance alone would have it."""
    # p_value float64 [n], by chance alone; distance float64 [n]; usual bool [n]
    if usual.sum() < LEAST_USUAL:
        return p_value
    from scipy.special import ndtr

    low, high = np.percentile(distance[usual], [25, 75])
    scale = float(high - low) / 1.349
    return np.maximum(p_value, ndtr(-distance / scale)) if scale > 1 else p_value


def percent(value: float) -> str:
    """Write a share in whole per cent, or in tenths near 100.

    >>> percent(0.61), percent(0.996)
    ('61 %', '99.6 %')
    """
    return f"{100 * value:.1f} %" if 0.99 < value < 1 else f"{100 * value:.0f} %"
