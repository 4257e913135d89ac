"""One transaction: decide, log, do, and keep it all or nothing.

Whatever changes the tables is an event: an operation reads, decides and calls `Entry.log`, which
appends the event to the log and lets the kind's effect (`registry.EFFECTS`) change the rows. An
effect looks at the event and the rows alone, so that replaying the log gives the same tables.

A campaign has one writer at a time: SQLite by `BEGIN IMMEDIATE`, PostgreSQL by a lock on the
campaign's row. So nothing that was read changes before it is written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, select
from sqlalchemy.exc import DatabaseError, DBAPIError

from goldspan.errors import InputError
from goldspan.store.chain import canonical, link
from goldspan.store.engine import WRITE, StoreError, is_busy, is_outside, is_sqlite, store_error
from goldspan.store.money import Purse
from goldspan.store.registry import effect_of
from goldspan.store.schema import campaign, events
from goldspan.store.turn import Turn

Result = TypeVar("Result")
TRIES = 5
BACK = 60_000
"""Milliseconds by which threads may come in another order than their clocks say."""
# Statements of the short transactions are built once: building them costs more than running them.
_LOCK = select(campaign).with_for_update()
_WRITE_BACK = campaign.update()
_APPEND = events.insert()


@dataclass
class Entry:
    """An open transaction.

    Attributes:
        connection: Its connection.
        purse: The money, written back at the end.
        paused: Whether the campaign holds no new places.
        now: The time that was handed in.
        clock: The time that counts, never before that of the last event.
        n_events: Number of the last event.
        head: Its hash.
        replayed: Whether the events come from a log.
        private: Whether the log and the tables name workers by pseudonym.
        pending: Events that are not written yet.
    """

    connection: Connection
    purse: Purse
    paused: int
    now: int
    clock: int
    n_events: int
    head: str
    replayed: bool = False
    private: bool = False
    pending: list[dict[str, Any]] = field(default_factory=list)

    def log(self, kind: str, body: Mapping[str, Any]) -> None:
        """Append an event and do what it says.

        Raises:
            StoreError: The clock went back by more than a minute since the last event.
        """
        if self.now < self.clock - BACK:
            raise StoreError(
                f"the clock went back by {(self.clock - self.now) / 1000:.0f} seconds, from "
                f"{self.clock} to {self.now} (milliseconds since 1970): set it right; nothing was "
                "changed"
            )
        words = canonical(body)
        self.head = link(self.head, self.n_events + 1, self.clock, kind, words)
        self.n_events += 1
        row = {"number": self.n_events, "time": self.clock, "kind": kind, "body": words}
        self.pending.append({**row, "hash": self.head})
        effect_of(kind)(self, body)

    def flush(self) -> None:
        """Write the new events."""
        if self.pending:
            self.connection.execute(_APPEND, self.pending)
        self.pending = []

    def close(self) -> None:
        """Write the new events and the campaign's row."""
        if not self.pending and not self.replayed:
            return
        self.flush()
        values = {
            "cap": self.purse.cap,
            "reserved": self.purse.reserved,
            "spent": self.purse.spent,
            "paused": self.paused,
            "clock": self.clock,
            "n_events": self.n_events,
            "head": self.head,
        }
        self.connection.execute(_WRITE_BACK, values)


@dataclass(frozen=True)
class Database:
    """The engine of a campaign's database, and whose turn it is to write.

    Attributes:
        engine: SQLAlchemy's.
        where: Path or address, without a password, for messages.
        turn: Threads of this process wait here in order, and not in SQLite, which lets them sleep.
    """

    engine: Engine
    where: str
    turn: Turn = field(default_factory=Turn, repr=False)

    def write(self, now: int, work: Callable[[Entry], Result]) -> Result:
        """Do work in one transaction; when it returns, the work is on the disk.

        Raises:
            InputError: `now` is no time.
            StoreError: The database cannot be written, or the clock went back; nothing was changed.
        """
        if isinstance(now, bool) or not isinstance(now, int) or not 0 <= now < 2**63:
            raise InputError(f"now must be whole milliseconds since 1970, not {now!r}")
        return self._repeat(lambda: self._write_once(now, work))

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a connection that sees one state, whatever is written meanwhile."""
        options = {} if is_sqlite(self.engine) else {"isolation_level": "REPEATABLE READ"}
        try:
            with self.engine.connect() as plain:
                connection = plain.execution_options(**options)
                with connection.begin():
                    yield connection
        except DatabaseError as error:
            if not is_outside(error):
                raise
            raise store_error(error, self.where) from None

    def _write_once(self, now: int, work: Callable[[Entry], Result]) -> Result:
        with self.turn, self.engine.connect() as plain:
            connection = plain.execution_options(**WRITE)
            with connection.begin():
                entry = _open(connection, now, self.where)
                result = work(entry)
                entry.close()
            return result

    def _repeat(self, act: Callable[[], Result]) -> Result:
        for left in reversed(range(TRIES)):
            try:
                return act()
            except DBAPIError as error:
                if not (error.connection_invalidated or is_outside(error)):
                    raise
                if not (left and is_busy(error)):
                    raise store_error(error, self.where) from None
                time.sleep(0.01 * (TRIES - left))
        raise AssertionError("the last try returns or raises")


def put_campaign(entry: Entry, body: Mapping[str, Any]) -> None:
    """Write the campaign's row: the first event."""
    entry.purse = Purse(cap=body["cap"])
    words = {name: body[name] for name in ("name", "currency", "encoding", "cap")}
    zero = dict.fromkeys(("reserved", "spent", "paused", "clock", "n_events"), 0)
    # Logs of campaigns that are not private say nothing of it, as all logs did before.
    entry.private = bool(body.get("private", 0))
    row = {"id": 1, **words, "tags": canonical(body["tags"]), **zero, "head": ""}
    row["private"] = int(entry.private)
    entry.connection.execute(campaign.insert(), row)


def first_entry(connection: Connection, now: int, *, replayed: bool = False) -> Entry:
    """Open the transaction that writes the first event."""
    return Entry(connection, Purse(cap=0), 0, now, now, n_events=0, head="", replayed=replayed)


def _open(connection: Connection, now: int, where: str) -> Entry:
    row = connection.execute(_LOCK).one_or_none()
    if row is None:
        raise InputError(f"{where} holds no campaign: create one first")
    purse, clock = Purse(row.cap, row.reserved, row.spent), max(now, row.clock)
    return Entry(
        connection, purse, row.paused, now, clock, row.n_events, row.head,
        private=bool(row.private),
    )  # fmt: skip
