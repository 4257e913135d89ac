"""When a campaign stops: the learning curve and where it leads, and the rules of `[stop]`.

A new rule is a key of `StopSection` and a `StopRule` in `RULES`. Everything else –
checks of the plan, the decision after a round, `goldspan plan check`, the record and the report –
asks the rules.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from goldspan.campaign.section import Count, Section, Share, newer
from goldspan.errors import InputError
from goldspan.money import MICRO

# --------------------------------------------------------------------------------------------------
# The learning curve: score(n) = a - b n^-c, fitted to random points.


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
RISING = np.concatenate([np.linspace(-2.0, -0.1, 20), POWERS])
"""Those below 0 go on ever faster, as models do that only begin to learn; b is below 0 too."""
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

    def gain(self, more: float) -> float:
        """Return how much the next items raise the score."""
        return self.at(self.last + more) - self.at(self.last)


def fit_curve(
    n: Sequence[float], score: Sequence[float], error: Sequence[float], seed: int = 0,
    powers: Floats = POWERS,
) -> Curve | None:  # fmt: skip
    """Fit a learning curve with one of these powers.

    >>> n = [10, 20, 40, 80, 160]
    >>> curve = fit_curve(n, [0.9 - 2 * x**-0.7 for x in n], [0.01] * 5)
    >>> round(curve.at(1000), 3)
    0.884
    """
    x, y, spread = (np.asarray(one, np.float64) for one in (n, score, error))
    if not len(x) == len(y) == len(spread) or (x <= 0).any() or (spread < 0).any():
        raise InputError("a curve needs as many scores and errors as positive numbers of items")
    if len(np.unique(x)) < LEAST_POINTS:
        return None
    spread = np.maximum(spread, 1e-3)
    rng = np.random.default_rng(seed)
    redrawn = y + spread * rng.standard_normal((DRAWS, len(y)))
    found = _fit(x, np.vstack([y, redrawn]), spread, powers)
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


def _fit(x: Floats, y: Floats, spread: Floats, powers: Floats) -> Floats:
    """Return the best a, b, c with a at most 1 and b at least 0, float64 [n_curves, 3]."""
    # x float64 [n_points]; y float64 [n_curves, n_points]; spread float64 [n_points]
    weight = 1 / spread**2
    z = np.sign(powers)[:, None] * x ** -powers[:, None]
    a, b = _lines(z, y, weight)
    loss = (weight * (y[:, None] - a[..., None] + b[..., None] * z) ** 2).sum(axis=2)
    row, best = np.arange(len(y)), loss.argmin(axis=1)
    return np.column_stack([a[row, best], np.sign(powers[best]) * b[row, best], powers[best]])


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


def curve_of(rounds: Sequence[Round], seed: int = 0, powers: Floats = POWERS) -> Curve | None:
    """Fit the learning curve to the scores on items drawn at random."""
    points = [one for one in rounds if one["control"] is not None]
    spread = [(one["control"]["high"] - one["control"]["low"]) / (2 * Z) for one in points]
    scores = [one["control"]["value"] for one in points]
    return fit_curve([one["items"] for one in points], scores, spread, seed, powers)


# --------------------------------------------------------------------------------------------------
# What it takes until the goal of the plan: an interval that ends where nothing is left.

TAIL = 0.025
"""Chance of less than an interval says, and of more."""


def ahead(amounts: Floats, is_short: NDArray[np.bool_]) -> dict[str, float]:
    """Return the interval of what it may take, and the chance `short` that all of it is too little.

    >>> ahead(np.array([20.0, 30.0, 80.0, 80.0]), np.array([False, False, True, True]))
    {'low': 21, 'high': 80, 'short': 0.5}
    """
    low, high = (round(end) for end in np.quantile(amounts, [TAIL, 1 - TAIL]).tolist())
    return {"low": low, "high": high, "short": float(is_short.mean())}


def told_ahead(one: Mapping[str, float], shown: Callable[[float], str], unit: str) -> str:
    """Say it in words.

    >>> told_ahead({"low": 40, "high": 65, "short": 0.0}, str, " EUR")
    'with 95\u00a0% between 40 and 65 EUR more'
    """
    low, high = shown(one["low"]), shown(one["high"])
    if one["short"] > 1 - TAIL:
        return f"out of reach: all that is left, {high}{unit}, is not enough"
    few = f"; this is all, and not enough with a chance of {100 * one['short']:.0f}\u00a0%"
    return f"with 95\u00a0% between {low} and {high}{unit} more{few * (one['short'] > TAIL)}"


# --------------------------------------------------------------------------------------------------
# The rules: their keys in the plan, when they end a campaign, and how they are told.

UNKNOWN = "\u2013"
"""What is shown while it is not known how near a rule is."""


class Certified(Section):
    """How right the labels shall be by the audit: F1 of spans, or accuracy of single labels."""

    f1: Share | None = None
    accuracy: Share | None = None
    confidence: Annotated[float, Field(ge=0.5, lt=1)] = 0.95

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        if (self.f1 is None) == (self.accuracy is None):
            raise InputError(
                "set f1 for spans or accuracy for single labels, such as "
                "certified = { f1 = 0.9, confidence = 0.95 }"
            )
        return self

    @property
    def target(self) -> float:
        """The share."""
        return self.accuracy or 0.0 if self.f1 is None else self.f1

    @property
    def shown(self) -> str:
        """The target in words."""
        measure = "accuracy" if self.f1 is None else "F1"
        return f"{measure} of the labels at least {100 * self.target:g}\u00a0%"


class StopSection(Section):
    """When to stop before money, time or the pool run out."""

    rounds: Count = 2  # As many rounds in a row a soft rule must hold
    # Of the labels, by the audit: ends the campaign at once
    certified: Certified | None = newer(default=None)
    target: Share | None = None  # Score of the model whose lower bound is high enough
    # Rise of the score per unit of money that is worth it, by the forecast
    least_gain: Annotated[float, Field(gt=0)] | None = None
    # Kappa of the predictions of two rounds at which nothing changes any more
    stable: Share | None = None
    most_rounds: Count | None = None  # A hard limit

    @property
    def rules(self) -> list[StopRule]:
        """The rules that the plan sets, the hard ones first."""
        limits = ((rule, getattr(self, rule.key)) for rule in RULES)
        return [replace(rule, limit=limit) for rule, limit in limits if limit is not None]

    def shown(self, rounds: Sequence[Round]) -> list[dict[str, str]]:
        """Return the rules as rows of a table: `rule`, its `limit`, and how near it is `now`."""
        often = f", {self.rounds:,} round{'' if self.rounds == 1 else 's'} in a row"
        return [
            {
                "rule": rule.name,
                "limit": rule.shown + ("" if rule.is_hard else often),
                "now": rule.now(rounds) if rounds else rule.before,
            }
            for rule in self.rules
        ]


@dataclass(frozen=True)
class StopRule:
    """A rule that ends a campaign: when what it looks at has reached the limit of the plan."""

    key: str  # In the section `[stop]`
    name: str  # In decisions and reports
    value: Callable[[Sequence[Round]], Any]  # What it looks at; None while it is not known
    # In words, with {value}, {limit} and, both in per cent, {points} and {percent}: why it ended,
    # when it ends ("ends when …"), the limit and the value as a table shows them
    forms: tuple[str, str, str, str]
    reached: Callable[[Any, Any], bool] = operator.ge
    is_hard: bool = False  # Whether it ends the campaign at once
    needs_model: bool = True  # Whether it looks at how good a model is
    per_money: str = ""  # What it measures per unit of money, in words
    before: str = UNKNOWN  # What is shown as `now` before the first round has ended
    limit: Any = None  # What the plan says

    def holds(self, rounds: Sequence[Round]) -> str:
        """Return why it holds after the last of some rounds, "" if it does not."""
        found = self.value(rounds)
        is_reached = found is not None and self.reached(found, self.limit)
        return self._told(0, found) if is_reached else ""

    @property
    def planned(self) -> str:
        """When it ends a campaign, in words that follow "ends when"."""
        return self._told(1)

    @property
    def shown(self) -> str:
        """The limit as a table shows it."""
        return self._told(2)

    def now(self, rounds: Sequence[Round]) -> str:
        """Return how near it is after the last of some rounds, as a table shows it."""
        found = self.value(rounds)
        return self.before if found is None else self._told(3, found)

    def _told(self, form: int, value: Any = None) -> str:
        shares = value, getattr(self.limit, "confidence", self.limit)
        points, percent = (100 * one if isinstance(one, float) else 0 for one in shares)
        return self.forms[form].format(
            value=value, limit=self.limit, points=points, percent=percent, s="s" * (self.limit != 1)
        )


def lower_end(rounds: Sequence[Round]) -> float | None:
    """Return the lower bound of the score."""
    best: Mapping[str, float] | None = rounds[-1]["control"] or rounds[-1]["score"]
    return None if best is None else best["low"]


def _per_money(rounds: Sequence[Round]) -> float | None:
    """Return what another unit of money brings, None while no curve can be fitted."""
    curve = curve_of(rounds)
    if curve is None:
        return None
    cost = rounds[-1]["spent"] / max(1, rounds[-1]["items"]) * NEXT / MICRO
    return curve.gain(NEXT) / cost if cost else 0.0


RULES = (
    StopRule(
        "most_rounds", "rounds", len,
        (
            "round {value} is done", "{limit} rounds are done", "{limit:,} round{s} at most",
            "{value:,}",
        ),
        is_hard=True, needs_model=False, before="0",
    ),
    StopRule(
        "certified", "certified", lambda rounds: rounds[-1].get("certificate"),
        (
            "{limit.shown}: {value[text]}", "checks make certain that the {limit.shown}",
            "{limit.shown}, with a confidence of {percent:g}\u00a0%", "{value[text]}",
        ),
        reached=lambda found, _: bool(found["certified"]),
        is_hard=True, needs_model=False, before="no item is drawn yet",
    ),
    StopRule(
        "target", "target", lower_end,
        (
            "the score is at least {value:.3f}, and the target is {limit:g}",
            "the lower bound of the score is {limit:g}",
            "lower bound of the score {percent:.1f}\u00a0%", "{points:.1f}\u00a0%",
        ),
    ),
    StopRule(
        "least_gain", "gain", _per_money,
        (
            "another unit of money brings {value:.2g}, less than {limit:g}",
            "a unit of money is forecast to bring less than {limit:g}",
            "less than {percent:g} points per unit of money", "{points:.2g} points",
        ),
        reached=operator.lt, per_money="is a gain per unit of money",
    ),
    StopRule(
        "stable", "stable", lambda rounds: rounds[-1]["stable"],
        (
            "predictions agree with those of the round before (kappa {value:.3f})",
            "predictions of two rounds agree with a kappa of {limit:g}",
            "κ of two rounds' predictions {limit:g}", "{value:.3f}",
        ),
    ),
)  # fmt: skip
"""All rules, in the order in which they decide."""
