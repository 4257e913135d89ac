"""The answers that count, read once: a look at a campaign reads only what came since the last one.

What comes to count has a higher number than what counted before, for a campaign has one writer at a
time. The new version of an answer that a worker changed takes the place of the old one. Items never
change. Gold and the workers' names are few, and read at every look.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, bindparam, select

from goldspan.crowd import Answers, Crowd
from goldspan.spans import Codec
from goldspan.store.columns import ANSWER, ITEM, Items, answers_of, bounds_of, crowd_of
from goldspan.store.journal import Database
from goldspan.store.schema import answers, items

PAGE = 5_000
"""Answers that are read at once."""
NAMED = 1_000
"""Items that a query names."""
_NEW = (
    select(*ANSWER)
    .where((answers.c.counts == 1) & (answers.c.number > bindparam("after")))
    .order_by(answers.c.number)
    .limit(bindparam("size"))
)
_ITEMS = (
    select(*ITEM)
    .where(items.c.number.in_(bindparam("numbers", expanding=True)))
    .order_by(items.c.number)
)


@dataclass(frozen=True, eq=False)
class Seen:
    """What was read so far; the crowd of a look shares these columns.

    Attributes:
        last: Number of the last answer.
        items: Those that have an answer.
        answers: By item, then as they came, with the store's numbers of items and workers.
    """

    last: int
    items: Items = field(repr=False)
    answers: Answers = field(repr=False)


class Grown:
    """Gives the answered items with their answers, again and again; threads may share it.

    Args:
        database: The campaign's.
        tagset: Its tags.
    """

    def __init__(self, database: Database, tagset: Codec) -> None:
        self.database, self.tagset = database, tagset
        self._lock = threading.Lock()
        self._seen = Seen(0, Items.of([]), answers_of([], tagset))

    def crowd(self) -> Crowd:
        """Give the crowd as it is now."""
        # The lock comes first: a connection that is older than what was seen would lack workers.
        with self._lock, self.database.read() as connection:
            self._seen = _read_on(connection, self._seen, self.tagset)
            return crowd_of(connection, self._seen.items, self._seen.answers, self.tagset)


def _read_on(connection: Connection, seen: Seen, tagset: Codec) -> Seen:
    """Read what came since."""
    last, parts = seen.last, [seen.answers]
    for rows in _pages(connection, seen.last):
        parts.append(answers_of(rows, tagset))
        last = rows[-1].number
    if len(parts) == 1:
        return seen
    given = _joined(parts)
    found = _with_items(connection, seen.items, given)
    return Seen(last, found, given.take(_last_versions(given)))


def _last_versions(given: Answers) -> NDArray[np.intp]:
    """Return where the last version of every answer is, by item and then as they came."""
    order: NDArray[np.intp] = np.argsort(given.item, kind="stable")
    pair = (given.item.astype(np.int64) << 32 | given.worker)[order]
    # Of every pair the last one in this order: unique gives the first, so it is read backwards.
    _, backwards = np.unique(pair[::-1], return_index=True)
    if len(backwards) == len(pair):
        return order
    kept: NDArray[np.intp] = order[np.sort(len(pair) - 1 - backwards)]
    return kept


def _pages(connection: Connection, after: int) -> Iterator[Sequence[Any]]:
    while rows := connection.execute(_NEW, {"after": after, "size": PAGE}).all():
        yield rows
        if len(rows) < PAGE:
            return
        after = rows[-1].number


def _with_items(connection: Connection, known: Items, given: Answers) -> Items:
    new = np.setdiff1d(given.item, known.number).tolist()
    parts = [new[start : start + NAMED] for start in range(0, len(new), NAMED)]
    rows = [row for part in parts for row in connection.execute(_ITEMS, {"numbers": part})]
    return known.joined(Items.of(rows)) if rows else known


def _joined(parts: Sequence[Answers]) -> Answers:
    def column(name: str) -> Any:
        return np.concatenate([getattr(part, name) for part in parts])

    return Answers(
        column("item"),
        column("worker"),
        bounds_of(np.concatenate([part.lengths for part in parts])),
        column("codes"),
        column("attempt"),
        started=column("started"),
        submitted=column("submitted"),
        cost=column("cost"),
    )
