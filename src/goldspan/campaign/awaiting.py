"""What a round still waits for, where people answer when they like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from goldspan.campaign.protocols import Waiting
from goldspan.campaign.setting import Setting
from goldspan.protocols import Ledger

HOUR = 3_600_000
"""Milliseconds."""
ENDED = "ended"
"""The kind and name of the record that ends a campaign from outside."""


def missing_answers(ledger: Ledger, items: Sequence[str]) -> dict[str, int]:
    """Count the answers that are missing, by item; items that have enough are left out."""
    asked, slots = set(items), ledger.slots()
    missing = pc.subtract(slots["wanted"], slots["filled"])
    places = pa.table({"item": slots["item"], "missing": missing})
    short = places.filter(pc.greater(places["missing"], 0))
    found = zip(short["item"].to_pylist(), short["missing"].to_pylist(), strict=True)
    return {item: n for item, n in found if item in asked}


def awaited(
    setting: Setting, ledger: Ledger, missing: Mapping[str, int], now: int, where: str
) -> Waiting | None:
    """Return what is awaited; nothing where the money or the time is used up.

    Args:
        setting: The campaign.
        ledger: Where it is kept.
        missing: Answers that are missing, by item.
        now: The campaign's time, in milliseconds.
        where: What to do, in words.
    """
    totals, place = ledger.totals(), setting.pool.place
    # What is reserved now pays for answers that are being given.
    left = totals.left + totals.reserved
    payable = [item for item in missing if setting.costs[place[item]] <= left]
    if not payable or is_over(setting, ledger, now):
        return None
    return Waiting(sum(missing[item] for item in payable), len(payable), where)


def is_over(setting: Setting, ledger: Ledger, now: int) -> bool:
    """Whether the time is used up, or somebody ended the campaign."""
    if ledger.records(ENDED):
        return True
    hours = setting.plan.budget.hours
    if hours is None:
        return False
    return now - next(iter(ledger.events())).time >= hours * HOUR
