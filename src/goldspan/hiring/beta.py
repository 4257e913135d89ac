"""What tests say about workers: so many answers right, and the Beta posterior of being right.

With a Beta(a, b) prior over the chance w of being right, C right answers out of n give
Beta(a + C, b + n - C). The prior that suits unequal tests is the pool's own; see
`goldspan.hiring.pool_prior`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from goldspan.errors import InputError
from goldspan.hiring.pool_prior import PoolPrior, pool_prior

LEVEL = 0.95
"""Of the credible intervals."""
MOST_KEYS = 4_000_000
"""Whole results are counted in a table where it is smaller than that, and sorted otherwise."""


@dataclass(frozen=True, eq=False)
class Reliability:
    """How often workers are right, as far as it is known.

    Attributes:
        worker_ids: Arrow string array [n_workers].
        right: float64 [n_workers], right answers; fractions where the truth is only inferred.
        total: float64 [n_workers], answers that were judged; 0 for workers without any.
        posterior: float64 [2, n_workers], a and b of the posterior Betas.
        n_labels: Number of labels that an answer is chosen from: chance is 1 / n_labels.
        prior: Beta(a, b) of a worker who is not tested yet.
        measure: What is right: "accuracy", "token_accuracy", or "span_f1".
        source: What judged them: "gold", "crowd", or "both".
    """

    worker_ids: pa.Array
    right: NDArray[np.float64]
    total: NDArray[np.float64]
    posterior: NDArray[np.float64]
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
            prior: Beta(a, b) as a pair, or "pool": what all workers' results say about any of
                them, averaged over what is not known of the pool.
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
        asked = np.asarray(total, np.float64)
        if asked.ndim and asked.shape != hits.shape:
            raise InputError(f"{hits.shape} right answers, but totals of shape {asked.shape}")
        asked = np.broadcast_to(asked, hits.shape)
        check_counts(hits, asked, n_labels)
        names = worker_ids
        if names is None:
            names = pa.array(np.arange(len(hits))).cast(pa.string())
        ids = names if isinstance(names, pa.Array) else pa.array(list(names), pa.string())
        if len(ids) != len(hits):
            raise InputError(f"{len(ids)} worker ids for {len(hits)} workers")
        (pairs, inverse, times), is_pool = distinct_results(hits, asked), isinstance(prior, str)
        if is_pool and prior != "pool":
            raise InputError(f'prior must be "pool" or a pair of positive numbers, not {prior!r}')
        few_right, few_total = pairs
        known = None if is_pool else PoolPrior.of(*read_pair(prior))
        pool = known or pool_prior(few_right, few_total, times)
        before = pool.posterior(np.zeros(1), np.zeros(1))[:, 0]
        posterior = pool.posterior(few_right, few_total)[:, inverse]
        pair = (float(before[0]), float(before[1]))
        return cls(ids, hits, asked, posterior, n_labels, pair, measure, source)

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
        return np.asarray(self.posterior[0])

    @property
    def b(self) -> NDArray[np.float64]:
        """Second parameter of the posterior Beta."""
        return np.asarray(self.posterior[1])

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
        tail, (few, inverse, _) = (1 - level) / 2, self.distinct()
        low, high = betaincinv(few.a, few.b, tail), betaincinv(few.a, few.b, 1 - tail)
        return low[inverse], high[inverse]

    def p_above(self, threshold: float) -> NDArray[np.float64]:
        """Give P(w > threshold) of every worker.

        Raises:
            InputError: The threshold does not lie in 0 … 1.
        """
        from scipy.special import betaincc

        if not 0 <= threshold <= 1:
            raise InputError(f"a threshold lies in 0 … 1, not {threshold}")
        few, inverse, _ = self.distinct()
        found: NDArray[np.float64] = betaincc(few.a, few.b, threshold)[inverse]
        return found

    def distinct(self) -> tuple[Reliability, NDArray[np.int64], NDArray[np.int64]]:
        """Give one worker of every different result: of a million workers they are few.

        Returns:
            Those workers; which of them every worker is like, int64 [n_workers]; how many are
            like each.
        """
        pairs, inverse, times = distinct_results(self.right, self.total)
        one = np.zeros(pairs.shape[1], np.int64)
        one[inverse] = np.arange(len(inverse))
        return self.take(one), inverse, times

    def take(self, which: NDArray[np.intp] | NDArray[np.bool_]) -> Reliability:
        """Select workers, in the order given; the prior stays."""
        chosen = np.asarray(which, None if len(which) else np.intp)
        index = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        return Reliability(
            self.worker_ids.take(pa.array(index)), self.right[index], self.total[index],
            self.posterior[:, index], self.n_labels, self.prior, self.measure, self.source,
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


def read_pair(prior: Any) -> tuple[float, float]:
    """Take the parameters of a Beta.

    Raises:
        InputError: They are no pair of positive numbers.
    """
    try:
        a, b = (float(value) for value in prior)
    except (TypeError, ValueError):
        a = b = np.nan
    if not (0 < a < np.inf and 0 < b < np.inf):
        raise InputError(f'prior must be "pool" or a pair of positive numbers, not {prior!r}')
    return a, b


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
