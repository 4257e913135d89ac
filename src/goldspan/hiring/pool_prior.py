"""What the results of all workers say about any of them: a hierarchical Beta-binomial model.

Chances of being right are Beta(mu s, (1 - mu) s) in the pool. Neither mu nor s is known: taking the
likeliest for granted makes the workers of a small pool look alike, and every interval too narrow
(8 workers of 10 questions each: intervals of 95 % held in 76 %). Here both are averaged over on a
grid, mu uniform and s with 1 / √s uniform (Gelman et al. 2013, Bayesian Data Analysis, 5.3), and
every worker's posterior, a mixture of Betas, is replaced by the Beta of the same mean and variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
        """Give Beta(a, b) with the moments of the posterior of every result.

        Args:
            right: float64 [n_results].
            total: float64 [n_results].

        Returns:
            float64 [2, n_results].
        """
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
    """Learn a pool's Betas from different results and how many workers have each.

    Args:
        right: float64 [n_results].
        total: float64 [n_results].
        times: int64 [n_results].
    """
    tested = total > 0
    hits, asked, count = right[tested], total[tested], times[tested].astype(np.float64)
    if count.sum() < LEAST_WORKERS:
        return PoolPrior.of(1.0, 1.0)
    if len(hits) > MOST_RESULTS:
        # Every so-manieth by right answers stands for its neighbours.
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
    """Give the ends of a finer grid: what is inside, and a point more on either side."""
    if len(inside) >= ENOUGH:
        return float(points[0]), float(points[-1])
    low, high = max(int(inside[0]) - 1, 0), min(int(inside[-1]) + 1, len(points) - 1)
    return float(points[low]), float(points[high])


def _log_posterior(x: Floats, y: Floats, hits: Floats, asked: Floats, count: Floats) -> Floats:
    """Give the unnormalised log posterior of log-odds of mu and log s, float64 [side, side]."""
    from scipy.special import betaln, log_expit

    found = np.zeros((len(x), len(y)))
    for i, odds in enumerate(x.tolist()):
        strength = np.exp(y)[:, None]
        mean = 1 / (1 + np.exp(-odds))
        a, b = mean * strength, (1 - mean) * strength
        each = betaln(a + hits, b + asked - hits) - betaln(a, b)
        found[i] = each @ count + log_expit(odds) + log_expit(-odds) - y / 2
    return found
