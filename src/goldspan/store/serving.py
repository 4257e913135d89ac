"""One server at a time: whoever serves a campaign holds it alone, beside its loop and commands.

A server keeps in memory what every worker has done. Of two servers on one campaign each would know
half of it. The lock is as that of `goldspan.store.alone`, under another name, and says who holds
it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

from sqlalchemy import Connection, text

from goldspan.old_name import OLD_NAME
from goldspan.store import locks
from goldspan.store.engine import is_sqlite
from goldspan.store.journal import Database
from goldspan.store.locks import PATIENCE

_SIGN = text("SELECT set_config('application_name', :who, false)")
# Whoever serves holds the old name's lock, which is taken last. PostgreSQL keeps the two halves of
# the key.
_WHO = text(
    "SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid "
    "WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND (l.classid::bigint << 32) | "
    "l.objid::bigint = hashtextextended(CAST(:old AS text) || current_schema(), 0)"
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
    path = locks.file_beside(database, ".serve.lock")
    with locks.opened(path) as file:
        refusal = partial(_refusal, database, lambda: _signed(path))
        locks.wait(lambda: locks.locked(file), PATIENCE, refusal)
        _sign(file, who)
        yield


@contextmanager
def _session_held(database: Database, who: str) -> Iterator[None]:
    with locks.session(database) as connection:
        refusal = partial(_refusal, database, lambda: _holder(connection))
        locks.wait(lambda: locks.taken(connection, "serve "), PATIENCE, refusal)
        connection.execute(_SIGN, {"who": who})
        yield


def _holder(connection: Connection) -> str:
    return str(connection.execute(_WHO, {"old": f"{OLD_NAME} serve "}).scalar() or "")


def _refusal(database: Database, holder: Callable[[], str]) -> str:
    return (
        f"{database.where} is served already, by {holder() or 'another process'}: use that server, "
        "or end it with Ctrl-C and start again; nothing was changed"
    )


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
