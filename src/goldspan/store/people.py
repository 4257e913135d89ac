"""Who the workers are: ids, free texts and provider records, in rows that can be deleted.

A private campaign (`campaign.private`) names every worker by a random pseudonym in its log and in
its tables. Only the table `people` knows which id a pseudonym is for. What people wrote,
and what a provider knows them by, is kept in the table `notes`; the log holds a hash of it with
random salt, which says nothing once the row is gone. `SqlLedger` takes and returns the ids: they
are exchanged here.

Whoever is forgotten (`goldspan.store.erasing`) leaves a tombstone: the pseudonym, and a slow,
salted hash of the id.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from hashlib import blake2b, scrypt, sha256
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, bindparam, func, select

from goldspan.errors import InputError
from goldspan.store.engine import StoreError
from goldspan.store.journal import Entry, canonical, read_json
from goldspan.store.schema import campaign, check_name, notes, people, tombstones, workers

LINK, LEFT, REVOKED = "link", "link-left", "link-revoked"
REVIEWER = "reviewer"
"""Kind of the records of reviewers' links, which hold their names."""
DECISION, FLAG, SKIP = "decision", "flag", "skip"
SUBMISSION, STATUS = "submission", "submission-status"
LETTER, STEP = "outbox", "outbox-step"
BAR, VERDICTS = "bar", "verdicts"
SUGGESTED = "suggested"
"""Kind of the records of what annotators were shown before they answered."""
PLAN, CHANGE = "plan", "change"
KEPT_APART = frozenset({
    LINK, LEFT, DECISION, FLAG, SKIP, SUBMISSION, STATUS, LETTER, STEP, REVIEWER,
})  # fmt: skip
"""Kinds of records that hold free texts, or what a provider knows somebody by: they are notes."""
ADMITS = frozenset({LINK, SUBMISSION})
"""Kinds of records by which somebody comes in, also one who was forgotten: as a new person."""
APART = "kept apart"
"""What the log says in place of the reason for which a worker passed an item on."""


class ForgottenError(StoreError):
    """Somebody was forgotten, and has not come in again since."""


def is_worker(name: str = "name") -> ColumnElement[bool]:
    """Return the condition that a row of `workers` is that of a parameter, an id or a pseudonym."""
    pseudonym = select(people.c.pseudonym).where(people.c.id == bindparam(name)).scalar_subquery()
    return workers.c.id == func.coalesce(pseudonym, bindparam(name))


SHOWN: ColumnElement[str] = func.coalesce(
    select(people.c.id).where(people.c.pseudonym == workers.c.id).scalar_subquery(), workers.c.id
)
"""The id of the worker of a row of `workers`; the pseudonym of one who was forgotten."""
_PSEUDONYM = select(people.c.pseudonym).where(people.c.id == bindparam("person"))
_N_FORGOTTEN = select(func.count()).select_from(tombstones)
_LAST_NOTE = select(func.max(notes.c.number))
NOTE_BODY = select(notes.c.body).where(
    (notes.c.kind == bindparam("asked")) & (notes.c.name == bindparam("known"))
)
_OWNER = select(notes.c.person).where(
    (notes.c.kind == bindparam("asked")) & (notes.c.name == bindparam("known"))
)


def is_private(connection: Connection) -> bool:
    """Whether the campaign names its workers by pseudonym."""
    return bool(connection.execute(select(campaign.c.private)).scalar())


def ids(connection: Connection) -> dict[str, str]:
    """Return the id of everybody who is known, by pseudonym."""
    return {row.pseudonym: row.id for row in connection.execute(select(people))}


def pseudonym_of(connection: Connection, person: str) -> str:
    """Return the pseudonym of somebody; who is not known keeps their name."""
    found = connection.execute(_PSEUDONYM, {"person": person}).scalar_one_or_none()
    return person if found is None else str(found)


def known_by(entry: Entry, person: str, *, admit: bool = False) -> str:
    """Return by which name the tables know a worker; one who is new gets a pseudonym now."""
    # The person is an id or a pseudonym in use; `admit` lets in who was forgotten, as a new person
    if not entry.private or entry.replayed:
        return person
    if person in entry.names:
        return entry.names[person]
    found = entry.connection.execute(_PSEUDONYM, {"person": person}).scalar_one_or_none()
    if found is not None:
        entry.names[person] = str(found)
        return str(found)
    if _is_pseudonym(entry.connection, person):
        return person
    if not admit and _matching_tombstone(entry.connection, person) is not None:
        raise ForgottenError(
            "this person was forgotten, and nothing more is kept of them: a new link makes them a "
            "new person; nothing was changed"
        )
    made = f"p-{secrets.token_hex(8)}"
    row = {"pseudonym": made, "id": check_name(person, "a worker's id"), "since": entry.clock}
    entry.connection.execute(people.insert(), row)
    return made


def key_of(connection: Connection, key: str) -> str:
    """Return the key of an answer with the pseudonym in place of the worker's id at its end."""
    start, _, rest = key.partition(":")
    name, colon, worker = rest.partition(":")
    return f"{start}:{name}:{pseudonym_of(connection, worker)}" if colon else key


def charge_name(entry: Entry, name: str) -> str:
    """Return the name of a charge with a pseudonym and a hash in place of whom and what for."""
    act, *parts = name.split(":")
    if not entry.private:
        return name
    for n in range(1, len(parts) + 1):
        person = pseudonym_of(entry.connection, ":".join(parts[:n]))
        if _is_pseudonym(entry.connection, person):
            why = blake2b(":".join(parts[n:]).encode(), key=person.encode(), digest_size=8)
            return f"{act}:{person}:{why.hexdigest()}"
    return name


def masked(
    entry: Entry, kind: str, name: str, body: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Return name and body of a record with pseudonyms in place of workers' ids."""
    # The names of annotators in a plan are left out
    body, admit = dict(body), kind in ADMITS
    if isinstance(body.get("worker"), str):
        body["worker"] = known_by(entry, body["worker"], admit=admit)
    if kind == BAR:
        name = known_by(entry, name)
    elif kind == FLAG:
        name = key_of(entry.connection, name)
    elif kind == VERDICTS:
        names = {one: known_by(entry, one) for one in {*body["workers"], *body["drop"]}}
        body = _renamed(body, names)
    elif kind in {PLAN, CHANGE}:
        for section in {"plan", "sections"} & set(body):
            body[section] = _without_names(body[section])
        if "changed" in body:
            told = [line for line in body["changed"] if not line.startswith("crowd.annotators ")]
            body["changed"] = told
    return name, body


def _without_names(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan, or sections of one, without the names of annotators."""
    if "crowd" not in plan:
        return dict(plan)
    crowd = {key: value for key, value in plan["crowd"].items() if key != "annotators"}
    return {**plan, "crowd": crowd}


def shown(
    kind: str, name: str, body: dict[str, Any], names: Mapping[str, str]
) -> tuple[str, dict[str, Any]]:
    """Return name and body of a record with the ids of those whom `names` knows by pseudonym."""
    if not names:
        return name, body
    if isinstance(body.get("worker"), str):
        body["worker"] = names.get(body["worker"], body["worker"])
    if kind == BAR:
        name = names.get(name, name)
    elif kind == VERDICTS:
        body = _renamed(body, names)
    return name, body


def _renamed(body: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    rows = {names.get(one, one): facts for one, facts in body["workers"].items()}
    # In the order of the ids, as in a campaign that is not private.
    ordered = {one: rows[one] for one in sorted(rows)}
    return {**body, "workers": ordered, "drop": [names.get(one, one) for one in body["drop"]]}


def keep_note(
    entry: Entry, kind: str, name: str, body: Mapping[str, Any], person: str | None = None
) -> None:
    """Keep a record in a row that can be deleted; the log holds a salted hash of it."""
    words = canonical(dict(body))
    there = entry.connection.execute(NOTE_BODY, {"asked": kind, "known": name}).scalar_one_or_none()
    if there is not None and there != words:
        raise InputError(f"the {kind} {name!r} is kept with other content: give a new name")
    if there is not None:
        return
    owner = _owner(entry.connection, kind, body) if person is None else person
    number = (entry.connection.execute(_LAST_NOTE).scalar_one() or 0) + 1
    salt = secrets.token_hex(16)
    seal = seal_of(salt, kind, name, words)
    entry.log("note", {"number": number, "kind": kind, "person": owner, "seal": seal})
    row = notes.update().where(notes.c.number == number)
    entry.connection.execute(row.values(name=name, body=words, salt=salt))


def put_note(entry: Entry, body: Mapping[str, Any]) -> None:
    """Write the row of a note without what it says, which the log does not know."""
    entry.connection.execute(notes.insert(), {**body, "time": entry.clock})


def seal_of(salt: str, kind: str, name: str, words: str) -> str:
    """Return the hash that the log holds of a note."""
    return sha256(f"{salt}\n{canonical([kind, name])}\n{words}".encode()).hexdigest()


def _owner(connection: Connection, kind: str, body: Mapping[str, Any]) -> str:
    if kind == STATUS:
        return _person_of(connection, SUBMISSION, str(body["submission"]))
    if kind == STEP:
        return _person_of(connection, LETTER, str(body["letter"]))
    return str(body.get("worker", ""))


def _person_of(connection: Connection, kind: str, name: str) -> str:
    found = connection.execute(_OWNER, {"asked": kind, "known": name}).scalar_one_or_none()
    return "" if found is None else str(found)


def read_notes(connection: Connection, kind: str) -> dict[str, dict[str, Any]]:
    """Return the notes of a kind by name, in the order in which they came."""
    query = select(notes.c.name, notes.c.body).where(
        (notes.c.kind == kind) & notes.c.name.is_not(None)
    )
    return {
        row.name: read_json(row.body) for row in connection.execute(query.order_by(notes.c.number))
    }


def unsealed(connection: Connection) -> list[int]:
    """Return the numbers of the notes that do not say what was sealed in the log."""
    # Notes that were reduced when somebody was forgotten stand in the log themselves
    sealed = select(notes).where(notes.c.seal != "").order_by(notes.c.number)
    found, has_begun = [], False
    for row in connection.execute(sealed):
        says = (row.salt, row.kind, row.name, row.body)
        if any(words is not None for words in (row.salt, row.name, row.body)):
            has_begun = True
            is_text = all(isinstance(words, str) for words in says)
            if not is_text or seal_of(*says) != row.seal:
                found.append(row.number)
        elif has_begun:
            found.append(row.number)
    return found


def misplaced_people(connection: Connection) -> tuple[list[str], int]:
    """Return who was forgotten and has an id, and how many workers are not known."""
    here = set(connection.execute(select(people.c.pseudonym)).scalars())
    gone = set(connection.execute(select(tombstones.c.person)).scalars())
    names = set(connection.execute(select(workers.c.id)).scalars())
    return sorted(here & gone), len(names - here - gone) if is_private(connection) else 0


def skip_reasons(connection: Connection) -> dict[str, str]:
    """Return why items were passed on, by "item:worker" in the store's numbers."""
    return {name: str(body["reason"]) for name, body in read_notes(connection, SKIP).items()}


def keep_reason(entry: Entry, rows: Sequence[Sequence[int]], reason: str) -> str:
    """Keep why a worker passed items on, and return what the log says of it."""
    if not entry.private or not reason:
        return reason
    for item, worker, *_ in rows:
        person = entry.connection.execute(
            select(workers.c.id).where(workers.c.number == worker)
        ).scalar_one()
        keep_note(entry, SKIP, f"{item}:{worker}", {"reason": reason}, person)
    return APART


def find_person(connection: Connection, who: str) -> str | None:
    """Return the pseudonym of who has an id, a pseudonym or a provider's id; None if nobody has."""
    found = connection.execute(_PSEUDONYM, {"person": who}).scalar_one_or_none()
    if found is None:
        query = select(people.c.pseudonym).where(people.c.pseudonym == who)
        found = connection.execute(query).scalar_one_or_none()
    return str(found) if found is not None else _person_of(connection, SUBMISSION, who) or None


# --------------------------------------------------------------------------------------------------
# Tombstones: the pseudonym and slow hash by which somebody who was forgotten is recognised.


def hash_of(salt: str, person: str) -> str:
    """Return the hash by which a tombstone knows somebody again; slow, as ids can be guessed."""
    words = scrypt(person.encode(), salt=bytes.fromhex(salt), n=2**13, r=8, p=1, dklen=16)
    return words.hex()


def read_tombstones(connection: Connection) -> list[dict[str, Any]]:
    """Return the tombstones in their order: person, hash, salt, time."""
    query = select(tombstones).order_by(tombstones.c.number)
    return [
        {"person": row.person, "hash": row.hash, "salt": row.salt, "time": row.time}
        for row in connection.execute(query)
    ]


def n_forgotten(connection: Connection) -> int:
    """Count who was forgotten; while it stays, what is known of workers holds."""
    return int(connection.execute(_N_FORGOTTEN).scalar_one())


def find_tombstone(connection: Connection, who: str) -> str | None:
    """Return the pseudonym of who was forgotten, by id or pseudonym; None if they were not."""
    query = select(tombstones.c.person).where(tombstones.c.person == who)
    found = connection.execute(query).scalar_one_or_none()
    return str(found) if found is not None else _matching_tombstone(connection, who)


def _matching_tombstone(connection: Connection, person: str) -> str | None:
    rows = connection.execute(select(tombstones).order_by(tombstones.c.number.desc())).all()
    hashes = {salt: hash_of(salt, person) for salt in {row.salt for row in rows}}
    return next((str(row.person) for row in rows if hashes[row.salt] == row.hash), None)


def _is_pseudonym(connection: Connection, name: str) -> bool:
    """Whether a name is a pseudonym in use, or that of somebody who was forgotten."""
    tables = (people.c.pseudonym, tombstones.c.person)
    return any(
        connection.execute(select(column).where(column == name)).first() is not None
        for column in tables
    )


# --------------------------------------------------------------------------------------------------
# Workers as the store knows them: a number, where they look next, and whether they are asked.


_FIND = select(
    workers.c.number, SHOWN, workers.c.cursor, workers.c.barred, workers.c.id.label("known")
).where(is_worker())
_NEW = select(
    func.coalesce(select(func.max(workers.c.number)).scalar_subquery(), 0).label("last"),
    _PSEUDONYM.scalar_subquery().label("pseudonym"),
)


class Worker(NamedTuple):
    """A worker's row."""

    number: int
    id: str
    cursor: int
    barred: int


def worker_of(entry: Entry, name: str) -> Worker:
    """Return a worker's row; one who is new gets it now."""
    return find_worker(entry, name) or new_worker(entry, name)


def new_worker(entry: Entry, name: str) -> Worker:
    """Give a worker who is not known a row."""
    check_name(name, "a worker's id")
    row = entry.connection.execute(_NEW, {"person": name}).one()
    if row.pseudonym is not None and entry.private and not entry.replayed:
        entry.names[name] = row.pseudonym
    known = known_by(entry, name)
    entry.log("worker", {"number": row.last + 1, "id": known})
    return Worker(row.last + 1, name, 0, 0)


def find_worker(entry: Entry, name: str) -> Worker | None:
    """Return a worker's row, None if the worker is unknown."""
    known = {"name": check_name(name, "a worker's id")}
    row = entry.connection.execute(_FIND, known).one_or_none()
    if row is None:
        return None
    if entry.private and not entry.replayed:
        entry.names[name] = row.known
    return Worker(*row[:4])


def put_worker(entry: Entry, body: Mapping[str, Any]) -> None:
    """Write the row of a new worker."""
    entry.connection.execute(workers.insert(), {**body, "cursor": 0, "barred": 0})
