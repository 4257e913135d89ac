"""The default step "stop": what more labels would bring, and whether the campaign ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from goldspan.campaign.inputs import CampaignInputs
from goldspan.campaign.model import cross_predict
from goldspan.campaign.plan import Plan
from goldspan.campaign.protocols import Decision, Evaluation, Labelled, Labels, Measure, Model
from goldspan.campaign.stopping import (
    LEAST_POINTS,
    NEXT,
    Curve,
    Round,
    Z,
    curve_of,
    pool_gain,
)
from goldspan.money import MICRO
from goldspan.spans import score


@dataclass(frozen=True)
class CampaignStopping:
    """Ends a campaign when its time is over, or by a rule of the plan (`campaign/stopping.py`)."""

    plan: Plan

    def decide(self, rounds: Sequence[Round]) -> Decision:
        """Decide after a round."""
        facts = outlook(self.plan, rounds)
        stop, hours, last = self.plan.stop, self.plan.budget.hours, rounds[-1]
        if hours is not None and last["hours"] >= hours:
            return ended("time", f"{last['hours']:.1f} hours are over", facts)
        for rule in stop.rules:
            n = 1 if rule.is_hard else stop.rounds
            ends = range(max(1, len(rounds) - n + 1), len(rounds) + 1)
            whys = [rule.holds(rounds[:end]) for end in ends]
            if len(whys) == n and all(whys):
                often = "" if rule.is_hard else f", {n} rounds in a row"
                return ended(rule.name, whys[-1] + often, facts)
        audited = last.get("certificate")
        if audited and audited["missing"]:  # nobody makes the checks, and answers do not help
            return ended("checks", audited["goal"], facts)
        return Decision(stop=False, facts=facts)


def ended(rule: str, why: str, facts: Mapping[str, Any]) -> Decision:
    """Decide to stop."""
    return Decision(stop=True, rule=rule, why=why, facts=facts)


def outlook(plan: Plan, rounds: Sequence[Round]) -> dict[str, Any]:
    """Return what more labels would bring, beside more answers about the labels that there are."""
    last, curve = rounds[-1], curve_of(rounds, plan.seed)
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
    if plan.stop.target is not None and plan.stop.certified is None:
        items = curve.items_to(plan.stop.target)
        more = None if items is None else max(0.0, items - last["items"])
        way = way_to_target(
            rounds, plan.stop.target, in_a_row=plan.stop.rounds,
            unit="spent" if plan.is_paid else "answers", seed=plan.seed,
        )  # fmt: skip
        facts["to_target"] = {
            "reachable": items is not None,
            "items": more if more is None or more < 1e9 else None,
            "cost": None if more is None or more >= 1e9 else round(each * more),
            "answers": None if more is None or more >= 1e9 else round(answers * more),
            "chance": curve.reaches(plan.stop.target),
            "end": None if way is None else asdict(way),
        }
    return facts


def _per_money(plan: Plan, last: Round, curve: Curve) -> dict[str, float] | None:
    """Compare new items and more answers by what they do to the labels of the whole pool."""
    # Single labels only
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


# --------------------------------------------------------------------------------------------------
# How much more it takes until a campaign ends by its target, with an interval.
#
# The rule `stop.target` ends a campaign when the lower bound of its measured score has been at the
# target for some rounds in a row. What will be spent then is drawn from what the rounds so far
# leave open:
#
# * The score follows s(x) = a - (a - s_1) g(x), x what was spent (or answered) so far, with flat
#   priors on a and s_1 (0 <= s_1 <= a <= 1). What is missing falls by a power law, g = ((x + d) /
#   (x_1 + d))^-c, or by Weibull growth, g = exp(-((x - x_1) / t)^k): a power law holds for much
#   data, and through the first rounds, in which a model begins to learn faster and faster, it
#   levels off too soon (Viering & Loog 2023 compare such curves). Given a, g and the noise it is
#   linear: the posterior is a grid of them with normal distributions of s_1 that are cut off at its
#   bounds.
# * A measured score differs from s(x) by noise that goes on from round to round, as rounds are
#   measured on the same items and on more of them: with v_r the squared standard error of round r,
#   Cov(r, q) = rho min(v_r, v_q) + (1 - rho + tau) v_r [r = q]. The first term is what items that
#   two rounds share have in common, tau the luck of training. Both are unknown: a grid of them is
#   weighted by the likelihood of the scores, as a and g are.
# * Rounds to come are measured by the curve of a draw, plus the noise that its noise so far leaves
#   open. Errors that last shift every later score alike: they do not widen the interval, since it
#   is the measured score that the rule looks at.

LEVEL = 0.9
"""Of the interval."""
SHARED = (0.0, 0.3, 0.6, 0.9, 0.97)
"""Shares of the noise that last, which are tried."""
LUCK = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Luck of training, as shares of the squared standard error, which are tried: where many items
measure, it is the larger part."""
ENDS = np.linspace(0.0, 1.0, 201)
"""Where curves may end (a): these are tried."""
POWERS = [(c, d) for d in (0.0, 0.3) for c in np.geomspace(0.05, 4.0, 20)]
"""Powers c of the law, and offsets d as shares of what was spent, that are tried."""
GROWTHS = [(k, t) for k in (0.5, 1.0, 1.5, 2.0) for t in np.geomspace(0.2, 10.0, 10)]
"""Shapes k of Weibull growth, and times t as shares of what was spent, that are tried."""
DRAWS = 4_000
FARTHEST = 20
"""What takes so many times as much as everything so far is too far to be forecast."""
MOST_ROUNDS = 400
"""More rounds than these are not looked ahead."""
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class WayToTarget:
    """What it takes, beyond what was spent, until the rule `stop.target` ends a campaign."""

    low: float | None  # With a probability of 5 % it takes no more; 0 if the rule holds already
    middle: float | None  # As likely less as more
    high: float | None  # With a probability of 5 % it takes more; None as for `low`
    chance: float  # Probability that it is reached at all


def way_to_target(
    rounds: Sequence[Round],  # The facts of all rounds so far
    target: float,  # The target, 0 to 1
    *,
    in_a_row: int = 1,  # Rounds that the lower bound must hold
    unit: str = "spent",  # What is forecast: "spent" (millionths) or "answers"
    seed: int = 0,
) -> WayToTarget | None:
    """Forecast what it takes until the measured score's lower bound has reached a target."""
    known = [one for one in rounds if one["control"] is not None]
    spent = np.array([float(one[unit]) for one in known])
    if len(np.unique(spent[spent > 0])) < LEAST_POINTS or known[-1] is not rounds[-1]:
        return None
    known, spent = [one for one, x in zip(known, spent, strict=True) if x > 0], spent[spent > 0]
    seen = _Measured.of(known, spent)
    ahead = seen.ahead(known)
    holds = np.array([one["control"]["low"] >= target for one in known])
    if holds[-in_a_row:].all() and len(holds) >= in_a_row:
        return WayToTarget(0.0, 0.0, 0.0, 1.0)
    if not len(ahead.spent):
        return WayToTarget(None, None, None, 0.0)
    scores = _drawn(seen, ahead, np.random.default_rng(seed))
    last = holds[max(0, len(holds) + 1 - in_a_row) :]
    before = np.broadcast_to(last, (len(scores), len(last)))
    every = np.concatenate([before, scores - ahead.below >= target], axis=1)
    first = _first_run(every, in_a_row) - before.shape[1]
    more = np.append(ahead.spent - spent[-1], np.inf)[np.minimum(first, len(ahead.spent))]
    more.sort()
    tail, n = (1 - LEVEL) / 2, len(more) - 1
    ends = (more[int(tail * n)], more[n // 2], more[n - int(tail * n)])
    low, middle, high = (float(x) if np.isfinite(x) else None for x in ends)
    return WayToTarget(low, middle, high, float(np.isfinite(more).mean()))


@dataclass(frozen=True)
class _Measured:
    """Rounds that were measured, or will be."""

    spent: Floats  # [n_rounds], so far
    score: Floats  # [n_rounds]; nan for rounds to come
    variance: Floats  # [n_rounds], squared standard errors of the scores
    below: Floats  # [n_rounds], from the score down to its lower bound

    @classmethod
    def of(cls, rounds: Sequence[Round], spent: Floats) -> _Measured:
        rows: list[Mapping[str, float]] = [one["control"] for one in rounds]
        value, low, high = (np.array([row[k] for row in rows]) for k in ("value", "low", "high"))
        return cls(spent, value, np.maximum((high - low) / (2 * Z), 1e-3) ** 2, value - low)

    def ahead(self, rounds: Sequence[Round]) -> _Measured:
        """Return the rounds to come, if every one takes as much as those so far on average."""
        n, x = len(self.spent), self.spent
        items, size = [one["items"] for one in rounds], rounds[-1].get("pool", np.inf)
        sample = [one["control"]["n"] for one in rounds]
        step = (x[-1] - x[0]) / (n - 1)
        per_round = (items[-1] - items[0]) / (n - 1)
        most = min(MOST_ROUNDS, int(FARTHEST * x[-1] / step))
        if per_round > 0 and np.isfinite(size):  # a last round takes what is left of the pool
            most = min(most, int(np.ceil((size - items[-1]) / per_round)))
        later = np.arange(1, most + 1)
        larger = 1 + later * (sample[-1] - sample[0]) / (n - 1) / sample[-1]
        return _Measured(
            x[-1] + step * later, np.full(most, np.nan),
            self.variance[-1] / larger, self.below[-1] / np.sqrt(larger),
        )  # fmt: skip


def _covariance(one: Floats, other: Floats, shared: float, luck: float) -> Floats:
    """Return the covariance of the noise of rounds by their variances; `one is other`: the same."""
    found = shared * np.minimum(one[:, None], other[None])
    if one is other:
        found = found + np.diag((1 - shared + luck) * one)
    return np.asarray(found)


def _drawn(seen: _Measured, ahead: _Measured, rng: np.random.Generator) -> Floats:
    """Draw the scores of rounds to come, float64 [n_draws, n_ahead]."""
    bend, later = _bends(seen.spent, seen.spent), _bends(seen.spent, ahead.spent)
    noises = [(rho, tau) for rho in SHARED for tau in LUCK]
    fits = [_fit(bend, seen.score, _covariance(seen.variance, seen.variance, *n)) for n in noises]
    logs = np.stack([fit[0] for fit in fits])  # [n_noises, n_shapes, n_ends]
    weights = np.exp(logs - logs.max())
    counts = rng.multinomial(DRAWS, (weights / weights.sum()).ravel()).reshape(len(noises), -1)
    found = []
    for count, noise, (_, mean, spread) in zip(counts, noises, fits, strict=True):
        shape, end = np.divmod(np.repeat(np.arange(len(count)), count), len(ENDS))
        a, middle, scale = ENDS[end], mean[shape, end], spread[shape]
        cuts = ndtr((0 - middle) / scale), ndtr((a - middle) / scale)
        first = middle + scale * ndtri(cuts[0] + rng.random(len(a)) * (cuts[1] - cuts[0]))
        first = np.clip(first, 0, a)
        off = seen.score - (a[:, None] - (a - first)[:, None] * bend[shape])
        past = _covariance(seen.variance, seen.variance, *noise)
        across = _covariance(ahead.variance, seen.variance, *noise)
        coefficients = np.linalg.solve(past, across.T)  # [n_rounds, n_ahead]
        left = _covariance(ahead.variance, ahead.variance, *noise) - across @ coefficients
        root = np.linalg.cholesky(left + 1e-12 * np.eye(len(left)))
        noisy = off @ coefficients + rng.standard_normal((len(a), len(left))) @ root.T
        found.append(a[:, None] - (a - first)[:, None] * later[shape] + noisy)
    return np.concatenate(found)


def _bends(seen: Floats, spent: Floats) -> Floats:
    """Return the share of a - s_1 that is missing by every shape, float64 [n_shapes, n_rounds]."""
    first, last = seen[0], seen[-1]
    laws = [((spent + d * last) / (first + d * last)) ** -c for c, d in POWERS]
    return np.stack(laws + [np.exp(-(((spent - first) / (t * last)) ** k)) for k, t in GROWTHS])


def _fit(bend: Floats, score: Floats, covariance: Floats) -> tuple[Floats, Floats, Floats]:
    """Return what scores say of curves under a noise."""
    root = np.linalg.cholesky(covariance)
    z = np.linalg.solve(root, bend.T).T  # whitened, [n_shapes, n_rounds]
    one, y = (np.linalg.solve(root, v) for v in (np.ones(len(score)), score))
    up = one - z  # what a counts; y - a up is left for s_1 z
    precision = (z**2).sum(axis=1)
    along = (z @ y)[:, None] - ENDS * (z * up).sum(axis=1)[:, None]
    mean, spread = along / precision[:, None], 1 / np.sqrt(precision)
    square = y @ y - 2 * ENDS * (up @ y)[:, None] + ENDS**2 * (up**2).sum(axis=1)[:, None]
    inside = ndtr((ENDS - mean) / spread[:, None]) - ndtr(-mean / spread[:, None])
    log = (
        -(square - along * mean) / 2 + np.log(spread)[:, None] + np.log(np.maximum(inside, 1e-300))
    )
    return log - np.log(np.diag(root)).sum(), mean, spread


def _first_run(holds: Bools, length: int) -> NDArray[np.int64]:
    """Return the last place of the first run of so many, int64 [n]; the width if there is none."""
    n, width = holds.shape
    if width < length:
        return np.full(n, width)
    total = np.concatenate([np.zeros((n, 1), np.int64), holds.cumsum(axis=1)], axis=1)
    full = total[:, length:] - total[:, : width + 1 - length] == length
    found = np.where(full.any(axis=1), full.argmax(axis=1) + length - 1, width)
    return np.asarray(found, np.int64)


# --------------------------------------------------------------------------------------------------
# The default step "evaluate": cross-validation, a test file, or the items drawn at random.

LEAST_CONTROL = 8
"""Fewer items that were drawn at random measure nothing."""
RESAMPLES = 200


@dataclass(frozen=True)
class Evaluating:
    """Measures as the plan says."""

    inputs: CampaignInputs

    def measure(self, model: Model, labelled: Labelled) -> Evaluation:
        """Measure a model, and find the items that it gets wrong if the plan wants them."""
        by = self.inputs.plan.evaluate.by
        if by == "cv":
            return self._cross(model, labelled)
        found = self._test(model, labelled) if by == "test" else self._slice(model, labelled)
        if not self.inputs.plan.select.errors:
            return found
        return replace(found, wrong=self._wrong(model, labelled, is_slice=by == "slice"))

    def _wrong(self, model: Model, labelled: Labelled, *, is_slice: bool) -> list[bool | None]:
        """Find the wrong items by cross-validation; a slice that measures is left out."""
        out = labelled.is_random & is_slice
        seen = np.flatnonzero(~out).tolist()
        labels, folds = [labelled.labels[n] for n in seen], self.inputs.plan.evaluate.folds
        guesses = cross_predict(model, self.inputs.pool, labelled.items[seen], labels, folds)
        found: list[bool | None] = [None] * len(out)
        for n, guess, label in zip(seen, guesses, labels, strict=True):
            found[n] = differs(guess, label)
        return found

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
        wrong = [differs(guess, own) for guess, own in zip(found, labelled.labels, strict=True)]
        return Evaluation(measures[0], measures[1], wrong)

    def _score(self, truth: Labels, found: Labels) -> Measure:
        return measured(truth, found, self.inputs.codec.encoding, self.inputs.plan.seed)


def differs(guess: Sequence[str] | None, label: Sequence[str]) -> bool | None:
    """Return whether a guess is wrong; None where there is none."""
    return None if guess is None else list(guess) != list(label)


def measured(truth: Labels, found: Labels, encoding: str, seed: int = 0) -> Measure:
    """Compare labels: F1 of spans with a bootstrap interval by item; accuracy of single labels.

    The interval of an accuracy is Wilson's (1927).
    """
    if encoding == "PLAIN":
        from scipy.stats import binomtest

        right = sum(list(a) == list(b) for a, b in zip(truth, found, strict=True))
        interval = binomtest(right, len(truth)).proportion_ci(method="wilson")
        return Measure(right / len(truth), float(interval.low), float(interval.high), len(truth))
    got = score(truth, found, encoding=encoding, bootstrap=RESAMPLES, random_state=seed)
    low, high = got.interval or (0.0, 1.0)
    return Measure(got.f1, low, high, len(truth))


def kappa(first: Sequence[str], second: Sequence[str]) -> float:
    """Return Cohen's kappa of two lists of labels; 1 where chance alone explains all."""
    n = len(first)
    same = sum(a == b for a, b in zip(first, second, strict=True)) / n
    labels = sorted({*first, *second})  # in a fixed order, for the sum's last bits
    by_chance = sum(first.count(one) * second.count(one) for one in labels) / n**2
    return 1.0 if by_chance >= 1 else (same - by_chance) / (1 - by_chance)
