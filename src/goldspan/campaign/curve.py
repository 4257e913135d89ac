"""The learning curve and where it leads: score(n) = a - b n^-c, fitted to random points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import InputError

NEXT = 100
"""Items whose worth is forecast."""
Z = 1.959963984540054
"""Of a 95 % interval."""
Round = Mapping[str, Any]
"""The facts of a round, as the ledger keeps them."""
LEAST_POINTS = 4
"""A curve of three parameters goes through any three points."""
DRAWS = 200
POWERS = np.exp(np.linspace(np.log(0.05), np.log(3.0), 60))
"""The powers c that are tried."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """A fitted learning curve with its uncertainty."""

    a: float  # Where it ends
    b: float  # How much is missing at one item
    c: float  # How fast it comes
    draws: Floats  # [n_draws, 3], curves through redrawn points
    last: float  # Items of the last point

    def at(self, n: float) -> float:
        """Return the score with n items."""
        return float(self.a - self.b * n**-self.c)

    def interval(self, n: float, level: float = 0.95) -> tuple[float, float]:
        """Return the interval of the score with n items."""
        values = self.draws[:, 0] - self.draws[:, 1] * n ** -self.draws[:, 2]
        low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)

    def items_to(self, target: float) -> float | None:
        """Return how many items the target takes; None: it is not reachable."""
        return _items_to(self.a, self.b, self.c, target)

    def reaches(self, target: float) -> float:
        """Return the share of the drawn curves that ever reach a target."""
        return float(np.mean(self.draws[:, 0] > target))

    def gain(self, more: float) -> float:
        """Return how much the next items raise the score."""
        return self.at(self.last + more) - self.at(self.last)


def fit_curve(
    n: Sequence[float], score: Sequence[float], error: Sequence[float], seed: int = 0
) -> Curve | None:
    """Fit a learning curve.

    >>> n = [10, 20, 40, 80, 160]
    >>> curve = fit_curve(n, [0.9 - 2 * x**-0.7 for x in n], [0.01] * 5)
    >>> round(curve.at(1000), 3), curve.items_to(0.95)
    (0.884, None)
    """
    x, y, spread = (np.asarray(one, np.float64) for one in (n, score, error))
    if not len(x) == len(y) == len(spread) or (x <= 0).any() or (spread < 0).any():
        raise InputError("a curve needs as many scores and errors as positive numbers of items")
    if len(np.unique(x)) < LEAST_POINTS:
        return None
    spread = np.maximum(spread, 1e-3)
    rng = np.random.default_rng(seed)
    redrawn = y + spread * rng.standard_normal((DRAWS, len(y)))
    found = _fit(x, np.vstack([y, redrawn]), spread)
    a, b, c = found[0].tolist()
    return Curve(a, b, c, found[1:], float(x.max()))


def pool_gain(curve: Curve, pool: int, labelled: int, right: float, more: int) -> float:
    """Return how much labelling more items raises the share of right labels in the whole pool.

    A labelled item has the crowd's label, any other one the model's. So the new ones exchange the
    model's accuracy for the crowd's, and the model gets better on the rest.

    >>> n = [10, 20, 40, 80]
    >>> flat = fit_curve(n, [0.7] * 4, [0.01] * 4)
    >>> round(pool_gain(flat, pool=1000, labelled=80, right=0.9, more=100), 3)
    0.02
    """
    more = min(more, pool - labelled)
    if more <= 0:
        return 0.0
    now, then = curve.at(labelled), curve.at(labelled + more)
    return (more * (right - now) + (pool - labelled - more) * (then - now)) / pool


def _fit(x: Floats, y: Floats, spread: Floats) -> Floats:
    """Return the best a, b, c with a at most 1 and b at least 0, float64 [n_curves, 3]."""
    # x float64 [n_points]; y float64 [n_curves, n_points]; spread float64 [n_points]
    weight = 1 / spread**2
    z = x ** -POWERS[:, None]
    a, b = _lines(z, y, weight)
    loss = (weight * (y[:, None] - a[..., None] + b[..., None] * z) ** 2).sum(axis=2)
    row, best = np.arange(len(y)), loss.argmin(axis=1)
    return np.column_stack([a[row, best], b[row, best], POWERS[best]])


def _lines(z: Floats, y: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return a and b of y = a - b z, float64 [n_curves, n_powers] each."""
    share = weight / weight.sum()
    mean_z, mean_y = z @ share, (y @ share)[:, None]
    apart = z - mean_z[:, None]
    b = np.maximum(0, -(y * share) @ apart.T / (apart**2 @ share))
    a = mean_y + b * mean_z
    # At the bound a = 1 the best b is that of a line through it.
    bound = np.maximum(0, ((1 - y) * share) @ z.T / (z**2 @ share))
    return np.minimum(a, 1.0), np.where(a > 1, bound, b)


def _items_to(a: float, b: float, c: float, target: float) -> float | None:
    if a <= target:
        return None
    return float((b / (a - target)) ** (1 / c)) if b > 0 else 1.0


def curve_of(rounds: Sequence[Round], seed: int) -> Curve | None:
    """Fit the learning curve to the scores on items drawn at random."""
    points = [one for one in rounds if one["control"] is not None]
    spread = [(one["control"]["high"] - one["control"]["low"]) / (2 * Z) for one in points]
    scores = [one["control"]["value"] for one in points]
    return fit_curve([one["items"] for one in points], scores, spread, seed)
