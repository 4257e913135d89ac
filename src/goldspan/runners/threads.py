"""Threads of this process: for kernels that let go of the GIL."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Generic, TypeVar

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
        self._helpers: ThreadPoolExecutor | None = None
        self._process = 0

    def map(
        self, fn: Callable[[Shard, Params], Statistics], shards: Sequence[Shard], params: Params
    ) -> list[Statistics]:
        """Call `fn` on every shard, several at a time."""
        with closing(self._in_order(fn, shards, params)) as results:
            return list(results)

    def map_reduce(
        self,
        fn: Callable[[Shard, Params], Statistics],
        shards: Sequence[Shard],
        params: Params,
        merge: Callable[[Statistics, Statistics], Statistics],
    ) -> Statistics:
        """Call `fn` on every shard, several at a time, and merge in the fixed tree."""
        with closing(self._in_order(fn, shards, params)) as results:  # helpers wait for its end
            return merge_in_order(results, merge)

    def _in_order(
        self, fn: Callable[[Shard, Params], Statistics], shards: Sequence[Shard], params: Params
    ) -> Generator[Statistics]:
        """Yield the results in order, of which only a few wait to be merged."""
        n_threads = min(self.n_threads, len(shards))
        if n_threads <= 1:
            yield from (fn(shard, params) for shard in shards)
            return
        if self._helpers is None or self._process != os.getpid():  # a fork has no threads
            self._helpers = ThreadPoolExecutor(self.n_threads - 1, "goldspan")
            self._process = os.getpid()
        work = _Work(fn, shards, params, n_threads + 1)
        helping: list[Future[None]] = []
        try:
            helping.extend(self._helpers.submit(work.help) for _ in range(n_threads - 1))
            for place in range(len(shards)):
                yield work.result(place)
        finally:
            work.stop()
            for one in helping:
                if not one.cancel():
                    one.result()
            work.forget()

    def __reduce__(self) -> tuple[type[Threads], tuple[int]]:
        """Leave the threads behind: who takes it up has others."""
        return type(self), (self.n_threads,)

    def __repr__(self) -> str:
        """Return how many."""
        return f"Threads({self.n_threads})"


class _Work(Generic[Shard, Params, Statistics]):
    """What the threads of a call share: whoever is free takes the next shard.

    The thread that wants the results works, too: to be woken for every shard would cost more than
    many a shard takes, and so nobody waits for helpers that are busy elsewhere.
    """

    def __init__(
        self,
        fn: Callable[[Shard, Params], Statistics],
        shards: Sequence[Shard],
        params: Params,
        most: int,
    ) -> None:
        self._fn, self._shards, self._params, self._most = fn, shards, params, most
        self._changed = threading.Condition()
        self._results: dict[int, Statistics | _Failed] = {}
        self._next, self._wanted = 0, 0

    def result(self, place: int) -> Statistics:
        """Return the result for a shard; they are asked for in order."""
        with self._changed:
            self._wanted = place
            self._changed.notify_all()
        while place not in self._results:
            own = self._take()
            if own is not None:
                self._do(own, Exception)
                continue
            with self._changed:
                self._changed.wait_for(lambda: place in self._results)
        found = self._results.pop(place)
        if isinstance(found, _Failed):
            raise found.take()
        return found

    def help(self) -> None:
        """Do shards until there are none left."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_over or self._may_go_on)
            own = self._take()
            if own is not None:
                self._do(own, BaseException)
            elif self._is_over:
                return

    def stop(self) -> None:
        """Begin no other shard."""
        with self._changed:
            self._next = len(self._shards)
            self._changed.notify_all()

    def forget(self) -> None:
        """Drop results that nobody asked for: errors among them know this object."""
        self._results.clear()

    @property
    def _is_over(self) -> bool:
        return self._next >= len(self._shards)

    @property
    def _may_go_on(self) -> bool:
        return self._next < self._wanted + self._most

    def _take(self) -> int | None:
        """Take the next shard, if there is one and not too many results wait."""
        with self._changed:
            if self._is_over or not self._may_go_on:
                return None
            self._next += 1
            return self._next - 1

    def _do(self, place: int, caught: type[BaseException]) -> None:
        """Do a shard; an error is its result."""
        try:
            self._keep(place, self._fn(self._shards[place], self._params))
        except caught as error:  # a name of it here would be known by the error's own frames
            self._keep(place, _Failed(error))

    def _keep(self, place: int, found: Statistics | _Failed) -> None:
        """Keep a result, and wake who waits for it."""
        with self._changed:
            self._results[place] = found
            self._changed.notify_all()


class _Failed:
    """The error of a shard."""

    def __init__(self, error: BaseException) -> None:
        self._error: BaseException | None = error

    def take(self) -> BaseException:
        """Return the error, once: who raises it would keep its frames, and they it."""
        error, self._error = self._error, None
        assert error is not None
        return error


def usable_cores() -> int:
    """Count the cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1
