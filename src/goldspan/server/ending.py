"""The requester ends a campaign: the round closes with what there is, and that was the last one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from goldspan.campaign import Decision
from goldspan.campaign.awaiting import ENDED
from goldspan.campaign.protocols import Stop
from goldspan.campaign.stopping import ended, outlook
from goldspan.protocols import Ledger

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
