"""A runner that plays other machines: what it hands over is a frozen copy, in any order."""

from __future__ import annotations

import pickle
import random
from dataclasses import dataclass
from typing import Any

from goldspan.protocols import merge_in_order


def frozen(value):
    """Return a copy by way of pickle whose arrays are read-only, as Ray hands them over."""
    buffers = []
    data = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=[bytes(buffer.raw()) for buffer in buffers])


@dataclass(eq=False)
class _Job:
    """A call, whose arguments are values or other jobs."""

    fn: Any
    given: tuple[Any, ...]
    result: Any = None
    is_done: bool = False

    @property
    def is_ready(self):
        return all(one.is_done for one in self.given if isinstance(one, _Job))


class Apart:
    """Calls functions on frozen copies, in an order drawn by a seed.

    The functions themselves go by way of pickle too: they must be those of a module.

    Attributes:
        n_calls: How often every function was called.
    """

    def __init__(self, seed=0):
        self._draw, self.n_calls = random.Random(seed), {}

    def map(self, fn, shards, params):
        jobs = [_Job(fn, (shard, params)) for shard in shards]
        self._do(jobs)
        return [job.result for job in jobs]

    def map_reduce(self, fn, shards, params, merge):
        jobs = [_Job(fn, (shard, params)) for shard in shards]
        every = list(jobs)

        def later(left, right):
            every.append(_Job(merge, (left, right)))
            return every[-1]

        last = merge_in_order(jobs, later)
        self._do(every)
        return last.result

    def _do(self, jobs):
        waiting = list(jobs)
        while waiting:
            job = self._draw.choice([one for one in waiting if one.is_ready])
            waiting.remove(job)
            given = [one.result if isinstance(one, _Job) else one for one in job.given]
            fn = pickle.loads(pickle.dumps(job.fn))
            self.n_calls[fn.__name__] = self.n_calls.get(fn.__name__, 0) + 1
            job.result, job.is_done = frozen(fn(*map(frozen, given))), True

    def __reduce__(self):
        raise AssertionError("a runner was handed over to a worker")
