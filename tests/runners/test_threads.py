"""Threads give what one thread gives."""

from __future__ import annotations

import os
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan.errors import InputError
from goldspan.protocols import Serial
from goldspan.runners import Threads


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


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_error_of_a_shard_is_the_error_of_the_whole(n_threads):
    def work(shard, _):
        if shard == 3:
            raise InputError("shard 3")
        return shard

    with pytest.raises(InputError, match="shard 3"):
        Threads(n_threads).map_reduce(work, list(range(9)), None, lambda a, b: a + b)
    assert threading.active_count() == 1


@pytest.mark.parametrize("n", [0, -1, 1.5, "2"])
def test_a_number_of_threads_that_is_none_is_refused(n):
    with pytest.raises(InputError, match="at least 1"):
        Threads(n)


def test_by_default_there_are_as_many_threads_as_usable_cores():
    has_affinity = hasattr(os, "sched_getaffinity")  # not on macOS and Windows
    assert Threads().n_threads == (len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count())
    assert repr(Threads(3)) == "Threads(3)"
