"""Backup and restore: the same campaign again; answers as partitions."""

from __future__ import annotations

import sqlite3
import threading

import pytest

from goldspan.crowd import read_crowd
from goldspan.crowd.formats.parquet import is_partitioned, partitions_of
from goldspan.errors import InputError
from goldspan.store import backup_ledger, export_partitions, restore_ledger
from goldspan.store.verify import faults_of


@pytest.fixture
def busy(ledger):
    ledger.open_batch("b", ["i0", "i1", "i2"], k=2, now=1)
    ledger.lease("w", 2, 1, n=3)
    ledger.submit("a", "w", "i0", ["yes"], 3)
    return ledger


@pytest.mark.parametrize("new_place", ["sqlite"], indirect=True)
def test_a_backup_while_others_write_is_one_moment_and_whole(busy, tmp_path):
    stop, written = threading.Event(), []

    def write():
        while not stop.is_set():
            written.append(busy.charge(f"fee{len(written)}", 1, 5))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for n in range(3):
            backup_ledger(busy, tmp_path / f"backup{n}.db")
    finally:
        stop.set()
        thread.join()
    with restore_ledger(tmp_path / "backup2.db", tmp_path / "restored.db") as copy:
        assert faults_of(copy.database) == []
        log = list(busy.events())
        assert list(copy.events()) == log[: copy.verify()]
        assert copy.totals().reserved == 20
        assert copy.submit("a", "w", "i0", ["yes"], 4).repeated


@pytest.mark.parametrize("new_place", ["sqlite"], indirect=True)
def test_a_backup_that_is_damaged_missing_or_in_the_way_is_refused(busy, tmp_path):
    backup_ledger(busy, tmp_path / "backup.db")
    with pytest.raises(InputError, match="exists already"):
        restore_ledger(tmp_path / "backup.db", tmp_path / "backup.db")
    with pytest.raises(InputError, match="there is no backup"):
        restore_ledger(tmp_path / "no.db", tmp_path / "new.db")
    (tmp_path / "bad.db").write_bytes(b"no database at all " * 1000)
    with pytest.raises(InputError, match="is damaged"):
        restore_ledger(tmp_path / "bad.db", tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("new_place", ["postgresql"], indirect=True)
def test_a_backup_of_postgresql_names_the_other_ways(busy, tmp_path):
    with pytest.raises(InputError, match="use PostgreSQL's pg_dump"):
        backup_ledger(busy, tmp_path / "backup.db")


def test_what_does_not_add_up_is_said(busy):
    from sqlalchemy import text

    assert faults_of(busy.database) == []
    with busy.database.engine.begin() as connection:
        connection.execute(text("UPDATE slots SET leased = leased - 1 WHERE item = 2"))
        connection.execute(text("UPDATE campaign SET spent = spent + 1"))
        connection.execute(text("UPDATE workers SET cursor = cursor + 9999999999"))
    assert faults_of(busy.database) == [
        "an item has more or fewer leases than it counts",
        "the money spent is not that of the answers and charges",
    ]


@pytest.fixture
def full_disk(monkeypatch):
    """Copies find no room after their second page, in the way in which SQLite says so."""
    real = sqlite3.connect

    def connect(place, **options):
        connection = real(place, **options)
        if not options:
            connection.execute("PRAGMA max_page_count = 2")
        return connection

    monkeypatch.setattr("goldspan.store.copies.sqlite3.connect", connect)


@pytest.mark.parametrize("new_place", ["sqlite"], indirect=True)
def test_a_copy_for_which_there_is_no_room_is_told_not_called_damaged_and_leaves_nothing(
    busy, tmp_path, request
):
    backup_ledger(busy, tmp_path / "b.db")
    request.getfixturevalue("full_disk")
    folder = tmp_path / "full"
    folder.mkdir()
    with pytest.raises(InputError, match="make room on the disk"):
        backup_ledger(busy, folder / "b.db")
    with pytest.raises(InputError, match="make room on the disk"):
        restore_ledger(tmp_path / "b.db", folder / "c.db")
    assert not list(folder.iterdir())


@pytest.mark.parametrize("n", [1, 2, 50])
def test_partitions_hold_the_answers_that_count(busy, tmp_path, n):
    busy.lease("v", 3, 1, n=2)
    for key, worker, item, label in [("b", "v", "i0", "no"), ("c", "v", "i1", "yes"),
                                     ("d", "w", "i2", "no")]:  # fmt: skip
        busy.submit(key, worker, item, [label], 4)
    assert export_partitions(busy, tmp_path / "out", n) == min(n, 3)
    assert is_partitioned(tmp_path / "out")
    parts = [read_crowd(path) for path in partitions_of(tmp_path / "out")]
    whole = busy.crowd()
    found = [row for part in parts for row in _said(part)]
    assert found == _said(whole)
    assert {part.tagset for part in parts} == {whole.tagset}
    with pytest.raises(InputError, match="exists already"):
        export_partitions(busy, tmp_path / "out", n)


def _said(crowd):
    """Return every answer as item, tokens, worker, label and time."""
    ids, workers = crowd.item_ids.to_pylist(), crowd.worker_ids.to_pylist()
    answers = crowd.answers
    rows = zip(answers.item, answers.worker, answers.codes, answers.submitted, strict=True)
    return [
        (ids[item], crowd.tokens_list[item], workers[worker], crowd.tagset.tags[code], int(time))
        for item, worker, code, time in rows
    ]


def test_without_answers_there_is_nothing_to_export(ledger, tmp_path):
    with pytest.raises(InputError, match="no answers"):
        export_partitions(ledger, tmp_path / "out", 2)
    with pytest.raises(InputError, match="partitions"):
        export_partitions(ledger, tmp_path / "out", 0)
    assert not list(tmp_path.glob("out*"))
