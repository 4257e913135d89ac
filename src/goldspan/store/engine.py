"""Connections to SQLite and PostgreSQL, and their errors."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, DBAPIError, InternalError, OperationalError
from sqlalchemy.pool import NullPool

from goldspan.errors import GoldspanError, InputError, MissingExtraError
from goldspan.plugins import secret_of

KEPT: dict[str, Any] = {"pool_size": 16, "max_overflow": 32, "pool_use_lifo": True}
"""Connections that stay open between transactions: a server's threads each need one now and then,
and opening one takes longer than a short transaction."""
VARIABLE = "GOLDSPAN_STORE_PASSWORD"
"""The variable with the database's password, or with _FILE the one that names its file."""
BUSY_SECONDS = 30.0
"""How long a transaction waits for another process's."""
NETWORK = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 20,
    "keepalives_interval": 5,
    "keepalives_count": 5,
    "tcp_user_timeout": 45_000,
}
"""What libpq is told where the address says nothing: a new connection is answered within 10
seconds, and one that the network has cut off ends within 45 (the last one is in milliseconds)."""
WRITE = {"goldspan_begin": "BEGIN IMMEDIATE"}
"""Execution options of a connection that will write."""

_RESTORE = "restore a backup (`goldspan restore`)"


class StoreError(GoldspanError):
    """The database cannot do what it should: full, read-only, busy, gone or damaged."""


class HeldError(StoreError):
    """Another process works on the campaign."""


class LostError(HeldError):
    """Another process took over what this one did: it writes nothing more."""


class BoundError(InputError):
    """Something was done as often as it may be; nothing was changed."""

    def __init__(self, message: str, most: int, seconds: int = 0) -> None:
        self.most, self.seconds = most, seconds
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.most, self.seconds)


def to_url(place: str | Path) -> URL:
    """Turn a path, or an address such as "postgresql://host/name", into SQLAlchemy's URL.

    An address without a password takes that of the variable GOLDSPAN_STORE_PASSWORD, or of the file
    that GOLDSPAN_STORE_PASSWORD_FILE names.
    """
    if "://" not in str(place):
        return URL.create("sqlite", database=str(place))
    try:
        url = make_url(str(place))
    except ArgumentError:
        raise InputError(f"{place!s} is not an address: give a path or postgresql://…") from None
    kind = url.get_backend_name()
    if kind not in {"sqlite", "postgresql"}:
        raise InputError(f"{kind} is not supported: give a path (SQLite) or postgresql://…")
    if kind == "sqlite" and not url.database:
        raise InputError("a database in memory keeps nothing: give the path of a file")
    if kind == "sqlite":
        return url.set(drivername="sqlite")
    if url.password is None and (password := secret_of(VARIABLE)) is not None:
        url = url.set(password=password)
    return url.set(drivername="postgresql+psycopg")


def connect(url: URL, sign: str = "") -> Engine:
    """Make the engine; nothing is opened yet."""
    if url.get_backend_name() == "postgresql":
        try:
            words: dict[str, Any] = {"application_name": sign} if sign else {}
            words |= {name: value for name, value in NETWORK.items() if name not in url.query}
            return create_engine(url, pool_pre_ping=True, connect_args=words, **KEPT)
        except ImportError:
            raise MissingExtraError("psycopg", "postgres", "PostgreSQL") from None
    engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS}, **KEPT)
    event.listen(engine, "connect", _set_pragmas)
    event.listen(engine, "begin", _begin)
    return engine


def connect_unchanged(path: str | Path) -> Engine:
    """Make the engine of a SQLite file that keeps the journal mode it has: a backup has none."""
    engine = create_engine(
        "sqlite://",
        creator=lambda: sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None),
        poolclass=NullPool,
    )
    event.listen(engine, "begin", _begin)
    return engine


def is_sqlite(engine: Engine) -> bool:
    """Whether the database is a SQLite file."""
    return engine.dialect.name == "sqlite"


def is_outside(error: DBAPIError) -> bool:
    """Whether the database is at fault – damaged, full, forbidden – and not what was asked."""
    forbidden = getattr(error.orig, "sqlstate", None) == "42501"
    return forbidden or type(error) in {DatabaseError, OperationalError, InternalError}


def is_busy(error: DBAPIError) -> bool:
    """Whether it helps to try again."""
    state = getattr(error.orig, "sqlstate", None)
    return "database is locked" in str(error.orig) or state in {"40001", "40P01"}


def store_error(error: DBAPIError, where: str) -> StoreError:
    """Return what the database cannot do, and what became of the transaction."""
    why = str(error.orig).strip().splitlines()[0]
    if error.connection_invalidated:
        return StoreError(
            f"{where}: {why}; the connection broke, perhaps after the work was kept: do it again "
            "under the same names and keys, which changes nothing that is there"
        )
    hints = {
        "readonly": "make the file and its folder writable",
        "read-only": "give the user the right to write",
        "permission denied": "give the user the right to do so",
        "disk is full": "make room on the disk",
        "No space left": "make room on the disk",
        "disk I/O error": "is the disk full, or gone?",
        "malformed": f"the file is damaged: {_RESTORE}, or import an export",
        "Could not decode": f"the file is damaged: {_RESTORE}",
        "unable to open": "does the folder exist, and may you write to it?",
        "locked": "another process is writing: try again",
        "not a database": f"it is damaged, or something else: {_RESTORE}, or give another path",
    }
    hint = next((say for word, say in hints.items() if word in why), "")
    return StoreError(f"{where}: {why}{'; ' + hint if hint else ''}; nothing was changed")


def _set_pragmas(connection: Any, _: Any) -> None:
    # No transaction begins but by `_begin`: the driver would begin them late.
    connection.isolation_level = None
    # What is deleted is overwritten with zeros: somebody who is forgotten leaves no bytes.
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    connection.exec_driver_sql(options.get("goldspan_begin", "BEGIN"))
