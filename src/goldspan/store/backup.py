"""Copies of a campaign's SQLite file while others write to it; PostgreSQL has its own tools.

The copy is one moment of the database, checked before it takes its name. For PostgreSQL use its
`pg_dump`, or `export_ledger`, which also works online.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goldspan.crowd.atomic import new_file
from goldspan.errors import InputError
from goldspan.store.engine import StoreError, is_sqlite
from goldspan.store.erasing import honour, list_beside, lists_near, write_list
from goldspan.store.opening import open_ledger

if TYPE_CHECKING:
    from goldspan.store.ledger import SqlLedger


def backup_ledger(ledger: SqlLedger, path: str | Path) -> None:
    """Copy a campaign into a file of its own, while work goes on.

    Raises:
        InputError: The campaign is in PostgreSQL, the path cannot be written, or the disk is full.
        StoreError: The campaign's file cannot be read.
    """
    engine = ledger.database.engine
    if not is_sqlite(engine):
        raise InputError(
            f"{ledger.database.where} is no file: use `export_ledger`, or PostgreSQL's pg_dump"
        )
    with new_file(path) as temporary:
        connection = engine.raw_connection()
        try:
            _copy(connection.driver_connection, temporary)
        except sqlite3.DatabaseError as error:
            raise StoreError(f"cannot copy {ledger.database.where}: {error}") from None
        finally:
            connection.close()


def restore_ledger(
    backup: str | Path, place: str | Path, *, lists: Sequence[str | Path] = (), now: int = 0
) -> SqlLedger:
    """Copy a backup to a new path, forget who was forgotten since, check it, and open it.

    Who was forgotten since is told by the files `*.forgotten` in the folders of the backup and of
    the new path.

    Args:
        backup: What `backup_ledger` made.
        place: The new path.
        lists: Lists of the forgotten that lie elsewhere.
        now: Milliseconds since 1970.

    Raises:
        InputError: There is no such backup, it is damaged, or the place is taken.
    """
    if not Path(backup).is_file():
        raise InputError(f"there is no backup at {backup}")
    if Path(place).exists():
        raise InputError(f"{place} exists already: choose another name, or remove it")
    with new_file(place) as temporary:
        source = sqlite3.connect(f"file:{Path(backup).absolute()}?mode=ro", uri=True)
        try:
            _copy(source, temporary)
        except sqlite3.DatabaseError as error:
            raise InputError(f"the backup {backup} is damaged: {error}") from None
        finally:
            source.close()
        # Before the copy takes its name: it never holds them in a place where it is served.
        found = [*map(Path, lists), *lists_near(backup, place)]
        with open_ledger(temporary) as copy:
            honour(copy.database, found, now)
        for end in ("-wal", "-shm"):
            temporary.with_name(temporary.name + end).unlink(missing_ok=True)
    ledger = open_ledger(place)
    ledger.verify()
    write_list(ledger.database, list_beside(place))
    return ledger


def _copy(source: Any, target: Path) -> None:
    """Copy a database to a file, check it, and leave nothing beside it.

    Raises:
        OSError: The disk is full.
        DatabaseError: The source cannot be read.
        StoreError: The copy is damaged.
    """
    try:
        _copied(source, target)
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_FULL:
            raise
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None
    finally:
        # SQLite leaves the journal of a transaction that it could not end.
        target.with_name(f"{target.name}-journal").unlink(missing_ok=True)
    handle = os.open(target, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _copied(source: Any, target: Path) -> None:
    copy = sqlite3.connect(target)
    try:
        # All pages in one step: a copy in several would begin anew with every commit of others.
        source.backup(copy, pages=-1)
        copy.execute("PRAGMA journal_mode=DELETE")
        (found,) = copy.execute("PRAGMA integrity_check").fetchone()
    finally:
        copy.close()
    if found != "ok":
        raise StoreError(f"the copy is damaged: {found}")
