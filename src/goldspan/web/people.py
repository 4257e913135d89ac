"""What every worker has done: made of the store's answers, and read on before it is used."""

from __future__ import annotations

import threading
import time
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Connection

from goldspan.campaign.inputs import CampaignInputs
from goldspan.campaign.judging import DECISION, TestScore, score_test
from goldspan.store import SqlLedger, queries
from goldspan.store.answers import CHANGED, Labels
from goldspan.store.people import n_forgotten as n_forgotten_in
from goldspan.store.queries import NewAnswer

BAR = "bar"
"""Kind of the records of who was barred by the campaign, and why."""
GOLD = "adjudicated"
"""Kind of the records of items whose labels the requester decided."""
TEST, KEEP, DROP = "test", "keep", "drop"
"""What a requester decides about a worker."""
FRESH = 1.0
"""Seconds after which it is looked again whether somebody was forgotten."""


def decided_labels(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the labels that were decided, by item: the last decision that was not taken back."""
    last = {row["item"]: row["labels"] for row in rows.values()}
    return {item: labels for item, labels in last.items() if labels is not None}


@dataclass
class Person:
    """What one worker has done."""

    # Gold questions that were answered, in order, whether the answer counts or not
    control: list[str] = field(default_factory=list)
    # Of each of them, how much was right in the first answer
    right: list[TestScore] = field(default_factory=list)
    regular: int = 0  # Answers to other items
    counting: int = 0  # Answers that count, gold questions among them
    drafts: int = 0  # Answers that are kept and do not count
    earned: int = 0  # In millionths of the currency unit
    # Places in the pool of the items with an answer that counts, in order
    given: array[int] = field(default_factory=lambda: array("q"))


class Seen(NamedTuple):
    """What a look at the store has found."""

    last: int  # Number of the last answer
    n_judged: int  # How often workers were judged


class People:
    """All workers of a campaign; safe to use from several threads and several processes.

    What is kept in memory was made of the answers up to a number, which never change in what counts
    here; those that came since are read before anything is decided or told (`catch_up`, `look`). So
    another process may take answers of the same store.
    """

    def __init__(self, inputs: CampaignInputs, ledger: SqlLedger) -> None:
        self.inputs, self.ledger = inputs, ledger
        self._turn = threading.Lock()
        self._known: dict[str, Person] = {}
        self._seen = 0
        self._asked, self._n_decisions = Counter[str](), 0
        self._n_forgotten, self._looked = ledger.n_forgotten, time.monotonic()
        self.look()

    def __getitem__(self, worker: str) -> Person:
        """Return what a worker has done, as far as it was read; nothing for a new one."""
        with self._turn:
            return self._known.get(worker) or Person()

    def all(self) -> dict[str, Person]:
        """Return everybody who was seen."""
        self.look()
        with self._turn:
            return dict(self._known)

    def look(self) -> None:
        """Read what came since it was last read."""
        with self.ledger.database.read() as connection:
            self.catch_up(connection)

    def catch_up(self, connection: Connection) -> Seen:
        """Read what came since it was last read.

        In a transaction that writes, this comes before its first answer: what is rolled back must
        not be remembered.
        """
        with self._turn:
            self._forget(connection)
            news = queries.news(connection)
            rows = queries.since(connection, self._seen) if news.last > self._seen else []
            if rows:
                control = [row.number for row in rows if row.item in self.inputs.control]
                labels = queries.labels_of(connection, control) if control else {}
                first: set[tuple[str, str]] = set()
                for row in rows:
                    self._add(row, labels.get(row.number), first)
            if self.inputs.control and news.n_decisions != self._n_decisions:
                self._count_tests(connection, news.n_decisions)
            return Seen(self._seen, news.n_judged)

    def took(self, came: NewAnswer, labels: Labels) -> None:
        """Count an answer that is kept now, if it was not read meanwhile."""
        with self._turn:
            if came.number == self._seen + 1:
                self._add(came, labels, set())
            is_behind = came.number > self._seen
        if is_behind:  # another process took answers before this one
            self.look()

    def tests(self, worker: str) -> int:
        """Count the further gold questions that the requester asked of a worker."""
        return self._asked[worker]

    def why_barred(self, worker: str) -> str | None:
        """Return why a worker is asked nothing more, None if they are asked."""
        if not self.ledger.is_barred(worker):
            return None
        return str((self.ledger.fact(BAR, worker) or {}).get("why", ""))

    def _forget(self, connection: Connection) -> None:
        """Begin anew if somebody was forgotten, perhaps by another process."""
        if time.monotonic() - self._looked < FRESH:
            return
        self._looked, n_forgotten = time.monotonic(), n_forgotten_in(connection)
        if n_forgotten != self._n_forgotten:
            self._n_forgotten, self._n_decisions = n_forgotten, -1
            self._known, self._seen = {}, 0

    def _count_tests(self, connection: Connection, n_decisions: int) -> None:
        asked: Counter[str] = Counter()
        for row in queries.read_records(connection, DECISION).values():
            asked[row["worker"]] += row["questions"] if row["verdict"] == TEST else 0
        self._asked, self._n_decisions = asked, n_decisions

    def _add(self, row: NewAnswer, labels: Labels | None, first: set[tuple[str, str]]) -> None:
        """Count an answer; `first` holds the first versions among those that are read with it."""
        self._seen = row.number
        person, who = self._known.setdefault(row.worker, Person()), (row.worker, row.item)
        if row.status == CHANGED:
            # What was paid for the first version moved here: counted with it, unless both are new.
            person.earned += row.cost if who in first else 0
            return
        counts = row.status in {"accepted", "late"}
        if counts:
            first.add(who)
        person.counting += counts
        person.drafts += not counts
        person.earned += row.cost
        place = self.inputs.pool.place.get(row.item)  # None: it is gone, and the start is refused
        if counts and place is not None:
            person.given.append(place)
        if row.item not in self.inputs.control:
            person.regular += counts
        elif row.item not in person.control:
            person.control.append(row.item)
            truth, encoding = self.inputs.control[row.item], self.inputs.codec.encoding
            person.right.append(score_test([truth], [labels or []], encoding))
