"""Locks that end with the process that holds them, however that ends: of a file, or of PostgreSQL.

What is held, by whom, and what is said to who is kept out, is said by `alone` and `serving`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from sqlalchemy import Connection, text

from goldspan.old_name import OLD_NAME
from goldspan.store.engine import HeldError, StoreError
from goldspan.store.journal import Database

# CASE, as AND would not say which comes first.
_TAKE = text(
    "SELECT CASE "
    "WHEN pg_try_advisory_lock(hashtextextended(CAST(:new AS text) || current_schema(), 0)) "
    "THEN pg_try_advisory_lock(hashtextextended(CAST(:old AS text) || current_schema(), 0)) "
    "ELSE false END"
)
PATIENCE = 3.0
"""Seconds until a lock counts as taken: PostgreSQL sees late that a process was killed."""


def file_beside(database: Database, ending: str) -> Path:
    """Give the path of a file beside a SQLite database."""
    place = str(database.engine.url.database).removeprefix("file:")
    return Path(f"{place}{ending}")


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that is to be held.

    Raises:
        StoreError: It cannot be written.
    """
    try:
        file = path.open("ab")
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {error.strerror}; make the file and its folder writable"
        ) from None
    with file:
        yield file


@contextmanager
def session(database: Database) -> Iterator[Connection]:
    """Open a session of PostgreSQL whose locks end with it: it never goes back into the pool."""
    with database.engine.connect() as plain:
        try:
            yield plain.execution_options(isolation_level="AUTOCOMMIT")
        finally:
            plain.invalidate()


def taken(connection: Connection, what: str = "") -> bool:
    """Try to take PostgreSQL's lock on the campaign of this schema, to the end of the session.

    The lock of the old name is taken after that of the new one: a process from before the package
    was called goldspan holds the old one only.
    """
    names = {"new": f"goldspan {what}", "old": f"{OLD_NAME} {what}"}
    return bool(connection.execute(_TAKE, names).scalar_one())


def wait(take: Callable[[], bool], seconds: float, refusal: Callable[[], str]) -> None:
    """Try to take a lock for some seconds.

    Raises:
        HeldError: Somebody else holds it; `refusal` gives the message.
    """
    end = time.monotonic() + seconds
    while not take():
        if time.monotonic() > end:
            raise HeldError(refusal())
        time.sleep(0.05)


if sys.platform == "win32":  # pragma: no cover - the tests run elsewhere

    def locked(file: IO[bytes]) -> bool:
        """Try to take a file."""
        import msvcrt

        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:

    def locked(file: IO[bytes]) -> bool:
        """Try to take a file."""
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
