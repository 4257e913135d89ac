"""One loop at a time: whoever steers a campaign holds it alone; others still read and answer.

Two loops over one campaign could not overspend, as the money is in constraints of the database,
but each would decide by what the other has half done. The lock is the operating system's, on a
file beside a SQLite database, or PostgreSQL's: it ends with the process that holds it, however
that ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from goldspan.store import locks
from goldspan.store.check import sums_of
from goldspan.store.engine import StoreError, is_sqlite
from goldspan.store.journal import Database
from goldspan.store.locks import PATIENCE


@contextmanager
def alone(database: Database) -> Iterator[None]:
    """Keep out others who would steer the campaign.

    Raises:
        StoreError: Another process steers it, or the lock cannot be taken.
    """
    hold = _file_held if is_sqlite(database.engine) else _session_held
    with hold(database):
        yield


def check_sums(database: Database) -> None:
    """Refuse to steer by sums that are not those of the rows.

    Raises:
        StoreError: They are not.
    """
    faults = sums_of(database)
    if faults:
        raise StoreError(
            f"{database.where} is damaged: {'; '.join(faults)}: restore a backup, or import an "
            "export; nothing was changed"
        )


@contextmanager
def _file_held(database: Database) -> Iterator[None]:
    with locks.opened(locks.file_beside(database, ".lock")) as file:
        locks.wait(lambda: locks.locked(file), PATIENCE, lambda: _refusal(database))
        yield


@contextmanager
def _session_held(database: Database) -> Iterator[None]:
    with locks.session(database) as connection:
        locks.wait(
            lambda: locks.taken(connection),
            PATIENCE,
            lambda: _refusal(database),
        )
        yield


def _refusal(database: Database) -> str:
    return (
        f"{database.where}: another `goldspan run` is at work on this campaign: let it end or stop "
        "it, then run again; nothing was changed"
    )
