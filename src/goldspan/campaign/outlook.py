"""The default step "stop": what more labels would bring, and whether the campaign ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import default_rng
from numpy.typing import NDArray

from goldspan.campaign.inputs import CampaignInputs
from goldspan.campaign.model import cross_predict
from goldspan.campaign.plan import Plan
from goldspan.campaign.protocols import Decision, Evaluation, Labelled, Labels, Measure, Model
from goldspan.campaign.stopping import (
    LEAST_POINTS,
    NEXT,
    RISING,
    Curve,
    Round,
    Z,
    ahead,
    curve_of,
    lower_end,
    pool_gain,
    told_ahead,
)
from goldspan.money import MICRO, from_micro
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
    """Decide to stop, with nothing that is still to be spent."""
    return Decision(stop=True, rule=rule, why=why, facts=facts and {**facts, "end": None})


def outlook(plan: Plan, rounds: Sequence[Round]) -> dict[str, Any]:
    """Return what more labels would bring, beside more answers about the labels that there are."""
    last, curve = rounds[-1], curve_of(rounds, plan.seed)
    each = last["spent"] / max(1, last["items"])
    answers = last["answers"] / max(1, last["items"])  # gold questions among them
    facts: dict[str, Any] = {"curve": None, "next": None, "per_money": None}
    facts |= {"ask_again": last["ask_again"], "end": _end(plan, rounds)}
    if curve is None:
        return facts
    facts["curve"] = {"a": curve.a, "b": curve.b, "c": curve.c}
    low, high = curve.interval(curve.last + NEXT)
    facts["next"] = {
        "items": NEXT, "score": curve.at(curve.last + NEXT), "low": low, "high": high,
        "gain": curve.gain(NEXT), "cost": round(each * NEXT), "answers": round(answers * NEXT),
    }  # fmt: skip
    facts["per_money"] = _per_money(plan, last, curve)
    return facts


def too_few(by: str, rounds: Sequence[Round]) -> str:
    """Say why nothing is forecast, and what to draw."""
    n = sum(one["control"] is not None for one in rounds)
    if not any(one["score"] for one in rounds):
        return "none, as no model could be measured"
    if not n and "random" not in by:
        return 'none, as nothing is drawn at random: add "10% random" to select.by'
    return (
        f"none: it takes {LEAST_POINTS} rounds with a score on items drawn at random (at least "
        f"{LEAST_CONTROL} of them), and there {'is' if n == 1 else 'are'} {n:,}"
    )


def _end(plan: Plan, rounds: Sequence[Round]) -> dict[str, Any] | None:
    """Forecast what it takes until the rule `target` holds, in money or answers."""
    target, last = plan.stop.target, rounds[-1]
    if target is None or plan.stop.certified is not None:
        return None
    curve = curve_of(rounds, plan.seed, RISING)
    if curve is None or last["control"] is None:
        return {"text": too_few(plan.select.by, rounds)}
    batch, most, rng = plan.select.batch, last["pool"] - last["items"], default_rng(plan.seed)
    more = np.append(np.arange(batch, most, batch), most)
    holds = _holds(plan, rounds, curve, last["items"] + more)
    is_there = holds.any(axis=1)
    # An item costs what one of the last round did, but for a change as from round to round so far
    used = np.array([[one["spent" if plan.is_paid else "answers"], one["items"]] for one in rounds])
    cost, items = np.diff(used, axis=0).T
    rate = np.maximum(cost[items > 0] / items[items > 0], 1)
    each = rate[-1] * rng.choice(rate[1:] / rate[:-1], len(holds))
    amounts = each * np.where(is_there, more[holds.argmax(axis=1)], most)
    left = last["cap"] - last["spent"] if plan.is_paid else np.inf
    found = ahead(np.minimum(amounts, left), ~is_there | (amounts > left))
    if not plan.is_paid:
        return {**found, "text": told_ahead(found, lambda x: f"{x:,.0f}", " answers")}
    unit = f" {plan.prices.currency}".rstrip()
    return {**found, "text": told_ahead(found, lambda x: from_micro(int(round(x, -4))), unit)}


def _holds(plan: Plan, rounds: Sequence[Round], curve: Curve, n: Any) -> NDArray[np.bool_]:
    """Draw whether the rule `target` holds after rounds with n items, bool [n_draws, n_rounds]."""
    target, last, often = plan.stop.target or 0.0, rounds[-1], plan.stop.rounds
    value, low, high = (last["control"][side] for side in ("value", "low", "high"))
    # What is measured on ever more of the same items goes on from what was measured
    grown = np.append(1, n / last["items"]) ** (plan.evaluate.by != "test")
    told = grown / max((high - low) / (2 * Z), 1e-3) ** 2
    steps = default_rng(plan.seed).standard_normal((len(curve.draws), len(n)))
    noise = (steps * np.sqrt(np.diff(told))).cumsum(axis=1) / told[1:]
    a, b, c = curve.draws.T[:, :, None]
    ends = np.minimum(a - b * n**-c, 1) + noise - (value - low) * np.sqrt(told[0] / told[1:])
    before = range(len(rounds) + 2 - often, len(rounds) + 1)
    known = [k > 0 and (lower_end(rounds[:k]) or 0.0) >= target for k in before]
    holds = np.hstack([np.broadcast_to(known, (len(a), often - 1)), ends >= target])
    in_a_row = np.lib.stride_tricks.sliding_window_view(holds, often, axis=1)
    return np.asarray(in_a_row.all(axis=2), np.bool_)


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
