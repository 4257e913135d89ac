"""Locks that end with the process that holds them, however that ends: of a file, or of PostgreSQL.

What is held, by whom, and what is said to who is kept out, is said by `roles`, `alone` and
`serving`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from sqlalchemy import Connection, text

from goldspan.store.engine import HeldError, StoreError
from goldspan.store.journal import Database

_BOTH = (
    # CASE, as AND would not say which comes first. The lock of the old name is taken after that of
    # the new one: a process from before the package was called goldspan holds the old one only.
    "SELECT CASE WHEN {take}(hashtextextended(CAST(:new AS text) || current_schema(), 0)) "
    "THEN {take}(hashtextextended(CAST(:old AS text) || current_schema(), 0)) ELSE false END"
)
TAKE = text(_BOTH.format(take="pg_try_advisory_lock"))
TAKE_SHARED = text(_BOTH.format(take="pg_try_advisory_lock_shared"))
"""Try to take PostgreSQL's locks on the campaign of this schema, to the end of the session."""
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


def sign(file: IO[bytes], who: str) -> None:
    """Write into a file that is held who holds it."""
    file.truncate(0)
    file.write(who.encode())
    file.flush()


def signed(path: Path) -> str:
    """Return who has signed; on Windows a file that is held cannot be read."""
    try:
        return path.read_bytes()[:200].decode("utf-8", "replace")
    except OSError:  # pragma: no cover - the tests run elsewhere
        return ""


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

    def shared(_: IO[bytes]) -> bool:
        """Return False: Windows shares no such lock."""
        return False

else:

    def locked(file: IO[bytes]) -> bool:
        """Try to take a file."""
        import fcntl

        return _flock(file, fcntl.LOCK_EX)

    def shared(file: IO[bytes]) -> bool:
        """Try to take a file together with others, or share one that is held alone."""
        import fcntl

        return _flock(file, fcntl.LOCK_SH)

    def _flock(file: IO[bytes], how: int) -> bool:
        import fcntl

        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
