"""Several web processes and one loop serve one campaign: any of them may be killed."""

from __future__ import annotations

import os
import random
import re
import signal
import threading
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from goldspan.cli import app
from goldspan.store.ledger import open_ledger
from goldspan.web import ServerSettings, create_app, open_service
from goldspan.web.dependencies import make_buckets
from goldspan.web.errors import Refused
from goldspan.web.security.account import FREE, Buckets, Delays
from goldspan.web.settings import Rate
from web.loops import wait_until
from web.serving import KEYS, Clock, plan_file
from web.serving import serve as opened
from web.test_kill import Place
from web.test_loop_process import children, is_alive
from web.working import Hand

TORTURE = int(os.environ.get("GOLDSPAN_TORTURE") or "0")
N_HANDS, ROUNDS = (200, 3) if TORTURE else (8, 1)
"""Annotators, and how often every process is killed."""


@pytest.fixture
def shared(tmp_path):
    service = opened(tmp_path)
    yield service
    service.close()


class Time:
    """A wall clock that a test sets, in milliseconds."""

    now = 1_700_000_000_000

    def __call__(self):
        return self.now


@pytest.fixture
def time():
    return Time()


def taken(bucket, name="ann"):
    try:
        bucket.take(name)
    except Refused as refused:
        return refused.retry
    return True


def test_two_processes_have_one_bucket(shared, time):
    rate = Rate(0.1, 3)
    one, two = (Buckets(rate, time, shared.ledger, "login", b"key") for _ in range(2))
    assert [taken(one), taken(two), taken(one), taken(two)] == [True, True, True, 10]
    assert taken(two, "bob") is True
    time.now += 9_999
    assert taken(one) == 1
    time.now += 1
    assert taken(two) is True
    assert taken(one) == 10
    time.now -= 86_400_000  # the clock was set back: nobody waits for a day
    assert taken(one) <= 30


def test_a_stored_bucket_lets_through_what_one_in_memory_does(shared, time):
    rng, rate = random.Random(1), Rate(0.5, 4)
    stored = Buckets(rate, time, shared.ledger, "join", b"key")
    memory = Buckets(rate, time)
    for _ in range(60):
        time.now += rng.randrange(0, 4_000)
        assert (taken(stored) is True) == (taken(memory) is True)


def refused(delays):
    """Try a password; return how long one must wait, 0 if it was looked at."""
    try:
        delays.begin("requester")
    except Refused as refused:
        return refused.retry
    return 0


def test_wrong_passwords_are_counted_by_all_processes_as_by_one(shared, time):

    def seconds():
        return time.now / 1000

    turns = [Delays(seconds, shared.ledger), Delays(seconds, shared.ledger)]
    rng, memory, waited = random.Random(2), Delays(seconds), 0
    for n in range(80):
        time.now += rng.randrange(0, 6_000) if n % 30 else 4_000_000
        if n % 40 == 39:
            memory.forget("requester")
            turns[n % 2].forget("requester")
        wait = refused(turns[n % 2])
        assert wait == refused(memory)
        waited += wait > 0
    assert waited > FREE


def test_addresses_are_kept_as_hashes_alone(shared, time):
    Buckets(Rate(0.1, 3), time, shared.ledger, "login", KEYS.of("rates")).take("192.0.2.7")
    with shared.ledger.database.read() as connection:
        rows = connection.exec_driver_sql("SELECT kind, name FROM usage").all()
    assert [row[0] for row in rows] == ["rate login"]
    assert "192.0.2.7" not in str(rows)


def test_the_share_of_a_process_is_a_part_of_what_all_may(shared):
    alone = make_buckets(shared.ledger, ServerSettings(KEYS))
    among = make_buckets(shared.ledger, ServerSettings(KEYS, processes=3))
    stored = {name for name, one in among.items() if one._where is shared.ledger}
    assert stored == {"login", "join", "link"}
    assert all(one._where is not shared.ledger for one in alone.values())
    assert among["worker"]._rate == Rate(20 / 3, 13)


def test_a_desk_in_use_in_one_process_is_in_use_in_the_other(tmp_path):
    clock = Clock()
    services = [opened(tmp_path, clock=clock) for _ in range(2)]
    settings = ServerSettings(KEYS, clock=clock, processes=2)
    here, there = (create_app(one, settings).state.context.auth.sessions for one in services)
    session = here.begin_desk()
    cookie = here.cookie(session)
    for _ in range(4):  # each time less than the hour that a desk may be idle
        clock.pass_seconds(40 * 60)
        here.read("desk", cookie)
    assert there.read("desk", cookie).id == session.id
    clock.pass_seconds(61 * 60)
    for sessions in (here, there):
        with pytest.raises(Refused):
            sessions.read("desk", cookie)
    for one in services:
        one.close()


def test_processes_of_a_server_show_one_time(tmp_path):
    plan = plan_file(tmp_path)
    first = open_service(plan, tmp_path / "out", KEYS)
    other = open_service(plan, tmp_path / "out", KEYS, moment=first.clock.moment)
    assert abs(first.clock() - other.clock()) < 1_000
    first.close()
    other.close()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--processes", "2"], "need PostgreSQL"),
        (["--processes", "2", "--one-process", "--store", "postgresql://h/x"], "--one-process"),
    ],
)
def test_several_processes_are_refused_where_they_cannot_share(tmp_path, words, said):
    command = ["serve", str(plan_file(tmp_path)), "--out", str(tmp_path / "o"), *words]
    assert said in str(CliRunner().invoke(app, command).exception)
    assert not (tmp_path / "o").exists()


# --------------------------------------------------------------------------------------------------
# Real processes on PostgreSQL


class Steady(Hand):
    """A worker's browser that comes again when its connection is cut."""

    def label(self, url, over, took):
        """Label until it is over."""
        while not over.is_set():
            self.work(url, over, took)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs Linux")
@pytest.mark.torture(
    "the web processes and the loop of one campaign are killed in turn",
    "no acknowledged answer is lost or doubled, all are started again",
)
def test_any_process_may_be_killed_and_no_answer_is_lost(tmp_path, schemas, start, tortured):
    store = schemas.take()
    place = Place(tmp_path / "c", store, seed=1)
    place.hands = [Steady(f"w{n}", random.Random(n)) for n in range(N_HANDS)]
    out = tmp_path / "c" / "out"
    process, said = start(place.plan, out, "--processes", "2", "--store", store)
    over, took = threading.Event(), threading.Semaphore(0)
    url = re.findall(r"http://127\.0\.0\.1:\d+", said)[0]
    wait_until(lambda: answers(url), 300)
    place.come_in(url)
    threads = [threading.Thread(target=one.label, args=(url, over, took)) for one in place.hands]
    n_killed = 0
    try:
        wait_until(lambda: len(children(process.pid)) == 3, 120)
        for thread in threads:
            thread.start()
        for _ in range(ROUNDS):
            for pid in children(process.pid):
                for _ in range(5):
                    assert took.acquire(timeout=300)
                os.kill(pid, signal.SIGKILL)
                n_killed += 1
                wait_until(lambda gone=pid: _replaced(process.pid, gone), 300)
        for _ in range(10):
            assert took.acquire(timeout=300)
        over.set()
        for thread in threads:
            thread.join()
        last = children(process.pid)
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=120)
    finally:
        over.set()
    assert process.returncode == 130
    assert not any(is_alive(pid) for pid in last)
    for name in ("the loop of", "web process 1 has", "web process 2 has"):
        assert log.count(f'message="{name}') == ROUNDS, log
    assert "Traceback" not in log
    place.check()
    with open_ledger(store) as ledger:
        assert ledger.n_answers > 20
    schemas.give_back()
    tortured(n_killed)


def answers(url):
    """Whether a web process has begun to answer."""
    try:
        with urllib.request.urlopen(f"{url}/login", timeout=20) as reply:
            return reply.status == 200
    except OSError:
        return False


def _replaced(server, gone):
    found = children(server)
    return gone not in found and len(found) == 3
