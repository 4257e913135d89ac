"""One loop at a time: whoever steers a campaign holds it alone; others still read and answer.

Two loops over one campaign could not overspend, as the money is in constraints of the database,
but each would decide by what the other has half done. How a process holds the campaign, and how it
loses it, is in `goldspan.store.roles`.

Whoever has steered a campaign stands in the table `openings` until it closes the ledger. A row of a
process that is not running says that one ended uncleanly: whoever steers next compares the whole
database with its log first.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from sqlalchemy import Executable, select
from sqlalchemy.exc import DatabaseError

from goldspan.store import roles
from goldspan.store.check import sums_of
from goldspan.store.engine import WRITE, StoreError, is_outside, store_error
from goldspan.store.journal import Database
from goldspan.store.locks import PATIENCE
from goldspan.store.schema import openings

log = logging.getLogger(__name__)


@contextmanager
def alone(database: Database) -> Iterator[None]:
    """Keep out others who would steer the campaign.

    Raises:
        HeldError: Another process steers it.
        LostError: Another process took over.
        StoreError: The database cannot be used.
    """
    who = f"process {os.getpid()}"
    refusal = partial(_refusal, database)
    with roles.hold(roles.Claim(database, roles.LOOP, who, refusal, PATIENCE)):
        yield


def check_start(database: Database) -> bool:
    """Refuse to steer by sums that are not those of the rows; after an unclean end, check all.

    Returns:
        Whether all was checked.

    Raises:
        StoreError: The database is damaged.
    """
    from goldspan.store.verify import check_whole, damaged

    faults = sums_of(database)
    if faults:
        raise damaged(database.where, "; ".join(faults))
    with database.read() as connection:
        rows = connection.execute(select(openings)).all()
    ended = [row.id for row in rows if not _is_running(str(row.process))]
    if not ended:
        return False
    log.warning("%s: a process did not end cleanly: comparing tables and log", database.where)
    check_whole(database)
    _write(database, openings.delete().where(openings.c.id.in_(ended)))
    return True


def mark_opened(database: Database) -> str:
    """Keep that this process has the campaign open; return the name of the row.

    Raises:
        StoreError: The database cannot be written.
    """
    name = secrets.token_hex(8)
    _write(database, openings.insert().values(id=name, process=_process(os.getpid())))
    return name


def mark_closed(database: Database, name: str) -> None:
    """Take back what `mark_opened` wrote; where that cannot be, the next start checks all."""
    with suppress(StoreError):
        _write(database, openings.delete().where(openings.c.id == name))


def _write(database: Database, statement: Executable) -> None:
    """Change a table that the log does not determine, in a transaction of its own."""
    try:
        with database.turn, database.engine.connect() as plain:
            connection = plain.execution_options(**WRITE)
            with connection.begin():
                connection.execute(statement)
    except DatabaseError as error:
        if not is_outside(error):
            raise
        raise store_error(error, database.where) from None


def _process(number: int) -> str:
    """Name a process of this machine: its number alone may be given again."""
    try:
        begun = (
            Path(f"/proc/{number}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[19]
        )
    except (OSError, IndexError, UnicodeError):
        begun = ""
    return f"{socket.gethostname()} {number} {begun}".rstrip()


def _is_running(process: str) -> bool:
    """Whether a process is at work; one of another machine counts as ended."""
    words = process.split(" ")
    if len(words) < 2 or words[0] != socket.gethostname() or not words[1].isdecimal():
        return False
    if sys.platform == "win32":  # pragma: no cover - there, asking with `os.kill` ends a process
        return False
    number = int(words[1])
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        pass
    return _process(number) == process


def _refusal(database: Database, _: str) -> str:
    return (
        f"{database.where}: another `goldspan run` is at work on this campaign: let it end or stop "
        "it, then run again; nothing was changed"
    )
