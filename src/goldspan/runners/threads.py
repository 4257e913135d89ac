"""Threads of this process: for kernels that let go of the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from goldspan.errors import InputError
from goldspan.protocols import Serial, merge_in_order

Shard = TypeVar("Shard")
Params = TypeVar("Params")
Statistics = TypeVar("Statistics")


class Threads(Serial):
    """A `Runner` on threads; the result has the same bits as that of one thread.

    Args:
        n_threads: How many; by default the cores that this process may use.

    >>> Threads(2).map_reduce(lambda shard, power: shard**power, [1, 2, 3], 2, lambda x, y: x + y)
    14
    """

    def __init__(self, n_threads: int | None = None) -> None:
        if n_threads is not None and (not isinstance(n_threads, int) or n_threads < 1):
            raise InputError(f"the number of threads must be at least 1, not {n_threads!r}")
        self.n_threads = n_threads or usable_cores()

    def map(
        self, fn: Callable[[Shard, Params], Statistics], shards: Sequence[Shard], params: Params
    ) -> list[Statistics]:
        """Call `fn` on every shard, several at a time."""
        return list(self._in_order(fn, shards, params))

    def map_reduce(
        self,
        fn: Callable[[Shard, Params], Statistics],
        shards: Sequence[Shard],
        params: Params,
        merge: Callable[[Statistics, Statistics], Statistics],
    ) -> Statistics:
        """Call `fn` on every shard, several at a time, and merge in the fixed tree."""
        return merge_in_order(self._in_order(fn, shards, params), merge)

    def _in_order(
        self, fn: Callable[[Shard, Params], Statistics], shards: Sequence[Shard], params: Params
    ) -> Iterator[Statistics]:
        """Yield the results in order, of which only a few wait to be merged."""
        n_threads = min(self.n_threads, len(shards))
        if n_threads <= 1:
            yield from (fn(shard, params) for shard in shards)
            return
        with ThreadPoolExecutor(n_threads, thread_name_prefix="goldspan") as pool:
            waiting: list[Future[Statistics]] = []
            for shard in shards:
                waiting.append(pool.submit(fn, shard, params))
                if len(waiting) > n_threads + 1:
                    yield waiting.pop(0).result()
            for future in waiting:
                yield future.result()

    def __repr__(self) -> str:
        """Return how many."""
        return f"Threads({self.n_threads})"


def usable_cores() -> int:
    """Count the cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1
