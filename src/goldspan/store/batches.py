"""Batches: items with places for k answers each, and how many an item is to get.

A slot's position is (batch, rank in the batch) in one number, batch · 2³² + rank, so that the next
free place is the first of an index. `places` is max(wanted, leased + filled): lowering `wanted`
takes away free places only, never one that is in use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import BindParameter, bindparam, case, func, select

from goldspan.errors import Fault, FaultsError, InputError
from goldspan.store.pool import FEW, numbers_of
from goldspan.store.schema import batches, items, slots, workers

if TYPE_CHECKING:
    from goldspan.store.journal import Entry

MOST_PLACES = 1_000_000


def check_k(k: int, what: str = "k") -> int:
    """Check a number of answers, and give it.

    Raises:
        InputError: It is no whole number, negative or too large.
    """
    if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k <= MOST_PLACES:
        raise InputError(f"{what} must be a whole number from 0 to {MOST_PLACES:,}, not {k!r}")
    return k


def open_batch(entry: Entry, name: str, names: Sequence[str], k: int) -> int:
    """Open a batch and give its number; one that is open under this name stays.

    Raises:
        FaultsError: Items are not in the pool, stand twice, or are in a batch already.
        InputError: The name stands for another batch, k is none, or there is no item.
    """
    if check_k(k) < 1 or not names:
        raise InputError("a batch needs items, and k = 1 answer to each at least")
    found = numbers_of(entry, names)
    if len(found) != len(names):
        raise InputError(f"batch {name!r} names {len(names) - len(found)} items twice")
    numbers = [found[item] for item in names]
    row = entry.connection.execute(select(batches).where(batches.c.name == name)).one_or_none()
    if row is not None:
        if (row.k, _items_of(entry, row.number)) != (k, numbers):
            raise InputError(f"batch {name!r} is open with other items or another k: rename it")
        return int(row.number)
    _check_new(entry, numbers)
    number = (entry.connection.execute(select(func.max(batches.c.number))).scalar_one() or 0) + 1
    entry.log("batch", {"number": number, "name": name, "k": k, "items": numbers})
    return int(number)


def put_batch(entry: Entry, body: Mapping[str, Any]) -> None:
    """Write the rows of a batch and its slots."""
    number, k, numbers = body["number"], body["k"], body["items"]
    row = {"number": number, "name": body["name"], "k": k, "n_items": len(numbers)}
    entry.connection.execute(batches.insert(), {**row, "opened": entry.clock})
    base, same = number << 32, {"batch": number, "wanted": k, "places": k, "leased": 0, "filled": 0}
    for start in range(0, len(numbers), FEW):
        rows = [
            {"item": item, "position": base + rank, **same}
            for rank, item in enumerate(numbers[start : start + FEW], start=start)
        ]
        entry.connection.execute(slots.insert(), rows)


def adjust(entry: Entry, wanted: Mapping[str, int]) -> int:
    """Set how many answers items are to get, and count those for which this is new.

    Raises:
        FaultsError: Items are not in the pool or in no batch.
        InputError: A number is none.
    """
    found = numbers_of(entry, list(wanted))
    asked = {found[name]: check_k(k, f"k of {name}") for name, k in wanted.items()}
    now: dict[int, int] = {}
    numbers = list(asked)
    for start in range(0, len(numbers), FEW):
        part = numbers[start : start + FEW]
        query = select(slots.c.item, slots.c.wanted).where(slots.c.item.in_(part))
        now.update((row.item, row.wanted) for row in entry.connection.execute(query))
    outside = [name for name in wanted if found[name] not in now]
    if outside:
        raise FaultsError([Fault("is in no batch: open one", item=name) for name in outside])
    changed = [[item, k] for item, k in asked.items() if now[item] != k]
    if changed:
        entry.log("adjust", {"items": changed})
    return len(changed)


def put_wanted(entry: Entry, body: Mapping[str, Any]) -> None:
    """Set how many answers items are to get."""
    rows = [{"number": item, "k": k} for item, k in body["items"]]
    busy = slots.c.leased + slots.c.filled
    k: BindParameter[int] = bindparam("k")
    places = case((busy > k, busy), else_=k)
    update = slots.update().where(slots.c.item == bindparam("number"))
    entry.connection.execute(update.values(wanted=k, places=places), rows)
    look_back(entry, [item for item, _ in body["items"]])


def look_back(entry: Entry, numbers: Sequence[int]) -> None:
    """Let workers look again at items that may have got a free place."""
    for start in range(0, len(numbers), FEW):
        part = list(numbers[start : start + FEW])
        query = select(func.min(slots.c.position)).where(slots.c.item.in_(part))
        first = entry.connection.execute(query).scalar_one()
        if first is None:  # in no batch
            continue
        late = workers.update().where(workers.c.cursor > first)
        entry.connection.execute(late.values(cursor=first))


def _items_of(entry: Entry, batch: int) -> list[int]:
    query = select(slots.c.item).where(slots.c.batch == batch).order_by(slots.c.position)
    return list(entry.connection.execute(query).scalars())


def _check_new(entry: Entry, numbers: Sequence[int]) -> None:
    for start in range(0, len(numbers), FEW):
        part = list(numbers[start : start + FEW])
        query = select(items.c.id).join(slots).where(slots.c.item.in_(part))
        taken = list(entry.connection.execute(query).scalars())
        if taken:
            message = "is in a batch already: set its number of answers with `adjust`"
            raise FaultsError([Fault(message, item=name) for name in taken])
