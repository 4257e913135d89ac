"""What was changed behind the log's back is found, and named, before it becomes gold."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys

import pytest
from sqlalchemy import text

from goldspan.errors import InputError
from goldspan.protocols import PoolItem
from goldspan.spans import Codec
from goldspan.store import (
    StoreError,
    backup_ledger,
    create_ledger,
    open_ledger,
    restore_ledger,
)
from goldspan.store.copies import opened_unchanged
from goldspan.store.schema import BESIDE_THE_LOG, metadata
from goldspan.store.verify import MOST, verify

TAGS = Codec.from_types(["no", "yes"], "PLAIN")


def change(ledger, *statements):
    """Do what somebody does who may write the database, without the log's guard."""
    with ledger.database.engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SET LOCAL session_replication_role = replica"))
        else:
            connection.execute(text("DROP TRIGGER events_no_update"))
            connection.execute(text("DROP TRIGGER events_no_delete"))
        for statement in statements:
            connection.execute(text(statement))


@pytest.fixture
def busy(new_ledger):
    """A campaign in which everything happened once, and that two workers answered."""
    ledger = new_ledger(6)
    ledger.open_batch("b", [f"i{n}" for n in range(5)], k=2, now=1)
    ledger.set_gold({"i5": ["yes"], "i4": ["no"]}, 2)
    ledger.set_gold({"i4": ["yes"]}, 3, control=True)
    for worker in ("ann", "bob"):
        for lease in ledger.lease(worker, 4, 60, n=3):
            ledger.submit(f"{worker}-{lease.item}", worker, lease.item, ["yes"], 5)
    ledger.change("again", "ann", "i0", ["no"], 6)
    ledger.lease("cat", 7, 60, n=2)
    ledger.release("cat", "i3", 8, skip="unclear")
    ledger.lease("dan", 8, 60)
    ledger.submit("late", "bob", "i4", ["no"], 9)
    ledger.adjust({"i0": 3}, 10)
    ledger.charge("fee", 7, 11)
    ledger.record("note", "n", {"password": "secret"}, 12)
    ledger.bar("bob", 13)
    ledger.set_cap(900, 14)
    ledger.pause(15)
    return ledger


def test_a_campaign_is_whole_and_every_table_was_compared(busy):
    found = verify(busy.database)
    assert found.is_whole, found.lines()
    assert found.n_events == busy.n_events == busy.verify()
    empty = {"notes", "tombstones"}  # of private campaigns, see test_people
    assert {table for table, n in found.n_rows.items() if n} | empty == set(found.n_rows)
    assert set(found.n_rows) | {"events", *BESIDE_THE_LOG} == set(metadata.tables)
    busy.check_facts()


EXTRA = "INSERT INTO answers VALUES (99, 'x', 1, 3, '[\"no\"]', 'accepted', '', 1, 5, 5, 0)"
EDITED = "UPDATE events SET body = replace(body, 'yes', 'no') WHERE kind = 'submit'"
TAMPERED = {
    "a label": (["UPDATE answers SET labels = '[\"no\"]' WHERE number = 2"],
                'answers, number 2, labels: ["no"]; the log says ["yes"]'),
    "a cost": (["UPDATE answers SET cost = 0 WHERE number = 2",
                "UPDATE campaign SET spent = spent - 10"], "the log says"),
    "the money": (["UPDATE campaign SET spent = spent - 10"], "campaign, id 1, spent: "),
    "the cap": (["UPDATE campaign SET cap = 1000"], "campaign, id 1, cap: 1000; the log says 900"),
    "a charge": (["UPDATE charges SET amount = 6"], "charges, number 1, amount: 6; the log says 7"),
    "gold": (["UPDATE gold SET labels = '[\"no\"]' WHERE item = 5"],
             'gold, item 5, labels: ["no"]; the log says ["yes"]'),
    "a control question": (["UPDATE gold SET control = 0"], "gold, item 5, control: 0"),
    "the tags": (["UPDATE campaign SET tags = '[\"yes\",\"no\"]'"], "campaign, id 1, tags: "),
    "whether it is private": (["UPDATE campaign SET private = 1"],
                              "campaign, id 1, private: 1; the log says 0"),
    "a deleted answer": (["DELETE FROM answers WHERE number = 3"],
                         "answers, number 3: the row is missing"),
    "an extra answer": ([EXTRA],
                        "answers, number 99: this row is not in the log"),
    "a status": (["UPDATE answers SET status = 'draft' WHERE number = 2"],
                 "answers, number 2, status: draft; the log says accepted"),
    "an answer's worker": (["UPDATE answers SET worker = 3 WHERE number = 2"],
                           "answers, number 2, worker: 3; the log says 1"),
    "an answer's item": (["UPDATE answers SET item = 4 WHERE number = 2"], "number 2, item: 4"),
    "a time": (["UPDATE answers SET submitted = 1 WHERE number = 2"], "submitted: 1"),
    "a text": (["UPDATE items SET tokens = '[\"u\"]' WHERE number = 1"], "items, number 1, tokens"),
    "a worker's name": (["UPDATE workers SET id = 'eve' WHERE number = 1"],
                        "workers, number 1, id: eve; the log says ann"),
    "a barred worker": (["UPDATE workers SET barred = 0"], "workers, number 2, barred: 0"),
    "a place": (["UPDATE slots SET wanted = 1 WHERE item = 2"], "slots, item 2, wanted: 1"),
    "a lease": (["UPDATE leases SET expires = 99"], "leases, item"),
    "a skip": (["UPDATE skips SET reason = 'lazy'"], "reason: lazy; the log says unclear"),
    "a record": (["UPDATE records SET body = '{}'"], "records, number 1, body: one body"),
    "a batch": (["UPDATE batches SET k = 3"], "batches, number 1, k: 3; the log says 2"),
    "an edited event": ([EDITED], "was changed"),
    "a deleted event": (["DELETE FROM events WHERE number = 9"], "event 9 is missing"),
    "a log without its end": (["DELETE FROM events WHERE kind = 'pause'"],
                              "the log is broken: it ends at event"),
    "an empty log": (["DELETE FROM events"], "the log is empty"),
    "another last hash": (["UPDATE campaign SET head = 'ab'"], "the campaign's row says event"),
}  # fmt: skip


@pytest.mark.parametrize("what", TAMPERED)
def test_what_was_changed_behind_the_log_is_named(busy, what):
    statements, says = TAMPERED[what]
    change(busy, *statements)
    found = verify(busy.database)
    assert not found.is_whole
    assert says in "\n".join(found.lines())
    assert "secret" not in "\n".join([*found.lines(), json.dumps(found.to_dict())])
    with pytest.raises(StoreError, match="is damaged: "):
        busy.verify()


FACTS = [
    "the cap", "the tags", "whether it is private", "a label", "a cost", "gold",
    "a control question", "a charge", "a deleted answer",
    "an extra answer", "a status", "an answer's worker", "an answer's item", "a time", "a text",
    "a worker's name", "a record", "an edited event", "a deleted event", "a log without its end",
]  # fmt: skip


@pytest.mark.parametrize("what", FACTS)
def test_no_labels_are_made_of_it(busy, what):
    change(busy, *TAMPERED[what][0])
    for read in (busy.crowd, busy.given, busy.check_facts):
        with pytest.raises(StoreError, match=r"is damaged: .*restore a backup"):
            read()


def test_a_change_of_answers_is_checked_before_they_are_read_again(new_ledger, new_place):
    place = new_place()
    ledger = new_ledger(2, place=place)
    ledger.open_batch("b", ["i0", "i1"], k=1, now=1)
    ledger.lease("ann", 2, 60)
    ledger.submit("k", "ann", "i0", ["yes"], 3)
    assert ledger.crowd().n_items == 1
    ledger.close()
    with open_ledger(place) as again:
        change(again, "UPDATE answers SET labels = '[\"no\"]'")
        with pytest.raises(StoreError, match="answers, number 1: the row is not what the log says"):
            again.crowd()


@pytest.fixture
def many(new_ledger):
    """A campaign with 400 answers."""
    ledger = new_ledger(200, cap=100_000)
    ledger.open_batch("b", [f"i{n}" for n in range(200)], k=2, now=1)
    for worker in ("ann", "bob"):
        for lease in ledger.lease(worker, 2, 60, n=200):
            ledger.submit(f"{worker}-{lease.item}", worker, lease.item, ["yes"], 3)
    return ledger


@pytest.mark.parametrize("new_place", ["sqlite"], indirect=True)
def test_326_changed_labels_are_counted_some_named_and_neither_backed_up_nor_restored(
    many, tmp_path
):
    backup_ledger(many, tmp_path / "good.db")
    change(many, "UPDATE answers SET labels = '[\"no\"]' WHERE number <= 326")
    found = verify(many.database)
    assert found.n_mismatches == {"answers": 326}
    assert len(found.mismatches) == MOST
    assert found.lines()[-1] == f"answers: and {326 - MOST} more"
    with pytest.raises(StoreError, match=r"number 1, labels.*and 323 more.*no backup was written"):
        backup_ledger(many, tmp_path / "bad.db")
    assert not (tmp_path / "bad.db").exists()
    assert backup_ledger(many, tmp_path / "bad.db", damaged=True).n_mismatches == {"answers": 326}
    with pytest.raises(InputError, match=r"the backup .*bad\.db is damaged: answers, number 1"):
        restore_ledger(tmp_path / "bad.db", tmp_path / "new.db")
    assert {path.name for path in tmp_path.iterdir() if path.name.startswith(("new", "."))} == set()
    with restore_ledger(tmp_path / "good.db", tmp_path / "new.db") as ledger:
        assert ledger.verify() == found.n_events


def test_a_log_that_was_written_anew_is_seen_by_a_head_that_was_noted(busy, new_place):
    noted = verify(busy.database).head
    busy.charge("more", 1, 20)
    found = verify(busy.database, head=noted)
    assert found.is_whole
    assert found.head != noted
    # Whoever can write the database makes a new campaign with other answers, hashes and all.
    same = {"name": "c", "cap": 1000, "currency": "EUR", "tagset": TAGS}
    with create_ledger(new_place(), **same, now=0) as forged:
        forged.add_items([PoolItem("i0", ("t",), cost=10)], 1)
        assert verify(forged.database).is_whole
        assert "no entry of the log has the hash" in verify(forged.database, head=noted).summary()


def start(place):
    """Begin to steer, as a run and a server do."""
    with open_ledger(place) as ledger, ledger.alone():
        pass


def address(ledger):
    return ledger.database.engine.url.render_as_string(hide_password=False)


CHILD = """
import os, signal, sys
from goldspan.store import open_ledger
with open_ledger(sys.argv[1]) as ledger, ledger.alone():
    print("steers", flush=True)
    sys.stdin.readline()
"""


def steer(place, *, kill):
    """Steer in another process, and end it."""
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, place], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ}, text=True,
    ) as child:  # fmt: skip
        assert child.stdout.readline() == "steers\n"
        if kill:
            child.send_signal(signal.SIGKILL)
        else:
            child.stdin.close()
        child.wait()


def test_a_start_after_an_unclean_end_compares_everything_and_one_after_a_clean_end_does_not(
    busy, monkeypatch
):
    place = address(busy)
    checked = []

    def check(database, *_):
        checked.append(database.where)
        return original(database)

    from goldspan.store import roles as module

    original = module.check_whole
    monkeypatch.setattr(module, "check_whole", check)
    start(place)
    steer(place, kill=False)
    start(place)
    assert not checked
    steer(place, kill=True)
    start(place)
    assert len(checked) == 1
    start(place)  # what was checked is not checked again
    assert len(checked) == 1
    # Of places and leases nothing else than the comparison knows: their sums still hold.
    steer(place, kill=True)
    change(busy, "UPDATE leases SET expires = 99")
    with pytest.raises(StoreError, match=r"leases, item .* expires: 99"):
        start(place)
    with pytest.raises(StoreError, match=r"leases, item .* expires: 99"):
        start(place)


def test_a_campaign_that_a_living_process_has_open_is_not_called_unclean(busy, monkeypatch):
    from goldspan.store import roles as module

    place = address(busy)
    with busy.alone():
        pass
    monkeypatch.setattr(module, "check_whole", lambda *_: pytest.fail("it did not end"))
    start(place)


@pytest.mark.parametrize("new_place", ["sqlite"], indirect=True)
def test_verifying_a_file_leaves_it_as_it_is(busy, tmp_path):
    backup_ledger(busy, tmp_path / "b.db")
    before = (tmp_path / "b.db").read_bytes()
    with opened_unchanged(tmp_path / "b.db") as database:
        assert verify(database).is_whole
    assert (tmp_path / "b.db").read_bytes() == before
    assert [path.name for path in tmp_path.glob("b.db*")] == ["b.db"]


@pytest.mark.parametrize("new_place", ["sqlite"], indirect=True)
def test_pages_and_indexes_are_checked_too(many, tmp_path):
    backup_ledger(many, tmp_path / "b.db")
    with sqlite3.connect(tmp_path / "b.db") as connection:
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'answers_of_item'"
        ).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    with (tmp_path / "b.db").open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))
    with opened_unchanged(tmp_path / "b.db") as database:
        found = verify(database)
    assert any("answers_of_item" in line or "page" in line for line in found.faults), found.lines()
    with pytest.raises(InputError, match="is damaged"):
        restore_ledger(tmp_path / "b.db", tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()
