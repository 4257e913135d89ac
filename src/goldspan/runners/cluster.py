"""Processes of this machine, or of many, by way of Ray (the extra `cluster`)."""

from __future__ import annotations

import logging
import os
import re
import secrets
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import islice
from typing import Any, Self, TypeVar

from goldspan.errors import GoldspanError, InputError, MissingExtraError, UnknownNameError
from goldspan.protocols import RUNNER, Serial, merge_in_order
from goldspan.runners.threads import Threads, usable_cores

Shard = TypeVar("Shard")
Params = TypeVar("Params")
Statistics = TypeVar("Statistics")

SETTLE = 0.1
"""Seconds in which a task that was just handed over is on its way, or done."""
GRACE = 2.0
"""Seconds in which a task that is ended may finish what it computes."""
LEAST_MEMORY = 78_643_200
"""Ray refuses less."""
STARTS = 3
"""Attempts to start a local cluster, for which Ray waits half a minute: a busy machine is slow."""
LOCAL = "local"
"""The address of a cluster that is started on this machine, and ended with the runner."""
GROUPS = 4
"""Least tasks per worker and call; each does several shards, since a task costs milliseconds."""
FAN = 16
"""Results that a task merges, at most; a power of two."""
AHEAD = 8
"""Most tasks per worker that are handed out and not done: what they return takes memory."""


class Ray:
    """A `Runner` on processes, of this machine or of several; the bits are those of one thread.

    The cluster is started, or joined, at first use. Shards are sent once, for as long as they live
    here; parameters once per call. Statistics are merged where they were made, in the tree of one
    thread. Tasks that are lost with their process or machine are done again. After `close`, or
    where it was unpickled, a runner works in this thread. Where this process is in a cluster
    already (`ray.init`), that one is used, and left as it is.

    All machines need the same version of goldspan, and one type of processor for the same bits.

    Args:
        address: "local" starts a cluster on this machine; "auto" joins the one that runs here;
            "host:port" joins another, of which this machine must be a part.
        n_workers: Processes of a local cluster; by default the cores that this process may use.
        memory: Bytes that a local cluster keeps for shards and results; what does not fit is put
            on the disk. By default a third of the machine's memory.
        retries: How often a lost task is done again.

    Raises:
        InputError: A number makes no sense.
        MissingExtraError: Ray is not installed.

    A local cluster asks for a token that is drawn for it, and reports no usage; Ray's processes
    listen on the machine's network addresses too. The token of a cluster that is joined is in the
    environment: in RAY_AUTH_TOKEN, or in the file RAY_AUTH_TOKEN_PATH.
    """

    def __init__(
        self, address: str = LOCAL, *, n_workers: int | None = None, memory: int | None = None,
        retries: int = 3,
    ) -> None:  # fmt: skip
        if n_workers is not None and (not isinstance(n_workers, int) or n_workers < 1):
            raise InputError(f"the number of processes must be at least 1, not {n_workers!r}")
        if n_workers is not None and address != LOCAL:
            raise InputError(
                f"the number of processes (--threads) is for a local cluster: {address} has its own"
            )
        if not isinstance(retries, int) or retries < 0:
            raise InputError(f"the number of retries must be at least 0, not {retries!r}")
        if memory is not None and memory < LEAST_MEMORY:
            raise InputError(f"memory must be at least {LEAST_MEMORY} bytes, not {memory!r}")
        if find_spec("ray") is None:
            raise MissingExtraError("ray", "cluster", "the runner ray")
        self.address, self.n_workers, self.retries = address, n_workers, retries
        self._memory = memory
        self._kept: dict[tuple[int, ...], tuple[list[weakref.ref[Any]], Any]] = {}
        self._ray: Any = None
        self._is_ours, self._is_closed, self._slots = False, False, 1

    @property
    def here(self) -> Threads:
        """Threads of this process, for work on what it holds and should not send."""
        return Threads(self.n_workers)

    def map(
        self, fn: Callable[[Shard, Params], Statistics], shards: Sequence[Shard], params: Params
    ) -> list[Statistics]:
        """Call `fn` on every shard; the results are in the order of the shards."""
        if not self._joins() or not len(shards):
            return Serial().map(fn, shards, params)
        groups = self._groups(shards, fn)
        with self._tasks() as tasks:
            given = self._ray.put(params)
            parts = tasks.bounded(_each, ((fn, given, group) for group in groups))
            return [one for part in tasks.get(list(parts)) for one in part]

    def map_reduce(
        self,
        fn: Callable[[Shard, Params], Statistics],
        shards: Sequence[Shard],
        params: Params,
        merge: Callable[[Statistics, Statistics], Statistics],
    ) -> Statistics:
        """Call `fn` on every shard and merge in the fixed tree, on the workers."""
        if not self._joins() or not len(shards):
            return Serial().map_reduce(fn, shards, params, merge)
        # A group is a whole subtree, so that merging within and then between them is the tree.
        groups = self._groups(shards, fn)
        with self._tasks() as tasks:
            given = self._ray.put(params)
            parts = tasks.bounded(_fold, ((fn, merge, given, group) for group in groups))
            left = list(tasks.joined(merge, parts))
            while len(left) > 1:
                left = list(tasks.joined(merge, left))
            found: Statistics = tasks.get(left[0])
            return found

    def close(self) -> None:
        """End a local cluster, or leave another; then work is done in this thread."""
        ray, self._ray, self._is_closed = self._ray, None, True
        self._kept.clear()
        if ray is not None and self._is_ours:
            ray.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[type[Serial], tuple[()]]:
        """Pickle as a runner of one thread, which gives the same bits."""
        return Serial, ()

    def __repr__(self) -> str:
        """Return where."""
        own = f", n_workers={self.n_workers}" if self.n_workers else ""
        return f"Ray({self.address!r}{own})"

    def _joins(self) -> bool:
        """Start or join the cluster at the first call; return False once closed."""
        if self._is_closed:
            return False
        if self._ray is None:
            self._ray, self._is_ours = _connect(self.address, self.n_workers, self._memory)
            self._slots = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        return True

    @contextmanager
    def _tasks(self) -> Iterator[_Tasks]:
        """Give tasks, and end those that run when it ends by an error or Ctrl-C."""
        tasks = _Tasks(self._ray, self.retries, AHEAD * self._slots)
        try:
            yield tasks
        except BaseException:
            tasks.cancel()
            raise

    def _groups(self, shards: Sequence[Shard], fn: Any) -> Iterator[Any]:
        """Yield groups of shards that were sent, a power of two in each."""
        _check(fn)
        size = 1
        while 2 * size * GROUPS * self._slots <= len(shards):
            size *= 2
        for first in range(0, len(shards), size):
            yield self._put(shards[first : first + size])

    def _put(self, group: Sequence[Any]) -> Any:
        """Send some shards as one object, unless they were sent."""
        # What no weak reference can follow is sent every time
        key = tuple(map(id, group))
        if key in self._kept:
            return self._kept[key][1]
        sent = self._ray.put(list(group))
        with suppress(TypeError):
            follow = [weakref.ref(one, lambda _: self._kept.pop(key, None)) for one in group]
            self._kept[key] = follow, sent
        return sent


@contextmanager
def working(name: str | None = None, n_workers: int | None = None) -> Iterator[Threads | Ray]:
    """Give the runner of a name, and close it at the end.

    Args:
        name: "threads" (the default) or "threads(2)", "ray" for a cluster on this machine, or
            "ray(ADDRESS)".
        n_workers: Threads, or processes of a local cluster; by default one per core.

    Raises:
        InputError: There is no such runner, or it has a number of workers of its own.
        MissingExtraError: Ray is not installed.

    >>> with working("threads", 2) as runner:
    ...     runner.map(lambda shard, power: shard**power, [1, 2, 3], 2)
    [1, 4, 9]
    """
    found = re.fullmatch(RUNNER, name or "threads")
    if found is None:
        raise UnknownNameError(
            "runner", name or "", ("threads", "threads(2)", "ray", "ray(ADDRESS)")
        )
    if found[0].startswith("threads"):
        if found["n"] and n_workers is not None:
            raise InputError(f"{name} says how many threads: leave out --threads {n_workers}")
        yield Threads(int(found["n"]) if found["n"] else n_workers)
        return
    with Ray(found["address"] or LOCAL, n_workers=n_workers) as runner:
        yield runner


class _Tasks:
    """The tasks of one call."""

    def __init__(self, ray: Any, retries: int, most: int) -> None:
        self._ray, self._most = ray, most
        self._call = ray.remote(num_cpus=1, max_retries=retries)(_call)
        self._running: list[Any] = []

    def bounded(self, fn: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Start one task after the other, and wait where too many are not done."""
        for given in calls:
            if len(self._running) >= self._most:
                # Without what is done: a reference here would keep its result in memory.
                _, self._running = self._ray.wait(
                    self._running, num_returns=len(self._running) // 2, fetch_local=False
                )
            self._running.append(self._call.remote(fn, *given))
            yield self._running[-1]

    def joined(self, merge: Callable[..., Any], parts: Iterable[Any]) -> Iterator[Any]:
        """Start merging results, some at a time, as soon as they are there."""
        every = iter(parts)
        while some := list(islice(every, FAN)):
            yield some[0] if len(some) == 1 else self._call.remote(_join, merge, *some)

    def get(self, results: Any) -> Any:
        """Wait for results, and raise the error of a shard as if it had happened here."""
        lost = self._ray.exceptions
        try:
            return self._ray.get(results)
        except lost.RayTaskError as error:
            raise _cause(error) from None
        except lost.RayError as error:
            first = str(error).strip().partition("\n")[0]
            raise GoldspanError(f"the cluster could not do a part of the work: {first}") from error

    def cancel(self) -> None:
        """End what runs and what waits: a kernel may finish, and after a while is killed."""
        # Merging is left alone
        running, self._running = self._running[::-1], []
        if not running:
            return
        every = len(running)
        _, running = self._ray.wait(running, num_returns=every, timeout=SETTLE, fetch_local=False)
        for one in running:
            self._ray.cancel(one)
        if running:
            every = len(running)
            _, running = self._ray.wait(
                running, num_returns=every, timeout=GRACE, fetch_local=False
            )
        for one in running:
            self._ray.cancel(one, force=True)


def _call(fn: Callable[..., Any], *given: Any) -> Any:
    return fn(*given)


def _each(fn: Callable[[Any, Any], Any], params: Any, shards: Sequence[Any]) -> list[Any]:
    return [fn(shard, params) for shard in shards]


def _fold(
    fn: Callable[[Any, Any], Any], merge: Callable[[Any, Any], Any], params: Any,
    shards: Sequence[Any],
) -> Any:  # fmt: skip
    return merge_in_order((fn(shard, params) for shard in shards), merge)


def _join(merge: Callable[[Any, Any], Any], *parts: Any) -> Any:
    return merge_in_order(parts, merge)


def _check(fn: Any) -> None:
    """Refuse a function that another process cannot find by its name."""
    if "<" in getattr(fn, "__qualname__", "<"):
        raise InputError(f"{fn!r}: a cluster runs functions of modules only")


def _cause(error: Any) -> BaseException:
    """Return what happened on a worker."""
    cause: BaseException = getattr(error, "cause", None) or error
    if isinstance(cause, ModuleNotFoundError) and cause.name == "goldspan":
        return GoldspanError("goldspan is not installed on a machine of the cluster")
    if type(cause).__name__ == "RaySystemError":  # it could not even read what it was sent
        first = str(cause).strip().partition("\n")[0]
        return GoldspanError(
            f"a machine of the cluster cannot work ({first}): does it have this goldspan?"
        )
    return cause


def _connect(address: str, n_workers: int | None, memory: int | None) -> tuple[Any, bool]:
    """Start or join a cluster; return Ray, and whether it is to be left at the end."""
    settings: dict[str, Any] = {
        "address": address, "log_to_driver": False, "logging_level": logging.ERROR,
    }  # fmt: skip
    quiet = {
        "RAY_USAGE_STATS_ENABLED": "0",  # no reports to Ray's makers
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # the future default; else a warning
    }
    if address == LOCAL:
        settings |= {
            "num_cpus": n_workers or usable_cores(), "object_store_memory": memory,
            "include_dashboard": False,
        }  # fmt: skip
        # Ray lets its processes wait for all others: on a busy machine they would hardly run.
        quiet["RAY_worker_niceness"] = "0"
        if "ray" not in sys.modules and "RAY_AUTH_MODE" not in os.environ:
            quiet |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    for name, value in quiet.items():
        os.environ.setdefault(name, value)
    import ray

    if ray.is_initialized():  # by the caller, who ends it too
        return ray, False
    for left in reversed(range(STARTS if address == LOCAL else 1)):
        try:
            ray.init(**settings)
        except Exception as error:  # Ray raises all sorts, and plain ones where it is too slow
            ray.shutdown()
            if left:
                continue
            first = str(error).strip().partition("\n")[0]
            raise GoldspanError(f"cannot use the Ray cluster {address!r}: {first}") from error
        break
    return ray, True
