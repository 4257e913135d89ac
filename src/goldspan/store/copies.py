"""Copies of a campaign: backups of a SQLite file, and its answers as partitions."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from sqlalchemy import bindparam, select
from sqlalchemy.exc import DatabaseError as SQLDatabaseError

from goldspan.crowd import Crowd
from goldspan.crowd.atomic import new_file, write_folder
from goldspan.crowd.formats.parquet import MAX_PARTITIONS, write
from goldspan.crowd.questions import Questions
from goldspan.errors import InputError
from goldspan.params import Whole, require
from goldspan.store.crowd import ANSWER, ITEM, Items, Labels, answers_of, crowd_of, cut_answers
from goldspan.store.engine import StoreError, connect_unchanged, is_sqlite, to_url
from goldspan.store.erasing import flush_to_disk, forget_listed, list_beside, lists_near, write_list
from goldspan.store.journal import Database
from goldspan.store.ledger import SqlLedger, open_ledger, where_of
from goldspan.store.schema import answers, check_version, items, openings
from goldspan.store.verify import Tell, Verification, verify
from goldspan.store.verify import damaged as damage

# --------------------------------------------------------------------------------------------------
# Copies of a campaign's SQLite file while others write to it; PostgreSQL has its own tools.


_RESTORE = "restore a backup (`goldspan restore`)"


def backup_ledger(
    ledger: SqlLedger, path: str | Path, *, damaged: bool = False, tell: Tell | None = None
) -> Verification:
    """Copy a campaign into a file of its own, while work goes on, and compare it with its log.

    Args:
        ledger: The campaign.
        path: Where to; nothing is written there if the copy is not whole.
        damaged: Write it also then, as far as the pages can be copied.
        tell: Is told how far it is.

    Returns:
        What was found, which `damaged` lets pass.

    Raises:
        InputError: The campaign is in PostgreSQL, the path cannot be written, or the disk is full.
        StoreError: The campaign's file cannot be read, or is damaged.
    """
    engine = ledger.database.engine
    if not is_sqlite(engine):
        raise InputError(f"{ledger.database.where} is not a file: use PostgreSQL's pg_dump")
    with new_file(path) as temporary:
        connection = engine.raw_connection()
        try:
            _copy(connection.driver_connection, temporary)
        except sqlite3.DatabaseError as error:
            raise StoreError(f"cannot copy {ledger.database.where}: {error}; {_RESTORE}") from None
        finally:
            connection.close()
        with _opened(temporary, ledger.database.where) as copy:
            found = verify(copy, tell=tell)
        if not found.is_whole and not damaged:
            raise damage(
                ledger.database.where, found.summary(),
                "no backup was written, and older ones are untouched: keep them, and restore the "
                "newest that is whole; `goldspan verify` lists what differs, and `goldspan backup "
                "--damaged` copies it as it is",
            )  # fmt: skip
    return found


def restore_ledger(
    backup: str | Path, place: str | Path, *, lists: Sequence[str | Path] = (),
    tell: Tell | None = None,
) -> SqlLedger:  # fmt: skip
    """Copy a backup to a new path, compare it with its log, forget who was forgotten, and open it.

    Who was forgotten since the backup is told by the files `*.forgotten` in the folders of the
    backup and of the new path.

    Args:
        backup: What `backup_ledger` made.
        place: The new path.
        lists: Lists of the forgotten that lie elsewhere.
        tell: Is told how far it is.

    Raises:
        InputError: There is no such backup, it is damaged, or the place is taken.
        StoreError: A newer goldspan made it.
    """
    if not Path(backup).is_file():
        raise InputError(f"there is no backup at {backup}")
    if Path(place).exists():
        raise InputError(f"{place} exists already: choose another name, or remove it")
    with new_file(place) as temporary:
        # Without what may lie in a journal beside it, it would be another moment of the campaign.
        source = sqlite3.connect(f"file:{quote(str(Path(backup).absolute()))}?mode=ro", uri=True)
        try:
            _copy(source, temporary)
            with _opened(temporary, str(backup)) as copy:
                with copy.read() as connection:
                    check_version(connection, str(backup))
                found = verify(copy, tell=tell)
                why = found.summary()
                if found.is_whole:
                    with copy.engine.begin() as connection:  # nobody has opened this one yet
                        connection.execute(openings.delete())
        except (sqlite3.DatabaseError, SQLDatabaseError) as error:
            why = str(getattr(error, "orig", error))
        finally:
            source.close()
        if why:
            raise InputError(
                f"the backup {backup} is damaged: {why}: take another backup; nothing was written"
            )
        # Before the copy takes its name: it never holds them in a place where it is served.
        found_lists = [*map(Path, lists), *lists_near(backup, place)]
        with open_ledger(temporary) as opened:
            forget_listed(opened.database, found_lists)
        for end in ("-wal", "-shm"):
            temporary.with_name(temporary.name + end).unlink(missing_ok=True)
        flush_to_disk(temporary)
    ledger = open_ledger(place)
    write_list(ledger.database, list_beside(place))
    return ledger


@contextmanager
def opened_unchanged(place: str | Path) -> Iterator[Database]:
    """Open a campaign's database to be verified, and change nothing of a SQLite file."""
    url, where = to_url(place), where_of(place)
    if url.get_backend_name() != "sqlite":
        with open_ledger(place) as ledger:
            yield ledger.database
        return
    path = Path(str(url.database)).absolute()
    if not path.is_file():
        raise InputError(f"there is no campaign at {where}")
    try:
        with _opened(path, where, sync=False) as database:
            with database.read() as connection:
                if not check_version(connection, where):
                    raise InputError(f"{where} holds no campaign")
            yield database
    except (sqlite3.DatabaseError, SQLDatabaseError) as error:
        raise StoreError(f"{where}: {getattr(error, 'orig', error)}; {_RESTORE}") from None


@contextmanager
def _opened(path: Path, where: str, *, sync: bool = True) -> Iterator[Database]:
    """Open a file as it is, without write-ahead log if it has none."""
    engine = connect_unchanged(path)
    try:
        yield Database(engine, where)
    finally:
        engine.dispose()
        if sync:
            flush_to_disk(path)


def _copy(source: Any, target: Path) -> None:
    """Copy a database to a file, and leave nothing beside it."""
    try:
        with closing(sqlite3.connect(target)) as copy:
            # All pages in one step: in several it would begin anew with every commit of others.
            source.backup(copy, pages=-1)
            copy.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_FULL:
            raise
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None
    finally:
        # SQLite leaves the journal of a transaction that it could not end.
        target.with_name(f"{target.name}-journal").unlink(missing_ok=True)
    flush_to_disk(target)


# --------------------------------------------------------------------------------------------------
# The answers as partitions, for `goldspan.aggregation.partitions`: the whole is never held.


def export_partitions(
    ledger: SqlLedger, folder: str | Path, n: int,
    shown: Callable[[Crowd], Crowd] = lambda crowd: crowd,
) -> int:  # fmt: skip
    """Write the answered items with the answers that count into a new folder of Parquet files.

    All are of one moment. An item has all its answers in one file, and the files about as many
    items; one of them is in memory at a time.

    Args:
        ledger: The campaign.
        folder: A folder that does not exist.
        n: How many files; fewer where items are few.
        shown: What to make of the crowd of a file, such as other names of workers.

    Returns:
        How many files were written.

    Raises:
        InputError: Nothing is answered, `n` makes no sense, or the folder exists or cannot be made.
    """
    require("partitions", n, Whole(1, MAX_PARTITIONS))
    if isinstance(ledger.tagset, Questions):
        raise InputError("partitions are of one question, and the task has several layers")
    ledger.check_facts()
    written: list[int] = []

    def fill(path: Path) -> None:
        with ledger.database.read() as connection:
            rows = connection.execute(_ANSWERED).scalars()
            numbers = np.fromiter(rows, np.int64)
            if not len(numbers):
                raise InputError("there are no answers to export")
            labels = Labels.of(connection)
            parts = np.array_split(numbers, min(n, len(numbers)))
            for place, part in enumerate(parts):
                ends = {"first": int(part[0]), "last": int(part[-1])}
                found = Items.of(connection.execute(_ITEMS_OF, ends).all())
                came = connection.execute(_ANSWERS_OF, ends).all()
                given, cut = answers_of(came, labels), cut_answers(came)
                crowd = shown(crowd_of(connection, found, given, labels.tagset, cut))
                more = {"partition": [place, len(parts)]}
                write(crowd, path / f"part-{place:05}.parquet", more)
                written.append(place)

    write_folder(folder, fill)
    return len(written)


_COUNTED = select(answers.c.item).where(answers.c.counts == 1)
_ANSWERED = select(items.c.number).where(items.c.number.in_(_COUNTED)).order_by(items.c.number)
_ITEMS_OF = (
    select(*ITEM)
    .where(items.c.number.between(bindparam("first"), bindparam("last")))
    .where(items.c.number.in_(_COUNTED))
    .order_by(items.c.number)
)
_ANSWERS_OF = (
    select(*ANSWER)
    .where((answers.c.counts == 1) & answers.c.item.between(bindparam("first"), bindparam("last")))
    .order_by(answers.c.item, answers.c.number)
)
