"""The loop in a process of its own: pages show the same, and its end stops nobody."""

from __future__ import annotations

import errno
import inspect
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from goldspan.campaign import Decision
from goldspan.campaign.protocols import Waiting
from goldspan.errors import InputError
from goldspan.store import open_ledger
from goldspan.web import ServerSettings, open_service, processes
from goldspan.web.desk import Desk
from goldspan.web.engine import Live, LoopFiles
from goldspan.web.errors import Refused
from goldspan.web.processes import Child, DeskServer, Hosted, LoopPart, WebPart, loop_folder
from web.desk.conftest import worked
from web.desk.test_audit import check
from web.desks import as_json
from web.loops import wait_until
from web.serving import KEYS, answer, plan_file
from web.working import Hand

pytestmark = pytest.mark.skipif(not processes.CAN_SPLIT, reason="needs sockets of Unix")


@pytest.fixture
def loop_files():
    with loop_folder() as path:
        yield LoopFiles(path / "0")


@pytest.fixture
def apart(tmp_path, loop_files):
    """A campaign whose loop is asked by another service, as by a process of the pages."""
    near = worked(tmp_path)
    door = DeskServer(near.desk, loop_files.socket)
    near.engine.listeners.append(loop_files.file.write)
    loop_files.file.write(near.engine.live)
    plan, out = tmp_path / "campaign.toml", tmp_path / "out"
    far = open_service(plan, out, KEYS, clock=near.clock, watcher=loop_files.watcher)
    yield SimpleNamespace(near=near, far=far, loop_files=loop_files, door=door)
    door.close()
    far.close()
    near.close()


def test_views_items_and_files_are_the_same_from_another_process(apart):
    near, far = apart.near.desk, apart.far.desk
    for view in ("overview", "workers", "agreement", "uncertain", "items"):
        assert as_json(getattr(far, view)()) == as_json(getattr(near, view)())
    name = near.items().items[0].item
    assert as_json(far.item(name, page=1)) == as_json(near.item(name))
    assert far.export("gold.csv") == near.export("gold.csv")
    assert far.export("answers.csv", names=True, by="me").content.count(b"ann.k")
    assert near.ledger.count("named-download") == 1


def test_what_is_decided_in_one_process_is_seen_in_the_other(apart):
    item = next(row.item for row in apart.near.desk.items().items if not row.control)
    apart.far.desk.adjudicate(item, "rain")
    apart.far.desk.judge("cat.k", "drop", "sleeps")
    apart.near.engine.look_again()
    apart.near.engine.look()
    assert apart.near.engine.live.result.tagged_by_id()[item] == ["rain"]
    (row,) = [one for one in apart.far.desk.workers() if one.worker == "cat.k"]
    assert row.barred


def test_what_is_drawn_and_checked_in_one_process_makes_the_certificate_in_the_other(apart):
    n = apart.far.desk.draw_audit(10).drawn
    item = check(apart.far, "a")
    apart.near.engine._next_look = 0
    apart.near.engine.look()
    found = apart.far.desk.overview().certificate
    assert (found["checked"], found["drawn"]) == (1, n)
    assert found["text"] == f"1 of {n} drawn items checked; an interval needs 10"
    assert apart.near.desk.checking.next("b")["task"]["text"] != apart.near.desk.tasks.text(item)


def test_a_refusal_passes_between_the_processes(apart):
    with pytest.raises(Refused, match="no item 'nobody'") as refused:
        apart.far.desk.item("nobody")
    assert refused.value.status == 404


def test_a_fault_names_nothing_of_the_inside(apart, monkeypatch, caplog):
    monkeypatch.setattr(apart.near.desk, "workers", lambda: {}["a secret"])
    with pytest.raises(Refused, match="Something went wrong") as refused:
        apart.far.desk.workers()
    assert refused.value.status == 500
    assert "a secret" not in caplog.text
    assert "a view of the desk failed" in caplog.text


def test_a_loop_that_is_away_is_said_and_the_overview_stays(apart):
    apart.door.close()
    apart.loop_files.file.write(
        Live(version=9, state="failed", error="it was killed", advice="wait")
    )
    with pytest.raises(Refused, match="is being started") as refused:
        apart.far.desk.workers()
    assert refused.value.status == 503
    now = apart.far.desk.overview()
    assert (now.state, now.error, now.advice) == ("failed", "it was killed", "wait")


def test_a_loop_that_begins_is_waited_for(apart):
    apart.door.close()
    apart.loop_files.socket.unlink()
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(apart.far.desk.workers)
        time.sleep(0.3)
        with closing(DeskServer(apart.near.desk, apart.loop_files.socket)):
            assert as_json(asked.result()) == as_json(apart.near.desk.workers())


def test_whatever_needs_labels_is_made_where_they_are():
    needs = re.compile(r"\blive\.(crowd|result|workers)\b|self\.downloads\.make")
    methods = inspect.getmembers(Desk, inspect.isfunction)
    using = {name for name, one in methods if needs.search(inspect.getsource(one))}
    marked = {name for name, one in methods if hasattr(one, "__wrapped__")}
    assert using
    assert using <= marked


def test_how_a_loop_is_survives_the_file(loop_files):
    live = Live(
        version=3, state="ended", n_answers=4, n_labelled=2, error="ä", advice="b", n_faults=1,
        looked=(1.5, 0.25), waiting=Waiting(1, 2, "here"),
        decision=Decision(stop=True, rule="money", why="no money is left", facts={"n": 1}),
    )  # fmt: skip
    assert loop_files.file.read() == Live()
    loop_files.file.write(live)
    assert loop_files.file.read() == live
    assert loop_files.watcher.is_over()
    loop_files.path.with_suffix(".json").write_text("half of")
    assert loop_files.file.read() == Live()  # a reader that knew nothing before


def test_a_campaign_is_handed_over_whole(tmp_path, loop_files):
    service = open_service(plan_file(tmp_path), tmp_path / "out", KEYS)
    hosted = pickle.loads(pickle.dumps(Hosted.of(service, loop_files, None)))
    other = hosted.open(loop_files.watcher)
    assert list(other.inputs.ids) == list(service.inputs.ids)
    assert other.inputs.key == service.inputs.key
    assert abs(other.clock() - service.clock()) < 1000
    assert "Keys" not in repr(hosted)
    other.close()
    service.close()


def test_a_loop_that_cannot_begin_says_why(tmp_path, loop_files, monkeypatch):
    service = open_service(plan_file(tmp_path), tmp_path / "out", KEYS)
    part = LoopPart(Hosted.of(service, loop_files, None))
    service.close()

    def refuse(*_):
        raise InputError("the pool is another one")

    monkeypatch.setattr(Hosted, "open", refuse)
    assert part.run(threading.Event()) == 1
    assert loop_files.file.read().state == "failed"
    assert loop_files.file.read().error == "the pool is another one"


def test_the_loop_of_a_process_hears_what_others_write(tmp_path, loop_files):
    """Also that the campaign ends, and that no other process may steer meanwhile."""
    plan, out = plan_file(tmp_path), tmp_path / "out"
    open_service(plan, out, KEYS).close()
    leaving = threading.Event()
    with closing(open_service(plan, out, KEYS, watcher=loop_files.watcher)) as pages:
        with ThreadPoolExecutor() as pool:
            loop = pool.submit(LoopPart(Hosted.of(pages, loop_files, None)).run, leaving)
            try:
                wait_until(lambda: pages.engine.live.state == "waiting")

                def work():
                    done = [answer(pages, worker) for worker in ("ann", "bob", "cid")]
                    if not any(done):
                        time.sleep(0.1)
                    return pages.work.is_over()

                wait_until(work)
                assert pages.engine.live.decision.rule == "rounds"
                assert pages.desk.overview().state == "ended"
                wait_until((out / "gold.csv").exists)
            finally:
                leaving.set()
        assert loop.result() == 0


# --------------------------------------------------------------------------------------------------
# Real processes

NEEDS_LINUX = pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs Linux")
RESTARTED = "has ended (signal SIGKILL) and is started again"


def children(pid):
    """Return the processes that a process has started."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += (task / "children").read_text().split()
    return [int(one) for one in found]


def started_by(process, n=1):
    """Return the processes that a server starts."""
    wait_until(lambda: len(children(process.pid)) == n)
    return children(process.pid)


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@NEEDS_LINUX
@pytest.mark.torture(
    "the process of the loop is killed while people label",
    "it is started again, the campaign ends, no answer is lost or doubled",
)
def test_a_killed_loop_is_started_again_and_nobody_waits(tmp_path, start):
    names = ["ann", "bob", "cid"]
    plan = plan_file(tmp_path, crowd={"source": "web", "annotators": names})
    out, hands = tmp_path / "out", [Hand(name, random.Random(name)) for name in names]
    process, said = start(plan, out)
    over, took = threading.Event(), threading.Semaphore(0)
    url = re.findall(r"http://127\.0\.0\.1:\d+", said)[0]
    threads = [threading.Thread(target=one.work, args=(url, over, took)) for one in hands]
    try:
        for hand in hands:
            hand.come_in(url, re.search(rf"{hand.name} .*(/w/\S+)", said)[1])
        (first,) = started_by(process)
        for thread in threads:
            thread.start()
        for _ in range(4):
            assert took.acquire(timeout=120)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: [one for one in children(process.pid) if one != first])
        with open_ledger(out / "campaign.sqlite") as ledger:
            wait_until(lambda: any(one["stop"] for one in ledger.records("stop").values()))
        wait_until((out / "gold.csv").exists, 60)
        (second,) = children(process.pid)
        process.send_signal(signal.SIGINT)
        _, log = process.communicate(timeout=60)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert process.returncode == 130
    assert RESTARTED in log
    assert "Traceback" not in log
    assert not is_alive(second)
    assert [fault for hand in hands for fault in hand.faults] == []
    with open_ledger(out / "campaign.sqlite") as ledger:
        ledger.verify()
        answers = ledger.crowd().latest
        told = [r for h in hands for n, r in h.told.items() if n not in h.changes]
        counting = sum(one["status"] in {"accepted", "late"} for one in told)
    assert len(answers) >= counting > 10


@NEEDS_LINUX
def test_the_loop_ends_with_a_killed_server_and_the_next_server_starts_it_again(tmp_path, start):
    """Each of the two is killed while it begins."""
    plan = plan_file(tmp_path)
    process, _ = start(plan, tmp_path / "out")
    (loop,) = started_by(process)
    process.kill()
    process.communicate()
    wait_until(lambda: not is_alive(loop))
    again, _ = start(plan, tmp_path / "out")
    (first,) = started_by(again)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: [one for one in children(again.pid) if one != first])
    again.send_signal(signal.SIGTERM)
    _, log = again.communicate(timeout=120)
    assert again.returncode == 130
    assert RESTARTED in log
    assert "Traceback" not in log


LOADS_FOR_LONG = """
import sys, time
from goldspan.web.beginning import main

class Slow:
    def find_spec(self, name, *_):
        if name == "goldspan.web.processes":
            time.sleep(120)

sys.meta_path.insert(0, Slow())
main()
"""


def test_what_loads_hears_that_its_server_is_gone():
    gone = subprocess.Popen([sys.executable, "-S", "-c", ""])
    gone.wait()
    words = [sys.executable, "-c", LOADS_FOR_LONG, str(gone.pid)]
    done = subprocess.run(words, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, b"")


def test_a_process_that_ends_by_itself_ends_in_order(capfd):
    """No thread of it may read from what Python takes apart at the end."""
    assert Child("the loop of weather", EndsSoon())._live() == "exit code 7"
    assert "Fatal" not in capfd.readouterr().err


class EndsSoon:
    """A part that fails after a moment."""

    def run(self, leaving):
        leaving.wait(0.2)
        return 7


def test_a_web_process_leaves_while_it_opens_what_it_serves(tmp_path):
    hosted = OpensForLong(tmp_path / "opening")
    part = WebPart({"": hosted}, {}, ServerSettings(KEYS), None, 0, None)
    child = Child("web process 1", part)
    child.start()
    wait_until(hosted.mark.exists, 60)
    child.stop()
    assert child.process.returncode == 0


@dataclass
class OpensForLong:
    """A campaign whose opening takes longer than a process has to end."""

    mark: Path
    keys = KEYS
    loop_files = SimpleNamespace(watcher=None)

    def open(self, _):
        self.mark.touch()
        time.sleep(120)


@pytest.fixture
def failing(monkeypatch):
    """Starts a child that cannot live, and returns what is said of it, so many times or more."""
    monkeypatch.setattr(processes, "FIRST", 0.02)
    monkeypatch.setattr(processes, "MOST", 0.08)

    def go(begin, times):
        monkeypatch.setattr(Child, "_start", lambda _: begin())
        said = []
        child = Child("the loop of weather", SimpleNamespace(run=None), failed=said.append)
        child.start()
        wait_until(lambda: len(said) >= times)
        child.stop()
        return said

    return go


ENDED = "the loop of weather has ended (exit code 3) and is started again"


def test_a_child_that_has_ended_before_it_was_told_what_to_do_is_started_again(failing):
    assert failing(_ended, 2)[0] == ENDED


def test_a_child_that_cannot_be_started_is_tried_again(failing):
    def fail():
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    assert "it cannot be started: Cannot allocate memory" in failing(fail, 2)[1]


def test_a_child_that_fails_again_and_again_waits_longer(failing, caplog):
    said = failing(_short, 4)
    n = len(said)
    assert said[0] == ENDED
    waits = [float(re.search(r"in ([\d.]+) seconds", line)[1]) for line in caplog.messages[:4]]
    assert waits == [0.02, 0.04, 0.08, 0.08]
    time.sleep(0.2)
    assert len(said) == n


def test_a_child_that_has_hardly_begun_is_ended_at_once():
    child = Child("the loop of weather", SimpleNamespace(run=None))
    child.start()
    wait_until(lambda: child.process is not None)
    child.stop()
    assert child.process.poll() is not None


def _short():
    return subprocess.Popen([sys.executable, "-S", "-c", "import os; os._exit(3)"],
                            stdin=subprocess.PIPE)  # fmt: skip


def _ended():
    process = _short()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    return process
