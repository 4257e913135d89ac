"""The source "web": people answer in a browser, whenever they like.

What is asked of whom is decided while they work (`karat.server`); this step only says whether a
round's places are filled.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from karat.campaign.protocols import Waiting
from karat.campaign.setting import Setting
from karat.protocols import Ledger

HOUR = 3_600_000
"""Milliseconds."""
ENDED = "ended"
"""The kind and name of the record that ends a campaign from outside."""


def wall_clock() -> int:
    """Give milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Web:
    """People in a browser.

    Args:
        setting: The campaign.
        ledger: Where it is kept.
        now: The clock, milliseconds since 1970.
    """

    def __init__(
        self, setting: Setting, ledger: Ledger, now: Callable[[], int] = wall_clock
    ) -> None:
        self.setting, self.ledger, self._now = setting, ledger, now

    def now(self) -> int:
        """Give the time of the clock."""
        return self._now()

    def collect(self, name: str, items: Sequence[str]) -> Waiting | None:
        """Say what is missing; nothing where the money or the time is used up."""
        del name
        self.ledger.expire(self.now())
        missing = self._missing(items)
        totals = self.ledger.totals()
        left = totals.left + totals.reserved
        payable = [item for item in missing if self._cost[item] <= left]
        if not payable or self.is_over():
            return None
        n = sum(missing[item] for item in payable)
        return Waiting(n, len(payable), "people answer in their browsers")

    def is_over(self) -> bool:
        """Whether the time is used up, or somebody ended the campaign."""
        if self.ledger.records(ENDED):
            return True
        hours = self.setting.plan.budget.hours
        if hours is None:
            return False
        begin = next(iter(self.ledger.events())).time
        return self.now() - begin >= hours * HOUR

    def _missing(self, items: Sequence[str]) -> dict[str, int]:
        asked = set(items)
        rows = [row for row in self.ledger.slots().to_pylist() if row["item"] in asked]
        found = {row["item"]: row["wanted"] - row["filled"] for row in rows}
        return {item: n for item, n in found.items() if n > 0}

    @cached_property
    def _cost(self) -> Mapping[str, int]:
        return dict(zip(self.setting.ids, self.setting.costs.tolist(), strict=True))
