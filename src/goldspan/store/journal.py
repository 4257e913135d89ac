"""One transaction: decide, log, do, and keep it all or nothing.

Whatever changes the tables is an event: an operation reads, decides and calls `Entry.log`, which
appends the event to the log and lets the effect of its kind (`EFFECTS`) change the rows. An
effect looks at the event and the rows alone, so that replaying the log gives the same tables.

The log is a chain of hashes: whoever changes an old event must change all that follow.
hash_n = SHA-256(hash_{n-1} newline canonical JSON of [n, time, kind, body]), in hexadecimal digits;
hash_0 is "". The campaign's row holds the last number and hash, so that a log that was cut off is
seen too.

A campaign has one writer at a time: SQLite by `BEGIN IMMEDIATE`, PostgreSQL by a lock on the
campaign's row. So nothing that was read changes before it is written.

A process that steers or serves the campaign (`goldspan.store.roles`) writes only while it holds
that role: the statement that writes the campaign's row back says so. Whoever takes over locks the
same row first, so that no transaction is half before a takeover and half after it.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine, and_, bindparam, func, select
from sqlalchemy.exc import DBAPIError

from goldspan.errors import InputError, UnknownNameError
from goldspan.plugins import load
from goldspan.store.engine import (
    WRITE,
    LostError,
    StoreError,
    is_busy,
    is_outside,
    is_sqlite,
    store_error,
)
from goldspan.store.schema import campaign, events, processes, roles

# --------------------------------------------------------------------------------------------------
# The chain of hashes.


AT_ONCE = 1_000
"""Events read in one query."""


def canonical(value: Any) -> str:
    """Write a value as JSON, always with the same bytes."""
    try:
        words = json.dumps(
            value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
        )
        words.encode()
    except (TypeError, ValueError) as error:
        raise InputError(f"the store holds what JSON can hold: {error}") from None
    return words


def link(before: str, number: int, time: int, kind: str, body: str) -> str:
    """Hash an entry, its body as canonical JSON, onto the hash before."""
    words = f"{before}\n[{number},{time},{canonical(kind)},{body}]"
    return sha256(words.encode()).hexdigest()


def read_json(words: str) -> Any:
    """Read what `canonical` wrote."""
    try:
        return json.loads(words)
    except ValueError:
        raise StoreError(
            f"the database is damaged: it holds {words[:40]!r}, which is not JSON: restore a "
            "backup, or import an export; nothing was changed"
        ) from None


def log_rows(connection: Connection) -> Iterator[Any]:
    """Read the entries as they stand there, some at a time."""
    after = -(2**63)
    query = select(events).order_by(events.c.number).limit(AT_ONCE)
    while rows := connection.execute(query.where(events.c.number > after)).all():
        yield from rows
        after = rows[-1].number


class Chain:
    """The chain of hashes, followed entry by entry; the stored text of a body is what is hashed."""

    def __init__(self, head: str | None = None) -> None:
        self.number, self.head = 0, ""
        self._wanted, self.has_wanted = head, head is None or head == ""

    def follow(self, row: Any) -> str:
        """Take the next entry; return what is wrong with it, "" if it belongs here."""
        number = self.number + 1
        if row.number != number:
            return f"the log is broken: event {number} is missing"
        if not (isinstance(row.time, int) and isinstance(row.kind, str)
                and isinstance(row.body, str)):  # fmt: skip
            return f"the log is broken: event {number} was changed"
        if link(self.head, number, row.time, row.kind, row.body) != row.hash:
            return f"the log is broken: event {number} was changed"
        self.number, self.head = number, row.hash
        self.has_wanted = self.has_wanted or row.hash == self._wanted
        return ""

    def end(self, connection: Connection) -> str:
        """Compare the end of the log with the campaign's row; return what is wrong."""
        row = connection.execute(select(campaign.c.n_events, campaign.c.head)).one_or_none()
        if row is None:
            return "the campaign's row is missing"
        if (row.n_events, row.head) != (self.number, self.head):
            return (
                f"the log is broken: it ends at event {self.number} with the hash "
                f"{self.head[:12]}…, and the campaign's row says event {row.n_events} and "
                f"{str(row.head)[:12]}…"
            )
        return ""


# --------------------------------------------------------------------------------------------------
# What every kind of event does to the tables.


EFFECTS = {
    "adjust": "goldspan.store.pool:put_wanted",
    "bar": "goldspan.store.assignments:put_barred",
    "batch": "goldspan.store.pool:put_batch",
    "cap": "goldspan.store.facts:put_cap",
    "change": "goldspan.store.answers:put_change",
    "charge": "goldspan.store.facts:put_charge",
    "create": "goldspan.store.journal:put_campaign",
    "forget": "goldspan.store.erasing:put_forgotten",
    "free": "goldspan.store.assignments:put_free",
    "gold": "goldspan.store.facts:put_gold",
    "items": "goldspan.store.pool:put_items",
    "details": "goldspan.store.pool:put_details",
    "lease": "goldspan.store.assignments:put_leases",
    "note": "goldspan.store.people:put_note",
    "pause": "goldspan.store.facts:put_paused",
    "record": "goldspan.store.facts:put_record",
    "submit": "goldspan.store.answers:put_answer",
    "version": "goldspan.store.facts:put_version",
    "worker": "goldspan.store.people:put_worker",
}


@cache
def effect_of(kind: str) -> Callable[[Any, Mapping[str, Any]], None]:
    """Find what a kind of event does: a function of the open entry and the event's body."""
    if kind not in EFFECTS:
        raise UnknownNameError(
            "kind of event", kind, EFFECTS, "a newer goldspan may have written it"
        )
    effect: Callable[[Any, Mapping[str, Any]], None] = load(EFFECTS[kind])
    return effect


# --------------------------------------------------------------------------------------------------
# Threads of one process write in the order in which they came.


class FairLock:
    """A fair lock, for `with`; it cannot be taken twice by one thread.

    >>> lock = FairLock()
    >>> with lock:
    ...     lock.waiting
    0
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._queue: deque[threading.Lock] = deque()
        self._taken = False

    @property
    def waiting(self) -> int:
        """How many threads wait."""
        return len(self._queue)

    def __enter__(self) -> None:
        """Wait until it is free and all who came before have had it."""
        with self._guard:
            if not self._taken:
                self._taken = True
                return
            mine = threading.Lock()
            mine.acquire()
            self._queue.append(mine)
        try:
            mine.acquire()
        except BaseException:
            self._leave(mine)
            raise

    def __exit__(self, *_: object) -> None:
        """Hand over to who has waited longest."""
        with self._guard:
            if self._queue:
                self._queue.popleft().release()
            else:
                self._taken = False

    def _leave(self, mine: threading.Lock) -> None:
        """Stop waiting after Ctrl-C; it may have been handed over meanwhile."""
        with self._guard:
            waits = mine in self._queue
            if waits:
                self._queue.remove(mine)
        if not waits:
            self.__exit__()


# --------------------------------------------------------------------------------------------------
# Transactions.


@dataclass
class Balance:
    """What there is, what is set aside and what is paid, in millionths."""

    cap: int
    reserved: int = 0
    spent: int = 0

    @property
    def left(self) -> int:
        """What can still be reserved."""
        return self.cap - self.reserved - self.spent


Result = TypeVar("Result")
P = ParamSpec("P")
TRIES = 5
# Statements of the short transactions are built once: building them costs more than running them.
_LOCK = select(campaign).with_for_update()
_WRITE_BACK = campaign.update()
_APPEND = events.insert()
# How many of the roles that a process believes to hold are its own.
_N_ROLES_HELD = (
    select(func.count())
    .select_from(processes)
    .join(roles, and_(roles.c.name == processes.c.role, roles.c.epoch == processes.c.epoch))
    .where(processes.c.id == bindparam("holder"))
    .where(processes.c.role.in_(bindparam("held", expanding=True)))
)
_WRITE_BACK_IF = campaign.update().where(_N_ROLES_HELD.scalar_subquery() == bindparam("n_held"))
_SUCCESSOR = (
    select(roles.c.name, processes.c.who)
    .join(processes, and_(processes.c.role == roles.c.name, processes.c.epoch == roles.c.epoch))
    .where(roles.c.name.in_(bindparam("held", expanding=True)))
    .where(processes.c.id != bindparam("holder"))
)
_DOES = {"loop": "steers", "web": "serves"}


class Held:
    """The roles that this process holds in a campaign, and why it lost them."""

    def __init__(self) -> None:
        self.process = secrets.token_hex(8)
        self.roles: tuple[str, ...] = ()
        self.lost: LostError | None = None
        self.sure_until: dict[str, float] = {}
        self.told: list[Callable[[LostError], None]] = []
        self.swept = -1
        self._guard = threading.Lock()

    @property
    def sign(self) -> str:
        """The name of this process's connections in PostgreSQL."""
        return f"goldspan {self.process}"

    @property
    def is_sure(self) -> bool:
        """Whether every role is known to be this process's, without a look at the database."""
        # It is not while PostgreSQL is gone, and in the first moments of a process that was stopped
        now = time.monotonic()
        return self.lost is None and all(now < end for end in list(self.sure_until.values()))

    def bound(self) -> dict[str, Any]:
        """Return what the statements on roles take."""
        return {"holder": self.process, "held": self.roles}

    def check_lost(self) -> None:
        """Reject to go on where it is known that a role was lost."""
        if self.lost is not None:
            raise LostError(str(self.lost))  # an exception that is raised again grows

    def check(self, connection: Connection, where: str) -> None:
        """Check within a transaction that writes that every role is still this process's."""
        self.check_lost()
        if self.roles and connection.execute(_N_ROLES_HELD, self.bound()).scalar_one() < len(
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
    """An open transaction."""

    connection: Connection
    balance: Balance  # The money, written back at the end
    paused: int  # Whether the campaign holds no new places
    now: int  # The time that was handed in: leases are due by it
    clock: int  # The time that is kept, never before that of the last event
    n_events: int  # Number of the last event
    head: str
    replayed: bool = False  # Whether the events come from a log
    private: bool = False  # Whether the log and the tables name workers by pseudonym
    pending: list[dict[str, Any]] = field(default_factory=list)  # Events that are not written yet
    # The roles that must still be this process's, None where it needs none
    held: Held | None = None
    where: str = ""  # The database, for messages
    expired: bool = False  # Whether the leases that are due were ended in this transaction
    # By which name the tables know people, as far as it was looked up
    names: dict[str, str] = field(default_factory=dict)
    swept: int = -1  # The day whose past counts were deleted in this transaction, -1 if none were

    def log(self, kind: str, body: Mapping[str, Any]) -> None:
        """Append an event and apply its effect."""
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
        """Write the new events and the campaign's row, if this process may still do so."""
        held = self.held
        if not self.pending and not self.replayed:
            if held is not None:
                held.check(self.connection, self.where)
            return
        self.flush()
        values = {
            "cap": self.balance.cap,
            "reserved": self.balance.reserved,
            "spent": self.balance.spent,
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
    """The engine of a campaign's database, and whose turn it is to write."""

    engine: Engine
    where: str  # Path or address, without a password, for messages
    held: Held = field(default_factory=Held, repr=False)  # The roles that this process holds
    # Threads of this process wait here in order, and not in SQLite, which lets them sleep
    lock: FairLock = field(default_factory=FairLock, repr=False)
    # Called with the seconds of every write transaction that was kept
    on_write: list[Callable[[float], None]] = field(default_factory=list, repr=False)

    def write(
        self, now: int, work: Callable[Concatenate[Entry, P], Result],
        *args: P.args, **kwargs: P.kwargs,
    ) -> Result:  # fmt: skip
        """Call `work(entry, …)` in one transaction; when it returns, its work is on the disk."""
        # It may be called again where the database was busy
        if isinstance(now, bool) or not isinstance(now, int) or not 0 <= now < 2**63:
            raise InputError(f"now must be whole milliseconds since 1970, not {now!r}")
        begin = time.perf_counter()
        for left in reversed(range(TRIES)):
            try:
                result = self._write_once(now, work, *args, **kwargs)
            except DBAPIError as error:
                if not (error.connection_invalidated or is_outside(error)):
                    raise
                if not (left and is_busy(error)):
                    raise store_error(error, self.where) from None
                time.sleep(0.01 * (TRIES - left))
            else:
                for tell in self.on_write:
                    tell(time.perf_counter() - begin)
                return result
        raise AssertionError("the last try returns or raises")

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

    def query(
        self, read: Callable[Concatenate[Connection, P], Result], *args: P.args, **kwargs: P.kwargs
    ) -> Result:
        """Call `read(connection, …)`, which sees one state of the database."""
        with self.read() as connection:
            return read(connection, *args, **kwargs)

    def _write_once(
        self, now: int, work: Callable[Concatenate[Entry, P], Result],
        *args: P.args, **kwargs: P.kwargs,
    ) -> Result:  # fmt: skip
        self.held.check_lost()
        with self.lock, self.engine.connect() as plain:
            connection = plain.execution_options(**WRITE)
            with connection.begin():
                entry = _open(connection, now, self.where)
                entry.held, entry.where = self.held, self.where
                result = work(entry, *args, **kwargs)
                entry.close()
            self.held.swept = max(self.held.swept, entry.swept)
            return result


def put_campaign(entry: Entry, body: Mapping[str, Any]) -> None:
    """Write the campaign's row: the first event."""
    entry.balance = Balance(cap=body["cap"])
    words = {name: body[name] for name in ("name", "currency", "encoding", "cap")}
    zero = dict.fromkeys(("reserved", "spent", "paused", "clock", "n_events"), 0)
    # Logs of campaigns that are not private say nothing of it.
    entry.private = bool(body.get("private", 0))
    row = {"id": 1, **words, "tags": canonical(body["tags"]), **zero, "head": ""}
    row["private"] = int(entry.private)
    entry.connection.execute(campaign.insert(), row)


def first_entry(connection: Connection, now: int, *, replayed: bool = False) -> Entry:
    """Open the transaction that writes the first event."""
    return Entry(connection, Balance(cap=0), 0, now, now, n_events=0, head="", replayed=replayed)


def _open(connection: Connection, now: int, where: str) -> Entry:
    row = connection.execute(_LOCK).one_or_none()
    if row is None:
        raise InputError(f"{where} holds no campaign: create one first")
    balance, clock = Balance(row.cap, row.reserved, row.spent), max(now, row.clock)
    return Entry(
        connection, balance, row.paused, now, clock, row.n_events, row.head,
        private=bool(row.private),
    )  # fmt: skip
