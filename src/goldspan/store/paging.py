"""Pages of the items that are in a batch: what a desk shows of many.

A page is cut by the database, so that it costs little however many items there are; all is read
only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, func, select

from goldspan.errors import UnknownNameError
from goldspan.store.schema import batches, items, slots

STATES = ("all", "open", "done")
_COLUMNS = ("position", "wanted", "leased", "filled")
_POSITION = (
    select(slots.c.position)
    .join(items, items.c.number == slots.c.item)
    .where(items.c.id == bindparam("name"))
)
_COUNT = select(func.count()).select_from(slots)


class Slot(NamedTuple):
    """The places of an item.

    Attributes:
        item: Its id.
        batch: Name of its batch.
        position: Where it stands in the order of all batches.
        wanted: Answers that it is to get.
        leased: Places that are held.
        filled: Answers that count.
    """

    item: str
    batch: str
    position: int
    wanted: int
    leased: int
    filled: int


def position_of(connection: Connection, item: str) -> int | None:
    """Give the position of an item, None if it is in no batch."""
    found = connection.execute(_POSITION, {"name": item}).scalar_one_or_none()
    return None if found is None else int(found)


def n_slots(connection: Connection) -> int:
    """Count the items of all batches."""
    return int(connection.execute(_COUNT).scalar_one())


def page(
    connection: Connection,
    after: int = -1,
    state: str = "all",
    limit: int = 100,
    numbers: Sequence[int] | None = None,
) -> list[Slot]:
    """Give the next items behind a position.

    Args:
        connection: To the campaign's database.
        after: The position.
        state: "open": only items that want answers; "done": only those that have enough.
        limit: Most items.
        numbers: Only items with one of these numbers, some ten thousand at most.

    Raises:
        UnknownNameError: There is no such state.
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
