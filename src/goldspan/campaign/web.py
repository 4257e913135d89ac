"""The source "web": people answer in a browser, whenever they like.

What is asked of whom is decided while they work (`goldspan.server`); this step only says whether a
round's places are filled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from goldspan.campaign.awaiting import awaited, missing_answers
from goldspan.campaign.clock import open_clock
from goldspan.campaign.protocols import Waiting
from goldspan.campaign.setting import Setting
from goldspan.protocols import Ledger


class Web:
    """People in a browser.

    Args:
        setting: The campaign.
        ledger: Where it is kept.
        now: The campaign's clock; opened when it is first asked by default.
    """

    def __init__(
        self, setting: Setting, ledger: Ledger, now: Callable[[], int] | None = None
    ) -> None:
        self.setting, self.ledger, self._now = setting, ledger, now

    def now(self) -> int:
        """Return the campaign's time."""
        if self._now is None:
            self._now = open_clock(self.ledger)
        return self._now()

    def collect(self, name: str, items: Sequence[str]) -> Waiting | None:
        """Say what is missing; nothing where the money or the time is used up."""
        del name
        self.ledger.expire(self.now())
        missing = missing_answers(self.ledger, items)
        where = "people answer in their browsers: goldspan serve"
        return awaited(self.setting, self.ledger, missing, self.now(), where)
