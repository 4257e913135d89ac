"""Beta distributions of workers' accuracies: tails, intervals, and priors pooled over the crowd."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from goldspan.errors import InputError

# --------------------------------------------------------------------------------------------------
# What the results of all workers say about any of them: a hierarchical Beta-binomial model.


Floats = NDArray[np.float64]

LEAST_WORKERS = 2
"""Fewer tested workers say nothing about their pool: the prior is then Beta(1, 1)."""
MEANS, STRENGTHS = (-7.0, 7.0), (-0.7, 8.0)
"""Ends of the grid: log-odds of mu, logarithm of s."""
SIDES = (49, 17)
"""Points of the grid in each direction, for few different results and for more than `FEW`."""
FEW = 100
DEPTH = 10.0
"""What lies so far below the best point, in nats, is left out."""
ENOUGH = 6
"""Points above `DEPTH` in each direction that are fine enough."""
PASSES = 8
"""How often the grid is drawn together at most."""
MOST_RESULTS = 1500
"""Different results of workers that the grid is fitted to: many more say no more."""
MOST_CELLS = 4_000_000
"""Results times points that are held at once."""


@dataclass(frozen=True)
class PoolPrior:
    """Betas and how likely each is to be the pool's, float64 [n] each, the weights summing to 1."""

    a: Floats
    b: Floats
    weight: Floats

    @classmethod
    def of(cls, a: float, b: float) -> PoolPrior:
        """Take one Beta for certain."""
        return cls(np.array([a]), np.array([b]), np.ones(1))

    def posterior(self, right: Floats, total: Floats) -> Floats:
        """Return Beta(a, b) with the moments of the posterior of every result."""
        # right float64 [n_results]; total float64 [n_results]; returns float64 [2, n_results]
        size = max(1, MOST_CELLS // len(self.a))
        parts = [
            self._matched(right[start : start + size], total[start : start + size])
            for start in range(0, max(1, len(right)), size)
        ]
        return np.concatenate(parts, axis=1)

    def _matched(self, right: Floats, total: Floats) -> Floats:
        a = self.a + right[:, None]
        whole = self.a + self.b + total[:, None]
        first = a / whole
        second = first * (a + 1) / (whole + 1)
        mean, square = first @ self.weight, second @ self.weight
        strength = mean * (1 - mean) / (square - mean**2) - 1
        return np.stack([mean * strength, (1 - mean) * strength])


def pool_prior(right: Floats, total: Floats, times: NDArray[np.int64]) -> PoolPrior:
    """Learn a pool's Betas from different results and how many workers have each."""
    # right float64 [n_results]; total float64 [n_results]; times int64 [n_results]
    tested = total > 0
    hits, asked, count = right[tested], total[tested], times[tested].astype(np.float64)
    if count.sum() < LEAST_WORKERS:
        return PoolPrior.of(1.0, 1.0)
    if len(hits) > MOST_RESULTS:
        # Evenly spaced ones in the order of right answers stand for their neighbours.
        order = np.lexsort((asked, hits / asked))
        kept = order[np.linspace(0, len(order) - 1, MOST_RESULTS).astype(np.int64)]
        count = count[kept] * (count.sum() / count[kept].sum())
        hits, asked = hits[kept], asked[kept]
    box, side = np.array([MEANS, STRENGTHS]), SIDES[int(len(hits) > FEW)]
    for _ in range(PASSES):
        axes = [np.linspace(low, high, side) for low, high in box]
        heights = _log_posterior(axes[0], axes[1], hits, asked, count)
        high = heights > heights.max() - DEPTH
        inside = [np.flatnonzero(high.any(axis=1)), np.flatnonzero(high.any(axis=0))]
        if min(map(len, inside)) >= ENOUGH:
            break
        box = np.array([_around(points, at) for points, at in zip(axes, inside, strict=True)])
    x, y = np.meshgrid(*axes, indexing="ij")
    ends = np.ones(side)
    ends[[0, -1]] = 0.5  # the trapezoid rule
    weight = (np.exp(heights - heights.max()) * np.outer(ends, ends))[high]
    mean, strength = 1 / (1 + np.exp(-x[high])), np.exp(y[high])
    return PoolPrior(mean * strength, (1 - mean) * strength, weight / weight.sum())


def _around(points: Floats, inside: NDArray[np.int64]) -> tuple[float, float]:
    """Return the ends of a finer grid: what is inside, and a point more on either side."""
    if len(inside) >= ENOUGH:
        return float(points[0]), float(points[-1])
    low, high = max(int(inside[0]) - 1, 0), min(int(inside[-1]) + 1, len(points) - 1)
    return float(points[low]), float(points[high])


def _log_posterior(x: Floats, y: Floats, hits: Floats, asked: Floats, count: Floats) -> Floats:
    """Return the unnormalised log posterior of log-odds of mu and log s, float64 [side, side]."""
    from scipy.special import betaln, log_expit

    found = np.zeros((len(x), len(y)))
    for i, odds in enumerate(x.tolist()):
        strength = np.exp(y)[:, None]
        mean = 1 / (1 + np.exp(-odds))
        a, b = mean * strength, (1 - mean) * strength
        each = betaln(a + hits, b + asked - hits) - betaln(a, b)
        found[i] = each @ count + log_expit(odds) + log_expit(-odds) - y / 2
    return found


# --------------------------------------------------------------------------------------------------
# What tests say about workers: so many answers right, and the Beta posterior of being right.


LEVEL = 0.95
"""Of the credible intervals."""


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
        """Return the equal-tailed credible interval: low and high, [n_workers] each.

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
        """Return P(w > threshold) of every worker.

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
        """Return one worker of every different result: of a million workers they are few.

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
        """Return a row per worker: worker, right, total, share, mean, low, high."""
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
    """Reject counts that make no sense."""
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
    """Take the parameters of a Beta."""
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
    """Find the different results: a million workers have few of them."""
    # right float64 [n_workers]; total float64 [n_workers]
    # Two numbers as the parts of a complex one sort faster than pairs do.
    both, inverse, times = np.unique(right + 1j * total, return_inverse=True, return_counts=True)
    return np.stack([both.real, both.imag]), inverse, times


def expected_confusions(
    worker: NDArray[np.int64],  # [n], who gave a label
    code: NDArray[np.integer],  # [n], the label
    probs: NDArray[Any],  # [n_tokens, n_labels], how likely each label is to be the truth
    token: NDArray[np.integer],  # [n], where it was given
    n_workers: int,
) -> Floats:
    """Count truth by label given of every worker, float64 [n_workers, n_labels, n_labels]."""
    n_labels = probs.shape[1]
    cell, size = worker * n_labels + code, n_workers * n_labels
    rows = [np.bincount(cell, probs[token, truth], size) for truth in range(n_labels)]
    return np.stack([row.reshape(-1, n_labels) for row in rows], axis=1)
