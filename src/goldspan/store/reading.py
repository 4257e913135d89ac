"""Reading everything back: the answers that count as a `Crowd`, facts, the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, func, select

from goldspan.crowd import Crowd
from goldspan.errors import UnknownNameError
from goldspan.protocols import Event
from goldspan.spans import Codec
from goldspan.store import people
from goldspan.store.chain import read_json
from goldspan.store.columns import ANSWER, ITEM, Items, answers_of, crowd_of
from goldspan.store.schema import answers, events, items, notes, records, slots

WHICH = ("answered", "batch", "pool")
AT_ONCE = 1_000
_FACT = select(records.c.body).where(
    (records.c.kind == bindparam("asked")) & (records.c.name == bindparam("known"))
)
_NOTE = select(notes.c.body).where(
    (notes.c.kind == bindparam("asked")) & (notes.c.name == bindparam("known"))
)
_COUNT_NOTES = select(func.count()).select_from(notes).where(notes.c.kind == bindparam("asked"))
_NAMING = people.KEPT_APART | {people.BAR, people.VERDICTS}
"""Kinds of records that name workers."""
_COUNT = select(func.count()).where(records.c.kind == bindparam("asked"))


def read_crowd(connection: Connection, tagset: Codec, which: str = "answered") -> Crowd:
    """Give items in the order of the pool with the answers that count, and gold where known.

    Args:
        connection: One that sees one state.
        tagset: The campaign's tags.
        which: The items with an answer, all in a "batch", or the whole "pool".

    Raises:
        UnknownNameError: `which` is none of these.
    """
    found = Items.of(_item_rows(connection, which))
    query = select(*ANSWER).where(answers.c.counts == 1)
    rows = connection.execute(query.order_by(answers.c.item, answers.c.number)).all()
    return crowd_of(connection, found, answers_of(rows, tagset), tagset)


def read_records(connection: Connection, kind: str) -> dict[str, dict[str, Any]]:
    """Give all facts of a kind by name, in the order in which they came."""
    found = people.read_notes(connection, kind) if kind in people.KEPT_APART else {}
    if not found:
        query = select(records).where(records.c.kind == kind).order_by(records.c.number)
        found = {row.name: read_json(row.body) for row in connection.execute(query)}
    names = people.ids(connection) if found and kind in _NAMING else {}
    return dict(people.shown(kind, name, body, names) for name, body in found.items())


def read_fact(connection: Connection, kind: str, name: str) -> dict[str, Any] | None:
    """Give one fact of a kind, None if there is none."""
    if kind == people.BAR:
        name = people.pseudonym_of(connection, name)
    elif kind == people.FLAG:
        name = people.key_of(connection, name)
    elif kind in _NAMING:
        return read_records(connection, kind).get(name)
    query = _NOTE if kind in people.KEPT_APART and people.is_private(connection) else _FACT
    body = connection.execute(query, {"asked": kind, "known": name}).scalar_one_or_none()
    if body is None:
        return None
    names = people.ids(connection) if kind in _NAMING else {}
    return people.shown(kind, name, dict(read_json(body)), names)[1]


def count_records(connection: Connection, kind: str) -> int:
    """Count the facts of a kind."""
    if kind in people.KEPT_APART and people.is_private(connection):
        return int(connection.execute(_COUNT_NOTES, {"asked": kind}).scalar_one())
    return int(connection.execute(_COUNT, {"asked": kind}).scalar_one())


def last_time(connection: Connection, kind: str) -> int | None:
    """Return when the last fact of a kind was kept, None if there is none."""
    query = select(func.max(records.c.time)).where(records.c.kind == kind)
    found = connection.execute(query).scalar_one()
    return None if found is None else int(found)


def read_events(connection: Connection) -> Iterator[Event]:
    """Give the whole log, some entries at a time."""
    after = 0
    while page := read_page(connection, after):
        yield from page
        after = page[-1].number


def read_page(connection: Connection, after: int, size: int = AT_ONCE) -> list[Event]:
    """Give the next entries of the log after a number."""
    query = select(events).where(events.c.number > after).order_by(events.c.number)
    rows = connection.execute(query.limit(size))
    return [Event(row.number, row.time, row.kind, read_json(row.body), row.hash) for row in rows]


def _item_rows(connection: Connection, which: str) -> Sequence[Any]:
    if which not in WHICH:
        raise UnknownNameError("choice of items", which, WHICH)
    query = select(*ITEM)
    if which == "answered":
        query = query.where(items.c.number.in_(select(answers.c.item).where(answers.c.counts == 1)))
    elif which == "batch":
        query = query.where(items.c.number.in_(select(slots.c.item)))
    return connection.execute(query.order_by(items.c.number)).all()
