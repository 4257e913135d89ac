"""What the desk shows of webhooks: the plan's programs, and the last messages to each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan.campaign.clock import WallTimes
from goldspan.store.programs import FAILED, SENT, WAITING
from goldspan.web.desk import models as m

if TYPE_CHECKING:
    from goldspan.store import SqlLedger
    from goldspan.web.webhooks import Webhooks


def deliveries(webhooks: Webhooks, ledger: SqlLedger) -> m.Deliveries:
    """Return the programs of the plan with their counts, and the last messages."""
    counts, wall = webhooks.counts(), WallTimes(ledger)
    hooks = [
        m.Hook(
            name=hook.called,
            host=str(hook.place.hostname),
            events=list(hook.events),
            waiting=counts.get((hook.called, WAITING), 0),
            sent=counts.get((hook.called, SENT), 0),
            failed=counts.get((hook.called, FAILED), 0),
        )
        for hook in webhooks.hooks
    ]
    messages = [
        m.Delivery(
            number=one.number,
            id=one.name,
            hook=one.hook,
            event=one.event,
            state=one.state,  # type: ignore[arg-type]
            tries=one.tries,
            made=wall(one.made),
            changed=wall(one.changed),
            due=wall(one.due) if one.state == WAITING else None,
            status=one.status,
            why=one.why,
        )
        for one in webhooks.deliveries()
    ]
    return m.Deliveries(hooks=hooks, messages=messages)
