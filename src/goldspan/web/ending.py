"""The requester ends a campaign: the round closes with what there is, and that was the last one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from goldspan.campaign import Decision
from goldspan.campaign.clock import WallTimes
from goldspan.campaign.crowds import ENDED
from goldspan.campaign.inputs import CampaignInputs
from goldspan.campaign.outlook import ended, outlook
from goldspan.campaign.protocols import Stop
from goldspan.errors import InputError
from goldspan.protocols import Ledger
from goldspan.store import SqlLedger
from goldspan.web.security.sessions import DAY

RULE = "requester"


@dataclass(frozen=True)
class Ending:
    """The plan's stopping rules, and the requester before them.

    Attributes:
        rules: The plan's.
        plan: The plan.
        ledger: Where the requester's word is kept.
    """

    rules: Stop
    plan: Any
    ledger: Ledger

    def decide(self, rounds: Sequence[Mapping[str, Any]]) -> Decision:
        """Decide after a round."""
        said = self.ledger.records(ENDED)
        if said:
            return ended(RULE, "the requester ended it", outlook(self.plan, rounds))
        return self.rules.decide(rounds)


def end(ledger: Ledger, now: int) -> None:
    """Keep that the requester ends the campaign; said again, it changes nothing."""
    if not ledger.records(ENDED):
        ledger.record(ENDED, ENDED, {"by": RULE}, now)


def is_expired(inputs: CampaignInputs, ledger: SqlLedger, now: int) -> bool:
    """Whether the plan's `privacy.keep_days` since the end are over, by the wall clock's `now`.

    Raises:
        InputError: The plan has no such key.
    """
    days = inputs.plan.privacy.keep_days
    if days is None:
        raise InputError(
            "the plan does not say for how long people are kept: set keep_days in its section "
            "[privacy], for example keep_days = 90; nothing was changed"
        )
    stops = list(ledger.records("stop").values())
    end = ledger.last_time("stop") if stops and stops[-1]["stop"] else None
    return end is not None and now >= WallTimes(ledger)(end) + round(days * DAY)
