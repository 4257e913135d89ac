"""`goldspan run` on Ray, and runs on 1, 2 and 4 processes that lose one of them in a step."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import goldspan
from campaign.tiny import plan_of, toml, write_files
from cluster import work
from cluster.conftest import MARK, SMALL, left_over
from cluster.test_ray import _many_shards, bits  # noqa: F401 - a fixture
from goldspan.aggregation.partitions import aggregate_partitions
from goldspan.crowd.formats.parquet import write_partitions
from goldspan.runners import Ray

RUN = [sys.executable, "-c", "from goldspan.cli import main; main()", "run", "campaign.toml"]
ROUNDS = max(1, int(os.environ.get("GOLDSPAN_TORTURE") or "0") // 20)


def files(folder):
    kinds = {".csv", ".json", ".jsonl"}
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.suffix in kinds}


def campaign(folder, **changes):
    folder.mkdir()
    write_files(folder)
    (folder / "campaign.toml").write_text(toml(plan_of(aggregate={"method": "ds"}, **changes)))
    return folder


def start(folder, *words):
    """Start `goldspan run` with a mark of its own, by which its processes are found."""
    mark = secrets.token_hex(8)
    run = subprocess.Popen(
        [*RUN, *words], cwd=folder, env=os.environ | {MARK: mark},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    return run, mark


def finished(folder, *words):
    run, mark = start(folder, *words)
    _, said = run.communicate(timeout=600)
    assert run.returncode == 0, said
    assert left_over(mark, 120) == []
    return files(folder / "out")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The files of a campaign that one thread computed."""
    return finished(campaign(tmp_path_factory.mktemp("campaign") / "alone"))


def test_the_plan_says_that_a_campaign_computes_on_ray(alone, tmp_path):
    assert {"gold.csv", "bill.csv", "rounds.jsonl", "record.json"} <= alone.keys()
    assert finished(campaign(tmp_path / "ray", runner="ray")) == alone


@pytest.mark.torture(
    "`goldspan run --runner ray` is killed while its cluster starts or works",
    "the cluster ends with it; the same command goes on, and the files are those of one thread",
)
def test_a_campaign_on_ray_that_is_killed_goes_on(alone, tmp_path, tortured):
    folder = campaign(tmp_path / "ray")
    for turn in range(ROUNDS):
        run, mark = start(folder, "--runner", "ray")
        run.stderr.readline()  # the first round is picked
        while run.poll() is None and not left_over(mark, 0)[1:]:  # more than the command itself
            time.sleep(0.05)
        time.sleep(2 * turn)
        run.kill()
        run.communicate()
        assert left_over(mark, 120) == []
        tortured(int(run.returncode == -signal.SIGKILL))
    assert finished(folder, "--runner", "ray") == alone


class Killer(threading.Thread):
    """Kills the first of some workers that does a task once it may.

    Attributes:
        may: Set when it may.
        killed: Whom it killed.
    """

    def __init__(self, pids):
        super().__init__(daemon=True)
        self.may, self.killed, self._pids = threading.Event(), None, pids

    def run(self):
        self.may.wait(600)
        deadline = time.monotonic() + 60
        while self.killed is None and time.monotonic() < deadline:
            self.killed = next(filter(_killed_at_work, self._pids), None)


def _killed_at_work(pid):
    """Kill a worker if it does a task or a call, by which Ray names its process."""
    try:
        name = Path(f"/proc/{pid}/cmdline").read_bytes()
        works = name.startswith((b"ray::_call", b"ray::_Member."))
        if works:
            os.kill(pid, signal.SIGKILL)
    except OSError:  # it ended by itself
        return False
    return works


@pytest.mark.torture(
    "a local Ray cluster of 1, 2 or 4 processes loses one of them in a step of a run",
    "the result has the bits of one thread",
)
@pytest.mark.parametrize("n_workers", [1, 2, 4])
@pytest.mark.usefixtures("ray")
def test_runs_that_lose_a_process_have_the_bits_of_one_thread(root, tortured, n_workers):
    crowd = goldspan.read_crowd(root / "examples" / "crowd.tsv")
    with Ray(n_workers=n_workers, memory=SMALL) as runner:
        for method in ("ds", "mace", "bsc-seq"):
            wanted = bits(goldspan.aggregate(crowd, method, max_iter=12, tol=0))
            for turn in range(ROUNDS):
                killer = Killer(set(runner.map(work.process, list(range(4 * n_workers)), None)))
                killer.start()

                def told(done, *_, killer=killer, turn=turn):
                    if done > turn:
                        killer.may.set()

                found = goldspan.aggregate(
                    crowd, method, max_iter=12, tol=0, runner=runner, progress=told
                )
                killer.join()
                assert killer.killed is not None
                assert bits(found) == wanted
                tortured(1)
    assert left_over() == []


@pytest.mark.torture(
    "a local Ray cluster of 1, 2 or 4 processes loses one of them in a step over partitions",
    "the files are those of one thread",
)
@pytest.mark.parametrize("n_workers", [1, 2, 4])
@pytest.mark.usefixtures("ray")
def test_partitions_survive_the_loss_of_a_process(root, tmp_path, tortured, n_workers):
    crowd = goldspan.read_crowd(root / "examples" / "crowd.tsv")
    write_partitions(crowd, tmp_path / "answers", 6)
    aggregate_partitions(tmp_path / "answers", tmp_path / "one", "ds", max_iter=12, tol=0)
    with Ray(n_workers=n_workers, memory=SMALL) as runner:
        for turn in range(ROUNDS):
            killer = Killer(set(runner.map(work.process, list(range(4 * n_workers)), None)))
            killer.start()
            aggregate_partitions(
                tmp_path / "answers", tmp_path / f"many{turn}", "ds", max_iter=12, tol=0,
                runner=runner, progress=lambda *_, killer=killer: killer.may.set(),
            )  # fmt: skip
            killer.join()
            assert killer.killed is not None
            for path in (tmp_path / "one").iterdir():
                assert (tmp_path / f"many{turn}" / path.name).read_bytes() == path.read_bytes()
            tortured(1)
    assert left_over() == []
