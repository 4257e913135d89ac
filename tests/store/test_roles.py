"""Who steers and who serves: a process that was replaced writes nothing more."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from sqlalchemy import select, text

from goldspan.store import StoreError, create_ledger, open_ledger, roles
from goldspan.store.engine import HeldError, LostError, connect, is_sqlite, to_url
from goldspan.store.roles import serving
from goldspan.store.schema import processes
from goldspan.store.schema import roles as table
from store.conftest import TAGS
from store.states import state_of

STOPS = 20 if os.environ.get("GOLDSPAN_TORTURE") else 1
"""How often processes are stopped and databases restarted."""
HERE, THERE = "http://here", "http://there"
HOLDS = {
    "loop": lambda ledger: ledger.alone(),
    "web": lambda ledger: serving(ledger.database, HERE),
}


@pytest.fixture
def hasty(monkeypatch):
    """Whoever does not beat for a moment counts as gone."""
    monkeypatch.setattr(roles, "LOOK", 0.02)
    monkeypatch.setattr(roles, "LOOKS", 3)


def stop_beating(monkeypatch, ledger, what):
    """Make what comes next look like the process of a ledger were gone, though it is not."""
    if is_sqlite(ledger.database.engine):
        ending = {"loop": ".lock", "web": ".serve.lock"}[what]
        Path(f"{ledger.database.engine.url.database}{ending}").unlink()
    monkeypatch.setattr(roles, "BEAT", 3600.0)


def epoch_of(ledger, what):
    with ledger.database.read() as connection:
        return connection.execute(select(table.c.epoch).where(table.c.name == what)).scalar()


def rows_of(ledger):
    with ledger.database.read() as connection:
        return connection.execute(select(processes.c.id, processes.c.role)).all()


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("what", ["loop", "web"])
def test_who_was_replaced_writes_nothing_more_and_hears_why_once(
    new_ledger, new_place, monkeypatch, what
):
    place, heard = new_place(), []
    one, two = new_ledger(place=place), new_ledger(place=place)
    one.database.held.told.append(heard.append)
    monkeypatch.setattr(roles, "BEAT", 3600.0)
    with ExitStack() as stack:
        with pytest.raises(LostError), HOLDS[what](one):
            one.pause(1)
            first, before = epoch_of(one, what), one.n_events
            stop_beating(monkeypatch, one, what)
            stack.enter_context(HOLDS[what](two))
            assert epoch_of(two, what) == first + 1
            for act in (
                lambda: one.pause(2, paused=False),
                lambda: one.pause(3),  # which would change nothing
                lambda: one.lease("ann", 4, 60),
                lambda: one.record("note", "n", {}, 5),
            ):
                with pytest.raises(LostError, match=f"took over .*process {os.getpid()}"):
                    act()
            assert (one.n_events, one.is_paused) == (before, True)
            two.pause(6, paused=False)
        assert len(heard) == 1
        with pytest.raises(LostError), HOLDS[what](one):
            pass
        two.pause(7)
        assert [row.id for row in rows_of(two)] == [two.database.held.process]
    assert rows_of(two) == []
    assert two.verify() == two.n_events


@pytest.mark.parametrize("what", ["loop", "web"])
def test_who_was_replaced_and_is_ended_before_it_hears_of_it_writes_nothing_more(
    new_ledger, new_place, monkeypatch, what
):
    """As a server that was stopped, and wakes with Ctrl-C waiting: its end keeps the time."""
    place, heard = new_place(), []
    one, two = new_ledger(place=place), new_ledger(place=place)
    one.database.held.told.append(heard.append)
    monkeypatch.setattr(roles, "BEAT", 3600.0)
    with suppress(KeyboardInterrupt), HOLDS[what](one):
        with two.database.engine.begin() as connection:  # as a takeover does
            connection.execute(processes.delete())
        raise KeyboardInterrupt
    assert len(heard) == 1
    before = two.n_events
    with pytest.raises(LostError, match="another process took over"):
        one.record("clock", "000001", {}, 5)
    assert two.n_events == before


def test_a_role_that_could_not_be_given_back_is_still_asked_for(schemas, new_ledger, monkeypatch):
    monkeypatch.setattr(roles, "BEAT", 3600.0)
    place = schemas.take()
    one, two = new_ledger(place=place), new_ledger(place=place)
    with serving(one.database, HERE):
        leave = roles._LEAVE
        monkeypatch.setattr(roles, "_LEAVE", text("SELECT 1 / 0"))  # the database is silent
    monkeypatch.setattr(roles, "_LEAVE", leave)
    one.pause(1)  # nobody has taken over
    with two.database.engine.begin() as connection:
        connection.execute(processes.delete())
    with pytest.raises(LostError):
        one.pause(2, paused=False)
    schemas.give_back()


def test_a_process_that_is_replaced_hears_of_it_while_it_does_nothing(new_ledger, new_place):
    place, heard = new_place(), threading.Event()
    one, two = new_ledger(place=place), new_ledger(place=place)
    one.database.held.told.append(lambda _: heard.set())
    with suppress(LostError), serving(one.database, HERE):
        with two.database.engine.begin() as connection:  # as a takeover does
            connection.execute(processes.delete())
        assert heard.wait(120)
        assert not one.database.held.is_sure


def test_a_process_knows_by_its_own_clock_for_how_long_it_cannot_have_been_replaced(
    schemas, new_ledger, monkeypatch
):
    monkeypatch.setattr(roles, "BEAT", 3600.0)
    ledger = new_ledger(place=schemas.take())
    with serving(ledger.database, HERE):
        assert ledger.database.held.is_sure  # from the first moment on
        begin = roles.time.monotonic()
        monkeypatch.setattr("goldspan.store.journal.time.monotonic", lambda: begin + 7)
        assert not ledger.database.held.is_sure  # as after SIGSTOP
    assert ledger.database.held.is_sure  # it has no role to lose
    schemas.give_back()


def test_a_role_that_was_given_back_is_taken_at_once_and_one_that_beats_is_not(
    new_ledger, new_place, monkeypatch
):
    monkeypatch.setattr(roles, "LOOKS", 10**9)  # nobody ever counts as gone
    monkeypatch.setattr(roles, "BEAT", 0.01)
    monkeypatch.setattr("goldspan.store.roles.PATIENCE", 0)
    place = new_place()
    one, two = new_ledger(place=place), new_ledger(place=place)
    for _ in range(2):
        with serving(one.database, HERE):
            one.pause(1)
            told = f"served already, by process {os.getpid()} at {HERE}: use that"
            with pytest.raises(HeldError, match=told), serving(two.database, THERE):
                pass
            one.pause(2, paused=False)
        one, two = two, one
    assert epoch_of(one, "web") == 2


def test_processes_of_one_deployment_serve_together_and_are_replaced_together(
    new_ledger, new_place, monkeypatch
):
    monkeypatch.setattr("goldspan.store.roles.PATIENCE", 0)
    monkeypatch.setattr(roles, "BEAT", 0.01)
    monkeypatch.setattr(roles, "LOOKS", 10**9)  # nobody ever counts as gone
    place = new_place()
    one, two, other = (new_ledger(place=place) for _ in range(3))
    with suppress(LostError), ExitStack() as stack:
        stack.enter_context(serving(one.database, HERE, "plan a", shared=True))
        stack.enter_context(serving(two.database, THERE, "plan a", shared=True))
        assert epoch_of(one, "web") == 1
        one.pause(1)
        two.pause(2, paused=False)
        for deployment, shared in (("plan b", True), ("plan a", False)):
            third = serving(other.database, HERE, deployment, shared=shared)
            with pytest.raises(HeldError, match="is served already"), third:
                pass
        with two.database.engine.begin() as connection:  # as a takeover does
            connection.execute(table.update().values(epoch=2))
        for ledger in (one, two):
            with pytest.raises(LostError):
                ledger.pause(3)
    monkeypatch.setattr(roles, "LOOKS", 2)
    with serving(other.database, HERE, "plan b", shared=True):
        other.pause(3)
        assert epoch_of(other, "web") == 3


def test_a_lock_that_cannot_be_written_says_where(tmp_path):
    (tmp_path / "c.db.serve.lock").mkdir()
    ledger = create_ledger(tmp_path / "c.db", name="c", cap=0, currency="EUR", tagset=TAGS, now=0)
    told = pytest.raises(StoreError, match=r"c\.db\.serve\.lock: Is a directory")
    with ledger, told, serving(ledger.database, HERE):
        pass


def test_the_loop_and_other_campaigns_are_not_kept_out_and_no_log_and_no_copy_has_it(new_ledger):
    ledger, again = new_ledger(2), new_ledger(2)
    with ledger.alone(), serving(ledger.database, HERE), serving(again.database, HERE):
        assert len(rows_of(ledger)) == 2
        assert state_of(ledger.database) == state_of(again.database)
        assert ledger.verify() == 2


CHILD = """
import sys
from goldspan.store import open_ledger
from goldspan.store.engine import LostError, StoreError
with open_ledger(sys.argv[1]) as ledger:
    try:
        with ledger.alone():
            for n in range(10**9):
                try:
                    ledger.record("note", f"{sys.argv[2]}.{n}", {}, 0)
                except LostError:
                    raise
                except StoreError:  # a connection that was cut
                    ledger.record("note", f"{sys.argv[2]}.{n}", {}, 0)
                print(n, flush=True)
    except LostError as error:
        print("LOST", error, flush=True)
        sys.exit(3)
"""


@pytest.fixture
def busy():
    """Starts processes that steer a campaign and write without a pause."""
    started = []

    def start(place, name):
        words = [sys.executable, "-c", CHILD, place, name]
        child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        started.append(child)
        for _ in range(20):
            assert child.stdout.readline().strip().isdigit()
        return child

    yield start
    for child in started:
        if child.poll() is None:
            child.kill()
        child.wait()
        child.stdout.close()


@pytest.mark.torture(
    "a process is stopped for longer than its heartbeat",
    "it writes nothing once another has its place",
)
def test_a_process_that_was_stopped_too_long_ends_when_it_wakes(schemas, busy, monkeypatch):
    monkeypatch.setattr(roles, "LOOK", 0.1)  # it is stopped indeed
    for n in range(STOPS):
        place = schemas.take()
        create_ledger(place, name="c", cap=9, currency="EUR", tagset=TAGS, now=0).close()
        child = busy(place, "child")
        child.send_signal(signal.SIGSTOP)  # perhaps in the middle of a transaction
        with open_ledger(place) as ledger, ledger.alone():
            mine = ledger.n_events
            ledger.record("note", "mine", {}, 0)
            child.send_signal(signal.SIGCONT)
            last = ""
            for line in child.stdout:
                last = line
            assert (child.wait(120), last[:5]) == (3, "LOST "), n
            assert f"process {os.getpid()} steers it now" in last
            assert ledger.n_events == mine + 1
            ledger.verify()
    schemas.give_back()


@pytest.mark.torture(
    "a process is stopped for longer than its heartbeat",
    "it writes nothing once another has its place",
)
def test_a_stopped_process_keeps_a_file_and_a_dead_one_does_not(tmp_path, busy, monkeypatch):
    monkeypatch.setattr("goldspan.store.roles.PATIENCE", 0)
    place = str(tmp_path / "c.db")
    create_ledger(place, name="c", cap=9, currency="EUR", tagset=TAGS, now=0).close()
    child = busy(place, "child")
    child.send_signal(signal.SIGSTOP)
    with open_ledger(place) as ledger:
        with pytest.raises(HeldError, match="at work"), ledger.alone():
            pass
        child.send_signal(signal.SIGCONT)
        assert child.stdout.readline()
        child.kill()
        child.wait()
        with ledger.alone():
            ledger.record("note", "mine", {}, 0)
        ledger.verify()


@pytest.mark.torture(
    "PostgreSQL is restarted under load",
    "one process has the campaign; who was replaced writes nothing",
)
@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_of_postgresql_under_load_leaves_the_campaign_with_who_has_it(
    own_postgres, mode, caplog, monkeypatch
):
    monkeypatch.setattr("goldspan.store.roles.PATIENCE", 0)
    monkeypatch.setattr(roles, "LOOKS", 10**9)  # a busy machine may be slow
    schema = f"r{mode}"
    engine = connect(to_url(own_postgres.url))
    with engine.begin() as connection:
        connection.execute(text(f"CREATE SCHEMA {schema}"))
    engine.dispose()
    place = f"{own_postgres.url}&options=-csearch_path%3D{schema}"
    ledger = create_ledger(place, name="c", cap=9, currency="EUR", tagset=TAGS, now=0)
    kept, over, wrote, faults = [], threading.Event(), threading.Semaphore(0), []

    def work(name):
        n = 0
        while not over.is_set():
            try:
                ledger.record("note", f"{name}.{n}", {}, 0)
            except LostError as error:
                faults.append(error)
                return
            except StoreError:
                over.wait(0.05)  # the same again, which changes nothing if it was kept
                continue
            kept.append(f"{name}.{n}")
            wrote.release()
            n += 1

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    with ledger, serving(ledger.database, HERE), ledger.alone():
        first = epoch_of(ledger, "web")
        for thread in threads:
            thread.start()
        for _ in range(STOPS):
            for _ in range(40):
                assert wrote.acquire(timeout=120)
            own_postgres.restart(mode)
            told = pytest.raises(HeldError, match="by process")
            with open_ledger(place) as other, told, serving(other.database, THERE):
                pass
            for _ in range(40):
                assert wrote.acquire(timeout=120)
        over.set()
        for thread in threads:
            thread.join()
        assert faults == []
        assert epoch_of(ledger, "web") == first
        assert set(kept) <= set(ledger.records("note"))
        ledger.verify()
    assert not [r for r in caplog.records if r.exc_info], "a driver's traceback"
    assert len(re.findall("no beat could be written", caplog.text)) <= 2 * STOPS


@pytest.mark.torture(
    "PostgreSQL is restarted under load",
    "one process has the campaign; who was replaced writes nothing",
)
@pytest.mark.usefixtures("hasty")
def test_who_comes_back_after_a_restart_and_was_replaced_ends(own_postgres, monkeypatch):
    monkeypatch.setattr(roles, "BEAT", 3600.0)
    place = f"{own_postgres.url}&options=-csearch_path%3Dpublic"
    one = create_ledger(place, name="c", cap=9, currency="EUR", tagset=TAGS, now=0)
    with one, pytest.raises(LostError), serving(one.database, HERE):
        own_postgres.restart("fast")
        with open_ledger(place) as two, serving(two.database, THERE):
            two.pause(1)
            with pytest.raises(LostError, match=f"at {THERE} serves it now"):
                one.pause(2, paused=False)
            assert two.is_paused
