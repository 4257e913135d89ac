"""How good the model is, what more labels should gain, and when a campaign stops."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.campaign.inputs import CampaignInputs
from goldspan.campaign.model import cross_predict
from goldspan.campaign.plan import Plan
from goldspan.campaign.protocols import Decision, Evaluation, Labelled, Labels, Measure, Model
from goldspan.errors import InputError
from goldspan.money import MICRO
from goldspan.spans import score

# --------------------------------------------------------------------------------------------------
# The default step "evaluate": cross-validation, a test file, or the items drawn at random.


LEAST_CONTROL = 8
"""Fewer items that were drawn at random measure nothing."""
RESAMPLES = 200
Z = 1.959963984540054
"""Of a 95 % interval."""


@dataclass(frozen=True)
class Evaluating:
    """Measures as the plan says."""

    inputs: CampaignInputs

    def measure(self, model: Model, labelled: Labelled) -> Evaluation:
        """Measure a model."""
        by = self.inputs.plan.evaluate.by
        if by == "test":
            return self._test(model, labelled)
        return self._slice(model, labelled) if by == "slice" else self._cross(model, labelled)

    def _test(self, model: Model, labelled: Labelled) -> Evaluation:
        trained = model.train(labelled.items, labelled.labels)
        if trained is None or self.inputs.test is None:
            return Evaluation()
        pool, truth = self.inputs.test
        found = self._score(truth, trained.predict(pool, np.arange(pool.n_items)))
        return Evaluation(found, found)

    def _slice(self, model: Model, labelled: Labelled) -> Evaluation:
        out = labelled.is_random
        rest = np.flatnonzero(~out)
        trained = model.train(labelled.items[rest], [labelled.labels[n] for n in rest.tolist()])
        if trained is None or int(out.sum()) < LEAST_CONTROL:
            return Evaluation()
        truth = [labelled.labels[n] for n in np.flatnonzero(out).tolist()]
        found = self._score(truth, trained.predict(self.inputs.pool, labelled.items[out]))
        return Evaluation(found, found)

    def _cross(self, model: Model, labelled: Labelled) -> Evaluation:
        folds = self.inputs.plan.evaluate.folds
        found = cross_predict(model, self.inputs.pool, labelled.items, labelled.labels, folds)
        known = [n for n, labels in enumerate(found) if labels is not None]
        drawn = [n for n in known if labelled.is_random[n]]
        parts = [known, drawn if len(drawn) >= LEAST_CONTROL else []]
        measures = [
            self._score([labelled.labels[n] for n in part], [found[n] or [] for n in part])
            if part
            else None
            for part in parts
        ]
        return Evaluation(*measures)

    def _score(self, truth: Labels, found: Labels) -> Measure:
        return measured(truth, found, self.inputs.codec.encoding, self.inputs.plan.seed)


def measured(truth: Labels, found: Labels, encoding: str, seed: int = 0) -> Measure:
    """Compare labels: F1 of spans with a bootstrap interval by item; accuracy of single labels.

    The interval of an accuracy is Wilson's (1927).

    >>> measured([["a"], ["b"]], [["a"], ["a"]], "PLAIN").value
    0.5
    """
    if encoding == "PLAIN":
        right = sum(list(a) == list(b) for a, b in zip(truth, found, strict=True))
        return Measure(right / len(truth), *wilson(right, len(truth)), len(truth))
    got = score(truth, found, encoding=encoding, bootstrap=RESAMPLES, random_state=seed)
    low, high = got.interval or (0.0, 1.0)
    return Measure(got.f1, low, high, len(truth))


def wilson(right: int, total: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share.

    >>> [round(end, 3) for end in wilson(8, 10)]
    [0.49, 0.943]
    """
    share, more = right / total, Z * Z / total
    middle = (share + more / 2) / (1 + more)
    half = Z * math.sqrt(share * (1 - share) / total + more / (4 * total)) / (1 + more)
    return max(0.0, middle - half), min(1.0, middle + half)


def kappa(first: Sequence[str], second: Sequence[str]) -> float:
    """Return Cohen's kappa of two lists of labels; 1 where chance alone explains all.

    >>> kappa(["a", "b", "a"], ["a", "b", "a"]), kappa(["a", "b"], ["b", "a"])
    (1.0, -1.0)
    """
    n = len(first)
    same = sum(a == b for a, b in zip(first, second, strict=True)) / n
    labels = sorted({*first, *second})  # in a fixed order, for the sum's last bits
    by_chance = sum(first.count(one) * second.count(one) for one in labels) / n**2
    return 1.0 if by_chance >= 1 else (same - by_chance) / (1 - by_chance)


# --------------------------------------------------------------------------------------------------
# The learning curve and where it leads: score(n) = a - b n^-c, fitted to random points.


LEAST_POINTS = 4
"""A curve of three parameters goes through any three points."""
DRAWS = 200
POWERS = np.exp(np.linspace(np.log(0.05), np.log(3.0), 60))
"""The powers c that are tried."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """A fitted learning curve with its uncertainty.

    Attributes:
        a: Where it ends.
        b: How much is missing at one item.
        c: How fast it comes.
        draws: float64 [n_draws, 3], curves through redrawn points.
        last: Items of the last point.
    """

    a: float
    b: float
    c: float
    draws: Floats
    last: float

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

    Args:
        n: Items learned from, at every point.
        score: The scores.
        error: Their standard errors.
        seed: Of the draws.

    Returns:
        The curve; None for fewer than four different numbers of items.

    Raises:
        InputError: Lists of different lengths, or numbers that are not positive.

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

    Args:
        curve: The model's accuracy.
        pool: Items in all.
        labelled: Those of them that are labelled.
        right: Share of the crowd's labels that are right.
        more: Items to label; no more than there are.

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
    """Return the best a, b, c with a at most 1 and b at least 0, float64 [n_curves, 3].

    Args:
        x: float64 [n_points].
        y: float64 [n_curves, n_points].
        spread: float64 [n_points].
    """
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


# --------------------------------------------------------------------------------------------------
# The default step "stop": a goal that is reached, gains too dear, predictions that stay the same.


NEXT = 100
"""Items whose worth is forecast."""
Round = Mapping[str, Any]


@dataclass(frozen=True)
class Stopping:
    """Stops by the plan's rules."""

    plan: Plan

    def decide(self, rounds: Sequence[Round]) -> Decision:
        """Decide after a round."""
        facts = outlook(self.plan, rounds)
        stop, last = self.plan.stop, rounds[-1]
        if self.plan.budget.hours is not None and last["hours"] >= self.plan.budget.hours:
            return ended("time", f"{last['hours']:.1f} hours are over", facts)
        if stop.most_rounds is not None and len(rounds) >= stop.most_rounds:
            return ended("rounds", f"round {len(rounds)} is done", facts)
        for rule, holds in (("target", _target), ("gain", _gain), ("stable", _stable)):
            why = [holds(self.plan, rounds[:n]) for n in range(1, len(rounds) + 1)]
            recent = why[-stop.rounds :]
            if len(recent) == stop.rounds and all(recent):
                return ended(rule, f"{recent[-1]}, {stop.rounds} rounds in a row", facts)
        return Decision(stop=False, facts=facts)


def ended(rule: str, why: str, facts: Mapping[str, Any]) -> Decision:
    """Decide to stop."""
    return Decision(stop=True, rule=rule, why=why, facts=facts)


def curve_of(plan: Plan, rounds: Sequence[Round]) -> Curve | None:
    """Fit the learning curve to the scores on items drawn at random."""
    points = [one for one in rounds if one["control"] is not None]
    spread = [(one["control"]["high"] - one["control"]["low"]) / (2 * Z) for one in points]
    scores = [one["control"]["value"] for one in points]
    return fit_curve([one["items"] for one in points], scores, spread, plan.seed)


def outlook(plan: Plan, rounds: Sequence[Round]) -> dict[str, Any]:
    """Return what more labels would bring, beside more answers about the labels that there are.

    Returns:
        Plain values: `curve` (None while there are too few points), `next` (of the next 100 items
        the score, its interval, gain, cost and answers), `ask_again` (of 100 answers to uncertain
        items the tokens they set right, and the cost), `per_money` (both in one unit: the rise of
        the share of right labels in the whole pool per unit of money; None where it is not known),
        and `to_target`.
    """
    last, curve = rounds[-1], curve_of(plan, rounds)
    each = last["spent"] / max(1, last["items"])
    answers = last["answers"] / max(1, last["items"])  # gold questions among them
    facts: dict[str, Any] = {"curve": None, "next": None, "per_money": None, "to_target": None}
    facts["ask_again"] = last["ask_again"]
    if curve is None:
        return facts
    facts["curve"] = {"a": curve.a, "b": curve.b, "c": curve.c}
    low, high = curve.interval(curve.last + NEXT)
    facts["next"] = {
        "items": NEXT, "score": curve.at(curve.last + NEXT), "low": low, "high": high,
        "gain": curve.gain(NEXT), "cost": round(each * NEXT), "answers": round(answers * NEXT),
    }  # fmt: skip
    facts["per_money"] = _per_money(plan, last, curve)
    if plan.stop.target is not None:
        items = curve.items_to(plan.stop.target)
        more = None if items is None else max(0.0, items - last["items"])
        facts["to_target"] = {
            "reachable": items is not None,
            "items": more if more is None or more < 1e9 else None,
            "cost": None if more is None or more >= 1e9 else round(each * more),
            "answers": None if more is None or more >= 1e9 else round(answers * more),
            "chance": curve.reaches(plan.stop.target),
        }
    return facts


def _per_money(plan: Plan, last: Round, curve: Curve) -> dict[str, float] | None:
    """Compare new items and more answers by what they do to the labels of the whole pool.

    Single labels only: the F1 of spans is no share of tokens, and neither can be turned into the
    other.
    """
    again, right = last["ask_again"], last.get("right")
    if not plan.is_single or again is None or right is None or not last["spent"]:
        return None
    more = min(NEXT, last["pool"] - last["items"])
    cost = last["spent"] / last["items"] * more / MICRO
    gain = pool_gain(curve, last["pool"], last["items"], right, more)
    asked = again["cost"] / MICRO
    return {
        "next": gain / cost if more else 0.0,
        "ask_again": again["right"] / last["pool"] / asked if asked else 0.0,
    }


def _target(plan: Plan, rounds: Sequence[Round]) -> str:
    """Return the reason if the lower bound has reached the target, "" otherwise."""
    best = rounds[-1]["control"] or rounds[-1]["score"]
    target = plan.stop.target
    if target is None or best is None or best["low"] < target:
        return ""
    return f"the score is at least {best['low']:.3f}, and the target is {target:g}"


def _gain(plan: Plan, rounds: Sequence[Round]) -> str:
    least, curve = plan.stop.least_gain, None
    if least is None or (curve := curve_of(plan, rounds)) is None:
        return ""
    cost = rounds[-1]["spent"] / max(1, rounds[-1]["items"]) * NEXT / MICRO
    per_money = curve.gain(NEXT) / cost if cost else 0.0
    if per_money >= least:
        return ""
    return f"another unit of money brings {per_money:.2g}, less than {least:g}"


def _stable(plan: Plan, rounds: Sequence[Round]) -> str:
    least, found = plan.stop.stable, rounds[-1]["stable"]
    if least is None or found is None or found < least:
        return ""
    return f"predictions agree with those of the round before (kappa {found:.3f})"
