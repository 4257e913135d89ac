"""Reading everything back: the answers that count as a `Crowd`, facts, the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, func, select

from goldspan.crowd import Crowd
from goldspan.errors import UnknownNameError
from goldspan.protocols import Event
from goldspan.spans import Codec
from goldspan.store.chain import read_json
from goldspan.store.columns import ANSWER, ITEM, Items, answers_of, crowd_of
from goldspan.store.schema import answers, events, items, records, slots

WHICH = ("answered", "batch", "pool")
AT_ONCE = 1_000
_FACT = select(records.c.body).where(
    (records.c.kind == bindparam("asked")) & (records.c.name == bindparam("known"))
)
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
    query = select(records).where(records.c.kind == kind).order_by(records.c.number)
    return {row.name: read_json(row.body) for row in connection.execute(query)}


def read_fact(connection: Connection, kind: str, name: str) -> dict[str, Any] | None:
    """Give one fact of a kind, None if there is none."""
    body = connection.execute(_FACT, {"asked": kind, "known": name}).scalar_one_or_none()
    return None if body is None else dict(read_json(body))


def count_records(connection: Connection, kind: str) -> int:
    """Count the facts of a kind."""
    return int(connection.execute(_COUNT, {"asked": kind}).scalar_one())


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
