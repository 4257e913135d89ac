"""A campaign's database on SQLite and on a PostgreSQL server that the tests start themselves."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

from goldspan.protocols import PoolItem
from goldspan.spans import Codec
from goldspan.store import SqlLedger, create_ledger
from goldspan.store.engine import connect, to_url
from goldspan.store.schema import VERSION, make_tables, metadata

TAGS = Codec.from_types(["no", "yes"], "PLAIN")
_count = itertools.count()


def _find(program: str) -> str | None:
    debian = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"))
    return str(debian[-1]) if debian else shutil.which(program)


def _other_user() -> str | None:
    """Whom to run the server as: PostgreSQL refuses root."""
    if os.geteuid():
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    engine = create_engine(url)
    for _ in range(1200):
        assert process.poll() is None, log.read_text()
        try:
            with engine.connect():
                break
        except OperationalError:
            time.sleep(0.05)
    else:
        raise AssertionError(log.read_text())
    engine.dispose()


class Postgres:
    """A PostgreSQL server of our own, in a temporary folder, on a Unix socket."""

    def __init__(self) -> None:
        initdb, postgres = _find("initdb"), _find("postgres")
        if initdb is None or postgres is None:
            pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
        self.folder, self._user = Path(tempfile.mkdtemp(prefix="goldspan-pg-")), _other_user()
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        words = [initdb, "--no-sync", "-U", "goldspan", "-A", "trust", "-E", "UTF8", "--locale=C"]
        subprocess.run(
            [*words, "-D", "data"], cwd=self.folder, user=self._user, check=True,
            capture_output=True,
        )  # fmt: skip
        # The tests kill clients and this server, never the machine: it need not wait for the disk.
        options = ("-k", str(self.folder), "-c", "listen_addresses=", "-c", "fsync=off")
        self._words = [postgres, "-D", "data", *options]
        self.url = f"postgresql+psycopg://goldspan@/postgres?host={quote(str(self.folder))}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        log = self.folder / "log"
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                self._words, cwd=self.folder, user=self._user, stdout=out, stderr=out
            )
        _wait(self.url, self._process, log)

    def stop(self, mode: str) -> None:
        """Stop it, as `pg_ctl stop -m fast` and `-m immediate` do."""
        self._process.send_signal({"fast": signal.SIGINT, "immediate": signal.SIGQUIT}[mode])
        self._process.wait(60)

    def restart(self, mode: str) -> None:
        """Stop it and start it again."""
        self.stop(mode)
        self.start()


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Address of a PostgreSQL server of our own."""
    made = Postgres()
    try:
        made.start()
        yield made.url
    finally:
        made.stop("immediate")
        shutil.rmtree(made.folder, ignore_errors=True)


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[Postgres]:
    """A PostgreSQL server that a test may restart."""
    made = Postgres()
    try:
        made.start()
        yield made
    finally:
        made.stop("immediate")
        shutil.rmtree(made.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def tables(tmp_path_factory) -> Path:
    """A SQLite file with empty tables: copying it is faster than making them for every test."""
    path = tmp_path_factory.mktemp("tables") / "empty.db"
    engine = connect(to_url(path))
    make_tables(engine, "c")
    engine.dispose()
    return path


class Schemas:
    """Schemas of the server; emptied and used again, since making their tables takes long."""

    def __init__(self, url: str) -> None:
        self.engine, self.url = create_engine(url), url
        self.free: list[str] = []
        self.taken: list[str] = []

    def take(self) -> str:
        """Return the address of one."""
        if not self.free:
            name = f"c{next(_count)}"
            with self.engine.begin() as connection:
                connection.execute(text(f"CREATE SCHEMA {name}"))
            self.free.append(name)
        self.taken.append(self.free.pop())
        return f"{self.url}&options={quote(f'-csearch_path={self.taken[-1]}')}"

    def give_back(self) -> None:
        """Empty those that have the usual tables."""
        usual = ", ".join(f"'{name}'" for name in self.taken)
        query = f"SELECT schemaname FROM pg_tables WHERE schemaname IN ({usual or 'NULL'}) "
        self.taken.clear()
        with self.engine.begin() as connection:
            names = connection.execute(text(query + "AND tablename = 'events'")).scalars().all()
        for name in names:  # each by itself: one transaction cannot lock all tables of hundreds
            with self.engine.begin() as connection:
                # Without triggers: the log only grows.
                connection.execute(text("SET LOCAL session_replication_role = replica"))
                version = f"SELECT version FROM {name}.schema_version"
                if connection.execute(text(version)).scalar_one() == VERSION:
                    deletes = (f"DELETE FROM {name}.{table}" for table in metadata.tables)
                    connection.exec_driver_sql("; ".join(deletes))
                    self.free.append(name)


@pytest.fixture(scope="session")
def schemas(server) -> Iterator[Schemas]:
    """The schemas of the server."""
    made = Schemas(server)
    yield made
    made.engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def new_place(request, tmp_path) -> Iterator[Callable[[], str]]:
    """Makes places for databases: files, or schemas of the server."""
    if request.param == "sqlite":
        template = request.getfixturevalue("tables")
        yield lambda: str(shutil.copy(template, tmp_path / f"c{next(_count)}.db"))
    else:
        schemas = request.getfixturevalue("schemas")
        yield schemas.take
        schemas.give_back()


@pytest.fixture
def new_ledger(new_place) -> Iterator[Callable[..., SqlLedger]]:
    """Makes ledgers with n items "i0", "i1", …, of one token and of cost 10 each."""
    made = []

    def make(n: int = 0, cap: int = 1000, place: str | None = None) -> SqlLedger:
        ledger = create_ledger(
            place or new_place(), name="c", cap=cap, currency="EUR", tagset=TAGS, now=0
        )
        ledger.add_items([PoolItem(f"i{k}", ("t",), cost=10) for k in range(n)], now=0)
        made.append(ledger)
        return ledger

    yield make
    for ledger in made:
        ledger.close()


@pytest.fixture
def ledger(new_ledger) -> SqlLedger:
    """A campaign of four items with money for 100 answers."""
    return new_ledger(4)
