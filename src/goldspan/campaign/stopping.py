"""The default step "stop": a goal that is reached, gains too dear, predictions that stay the same.

Money, time and the pool are hard limits: the loop ends at once. The soft rules must hold for some
rounds in a row. With every decision goes a forecast, whether or not a rule asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from goldspan.campaign.evaluation import Z
from goldspan.campaign.forecast import Curve, fit_curve, pool_gain
from goldspan.campaign.plan import Plan
from goldspan.campaign.protocols import Decision
from goldspan.money import MICRO

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
    """Say what more labels would bring, beside more answers about the labels that there are.

    Returns:
        Plain values: `curve` (None while there are too few points), `next` (of the next 100 items
        the score, its interval, gain, cost and answers), `ask_again` (of 100 answers to doubtful
        items the tokens they set right, and the cost), `per_money` (both in one unit: the rise of
        the share of right labels in the whole pool per unit of money; None where it is not known),
        and `to_target`.
    """
    last, curve = rounds[-1], curve_of(plan, rounds)
    each = last["spent"] / max(1, last["items"])
    answers = last["answers"] / max(1, last["items"])  # control questions among them
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
    """Give the reason if the lower bound has reached the target, "" otherwise."""
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
