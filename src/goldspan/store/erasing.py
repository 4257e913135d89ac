"""Forgetting people: their rows, and lists of the forgotten.

To forget somebody is one event ("forget"): it deletes their rows of the tables `people` and
`notes`, keeps of payments the amount and what became of it, and leaves a tombstone: the pseudonym,
and a slow, salted hash of the id, by which a backup that is restored later forgets them too. After
that the pseudonym is all that is left.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, func, select

from goldspan.crowd.atomic import write_text
from goldspan.errors import InputError
from goldspan.store.assignments import OF_WORKER, free_leases
from goldspan.store.engine import StoreError, is_sqlite
from goldspan.store.facts import forget_counts, record
from goldspan.store.journal import Database, Entry, canonical, read_json
from goldspan.store.people import (
    BAR,
    DECISION,
    FLAG,
    LETTER,
    LINK,
    REVOKED,
    SKIP,
    STATUS,
    STEP,
    SUBMISSION,
    SUGGESTED,
    VERDICTS,
    find_person,
    find_tombstone,
    hash_of,
    ids,
    is_private,
    read_tombstones,
    shown,
    skip_reasons,
)
from goldspan.store.schema import (
    answers,
    campaign,
    charges,
    events,
    items,
    leases,
    notes,
    people,
    records,
    skips,
    tombstones,
    workers,
)

# --------------------------------------------------------------------------------------------------
# All that is stored of a person, and what is deleted when they are forgotten.


_STAYS = {
    LETTER: ("act", "amount"), STEP: ("state", "time"), DECISION: ("verdict", "questions"),
    FLAG: ("item",),
}  # fmt: skip
"""What stays of the notes of somebody who is forgotten, by kind."""
SETTLED = frozenset({"sent", "refused"})
OVER = frozenset(
    {"TIMED-OUT", "RETURNED", "SCREENED OUT", "PARTIALLY APPROVED", "REJECTED", "APPROVED"}
)
"""Statuses of submissions that wait for no decision."""


class UnsettledError(InputError):
    """Somebody is to be forgotten to whom a payment is still under way."""


@dataclass(frozen=True)
class Forgotten:
    """What forgetting somebody removed, or would remove."""

    pseudonym: str  # What is left of them
    removed: Mapping[str, int]  # How many of each were deleted: ids, links, flags, …
    kept: Mapping[str, int]  # How many of each stay under the pseudonym: answers, payments, …

    @property
    def again(self) -> bool:
        """Whether they had been forgotten before: there was nothing to remove."""
        return not self.removed


def forget(
    entry: Entry, who: str, *, dry: bool = False, unsettled: bool = False,
    tombstone: Mapping[str, Any] | None = None,
) -> Forgotten:  # fmt: skip
    """Delete what is known of somebody, and leave a tombstone; answers and payments stay."""
    # The tombstone may be one that another copy of this store has
    connection = entry.connection
    if not entry.private:
        raise InputError(
            "this campaign was not begun for people at a page: its log names its workers, and "
            "nothing can be removed from it; remove the whole campaign; nothing was changed"
        )
    person = find_person(connection, who)
    if person is None:
        before = find_tombstone(connection, who)
        if before is None:
            raise InputError(
                f"nobody is known by the id, pseudonym or provider's id {who!r}: `goldspan invite "
                "PLAN --list` and the desk list the workers; nothing was changed"
            )
        return Forgotten(before, {}, _kept(connection, before))
    waits = _unsettled(connection, person)
    if waits and not unsettled:
        raise UnsettledError(
            f"a payment to {who} is not settled: {'; '.join(waits)}. Settle it first (`goldspan "
            "payments PLAN --list`, --approve, --reject, --send), or give --unsettled if it is "
            "settled elsewhere; nothing was changed"
        )
    rows = connection.execute(select(notes).where(notes.c.person == person)).all()
    known = connection.execute(select(people).where(people.c.pseudonym == person)).one_or_none()
    is_known = known is not None
    words = {
        LINK: "links", FLAG: "words on flags", SKIP: "reasons for passing on",
        SUBMISSION: "submissions", STATUS: "messages of the provider",
        DECISION: "words on decisions", LETTER: "words on payments",
    }  # fmt: skip
    removed = {"ids": int(is_known)}
    for row in rows:
        if row.kind in words:
            removed[words[row.kind]] = removed.get(words[row.kind], 0) + 1
    result = Forgotten(person, removed, _kept(connection, person))
    if not dry:
        _forget(entry, person, known, rows, tombstone)
    return result


def _forget(
    entry: Entry, person: str, known: Any, rows: Iterable[Any],
    tombstone: Mapping[str, Any] | None,
) -> None:  # fmt: skip
    rows = list(rows)
    number = entry.connection.execute(
        select(workers.c.number).where(workers.c.id == person)
    ).scalar_one_or_none()
    if number is not None:
        free_leases(entry, OF_WORKER, {"who": number}, "released")
    gone = set(
        entry.connection.execute(select(records.c.name).where(records.c.kind == REVOKED)).scalars()
    )
    for row in rows:
        if row.kind == LINK and row.name not in gone:
            record(entry, REVOKED, row.name, {"time": entry.clock})
    forget_counts(entry.connection, [person] if known is None else [person, str(known.id)])
    if tombstone is None:
        found = entry.connection.execute(select(tombstones.c.salt).limit(1)).scalar_one_or_none()
        salt = secrets.token_hex(16) if found is None else str(found)
        tombstone = {"salt": salt, "hash": hash_of(salt, known.id if known is not None else person)}
    body = {"person": person, "salt": tombstone["salt"], "hash": tombstone["hash"]}
    entry.log("forget", {**body, "notes": _reduced(person, rows)})


def put_forgotten(entry: Entry, body: Mapping[str, Any]) -> None:
    """Delete somebody's rows, write what is left of their payments, and set the tombstone."""
    connection, person = entry.connection, body["person"]
    entry.names.clear()
    connection.execute(people.delete().where(people.c.pseudonym == person))
    connection.execute(notes.delete().where(notes.c.person == person))
    left = [{**row, "person": person, "seal": ""} for row in body["notes"]]
    if left:
        connection.execute(notes.insert(), left)
    last = connection.execute(select(func.max(tombstones.c.number))).scalar_one() or 0
    row = {"number": last + 1, "person": person, "hash": body["hash"], "salt": body["salt"]}
    connection.execute(tombstones.insert(), {**row, "time": entry.clock})


def _reduced(person: str, rows: Iterable[Any]) -> list[dict[str, Any]]:
    """Return what stays of somebody's notes: payments and decisions without words, flags of items.

    Names of payments name people and reasons, and those of flags are made of an id: they are
    counted instead. Of a body only what `_STAYS` lists goes into the log, which keeps it for good.
    """
    left: list[dict[str, Any]] = []
    requests: dict[str, str] = {}
    for row in rows:
        if row.body is None or row.kind not in _STAYS:
            continue
        name, said = row.name, read_json(row.body)
        body = {key: said[key] for key in _STAYS[row.kind] if key in said}
        if row.kind == LETTER:
            name = requests[row.name] = f"{said['act']}:{person}:{len(requests)}"
            body |= {"worker": person, "about": "", "why": "", "category": ""}
        elif row.kind == STEP:
            request = requests.get(said["letter"], f"unknown:{person}")
            name = f"{request}#{row.number}"
            body |= {"letter": request, "facts": {}, "sender": ""}
        elif row.kind == DECISION:
            body |= {"worker": person, "why": ""}
        else:
            name = f"{person}:{row.number}"
            body |= {"worker": person, "reason": "", "note": "", "sent": ""}
        facts = {"number": row.number, "kind": row.kind, "time": row.time, "name": name}
        left.append({**facts, "body": canonical(body)})
    return left


def _unsettled(connection: Connection, person: str) -> list[str]:
    """Return which payments to somebody are under way, and which work waits for a decision."""
    rows = connection.execute(
        select(notes).where(notes.c.person == person).order_by(notes.c.number)
    ).all()
    state, about, waits = dict[str, str](), set[str](), []
    for row in rows:
        body = read_json(row.body) if row.body is not None else {}
        if row.kind == LETTER:
            state[row.name] = "waiting"
            if body["act"] != "bonus":
                about.add(body["about"])
        elif row.kind == STEP:
            state[body["letter"]] = body["state"]
    waits += [
        f"the payment request {name} is {word}"
        for name, word in state.items()
        if word not in SETTLED
    ]
    status = {
        body["submission"]: body["status"]
        for body in (read_json(row.body) for row in rows if row.kind == STATUS and row.body)
    }
    for row in rows:
        is_open = row.kind == SUBMISSION and row.name and row.name not in about
        if is_open and status.get(row.name, "") not in OVER:
            waits.append(f"the submission {row.name} is neither approved nor rejected")
    return waits


def _kept(connection: Connection, person: str) -> dict[str, int]:
    who = select(workers.c.number).where(workers.c.id == person).scalar_subquery()
    count = select(func.count()).select_from(answers).where(answers.c.worker == who)
    counting = count.where(answers.c.counts == 1)
    paid = select(func.coalesce(func.sum(answers.c.cost), 0)).where(answers.c.worker == who)
    bonus = select(func.coalesce(func.sum(charges.c.amount), 0)).where(
        charges.c.name.like(f"%:{person}:%")
    )
    found = {"answers": count, "answers that count": counting, "paid": paid, "bonuses": bonus}
    return {name: int(connection.execute(query).scalar_one()) for name, query in found.items()}


def about(connection: Connection, who: str) -> dict[str, Any]:
    """Return all that is stored of somebody, as plain values (GDPR article 15)."""
    person = find_person(connection, who) or _worker_named(connection, who)
    if person is None:
        raise InputError(f"nobody is known by the id, pseudonym or provider's id {who!r}")
    row = connection.execute(select(people).where(people.c.pseudonym == person)).one_or_none()
    own = select(workers).where(workers.c.id == person)
    worker = connection.execute(own).one_or_none()
    names = {} if row is None else {row.pseudonym: row.id}
    found: dict[str, Any] = {
        "pseudonym": person if is_private(connection) else None,
        "id": row.id if row is not None else (None if is_private(connection) else person),
        "since": None if row is None else row.since,
        "barred": bool(worker.barred) if worker is not None else False,
        "answers": _rows_of(connection, answers, worker),
        "passed": _rows_of(connection, skips, worker),
        "held": _rows_of(connection, leases, worker),
        "notes": [],
        "records": [],
    }
    if not is_private(connection):
        found["records"] = [
            {"kind": one.kind, "name": one.name, "body": read_json(one.body), "time": one.time}
            for one in connection.execute(select(records).order_by(records.c.number))
            if _names(one, person)
        ]
        return found
    reasons = skip_reasons(connection)
    number = None if worker is None else worker.number
    for one in found["passed"]:
        one["reason"] = reasons.get(f"{one.pop('number')}:{number}", one["reason"])
    mine = select(notes).where((notes.c.person == person) & notes.c.name.is_not(None))
    for one in connection.execute(mine.order_by(notes.c.number)):
        name, body = shown(one.kind, one.name, read_json(one.body), names)
        found["notes"].append({"kind": one.kind, "name": name, "body": body, "time": one.time})
    kinds = [BAR, VERDICTS, SUGGESTED]
    for one in connection.execute(
        select(records).where(records.c.kind.in_(kinds)).order_by(records.c.number)
    ):
        body = read_json(one.body)
        if one.kind == SUGGESTED and body["worker"] == person:
            said = {**body, "worker": names.get(person, person)}
            found["records"].append({"kind": SUGGESTED, "name": one.name, "body": said})
        elif one.kind == BAR and one.name == person:
            found["records"].append({"kind": BAR, "name": names.get(person, person), "body": body})
        elif one.kind == VERDICTS and person in body["workers"]:
            said = body["workers"][person]
            found["records"].append({"kind": VERDICTS, "name": one.name, "body": said})
    return found


def _worker_named(connection: Connection, who: str) -> str | None:
    found = connection.execute(select(workers.c.id).where(workers.c.id == who)).scalar_one_or_none()
    return None if found is None else str(found)


def _names(row: Any, person: str) -> bool:
    body = read_json(row.body)
    parts = row.name.split(":")
    return (
        row.name == person
        or person in parts
        or (isinstance(body, dict) and (body.get("worker") == person))
    )


def _rows_of(connection: Connection, table: Any, worker: Any) -> list[dict[str, Any]]:
    if worker is None:
        return []
    query = select(table, items.c.id.label("item_id")).join(items, items.c.number == table.c.item)
    made = []
    for row in connection.execute(query.where(table.c.worker == worker.number)).mappings():
        facts = {name: value for name, value in row.items() if name not in {"worker", "item_id"}}
        if table is skips:
            facts["number"] = row["item"]
        made.append({**facts, "item": row["item_id"]})
    return made


# --------------------------------------------------------------------------------------------------
# Erasing for good: the bytes of a file, and the lists by which restored backups forget too.


ENDING = ".forgotten"
PATIENCE = 10.0
"""Seconds to wait for others to let go of the write-ahead log."""


def scrub(database: Database, patience: float = PATIENCE) -> bool:
    """Write a SQLite file anew without what was deleted, and empty its write-ahead log."""
    # It may be done again at any time
    if not is_sqlite(database.engine):
        return True
    connection = database.engine.raw_connection()
    try:
        plain: Any = connection.driver_connection
        return _within(patience, lambda: _vacuum(plain)) and _within(
            patience, lambda: plain.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
        )
    finally:
        connection.close()


def _vacuum(plain: Any) -> bool:
    import sqlite3

    try:
        plain.execute("VACUUM")
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            return False
        raise StoreError(
            f"cannot rewrite the store without what was deleted: {error}: make room on the disk "
            "and give the command again"
        ) from None
    return True


def _within(seconds: float, act: Any) -> bool:
    end = time.monotonic() + seconds
    while not act():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def list_beside(place: str | Path) -> Path:
    """Return the path of the list of the forgotten beside a SQLite file."""
    return Path(f"{place}{ENDING}")


def write_list(database: Database, path: Path) -> None:
    """Add the tombstones of a store to a list; nothing is written if all are there."""
    with database.read() as connection:
        origin = _origin(connection)
        mine = read_tombstones(connection)
    known = read_list(path)
    there = {one["person"] for one in known}
    new = [{"campaign": origin, **one} for one in mine if one["person"] not in there]
    if new:
        write_text(path, [json.dumps(one, sort_keys=True) + "\n" for one in [*known, *new]])
        path.chmod(0o600)
        flush_to_disk(path)
        flush_to_disk(path.parent)  # its name


def read_list(path: Path) -> list[dict[str, Any]]:
    """Read a list of the forgotten; empty if there is no file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        found = [json.loads(line) for line in lines if line.strip()]
        for one in found:
            _ = str(one["campaign"]), str(one["person"]), bytes.fromhex(one["salt"]), one["hash"]
            _ = int(one["time"])
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"{path} is not a list of forgotten people: {error}; restore it from where it was "
            "copied, for without it people come back with a backup"
        ) from None
    return found


def lists_near(*places: str | Path) -> list[Path]:
    """Return the lists of the forgotten in the folders of some files."""
    folders = dict.fromkeys(Path(place).absolute().parent for place in places)
    return [
        path for folder in folders if folder.is_dir() for path in sorted(folder.glob(f"*{ENDING}"))
    ]


def forget_listed(database: Database, lists: Iterable[Path], now: int = 0) -> int:
    """Forget in a copy whom lists name, and return how many of them it still knew."""
    with database.read() as connection:
        origin = _origin(connection)
        clock = int(connection.execute(select(func.max(campaign.c.clock))).scalar_one())
        done = set(connection.execute(select(tombstones.c.person)).scalars())
    wanted = {
        one["person"]: one
        for path in lists
        for one in read_list(path)
        if one["campaign"] == origin and one["person"] not in done
    }
    if not wanted:
        return 0
    # Not before they were forgotten: the list of the copy says it to the next one.
    now = max(now, *(int(one["time"]) for one in wanted.values()))
    n = database.write(max(now, clock), lambda e: _forget_each(e, wanted))
    if n:
        scrub(database)
    return n


def _origin(connection: Connection) -> str:
    """Return the hash of the first entry that the campaign's log ever had: no other begins so."""
    first = connection.execute(select(events).order_by(events.c.number).limit(1)).one()
    return str(first.hash)


def _forget_each(entry: Entry, wanted: Mapping[str, Mapping[str, Any]]) -> int:
    """Forget whom tombstones name by pseudonym; and by id, where the pseudonyms are others."""
    names, n = ids(entry.connection), 0
    left = dict(wanted)
    for person in [one for one in wanted if one in names]:
        forget(entry, person, unsettled=True, tombstone=left.pop(person))
        names.pop(person)
        n += 1
    for person, who in names.items():
        for one in list(left.values()):
            # Somebody who came again after they were forgotten has a pseudonym of their own.
            since = entry.connection.execute(
                select(people.c.since).where(people.c.pseudonym == person)
            ).scalar_one()
            if since < one["time"] and hash_of(one["salt"], who) == one["hash"]:
                forget(entry, person, unsettled=True, tombstone=one)
                n += 1
                break
    for one in left.values():  # the copy has never known them by this pseudonym
        facts = {name: one[name] for name in ("person", "salt", "hash")}
        entry.log("forget", {**facts, "notes": []})
    return n


def flush_to_disk(path: Path) -> None:
    """Make sure that a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
