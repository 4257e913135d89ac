"""Threads give what one thread gives."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import threading
import time
import weakref
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan.errors import InputError
from goldspan.protocols import Serial
from goldspan.runners import Threads


def comes(is_so):
    deadline = time.monotonic() + 20
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.01)
    return is_so()


@given(st.lists(st.integers(), max_size=20), st.integers(1, 5))
def test_results_stand_in_the_order_of_the_shards(shards, n_threads):
    def work(shard, params):
        time.sleep(0.0005 * (shard % 3))
        return shard * params

    assert Threads(n_threads).map(work, shards, 3) == Serial().map(work, shards, 3)


@given(st.lists(st.text(max_size=1), min_size=1, max_size=20), st.integers(1, 5))
def test_statistics_are_merged_in_the_tree_of_one_thread(shards, n_threads):
    def merge(a, b):
        return f"({a}{b})"

    def work(shard, params):
        return shard + params

    wanted = Serial().map_reduce(work, shards, "!", merge)
    assert Threads(n_threads).map_reduce(work, shards, "!", merge) == wanted


def test_work_really_runs_side_by_side():
    barrier = threading.Barrier(2, timeout=10)
    assert sorted(Threads(2).map(lambda s, _: (barrier.wait(), s)[1], [1, 2], None)) == [1, 2]


def test_only_a_few_results_wait():
    running, most, lock = 0, 0, threading.Lock()

    def work(shard, _):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        return shard

    def merge(a, b):
        nonlocal running
        with lock:
            running -= 1
        return a + b

    assert Threads(2).map_reduce(work, list(range(200)), None, merge) == sum(range(200))
    assert most <= 2 * 2 + 2 + 10


@pytest.mark.parametrize("n_threads", [1, 2, 4])
@pytest.mark.parametrize("kind", [InputError, KeyboardInterrupt])
def test_an_error_of_a_shard_is_the_error_of_the_whole_and_nothing_goes_on(n_threads, kind):
    begun, ended = [], []

    def work(shard, _):
        begun.append(shard)
        time.sleep(0.001)
        if shard == 3:
            ended.append(shard)
            raise kind("shard 3")
        ended.append(shard)
        return shard

    with pytest.raises(kind, match="shard 3"):
        Threads(n_threads).map_reduce(work, list(range(99)), None, lambda a, b: a + b)
    assert sorted(begun) == sorted(ended)
    assert len(begun) < 20


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_an_error_of_a_merge_that_is_kept_leaves_helpers_free_and_the_process_ends(kind):
    program = f"""
import sys, threading
from goldspan.runners import Threads
runner, where = Threads(2), set()
def merge(a, b):
    raise {kind.__name__}("merge")
try:
    runner.map_reduce(lambda s, p: s, list(range(50)), None, merge)
except {kind.__name__} as error:
    sys.last_value = error
barrier = threading.Barrier(2, timeout=20)
runner.map(lambda s, p: barrier.wait(), [1, 2], None)
Threads(2).map_reduce(lambda s, p: s, list(range(50)), None, merge)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60)
    assert f"{kind.__name__}: merge" in ended.stderr.decode()
    assert ended.returncode != 0


def test_a_thread_that_cannot_start_is_an_error_and_the_process_ends():
    program = """
import threading
from goldspan.runners import Threads
start, n = threading.Thread.start, [0]
def few(self):
    n[0] += 1
    if n[0] == 2:
        raise RuntimeError("can't start new thread")
    start(self)
threading.Thread.start = few
Threads(3).map(lambda s, p: s, list(range(50)), None)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60)
    assert "can't start new thread" in ended.stderr.decode()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_has_threads_of_its_own():
    program = """
import os, threading
from goldspan.runners import Threads
runner = Threads(2)
def both():
    barrier = threading.Barrier(2, timeout=20)
    runner.map(lambda s, p: barrier.wait(), [1, 2], None)
both()
child = os.fork()
both()
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_errors_that_are_returned_are_results_and_raised_ones_keep_no_parameters():
    assert [str(e) for e in Threads(2).map(lambda s, _: ValueError(s), [1, 2, 3], None)] == [
        "1", "2", "3"
    ]  # fmt: skip

    class Large:
        pass

    def fail(_shard, _params):
        raise InputError("no")

    params = Large()
    seen = weakref.ref(params)
    gc.disable()
    try:
        with suppress(InputError):
            Threads(2).map(fail, [1, 2, 3], params)
        del params
        assert comes(lambda: seen() is None)  # the helper may be about to let go of it
    finally:
        gc.enable()


def test_of_several_errors_the_first_in_order_is_told():
    def work(shard, _):
        time.sleep(0.002 if shard == 2 else 0)
        if shard >= 2:
            raise InputError(f"shard {shard}")
        return shard

    for _ in range(5):
        with pytest.raises(InputError, match="shard 2"):
            Threads(2).map(work, list(range(9)), None)


def test_a_call_within_a_call_of_the_same_runner_ends():
    runner = Threads(2)

    def inner(shard, base):
        time.sleep(0.001)
        return base + shard

    def work(shard, _):
        return sum(runner.map(inner, [1, 2, 3], shard))

    assert runner.map(work, list(range(8)), None) == [3 * n + 6 for n in range(8)]


def test_a_runner_may_be_sent_and_its_threads_end_with_it():
    before = set(threading.enumerate())
    runner = Threads(2)
    assert runner.map(lambda s, _: s, [1, 2, 3], None) == [1, 2, 3]
    own = set(threading.enumerate()) - before
    assert len(own) == 1
    other = pickle.loads(pickle.dumps(runner))
    assert other.n_threads == 2
    assert other.map(lambda s, _: s, [1, 2, 3], None) == [1, 2, 3]
    del runner, other
    assert comes(lambda: not any(one.is_alive() for one in own))


@pytest.mark.parametrize("n", [0, -1, 1.5, "2"])
def test_a_number_of_threads_that_is_none_is_refused(n):
    with pytest.raises(InputError, match="at least 1"):
        Threads(n)


def test_by_default_there_are_as_many_threads_as_usable_cores():
    has_affinity = hasattr(os, "sched_getaffinity")  # not on macOS and Windows
    assert Threads().n_threads == (len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count())
    assert repr(Threads(3)) == "Threads(3)"
