"""What else a campaign keeps: known labels, control questions, guideline versions, notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, func, select

from goldspan.errors import InputError
from goldspan.spans import Codec
from goldspan.store.answers import check_labels
from goldspan.store.chain import canonical, read_json
from goldspan.store.names import check_name
from goldspan.store.people import KEPT_APART, keep_note, masked
from goldspan.store.pool import FEW, look_back, numbers_of
from goldspan.store.schema import answers, campaign, gold, items, records

if TYPE_CHECKING:
    from goldspan.store.journal import Entry

VERSION = "version"
"""Kind of the records of versions of the label set and guideline; their names are 1, 2, …"""


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


def begin_version(entry: Entry, facts: Mapping[str, Any], tagset: Codec) -> int:
    """Begin a version of the label set and guideline; answers received from now on are of it.

    The record names the last answer before it (`after`), so that the version of every answer
    follows from the answer's number. A last version of the same hash and tags goes on.

    Args:
        entry: The transaction.
        facts: What the version is, among it `hash`.
        tagset: The tags from now on: those in force, and more.

    Returns:
        The version's number, from 1.

    Raises:
        InputError: A tag that is in force is missing, or the encoding is another one.
    """
    connection = entry.connection
    row = connection.execute(select(campaign.c.tags, campaign.c.encoding)).one()
    lost = [tag for tag in read_json(row.tags) if tag not in tagset.index]
    if lost or row.encoding != tagset.encoding:
        what = f"tags {', '.join(lost)}" if lost else f"encoding {row.encoding}"
        raise InputError(f"the campaign has answers in the {what}: labels can only be added")
    query = select(records.c.body).where(records.c.kind == VERSION).order_by(records.c.number)
    before = [read_json(words) for words in connection.execute(query).scalars()]
    tags = canonical(list(tagset.tags))
    if before and before[-1]["hash"] == facts["hash"] and row.tags == tags:
        return len(before)
    last = connection.execute(select(func.max(answers.c.number))).scalar_one() or 0
    body = {**facts, "time": entry.clock, "after": last if before else 0}
    number = connection.execute(select(func.max(records.c.number))).scalar_one() or 0
    named = {"number": number + 1, "name": str(len(before) + 1), "body": canonical(body)}
    entry.log("version", {**named, "tags": list(tagset.tags)})
    return len(before) + 1


def put_version(entry: Entry, body: Mapping[str, Any]) -> None:
    """Write a version and the tags of the campaign."""
    row = {name: body[name] for name in ("number", "name", "body")}
    entry.connection.execute(records.insert(), {**row, "kind": VERSION, "time": entry.clock})
    entry.connection.execute(campaign.update().values(tags=canonical(body["tags"])))


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
