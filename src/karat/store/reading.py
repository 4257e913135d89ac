"""Reading everything back: the answers that count as a `Crowd`, the slots as a table, the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from sqlalchemy import Connection, bindparam, func, select

from karat.crowd import Answers, Crowd
from karat.crowd.model import list_array
from karat.errors import UnknownNameError
from karat.protocols import Event
from karat.spans import Codec
from karat.store.chain import read_json
from karat.store.schema import answers, batches, events, gold, items, records, slots, workers

WHICH = ("answered", "batch", "pool")
SLOTS = ("wanted", "places", "leased", "filled")
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
    rows = _item_rows(connection, which)
    place = {row.number: n for n, row in enumerate(rows)}
    tokens = [read_json(row.tokens) for row in rows]
    lengths = np.array([len(words) for words in tokens], np.int64)
    flat = pa.array([token for words in tokens for token in words], pa.string())
    extra = [read_json(row.extra) if row.extra else {} for row in rows]
    names, made = _answers(connection, place, lengths, tagset)
    return Crowd(
        item_ids=pa.array([row.id for row in rows], pa.string()),
        tokens=list_array(flat, np.concatenate([[0], np.cumsum(lengths)])),
        worker_ids=pa.array(names, pa.string()),
        tagset=tagset,
        answers=made,
        groups=_words(extra, "group"),
        gold=_gold(connection, place, lengths, tagset),
        texts=_words(extra, "text"),
        token_start=_starts(extra),
        attributes=_attributes(extra),
    )


def read_slots(connection: Connection) -> pa.Table:
    """Give item, batch, wanted, places, leased, filled of every item in a batch, in order."""
    known = {row.number: row.name for row in connection.execute(select(batches))}
    columns = (items.c.id, slots.c.batch, *(slots.c[name] for name in SLOTS))
    joined = select(*columns).select_from(slots).join(items).order_by(slots.c.position)
    rows = connection.execute(joined).all()
    names, numbers, *counts = zip(*rows, strict=True) if rows else ((),) * len(columns)
    table = {
        "item": pa.array(names, pa.string()),
        "batch": pa.array([known[number] for number in numbers], pa.string()),
    }
    for name, values in zip(SLOTS, counts, strict=True):
        table[name] = pa.array(values, pa.int64())
    return pa.table(table)


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
    query = select(items.c.number, items.c.id, items.c.tokens, items.c.extra)
    if which == "answered":
        query = query.where(items.c.number.in_(select(answers.c.item).where(answers.c.counts == 1)))
    elif which == "batch":
        query = query.where(items.c.number.in_(select(slots.c.item)))
    return connection.execute(query.order_by(items.c.number)).all()


def _answers(
    connection: Connection, place: dict[int, int], lengths: np.ndarray[Any, Any], tagset: Codec
) -> tuple[list[str], Answers]:
    columns = ("item", "worker", "labels", "started", "submitted", "cost")
    query = select(*(answers.c[name] for name in columns)).where(answers.c.counts == 1)
    rows = connection.execute(query.order_by(answers.c.item, answers.c.number)).all()
    people = sorted({row.worker for row in rows})
    rank = {number: n for n, number in enumerate(people)}
    known = {row.number: row.id for row in connection.execute(select(workers))}
    item = np.array([place[row.item] for row in rows], np.int32)
    codes = [tagset.index[label] for row in rows for label in read_json(row.labels)]
    bounds = np.concatenate([[0], np.cumsum(lengths[item])]) if len(rows) else np.zeros(1)
    made = Answers(
        item,
        np.array([rank[row.worker] for row in rows], np.int32),
        bounds.astype(np.int64),
        np.array(codes, np.int16),
        np.zeros(len(rows), np.int16),
        started=np.array([row.started for row in rows], np.int64),
        submitted=np.array([row.submitted for row in rows], np.int64),
        cost=np.array([row.cost for row in rows], np.int64),
    )
    return [known[number] for number in people], made


def _gold(
    connection: Connection, place: dict[int, int], lengths: np.ndarray[Any, Any], tagset: Codec
) -> np.ndarray[Any, np.dtype[np.int16]] | None:
    rows = [row for row in connection.execute(select(gold)) if row.item in place]
    if not rows:
        return None
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    codes = np.full(bounds[-1], -1, np.int16)
    for row in rows:
        start = bounds[place[row.item]]
        labels = [tagset.index[label] for label in read_json(row.labels)]
        codes[start : start + len(labels)] = labels
    return codes


def _words(extra: list[dict[str, Any]], name: str) -> pa.Array | None:
    values = [facts.get(name) for facts in extra]
    return None if all(value is None for value in values) else pa.array(values, pa.string())


def _starts(extra: list[dict[str, Any]]) -> np.ndarray[Any, np.dtype[np.int32]] | None:
    starts = [facts.get("token_start") for facts in extra]
    known = [start for start in starts if start is not None]
    if not known or len(known) < len(starts):
        return None
    return np.array([place for start in known for place in start], np.int32)


def _attributes(extra: list[dict[str, Any]]) -> pa.Table | None:
    facts = [each.get("attributes", {}) for each in extra]
    names = list(dict.fromkeys(name for each in facts for name in each))
    return pa.table({name: [each.get(name) for each in facts] for name in names}) if names else None
