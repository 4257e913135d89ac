"""Whether a database holds what its log says.

`verify` lets the database check itself, follows the chain of hashes, does all events again in a
temporary database, and compares every row of every table. `check_facts` is the quick check before
labels are used: it compares what they are made of with the log, without doing it again.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from sqlalchemy import Connection, Table, Text, create_engine, inspect, select, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from goldspan.errors import GoldspanError
from goldspan.store.engine import StoreError, is_outside, is_sqlite, store_error
from goldspan.store.journal import (
    AT_ONCE,
    Chain,
    Database,
    Entry,
    canonical,
    effect_of,
    first_entry,
    log_rows,
)
from goldspan.store.people import misplaced_people, unsealed
from goldspan.store.schema import (
    BESIDE_THE_LOG,
    answers,
    campaign,
    charges,
    events,
    gold,
    items,
    metadata,
    notes,
    records,
    workers,
)

# --------------------------------------------------------------------------------------------------
# The check as a whole, and what it found.


MOST = 20
"""Mismatches that are named of each table; all are counted."""
Tell = Callable[[str, int, int], None]
"""Is told what is being checked, how much of it is done, and how much there is."""


@dataclass(frozen=True)
class Mismatch:
    """Something in a table that is not what the log says."""

    table: str
    key: str  # The row's key, "number 17" for example
    column: str  # The column; "" where the whole row is missing or too much
    log: str | None  # What the log says; None if it says nothing of the row
    stored: str | None  # What is there; None if there is no row

    def __str__(self) -> str:
        """Return the mismatch as a sentence."""
        if self.log is None:
            return f"{self.table}, {self.key}: this row is not in the log"
        if self.stored is None:
            return f"{self.table}, {self.key}: the row is missing"
        return f"{self.table}, {self.key}, {self.column}: {self.stored}; the log says {self.log}"


@dataclass
class Verification:
    """What was found."""

    where: str  # The database, without a password
    n_events: int = 0  # Entries of the log that were read and belong to the chain
    head: str = ""  # Hash of the last of these
    # What the database's own check and the chain say is wrong
    faults: list[str] = field(default_factory=list)
    # Rows that are not what the log says, `MOST` of each table
    mismatches: list[Mismatch] = field(default_factory=list)
    n_mismatches: dict[str, int] = field(default_factory=dict)  # How many there are, by table
    n_rows: dict[str, int] = field(default_factory=dict)  # Rows that were compared, by table
    notes: list[str] = field(default_factory=list)  # What could not be checked, and why

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults and not self.n_mismatches

    def lines(self) -> list[str]:
        """Return what is wrong, a sentence each."""
        found = list(self.faults)
        for table, count in self.n_mismatches.items():
            named = [str(one) for one in self.mismatches if one.table == table]
            found += named
            if count > len(named):
                found.append(f"{table}: and {count - len(named)} more")
        return found

    def summary(self, most: int = 3) -> str:
        """Return what is wrong in one line, with the first few findings."""
        named = self.faults + [str(one) for one in self.mismatches]
        more = len(self.faults) + sum(self.n_mismatches.values()) - len(named[:most])
        return "; ".join(named[:most]) + (f"; and {more} more" if more > 0 else "")

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return {"whole": self.is_whole, **asdict(self)}


def verify(
    database: Database, *, head: str | None = None, most: int = MOST, tell: Tell | None = None
) -> Verification:
    """Compare a campaign's database with its log, as it is at one moment; nothing is changed."""
    # Others may read and write meanwhile
    found = Verification(database.where)
    say = tell or (lambda *_: None)
    say("pages", 0, 1)
    try:
        with database.read() as connection:
            found.faults += _own_check(connection, most)
            _read_the_rest(connection)
            with _scratch() as scratch:
                _check_people(connection, found, most)
                if _replayed(connection, scratch, found, head, say):
                    _compare_all(connection, scratch, found, most, say)
                else:
                    found.notes.append("the tables were not compared: the log is not whole")
    except (StoreError, UnicodeError, ValueError, OverflowError) as error:
        # SQLite says of a page what is wrong with it in many ways.
        if not is_sqlite(database.engine) or "locked" in str(error):
            raise
        found.faults.append(f"cannot be read to its end: {error}")
    return found


def check_whole(database: Database, what_now: str = "", tell: Tell | None = None) -> Verification:
    """Verify a database, and reject one that is not whole."""
    found = verify(database, tell=tell)
    if not found.is_whole:
        raise damaged(database.where, found.summary(), what_now)
    return found


def damaged(where: str, why: str, what_now: str = "") -> StoreError:
    """Return the error of a database that is not what its log says."""
    advice = what_now or (
        "restore a backup (`goldspan restore`); `goldspan verify` lists what differs; nothing was "
        "changed"
    )
    return StoreError(f"{where} is damaged: {why}: {advice}")


# --------------------------------------------------------------------------------------------------
# What the database itself says: pages, links, indexes, the sums kept beside the rows, seals.


_SUMS = {
    "an item has more or fewer leases than it counts": (
        "SELECT count(*) FROM slots WHERE leased <> "
        "(SELECT count(*) FROM leases WHERE leases.item = slots.item)"
    ),
    "an item has more or fewer answers than it counts": (
        "SELECT count(*) FROM slots WHERE filled <> "
        "(SELECT count(*) FROM answers WHERE answers.item = slots.item AND counts = 1)"
    ),
    "an answer was changed, and none counts in its place": (
        "SELECT count(*) FROM answers old WHERE old.counts = 0 "
        "AND old.status IN ('accepted', 'late', 'changed') AND NOT EXISTS "
        "(SELECT 1 FROM answers a WHERE a.item = old.item AND a.worker = old.worker "
        "AND a.counts = 1)"
    ),
    "an item has more places than it needs": (
        "SELECT count(*) FROM slots WHERE places > wanted AND places > leased + filled"
    ),
    "the money reserved is not that of the leases": (
        "SELECT count(*) FROM campaign WHERE reserved <> "
        "(SELECT coalesce(sum(cost), 0) FROM leases)"
    ),
    "the money spent is not that of the answers and charges": (
        "SELECT count(*) FROM campaign WHERE spent <> "
        "(SELECT coalesce(sum(cost), 0) FROM answers) + "
        "(SELECT coalesce(sum(amount), 0) FROM charges)"
    ),
    "a worker would not see a place that is free": (
        "SELECT count(*) FROM workers JOIN slots ON slots.position < workers.cursor "
        "WHERE places > leased + filled AND NOT EXISTS "
        "(SELECT 1 FROM answers a WHERE a.item = slots.item AND a.worker = workers.number) "
        "AND NOT EXISTS "
        "(SELECT 1 FROM leases l WHERE l.item = slots.item AND l.worker = workers.number) "
        "AND NOT EXISTS "
        "(SELECT 1 FROM skips s WHERE s.item = slots.item AND s.worker = workers.number) "
        # Gold questions are given by name alone.
        "AND NOT EXISTS (SELECT 1 FROM gold g WHERE g.item = slots.item AND g.control = 1)"
    ),
}


def faults_of(database: Database) -> list[str]:
    """Return what is wrong with a database, in sentences; empty if it is whole."""
    # The log and the tables are compared by `goldspan.store.verify`
    if not is_sqlite(database.engine):
        return sums_of(database)
    with database.read() as connection:
        faults = page_faults(connection) + foreign_faults(connection)
    return faults + sums_of(database)


def sums_of(database: Database) -> list[str]:
    """Return which sums beside the rows are not those of the rows; empty if all are."""
    with database.read() as connection:
        counts = {what: connection.execute(text(sum_)).scalar_one() for what, sum_ in _SUMS.items()}
    return [what for what, count in counts.items() if count]


def page_faults(connection: Connection) -> list[str]:
    """Return what SQLite says is wrong with the pages and indexes of a file."""
    found = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
    return [line for words in found if words != "ok" for line in str(words).splitlines()]


def foreign_faults(connection: Connection) -> list[str]:
    """Return which rows of a SQLite file name a row that is not there."""
    links = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
    return [f"{table} row {row} names a row of {to} that is gone" for table, row, to, _ in links]


def _own_check(connection: Connection, most: int) -> list[str]:
    """Return what SQLite itself says of its pages, links and indexes."""
    if connection.dialect.name != "sqlite":
        return []
    return (page_faults(connection) + foreign_faults(connection))[:most]


def _check_people(connection: Connection, found: Verification, most: int) -> None:
    """Compare notes with their seals, and look whether everybody is known or forgotten."""
    numbers = unsealed(connection)
    found.faults += [
        f"notes, number {number}: it is not what the log has sealed" for number in numbers[:most]
    ]
    if len(numbers) > most:
        found.faults.append(f"notes: and {len(numbers) - most} more")
    back, n_unknown = misplaced_people(connection)
    found.faults += [f"people, pseudonym {name}: was forgotten, and has an id" for name in back]
    if n_unknown:
        found.notes.append(
            f"{n_unknown} workers have no id here, and were not forgotten: the campaign was "
            "imported without people.jsonl, or rows of the table people were deleted"
        )


def _read_the_rest(connection: Connection) -> None:
    """Read the tables that are not compared, to their last row."""
    compared = {table.name for table in _tables()} | {events.name}
    for name in inspect(connection).get_table_names():
        if name not in compared:
            quoted = connection.dialect.identifier_preparer.quote(name)
            for _ in connection.execute(text(f"SELECT * FROM {quoted}")):  # noqa: S608
                pass


# --------------------------------------------------------------------------------------------------
# The log, done again: replaying all events gives the same tables, row by row.


_BAD_ROW = (SQLAlchemyError, GoldspanError, ArithmeticError, AttributeError, LookupError, TypeError,
            ValueError)  # fmt: skip
"""What applying an entry raises that does not fit what came before it."""


def log_part(table: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without what is not in the log: of a sealed note, what it says."""
    if table == "notes" and row["salt"] is not None:  # what was reduced is in it, without salt
        return {**row, **dict.fromkeys(("name", "body", "salt"))}
    return row


@contextmanager
def _scratch() -> Iterator[Connection]:
    """Open a temporary SQLite database with empty tables: in memory, and on the disk if large."""
    engine = create_engine(
        "sqlite://",
        creator=lambda: sqlite3.connect("", isolation_level=None, check_same_thread=False),
        poolclass=StaticPool,
    )
    try:
        with engine.connect() as connection:
            for pragma in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-64000"):
                connection.exec_driver_sql(f"PRAGMA {pragma}")
            connection.exec_driver_sql("BEGIN")
            metadata.create_all(connection)
            yield connection
    finally:
        engine.dispose()


def _replayed(
    connection: Connection, scratch: Connection, found: Verification, head: str | None, say: Tell
) -> bool:
    """Follow the chain and do its entries again; return whether that came to the end."""
    total = int(connection.execute(text("SELECT count(*) FROM events")).scalar_one())
    chain, entry = Chain(head), first_entry(scratch, 0, replayed=True)
    fault = ""
    for row in log_rows(connection):
        fault = chain.follow(row) or _replay_row(entry, row)
        if fault:
            break
        if chain.number % AT_ONCE == 0:
            say("log", chain.number, total)
    found.n_events, found.head = chain.number, chain.head
    if fault:
        found.faults.append(fault)
        return False
    end = "" if chain.number else "the log is empty"
    end = end or chain.end(connection)
    if end:
        found.faults.append(end)
    if not chain.has_wanted:
        found.faults.append(
            f"no entry of the log has the hash {head}: the log was cut off or rewritten since "
            "that was noted, or it is another campaign's"
        )
    if chain.number:
        entry.n_events, entry.head = chain.number, chain.head
        entry.close()
    return chain.number > 0


def _replay_row(entry: Entry, row: Any) -> str:
    """Do an entry again; return why that cannot be, "" if it can."""
    entry.now = entry.clock = row.time
    try:
        effect_of(row.kind)(entry, json.loads(row.body))
    except _BAD_ROW as error:
        why = str(getattr(error, "orig", error)).strip().splitlines()
        return f"event {row.number} ({row.kind}) cannot be done again: {why[0] if why else error!r}"
    return ""


# --------------------------------------------------------------------------------------------------
# The tables, compared row by row with those of the replay.


_WIDTH = 60
_SECRET = frozenset({("records", "body"), ("notes", "name"), ("notes", "body"), ("notes", "salt")})
"""Columns that may hold what logs must not: that they differ is said, and not how."""
_IN_HEAD = frozenset({("campaign", "n_events"), ("campaign", "head")})
"""Compared with the end of the log by `Chain.end`."""


def _tables() -> list[Table]:
    """Return the tables that the log determines."""
    beside = {*BESIDE_THE_LOG, events.name}
    return [table for table in metadata.sorted_tables if table.name not in beside]


def _compare_all(
    connection: Connection, scratch: Connection, found: Verification, most: int, say: Tell
) -> None:
    tables = _tables()
    for n, table in enumerate(tables):
        say("tables", n, len(tables))
        try:
            for mismatch in _compare(table, scratch, connection, found):
                count = found.n_mismatches.get(table.name, 0) + 1
                found.n_mismatches[table.name] = count
                if count <= most:
                    found.mismatches.append(mismatch)
        except DBAPIError as error:
            if not is_outside(error):
                raise
            if not is_sqlite(connection.engine):  # nothing more can be read in this transaction
                raise store_error(error, found.where) from None
            why = str(error.orig).strip().splitlines()[0]
            found.faults.append(f"the table {table.name} cannot be read: {why}")


def _compare(
    table: Table, scratch: Connection, connection: Connection, found: Verification
) -> Iterator[Mismatch]:
    """Compare a table as replayed with the stored one, both in the order of its key."""
    columns = [c for c in table.columns if (table.name, c.name) not in _IN_HEAD]
    place = [n for n, c in enumerate(columns) if c.primary_key]
    names = [columns[n].name for n in place]
    wanted, stored = (
        _ordered_rows(scratch, table, columns),
        _ordered_rows(connection, table, columns),
    )
    left, right = next(wanted, None), next(stored, None)
    found.n_rows[table.name] = 0

    def key(row: Any) -> str:
        return ", ".join(f"{n} {_shown(row[at])}" for n, at in zip(names, place, strict=True))

    while left is not None or right is not None:
        a = None if left is None else [_rank(left[n]) for n in place]
        b = None if right is None else [_rank(right[n]) for n in place]
        if b is None or (a is not None and a < b):
            yield Mismatch(table.name, key(left), "", "a row", None)
            left = next(wanted, None)
        elif a is None or b < a:
            yield Mismatch(table.name, key(right), "", None, "a row")
            right = next(stored, None)
        else:
            found.n_rows[table.name] += 1
            if left != right:
                for column, says, stored_value in zip(columns, left, right, strict=True):  # type: ignore[arg-type]
                    if says != stored_value:
                        hidden = (table.name, column.name) in _SECRET
                        told = ("another body", "one body") if hidden else (says, stored_value)
                        shown = [v if hidden else _shown(v) for v in told]
                        yield Mismatch(table.name, key(left), column.name, shown[0], shown[1])
            left, right = next(wanted, None), next(stored, None)


def _ordered_rows(
    connection: Connection, table: Table, columns: list[Any]
) -> Iterator[tuple[Any, ...]]:
    order = list(table.primary_key.columns)
    if connection.dialect.name == "postgresql":  # in the order of SQLite
        order = [c.collate("C") if isinstance(c.type, Text) else c for c in order]  # type: ignore[misc]
    names = [column.name for column in columns]
    query = select(*columns).order_by(*order).execution_options(yield_per=AT_ONCE)
    with connection.execute(query) as rows:
        for row in rows:
            yield tuple(log_part(table.name, dict(zip(names, row, strict=True))).values())


def _rank(value: Any) -> tuple[int, Any]:
    """Order values as SQLite does: a damaged column may hold any kind."""
    if value is None:
        return 0, 0
    if isinstance(value, int | float):
        return 1, value
    return (2, value.encode()) if isinstance(value, str) else (3, bytes(value))


def _shown(value: Any) -> str:
    words = value if isinstance(value, str) else repr(value)
    return words if len(words) <= _WIDTH else f"{words[: _WIDTH - 1]}…"


# --------------------------------------------------------------------------------------------------
# The quick check before labels are used: is what labels are made of what the log says?


_WITHOUT = frozenset({
    "adjust", "bar", "batch", "free", "lease", "pause",
})  # fmt: skip
"""Kinds of entries that carry no such row."""
_ANSWER = ("key", "item", "worker", "labels", "status", "reason", "started", "submitted")
_NOTE = ("kind", "person", "seal", "time")
_COLUMNS = {
    "items": [items.c[n] for n in ("number", "id", "cost", "n_tokens", "tokens", "extra")],
    "workers": [workers.c.number, workers.c.id],
    "answers": [answers.c[n] for n in ("number", *_ANSWER, "counts", "cost")],
    "gold": [gold.c[n] for n in ("item", "labels", "control", "time")],
    "charges": [charges.c[n] for n in ("number", "name", "amount", "time")],
    "records": [records.c[n] for n in ("number", "kind", "name", "body", "time")],
    "notes": [notes.c[n] for n in ("number", *_NOTE, "name", "body", "salt")],
}
"""What is compared of each table: its key, then what the entries carry."""


def check_facts(database: Database) -> None:
    """Reject a database in which answers, or what belongs to them, are not those of the log."""
    with database.read() as connection:
        why = _differs(connection)
    if why is None:  # entries of a kind that is not known here
        check_whole(database)
    elif why:
        raise damaged(database.where, why)


def _differs(connection: Connection) -> str | None:
    """Return the first difference, "" if there is none, None if the log must be replayed."""
    chain, facts = Chain(), _Facts()
    for row in log_rows(connection):
        fault = chain.follow(row)
        if fault:
            return fault
        if row.kind not in _WITHOUT and not facts.take(row.kind, json.loads(row.body), row.time):
            return None
    return chain.end(connection) or facts.settings(connection) or facts.difference(connection)


class _Facts:
    """The hash of every row that the log carries, by the row's key."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[int, int]] = {name: {} for name in _COLUMNS}
        self._numbers: dict[str, int] = {}
        self._extra: dict[int, int] = {}
        self._paid: dict[int, tuple[int, int]] = {}
        self._owned: dict[str, list[int]] = {}
        self._campaign: dict[str, Any] = {}

    def take(  # noqa: C901, PLR0912 - a case per kind of entry
        self, kind: str, body: Mapping[str, Any], time: int
    ) -> bool:
        """Take an entry; return whether its kind is known."""
        match kind:
            case "worker" | "charge" | "record":
                self._row(f"{kind}s", {**body, "time": time})
            case "submit":
                counts = int(body["status"] in {"accepted", "late"})
                self._answer({**body, "submitted": time}, counts)
            case "change":
                self._paid[body["before"]] = (0, 0)
                self._answer({**body, "status": "changed", "reason": "", "submitted": time}, 1)
            case "items":
                for number, row in enumerate(body["items"], start=body["first"]):
                    self._item(number, row)
            case "details":
                extra = {self._numbers[one["id"]]: hash(one["extra"]) for one in body["items"]}
                self._extra |= extra
            case "gold":
                known = {number: hash((*words, time)) for number, *words in body["items"]}
                self.rows["gold"] |= known
            case "create":
                self._campaign = {n: body[n] for n in ("name", "currency", "encoding", "cap")}
                self._campaign["tags"] = canonical(body["tags"])
                self._campaign["private"] = int(body.get("private", 0))
            case "cap":
                self._campaign["cap"] = body["cap"]
            case "version":
                self._row("records", {**body, "kind": "version", "time": time})
                self._campaign["tags"] = canonical(body["tags"])
            case "note":
                self._note({**body, "time": time, "name": None, "body": None})
            case "forget":
                for number in self._owned.pop(body["person"], []):
                    del self.rows["notes"][number]
                for row in body["notes"]:
                    self._note({**row, "person": body["person"], "seal": ""})
            case _:
                return False
        return True

    def _row(self, table: str, row: Mapping[str, Any]) -> None:
        names = [column.name for column in _COLUMNS[table][1:]]
        self.rows[table][row["number"]] = hash(tuple(row[name] for name in names))

    def _item(self, number: int, row: Mapping[str, Any]) -> None:
        words = tuple(row[name] for name in ("id", "cost", "n_tokens", "tokens"))
        self.rows["items"][number] = hash(words)
        self._numbers[row["id"]] = number
        self._extra[number] = hash(row["extra"])

    def _note(self, row: Mapping[str, Any]) -> None:
        self.rows["notes"][row["number"]] = hash(tuple(row[n] for n in (*_NOTE, "name", "body")))
        self._owned.setdefault(row["person"], []).append(row["number"])

    def settings(self, connection: Connection) -> str:
        """Compare what the campaign is, its tags and its cap."""
        row = connection.execute(select(campaign)).mappings().one()
        for name, value in self._campaign.items():
            if row[name] != value:
                return f"campaign, {name}: {row[name]}; the log says {value}"
        return ""

    def difference(self, connection: Connection) -> str:
        """Compare the tables with what was taken; return the first difference, "" if none."""
        for table, columns in _COLUMNS.items():
            query = select(*columns).execution_options(yield_per=AT_ONCE)
            with connection.execute(query) as rows:
                why = self._difference(table, rows)
            if why:
                return why
        changed = unsealed(connection)
        return f"notes, number {changed[0]}: it is not what the log has sealed" if changed else ""

    def _difference(self, table: str, rows: Iterable[Any]) -> str:
        wanted, seen = self.rows[table], 0
        for key, *rest in rows:
            name = f"{table}, {_COLUMNS[table][0].name} {key}"
            if key not in wanted:
                return f"{name}: this row is not in the log"
            seen += 1
            if not self._is_same(table, key, rest):
                return f"{name}: the row is not what the log says"
        missing = len(wanted) - seen
        return f"{table}: {missing} rows of the log are missing" if missing else ""

    def _is_same(self, table: str, key: int, row: list[Any]) -> bool:
        if table == "answers":
            if self._paid[key] != tuple(row[-2:]):
                return False
            row = row[:-2]
        elif table == "items":
            if self._extra[key] != hash(row[-1]):
                return False
            row = row[:-1]
        elif table == "notes":
            row, salt = row[:-1], row[-1]
            if salt is not None:  # what it says is not in the log: its seal is compared
                row[-2:] = None, None
        return hash(tuple(row)) == self.rows[table][key]

    def _answer(self, row: Mapping[str, Any], counts: int) -> None:
        self.rows["answers"][row["number"]] = hash(tuple(row[name] for name in _ANSWER))
        self._paid[row["number"]] = (counts, row["cost"])
