"""What else a campaign keeps: known labels, control questions, versions of models, notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, func, select

from goldspan.errors import InputError
from goldspan.spans import Codec
from goldspan.store.answers import check_labels
from goldspan.store.chain import canonical
from goldspan.store.names import check_name
from goldspan.store.people import KEPT_APART, keep_note, masked
from goldspan.store.pool import FEW, look_back, numbers_of
from goldspan.store.schema import gold, items, records

if TYPE_CHECKING:
    from goldspan.store.journal import Entry


def set_gold(
    entry: Entry, known: Mapping[str, Sequence[str | None]], tagset: Codec, *, control: bool
) -> None:
    """Keep known labels of items; new ones take the place of old ones.

    Raises:
        FaultsError: Items are not in the pool, or labels do not fit them.
    """
    numbers = numbers_of(entry, list(known))
    there = _gold_of(entry, list(numbers.values()))
    lengths = _lengths_of(entry, list(numbers.values()))
    changed = []
    for name, labels in known.items():
        number = numbers[name]
        check_labels(labels, lengths[number], name, "", tagset)
        row = (canonical(list(labels)), int(control))
        if there.get(number) != row:
            changed.append([number, *row])
    if changed:
        entry.log("gold", {"items": changed})


def put_gold(entry: Entry, body: Mapping[str, Any]) -> None:
    """Write known labels."""
    old = gold.delete().where(gold.c.item == bindparam("number"))
    entry.connection.execute(old, [{"number": item} for item, *_ in body["items"]])
    rows = [
        {"item": item, "labels": labels, "control": control, "time": entry.clock}
        for item, labels, control in body["items"]
    ]
    entry.connection.execute(gold.insert(), rows)
    # What is no control question any more is in the queue again.
    look_back(entry, [item for item, _, control in body["items"] if not control])


def record(entry: Entry, kind: str, name: str, facts: Mapping[str, Any]) -> None:
    """Keep a fact under a name.

    Raises:
        InputError: Another fact of this kind stands under the name.
    """
    check_name(kind, "the kind of a record")
    check_name(name, "the name of a record")
    if entry.private:
        name, facts = masked(entry, kind, name, facts)
        if kind in KEPT_APART:
            keep_note(entry, kind, name, facts)
            return
    words = canonical(dict(facts))
    query = select(records.c.body).where((records.c.kind == kind) & (records.c.name == name))
    there = entry.connection.execute(query).scalar_one_or_none()
    if there is not None and there != words:
        raise InputError(f"the {kind} {name!r} is kept with other content: give a new name")
    if there is None:
        last = entry.connection.execute(select(func.max(records.c.number))).scalar_one() or 0
        entry.log("record", {"number": last + 1, "kind": kind, "name": name, "body": words})


def put_record(entry: Entry, body: Mapping[str, Any]) -> None:
    """Write a fact."""
    entry.connection.execute(records.insert(), {**body, "time": entry.clock})


def _gold_of(entry: Entry, numbers: list[int]) -> dict[int, tuple[str, int]]:
    found: dict[int, tuple[str, int]] = {}
    for start in range(0, len(numbers), FEW):
        query = select(gold).where(gold.c.item.in_(numbers[start : start + FEW]))
        found.update(
            (row.item, (row.labels, row.control)) for row in entry.connection.execute(query)
        )
    return found


def _lengths_of(entry: Entry, numbers: list[int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for start in range(0, len(numbers), FEW):
        part = numbers[start : start + FEW]
        query = select(items.c.number, items.c.n_tokens).where(items.c.number.in_(part))
        found.update((row.number, row.n_tokens) for row in entry.connection.execute(query))
    return found
