"""Making and opening ledgers, and what a database may be refused for."""

from __future__ import annotations

import sqlite3
import subprocess
import sys

import pytest
from sqlalchemy import text

from goldspan.errors import InputError
from goldspan.protocols import PoolItem
from goldspan.spans import Codec
from goldspan.store import StoreError, create_ledger, open_ledger
from goldspan.store.engine import connect, to_url
from goldspan.store.ledger import where_of
from goldspan.store.schema import VERSION, make_tables

TAGS = Codec.from_types(["PER"], "BIO")
SAME = {"name": "c", "cap": 5, "currency": "EUR", "tagset": TAGS}


def test_a_ledger_that_is_opened_again_is_the_same(new_place):
    place = new_place()
    with create_ledger(place, **SAME, now=0) as ledger:
        ledger.add_items([PoolItem("i", ("a", "b"))], 1)
    for again in (open_ledger(place), create_ledger(place, **SAME, now=99)):
        with again as ledger:
            assert (ledger.name, ledger.tagset, ledger.totals().cap) == ("c", TAGS, 5)
            assert repr(ledger).startswith("SqlLedger('c', ")
            assert ledger.verify() == 2


def test_a_cap_that_was_set_stays_whatever_the_ledger_is_opened_with(new_place):
    place = new_place()
    with create_ledger(place, **SAME, now=0) as ledger:
        ledger.set_cap(8, 1)
    for cap in (5, 8, 9):
        with create_ledger(place, **{**SAME, "cap": cap}, now=2) as ledger:
            assert ledger.totals().cap == 8


@pytest.mark.parametrize(
    "other", [{"name": "d"}, {"currency": "USD"}, {"tagset": Codec(("O",), "BIO")}]
)
def test_another_campaign_at_the_same_place_is_refused(new_place, other):
    place = new_place()
    create_ledger(place, **SAME, now=0).close()
    with pytest.raises(InputError, match="holds the campaign 'c' with other settings"):
        create_ledger(place, **{**SAME, **other}, now=0)


def test_a_place_without_a_campaign_cannot_be_opened(new_place, tmp_path):
    with pytest.raises(InputError, match="there is no campaign at"):
        open_ledger(tmp_path / "no.db")
    place = new_place()
    engine = connect(to_url(place))
    make_tables(engine, "c")
    engine.dispose()
    with pytest.raises(StoreError, match="holds no campaign"):
        open_ledger(place)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("mysql://x/y", "mysql is not supported"),
        ("://", "is not an address"),
        ("sqlite://", "memory"),
    ],
)
def test_an_address_that_cannot_be_is_refused(place, message):
    with pytest.raises(InputError, match=message):
        to_url(place)


def test_a_missing_library_is_named_with_the_line_that_installs_it():
    code = "import sys; sys.modules['sqlalchemy'] = None; import goldspan.store as s; s.open_ledger"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install '.[store]' in a checkout" in run.stderr


@pytest.fixture
def secret(tmp_path, monkeypatch):
    """The database's password in a file, as containers get it."""
    path = tmp_path / "password"
    path.write_text("s3cret-word\n")
    monkeypatch.setenv("GOLDSPAN_STORE_PASSWORD_FILE", str(path))


@pytest.mark.usefixtures("secret")
def test_an_address_without_a_password_takes_that_of_the_environment(monkeypatch):
    assert to_url("postgresql://ann@host/name").password == "s3cret-word"
    assert to_url("postgresql://ann:own@host/name").password == "own"
    assert to_url("campaign.db").password is None
    assert "s3cret-word" not in where_of("postgresql://ann@host/name")
    monkeypatch.setenv("GOLDSPAN_STORE_PASSWORD", "another")
    assert to_url("postgresql://ann@host/name").password == "another"


def test_a_password_file_that_cannot_be_read_is_named(monkeypatch):
    monkeypatch.setenv("GOLDSPAN_STORE_PASSWORD_FILE", "/nowhere/at/all")
    with pytest.raises(InputError, match=r"GOLDSPAN_STORE_PASSWORD_FILE: cannot read /nowhere"):
        to_url("postgresql://ann@host/name")
    assert to_url("campaign.db").database == "campaign.db"


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "c.db").write_text("These are not the pages you are looking for. " * 100)
    with pytest.raises(StoreError, match="is not a campaign's database"):
        open_ledger(tmp_path / "c.db")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(StoreError, match="does the folder exist"):
        create_ledger(tmp_path / "no" / "c.db", **SAME, now=0)


def test_sqlite_waits_for_the_disk_and_enforces_links(tmp_path):
    ledger = create_ledger(tmp_path / "c.db", **SAME, now=0)
    with ledger, ledger.database.read() as connection:
        found = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        ]
    assert found == ["wal", 2, 1]


def test_a_disk_that_is_full_loses_nothing_and_says_so(tmp_path):
    with create_ledger(tmp_path / "c.db", **SAME, now=0) as ledger:
        connection = ledger.database.engine.raw_connection()
        pages = connection.cursor().execute("PRAGMA page_count").fetchone()[0]
        connection.cursor().execute(f"PRAGMA max_page_count={pages + 1}")
        connection.close()
        big = [PoolItem(f"i{n}", ("token" * 100,)) for n in range(100)]
        with pytest.raises(StoreError, match="make room on the disk; nothing was changed"):
            ledger.add_items(big, 1)
        assert ledger.crowd("pool").n_items == 0
        assert ledger.verify() == 1


def test_a_database_that_is_locked_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("goldspan.store.engine.BUSY_SECONDS", 0.01)
    with create_ledger(tmp_path / "c.db", **SAME, now=0) as ledger:
        other = sqlite3.connect(tmp_path / "c.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="another process is writing"):
            ledger.pause(1)
        other.execute("ROLLBACK")
        other.close()
        ledger.pause(1)


def test_a_database_that_cannot_be_written_says_so(tmp_path):
    with create_ledger(tmp_path / "c.db", **SAME, now=0) as ledger:
        connection = ledger.database.engine.raw_connection()
        connection.cursor().execute("PRAGMA query_only=1")
        connection.close()
        with pytest.raises(StoreError, match="make the file and its folder writable"):
            ledger.pause(1)


@pytest.mark.parametrize("new_place", ["postgresql"], indirect=True)
def test_a_connection_that_breaks_says_to_send_again_and_the_next_call_works(new_place, new_ledger):
    place = new_place()
    ledger = new_ledger(1, place=place)
    kill = text("SELECT pg_terminate_backend(pg_backend_pid())")
    with pytest.raises(StoreError, match="do it again under the same names and keys"):
        ledger.database.write(1, lambda entry: entry.connection.execute(kill))
    ledger.pause(2)
    with open_ledger(place) as again:
        assert again.verify() == ledger.verify()


def test_postgresql_that_only_reads_or_has_no_schema_says_so(schemas):
    place = schemas.take()
    create_ledger(place, **SAME, now=0).close()
    only = place.replace("&options=", "&options=-cdefault_transaction_read_only%3Don%20")
    with open_ledger(only) as ledger, pytest.raises(StoreError, match="the right to write"):
        ledger.pause(1)
    with pytest.raises(StoreError, match="is not a campaign's database: no schema"):
        create_ledger(f"{place}x", **SAME, now=0)
    schemas.give_back()


def test_a_time_before_the_last_event_is_taken_for_that_of_the_last_event(ledger):
    ledger.pause(100_000)
    ledger.pause(99_000, paused=False)
    ledger.pause(1)
    assert [event.time for event in ledger.events(after=2)] == [100_000] * 3
    assert ledger.is_paused
    assert ledger.verify() == 5


@pytest.mark.parametrize("now", [-1, 1.5, True, 2**63])
def test_a_time_that_is_none_is_refused(ledger, now):
    with pytest.raises(InputError, match="now must be whole milliseconds"):
        ledger.pause(now)


def test_a_database_with_tables_of_somebody_else_is_refused(tmp_path):
    with sqlite3.connect(tmp_path / "c.db") as other:
        other.execute("CREATE TABLE campaign (name)")
    other.close()
    with pytest.raises(StoreError, match="campaign already exists"):
        create_ledger(tmp_path / "c.db", **SAME, now=0)


def test_a_database_of_another_version_is_refused_and_left_as_it_was(new_place):
    place = new_place()
    create_ledger(place, **SAME, now=0).close()
    engine = connect(to_url(place))

    def put(version):
        with engine.begin() as connection:
            connection.execute(text(f"UPDATE schema_version SET version = {version}"))

    put(VERSION + 1)
    with pytest.raises(StoreError, match=f"version {VERSION + 1}, and .* reads version {VERSION}"):
        open_ledger(place)
    put(VERSION)
    engine.dispose()
    with open_ledger(place) as ledger:
        assert ledger.verify() == 1


def test_a_connection_that_is_cut_off_ends_within_a_minute(server):
    engine = connect(to_url(f"{server}&tcp_user_timeout=7000"))
    with engine.connect() as connection:
        said = connection.connection.driver_connection.info.get_parameters()
    engine.dispose()
    assert said["keepalives"] == "1"
    idle, interval, count = (
        int(said[f"keepalives_{name}"]) for name in ("idle", "interval", "count")
    )
    assert idle + interval * count < 60
    assert said["tcp_user_timeout"] == "7000"  # what the address says holds
    other = connect(to_url(server))
    with other.connect() as connection:
        said = connection.connection.driver_connection.info.get_parameters()
    other.dispose()
    assert 0 < int(said["tcp_user_timeout"]) < 60_000
