"""The order of the items of all batches, kept: they neither move nor go, so it only grows.

What changes, how many places are wanted, held and filled, is read anew; it is only numbers.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlalchemy import Connection, CursorResult, bindparam, select

from goldspan.store.journal import Database
from goldspan.store.schema import batches, items, slots

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
    """The items of all batches, in order.

    Attributes:
        position: Where they stand, ascending, int64 [n_items].
        number: Their numbers in the store, int64 [n_items].
        item: Their ids, Arrow strings [n_items].
        batch: Names of their batches, Arrow strings [n_items].
    """

    position: NDArray[np.int64]
    number: NDArray[np.int64]
    item: pa.Array = field(repr=False)
    batch: pa.Array = field(repr=False)

    def __len__(self) -> int:
        """Count the items."""
        return len(self.position)


class Order:
    """Gives the items of all batches; threads may share it.

    Args:
        database: The campaign's.
    """

    def __init__(self, database: Database) -> None:
        self.database, self._lock = database, threading.Lock()
        self._asked = _asked([])

    def asked(self) -> Asked:
        """Give the items in their order."""
        with self._lock, self.database.read() as connection:
            return self._read_on(connection)

    def slots(self) -> pa.Table:
        """Give item, batch, wanted, places, leased, filled of every item in a batch, in order."""
        # The lock comes first: a connection that is older than the order would lack items.
        with self._lock, self.database.read() as connection:
            asked = self._read_on(connection)
            counts = _table(connection, 1 + len(SLOTS))
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


def _table(connection: Connection, width: int) -> NDArray[np.int64]:
    """Read the numbers of all slots by item, int64 [n_items, width]."""
    flat = np.fromiter(chain.from_iterable(_plain(connection.execute(_COUNTS))), np.int64)
    return flat.reshape(-1, width)


def _plain(result: CursorResult[Any]) -> list[tuple[Any, ...]]:
    """Fetch all rows as the driver gives them: rows of SQLAlchemy's take twice as long."""
    cursor: Any = result.cursor
    return list(cursor.fetchall())
