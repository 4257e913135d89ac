"""What the tests let workers do. They cannot import it: the fixture `ray` sends it along."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from goldspan.errors import InputError


def times(shard, power):
    return shard**power


def joined(left, right):
    return f"({left}{right})"


def named(shard, _):
    return str(shard)


def process(_shard, _params):
    time.sleep(0.3)
    return os.getpid()


def killed_once(shard, mark):
    """Kill the own process in the middle of a step, the first time that shard 5 is worked on."""
    if shard == 5 and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return str(shard)


def killed_always(shard, _):
    if shard == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return str(shard)


def refused(shard, _):
    if shard == 5:
        raise InputError("shard 5 is refused")
    return shard


def endless(_shard, mark):
    with Path(mark).open("a") as file:
        file.write("begun\n")
    time.sleep(600)


def slow_elsewhere(shard, home):
    import ray

    if ray.get_runtime_context().get_node_id() != home:
        time.sleep(0.5)
    return str(shard)


def total(shard, _):
    return shard.sum()
