"""What tests say about workers: so many answers right, and the Beta posterior of being right.

With a Beta(a, b) prior over the chance w of being right, C right answers out of n give
Beta(a + C, b + n - C). The prior that suits unequal tests is the pool's own: the Beta under which
the results of all workers together are likeliest (the beta-binomial model; empirical Bayes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from karat.errors import InputError

LEVEL = 0.95
"""Of the credible intervals."""
LEAST_WORKERS = 5
"""Fewer tested workers than that say too little about their pool: the prior is then Beta(1, 1)."""
STRENGTH = (1.0, 200.0)
"""Bounds of a + b of the pool's prior."""

MOST_KEYS = 4_000_000
"""Whole results are counted in a table where it is smaller than that, and sorted otherwise."""


@dataclass(frozen=True, eq=False)
class Reliability:
    """How often workers are right, as far as it is known.

    Attributes:
        worker_ids: Arrow string array [n_workers].
        right: float64 [n_workers], right answers; fractions where the truth is only inferred.
        total: float64 [n_workers], answers that were judged; 0 for workers without any.
        n_labels: Number of labels that an answer is chosen from: chance is 1 / n_labels.
        prior: Beta(a, b) before any answer.
        measure: What is right: "accuracy", "token_accuracy", or "span_f1".
        source: What judged them: "gold", "crowd", or "both".
    """

    worker_ids: pa.Array
    right: NDArray[np.float64]
    total: NDArray[np.float64]
    n_labels: int = 2
    prior: tuple[float, float] = (1.0, 1.0)
    measure: str = "accuracy"
    source: str = "gold"

    @classmethod
    def from_counts(
        cls,
        right: ArrayLike,
        total: ArrayLike,
        *,
        n_labels: int = 2,
        worker_ids: Sequence[str] | pa.Array | None = None,
        prior: str | tuple[float, float] = "pool",
        measure: str = "accuracy",
        source: str = "gold",
    ) -> Reliability:
        """Take test results.

        Args:
            right: [n_workers], right answers C.
            total: [n_workers] or one number for all, questions n.
            n_labels: Labels to choose from, at least 2.
            worker_ids: Names; "0", "1", … by default.
            prior: Beta(a, b) as a pair, or "pool": the pool's own.
            measure: What is right.
            source: What judged them.

        Raises:
            InputError: Counts are negative, not finite, or more right than judged; fewer than two
                labels; or a prior that is no pair of positive numbers.

        >>> tested = Reliability.from_counts([9, 5], [10, 10], prior=(1, 1))
        >>> tested.mean.round(3).tolist()
        [0.833, 0.5]
        """
        hits = np.atleast_1d(np.asarray(right, np.float64))
        asked = np.broadcast_to(np.asarray(total, np.float64), hits.shape)
        check_counts(hits, asked, n_labels)
        names = worker_ids
        if names is None:
            names = pa.array(np.arange(len(hits))).cast(pa.string())
        ids = names if isinstance(names, pa.Array) else pa.array(list(names), pa.string())
        if len(ids) != len(hits):
            raise InputError(f"{len(ids)} worker ids for {len(hits)} workers")
        pair = read_prior(prior, hits, asked)
        return cls(ids, hits, asked, n_labels, pair, measure, source)

    def __len__(self) -> int:
        """Count the workers."""
        return len(self.right)

    @property
    def chance(self) -> float:
        """How often a guess is right, 1 / n_labels."""
        return 1 / self.n_labels

    @property
    def share(self) -> NDArray[np.float64]:
        """C / n, NaN where nothing was judged."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.right / np.where(self.total > 0, self.total, np.nan))

    @property
    def a(self) -> NDArray[np.float64]:
        """First parameter of the posterior Beta."""
        return np.asarray(self.prior[0] + self.right)

    @property
    def b(self) -> NDArray[np.float64]:
        """Second parameter of the posterior Beta."""
        return np.asarray(self.prior[1] + self.total - self.right)

    @property
    def mean(self) -> NDArray[np.float64]:
        """Posterior mean of being right; the prior's where nothing was judged."""
        return np.asarray(self.a / (self.a + self.b))

    def interval(self, level: float = LEVEL) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give the equal-tailed credible interval: low and high, [n_workers] each.

        Raises:
            InputError: The level does not lie between 0 and 1.
        """
        from scipy.special import betaincinv

        if not 0 < level < 1:
            raise InputError(f"a level lies between 0 and 1, not {level}")
        tail, (a, b), inverse = (1 - level) / 2, *self._distinct
        return betaincinv(a, b, tail)[inverse], betaincinv(a, b, 1 - tail)[inverse]

    def p_above(self, threshold: float) -> NDArray[np.float64]:
        """Give P(w > threshold) of every worker.

        Raises:
            InputError: The threshold does not lie in 0 … 1.
        """
        from scipy.special import betaincc

        if not 0 <= threshold <= 1:
            raise InputError(f"a threshold lies in 0 … 1, not {threshold}")
        (a, b), inverse = self._distinct
        found: NDArray[np.float64] = betaincc(a, b, threshold)[inverse]
        return found

    @cached_property
    def _distinct(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The different posteriors, [2, n], and which one every worker has: they are few."""
        pairs, inverse, _ = distinct_results(self.right, self.total)
        hits, asked = pairs
        return np.stack([self.prior[0] + hits, self.prior[1] + asked - hits]), inverse

    def take(self, which: NDArray[np.intp] | NDArray[np.bool_]) -> Reliability:
        """Select workers, in the order given; the prior stays."""
        index = np.flatnonzero(which) if which.dtype == np.bool_ else which
        return Reliability(
            self.worker_ids.take(pa.array(index)), self.right[index], self.total[index],
            self.n_labels, self.prior, self.measure, self.source,
        )  # fmt: skip

    def to_arrow(self) -> pa.Table:
        """Give a row per worker: worker, right, total, share, mean, low, high."""
        low, high = self.interval()
        return pa.table(
            {
                "worker": self.worker_ids,
                "right": pa.array(self.right),
                "total": pa.array(self.total),
                "share": pa.array(self.share, mask=self.total == 0),
                "mean": pa.array(self.mean),
                "low": pa.array(low),
                "high": pa.array(high),
            }
        )


def check_counts(right: NDArray[np.float64], total: NDArray[np.float64], n_labels: int) -> None:
    """Refuse counts that make no sense.

    Raises:
        InputError: See `Reliability.from_counts`.
    """
    if isinstance(n_labels, bool) or not isinstance(n_labels, int | np.integer) or n_labels < 2:
        raise InputError(f"n_labels must be a whole number of at least 2, not {n_labels!r}")
    if right.ndim != 1:
        raise InputError(f"right must be one number per worker, not of shape {right.shape}")
    bad = np.flatnonzero(
        ~(np.isfinite(right) & np.isfinite(total) & (right >= 0) & (right <= total))
    )
    if len(bad):
        shown = ", ".join(f"worker {i}: {right[i]:g} of {total[i]:g}" for i in bad[:5].tolist())
        more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
        raise InputError(f"0 ≤ right ≤ total must hold, but {shown}{more}")


def read_prior(
    prior: Any, right: NDArray[np.float64], total: NDArray[np.float64]
) -> tuple[float, float]:
    """Give Beta(a, b) from a pair, or from the pool itself.

    Raises:
        InputError: It is neither "pool" nor a pair of positive numbers.
    """
    if isinstance(prior, str):
        if prior != "pool":
            raise InputError(f'prior must be "pool" or a pair of positive numbers, not {prior!r}')
        return pool_prior(right, total)
    try:
        a, b = (float(value) for value in prior)
    except (TypeError, ValueError):
        a = b = np.nan
    if not (0 < a < np.inf and 0 < b < np.inf):
        raise InputError(f'prior must be "pool" or a pair of positive numbers, not {prior!r}')
    return a, b


def pool_prior(right: NDArray[np.float64], total: NDArray[np.float64]) -> tuple[float, float]:
    """Find the Beta(a, b) under which all workers' results are likeliest.

    Args:
        right: float64 [n_workers].
        total: float64 [n_workers].

    Returns:
        a and b with a + b within `STRENGTH`; (1, 1) for fewer than `LEAST_WORKERS` tested workers.
    """
    from scipy.optimize import minimize
    from scipy.special import betaln, expit

    tested = total > 0
    if tested.sum() < LEAST_WORKERS:
        return 1.0, 1.0
    (hits, asked), _, times = distinct_results(right[tested], total[tested])

    def loss(at: NDArray[np.float64]) -> float:
        mean, strength = expit(at[0]), np.exp(at[1])
        a, b = mean * strength, (1 - mean) * strength
        found = betaln(a + hits, b + asked - hits) - betaln(a, b)
        return float(-(times * found).sum() / times.sum())

    middle = (right[tested].sum() + 1) / (total[tested].sum() + 2)
    edges = [(-4.0, 4.0), (float(np.log(STRENGTH[0])), float(np.log(STRENGTH[1])))]
    begin = np.array([np.clip(np.log(middle / (1 - middle)), -4, 4), np.log(5.0)])
    found = minimize(loss, begin, bounds=edges, method="L-BFGS-B")
    mean, strength = float(expit(found.x[0])), float(np.exp(found.x[1]))
    return mean * strength, (1 - mean) * strength


def distinct_results(
    right: NDArray[np.float64], total: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Find the different results: a million workers have few of them.

    Args:
        right: float64 [n_workers].
        total: float64 [n_workers].

    Returns:
        The pairs of right and total, float64 [2, n]; which pair every worker has, int64
        [n_workers]; how often every pair occurs, int64 [n].
    """
    keys, width = right * (total.max(initial=0) + 1) + total, total.max(initial=0) + 1
    if right.max(initial=0) * width < MOST_KEYS and not (right % 1).any() and not (total % 1).any():
        counted = keys.astype(np.int64)
        times = np.bincount(counted)
        present = np.flatnonzero(times)
        place = np.zeros(len(times), np.int64)
        place[present] = np.arange(len(present))
        pairs = np.stack([present // int(width), present % int(width)]).astype(np.float64)
        return pairs, place[counted], times[present]
    # Two numbers as the parts of a complex one sort faster than pairs do.
    both, inverse, times = np.unique(right + 1j * total, return_inverse=True, return_counts=True)
    return np.stack([both.real, both.imag]), inverse, times
