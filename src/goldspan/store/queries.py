"""Queries that change nothing."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlalchemy import Connection, CursorResult, ScalarSelect, Table, bindparam, case, func, select

from goldspan.crowd import Crowd
from goldspan.errors import UnknownNameError
from goldspan.protocols import Event, Lease
from goldspan.store import people
from goldspan.store.answers import CHANGED
from goldspan.store.crowd import (
    ANSWER,
    ITEM,
    Items,
    Labels,
    answers_of,
    crowd_of,
    cut_answers,
    layers_of,
)
from goldspan.store.journal import AT_ONCE, Database, read_json
from goldspan.store.people import APART, SHOWN, is_worker, key_of, skip_reasons
from goldspan.store.pool import SOME, rows_of
from goldspan.store.schema import (
    answers,
    batches,
    campaign,
    events,
    items,
    leases,
    notes,
    records,
    skips,
    slots,
    workers,
)

# --------------------------------------------------------------------------------------------------
# Reading everything back: the answers that count as a `Crowd`, facts, the log.


WHICH = ("answered", "batch", "pool")
_FACT = select(records.c.body).where(
    (records.c.kind == bindparam("asked")) & (records.c.name == bindparam("known"))
)
_NAMING = people.KEPT_APART | {people.BAR, people.VERDICTS, people.SUGGESTED}
"""Kinds of records that name workers."""
_COUNT = select(func.count()).where(records.c.kind == bindparam("asked"))
_COUNT_NOTES = select(func.count()).where(notes.c.kind == bindparam("asked"))


def _kind_of(table: Table, name: str) -> ScalarSelect[int]:
    """Return the statement that counts the rows of the kind that is the parameter `name`."""
    return select(func.count()).where(table.c.kind == bindparam(name)).scalar_subquery()


_COUNT_APART = select(
    case((campaign.c.private == 1, _COUNT_NOTES.scalar_subquery()), else_=_COUNT.scalar_subquery())
)
_NEWS = select(
    func.coalesce(select(func.max(answers.c.number)).scalar_subquery(), 0),
    select(
        case(
            (campaign.c.private == 1, _kind_of(notes, "decision")),
            else_=_kind_of(records, "decision"),
        )
    ).scalar_subquery(),
    _kind_of(records, "judged"),
)
_NEWS_OF = {"decision": people.DECISION, "judged": people.VERDICTS}


def read_crowd(connection: Connection, which: str = "answered") -> Crowd:
    """Return items in the order of the pool with the answers that count, and gold where known."""
    found, rows, labels = _answered(connection, which)
    return crowd_of(connection, found, answers_of(rows, labels), labels.tagset, cut_answers(rows))


def read_layers(connection: Connection, which: str = "answered") -> dict[str, Crowd]:
    """Return the same as a crowd of every layer, by name."""
    return layers_of(connection, *_answered(connection, which))


def _answered(connection: Connection, which: str) -> tuple[Items, Sequence[Any], Labels]:
    # The items are those "answered", those in a "batch", or the whole "pool"
    if which not in WHICH:
        raise UnknownNameError("choice of items", which, WHICH)
    query = select(*ITEM)
    if which == "answered":
        query = query.where(items.c.number.in_(select(answers.c.item).where(answers.c.counts == 1)))
    elif which == "batch":
        query = query.where(items.c.number.in_(select(slots.c.item)))
    found = Items.of(connection.execute(query.order_by(items.c.number)).all())
    query = select(*ANSWER).where(answers.c.counts == 1)
    rows = connection.execute(query.order_by(answers.c.item, answers.c.number)).all()
    return found, rows, Labels.of(connection)


def n_tokens(connection: Connection) -> dict[str, int]:
    """Return how many tokens every item of the pool has, by id."""
    query = select(items.c.id, items.c.n_tokens).order_by(items.c.number)
    return {row.id: row.n_tokens for row in connection.execute(query)}


def read_records(connection: Connection, kind: str) -> dict[str, dict[str, Any]]:
    """Return all facts of a kind by name, in the order in which they came."""
    found = people.read_notes(connection, kind) if kind in people.KEPT_APART else {}
    if not found:
        query = select(records).where(records.c.kind == kind).order_by(records.c.number)
        found = {row.name: read_json(row.body) for row in connection.execute(query)}
    names = people.ids(connection) if found and kind in _NAMING else {}
    return dict(people.shown(kind, name, body, names) for name, body in found.items())


def read_fact(connection: Connection, kind: str, name: str) -> dict[str, Any] | None:
    """Return one fact of a kind, None if there is none."""
    if kind == people.BAR:
        name = people.pseudonym_of(connection, name)
    elif kind == people.FLAG:
        name = people.key_of(connection, name)
    elif kind in _NAMING:
        return read_records(connection, kind).get(name)
    query = (
        people.NOTE_BODY if kind in people.KEPT_APART and people.is_private(connection) else _FACT
    )
    body = connection.execute(query, {"asked": kind, "known": name}).scalar_one_or_none()
    if body is None:
        return None
    names = people.ids(connection) if kind in _NAMING else {}
    return people.shown(kind, name, dict(read_json(body)), names)[1]


def count_records(connection: Connection, kind: str) -> int:
    """Count the facts of a kind."""
    query = _COUNT_APART if kind in people.KEPT_APART else _COUNT
    return int(connection.execute(query, {"asked": kind}).scalar_one())


class News(NamedTuple):
    """By what it is seen that something came."""

    last: int  # Number of the last answer
    n_decisions: int  # How often a requester decided about a worker
    n_judged: int  # How often workers were judged


def news(connection: Connection) -> News:
    """Return by what it is seen that something came, in one statement."""
    return News(*connection.execute(_NEWS, _NEWS_OF).one())


def last_time(connection: Connection, kind: str) -> int | None:
    """Return when the last fact of a kind was kept, None if there is none."""
    query = select(func.max(records.c.time)).where(records.c.kind == kind)
    found = connection.execute(query).scalar_one()
    return None if found is None else int(found)


def read_page(connection: Connection, after: int, size: int = AT_ONCE) -> list[Event]:
    """Return the next entries of the log after a number."""
    query = select(events).where(events.c.number > after).order_by(events.c.number)
    rows = connection.execute(query.limit(size))
    return [Event(row.number, row.time, row.kind, read_json(row.body), row.hash) for row in rows]


# --------------------------------------------------------------------------------------------------
# Looking while a campaign runs: a worker's leases, answers as rows, who works, what was skipped.


_HELD = (
    select(items.c.id, items.c.tokens, leases.c.taken, leases.c.expires, leases.c.cost)
    .join(items, items.c.number == leases.c.item)
    .join(workers, workers.c.number == leases.c.worker)
    .where(is_worker() & (leases.c.expires > bindparam("now")))
    .order_by(leases.c.taken)
)
_BARRED = select(workers.c.barred).where(is_worker())
_BRIEF = ("status", "reason", "counts", "started", "submitted", "cost")
_FILLED = select(func.coalesce(func.sum(slots.c.filled), 0))
_ANSWERS = (
    select(items.c.id.label("item"), SHOWN.label("worker"), *(answers.c[n] for n in _BRIEF))
    .join(items, items.c.number == answers.c.item)
    .join(workers, workers.c.number == answers.c.worker)
    .order_by(answers.c.number)
)


_COUNTED = _ANSWERS.add_columns(answers.c.labels).where(answers.c.counts == 1)
_LAST = (
    select(answers.c.number).where(answers.c.counts == 1).order_by(answers.c.number.desc()).limit(1)
)
_SENT = select(answers.c.number).where(answers.c.key == bindparam("sent"))
_LAST_BATCH = select(batches.c.name, batches.c.opened).order_by(batches.c.number.desc()).limit(1)
_OWN = (
    select(items.c.id, answers.c.labels, answers.c.submitted, answers.c.counts, answers.c.status)
    .join(items, items.c.number == answers.c.item)
    .join(workers, workers.c.number == answers.c.worker)
    .where(is_worker() & items.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(answers.c.number)
)


_SINCE = (
    select(
        answers.c.number, items.c.id.label("item"), SHOWN.label("worker"),
        *(answers.c[name] for name in ("status", "counts", "cost")),
    )
    .join(items, items.c.number == answers.c.item)
    .join(workers, workers.c.number == answers.c.worker)
    .where(answers.c.number > bindparam("after"))
    .order_by(answers.c.number)
)  # fmt: skip
_LABELS = select(answers.c.number, answers.c.labels).where(answers.c.number.in_(SOME))
_PASSED = (
    select(items.c.id)
    .join(skips, skips.c.item == items.c.number)
    .join(workers, workers.c.number == skips.c.worker)
    .where(is_worker())
)


class NewAnswer(NamedTuple):
    """An answer that came, in short."""

    number: int  # Of the answer; later ones have higher numbers
    item: str
    worker: str
    status: str  # As in `goldspan.protocols.Receipt`; what became of it when it came
    counts: int  # Whether it counts
    cost: int  # What was paid, in millionths of the currency unit


class AnswerRow(NamedTuple):
    """An answer as a row, whether it counts or is a draft."""

    item: str
    worker: str
    status: str  # As in `goldspan.protocols.Receipt`; what became of it when it came
    reason: str  # Why it does not count, "" if it does
    counts: bool  # Whether it counts and was paid
    started: int  # When its place was taken, in milliseconds since 1970; -1 without a lease
    submitted: int  # When it came
    cost: int  # What was paid, in millionths of the currency unit
    labels: Any = None  # As they were given; None where they were not asked for

    @property
    def is_replaced(self) -> bool:
        """Whether the worker has changed it since: another version counts in its place."""
        return not self.counts and self.status in {"accepted", "late", CHANGED}


class CountedAnswer(NamedTuple):
    """A worker's own answer that counts."""

    item: str
    labels: Any  # As they were given, of the last version
    first: int  # When its first version came, in milliseconds since 1970


class SkippedItem(NamedTuple):
    """An item that a worker passed, and why."""

    item: str
    worker: str
    reason: str
    time: int


def held(connection: Connection, worker: str, now: int) -> list[Lease]:
    """Return the leases of a worker that hold, the oldest first."""
    rows = connection.execute(_HELD, {"name": worker, "now": now})
    return [
        Lease(row.id, worker, tuple(read_json(row.tokens)), row.taken, row.expires, row.cost)
        for row in rows
    ]


def given(connection: Connection, item: str | None = None) -> list[AnswerRow]:
    """Return all answers in the order in which they came; those to an item with their labels."""
    if item is None:
        return [_row(row) for row in connection.execute(_ANSWERS)]
    query = _ANSWERS.add_columns(answers.c.labels).where(items.c.id == item)
    return [_row(row)._replace(labels=read_json(row.labels)) for row in connection.execute(query)]


def counted(connection: Connection) -> dict[tuple[str, str], Any]:
    """Return the labels of all answers that count, by item and worker."""
    rows = connection.execute(_COUNTED)
    return {(row.item, row.worker): read_json(row.labels) for row in rows}


def since(connection: Connection, after: int) -> list[NewAnswer]:
    """Return the answers with higher numbers, in the order in which they came."""
    return [NewAnswer(*row) for row in connection.execute(_SINCE, {"after": after})]


def labels_of(connection: Connection, numbers: Sequence[int]) -> dict[int, Any]:
    """Return the labels of some answers by number."""
    rows = rows_of(connection, _LABELS, numbers)
    return {row.number: read_json(row.labels) for row in rows}


def passed(connection: Connection, worker: str) -> set[str]:
    """Return the items that a worker has passed on."""
    return set(connection.execute(_PASSED, {"name": worker}).scalars())


def own(connection: Connection, worker: str, wanted: Sequence[str]) -> list[CountedAnswer]:
    """Return the answers of a worker to some items that count, by the time of their first version.

    A version that was replaced says when the first one came.
    """
    found: dict[str, CountedAnswer] = {}
    for row in connection.execute(_OWN, {"name": worker, "ids": list(wanted)}):
        if row.status not in {"accepted", "late", CHANGED}:
            continue
        first = found[row.id].first if row.id in found else row.submitted
        found[row.id] = CountedAnswer(row.id, read_json(row.labels), first)
    return list(found.values())


def is_sent(connection: Connection, key: str) -> bool:
    """Whether an answer is kept under a key."""
    return connection.execute(_SENT, {"sent": key_of(connection, key)}).first() is not None


def last_answer(connection: Connection) -> int:
    """Return the number of the last answer; it grows whenever what counts changes."""
    return int(connection.execute(_LAST).scalar() or 0)


def last_batch(connection: Connection) -> tuple[str, int] | None:
    """Return name and time of the batch that was opened last, None before the first."""
    row = connection.execute(_LAST_BATCH).one_or_none()
    return None if row is None else (str(row.name), int(row.opened))


def skipped(connection: Connection, item: str | None = None) -> list[SkippedItem]:
    """Return what was skipped, in the order in which it happened."""
    columns = (items.c.id.label("item"), SHOWN.label("worker"), skips.c.reason, skips.c.time)
    query = select(*columns, skips.c.item, skips.c.worker).select_from(skips)
    query = query.join(items, items.c.number == skips.c.item)
    query = query.join(workers, workers.c.number == skips.c.worker)
    if item is not None:
        query = query.where(items.c.id == item)
    rows = connection.execute(query.order_by(skips.c.time, skips.c.item, skips.c.worker))
    found, reasons = rows.all(), dict[str, str]()
    if any(row.reason == APART for row in found):
        reasons = skip_reasons(connection)
    return [
        SkippedItem(item, worker, reasons.get(f"{n}:{who}", "") if why == APART else why, time)
        for item, worker, why, time, n, who in found
    ]


def standing(connection: Connection) -> dict[str, bool]:
    """Return all workers by id, and whether they are asked nothing more."""
    query = select(SHOWN.label("id"), workers.c.barred).order_by(workers.c.number)
    rows = connection.execute(query)
    return {row.id: bool(row.barred) for row in rows}


def is_barred(connection: Connection, worker: str) -> bool:
    """Whether a worker is asked nothing more; who is not known is asked."""
    return bool(connection.execute(_BARRED, {"name": worker}).scalar())


def is_paused(connection: Connection) -> bool:
    """Whether the campaign holds no new places."""
    return bool(connection.execute(select(campaign.c.paused)).scalar_one())


def n_answers(connection: Connection) -> int:
    """Count the answers that count."""
    return int(connection.execute(_FILLED).scalar_one())


def _row(row: Any) -> AnswerRow:
    return AnswerRow(
        row.item, row.worker, row.status, row.reason, bool(row.counts), row.started,
        row.submitted, row.cost,
    )  # fmt: skip


# --------------------------------------------------------------------------------------------------
# The order of the items of all batches, kept: they neither move nor go, so it only grows.


SLOTS = ("wanted", "places", "leased", "filled")
_NEW = (
    select(slots.c.position, slots.c.item, items.c.id, batches.c.name)
    .join_from(slots, items, items.c.number == slots.c.item)
    .join(batches, batches.c.number == slots.c.batch)
    .where(slots.c.position > bindparam("after"))
    .order_by(slots.c.position)
)
_COUNTS = select(slots.c.item, *(slots.c[name] for name in SLOTS)).order_by(slots.c.item)


@dataclass(frozen=True, eq=False)
class Asked:
    """The items of all batches, in order."""

    position: NDArray[np.int64]  # Where they stand, ascending, int64 [n_items]
    number: NDArray[np.int64]  # Their numbers in the store, int64 [n_items]
    item: pa.Array = field(repr=False)  # Their ids, Arrow strings [n_items]
    batch: pa.Array = field(repr=False)  # Names of their batches, Arrow strings [n_items]

    def __len__(self) -> int:
        """Count the items."""
        return len(self.position)


class Order:
    """Gives the items of all batches; threads may share it."""

    def __init__(self, database: Database) -> None:
        self.database, self._lock = database, threading.Lock()
        self._asked = _asked([])

    def asked(self) -> Asked:
        """Return the items in their order."""
        with self._lock, self.database.read() as connection:
            return self._read_on(connection)

    def slots(self) -> pa.Table:
        """Return item, batch, wanted, places, leased, filled of every item in a batch, in order."""
        # The lock comes first: a connection that is older than the order would lack items.
        with self._lock, self.database.read() as connection:
            asked = self._read_on(connection)
            flat = chain.from_iterable(_plain(connection.execute(_COUNTS)))
            counts = np.fromiter(flat, np.int64).reshape(-1, 1 + len(SLOTS))
        here = counts[np.searchsorted(counts[:, 0], asked.number)]
        columns = {name: pa.array(here[:, n]) for n, name in enumerate(SLOTS, 1)}
        return pa.table({"item": asked.item, "batch": asked.batch, **columns})

    def _read_on(self, connection: Connection) -> Asked:
        """Read what was asked since."""
        old = self._asked
        last = int(old.position[-1]) if len(old) else -1
        rows = _plain(connection.execute(_NEW, {"after": last}))
        if rows:
            new = _asked(rows)
            self._asked = Asked(
                np.concatenate([old.position, new.position]),
                np.concatenate([old.number, new.number]),
                pa.concat_arrays([old.item, new.item]),
                pa.concat_arrays([old.batch, new.batch]),
            )
        return self._asked


def _asked(rows: Sequence[tuple[int, int, str, str]]) -> Asked:
    return Asked(
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.int64),
        pa.array([row[2] for row in rows], pa.string()),
        pa.array([row[3] for row in rows], pa.string()),
    )


def _plain(result: CursorResult[Any]) -> list[tuple[Any, ...]]:
    """Fetch all rows as the driver gives them: rows of SQLAlchemy's take twice as long."""
    cursor: Any = result.cursor
    return list(cursor.fetchall())


# --------------------------------------------------------------------------------------------------
# Pages of the items that are in a batch: what a desk shows of many.


STATES = ("all", "open", "done")
_COLUMNS = ("position", "wanted", "leased", "filled")
_POSITION = (
    select(slots.c.position)
    .join(items, items.c.number == slots.c.item)
    .where(items.c.id == bindparam("name"))
)
_COUNT_SLOTS = select(func.count()).select_from(slots)


class Slot(NamedTuple):
    """The places of an item."""

    item: str
    batch: str
    position: int  # Its place in the order of all batches
    wanted: int  # Answers that it is to get
    leased: int  # Places that are held
    filled: int  # Answers that count


def position_of(connection: Connection, item: str) -> int | None:
    """Return the position of an item, None if it is in no batch."""
    found = connection.execute(_POSITION, {"name": item}).scalar_one_or_none()
    return None if found is None else int(found)


def n_slots(connection: Connection) -> int:
    """Count the items of all batches."""
    return int(connection.execute(_COUNT_SLOTS).scalar_one())


def page(
    connection: Connection,
    after: int = -1,
    state: str = "all",
    limit: int = 100,
    numbers: Sequence[int] | None = None,
) -> list[Slot]:
    """Return the next items behind a position: all, "open" ones that want answers, or "done" ones.

    With `numbers`, some ten thousand at most, only items with these numbers.
    """
    if state not in STATES:
        raise UnknownNameError("state of items", state, STATES)
    query = select(slots.c.item, slots.c.batch, *(slots.c[name] for name in _COLUMNS))
    query = query.where(slots.c.position > after)
    if numbers is not None:
        query = query.where(slots.c.item.in_(numbers))
    if state == "done":
        query = query.where(slots.c.filled >= slots.c.wanted)
    elif state == "open":
        query = query.where(slots.c.filled < slots.c.wanted)
    # Names are looked up for the page alone.
    cut = query.order_by(slots.c.position).limit(limit).subquery()
    named = select(items.c.id, batches.c.name, *(cut.c[name] for name in _COLUMNS))
    named = named.join_from(cut, items, items.c.number == cut.c.item)
    named = named.join(batches, batches.c.number == cut.c.batch).order_by(cut.c.position)
    return [Slot(*row) for row in connection.execute(named)]
