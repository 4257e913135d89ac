"""What a worker is asked next: practice, the test, control questions among the others, the rest.

A control question looks like any other task, costs the same and comes at a moment that cannot be
guessed: once in every 1/share answers, at a place in that stretch that is drawn for each worker
and stretch.

What a worker gets, and whether a test is failed, is decided in the transaction that keeps it, by
what the store holds then: several processes decide like one.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from goldspan.campaign import Setting
from goldspan.campaign.control import Tested, tested
from goldspan.protocols import Lease, Receipt
from goldspan.server.people import BAR, People, Person
from goldspan.store import SqlLedger, answers, leases, reading, records, watching, workers
from goldspan.store.bounds import Bound
from goldspan.store.journal import Entry
from goldspan.store.watching import Came
from goldspan.tagger.features import hash64

FAILED_TEST = "right in the test"
"""How the record of who failed the test ends."""
TRIES = 5
"""Control questions that are tried before one goes on without."""


class Asking:
    """Decides what a worker gets next.

    Args:
        setting: The campaign.
        ledger: Where it is kept.
        people: What they have done.
    """

    def __init__(self, setting: Setting, ledger: SqlLedger, people: People) -> None:
        self.setting, self.ledger, self.people = setting, ledger, people
        self.seconds = 60 * setting.plan.page.lease_minutes
        self._ready = False

    def next(self, worker: str, now: int, bound: Bound | None = None) -> Lease | None:
        """Hold a task for a worker: the one that is held already, or a new one.

        Before the practice and the test are done there is nothing else.

        Raises:
            BoundError: A new one would be one more than the bound allows.
        """
        held = self.ledger.held(worker, now)
        if held or not self.is_ready():
            self.people.look()
            return held[0] if held else None
        got = self.ledger.transact(now, lambda entry: self._lease(entry, worker), bound)
        return got[0] if got else None

    def take(
        self, entry: Entry, key: str, worker: str, item: str, labels: Sequence[str | None]
    ) -> tuple[Receipt, Came | None]:
        """Keep an answer, and ask nothing more of a worker who fails the test with it.

        Returns:
            What became of it, and the answer if it is a new one.

        Raises:
            FaultsError: It does not fit the item.
        """
        last = self.people.catch_up(entry.connection)
        receipt = answers.submit(entry, key, worker, item, labels, self.ledger.tagset)
        if receipt.repeated or receipt.status == "conflict":
            return receipt, None
        why = self._failure(worker, item, labels)
        if why and reading.read_fact(entry.connection, BAR, worker) is None:
            records.record(entry, BAR, worker, {"why": why})
            workers.bar(entry, worker, barred=True)
        counts = int(receipt.counts)
        return receipt, Came(last + 1, item, worker, receipt.status, counts, receipt.cost)

    def _lease(self, entry: Entry, worker: str) -> list[Lease]:
        self.people.catch_up(entry.connection)
        held = leases.holding(entry, worker)
        if held:  # another request came first, perhaps in another process
            return held
        person = self.people[worker]
        if self._is_due(worker, person):
            questions = self._questions(entry.connection, worker, person)[:TRIES]
            if questions:
                held = leases.lease(entry, worker, self.seconds, 1, questions)
            if held or len(person.control) < self._opening:
                return held
        return leases.lease(entry, worker, self.seconds, 1, None)

    def is_ready(self) -> bool:
        """Whether the first round is open."""
        self._ready = self._ready or bool(self.ledger.records("picks"))
        return self._ready

    def is_at_an_end(self, worker: str) -> bool:
        """Whether a worker has passed on so many questions that the test cannot be finished."""
        with self.ledger.database.read() as connection:
            self.people.catch_up(connection)
            person = self.people[worker]
            if len(person.control) >= self._opening:
                return False
            return not self._questions(connection, worker, person)

    def is_practice(self, worker: str, item: str) -> bool:
        """Whether the right answer to an item is shown to the worker afterwards."""
        person, n = self.people[worker], self.setting.plan.page.training
        if item not in self.setting.control:
            return False
        if item in person.control:
            return person.control.index(item) < n
        return len(person.control) < n

    def _failure(self, worker: str, item: str, labels: Sequence[str | None]) -> str:
        """Say why a worker has failed the test with an answer that comes now, "" if not."""
        control, person = self.setting.plan.control, self.people[worker]
        if control is None or not control.first or not control.least:
            return ""
        given = list(person.right)
        if item in self.setting.control and item not in person.control:
            given.append(tested([self.setting.control[item]], [labels]))
        start = self.setting.plan.page.training
        test = given[start : start + control.first]
        found = Tested(sum(one.right for one in test), sum(one.total for one in test))
        if len(test) < control.first or found.share >= control.least:
            return ""
        return f"{found.right} of {found.total} {FAILED_TEST}"

    def total(self, worker: str, regular: int) -> int:
        """Count a worker's answers after so many to other items, control questions among them."""
        person, due = self.people[worker], 0
        if self.setting.plan.control is not None:
            due = self._opening + self.people.tests(worker) + self._mixed(worker, regular)
        return regular + max(len(person.control), min(due, len(self.setting.control)))

    @property
    def _opening(self) -> int:
        """Count the control questions that come before everything else: practice and the test."""
        control = self.setting.plan.control
        return 0 if control is None else self.setting.plan.page.training + control.first

    def _is_due(self, worker: str, person: Person) -> bool:
        if self.setting.plan.control is None:
            return False
        if len(person.control) < self._opening:
            return True
        due = self._opening + self.people.tests(worker) + self._mixed(worker, person.regular)
        return len(person.control) < due

    def _mixed(self, worker: str, regular: int) -> int:
        """Count the control questions due after so many others.

        Every stretch of R = 1/share − 1 others has one, at a place from 0 to R.
        """
        control = self.setting.plan.control
        if control is None or not control.share:
            return 0
        others = round(1 / control.share) - 1
        if not others:
            return regular + len(self.setting.control)
        stretch, place = divmod(regular, others)
        drawn = hash64(f"{self.setting.plan.seed}\0{worker}\0{stretch}") % others
        return stretch + (place >= drawn)

    def _questions(self, connection: Connection, worker: str, person: Person) -> list[str]:
        """Order the control questions that the worker has neither answered nor passed on."""
        seed = self.setting.plan.seed
        seen = {*person.control, *watching.passed(connection, worker)}
        rest = [item for item in self.setting.control if item not in seen]
        return sorted(rest, key=lambda item: hash64(f"{seed}\0{item}\0{worker}"))
