"""What every worker has done, kept in memory; at the start it is read from the ledger."""

from __future__ import annotations

import threading
import time
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from goldspan.campaign import Setting
from goldspan.campaign.control import Tested, tested
from goldspan.campaign.judging import DECISION
from goldspan.protocols import Receipt
from goldspan.store import SqlLedger
from goldspan.store.answers import CHANGED

BAR = "bar"
"""Kind of the records of who was barred by the campaign, and why."""
GOLD = "adjudicated"
"""Kind of the records of items whose labels the requester decided."""
TEST, KEEP, DROP = "test", "keep", "drop"
"""What a requester decides about a worker."""
FRESH = 1.0
"""Seconds after which it is looked again whether somebody was forgotten."""
Labels = Sequence[str | None]


@dataclass
class Person:
    """What one worker has done.

    Attributes:
        control: Control questions that were answered, in order, whether the answer counts or not.
        right: Of each of them, how much was right in the first answer: a test is decided by it,
            whatever is changed afterwards.
        passed: Control questions that the worker passed on: others are asked instead.
        regular: Answers to other items.
        counting: Answers that count, control questions among them.
        drafts: Answers that are kept and do not count.
        earned: In millionths of the currency unit.
        given: Places in the pool of the items with an answer that counts, in order.
    """

    control: list[str] = field(default_factory=list)
    right: list[Tested] = field(default_factory=list)
    passed: set[str] = field(default_factory=set)
    regular: int = 0
    counting: int = 0
    drafts: int = 0
    earned: int = 0
    given: array[int] = field(default_factory=lambda: array("q"))


class People:
    """All workers of a campaign; safe to use from several threads.

    Args:
        setting: The campaign.
        ledger: Where it is kept.
    """

    def __init__(self, setting: Setting, ledger: SqlLedger) -> None:
        self.setting, self.ledger = setting, ledger
        self.lock = threading.Lock()
        self._known: dict[str, Person] = {}
        self._asked, self._n_decisions = Counter[str](), 0
        self._n_forgotten, self._looked = ledger.n_forgotten, time.monotonic()
        self._read()

    def _read(self) -> None:
        """Read what everybody has done."""
        setting, ledger = self.setting, self.ledger
        self._known = {}
        labels: dict[tuple[str, str], Labels | None] = {}
        for item in setting.control:
            for row in ledger.given(item):
                labels.setdefault((row.item, row.worker), row.labels)
        for row in ledger.given():
            if row.status == CHANGED:  # its first version was counted, and is paid with it
                self._known[row.worker].earned += row.cost
                continue
            given, counts = labels.get((row.item, row.worker)), row.counts or row.is_replaced
            self._add(row.worker, row.item, given, counts=counts, cost=row.cost)
        for skip in ledger.skipped():
            if skip.item in setting.control:
                self._known.setdefault(skip.worker, Person()).passed.add(skip.item)

    def _look(self) -> None:
        """Forget who was forgotten, perhaps by another process, a second later at most."""
        if time.monotonic() - self._looked < FRESH:
            return
        self._looked, n_forgotten = time.monotonic(), self.ledger.n_forgotten
        if n_forgotten != self._n_forgotten:
            self._n_forgotten, self._n_decisions = n_forgotten, -1
            self._read()

    def __getitem__(self, worker: str) -> Person:
        """Give what a worker has done; nothing for a new one."""
        with self.lock:
            self._look()
            return self._known.setdefault(worker, Person())

    def all(self) -> dict[str, Person]:
        """Give everybody who was seen."""
        with self.lock:
            self._look()
            return dict(self._known)

    def took(self, worker: str, item: str, labels: Labels, receipt: Receipt) -> Person:
        """Count an answer that was not counted before, and give the worker."""
        with self.lock:
            self._add(worker, item, labels, counts=receipt.counts, cost=receipt.cost)
            return self._known[worker]

    def passed(self, worker: str, item: str) -> None:
        """Hear that a worker passed an item on."""
        if item in self.setting.control:
            with self.lock:
                self._known.setdefault(worker, Person()).passed.add(item)

    def tests(self, worker: str) -> int:
        """Count the further control questions that the requester asked of a worker."""
        n_decisions = self.ledger.count(DECISION)
        if n_decisions != self._n_decisions:
            asked: Counter[str] = Counter()
            for row in self.ledger.records(DECISION).values():
                asked[row["worker"]] += row["questions"] if row["verdict"] == TEST else 0
            self._asked, self._n_decisions = asked, n_decisions
        return self._asked[worker]

    def why_barred(self, worker: str) -> str | None:
        """Say why a worker is asked nothing more, None if they are asked."""
        if not self.ledger.is_barred(worker):
            return None
        return str((self.ledger.fact(BAR, worker) or {}).get("why", ""))

    def _add(
        self,
        worker: str,
        item: str,
        labels: Sequence[str | None] | None,
        *,
        counts: bool,
        cost: int,
    ) -> None:
        person = self._known.setdefault(worker, Person())
        person.counting += counts
        person.drafts += not counts
        person.earned += cost
        place = self.setting.pool.place.get(item)  # None: it is gone, and the start is refused
        if counts and place is not None:
            person.given.append(place)
        if item not in self.setting.control:
            person.regular += counts
        elif item not in person.control:
            person.control.append(item)
            person.right.append(tested([self.setting.control[item]], [labels or []]))
