"""Two machines, played by this one: one is taken away, one is slow, one asks for another token."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import goldspan
from cluster import work
from cluster.test_ray import _many_shards, bits  # noqa: F401 - a fixture
from goldspan.protocols import Serial
from goldspan.runners import Ray


@pytest.fixture
def crowd(root):
    return goldspan.read_crowd(root / "examples" / "crowd.tsv")


@pytest.mark.torture(
    "one of two machines of a Ray cluster is slow", "the result has the bits of one thread"
)
def test_a_slow_machine_changes_nothing(nodes, ray):
    shards = list(range(16))
    wanted = Serial().map_reduce(work.named, shards, None, work.joined)
    with Ray(nodes.address) as runner:
        assert runner.map(work.times, [1], 2) == [1]
        home = ray.get_runtime_context().get_node_id()
        assert runner.map_reduce(work.slow_elsewhere, shards, home, work.joined) == wanted


JOIN = """
import sys
from goldspan.errors import GoldspanError
from goldspan.runners import Ray
try:
    with Ray(sys.argv[1]) as runner:
        runner.map(abs.__class__, [1], None)
except GoldspanError as error:
    print(error)
"""


@pytest.mark.torture("a stranger joins a Ray cluster with a wrong token", "it is refused")
def test_a_cluster_lets_nobody_in_without_its_token(nodes):
    env = {**os.environ, "RAY_AUTH_TOKEN": "0" * 64}
    words = [sys.executable, "-c", JOIN, nodes.address]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=240)
    assert "cannot use the Ray cluster" in done.stdout, done.stderr


@pytest.mark.torture(
    "one of two machines of a Ray cluster is taken away in a run",
    "the result has the bits of one thread",
)
def test_a_machine_that_is_taken_away_does_no_harm(nodes, crowd):
    # The last one: the machine is gone
    wanted = goldspan.aggregate(crowd, "bsc-seq", max_iter=5)
    taken = []

    def take(done, *_):
        if done == 2:
            nodes.remove_node(nodes.extra, allow_graceful=False)
            taken.append(done)

    with Ray(nodes.address) as runner:
        found = goldspan.aggregate(crowd, "bsc-seq", max_iter=5, runner=runner, progress=take)
    assert taken
    assert bits(found) == bits(wanted)
