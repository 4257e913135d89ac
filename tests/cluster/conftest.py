"""Clusters for the tests: each of its own, on this machine alone, with nothing left at the end."""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path

import pytest

MARK = "GOLDSPAN_TEST_CLUSTER"
SMALL = 100_000_000
"""Bytes of an object store."""
ROUNDS = int(os.environ.get("GOLDSPAN_TORTURE") or "0") // 20
"""How often a harmful test is repeated; 0 for once, and on two processes alone."""
SIZES = [1, 2, 4] if ROUNDS else [2]


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session", autouse=True)
def _own_environment():
    """Mark all processes that are started from here, and give clusters a token of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MARK, secrets.token_hex(8))
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        patch.delenv("RAY_ADDRESS", raising=False)
        yield
        assert left_over() == []


def left_over(mark=None, seconds=30.0):
    """Return the command lines of processes that were started under a mark (ours) and still run."""
    deadline = time.monotonic() + seconds
    while (found := _marked(mark or os.environ[MARK])) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def _marked(mark):
    mark = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                found += [b" ".join(words).decode(errors="replace")] if any(words) else []
        except OSError:  # it ended, or is somebody else's
            continue
    return found


@pytest.fixture(scope="session")
def ray(_own_environment):
    """Ray, which sends the functions of `cluster.work` by value."""
    import ray

    from cluster import work

    ray.cloudpickle.register_pickle_by_value(work)
    return ray


@pytest.fixture(scope="session")
def runner(ray):  # noqa: ARG001 - for what it registers
    """A local cluster of two workers; other clusters are those of modules that come before."""
    from goldspan.runners import Ray

    with Ray(n_workers=2, memory=SMALL) as found:
        yield found
    assert left_over() == []


@pytest.fixture(scope="module", params=SIZES)
def sized(ray, request):  # noqa: ARG001 - as above
    """A local cluster of several sizes, whose processes are killed."""
    from goldspan.runners import Ray

    with Ray(n_workers=request.param, memory=SMALL) as found:
        yield found
    assert left_over() == []


@pytest.fixture(scope="module")
def nodes(ray):  # noqa: ARG001 - as above
    """A cluster of two machines, played by this one; the second one is `extra`."""
    from ray.cluster_utils import Cluster

    options = {"num_cpus": 1, "object_store_memory": SMALL, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=options)
    cluster.extra = cluster.add_node(num_cpus=1, object_store_memory=SMALL)
    cluster.wait_for_nodes()
    yield cluster
    cluster.shutdown()
    assert left_over() == []
