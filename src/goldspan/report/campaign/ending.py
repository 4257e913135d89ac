"""The rules that can stop a campaign: their limits, and how near they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from goldspan.money import MICRO
from goldspan.report.campaign.numbers import Numbers, with_unit
from goldspan.report.wording import count, percent, plural


@dataclass(frozen=True)
class Limit:
    """A rule as a row of the table.

    Attributes:
        rule: Its name.
        limit: When it stops the campaign, in words.
        now: How far it is, "–" while it is not known.
        fired: Whether it stopped the campaign.
    """

    rule: str
    limit: str
    now: str
    fired: bool


def limits(record: Numbers) -> list[Limit]:
    """List the rules that the plan sets, the hard ones first."""
    fired = "" if record.stop is None else record.stop["rule"]
    rows = [*_hard(record), *_soft(record)]
    return [Limit(rule, limit, now, rule == fired) for rule, limit, now in rows]


def _hard(record: Numbers) -> Iterator[tuple[str, str, str]]:
    plan, money, counts = record.plan, record.money, record.counts
    hours = plan["budget"]["hours"]
    last = record.rounds[-1] if record.rounds else None
    if money is not None:
        cap = f"{with_unit(record, money['cap'])} at most"
        yield "money", cap, with_unit(record, money["spent"])
    picked = sum(sum(one.values()) for one in record.picks.values())
    own = counts["pool"] - counts["control_items"]
    yield "pool", f"{plural(own, 'item')} to label", f"{count(picked)} picked"
    if hours is not None:
        now = "\u2013" if last is None else f"{last['hours']:,.1f} hours"
        yield "time", f"{hours:g} hours at most", now
    if plan["stop"]["most_rounds"] is not None:
        most = plural(plan["stop"]["most_rounds"], "round")
        yield "rounds", f"{most} at most", count(len(record.rounds))


def _soft(record: Numbers) -> Iterator[tuple[str, str, str]]:
    rules = record.plan["stop"]
    last = record.rounds[-1] if record.rounds else {}
    often = f"{plural(rules['rounds'], 'round')} in a row"
    if rules["target"] is not None:
        best = last.get("control") or last.get("score")
        now = "\u2013" if best is None else percent(best["low"])
        yield "target", f"lower bound of the score {percent(rules['target'])}, {often}", now
    if rules["least_gain"] is not None:
        limit = f"less than {100 * rules['least_gain']:g} points per unit of money, {often}"
        yield "gain", limit, _gain(record)
    if rules["stable"] is not None:
        now = "\u2013" if last.get("stable") is None else f"{last['stable']:.3f}"
        yield "stable", f"κ of two rounds' predictions {rules['stable']:g}, {often}", now


def _gain(record: Numbers) -> str:
    facts = list(record.forecasts.values())[-1] if record.forecasts else {}
    ahead = facts.get("next")
    if ahead is None or not ahead["cost"]:
        return "\u2013"
    return f"{100 * ahead['gain'] * MICRO / ahead['cost']:.2g} points"
