"""With real Ray: the bits of one thread, whatever is killed on the way, or a clear error."""

from __future__ import annotations

import os
import pickle
import secrets
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import goldspan
from cluster import work
from cluster.conftest import MARK, ROUNDS, left_over
from goldspan.aggregation import calibrate
from goldspan.aggregation.bsc import engine
from goldspan.aggregation.partitions import aggregate_partitions
from goldspan.crowd.formats.parquet import write_partitions
from goldspan.errors import GoldspanError, InputError
from goldspan.protocols import Serial
from goldspan.runners import FileCheckpoint, Ray
from goldspan.simulation import simulate_crowd
from goldspan.tagger import CRF
from goldspan.tagger import crf as crf_module
from tagger.corpora import example

STEPS = {"ds": {}, "bsc-seq+words": {"max_iter": 4}, "bsc-seq+crf": {"rounds": 1, "max_iter": 3}}


@pytest.fixture(autouse=True)
def _many_shards(monkeypatch):
    """Cut the evidence into more shards; it is cut here, and not by the workers."""
    monkeypatch.setattr(engine, "ENTRIES_PER_SHARD", 50)


@pytest.fixture(scope="module")
def crowd(root):
    return goldspan.read_crowd(root / "examples" / "crowd.tsv")


def bits(result):
    names = ("codes", "token_probs", "span_confidence", "confidence", "entropy", "trace")
    return [np.asarray(getattr(result, name)).tobytes() for name in names]


# What it gives.


@pytest.mark.parametrize("n", [0, 1, 2, 7, 16, 17, 31, 32, 100])
def test_results_are_in_order_and_merged_in_the_tree_of_one_thread(runner, n):
    shards = list(range(n))
    assert runner.map(work.times, shards, 2) == [shard**2 for shard in shards]
    if n:
        wanted = Serial().map_reduce(work.named, shards, None, work.joined)
        assert runner.map_reduce(work.named, shards, None, work.joined) == wanted


@pytest.mark.parametrize("method", STEPS)
def test_aggregation_has_the_bits_of_one_thread(runner, crowd, method):
    wanted = goldspan.aggregate(crowd, method, **STEPS[method])
    found = goldspan.aggregate(crowd, method, runner=runner, **STEPS[method])
    assert bits(found) == bits(wanted)
    known = crowd.select_items(np.arange(0, crowd.n_items, 3))
    assert bits(calibrate(found, known)) == bits(calibrate(wanted, known))


def test_a_tagger_has_the_bits_of_one_thread(runner, monkeypatch):
    monkeypatch.setattr(crf_module, "ENTRIES_PER_SHARD", 500)
    words, tags, _ = example()
    one, other = (CRF(max_iter=4).fit(words, tags, runner=where) for where in (None, runner))
    assert one.weights_.vector.tobytes() == other.weights_.vector.tobytes()


def test_a_simulation_is_that_of_one_thread(runner, crowd):
    team = ["flip(0.3) x3", "copier(w1, 0.5)"]
    one, other = (simulate_crowd(crowd, team, seed=7, runner=r) for r in (None, runner))
    assert one.answers.codes.tobytes() == other.answers.codes.tobytes()


@pytest.mark.parametrize("method", ["ds", "mace", "bsc-seq"])
def test_partitions_have_the_bits_of_one_thread(runner, crowd, tmp_path, method):
    write_partitions(crowd, tmp_path / "answers", 4)
    for name, where in (("one", None), ("other", runner)):
        aggregate_partitions(
            tmp_path / "answers", tmp_path / name, method, runner=where, max_iter=5
        )
    one, other = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("one", "other")
    )
    assert len(one) == 4
    assert one == other


def test_two_processes_work_and_shards_are_sent_once(runner):
    assert len(set(runner.map(work.process, list(range(8)), None))) == 2
    evidence = engine.Evidence(*[np.zeros(1000)] * 6)
    runner.map(work.named, [evidence], None)
    sent = runner._kept[(id(evidence),)][1]
    runner.map(work.named, [evidence], None)
    assert runner._kept[(id(evidence),)][1] is sent
    del evidence
    assert all(sent is not other for _, other in runner._kept.values())


@pytest.mark.torture(
    "Ray's memory for shards and results is full", "the result has the bits of one thread"
)
def test_what_is_larger_than_the_memory_goes_by_way_of_the_disk(runner):
    shards = [np.full(3_000_000, n, float) for n in range(8)]  # 192 MB
    assert runner.map(work.total, shards, None) == [3e6 * n for n in range(8)]


# What goes wrong.


@pytest.mark.torture(
    "a shard on Ray raises an error", "it is the error of the whole, and the cluster stays usable"
)
def test_the_error_of_a_shard_is_the_error_of_the_whole(runner):
    for call in (
        lambda: runner.map(work.refused, list(range(20)), None),
        lambda: runner.map_reduce(work.refused, list(range(20)), None, work.joined),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert str(caught.value) == "shard 5 is refused"
        assert type(caught.value) is InputError
    assert runner.map(work.times, [1, 2, 3], 2) == [1, 4, 9]


@pytest.mark.torture(
    "a process of a local Ray cluster is killed in a step", "the result has the bits of one thread"
)
def test_a_process_that_is_killed_in_the_middle_of_a_step_does_no_harm(runner, tmp_path):
    mark, shards = str(tmp_path / "killed"), list(range(20))
    wanted = Serial().map_reduce(work.named, shards, None, work.joined)
    assert runner.map_reduce(work.killed_once, shards, mark, work.joined) == wanted
    assert Path(mark).exists()


@pytest.mark.torture(
    "processes of a local Ray cluster are killed between two steps",
    "the result has the bits of one thread",
)
def test_processes_that_are_killed_between_the_steps_do_no_harm(runner, crowd):
    killed = []

    def kill(*_):
        if len(killed) < 1 + bool(ROUNDS):
            killed.append(runner.map(work.process, [0], None)[0])
            os.kill(killed[-1], signal.SIGKILL)

    wanted = goldspan.aggregate(crowd, "bsc-seq", max_iter=4)
    found = goldspan.aggregate(crowd, "bsc-seq", max_iter=4, runner=runner, progress=kill)
    assert len(killed) == 1 + bool(ROUNDS)
    assert bits(found) == bits(wanted)


@pytest.mark.torture(
    "a task on Ray kills its process again and again",
    "one clear error, and the cluster stays usable",
)
def test_a_task_that_always_kills_its_process_is_given_up(runner):
    assert runner.map(work.times, [1], 2) == [1]
    own = Ray(retries=1)  # on the cluster that this process is in
    with pytest.raises(GoldspanError, match="could not do a part of the work"):
        own.map(work.killed_always, list(range(8)), None)
    own.close()
    assert runner.map(work.times, [1], 2) == [1]


@pytest.mark.torture("Ctrl-C while tasks run on Ray", "they end, and the cluster stays usable")
def test_ctrl_c_ends_the_tasks_and_leaves_the_cluster_usable(runner, tmp_path):
    mark = tmp_path / "begun"

    def press():
        while not mark.exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    with pytest.raises(KeyboardInterrupt):
        runner.map(work.endless, list(range(6)), str(mark))
    assert runner.map(work.times, [1, 2, 3], 2) == [1, 4, 9]
    assert len(mark.read_text().split()) <= 2


def test_an_interrupted_aggregation_gives_the_last_step(runner, crowd):
    def press(done, *_):
        if done == 2:
            raise KeyboardInterrupt

    found = goldspan.aggregate(crowd, "bsc-seq", runner=runner, progress=press)
    assert (found.stop_reason, len(found.trace)) == ("interrupted", 2)


def test_a_function_without_a_name_is_refused(runner):
    with pytest.raises(InputError, match="functions of modules"):
        runner.map(lambda shard, _: shard, [1], None)


def test_a_closed_or_unpickled_runner_works_in_this_thread():
    own = Ray(n_workers=1)
    own.close()
    assert own.map(work.times, [1, 2], 2) == [1, 4]
    assert own.map_reduce(work.named, [1, 2], None, work.joined) == "(12)"
    assert isinstance(pickle.loads(pickle.dumps(own)), Serial)


DRIVER = """
import os, signal, sys
import goldspan
from goldspan.aggregation.bsc import engine
from goldspan.runners import FileCheckpoint, Ray
engine.ENTRIES_PER_SHARD = 50
def progress(done, *_):
    if done == 4:
        os.kill(os.getpid(), signal.SIGKILL)
crowd = goldspan.read_crowd(sys.argv[1])
with Ray(n_workers=1, memory=100_000_000) as runner:
    goldspan.aggregate(crowd, "bsc-seq", max_iter=6, runner=runner, progress=progress,
                       checkpoint=FileCheckpoint(sys.argv[2]))
"""


@pytest.mark.torture(
    "the driver of a Ray cluster is killed",
    "its cluster ends; from the checkpoint on, the bits of one thread",
)
def test_a_driver_that_is_killed_goes_on_from_its_checkpoint(runner, crowd, root, tmp_path):
    file, mark = tmp_path / "run.ckpt", secrets.token_hex(8)
    words = [sys.executable, "-c", DRIVER, root / "examples" / "crowd.tsv", file]
    own = os.environ | {MARK: mark}
    done = subprocess.run(words, capture_output=True, timeout=300, env=own)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert left_over(mark, 120) == []  # its cluster ended with it
    heard = []
    found = goldspan.aggregate(
        crowd, "bsc-seq", max_iter=6, runner=runner, checkpoint=FileCheckpoint(file),
        progress=lambda done, *_: heard.append(done),
    )  # fmt: skip
    assert heard[0] == 4
    assert bits(found) == bits(goldspan.aggregate(crowd, "bsc-seq", max_iter=6))
