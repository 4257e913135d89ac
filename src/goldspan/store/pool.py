"""The pool: raw items, added in blocks, so that a pool of any size takes little memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, func, select

from goldspan.crowd import Crowd
from goldspan.crowd.entries import Item, item_faults
from goldspan.errors import Fault, FaultsError, InputError
from goldspan.protocols import PoolItem
from goldspan.store.chain import canonical, read_json
from goldspan.store.money import check_amount
from goldspan.store.names import check_name, is_name
from goldspan.store.schema import items

if TYPE_CHECKING:
    from goldspan.store.journal import Entry

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


def pool_items(crowd: Crowd, cost: int | Sequence[int]) -> Iterator[PoolItem]:
    """Give the items of a crowd, without answers and gold, as a pool.

    Args:
        crowd: Whose items.
        cost: Of one answer, in millionths of the currency unit; or one per item.
    """
    costs = [cost] * crowd.n_items if isinstance(cost, int) else cost
    names = crowd.item_ids.to_pylist()
    starts, bounds = crowd.token_start, crowd.offsets.tolist()
    for n, (name, amount) in enumerate(zip(names, costs, strict=True)):
        place = slice(bounds[n], bounds[n + 1])
        yield PoolItem(
            name,
            tuple(crowd.tokens[n].as_py()),
            amount,
            group=None if crowd.groups is None else crowd.groups[n].as_py(),
            text=None if crowd.texts is None else crowd.texts[n].as_py(),
            token_start=None if starts is None else tuple(starts[place].tolist()),
            attributes={}
            if crowd.attributes is None
            else crowd.attributes.slice(n, 1).to_pylist()[0],
        )


def add_block(entry: Entry, block: Sequence[PoolItem]) -> int:
    """Add items of one block, and count those that were not there.

    Items that are there are compared. What the store lacks of one is added: version 0.1 kept no
    texts of items with several tokens. A document may get another name.

    Raises:
        FaultsError: An item is faulty, appears twice, or is there with other content.
    """
    _refuse([fault for item in block for fault in _faults(item)])
    there = _rows_of(entry, [item.id for item in block])
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
    _refuse(faults)
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


def numbers_of(entry: Entry, names: Sequence[str]) -> dict[str, int]:
    """Find the numbers of items by id.

    Raises:
        FaultsError: Some are not in the pool.
    """
    found: dict[str, int] = {}
    possible = [name for name in names if is_name(name)]
    for start in range(0, len(possible), FEW):
        part = possible[start : start + FEW]
        query = select(items.c.id, items.c.number).where(items.c.id.in_(part))
        found.update((row.id, row.number) for row in entry.connection.execute(query))
    missing = [name for name in dict.fromkeys(names) if name not in found]
    if missing:
        raise FaultsError([Fault("is not in the pool", item=name) for name in missing])
    return found


def _refuse(faults: Sequence[Fault]) -> None:
    if faults:
        raise FaultsError(faults, "the pool is refused; no item of this block was added")


def _other(differs: Sequence[str]) -> str:
    what = ", ".join(differs)
    return f"is in the store with other content ({what}): give it back as it was, or a new id"


def _rows_of(entry: Entry, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    columns = [column for column in items.c if column.name != "number"]
    query = select(*columns).where(items.c.id.in_(names))
    return {row["id"]: dict(row) for row in entry.connection.execute(query).mappings()}


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
