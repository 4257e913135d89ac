"""What a campaign keeps besides items, people, answers: money, gold, records, suggestions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from hashlib import blake2b
from typing import Any, NamedTuple

from sqlalchemy import Connection, Executable, bindparam, case, func, not_, select
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from goldspan.crowd.questions import Questions
from goldspan.errors import InputError
from goldspan.protocols import Suggestion
from goldspan.spans import Codec
from goldspan.store.answers import Labels, check_labels, plain_labels
from goldspan.store.engine import BoundError
from goldspan.store.journal import Entry, canonical, read_json
from goldspan.store.people import (
    KEPT_APART,
    SHOWN,
    SUGGESTED,
    charge_name,
    is_worker,
    keep_note,
    masked,
    pseudonym_of,
    worker_of,
)
from goldspan.store.pool import SOME, look_back, numbers_of, rows_of
from goldspan.store.schema import (
    answers,
    campaign,
    charges,
    check_amount,
    check_name,
    gold,
    items,
    records,
    usage,
    workers,
)

# --------------------------------------------------------------------------------------------------
# The budget: its cap, what is paid besides answers, and whether the campaign pauses.


# All amounts are whole millionths of the currency unit, so that sums are exact. What does not
# fit is rejected first; that `reserved + spent <= cap` is a constraint of the database too.


def set_cap(entry: Entry, cap: int) -> None:
    """Change what may be spent."""
    used = entry.balance.reserved + entry.balance.spent
    if check_amount(cap, "the cap") < used:
        raise InputError(f"the cap cannot be {cap}: {used} millionths are reserved or spent")
    if cap != entry.balance.cap:
        entry.log("cap", {"cap": cap})


def put_cap(entry: Entry, body: Mapping[str, Any]) -> None:
    """Change the cap."""
    entry.balance.cap = body["cap"]


def charge(entry: Entry, name: str, amount: int) -> bool:
    """Pay something other than an answer, once per name; False if the money is short."""
    name = charge_name(entry, name)
    check_amount(amount, f"the charge {name!r}")
    query = select(charges.c.amount).where(charges.c.name == name)
    paid = entry.connection.execute(query).scalar_one_or_none()
    if paid is not None and paid != amount:
        raise InputError(f"the charge {name!r} was paid with {paid} millionths, not {amount}")
    if paid is None and amount <= entry.balance.left:
        last = entry.connection.execute(select(func.max(charges.c.number))).scalar_one()
        entry.log("charge", {"number": (last or 0) + 1, "name": name, "amount": amount})
        return True
    return paid is not None


def put_charge(entry: Entry, body: Mapping[str, Any]) -> None:
    """Keep and pay a charge."""
    entry.connection.execute(charges.insert(), {**body, "time": entry.clock})
    entry.balance.spent += body["amount"]


def pause(entry: Entry, *, paused: bool) -> None:
    """Assign nothing, or again."""
    if entry.paused != int(paused):
        entry.log("pause", {"paused": int(paused)})


def put_paused(entry: Entry, body: Mapping[str, Any]) -> None:
    """Set whether the campaign pauses."""
    entry.paused = body["paused"]


# --------------------------------------------------------------------------------------------------
# Known labels and gold questions; records: versions of models, verdicts, notes.


_KNOWN = (
    select(items.c.number, items.c.n_tokens, gold.c.labels, gold.c.control)
    .join(gold, gold.c.item == items.c.number, isouter=True)
    .where(items.c.number.in_(SOME))
)


def set_gold(
    entry: Entry, known: Mapping[str, Labels], tagset: Codec | Questions, *, control: bool
) -> None:
    """Keep known labels of items; new ones take the place of old ones."""
    numbers = numbers_of(entry, list(known))
    rows = rows_of(entry.connection, _KNOWN, list(numbers.values()))
    there = {number: (n_tokens, (words, kind)) for number, n_tokens, words, kind in rows}
    changed = []
    for name, labels in known.items():
        n_tokens, before = there[numbers[name]]
        if labels or not isinstance(tagset, Questions):  # what is taken back is empty
            check_labels(labels, n_tokens, name, "", tagset)
        row = (canonical(plain_labels(labels)), int(control))
        if before != row:
            changed.append([numbers[name], *row])
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
    # What is not a gold question any more is in the queue again.
    look_back(entry, [item for item, _, control in body["items"] if not control])


def record(entry: Entry, kind: str, name: str, facts: Mapping[str, Any]) -> None:
    """Keep a fact under a name."""
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


VERSION = "version"
"""Kind of the records of versions of the label set and guideline; their names are 1, 2, …"""


def begin_version(entry: Entry, facts: Mapping[str, Any], tagset: Codec | Questions) -> int:
    """Begin a version of the label set and guideline; answers received from now on are of it."""
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


# --------------------------------------------------------------------------------------------------
# Daily limits, counted in the store, whatever process asks.


# The counts are beside the log: they limit how much a worker, or somebody who only has a link, can
# make the log grow, so they must not be in it. A log that is replayed begins to count anew, and the
# counts of past days are deleted. Who is counted is kept as a hash; as ids can be guessed, it is
# that of the pseudonym where somebody has one, and forgetting somebody deletes their counts.


DAY = 86_400_000
"""Milliseconds; days are those of UTC."""

_MINE = (usage.c.kind == bindparam("what")) & (usage.c.name == bindparam("who"))
_FIND_ANY = select(usage.c.n).where(_MINE)
_IS_TODAY = usage.c.day == bindparam("today")
_FORGET = usage.delete().where(usage.c.day < bindparam("today"))


@cache
def _count(dialect: str) -> Executable:
    """Return the statement that counts one more; it changes no row where the bound is reached."""
    insert = sqlite_insert if dialect == "sqlite" else postgresql_insert
    first = {"kind": bindparam("what"), "name": bindparam("who"), "day": bindparam("today"), "n": 1}
    more = {"day": bindparam("today"), "n": case((_IS_TODAY, usage.c.n + 1), else_=1)}
    may = not_(_IS_TODAY & (usage.c.n >= bindparam("most")))
    made = insert(usage).values(first)
    made = made.on_conflict_do_update(index_elements=["kind", "name"], set_=more, where=may)
    return made.execution_options(preserve_rowcount=True)


class Bound(NamedTuple):
    """How often something may be done on one day."""

    kind: str  # What is counted: "writes", "joins", …
    name: str
    most: int
    now: int | None = None  # What the wall clock shows, in milliseconds since 1970


def count(entry: Entry, bound: Bound) -> None:
    """Count one more today."""
    today, into = divmod(entry.now if bound.now is None else bound.now, DAY)
    known = bound.name
    if entry.private:
        known = entry.names.get(known) or pseudonym_of(entry.connection, known)
    mine = {"what": bound.kind, "who": _hash(known), "today": today, "most": bound.most}
    connection = entry.connection
    counted = bound.most > 0 and connection.execute(_count(connection.dialect.name), mine).rowcount
    if not counted:
        message = f"{bound.kind}: {bound.most} a day are allowed, and were made"
        raise BoundError(message, bound.most, -(-(DAY - into) // 1000))
    if entry.held is None or entry.held.swept < today:
        connection.execute(_FORGET, {"today": today})
        entry.swept = today


def revise(
    entry: Entry, kind: str, name: str, change: Callable[[int | None], tuple[int, int]]
) -> None:
    """Replace a number that limits something, whatever process asks: see `count`."""
    who = {"what": kind, "who": _hash(name)}
    before = entry.connection.execute(_FIND_ANY, who).scalar_one_or_none()
    number, until = change(before)
    row = {"n": number, "day": until // DAY}
    if before is None:
        entry.connection.execute(usage.insert(), {"kind": kind, "name": who["who"], **row})
    else:
        entry.connection.execute(usage.update().where(_MINE).values(row), who)


def number_of(connection: Connection, kind: str, name: str) -> int | None:
    """Return a number that `revise` keeps, None if there is none."""
    who = {"what": kind, "who": _hash(name)}
    return connection.execute(_FIND_ANY, who).scalar_one_or_none()


def forget_counts(connection: Connection, names: Iterable[str]) -> None:
    """Delete what is counted of somebody."""
    hashes = [_hash(name) for name in names]
    connection.execute(usage.delete().where(usage.c.name.in_(hashes)))


def _hash(name: str) -> str:
    return blake2b(name.encode(), digest_size=12).hexdigest()


# --------------------------------------------------------------------------------------------------
# What annotators were shown beside an item before they answered, kept once and for good. Whoever
# opens the item again, also after a crash, sees the same. Names of rows are the store's numbers of
# item and worker, so that a private campaign names nobody in them.


_ASKED = select(items.c.number).where(items.c.id == bindparam("wanted"))
_ASKED_OF = select(workers.c.number).where(is_worker())
_SHOWN_BEFORE = select(records.c.body).where(
    (records.c.kind == SUGGESTED) & (records.c.name == bindparam("known"))
)
_ANSWERED = (
    select(SHOWN.label("id"), answers.c.worker, answers.c.labels)
    .join(workers, workers.c.number == answers.c.worker)
    .where((answers.c.item == bindparam("number")) & (answers.c.counts == 1))
    .order_by(answers.c.number)
)
_SHOWN_AMONG = select(records.c.name, records.c.body).where(
    (records.c.kind == SUGGESTED) & records.c.name.in_(bindparam("names", expanding=True))
)


class OwnAnswer(NamedTuple):
    """An answer that was given without seeing a suggestion."""

    worker: str
    labels: Labels  # One per token, None where it was skipped; or by layer


def keep_suggestion(entry: Entry, one: Suggestion) -> Suggestion:
    """Keep what a worker is shown, unless that is decided already; return what holds."""
    number = entry.connection.execute(_ASKED, {"wanted": one.item}).scalar_one()
    name = f"{number}:{worker_of(entry, one.worker).number}"
    there = entry.connection.execute(_SHOWN_BEFORE, {"known": name}).scalar_one_or_none()
    if there is not None:
        return Suggestion(**read_json(there))._replace(worker=one.worker)
    body = one._asdict() | {"labels": None if one.labels is None else plain_labels(one.labels)}
    record(entry, SUGGESTED, name, body)
    return one


def read_suggestion(connection: Connection, worker: str, item: str) -> Suggestion | None:
    """Return what was decided on for a worker and an item, None if nothing was."""
    number = connection.execute(_ASKED, {"wanted": item}).scalar_one_or_none()
    person = connection.execute(_ASKED_OF, {"name": worker}).scalar_one_or_none()
    row = connection.execute(_SHOWN_BEFORE, {"known": f"{number}:{person}"}).scalar_one_or_none()
    return None if row is None else Suggestion(**read_json(row))._replace(worker=worker)


def own_answers(connection: Connection, item: str) -> list[OwnAnswer]:
    """Return the answers to an item that count, but those that were given with a suggestion."""
    number = connection.execute(_ASKED, {"wanted": item}).scalar_one()
    rows = connection.execute(_ANSWERED, {"number": number}).all()
    names = [f"{number}:{row.worker}" for row in rows]
    found = connection.execute(_SHOWN_AMONG, {"names": names}).all() if names else []
    seen = {row.name for row in found if read_json(row.body)["shown"]}
    pairs = zip(rows, names, strict=True)
    return [OwnAnswer(row.id, read_json(row.labels)) for row, name in pairs if name not in seen]
