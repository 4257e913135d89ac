"""Whether a database is whole: its pages, its links, and the sums that are kept beside the rows."""

from __future__ import annotations

from sqlalchemy import Connection, text

from goldspan.store.engine import is_sqlite
from goldspan.store.journal import Database

_SUMS = {
    "an item has more or fewer leases than it counts": (
        "SELECT count(*) FROM slots WHERE leased <> "
        "(SELECT count(*) FROM leases WHERE leases.item = slots.item)"
    ),
    "an item has more or fewer answers than it counts": (
        "SELECT count(*) FROM slots WHERE filled <> "
        "(SELECT count(*) FROM answers WHERE answers.item = slots.item AND counts = 1)"
    ),
    "an answer was changed, and none counts in its place": (
        "SELECT count(*) FROM answers old WHERE old.counts = 0 "
        "AND old.status IN ('accepted', 'late', 'changed') AND NOT EXISTS "
        "(SELECT 1 FROM answers a WHERE a.item = old.item AND a.worker = old.worker "
        "AND a.counts = 1)"
    ),
    "an item has more places than it needs": (
        "SELECT count(*) FROM slots WHERE places > wanted AND places > leased + filled"
    ),
    "the money reserved is not that of the leases": (
        "SELECT count(*) FROM campaign WHERE reserved <> "
        "(SELECT coalesce(sum(cost), 0) FROM leases)"
    ),
    "the money spent is not that of the answers and charges": (
        "SELECT count(*) FROM campaign WHERE spent <> "
        "(SELECT coalesce(sum(cost), 0) FROM answers) + "
        "(SELECT coalesce(sum(amount), 0) FROM charges)"
    ),
    "a worker would not see a place that is free": (
        "SELECT count(*) FROM workers JOIN slots ON slots.position < workers.cursor "
        "WHERE places > leased + filled AND NOT EXISTS "
        "(SELECT 1 FROM answers a WHERE a.item = slots.item AND a.worker = workers.number) "
        "AND NOT EXISTS "
        "(SELECT 1 FROM leases l WHERE l.item = slots.item AND l.worker = workers.number) "
        "AND NOT EXISTS "
        "(SELECT 1 FROM skips s WHERE s.item = slots.item AND s.worker = workers.number) "
        # Control questions are given by name alone.
        "AND NOT EXISTS (SELECT 1 FROM gold g WHERE g.item = slots.item AND g.control = 1)"
    ),
}


def faults_of(database: Database) -> list[str]:
    """Say what is wrong with a database, in sentences; empty if it is whole.

    The log and the tables are compared by `goldspan.store.verify`.
    """
    if not is_sqlite(database.engine):
        return sums_of(database)
    with database.read() as connection:
        faults = page_faults(connection) + foreign_faults(connection)
    return faults + sums_of(database)


def sums_of(database: Database) -> list[str]:
    """Say which sums beside the rows are not those of the rows; empty if all are."""
    with database.read() as connection:
        return [message for message, query in _SUMS.items() if _counts(connection, query)]


def _counts(connection: Connection, query: str) -> bool:
    return bool(connection.execute(text(query)).scalar_one())


def page_faults(connection: Connection) -> list[str]:
    """Return what SQLite says is wrong with the pages and indexes of a file."""
    found = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
    return [line for words in found if words != "ok" for line in str(words).splitlines()]


def foreign_faults(connection: Connection) -> list[str]:
    """Return which rows of a SQLite file name a row that is not there."""
    links = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
    return [f"{table} row {row} names a row of {to} that is gone" for table, row, to, _ in links]
