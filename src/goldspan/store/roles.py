"""Roles: which process runs a campaign's loop, and which one serves it.

A role is held by a lock of the operating system (SQLite) or by heartbeats (PostgreSQL), and has an
epoch that grows with every takeover: a process that was replaced writes nothing more.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from sqlalchemy import Connection, Engine, Executable, and_, bindparam, func, select, text
from sqlalchemy.exc import DatabaseError, DBAPIError, SQLAlchemyError

from goldspan.store.engine import WRITE, HeldError, StoreError, is_outside, is_sqlite, store_error
from goldspan.store.journal import Database
from goldspan.store.schema import campaign, openings, processes, roles
from goldspan.store.verify import check_whole, damaged, sums_of

# --------------------------------------------------------------------------------------------------
# Locks between processes, which end with the process that holds them: of a file beside a SQLite
# database, or of a session of PostgreSQL.


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


# --------------------------------------------------------------------------------------------------
# Holding a role, and taking it over from a process that is gone.


LOOP, WEB = "loop", "web"
PATIENCE = 3.0
"""Seconds until a lock counts as taken: PostgreSQL sees late that a process was killed."""
BEAT = 1.0
"""Seconds between two beats of a process."""
LOOK, LOOKS = 0.5, 12
"""Seconds between two looks at the beats of others, and after how many that found nothing new they
count as gone: six beats, so that a machine that is busy for some seconds loses nothing, and whoever
starts a server again after a crash waits no longer than people wait for a page."""
LOCK_SECONDS = 30
"""How long a takeover waits in PostgreSQL for a transaction that is under way."""

log = logging.getLogger("goldspan.store")

_IS_ROLE = processes.c.role == bindparam("my_role")
_IS_MINE = and_(processes.c.id == bindparam("me"), _IS_ROLE)
_EPOCH = select(roles.c.epoch).where(roles.c.name == bindparam("my_role")).scalar_subquery()
_STANDS = select(func.count()).select_from(processes).where(_IS_MINE, processes.c.epoch == _EPOCH)
_BEAT = processes.update().where(_IS_MINE, processes.c.epoch == _EPOCH)
_BEAT = _BEAT.values(beat=processes.c.beat + 1)
_OTHERS = select(processes).where(_IS_ROLE, processes.c.id != bindparam("me"))
_LEAVE = processes.delete().where(_IS_MINE)
# Its transactions too: one that is under way would keep the campaign locked.
_END = text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE application_name = :sign AND pid <> pg_backend_pid()"
)
_UNLOCK = text("SELECT pg_advisory_unlock_all()")
Rows = dict[str, Mapping[Any, Any]]


@dataclass(frozen=True)
class Claim:
    """A role that a process asks for."""

    database: Database
    role: str  # "loop" or "web"
    who: str  # The process, for messages
    # The message to this process if another one holds the role, made from its `who`
    refusal: Callable[[str], str]
    patience: float  # Seconds for which the role is asked for while others hold it
    deployment: str = ""  # Processes of the same deployment may share the role
    shared: bool = False  # Whether this process shares it

    @property
    def key(self) -> dict[str, str]:
        """Return what the statements on the process's own row take."""
        return {"me": self.database.held.process, "my_role": self.role}


@contextmanager
def hold(claim: Claim) -> Iterator[None]:
    """Hold a role, for `with`."""
    held = claim.database.held
    held.check_lost()
    with ExitStack() as stack:
        if is_sqlite(claim.database.engine):
            session = None
            stack.enter_context(_by_file(claim))
        else:
            session = stack.enter_context(_by_beat(claim))
        beating = _Beating(claim, session)
        beating.start()
        try:
            yield
        finally:
            beating.stop()
            _leave(claim)
    held.check_lost()


@contextmanager
def _by_file(claim: Claim) -> Iterator[None]:
    """Take a role by the operating system's lock on a file beside a SQLite database."""
    # A process that holds the file alone knows that no other one runs
    ending = {LOOP: ".lock", WEB: ".serve.lock"}[claim.role]
    path = file_beside(claim.database.engine, ending)
    with opened(path) as file:
        joins = False

        def take() -> bool:
            nonlocal joins
            if locked(file):
                return True
            joins = claim.shared and shared(file)
            return joins

        wait(take, claim.patience, lambda: claim.refusal(signed(path)))
        if not _enter(claim, None, joins=joins):
            raise HeldError(claim.refusal(signed(path)))
        if claim.role == WEB and not joins:
            sign(file, claim.who)
        if claim.shared and not joins:
            shared(file)
        yield


@contextmanager
def _by_beat(claim: Claim) -> Iterator[_Session]:
    """Take a role in PostgreSQL, from processes that end it or do not beat any more."""
    with _Session(claim) as session:
        while True:
            joins = claim.shared and _same_deployment(claim)
            rows = None if joins else _watch(claim)
            if rows:
                log.warning("%s", _gone(claim, rows))
                for process in rows:
                    session.run(_END, {"sign": f"goldspan {process}"})
            # The connections of who is gone end a moment later.
            patience = max(claim.patience, LOOK * LOOKS) if rows else claim.patience
            wait(session.lock, patience, lambda: claim.refusal(_who(_others(claim))))
            begin = time.monotonic()
            if _enter(claim, rows, joins=joins):
                claim.database.held.sure_until[claim.role] = begin + LOOK * LOOKS
                break
            session.unlock()  # another one was quicker, or beats again
        yield session


def _watch(claim: Claim) -> Rows:
    """Wait until no other process has the role, or those that have it count as gone."""
    begin, rows, quiet, lives = time.monotonic(), _others(claim), 0, False
    while rows:
        if lives and time.monotonic() - begin >= claim.patience:
            raise HeldError(claim.refusal(_who(rows)))
        if quiet >= LOOKS:
            return rows
        # Looks are counted, not seconds: a machine that was suspended with both processes on it has
        # let time pass for both.
        time.sleep(LOOK)
        before, rows = rows, _others(claim)
        moved = rows != before
        lives, quiet = lives or moved, 0 if moved else quiet + 1
    return rows


def _enter(claim: Claim, seen: Rows | None, *, joins: bool) -> bool:
    """Write the role's and the process's rows; False if others are not as they were seen."""
    database, held = claim.database, claim.database.held
    with database.lock, _told(database), database.engine.connect() as plain:
        connection = plain.execution_options(**WRITE)
        with connection.begin():
            if not is_sqlite(database.engine):
                connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'"))
            # A change, so that no transaction that began before it goes on after it.
            connection.execute(campaign.update().values(paused=campaign.c.paused))
            there = _rows(connection, claim)
            if seen is not None and there != seen:
                return False
            role = connection.execute(select(roles).where(roles.c.name == claim.role)).one_or_none()
            if joins and (role is None or role.deployment != claim.deployment):
                return False
            epoch = 0 if role is None else role.epoch
            if not joins:
                epoch = _take_over(connection, claim, there)
            connection.execute(_LEAVE, claim.key)
            row = {"id": held.process, "role": claim.role, "who": claim.who}
            connection.execute(processes.insert(), {**row, "epoch": epoch, "beat": 0})
        held.roles = (*(one for one in held.roles if one != claim.role), claim.role)
    return True


def _take_over(connection: Connection, claim: Claim, there: Rows) -> int:
    """Begin a new epoch, also of the other roles of the processes that are gone."""
    gone = processes.c.id.in_(list(there))
    theirs = connection.execute(select(processes.c.role).where(gone)).scalars()
    for name in sorted({*theirs, claim.role}):
        grown = roles.update().where(roles.c.name == name).values(epoch=roles.c.epoch + 1)
        if not connection.execute(grown).rowcount:
            connection.execute(roles.insert(), {"name": name, "epoch": 1, "deployment": ""})
    connection.execute(processes.delete().where(gone))
    mine = roles.update().where(roles.c.name == claim.role)
    connection.execute(mine.values(deployment=claim.deployment))
    number = select(roles.c.epoch).where(roles.c.name == claim.role)
    return int(connection.execute(number).scalar_one())


def _leave(claim: Claim) -> None:
    """Remove the process's row, so that the next one need not wait."""
    # Where no row is left, another process took over before this one heard of it
    database, held = claim.database, claim.database.held
    with database.lock:
        held.sure_until.pop(claim.role, None)
        with suppress(SQLAlchemyError), database.engine.connect() as plain:
            connection = plain.execution_options(**WRITE)
            with connection.begin():
                if not connection.execute(_LEAVE, claim.key).rowcount and held.lost is None:
                    held.successor(connection, database.where)
            held.roles = tuple(one for one in held.roles if one != claim.role)


def _others(claim: Claim) -> Rows:
    with claim.database.read() as connection:
        return _rows(connection, claim)


def _rows(connection: Connection, claim: Claim) -> Rows:
    return {row["id"]: dict(row) for row in connection.execute(_OTHERS, claim.key).mappings()}


def _same_deployment(claim: Claim) -> bool:
    found = select(roles.c.deployment).where(roles.c.name == claim.role)
    with claim.database.read() as connection:
        return bool(connection.execute(found).scalar() == claim.deployment)


def _who(rows: Rows) -> str:
    return ", ".join(str(row["who"]) for row in rows.values())


def _gone(claim: Claim, rows: Rows) -> str:
    seconds = LOOK * LOOKS
    return (
        f"{claim.database.where}: {_who(rows)} did not answer for {seconds:g} seconds and counts "
        "as gone: this process takes over, and the other one can write nothing more"
    )


@contextmanager
def _told(database: Database) -> Iterator[None]:
    """Word what the driver raises."""
    try:
        yield
    except DBAPIError as error:
        raise store_error(error, database.where) from None


class _Session:
    """A connection of its own to PostgreSQL, with its advisory lock on the role.

    The lock ends with the connection, which never goes back into the pool.
    """

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self._connection: Connection | None = None
        self.is_locked = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.unlock()

    def drop(self) -> None:
        """Let go of the connection, and of the lock with it."""
        connection, self._connection, self.is_locked = self._connection, None, False
        if connection is not None:
            with suppress(SQLAlchemyError), connection:  # it is broken
                connection.invalidate()

    def run(self, statement: Any, words: Mapping[str, Any]) -> Any:
        """Do a statement, on a new connection if it has none."""
        try:
            with _told(self.claim.database):
                if self._connection is None:
                    plain = self.claim.database.engine.connect()
                    self._connection = plain.execution_options(isolation_level="AUTOCOMMIT")
                return self._connection.execute(statement, words)
        except StoreError:
            self.drop()
            raise

    def lock(self) -> bool:
        """Try to take the lock."""
        what = "serve " if self.claim.role == WEB else ""
        take = TAKE_SHARED if self.claim.shared else TAKE
        self.is_locked = bool(self.run(take, {"name": f"goldspan {what}"}).scalar_one())
        return self.is_locked

    def unlock(self) -> None:
        """Let go of the lock at once: PostgreSQL sees late that a connection has ended."""
        if self.is_locked:
            with suppress(StoreError):
                self.run(_UNLOCK, {})
        self.drop()


class _Beating:
    """A thread that keeps a process's row alive, and sees when it is gone.

    In SQLite, where the lock of the file says which process runs, it only looks.
    """

    def __init__(self, claim: Claim, session: _Session | None) -> None:
        self._claim, self._session = claim, session
        self._ended = threading.Event()
        name = f"goldspan {claim.role} beat"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._is_silent = False

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        held = self._claim.database.held
        while not self._ended.wait(BEAT) and held.lost is None:
            try:
                stands = self._beat()
                if not stands:
                    with self._claim.database.read() as connection:
                        held.successor(connection, self._claim.database.where)
            except (StoreError, SQLAlchemyError) as error:
                self._hear(error)
            else:
                self._hear(None)

    def _beat(self) -> bool:
        """Count up, and return whether the row was there."""
        claim, begin = self._claim, time.monotonic()
        if self._session is None:
            with claim.database.read() as connection:
                return bool(connection.execute(_STANDS, claim.key).scalar_one())
        stands = bool(self._session.run(_BEAT, claim.key).rowcount)
        if stands:
            # Whoever saw the beat before this one must look for as long before it takes over.
            claim.database.held.sure_until[claim.role] = begin + LOOK * LOOKS
            if not self._session.is_locked:
                self._session.lock()  # the connection that held it is gone
        return stands

    def _hear(self, error: Exception | None) -> None:
        """Write down once that the database is silent, and once that it answers again."""
        if error is None and self._is_silent:
            log.warning("%s answers again", self._claim.database.where)
        elif error is not None and not self._is_silent:
            why = str(error) if isinstance(error, StoreError) else type(error).__name__
            log.warning("no beat could be written, it is tried again every second: %s", why)
        self._is_silent = error is not None


# --------------------------------------------------------------------------------------------------
# The loop: one process steers a campaign; others still read and answer.


@contextmanager
def alone(database: Database) -> Iterator[None]:
    """Keep out others who would steer the campaign."""
    who = f"process {os.getpid()}"
    refusal = (
        f"{database.where}: another `goldspan run` is at work on this campaign: let it end or stop "
        "it, then run again; nothing was changed"
    )
    with hold(Claim(database, LOOP, who, lambda _: refusal, PATIENCE)):
        yield


def check_start(database: Database) -> bool:
    """Reject to steer by sums that are not those of the rows; after an unclean end, check all."""
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
    """Keep that this process has the campaign open; return the name of the row."""
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
        with database.lock, database.engine.connect() as plain:
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
        told = Path(f"/proc/{number}/stat").read_text(encoding="ascii")
        begun = told.rpartition(")")[2].split()[19]
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


# --------------------------------------------------------------------------------------------------
# The server: one at a time, or several processes of one deployment.


@contextmanager
def serving(
    database: Database, address: str, deployment: str = "", *, shared: bool = False
) -> Iterator[None]:
    """Keep out other servers of the campaign."""
    who = f"process {os.getpid()} at {address}"

    def refusal(holder: str) -> str:
        return (
            f"{database.where} is served already, by {holder or 'another process'}: use that "
            "server, or end it with Ctrl-C and start again; nothing was changed"
        )

    with hold(Claim(database, WEB, who, refusal, PATIENCE, deployment, shared=shared)):
        yield
