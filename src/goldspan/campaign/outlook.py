"""The default step "stop": what more labels would bring, and whether the campaign ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from goldspan.campaign.curve import NEXT, Curve, Round, curve_of, pool_gain
from goldspan.campaign.plan import Plan
from goldspan.campaign.protocols import Decision
from goldspan.campaign.reaching import way_to_target
from goldspan.money import MICRO


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
            whys = [rule.holds(rounds[:end], self.plan.seed) for end in ends]
            if len(whys) == n and all(whys):
                often = "" if rule.is_hard else f", {n} rounds in a row"
                return ended(rule.name, whys[-1] + often, facts)
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
    if plan.stop.target is not None:
        items = curve.items_to(plan.stop.target)
        more = None if items is None else max(0.0, items - last["items"])
        facts["to_target"] = {
            "reachable": items is not None,
            "items": more if more is None or more < 1e9 else None,
            "cost": None if more is None or more >= 1e9 else round(each * more),
            "answers": None if more is None or more >= 1e9 else round(answers * more),
            "chance": curve.reaches(plan.stop.target),
            "end": _end(plan, rounds, plan.stop.target),
        }
    return facts


def _end(plan: Plan, rounds: Sequence[Round], target: float) -> dict[str, Any] | None:
    unit = "spent" if plan.is_paid else "answers"
    found = way_to_target(rounds, target, in_a_row=plan.stop.rounds, unit=unit, seed=plan.seed)
    return None if found is None else found.to_dict()


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
