"""One loop at a time: whoever steers a campaign holds it alone; others still read and answer.

Two loops over one campaign could not overspend, as the money is in constraints of the database,
but each would decide by what the other has half done. The lock is the operating system's, on a
file beside a SQLite database, or PostgreSQL's: it ends with the process that holds it, however
that ends.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from sqlalchemy import text

from karat.store.check import sums_of
from karat.store.engine import StoreError, is_sqlite
from karat.store.journal import Database

PATIENCE = 3.0
"""Seconds until a lock counts as taken: PostgreSQL sees late that a process was killed."""
_TAKE = text("SELECT pg_try_advisory_lock(hashtextextended('karat ' || current_schema(), 0))")


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
    place = str(database.engine.url.database).removeprefix("file:")
    path = Path(f"{place}.lock")
    try:
        file = path.open("ab")
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {error.strerror}; make the file and its folder writable"
        ) from None
    with file:
        _wait(lambda: _locked(file), database.where)
        yield


@contextmanager
def _session_held(database: Database) -> Iterator[None]:
    with database.engine.connect() as plain:
        connection = plain.execution_options(isolation_level="AUTOCOMMIT")
        try:
            _wait(lambda: bool(connection.execute(_TAKE).scalar_one()), database.where)
            yield
        finally:
            # The lock is the session's: it must not go back into the pool with it.
            plain.invalidate()


def _wait(take: Callable[[], bool], where: str) -> None:
    end = time.monotonic() + PATIENCE
    while not take():
        if time.monotonic() > end:
            raise StoreError(
                f"{where}: another `karat run` is at work on this campaign: let it end or stop it, "
                "then run again; nothing was changed"
            )
        time.sleep(0.05)


if sys.platform == "win32":  # pragma: no cover - the tests run elsewhere

    def _locked(file: IO[bytes]) -> bool:
        """Try to take a file."""
        import msvcrt

        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:

    def _locked(file: IO[bytes]) -> bool:
        """Try to take a file."""
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
