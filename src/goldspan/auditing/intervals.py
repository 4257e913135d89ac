"""How right labels are, with an interval: from items drawn one by one, each checked by a person.

The draw goes through the items without putting any back. With D the items drawn before the t-th,
and q the chance with which this one, g, was drawn among those that were left,

    T_t = sum of z over D + z_g / q

is an unbiased estimate of the total of any count z, whatever the chances (Des Raj, 1956); the
estimates of different t are uncorrelated. What the labels' own confidences expect, a, takes noise
out: T_t - L (sum of a over D + a_g / q - total of a), L between 0 and 1 by regression
(prediction-powered inference, Angelopoulos et al., 2023).

F1 = 2 TP / (written + true), precision and recall are ratios of such totals. A ratio p with the
variance V has the interval of a share of 1 / D trials, D = V / p (1 - p) the design effect, by
Clopper and Pearson (Korn and Graubard, 1998): it holds where few or no mistakes were seen. There D
rests on what a draw of independent mistakes has, which counts like `PRIOR` mistakes. An interval
that holds whenever somebody looks replaces the normal quantile by the bound of a mixture of
martingales (Robbins, 1970; Waudby-Smith et al., 2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, ndtri, stdtrit

Floats = NDArray[np.float64]
PRIOR = 2.0
"""Mistakes as which the expected design effect counts: 2 and 4 make the same widths to 3 %."""
SPREAD = (0.25, 0.5, 0.25)
"""Where mistakes are expected: in proportion to labels, to doubts, and in any item."""
FIRST_LOOK = 60.0
"""Checked items at which the bound that holds at every look is narrowest."""
DRAWS, LOOKS = 500, 80
"""Courses of an audit that are drawn, and how often each is looked at."""


class Estimate(NamedTuple):
    """A share, and an interval for it.

    >>> print(Estimate(0.896, 0.861, 0.924))
    89.6 % (86.1 to 92.4)
    """

    value: float
    low: float
    high: float

    @property
    def shown(self) -> float:
        """The value as it is printed: 100.0 % only where there is no mistake."""
        return self.value if self.value > 1 - 1e-9 else min(self.value, 0.999)

    def __str__(self) -> str:
        """Print per cent; nothing is known where the interval is all there is."""
        if (self.low, self.high) == (0, 1):
            return "no estimate from these items"
        return f"{100 * self.shown:.1f} % ({100 * self.low:.1f} to {100 * self.high:.1f})"


@dataclass(frozen=True, eq=False)
class Counts:
    """Labels of one kind in all items, and what was found in the checked ones."""

    written: Floats  # [n_items], labels that are written
    expected: Floats  # [n_items], how many of them are expected to be right
    expected_true: Floats  # [n_items], how many true labels are expected
    right: Floats  # [n_checked], in the order of the draw
    true: Floats  # [n_checked]


@dataclass(frozen=True, eq=False)
class Drawn:
    """Which items were drawn, and with which chances."""

    order: NDArray[np.int64]  # [n_checked], items in the order of the draw
    weights: Floats  # [n_items], to which the chances are proportional

    def left(self) -> Floats:
        """Return the total weight before every draw, float64 [n_checked]."""
        own = self.weights[self.order]
        return np.asarray(self.weights.sum() - (np.cumsum(own) - own))


RATIOS = {"f1": (2.0, 1.0, 1.0), "precision": (1.0, 1.0, 0.0), "recall": (1.0, 0.0, 1.0)}
"""By what right, written and true labels are multiplied: the first over the sum of the others."""


class Weighed(NamedTuple):
    """What the checked items say of a share."""

    value: float
    effect: float  # Its variance by that of a single trial; 0: nothing is left to chance
    mistakes: float = 0.0  # As how many mistakes those seen count
    n: float = 0.0  # As how many checks of equal weight they count
    most: float = 1.0  # By the mistakes seen the value is no more, if it is not below the interval

    def interval(self, level: float, *, anytime: bool) -> Estimate:
        """Return the interval, which may hold at every look and not at this one alone."""
        value, tail = self.value, (1 - level) / 2
        if not self.effect:
            return Estimate(value, value, value)
        if self.n < 2:
            return Estimate(value, 0.0, 1.0)
        trials = _trials(self.effect, self.mistakes, self.n, level, anytime=anytime)
        hits = value * trials
        low = float(betaincinv(hits, trials - hits + 1, tail)) if hits > 0 else 0.0
        high = float(betaincinv(hits + 1, trials - hits, 1 - tail)) if hits < trials else 1.0
        return Estimate(min(value, max(low, self.most)), low, high)

    def checks_to(self, target: float, checked: int, of: int, level: float) -> Floats:
        """Draw how many more checks it takes to a lower end, float64 [n_draws]; inf: all do not do.

        Checks go on like trials with a chance that has a beta distribution by those so far.
        """
        if self.n < 2:
            return np.full(DRAWS, np.inf)
        rng, before = np.random.default_rng(0), 1 / self.effect
        hits, seen = self.value * before, self.mistakes + PRIOR
        n = checked + np.unique(np.geomspace(1, of - checked, LOOKS).astype(int))
        # the variance of n of N items is as 1 / n - 1 / N
        left = np.maximum(1 / n - 1 / of, 1e-9) / (1 / checked - 1 / of)
        chance = rng.beta(hits + 0.5, before - hits + 0.5, DRAWS)[:, None]
        # By how much the effect will turn out to be another one
        scale = (seen + 1) / rng.chisquare(seen + 1, DRAWS)[:, None]
        new = (np.diff(before / left, prepend=before) / scale).round()
        right = rng.binomial(new.astype(np.int64), chance)
        more = ((new - right) * (1 - n / of) ** 2).cumsum(axis=1)  # mistakes
        value = (hits + right.cumsum(axis=1)) / (before + new.cumsum(axis=1))
        effect = self.effect * left * (seen + more * scale) / (seen + more)
        trials = _trials(effect, self.mistakes + more, self.n * n / checked, level, anytime=True)
        is_there = betainc(value * trials, (1 - value) * trials + 1, target) <= (1 - level) / 2
        return np.where(is_there.any(axis=1), n[is_there.argmax(axis=1)] - checked, np.inf)


def estimate(
    drawn: Drawn,
    counts: Counts,
    doubt: Floats,  # [n_items], mistakes that are expected
    ratio: str = "f1",
    *,
    level: float = 0.95,
    anytime: bool = False,  # Whether it holds at every look, and not at this one alone
) -> Estimate:
    """Estimate a ratio of `RATIOS`; the interval is (0, 1) where nothing can be said."""
    return weigh(drawn, counts, doubt, ratio).interval(level, anytime=anytime)


def weigh(drawn: Drawn, counts: Counts, doubt: Floats, ratio: str) -> Weighed:
    """Find out what checked items say of a ratio of `RATIOS`; the arguments are `estimate`'s."""
    by_right, by_written, by_true = RATIOS[ratio]
    order, left = drawn.order, drawn.left()
    chance = drawn.weights[order] / left
    share = 1 / left
    share /= share.sum()  # later draws are from fewer items, and tell more
    n = 1 / (share**2).sum()

    def totals(z: Floats) -> Floats:
        return np.asarray(np.cumsum(z) - z + z / chance)

    def surprise(expected: Floats) -> Floats:
        return np.asarray(totals(expected[order]) - expected.sum())

    written = counts.written.sum()
    every = by_written * written + by_true * counts.true.sum()
    if len(order) == len(drawn.weights) and every > 0:  # nothing is left to chance
        return Weighed(float(by_right * counts.right.sum() / every), 0.0)
    right, true = totals(counts.right), totals(counts.true)
    less, fewer = surprise(counts.expected), surprise(counts.expected_true)

    def linear(value: float) -> tuple[Floats, Floats]:
        odds = by_right * right - value * (by_written * written + by_true * true)
        return odds, by_right * less - value * by_true * fewer

    def solve() -> tuple[float, float]:
        whole = by_written * written + by_true * max(float(share @ true), 0.0)
        value = by_right * float(share @ right) / whole if whole > 0 else 0.0
        return float(min(1.0, max(0.0, value))), float(whole)

    odds, unexpected = linear(solve()[0])
    noise = (share**2) @ unexpected**2
    power = (share**2) @ ((odds - share @ odds) * unexpected) / noise if noise > 0 else 0.0
    power = min(1.0, max(0.0, float(power)))
    right, true, less, fewer = right - power * less, true - power * fewer, less * 0, fewer * 0
    value, whole = solve()
    if whole <= 0 or n < 2:
        return Weighed(value, np.inf)
    residual = linear(value)[0] / whole
    variance = (share**2) @ (residual - share @ residual) ** 2 * n / (n - 1)
    wrong = by_written * (counts.written[order] - counts.right)
    wrong += by_true * (counts.true - counts.right)
    base, n_mistakes = _expected_effect(drawn, counts, doubt, share, ratio, whole, wrong)
    bernoulli = value * (1 - value)
    effect = variance / bernoulli if bernoulli > 1e-6 else base
    effect = (n_mistakes * effect + PRIOR * base) / (n_mistakes + PRIOR)
    # Where confidences foresee more mistakes than there are, those seen are all
    most = 1 - float(wrong.sum()) / whole if value == 1 else 1.0
    return Weighed(value, float(effect), n_mistakes, n, most)


def _expected_effect(
    drawn: Drawn, counts: Counts, doubt: Floats, share: Floats, ratio: str, whole: float,
    wrong: Floats,  # [n_checked], mistakes
) -> tuple[float, float]:  # fmt: skip
    """Return the design effect of independent mistakes, and as how many those seen count."""
    by_right, by_written, by_true = RATIOS[ratio]
    order, left = drawn.order, drawn.left()
    chance = drawn.weights[order] / left
    units = (by_written * counts.written + by_true * counts.expected_true) / by_right
    parts = [units, doubt if doubt.any() else units, np.ones(len(units))]
    where = sum(k * z / max(z.sum(), 1e-9) for k, z in zip(SPREAD, parts, strict=True))
    first = drawn.weights / drawn.weights.sum()
    ahead = (share * left / drawn.weights.sum()) ** 2
    base = float(ahead.sum() * (where / first).sum() * by_right / whole)
    seen = share * wrong / chance
    return base, float(seen.sum() ** 2 / max((seen**2).sum(), 1e-300))


def _trials(effect: Any, mistakes: Any, n: Any, level: float, *, anytime: bool) -> Any:
    """Return of how many trials the interval of a share is."""
    tail = (1 - level) / 2
    freedom = np.minimum(n - 1, mistakes + PRIOR + 1)
    normal = -float(ndtri(tail))
    wide = -stdtrit(np.maximum(1.0, freedom), tail) / normal
    if anytime:
        wide = wide * (_bound(n, 1 - level) / normal)
    return 1 / np.maximum(effect * wide**2, 1e-12)


def _bound(n: Any, alpha: float) -> Any:
    """Return in how many standard errors a mean stays at every look, from the first to the last."""
    rate = (-2 * np.log(alpha) + np.log(1 - 2 * np.log(alpha))) / FIRST_LOOK
    return np.sqrt((n * rate + 1) / (n * rate) * 2 * np.log(np.sqrt(n * rate + 1) / alpha))
