"""Locks: between the threads of a process, and between processes.

A lock between processes ends with the process that holds it, however that ends: it is that of a
file beside a SQLite database, or of a session of PostgreSQL.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from sqlalchemy import Connection, Engine, text

from goldspan.store.engine import HeldError, StoreError

# --------------------------------------------------------------------------------------------------
# Between threads: a lock whose waiters get it in the order in which they came.


class FairLock:
    """A fair lock, for `with`; it cannot be taken twice by one thread.

    >>> lock = FairLock()
    >>> with lock:
    ...     lock.waiting
    0
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._queue: deque[threading.Lock] = deque()
        self._taken = False

    @property
    def waiting(self) -> int:
        """How many threads wait."""
        return len(self._queue)

    def __enter__(self) -> None:
        """Wait until it is free and all who came before have had it."""
        with self._guard:
            if not self._taken:
                self._taken = True
                return
            mine = threading.Lock()
            mine.acquire()
            self._queue.append(mine)
        try:
            mine.acquire()
        except BaseException:
            self._leave(mine)
            raise

    def __exit__(self, *_: object) -> None:
        """Hand over to who has waited longest."""
        with self._guard:
            if self._queue:
                self._queue.popleft().release()
            else:
                self._taken = False

    def _leave(self, mine: threading.Lock) -> None:
        """Stop waiting after Ctrl-C; it may have been handed over meanwhile."""
        with self._guard:
            waits = mine in self._queue
            if waits:
                self._queue.remove(mine)
        if not waits:
            self.__exit__()


# --------------------------------------------------------------------------------------------------
# Between processes.


_TAKE = "SELECT {take}(hashtextextended(CAST(:name AS text) || current_schema(), 0))"
TAKE = text(_TAKE.format(take="pg_try_advisory_lock"))
TAKE_SHARED = text(_TAKE.format(take="pg_try_advisory_lock_shared"))
"""Try to take PostgreSQL's lock on the campaign of this schema, to the end of the session."""


def file_beside(engine: Engine, ending: str) -> Path:
    """Return the path of a file beside a SQLite database."""
    place = str(engine.url.database).removeprefix("file:")
    return Path(f"{place}{ending}")


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that is to be held."""
    try:
        file = path.open("ab")
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {error.strerror}; make the file and its folder writable"
        ) from None
    with file:
        yield file


@contextmanager
def session(engine: Engine) -> Iterator[Connection]:
    """Open a session of PostgreSQL whose locks end with it: it never goes back into the pool."""
    with engine.connect() as plain:
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
    """Try to take a lock for some seconds."""
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
