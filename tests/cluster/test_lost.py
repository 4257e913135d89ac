"""Runs on 1, 2 and 4 processes that lose one of them in a step."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

import goldspan
from cluster import work
from cluster.conftest import ROUNDS
from cluster.test_ray import _many_shards, bits  # noqa: F401 - a fixture
from goldspan.aggregation.partitions import aggregate_partitions
from goldspan.crowd.formats.parquet import write_partitions


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


def killer_of(runner):
    """Start a killer of one of the processes of a cluster."""
    n = 4 * runner.n_workers
    killer = Killer(set(runner.map(work.process, list(range(n)), None)))
    killer.start()
    return killer


def _killed_at_work(pid):
    """Kill a worker if it does a task or a call, by which Ray names its process."""
    try:
        name = Path(f"/proc/{pid}/cmdline").read_bytes()
        works = name.startswith(b"ray::_call")
        if works:
            os.kill(pid, signal.SIGKILL)
    except OSError:  # it ended by itself
        return False
    return works


@pytest.mark.torture(
    "a local Ray cluster of 1, 2 or 4 processes loses one of them in a step of a run",
    "the result has the bits of one thread",
)
@pytest.mark.parametrize("method", ["ds", "mace", "bsc-seq"] if ROUNDS else ["bsc-seq"])
def test_runs_that_lose_a_process_have_the_bits_of_one_thread(root, tortured, sized, method):
    crowd = goldspan.read_crowd(root / "examples" / "crowd.tsv")
    wanted = bits(goldspan.aggregate(crowd, method, max_iter=12, tol=0))
    for turn in range(max(1, ROUNDS)):
        killer = killer_of(sized)

        def told(done, *_, killer=killer, turn=turn):
            if done > turn:
                killer.may.set()

        found = goldspan.aggregate(crowd, method, max_iter=12, tol=0, runner=sized, progress=told)
        killer.join()
        assert killer.killed is not None
        assert bits(found) == wanted
        tortured(1)


@pytest.mark.torture(
    "a local Ray cluster of 1, 2 or 4 processes loses one of them in a step over partitions",
    "the files are those of one thread",
)
def test_partitions_survive_the_loss_of_a_process(root, tmp_path, tortured, sized):
    crowd = goldspan.read_crowd(root / "examples" / "crowd.tsv")
    write_partitions(crowd, tmp_path / "answers", 6)
    aggregate_partitions(tmp_path / "answers", tmp_path / "one", "ds", max_iter=12, tol=0)
    for turn in range(max(1, ROUNDS)):
        killer = killer_of(sized)
        aggregate_partitions(
            tmp_path / "answers", tmp_path / f"many{turn}", "ds", max_iter=12, tol=0,
            runner=sized, progress=lambda *_, killer=killer: killer.may.set(),
        )  # fmt: skip
        killer.join()
        assert killer.killed is not None
        for path in (tmp_path / "one").iterdir():
            assert (tmp_path / f"many{turn}" / path.name).read_bytes() == path.read_bytes()
        tortured(1)
