"""Items and the batches in which they are opened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import BindParameter, Connection, Select, bindparam, case, func, select

from goldspan.crowd.builder import Item, item_faults
from goldspan.errors import Fault, FaultsError, InputError
from goldspan.protocols import PoolItem
from goldspan.store.journal import Entry, canonical, read_json
from goldspan.store.schema import batches, check_amount, check_name, is_name, items, slots, workers

# --------------------------------------------------------------------------------------------------
# The pool: raw items, added in blocks, so that a pool of any size takes little memory.


BLOCK = 5_000
"""Items of one transaction."""
FEW = 10_000
"""Names asked for at once: databases allow some ten thousand parameters."""
_CONTENT = {"n_tokens": "length"}
_FACTS = {"text": "text", "token_start": "places of tokens", "attributes": "attributes"}
_TWICE = "the id appears twice in the pool: give every item an id of its own"


def in_blocks(pool: Iterable[PoolItem], size: int = BLOCK) -> Iterator[list[PoolItem]]:
    """Cut a pool into lists of items."""
    rest = iter(pool)
    while block := list(islice(rest, size)):
        yield block


def add_block(entry: Entry, block: Sequence[PoolItem]) -> int:
    """Add items of one block, and count those that were not there."""
    # Items that are there are compared
    _reject([fault for item in block for fault in _faults(item)])
    names = [item.id for item in block]
    columns = [column for column in items.c if column.name != "number"]
    query = select(*columns).where(items.c.id.in_(names))
    there = {row["id"]: dict(row) for row in entry.connection.execute(query).mappings()}
    faults: list[Fault] = []
    new: dict[str, dict[str, Any]] = {}
    completed: list[dict[str, Any]] = []
    for row in map(_to_row, block):
        known = there.get(row["id"], new.get(row["id"]))
        if known is None:
            new[row["id"]] = row
        elif row["id"] in new:
            faults.append(Fault(_TWICE, item=row["id"], kind="duplicate-item"))
        elif known != row:
            differs = _differences(known, row)
            if differs:
                faults.append(Fault(_other(differs), item=row["id"], kind="duplicate-item"))
            else:
                completed.append({"id": row["id"], "extra": row["extra"]})
    _reject(faults)
    if completed:
        entry.log("details", {"items": completed})
    if new:
        last = entry.connection.execute(select(func.max(items.c.number))).scalar_one() or 0
        entry.log("items", {"first": last + 1, "items": list(new.values())})
    return len(new)


def _differences(known: Mapping[str, Any], row: Mapping[str, Any]) -> list[str]:
    """Name what an item in the store says otherwise than the pool."""
    found = [
        _CONTENT.get(name, name) for name in row if name != "extra" and row[name] != known[name]
    ]
    old, new = (read_json(one["extra"]) if one["extra"] else {} for one in (known, row))
    return found + [
        words
        for name, words in _FACTS.items()
        if old.get(name) is not None and old[name] != new.get(name)
    ]


def put_items(entry: Entry, body: Mapping[str, Any]) -> None:
    """Write the rows of new items."""
    rows = [{"number": n, **row} for n, row in enumerate(body["items"], start=body["first"])]
    entry.connection.execute(items.insert(), rows)


def put_details(entry: Entry, body: Mapping[str, Any]) -> None:
    """Write what is known of items besides their tokens."""
    query = items.update().where(items.c.id == bindparam("known"))
    rows = [{"known": row["id"], "extra": row["extra"]} for row in body["items"]]
    entry.connection.execute(query, rows)


SOME: BindParameter[Any] = bindparam("some", expanding=True)
"""What `rows_of` sets."""
_NUMBERS = select(items.c.id, items.c.number).where(items.c.id.in_(SOME))


def rows_of(connection: Connection, query: Select[Any], names: Sequence[Any]) -> Iterator[Any]:
    """Yield the rows of a query about `SOME` names or numbers, however many they are."""
    for start in range(0, len(names), FEW):
        yield from connection.execute(query, {"some": list(names[start : start + FEW])})


def numbers_of(entry: Entry, names: Sequence[str]) -> dict[str, int]:
    """Find the numbers of items by id."""
    possible = [name for name in names if is_name(name)]
    found = {row.id: row.number for row in rows_of(entry.connection, _NUMBERS, possible)}
    missing = [name for name in dict.fromkeys(names) if name not in found]
    if missing:
        raise FaultsError([Fault("is not in the pool", item=name) for name in missing])
    return found


def _reject(faults: Sequence[Fault]) -> None:
    if faults:
        raise FaultsError(faults, "the pool is refused; no item of this block was added")


def _other(differs: Sequence[str]) -> str:
    what = ", ".join(differs)
    return f"is in the store with other content ({what}): give it back as it was, or a new id"


def _to_row(item: PoolItem) -> dict[str, Any]:
    extra = {
        "group": item.group,
        "text": item.text,
        "token_start": None if item.token_start is None else list(item.token_start),
        "attributes": dict(item.attributes) or None,
    }
    known = {name: value for name, value in extra.items() if value is not None}
    return {
        "id": item.id,
        "cost": item.cost,
        "n_tokens": len(item.tokens),
        "tokens": canonical(list(item.tokens)),
        "extra": canonical(known) if known else None,
    }


def _faults(item: PoolItem) -> list[Fault]:
    fields = (item.id, list(item.tokens), item.group, item.text, item.token_start)
    faults = item_faults(Item(*fields, item.attributes, "", 0, None))
    try:
        check_name(item.id, "the id of an item")
        check_amount(item.cost, "the cost of an answer")
    except InputError as error:
        faults.append(Fault(str(error), item=repr(item.id), kind="out-of-range"))
    return faults


# --------------------------------------------------------------------------------------------------
# Batches: items with places for k answers each, and how many an item is to get.


MOST_PLACES = 1_000_000


def check_k(k: int, what: str = "k") -> int:
    """Check a number of answers, and return it."""
    if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k <= MOST_PLACES:
        raise InputError(f"{what} must be a whole number from 0 to {MOST_PLACES:,}, not {k!r}")
    return k


def open_batch(entry: Entry, name: str, names: Sequence[str], k: int) -> int:
    """Open a batch and return its number; one that is open under this name stays."""
    if check_k(k) < 1 or not names:
        raise InputError("a batch needs items, and k = 1 answer to each at least")
    found = numbers_of(entry, names)
    if len(found) != len(names):
        raise InputError(f"batch {name!r} names {len(names) - len(found)} items twice")
    numbers = [found[item] for item in names]
    row = entry.connection.execute(select(batches).where(batches.c.name == name)).one_or_none()
    if row is not None:
        query = select(slots.c.item).where(slots.c.batch == row.number).order_by(slots.c.position)
        if (row.k, list(entry.connection.execute(query).scalars())) != (k, numbers):
            raise InputError(f"batch {name!r} is open with other items or another k: rename it")
        return int(row.number)
    query = select(items.c.id).join(slots).where(slots.c.item.in_(SOME))
    taken = [row.id for row in rows_of(entry.connection, query, numbers)]
    if taken:
        message = "is in a batch already: set its number of answers with `adjust`"
        raise FaultsError([Fault(message, item=name) for name in taken])
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
    """Set how many answers items are to get, and count those for which this is new."""
    found = numbers_of(entry, list(wanted))
    asked = {found[name]: check_k(k, f"k of {name}") for name, k in wanted.items()}
    query = select(slots.c.item, slots.c.wanted).where(slots.c.item.in_(SOME))
    now = {row.item: row.wanted for row in rows_of(entry.connection, query, list(asked))}
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
    query = select(func.min(slots.c.position).label("first")).where(slots.c.item.in_(SOME))
    found = [row.first for row in rows_of(entry.connection, query, numbers)]
    first = min((one for one in found if one is not None), default=None)
    if first is not None:  # else they are in no batch
        late = workers.update().where(workers.c.cursor > first)
        entry.connection.execute(late.values(cursor=first))
