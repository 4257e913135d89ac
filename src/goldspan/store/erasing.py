"""Forgetting people: lists of the forgotten, and a new log in place of one that names them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, delete, func, select, text

from goldspan.crowd.atomic import write_text
from goldspan.errors import InputError
from goldspan.store import people
from goldspan.store.chain import BEGIN, canonical, check_chain, read_json
from goldspan.store.engine import StoreError, is_sqlite
from goldspan.store.journal import Database, Entry, put_campaign
from goldspan.store.money import Purse
from goldspan.store.reading import read_events
from goldspan.store.schema import (
    BESIDE_THE_LOG,
    answers,
    campaign,
    charges,
    events,
    metadata,
    records,
    skips,
    tombstones,
    usage,
    workers,
)
from goldspan.store.schema import people as known

if TYPE_CHECKING:
    from sqlalchemy import Table


# --------------------------------------------------------------------------------------------------
# A new log in place of an old one: its first entry goes on from the old one's last hash.


AT_ONCE = 1_000
"""Rows of an entry."""
APART = {*BESIDE_THE_LOG, "campaign", "events", "notes", "tombstones"}
"""Tables that are not in a snapshot."""


def rebase(database: Database, now: int) -> int:
    """Begin a new log without people's ids, all or nothing, and return the number of its entries.

    Raises:
        InputError: The old log is broken: it would be lost what is wrong with it.
        StoreError: The tables are not what the old log says.
    """
    from goldspan.store.verify import check_whole

    check_whole(database)
    return database.write(now, _rebase)


def _rebase(entry: Entry) -> int:
    if entry.private:
        return 0
    connection = entry.connection
    number, head = check_chain(read_events(connection))
    first = connection.execute(select(events).order_by(events.c.number).limit(1)).one()
    row = connection.execute(select(campaign)).one()
    _replace_log(connection)
    connection.execute(usage.delete())  # made of ids; counting begins anew
    entry.private = True
    clock, entry.clock = entry.clock, first.time  # hours count from the campaign's beginning
    body = {"name": row.name, "currency": row.currency, "cap": row.cap, "encoding": row.encoding}
    body |= {"tags": read_json(row.tags), "private": 1, "events": number, "head": head}
    body["origin"] = first.hash
    body |= {"reserved": row.reserved, "spent": row.spent, "paused": row.paused}
    kept_apart = _give_pseudonyms(entry)
    rows = {table.name: list(_rows(connection, table)) for table in _tables()}
    _empty(connection)
    assert (entry.n_events, entry.head) == (number, head)
    entry.log(BEGIN, body)
    for kind, name, facts, person, entry.clock in kept_apart:
        people.keep_note(entry, kind, name, facts, person)
    entry.clock = clock
    for name, found in rows.items():
        for start in range(0, len(found), AT_ONCE):
            entry.log("snapshot", {"table": name, "rows": found[start : start + AT_ONCE]})
    return entry.n_events - number


def put_begin(entry: Entry, body: Mapping[str, Any]) -> None:
    """Write the campaign's row as it was at the beginning of the new log."""
    if entry.replayed:
        put_campaign(entry, body)
    entry.private = True
    entry.paused = body["paused"]
    entry.purse = Purse(body["cap"], body["reserved"], body["spent"])
    entry.connection.execute(campaign.update().values(private=1))


def put_rows(entry: Entry, body: Mapping[str, Any]) -> None:
    """Write rows of a table."""
    entry.connection.execute(metadata.tables[body["table"]].insert(), body["rows"])


def _tables() -> list[Table]:
    """Return the tables of a snapshot, those first that others refer to."""
    return [table for table in metadata.sorted_tables if table.name not in APART]


def _rows(connection: Connection, table: Table) -> Iterator[dict[str, Any]]:
    query = select(table).order_by(*table.primary_key.columns)
    yield from (dict(row) for row in connection.execute(query).mappings())


def _empty(connection: Connection) -> None:
    for table in reversed(_tables()):
        connection.execute(delete(table))


def _replace_log(connection: Connection) -> None:
    """Delete the old log: the guards that let it only grow are lifted for that."""
    if is_sqlite(connection.engine):
        query = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'events'"
        guards = connection.execute(text(query)).all()
        for guard in guards:
            connection.exec_driver_sql(f"DROP TRIGGER {guard.name}")
        connection.execute(delete(events))
        for guard in guards:
            connection.exec_driver_sql(guard.sql)
        return
    connection.execute(text("ALTER TABLE events DISABLE TRIGGER USER"))
    connection.execute(delete(events))
    connection.execute(text("ALTER TABLE events ENABLE TRIGGER USER"))


def _give_pseudonyms(entry: Entry) -> list[tuple[str, str, dict[str, Any], str | None, int]]:
    """Put pseudonyms in place of ids in all tables; return the records that become notes."""
    connection = entry.connection
    rows = connection.execute(select(workers).order_by(workers.c.number)).all()
    names = {row.id: people.known_by(entry, row.id) for row in rows}
    for row in rows:
        known = workers.update().where(workers.c.number == row.number)
        connection.execute(known.values(id=names[row.id]))
    apart: list[tuple[str, str, dict[str, Any], str | None, int]] = []
    for row in connection.execute(select(records).order_by(records.c.number)).all():
        name, body = people.masked(entry, row.kind, row.name, read_json(row.body))
        mine = records.c.number == row.number
        if row.kind in people.KEPT_APART:
            apart.append((row.kind, name, body, None, row.time))
            connection.execute(records.delete().where(mine))
        elif row.kind in people.MASKED or "worker" in body:
            words = canonical(body)
            connection.execute(records.update().where(mine).values(name=name, body=words))
    who = {row.number: names[row.id] for row in rows}
    for row in connection.execute(select(answers.c.number, answers.c.key, answers.c.worker)).all():
        start, _, rest = row.key.partition(":")
        name, colon, _ = rest.partition(":")
        if colon:
            key = f"{start}:{name}:{who[row.worker]}"
            mine = answers.update().where(answers.c.number == row.number)
            connection.execute(mine.values(key=key))
    for row in connection.execute(select(charges)).all():
        mine = charges.update().where(charges.c.number == row.number)
        connection.execute(mine.values(name=people.charge_name(entry, row.name)))
    for row in connection.execute(select(skips)).all():
        facts = {"reason": row.reason}
        apart.append((people.SKIP, f"{row.item}:{row.worker}", facts, who[row.worker], row.time))
    connection.execute(skips.update().values(reason=people.APART))
    return apart


# --------------------------------------------------------------------------------------------------
# Erasing for good: the bytes of a file, and the tombstones that restored backups honour.


ENDING = ".forgotten"
PATIENCE = 10.0
"""Seconds to wait for others to let go of the write-ahead log."""


def scrub(database: Database, patience: float = PATIENCE) -> bool:
    """Write a SQLite file anew without what was deleted, and empty its write-ahead log.

    It may be done again at any time. A server may be running; it waits for it meanwhile.

    Returns:
        Whether it could be done; False if somebody else reads all the time. PostgreSQL does it in
        its own time (autovacuum, `VACUUM FULL`, the rotation of its write-ahead log): True.

    Raises:
        StoreError: There is no room for the new file.
    """
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
            f"cannot write the store anew without what was deleted: {error}: make room on the disk "
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
    """Return the path of the list of the forgotten beside a SQLite file.

    >>> list_beside("out/campaign.sqlite").name
    'campaign.sqlite.forgotten'
    """
    return Path(f"{place}{ENDING}")


def write_list(database: Database, path: Path) -> None:
    """Add the tombstones of a store to a list; nothing is written where none is new.

    Raises:
        InputError: The list cannot be read or written.
    """
    with database.read() as connection:
        origin = _origin(connection)
        mine = people.graves(connection)
    known = read_list(path)
    there = {one["person"] for one in known}
    new = [{"campaign": origin, **one} for one in mine if one["person"] not in there]
    if new:
        write_text(path, [json.dumps(one, sort_keys=True) + "\n" for one in [*known, *new]])
        path.chmod(0o600)
        _keep(path)


def read_list(path: Path) -> list[dict[str, Any]]:
    """Read a list of the forgotten; nobody, where there is none.

    Raises:
        InputError: It cannot be read.
    """
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


def honour(database: Database, lists: Iterable[Path], now: int = 0) -> int:
    """Forget in a copy whom lists name, and return how many of them it still knew.

    A copy of before people were kept apart gets a new log without ids, if it knows somebody who was
    forgotten.

    Raises:
        InputError: A list cannot be read.
    """
    with database.read() as connection:
        origin = _origin(connection)
        done = set(connection.execute(select(tombstones.c.person)).scalars())
    wanted = {
        one["person"]: one
        for path in lists
        for one in read_list(path)
        if one["campaign"] == origin and one["person"] not in done
    }
    if not wanted:
        return 0
    with database.read() as connection:
        is_private = people.is_private(connection)
        known = list(connection.execute(select(workers.c.id)).scalars())
    if not is_private:
        hashes = {(one["salt"], one["hash"]) for one in wanted.values()}
        salts = {salt for salt, _ in hashes}
        if not any((salt, people.hash_of(salt, who)) in hashes for salt in salts for who in known):
            return 0
        rebase(database, now)
    # Not before they were forgotten: the list of the copy says it to the next one.
    now = max(now, *(int(one["time"]) for one in wanted.values()))
    n = database.write(_not_before(database, now), lambda e: _bury(e, wanted))
    if n:
        scrub(database)
    return n


def _origin(connection: Connection) -> str:
    """Return the hash of the first entry that the campaign's log ever had: no other begins so."""
    first = connection.execute(select(events).order_by(events.c.number).limit(1)).one()
    return str(read_json(first.body)["origin"] if first.kind == BEGIN else first.hash)


def _bury(entry: Entry, wanted: Mapping[str, Mapping[str, Any]]) -> int:
    """Forget whom tombstones name by pseudonym; and by id, where the pseudonyms are others."""
    names, n = people.ids(entry.connection), 0
    left = dict(wanted)
    for person in [one for one in wanted if one in names]:
        people.forget(entry, person, unsettled=True, tombstone=left.pop(person))
        names.pop(person)
        n += 1
    for person, who in names.items():
        for one in list(left.values()):
            # Somebody who came again after they were forgotten has a pseudonym of their own.
            since = entry.connection.execute(
                select(known.c.since).where(known.c.pseudonym == person)
            ).scalar_one()
            if since < one["time"] and people.hash_of(one["salt"], who) == one["hash"]:
                people.forget(entry, person, unsettled=True, tombstone=one)
                n += 1
                break
    for one in left.values():  # the copy has never known them by this pseudonym
        facts = {name: one[name] for name in ("person", "salt", "hash")}
        entry.log("forget", {**facts, "notes": []})
    return n


def _not_before(database: Database, now: int) -> int:
    with database.read() as connection:
        clock = connection.execute(select(func.max(campaign.c.clock))).scalar_one()
    return max(now, int(clock))


def _keep(path: Path) -> None:
    """Make sure that a file and its name are on the disk."""
    for one, flags in ((path, os.O_RDONLY), (path.parent, os.O_RDONLY)):
        handle = os.open(one, flags)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
