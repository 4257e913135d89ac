"""One transaction: decide, log, do, and keep it all or nothing.

Whatever changes the tables is an event: an operation reads, decides and calls `Entry.log`, which
appends the event to the log and lets the kind's effect (`registry.EFFECTS`) change the rows. An
effect looks at the event and the rows alone, so that replaying the log gives the same tables.

A campaign has one writer at a time: SQLite by `BEGIN IMMEDIATE`, PostgreSQL by a lock on the
campaign's row. So nothing that was read changes before it is written.

A process that steers or serves the campaign (`goldspan.store.roles`) writes only while it holds
that role: the statement that writes the campaign's row back says so. Whoever takes over locks the
same row first, so that no transaction is half before a takeover and half after it.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, and_, bindparam, func, select
from sqlalchemy.exc import DBAPIError

from goldspan.errors import InputError
from goldspan.store.chain import canonical, link
from goldspan.store.engine import (
    WRITE,
    LostError,
    Turn,
    is_busy,
    is_outside,
    is_sqlite,
    store_error,
)
from goldspan.store.money import Purse
from goldspan.store.registry import effect_of
from goldspan.store.schema import campaign, events, processes, roles

Result = TypeVar("Result")
TRIES = 5
# Statements of the short transactions are built once: building them costs more than running them.
_LOCK = select(campaign).with_for_update()
_WRITE_BACK = campaign.update()
_APPEND = events.insert()
# How many of the roles that a process believes to hold are its own.
_STANDING = (
    select(func.count())
    .select_from(processes)
    .join(roles, and_(roles.c.name == processes.c.role, roles.c.epoch == processes.c.epoch))
    .where(processes.c.id == bindparam("holder"))
    .where(processes.c.role.in_(bindparam("held", expanding=True)))
)
_WRITE_BACK_IF = campaign.update().where(_STANDING.scalar_subquery() == bindparam("n_held"))
_SUCCESSOR = (
    select(roles.c.name, processes.c.who)
    .join(processes, and_(processes.c.role == roles.c.name, processes.c.epoch == roles.c.epoch))
    .where(roles.c.name.in_(bindparam("held", expanding=True)))
    .where(processes.c.id != bindparam("holder"))
)
_DOES = {"loop": "steers", "web": "serves"}


class Held:
    """The roles that this process holds in a campaign, and why it lost them.

    Attributes:
        process: A random name of this process.
        roles: Their names.
        lost: Why nothing is written any more, None while nothing is lost.
        sure_until: Until when, by this process's own clock, nobody can have taken a role over.
        told: Who is told when something is lost, once, in any thread.
    """

    def __init__(self) -> None:
        self.process = secrets.token_hex(8)
        self.roles: tuple[str, ...] = ()
        self.lost: LostError | None = None
        self.sure_until: dict[str, float] = {}
        self.told: list[Callable[[LostError], None]] = []
        self._guard = threading.Lock()

    @property
    def sign(self) -> str:
        """The name of this process's connections in PostgreSQL."""
        return f"goldspan {self.process}"

    @property
    def is_sure(self) -> bool:
        """Whether every role is known to be this process's, without a look at the database.

        It is not while PostgreSQL is gone, and in the first moments of a process that was stopped.
        """
        now = time.monotonic()
        return self.lost is None and all(now < end for end in list(self.sure_until.values()))

    def bound(self) -> dict[str, Any]:
        """Return what the statements on roles take."""
        return {"holder": self.process, "held": self.roles}

    def check_lost(self) -> None:
        """Reject to go on where it is known that a role was lost.

        Raises:
            LostError: Another process took over.
        """
        if self.lost is not None:
            raise LostError(str(self.lost))  # an exception that is raised again grows

    def check(self, connection: Connection, where: str) -> None:
        """Check within a transaction that writes that every role is still this process's.

        Raises:
            LostError: Another process took over.
        """
        self.check_lost()
        if self.roles and connection.execute(_STANDING, self.bound()).scalar_one() < len(
            self.roles
        ):
            raise self.successor(connection, where)

    def successor(self, connection: Connection, where: str) -> LostError:
        """Find out who took over, and remember that somebody did."""
        found = connection.execute(_SUCCESSOR, self.bound()).all()
        who = " and ".join(f"{row.who} {_DOES[row.name]} it now" for row in found)
        return self.lose(
            LostError(
                f"{where}: another process took over the campaign while this one did not answer"
                f"{f' ({who})' if who else ''}: this one writes nothing more; what was "
                "acknowledged until then is kept"
            )
        )

    def lose(self, error: LostError) -> LostError:
        """Write nothing more, and tell it once."""
        with self._guard:
            if self.lost is not None:
                return self.lost
            self.lost = error
        for tell in list(self.told):
            tell(error)
        return error


@dataclass
class Entry:
    """An open transaction.

    Attributes:
        connection: Its connection.
        purse: The money, written back at the end.
        paused: Whether the campaign holds no new places.
        now: The time that was handed in: leases are due by it.
        clock: The time that is kept, never before that of the last event.
        n_events: Number of the last event.
        head: Its hash.
        replayed: Whether the events come from a log.
        private: Whether the log and the tables name workers by pseudonym.
        pending: Events that are not written yet.
        held: The roles that must still be this process's, None where it needs none.
        where: The database, for messages.
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
    held: Held | None = None
    where: str = ""

    def log(self, kind: str, body: Mapping[str, Any]) -> None:
        """Append an event and do what it says."""
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
        """Write the new events and the campaign's row, if this process may still do so.

        Raises:
            LostError: Another process took over.
        """
        held = self.held
        if not self.pending and not self.replayed:
            if held is not None:
                held.check(self.connection, self.where)
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
        if held is None or not held.roles:
            self.connection.execute(_WRITE_BACK, values)
            return
        bound = held.bound() | {"n_held": len(held.roles)}
        if self.connection.execute(_WRITE_BACK_IF, values | bound).rowcount != 1:
            raise held.successor(self.connection, self.where)


@dataclass(frozen=True)
class Database:
    """The engine of a campaign's database, and whose turn it is to write.

    Attributes:
        engine: SQLAlchemy's.
        where: Path or address, without a password, for messages.
        held: The roles that this process holds.
        turn: Threads of this process wait here in order, and not in SQLite, which lets them sleep.
        on_write: Called with the seconds of every write transaction that was kept.
    """

    engine: Engine
    where: str
    held: Held = field(default_factory=Held, repr=False)
    turn: Turn = field(default_factory=Turn, repr=False)
    on_write: list[Callable[[float], None]] = field(default_factory=list, repr=False)

    def write(self, now: int, work: Callable[[Entry], Result]) -> Result:
        """Do work in one transaction; when it returns, the work is on the disk.

        Raises:
            InputError: `now` is no time.
            StoreError: The database cannot be written; nothing was changed.
            LostError: Another process took over this one's role; nothing was changed.
        """
        if isinstance(now, bool) or not isinstance(now, int) or not 0 <= now < 2**63:
            raise InputError(f"now must be whole milliseconds since 1970, not {now!r}")
        begin = time.perf_counter()
        result = self._repeat(lambda: self._write_once(now, work))
        for tell in self.on_write:
            tell(time.perf_counter() - begin)
        return result

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a connection that sees one state, whatever is written meanwhile."""
        options = {} if is_sqlite(self.engine) else {"isolation_level": "REPEATABLE READ"}
        try:
            with self.engine.connect() as plain:
                connection = plain.execution_options(**options)
                with connection.begin():
                    yield connection
        except DBAPIError as error:
            if not (error.connection_invalidated or is_outside(error)):
                raise
            raise store_error(error, self.where) from None

    def _write_once(self, now: int, work: Callable[[Entry], Result]) -> Result:
        self.held.check_lost()
        with self.turn, self.engine.connect() as plain:
            connection = plain.execution_options(**WRITE)
            with connection.begin():
                entry = _open(connection, now, self.where)
                entry.held, entry.where = self.held, self.where
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
