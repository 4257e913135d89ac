"""Making and opening ledgers, and what a database may be refused for."""

from __future__ import annotations

import sqlite3
import subprocess
import sys

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

from goldspan.errors import InputError
from goldspan.protocols import PoolItem
from goldspan.spans import Codec
from goldspan.store import StoreError, create_ledger, open_ledger
from goldspan.store.engine import connect, to_url
from goldspan.store.migrate import FOLDER, HEAD, upgrade, version_of
from goldspan.store.opening import empty_database, where_of
from goldspan.store.schema import metadata

TAGS = Codec.from_types(["PER"], "BIO")
SAME = {"name": "c", "cap": 5, "currency": "EUR", "tagset": TAGS}


def test_a_ledger_that_is_opened_again_is_the_same(new_place):
    place = new_place()
    with create_ledger(place, **SAME, now=0) as ledger:
        ledger.add_items([PoolItem("i", ("a", "b"))], 1)
    for again in (open_ledger(place), create_ledger(place, **SAME, now=99)):
        with again as ledger:
            assert (ledger.name, ledger.tagset, ledger.totals().cap) == ("c", TAGS, 5)
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
    with pytest.raises(InputError, match="holds a campaign"):
        empty_database(place)


def test_a_place_without_a_campaign_cannot_be_opened(new_place, tmp_path):
    with pytest.raises(InputError, match="there is no campaign at"):
        open_ledger(tmp_path / "no.db")
    place = new_place()
    empty_database(place).engine.dispose()
    with pytest.raises(StoreError, match="holds no campaign"):
        open_ledger(place)


@pytest.mark.parametrize(
    ("place", "message"),
    [("mysql://x/y", "mysql is not supported"), ("://", "is no address"), ("sqlite://", "memory")],
)
def test_an_address_that_cannot_be_is_refused(place, message):
    with pytest.raises(InputError, match=message):
        to_url(place)


def test_a_missing_library_is_named_with_the_line_that_installs_it():
    code = "import sys; sys.modules['sqlalchemy'] = None; import goldspan.store as s; s.open_ledger"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install '.[store]' in a checkout" in run.stderr


def test_messages_hold_no_password():
    assert "secret" not in where_of("postgresql://ann:secret@host/name")


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "c.db").write_text("These are not the pages you are looking for. " * 100)
    with pytest.raises(StoreError, match="is no campaign's database"):
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


def test_postgresql_that_only_reads_or_has_no_schema_says_so(schemas):
    place = schemas.take()
    create_ledger(place, **SAME, now=0).close()
    only = place.replace("&options=", "&options=-cdefault_transaction_read_only%3Don%20")
    with open_ledger(only) as ledger, pytest.raises(StoreError, match="the right to write"):
        ledger.pause(1)
    with pytest.raises(StoreError, match="is no campaign's database: no schema"):
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


def test_the_migrations_make_the_tables_of_the_schema(new_place):
    database = empty_database(new_place())
    with database.read() as connection:
        assert version_of(connection) == HEAD
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
    database.engine.dispose()


STEP = '''"""The version after this one."""
import sqlalchemy as sa
from alembic import op
revision, down_revision = "0099", "{before}"
def upgrade():
    with op.batch_alter_table("charges") as table:
        table.add_column(sa.Column("note", sa.Text, nullable=False, server_default="-"))
    {more}
'''


@pytest.fixture
def next_version(tmp_path):
    """A folder of migrations with one version more, in which more can happen."""

    def make(more=""):
        (tmp_path / "versions").mkdir()
        for path in (FOLDER / "env.py", *(FOLDER / "versions").glob("v*.py")):
            target = tmp_path / path.relative_to(FOLDER)
            target.write_text(path.read_text(encoding="utf-8"))
        (tmp_path / "versions" / "v0099.py").write_text(STEP.format(before=HEAD, more=more))
        return tmp_path

    return make


def test_a_database_of_this_version_is_brought_on_with_its_rows(new_place, next_version):
    place = new_place()
    with create_ledger(place, **SAME, now=0) as ledger:
        ledger.charge("fee", 3, 1)
    engine = connect(to_url(place))
    upgrade(engine, "here", folder=next_version(), head="0099")
    with engine.connect() as connection:
        assert connection.execute(text("SELECT name, amount, note FROM charges")).all() == [
            ("fee", 3, "-")
        ]
        assert version_of(connection) == "0099"
    engine.dispose()
    with pytest.raises(StoreError, match=f"newer goldspan .*0099, this one knows up to {HEAD}"):
        open_ledger(place)


def test_a_migration_that_fails_leaves_the_database_as_it_was(new_place, next_version):
    place = new_place()
    create_ledger(place, **SAME, now=0).close()
    engine = connect(to_url(place))
    with pytest.raises(ZeroDivisionError):
        upgrade(engine, "here", folder=next_version("1 / 0"), head="0099")
    engine.dispose()
    with open_ledger(place) as ledger:
        assert ledger.charge("fee", 3, 1)
