"""The real server is killed under load: nothing that was acknowledged is lost, nothing is doubled.

Workers over HTTP, `goldspan serve` in a process of its own with its loop at work, SIGKILL at a
random moment; then the store is looked at, the same command is started again, and the workers send
again what got no reply. Every `PER_PLACE` kills a new campaign begins.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import select

from campaign.tiny import write_files
from goldspan.campaign import read_inputs, read_plan
from goldspan.store import open_ledger
from goldspan.store.people import ids
from goldspan.store.schema import answers, items, workers
from goldspan.store.verify import faults_of
from goldspan.web.opening import with_id
from goldspan.web.settings import load_keys
from goldspan.web.work import Tasks
from web.loops import wait_until
from web.serving import plan_file
from web.working import Hand

KILLS = int(os.environ.get("GOLDSPAN_TORTURE") or "2")
PER_PLACE, N_HANDS, MOST = 10, 6, 3
PLAN = {
    "control": {"n": 6, "gold": "truth.csv", "share": 0.25, "first": 1, "least": 0},
    "redundancy": {"min": 2, "max": MOST},
    "select": {"by": "random", "batch": 12},
    "budget": {"money": "40"},
    "stop": {"most_rounds": 50},
}
SERVERS = Path(__file__).with_name("dying_servers.py")


class Servers:
    """Starts servers that are warm, and kills them."""

    def __init__(self, pipe: subprocess.Popen[str], folder: Path) -> None:
        self.pipe, self.folder, self.child = pipe, folder, 0

    def ask(self, **words: object) -> int:
        self.pipe.stdin.write(json.dumps(words) + "\n")
        self.pipe.stdin.flush()
        return int(self.pipe.stdout.readline())

    def start(self, *words: str) -> str:
        """Start `goldspan serve`, and give its address when it listens."""
        log = self.folder / "log"
        log.unlink(missing_ok=True)
        self.child = self.ask(words=["serve", *words, "--port", "0"], log=str(log))
        wait_until(lambda: log.exists() and "Ctrl-C ends it" in log.read_text())
        return log.read_text().split("at http://")[1].split()[0]

    def kill(self) -> int:
        os.kill(self.child, signal.SIGKILL)
        child, self.child = self.child, 0
        return self.ask(reap=child)


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """Give warm servers."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    where = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    words = [sys.executable, str(SERVERS)]
    with subprocess.Popen(words, env={**os.environ, **where}, **pipes) as pipe:
        made = Servers(pipe, tmp_path_factory.mktemp("servers"))
        yield made
        if made.child:
            made.kill()
        pipe.stdin.close()


class Place:
    """A campaign that is served and killed again and again."""

    def __init__(self, folder: Path, store: str, seed: int) -> None:
        folder.mkdir()
        self.plan = plan_file(folder, **PLAN)
        write_files(folder, 150)
        self.words = [str(self.plan), "--out", str(folder / "out"), "--store", store]
        self.store, self.rng = store, random.Random(seed)
        self.hands = [Hand(f"w{n}", random.Random(f"{seed} {n}")) for n in range(N_HANDS)]

    def come_in(self, url: str) -> None:
        """Make links with `goldspan invite`, and open them."""
        from goldspan.web import Auth, ServerSettings

        inputs = read_inputs(read_plan(self.plan), self.plan.parent)
        keys = load_keys(self.plan.parent / "out")
        with open_ledger(self.store) as ledger:
            inputs = with_id(inputs, ledger, 0)
            self.tasks = Tasks(inputs, keys)
            auth = Auth.of(ledger, inputs.key, ServerSettings(keys))
            links = auth.links.make([hand.name for hand in self.hands], 30)
        for hand, (_, token) in zip(self.hands, links, strict=True):
            hand.come_in(url, f"/w/{token}")

    def labour(self, servers: Servers, n_replies: int, delay: float) -> int:
        """Let all work, and kill the server some time after so many replies."""
        url = "http://" + servers.start(*self.words)
        if not self.hands[0].cookie:
            self.come_in(url)
        over, took = threading.Event(), threading.Semaphore(0)
        threads = [threading.Thread(target=h.work, args=(url, over, took)) for h in self.hands]
        for thread in threads:
            thread.start()
        for _ in range(n_replies):
            if not took.acquire(timeout=20):
                break
        time.sleep(delay)
        code = servers.kill()
        over.set()
        for thread in threads:
            thread.join()
        return code

    def check(self) -> None:
        """Check that the store is whole, and has all that was acknowledged, once."""
        assert [fault for hand in self.hands for fault in hand.faults] == []
        with open_ledger(self.store) as ledger:
            assert faults_of(ledger.database) == []
            ledger.verify()
            totals, slots = ledger.totals(), ledger.slots().to_pylist()
            with ledger.database.read() as connection:
                names = ids(connection)
                rows = [shown(row, names) for row in connection.execute(KEPT)]
        assert totals.reserved + totals.spent <= totals.cap
        assert totals.spent == sum(row.cost for row in rows)
        self._check_places(slots, rows)
        self._check_told({row.key: row for row in rows})

    def _check_places(self, slots, rows) -> None:
        control = self.tasks.inputs.control
        counted = Counter(row.item for row in rows if row.counts)
        assert all(counted[slot["item"]] <= slot["wanted"] for slot in slots)
        assert all(n <= MOST for item, n in counted.items() if item not in control)
        pairs = Counter((row.item, row.worker) for row in rows if row.counts)
        assert set(pairs.values()) <= {1}
        assert all(row.cost == 0 for row in rows if not row.counts)

    def _check_told(self, kept) -> None:
        sent = {}
        for hand in self.hands:
            for name, body in hand.sent.items():
                item = self.tasks.item(hand.name, body["task"])
                sent[f"web:{name}:{hand.name}"] = (hand.name, item, json.dumps([body["label"]]))
        told = [f"web:{n}:{hand.name}" for hand in self.hands for n in hand.told]
        assert set(told) <= set(kept) <= set(sent)
        assert all((row.worker, row.item, row.labels) == sent[k] for k, row in kept.items())
        for hand in self.hands:
            for name, reply in hand.told.items():
                assert kept[f"web:{name}:{hand.name}"].status == reply["status"]


def shown(row, names):
    """Return a row with the worker's id in place of the pseudonym."""
    key, worker = row.key.rpartition(":")[0], names[row.worker]
    return SimpleNamespace(**{**row._mapping, "key": f"{key}:{worker}", "worker": worker})


KEPT = (
    select(
        answers.c.key, answers.c.labels, answers.c.status, answers.c.counts, answers.c.cost,
        items.c.id.label("item"), workers.c.id.label("worker"),
    )
    .join(items, items.c.number == answers.c.item)
    .join(workers, workers.c.number == answers.c.worker)
)  # fmt: skip


@pytest.mark.torture(
    "`goldspan serve` is killed under load",
    "no acknowledged answer is lost or doubled, the cap is kept",
)
def test_killed_under_load_it_keeps_every_acknowledged_answer_once(
    servers, tmp_path, new_place, tortured
):
    rng, place, kept = random.Random(KILLS), None, 0
    few = KILLS < 10 and "postgresql" in new_place()
    for n in range(1 if few else KILLS):
        if n % PER_PLACE == 0:
            place = Place(tmp_path / f"c{n}", new_place(), n)
        assert place.labour(servers, rng.randrange(2, 40), rng.uniform(0, 0.05)) == -9
        place.check()
        tortured(1)
        kept = sum(len(hand.told) for hand in place.hands)
    assert kept
    assert few or any(
        reply["status"] == "changed" for hand in place.hands for reply in hand.told.values()
    )
