"""People can be forgotten: nothing names them any more, and nothing else is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from hashlib import blake2b
from pathlib import Path

import pytest

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
from goldspan.store.erasing import forget_listed, list_beside, scrub, write_list
from goldspan.store.facts import Bound, record
from goldspan.store.people import ForgottenError
from goldspan.store.schema import people, usage
from goldspan.store.verify import faults_of, verify

TAGS = Codec.from_types(["no", "yes"], "PLAIN")
ANN, WORDS = "ann@example.org", "my neighbour Zacharias wrote this"


def make(place, *, private=True):
    """A campaign in which Ann and Bob have done whatever leaves a trace."""
    ledger = create_ledger(
        place, name="c", cap=1000, currency="EUR", tagset=TAGS, now=0, private=private
    )
    ledger.add_items([PoolItem(f"i{k}", ("t",), cost=10) for k in range(4)], now=0)
    ledger.open_batch("b", ["i0", "i1", "i2"], k=3, now=1)
    for who in (ANN, "bob"):
        ledger.record("link", f"link-{who[0]}", {"worker": who, "issued": 1, "expires": 9}, 2)
        ledger.lease(who, 3, 60, n=3)
        ledger.submit(f"web:key-of-{who[0]}:{who}", who, "i0", ["yes"], 4)
        ledger.record(
            "flag", f"web:flag:{who}",
            {"item": "i1", "worker": who, "reason": "other", "note": f"{WORDS} ({who})"}, 5,
        )  # fmt: skip
        ledger.release(who, "i1", 6, skip=f"too hard, says {who}")
        ledger.record("bar", who, {"why": "too many mistakes"}, 7)
        ledger.record(
            "decision", f"d-{who[0]}",
            {"worker": who, "verdict": "keep", "why": f"I know {who}", "questions": 0}, 8,
        )  # fmt: skip
        verdicts = {"workers": {who: {"verdict": "drop"}}, "drop": [who]}
        ledger.record("verdicts", f"round {who[0]}", verdicts, 9)
        ledger.record("submission", f"5f2b9c{who[0]}", {"worker": who}, 10)
        status = {
            "submission": f"5f2b9c{who[0]}",
            "status": "APPROVED",
            "time": 1,
            "signature": who,
        }
        ledger.record("submission-status", f"m-{who[0]}", status, 11)
        name = f"bonus:{who}:good work of {who}"
        assert ledger.charge(name, 5, 12)
        letter = {"act": "bonus", "worker": who, "about": f"5f2b9c{who[0]}", "amount": 5}
        ledger.record("outbox", name, {**letter, "why": f"good work of {who}"}, 13)
        step = {"letter": name, "state": "sent", "time": 14, "facts": {}, "sender": "s"}
        ledger.record("outbox-step", f"{name}#0000", step, 14)
    return ledger


def bytes_of(place):
    """What lies in the files of a store."""
    files = [Path(f"{place}{end}") for end in ("", "-wal", "-journal")]
    return b"".join(path.read_bytes() for path in files if path.is_file())


def everything(ledger):
    """All rows of all tables but that of the ids, as text."""
    with ledger.database.read() as connection:
        from goldspan.store.schema import metadata

        return "\n".join(
            str(tuple(row))
            for table in metadata.sorted_tables
            if table.name not in {"people", "notes"}
            for row in connection.execute(table.select())
        )


def test_the_log_and_all_other_tables_hold_neither_ids_nor_free_texts(new_place):
    with make(new_place()) as ledger:
        told = everything(ledger)
        for word in (ANN, "bob", WORDS, "too hard", "good work", "5f2b9c", "I know"):
            assert word not in told
        known = ledger.pseudonyms()
        assert set(known) == {ANN, "bob"}
        assert all(known[who] in told for who in known)
        # The ledger itself takes and gives the ids.
        assert ledger.standing() == {ANN: False, "bob": False}
        assert ledger.crowd().worker_ids.to_pylist() == [ANN, "bob"]
        assert ledger.records("bar") == {who: {"why": "too many mistakes"} for who in (ANN, "bob")}
        assert ledger.fact("bar", ANN) == {"why": "too many mistakes"}
        assert ledger.records("verdicts")["round a"]["drop"] == [ANN]
        assert ledger.fact("flag", f"web:flag:{ANN}")["note"] == f"{WORDS} ({ANN})"
        assert {row.reason for row in ledger.skipped()} == {
            f"too hard, says {who}" for who in (ANN, "bob")
        }
        assert ledger.is_sent(f"web:key-of-a:{ANN}")
        again = ledger.submit(f"web:key-of-a:{ANN}", ANN, "i0", ["yes"], 20)
        assert (again.status, again.repeated) == ("accepted", True)
        assert not ledger.charge(f"bonus:{ANN}:a dear one", 10**9, 21)
        assert ledger.charge(f"bonus:{ANN}:good work of {ANN}", 5, 22)
        assert ledger.totals().spent == 2 * 10 + 2 * 5  # the same charge is paid once


def test_a_campaign_that_is_not_private_is_as_it_was(new_place):
    with make(new_place(), private=False) as ledger:
        assert not ledger.is_private
        assert ledger.pseudonyms() == {}
        assert ANN in everything(ledger)
        assert not {"note", "forget"} & {event.kind for event in ledger.events()}
        with pytest.raises(InputError, match="its log names its workers"):
            ledger.forget(ANN, 30)


@pytest.mark.parametrize("by", ["id", "pseudonym", "submission"])
def test_who_is_forgotten_is_gone_and_answers_and_bill_stay(new_place, by):
    place = new_place()
    with make(place) as ledger:
        before, known = ledger.totals(), ledger.pseudonyms()[ANN]
        reserved = sum(one.cost for one in ledger.held(ANN, 30))
        who = {"id": ANN, "pseudonym": known, "submission": "5f2b9ca"}[by]
        told = ledger.forget(who, 30, dry=True)
        assert ledger.pseudonyms()[ANN] == known  # nothing was changed
        assert ledger.forget(who, 30) == told
        assert (told.pseudonym, told.again) == (known, False)
        assert told.removed["ids"] == told.removed["links"] == 1
        assert (told.kept["answers"], told.kept["paid"], told.kept["bonuses"]) == (1, 10, 5)
        assert ledger.standing() == {known: False, "bob": False}
        assert ledger.crowd().worker_ids.to_pylist() == [known, "bob"]
        assert (ledger.totals().spent, ledger.totals().cap) == (before.spent, before.cap)
        assert ledger.totals().reserved == before.reserved - reserved
        assert reserved > 0
        assert ledger.held(known, 31) == []
        assert "link-a" in ledger.records("link-revoked")
        assert set(ledger.records("link")) == {"link-b"}
        assert [row["amount"] for row in ledger.records("outbox").values()] == [5, 5]
        flags = list(ledger.records("flag").values())
        assert [flag["note"] for flag in flags] == ["", f"{WORDS} (bob)"]
        assert [flag["item"] for flag in flags] == ["i1", "i1"]
        with ledger.database.read() as connection:
            from goldspan.store.schema import metadata

            rows = [
                str(tuple(r))
                for t in metadata.tables.values()
                for r in connection.execute(t.select())
            ]
        told = "\n".join(rows)
        assert ANN not in told
        assert "5f2b9ca" not in told
        assert f"says {ANN}" not in told
        assert ledger.verify() == ledger.n_events
        assert faults_of(ledger.database) == []
        again = ledger.forget(ANN, 40)
        assert (again.pseudonym, again.again, dict(again.removed)) == (known, True, {})


def test_no_byte_is_left_in_the_file_or_beside_it(tmp_path):
    place = tmp_path / "c.sqlite"
    with make(place) as ledger:
        for n in range(300):  # pages are split, and what they held is copied
            ledger.record("link", f"l{n}", {"worker": ANN if n % 3 else "bob", "issued": n}, 20 + n)
        assert ANN.encode() in bytes_of(place)
        ledger.forget(ANN, 999)
        assert scrub(ledger.database)
        for word in (ANN, f"{WORDS} ({ANN})", "5f2b9ca"):
            assert word.encode() not in bytes_of(place)
        assert b"bob" in bytes_of(place)
    assert ANN.encode() not in bytes_of(place)


def test_who_was_forgotten_comes_back_only_by_a_new_link_and_as_another_person(new_place):
    with make(new_place()) as ledger:
        old = ledger.pseudonyms()[ANN]
        ledger.forget(ANN, 30)
        for act in (
            lambda: ledger.lease(ANN, 31, 60),
            lambda: ledger.submit(f"web:other-key:{ANN}", ANN, "i2", ["yes"], 31),
            lambda: ledger.record("flag", f"web:other:{ANN}", {"worker": ANN, "item": "i2"}, 31),
        ):
            before = ledger.n_events
            with pytest.raises(ForgottenError, match="a new link"):
                act()
            assert ledger.n_events == before
        ledger.record("link", "new", {"worker": ANN, "issued": 40, "expires": 90}, 40)
        assert ledger.lease(ANN, 41, 60)
        assert ledger.pseudonyms()[ANN] != old
        assert set(ledger.standing()) == {old, "bob", ANN}
        assert ledger.forget(ANN, 50).pseudonym != old
        assert len(ledger.forgotten()) == 2


def test_nobody_is_forgotten_while_a_payment_is_under_way(new_place):
    with make(new_place()) as ledger:
        letter = {"act": "bonus", "worker": ANN, "about": "5f2b9ca", "amount": 7, "why": "more"}
        ledger.record("outbox", f"earned:{ANN}:0", letter, 30)
        for state in ("waiting", "ready", "sending"):
            if state != "waiting":
                step = {"letter": f"earned:{ANN}:0", "state": state, "time": 31, "facts": {}}
                ledger.record("outbox-step", f"earned:{ANN}:0#{state}", {**step, "sender": ""}, 31)
            with pytest.raises(InputError, match=f"earned:{ANN}:0 is {state}.*--unsettled"):
                ledger.forget(ANN, 32)
            assert ANN in ledger.pseudonyms()
        step = {"letter": f"earned:{ANN}:0", "state": "sent", "time": 33, "facts": {}, "sender": ""}
        ledger.record("outbox-step", f"earned:{ANN}:0#9", step, 33)
        ledger.record("submission", "another", {"worker": ANN}, 34)
        with pytest.raises(InputError, match="another is neither approved nor rejected"):
            ledger.forget(ANN, 35)
        ledger.forget(ANN, 36, unsettled=True)
        letters = [row for row in ledger.records("outbox").values() if row["worker"] != "bob"]
        assert [(row["amount"], row["about"], row["why"]) for row in letters] == [
            (5, "", ""), (7, "", ""),
        ]  # fmt: skip
        steps = [row["letter"] for row in ledger.records("outbox-step").values()]
        assert set(steps) == set(ledger.records("outbox"))


def test_unknown_people_are_refused(new_place):
    with make(new_place()) as ledger:
        before = ledger.n_events
        with pytest.raises(InputError, match=r"nobody is known .*'carol'"):
            ledger.forget("carol", 30)
        with pytest.raises(InputError, match=r"nobody is known .*'carol'"):
            ledger.about("carol")
        assert ledger.n_events == before


def test_all_that_is_stored_of_somebody_can_be_asked_for(new_place):
    with make(new_place()) as ledger:
        found = ledger.about(ANN)
        assert json.loads(json.dumps(found)) == found
        assert (found["id"], found["pseudonym"]) == (ANN, ledger.pseudonyms()[ANN])
        assert [row["item"] for row in found["answers"]] == ["i0"]
        assert [(row["item"], row["reason"]) for row in found["passed"]] == [
            ("i1", f"too hard, says {ANN}")
        ]
        kinds = {row["kind"] for row in found["notes"]}
        assert kinds == {
            "link", "flag", "skip", "decision", "submission", "submission-status", "outbox",
            "outbox-step",
        }  # fmt: skip
        assert {row["kind"] for row in found["records"]} == {"bar", "verdicts"}
        assert "bob" not in json.dumps(found)


def test_replaying_the_log_of_a_private_campaign_gives_the_same_tables(new_place):
    with make(new_place()) as ledger:
        ledger.forget(ANN, 30)
        ledger.submit("web:k2:bob", "bob", "i2", ["no"], 31)
        found = verify(ledger.database)
        assert found.is_whole
        assert found.n_rows["notes"]
        assert found.n_rows["tombstones"]


# -- backups ---------------------------------------------------------------------------------------


def test_a_backup_that_is_restored_honours_tombstones_also_when_the_store_is_gone(tmp_path):
    place, copy = tmp_path / "out" / "c.sqlite", tmp_path / "away" / "monday.sqlite"
    place.parent.mkdir()
    copy.parent.mkdir()
    with make(place) as ledger:
        backup_ledger(ledger, copy)
        known = ledger.pseudonyms()[ANN]
        ledger.forget(ANN, 30)
        write_list(ledger.database, list_beside(place))
    told = list_beside(place).read_text()
    assert ANN not in told
    assert list_beside(place).stat().st_mode & 0o077 == 0
    for path in place.parent.glob("c.sqlite*"):
        if path != list_beside(place):
            path.unlink()
    with restore_ledger(copy, place) as ledger:
        assert set(ledger.standing()) == {known, "bob"}
        assert ledger.verify() == ledger.n_events
        assert [one["person"] for one in ledger.forgotten()] == [known]
    assert ANN.encode() not in bytes_of(place)
    # Elsewhere, without the list, nobody can know; with it named, they are forgotten.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with restore_ledger(copy, elsewhere / "a.sqlite") as ledger:
        assert ANN in ledger.standing()
    with restore_ledger(copy, elsewhere / "b.sqlite", lists=[list_beside(place)]) as ledger:
        assert ANN not in ledger.standing()
    assert list_beside(elsewhere / "b.sqlite").is_file()


def test_a_list_of_another_campaign_is_not_applied(tmp_path):
    """Campaigns of one plan have one name, and perhaps the same people."""
    with make(tmp_path / "a.sqlite") as ledger:
        ledger.forget(ANN, 30)
        write_list(ledger.database, tmp_path / "a.sqlite.forgotten")
    other = create_ledger(
        tmp_path / "b.sqlite", name="c", cap=1000, currency="EUR", tagset=TAGS, now=1, private=True
    )
    with other as ledger:
        ledger.record("link", "l", {"worker": ANN, "issued": 1, "expires": 9}, 2)
        assert forget_listed(ledger.database, [tmp_path / "a.sqlite.forgotten"], 50) == 0
        assert ANN in ledger.pseudonyms()
        assert ledger.forgotten() == []


def test_who_comes_again_after_being_forgotten_stays_when_a_list_is_applied(new_place, tmp_path):
    with make(new_place()) as ledger:
        ledger.forget(ANN, 30)
        ledger.record("link", "new", {"worker": ANN, "issued": 40, "expires": 90}, 40)
        write_list(ledger.database, tmp_path / "x.forgotten")
        assert forget_listed(ledger.database, [tmp_path / "x.forgotten"], 50) == 0
        assert ANN in ledger.pseudonyms()


# -- at once, and killed ---------------------------------------------------------------------------


def test_of_two_who_forget_somebody_at_once_one_does_it(new_place):
    with make(new_place()) as ledger:
        found, start = [], threading.Barrier(2)

        def act():
            start.wait()
            found.append(ledger.forget(ANN, 30).again)

        threads = [threading.Thread(target=act) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(found) == [False, True]
        assert len(ledger.forgotten()) == 1


KILLED = """
import os, signal, sys
from goldspan.store import erasing, open_ledger
from goldspan.store.journal import Entry
place, where = sys.argv[1:]
def die(*_, **__): os.kill(os.getpid(), signal.SIGKILL)
if where == "rows": erasing._reduced = die
if where == "commit": Entry.close = die
if where == "scrub": erasing._vacuum = die
if where == "log": erasing._within = lambda seconds, act: act() and die()
with open_ledger(place) as ledger:
    ledger.forget("ann@example.org", 30)
    erasing.scrub(ledger.database)
"""


@pytest.mark.parametrize("where", ["rows", "commit", "scrub", "log"])
def test_a_kill_leaves_all_or_nothing_and_the_same_again_ends_it(tmp_path, where):
    place = tmp_path / "c.sqlite"
    make(place).close()
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", KILLED, str(place), where]
    assert subprocess.run(words, env=env, check=False).returncode == -signal.SIGKILL
    with open_ledger(place) as ledger:
        gone = where in {"scrub", "log"}
        assert (ANN in ledger.pseudonyms()) is not gone
        assert bool(ledger.records("link").get("link-a")) is not gone
        assert ledger.verify() == ledger.n_events
        assert ledger.forget(ANN, 40).again is gone
        assert scrub(ledger.database)
        assert ANN.encode() not in bytes_of(place)
        assert faults_of(ledger.database) == []


# -- what verifies, counts and exports do with people ---------------------------------------------


def web_flag(ledger, who, item="i1", now=20):
    """Flag an item as the page's server does: the record holds the key, with the id in it."""
    facts = {"item": item, "worker": who, "reason": "other", "note": WORDS}
    ledger.record("flag", f"hash-of-{item}-{who}", {**facts, "sent": f"web:key-1:{who}"}, now)


def test_nothing_of_a_flag_goes_into_the_log_but_the_item(new_place):
    with make(new_place()) as ledger:
        web_flag(ledger, ANN)
        ledger.forget(ANN, 30)
        assert ANN not in everything(ledger)
        left = [row for row in ledger.records("flag").values() if row["worker"].startswith("p-")]
        assert [row["item"] for row in left] == ["i1", "i1"]
        assert ANN not in json.dumps(ledger.records("flag"))
        # Who comes again may flag the same item: it is another person's flag.
        ledger.record("link", "link-new", {"worker": ANN, "issued": 1, "expires": 9}, 40)
        web_flag(ledger, ANN, now=41)
        assert [row["note"] for row in ledger.records("flag").values()].count(WORDS) == 1


def counted(ledger):

    with ledger.database.read() as connection:
        return {row.name for row in connection.execute(usage.select())}


def plain_hash(name):
    return blake2b(name.encode(), digest_size=12).hexdigest()


def test_daily_counts_hold_no_hash_of_an_id_and_go_with_the_person(new_place):
    with make(new_place()) as ledger:
        ledger.take("sessions", ANN, 9, 15)
        ledger.take("sessions", "bob", 9, 15)
        assert not {plain_hash(ANN), plain_hash("bob")} & counted(ledger)
        assert len(counted(ledger)) == 2
        ledger.transact(16, lambda e: record(e, "note", "m", {}), Bound("writes", ANN, 9))
        ledger.forget(ANN, 30)
        assert counted(ledger) == {plain_hash(ledger.pseudonyms()["bob"])}
        with pytest.raises(InputError, match="1 a day"):
            ledger.take("sessions", "bob", 1, 31)


CHANGED_NOTES = {
    "an amount": "UPDATE notes SET body = replace(body, ':5', ':500') WHERE kind = 'outbox'",
    "an owner": "UPDATE notes SET person = 'p-0' WHERE kind = 'outbox'",
    "a seal and what it says": "UPDATE notes SET body = '{}', salt = '00', seal = "
    "'21ad1b7f3dd62b6b3e2fd0c5ae5b0a2c00000000000000000000000000000000' WHERE kind = 'outbox'",
    "an emptied note": "UPDATE notes SET name = NULL, body = NULL, salt = NULL "
    "WHERE kind = 'outbox'",
    "a deleted note": "DELETE FROM notes WHERE kind = 'outbox'",
    "a reduced note": "UPDATE notes SET body = replace(body, '\"drop\"', '\"keep\"') "
    "WHERE kind = 'decision' AND salt IS NULL",
}


@pytest.mark.parametrize("what", CHANGED_NOTES)
def test_notes_that_were_changed_are_found_and_nobody_is_paid_by_them(new_place, what):
    with make(new_place()) as ledger:
        decision = {"worker": ANN, "verdict": "drop", "why": WORDS, "questions": 0}
        ledger.record("decision", "d-2", decision, 20)
        ledger.forget(ANN, 30)
        ledger.check_facts()
        assert verify(ledger.database).is_whole
        ledger._has_facts = False  # as another process
        with ledger.database.engine.begin() as connection:
            assert connection.exec_driver_sql(CHANGED_NOTES[what]).rowcount
        with pytest.raises(StoreError, match="is damaged: notes"):
            ledger.check_facts()
        found = verify(ledger.database)
        assert any("notes, number" in line for line in found.lines())
        assert "bob" not in "\n".join(found.lines())


def test_a_person_who_is_back_and_workers_without_ids_are_told(new_place):
    with make(new_place()) as ledger:
        known = ledger.pseudonyms()[ANN]
        ledger.forget(ANN, 30)
        assert not [note for note in verify(ledger.database).notes if "no id" in note]
        with ledger.database.engine.begin() as connection:
            back = {"pseudonym": known, "id": ANN, "since": 1}
            connection.execute(people.insert(), back)
        assert f"people, pseudonym {known}: was forgotten" in verify(ledger.database).summary()
        with ledger.database.engine.begin() as connection:
            connection.execute(people.delete())
        (told,) = [note for note in verify(ledger.database).notes if "no id" in note]
        assert told.startswith("1 workers")


def test_after_forgetting_all_checks_hold_and_see_changes(new_place):
    with make(new_place()) as ledger:
        web_flag(ledger, ANN)
        ledger.forget(ANN, 51)
        ledger.check_facts()
        found = verify(ledger.database)
        assert found.is_whole
        assert found.n_rows["notes"]
        assert found.n_rows["tombstones"] == 1
        ledger._has_facts = False
        with ledger.database.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE answers SET labels = '[\"no\"]' WHERE number = 2")
        with pytest.raises(StoreError, match="answers, number 2"):
            ledger.check_facts()


def test_a_list_that_is_damaged_or_without_times_is_refused_and_a_restored_copy_keeps_them(
    tmp_path,
):
    place = tmp_path / "c.sqlite"
    with make(place) as ledger:
        backup_ledger(ledger, tmp_path / "b.sqlite")
        ledger.forget(ANN, 300)
        write_list(ledger.database, list_beside(place))
    (tmp_path / "again").mkdir()
    with restore_ledger(tmp_path / "b.sqlite", tmp_path / "again" / "c.sqlite",
                        lists=[list_beside(place)]) as ledger:  # fmt: skip
        assert [one["time"] for one in ledger.forgotten()] == [300]
    path = list_beside(place)
    row = json.loads(path.read_text())
    del row["time"]
    for words in (json.dumps(row), "{"):
        path.write_text(words + "\n")
        with pytest.raises(InputError, match="not a list of forgotten people"):
            restore_ledger(tmp_path / "b.sqlite", tmp_path / "new.sqlite")
        assert not (tmp_path / "new.sqlite").exists()


def test_names_of_annotators_in_a_plan_are_not_kept(new_place):
    plan = {"name": "c", "crowd": {"source": "web", "annotators": [ANN]}}
    change = {"sections": {"crowd": {"annotators": [ANN]}, "stop": {}}, "items": 4, "stopped": ""}
    told = [f"crowd.annotators was ['bob'] and is ['{ANN}']", "budget.money was 1 and is 2"]
    with make(new_place()) as ledger:
        ledger.record("plan", "plan", {"plan": plan, "items": 4}, 20)
        ledger.record("change", "1", {**change, "changed": told}, 21)
        assert ledger.records("plan")["plan"]["plan"] == {**plan, "crowd": {"source": "web"}}
        assert ledger.records("change")["1"]["changed"] == told[1:]
        assert ledger.records("change")["1"]["sections"] == {"crowd": {}, "stop": {}}
        ledger.forget(ANN, 60)
        assert ANN not in everything(ledger)
        assert ledger.was_forgotten(ANN)
        assert not ledger.was_forgotten("bob")
        ledger.record("link", "link-new", {"worker": ANN, "issued": 1, "expires": 9}, 61)
        assert not ledger.was_forgotten(ANN)
        assert verify(ledger.database).is_whole
