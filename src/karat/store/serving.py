"""One server at a time: whoever serves a campaign holds it alone, beside its loop and commands.

A server keeps in memory what every worker has done. Of two servers on one campaign each would know
half of it. The lock is as in `karat.store.alone`, under another name, and says who holds it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from sqlalchemy import Connection, text

from karat.store.alone import PATIENCE, _locked
from karat.store.engine import StoreError, is_sqlite
from karat.store.journal import Database

_TAKE = text("SELECT pg_try_advisory_lock(hashtextextended('karat serve ' || current_schema(), 0))")
_SIGN = text("SELECT set_config('application_name', :who, false)")
# PostgreSQL keeps the two halves of the key.
_WHO = text(
    "SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid "
    "WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND (l.classid::bigint << 32) | "
    "l.objid::bigint = hashtextextended('karat serve ' || current_schema(), 0)"
)


@contextmanager
def serving(database: Database, address: str) -> Iterator[None]:
    """Keep out other servers of the campaign.

    Args:
        database: The campaign's.
        address: Where it is served, told to who is kept out.

    Raises:
        StoreError: Another process serves it, or the lock cannot be taken.
    """
    hold = _file_held if is_sqlite(database.engine) else _session_held
    with hold(database, f"process {os.getpid()} at {address}"):
        yield


@contextmanager
def _file_held(database: Database, who: str) -> Iterator[None]:
    place = str(database.engine.url.database).removeprefix("file:")
    path = Path(f"{place}.serve.lock")
    try:
        file = path.open("ab")
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {error.strerror}; make the file and its folder writable"
        ) from None
    with file:
        _wait(lambda: _locked(file), lambda: _signed(path), database.where)
        _sign(file, who)
        yield


@contextmanager
def _session_held(database: Database, who: str) -> Iterator[None]:
    with database.engine.connect() as plain:
        connection = plain.execution_options(isolation_level="AUTOCOMMIT")
        try:
            _wait(lambda: _taken(connection), lambda: _holder(connection), database.where)
            connection.execute(_SIGN, {"who": who})
            yield
        finally:
            # The lock is the session's: it must not go back into the pool with it.
            plain.invalidate()


def _taken(connection: Connection) -> bool:
    return bool(connection.execute(_TAKE).scalar_one())


def _holder(connection: Connection) -> str:
    return str(connection.execute(_WHO).scalar() or "")


def _wait(take: Callable[[], bool], holder: Callable[[], str], where: str) -> None:
    end = time.monotonic() + PATIENCE
    while not take():
        if time.monotonic() > end:
            raise StoreError(
                f"{where} is served already, by {holder() or 'another process'}: use that server, "
                "or end it with Ctrl-C and start again; nothing was changed"
            )
        time.sleep(0.05)


def _sign(file: IO[bytes], who: str) -> None:
    file.truncate(0)
    file.write(who.encode())
    file.flush()


def _signed(path: Path) -> str:
    """Give who has signed; on Windows a file that is held cannot be read."""
    try:
        return path.read_bytes()[:200].decode("utf-8", "replace")
    except OSError:  # pragma: no cover - the tests run elsewhere
        return ""
