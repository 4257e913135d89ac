"""A new log in place of an old one: its first entry goes on from the old one's last hash.

A log of before names people by their ids, and no entry of it can be changed. To forget somebody
there, the whole log is replaced: the entry "begin" holds number and hash of the last old entry,
onto which it is hashed as any other, and entries of kind "snapshot" hold all rows of the tables,
with pseudonyms in place of ids. Replaying them gives the tables, and `verify` checks the new log
as it checks any. The tables are compared with the old log before it goes; whether the snapshot says
what it said can be checked by who has kept it: its last hash is that in "begin".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, delete, select, text

from goldspan.store import people
from goldspan.store.chain import BEGIN, canonical, check_chain, read_json
from goldspan.store.engine import is_sqlite
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
    usage,
    workers,
)

if TYPE_CHECKING:
    from sqlalchemy import Table

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
