"""The audit at the desk: drawn items one after the other, on the page on which annotators label.

Whoever checks sees the text alone: no labels, no suggestions, no answers. What they find is kept
with who and when; it makes no label and judges nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from goldspan.campaign.auditing import CHECK, last_draw, open_items
from goldspan.campaign.clock import wall_of
from goldspan.protocols import Lease
from goldspan.store import SqlLedger
from goldspan.store.facts import charge, record
from goldspan.store.journal import Entry
from goldspan.store.queries import read_fact, read_records
from goldspan.web.desk import models as m
from goldspan.web.engine import Engine, Watcher
from goldspan.web.errors import Refused
from goldspan.web.models import Given
from goldspan.web.work import MINUTE, Tasks


class Checking:
    """What those who check do; the bodies are those of `goldspan.web.work.Work`."""

    def __init__(
        self, ledger: SqlLedger, engine: Engine | Watcher, tasks: Tasks, clock: Callable[[], int]
    ) -> None:
        self.ledger, self.engine, self.tasks, self.clock = ledger, engine, tasks, clock
        self.hold = round(MINUTE * tasks.inputs.plan.page.lease_minutes)
        self.price = tasks.inputs.plan.prices.check_micro
        self._held: dict[str, tuple[str, int]] = {}

    def progress(self) -> m.AuditNow:
        """Return how many items are drawn and open, and the certificate."""
        drawn, found = last_draw(self.ledger), self.engine.live.certificate
        left = [] if drawn is None else open_items(self.ledger, drawn)
        return m.AuditNow(
            drawn=0 if drawn is None else len(drawn["items"]), open=len(left),
            certificate=found,
        )  # fmt: skip

    def next(self, who: str) -> dict[str, Any]:
        """Return the first open item that nobody else has before them."""
        drawn, now = last_draw(self.ledger), self.clock()
        is_short = self.price > self.ledger.totals().left
        for item in [] if drawn is None or is_short else open_items(self.ledger, drawn):
            holder, until = self._held.get(item, (who, 0))
            if holder != who and until > now:
                continue
            self._held[item] = who, now + self.hold
            lease = Lease(
                item, who, (), taken=now, expires=wall_of(self.clock)() + self.hold, cost=0
            )
            task = self.tasks.show(lease, practice=False)
            return {"state": "task", "task": task, "me": self._me()}
        message = "No drawn item is left to check." if drawn else "No items are drawn yet."
        message = "The money does not pay for another check." if drawn and is_short else message
        return {"state": "done", "message": message, "me": self._me()}

    def submit(self, who: str, by: str, task: str, key: str, answer: Given) -> dict[str, Any]:
        """Keep what somebody found."""
        item = self.tasks.item(who, task)
        self._keep(who, by, key, {"item": item, "labels": self.tasks.labels(item, answer)})
        return {"status": "accepted"}

    def skip(self, who: str, by: str, task: str, key: str, reason: str) -> dict[str, Any]:
        """Keep that somebody cannot tell: the item counts as unknown."""
        item = self.tasks.item(who, task)
        self._keep(who, by, key, {"item": item, "labels": None, "reason": reason})
        return {"status": "skipped"}

    def _keep(self, who: str, by: str, key: str, found: dict[str, Any]) -> None:
        """Keep and pay a check; sent again under its key, it changes nothing."""
        now, (holder, until) = self.clock(), self._held.get(found["item"], ("", 0))
        facts = {"by": by, "time": now, "started": until - self.hold if holder == who else -1}

        def act(entry: Entry) -> None:
            there = read_fact(entry.connection, CHECK, key)
            if there is None:
                price = min(self.price, entry.balance.left)
                if found["labels"] is None or _is_paid(entry, found["item"], by):
                    price = 0
                if price:
                    charge(entry, f"check:{key}", price)
                record(entry, CHECK, key, {**found, **facts, "cost": price})
            elif {name: there.get(name) for name in found} != found:
                raise Refused("conflict", "Another answer was sent under this key.", 409)

        self.ledger.transact(now, act)
        self._held.pop(found["item"], None)
        self.engine.notify()

    def _me(self) -> dict[str, Any]:
        now = self.progress()
        facts = {"done": now.drawn - now.open, "total": now.drawn, "drafts": 0}
        return {**facts, "earned": None, "currency": ""}


def _is_paid(entry: Entry, item: str, by: str) -> bool:
    """Return whether somebody was paid for an item before: that is done once."""
    checks = read_records(entry.connection, CHECK).values()
    return any((one["item"], one["by"]) == (item, by) and one.get("cost") for one in checks)
