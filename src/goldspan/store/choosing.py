"""Which items a worker gets next: the first free places in the order of batches and priorities.

The order is an index, so that finding its next free place takes the logarithm of the pool's size.
What a worker has had already lies at the front of the queue and would be passed again and again:
every worker's cursor says below which position nothing is left for them. A place that becomes free
again moves the cursors back.

Control questions are never found this way: who asks decides when one is due, and names it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import (
    BindParameter,
    Connection,
    and_,
    bindparam,
    exists,
    func,
    literal_column,
    or_,
    select,
    text,
)

from goldspan.store.people import is_worker
from goldspan.store.schema import FREE, answers, gold, items, leases, skips, slots, workers
from goldspan.store.workers import Worker

if TYPE_CHECKING:
    from goldspan.store.journal import Entry

WINDOW = 32
"""Places looked at in one query."""
MOST_DEAR = 64
"""Items that cost more than what is left and are passed before the search is given up."""


def _free_places() -> Any:
    """Make the query for free places: has the worker `who` had the item, is it a control one?"""
    who: BindParameter[int] = bindparam("who")
    had = or_(
        *(
            exists().where(and_(table.c.item == slots.c.item, table.c.worker == who))
            for table in (answers, leases, skips)
        )
    )
    known = exists().where(and_(gold.c.item == slots.c.item, gold.c.control == literal_column("1")))
    columns = (slots.c.item, slots.c.position, items.c.cost)
    query = select(*columns, had.label("had"), known.label("control"))
    return query.join(items, items.c.number == slots.c.item).where(text(FREE))


_FREE_PLACES = _free_places()
_WINDOW = (
    _FREE_PLACES.where(slots.c.position >= bindparam("start"))
    .order_by(slots.c.position)
    .limit(bindparam("size"))
)
_LOOKS = select(workers.c.number, workers.c.cursor).where(is_worker())
_PLACES = _FREE_PLACES.where(slots.c.position >= bindparam("start")).subquery()
_LEFT = select(func.count()).select_from(
    select(_PLACES.c.item)
    .where(~_PLACES.c.had & ~_PLACES.c.control)
    .limit(bindparam("most"))
    .subquery()
)


class Choice(NamedTuple):
    """An item to lease, and what it costs."""

    item: int
    cost: int


class Choices(NamedTuple):
    """The items found, and where the worker looks next time."""

    found: list[Choice]
    cursor: int


def next_items(entry: Entry, worker: Worker, n: int) -> Choices:
    """Choose the next n items for a worker, as far as there are and the money suffices."""
    found: list[Choice] = []
    start, left, dear, cursor = worker.cursor, entry.purse.left, 0, -1
    while len(found) < n and dear < MOST_DEAR:
        window = {"who": worker.number, "start": start, "size": WINDOW}
        rows = entry.connection.execute(_WINDOW, window).all()
        for row in rows:
            if len(found) == n:
                break
            start = row.position + 1
            if row.had or row.control:
                continue
            if row.cost > left:
                dear += 1
                # The place stays in front of the worker for when there is money again.
                cursor = row.position if cursor < 0 else cursor
                continue
            found.append(Choice(row.item, row.cost))
            left -= row.cost
        if len(rows) < WINDOW:
            break
    return Choices(found, start if cursor < 0 else cursor)


def n_left(connection: Connection, worker: str, most: int) -> int:
    """Count the free places that a worker could take, control questions aside.

    Args:
        connection: To the campaign's database.
        worker: The worker; one who is new could take every place.
        most: Where counting ends.
    """
    row = connection.execute(_LOOKS, {"name": worker}).one_or_none()
    who, start = (-1, 0) if row is None else (row.number, row.cursor)
    return int(connection.execute(_LEFT, {"who": who, "start": start, "most": most}).scalar_one())


def these_items(entry: Entry, worker: Worker, numbers: list[int], n: int) -> list[Choice]:
    """Choose among given items, in their order."""
    query = _FREE_PLACES.where(slots.c.item.in_(numbers))
    free = entry.connection.execute(query, {"who": worker.number})
    rows = {row.item: row for row in free}
    found: list[Choice] = []
    left = entry.purse.left
    for number in numbers:
        row = rows.get(number)
        if row is None or row.had or row.cost > left or len(found) == n:
            continue
        found.append(Choice(row.item, row.cost))
        left -= row.cost
    return found
