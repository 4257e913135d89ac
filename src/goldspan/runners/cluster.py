"""Processes of this machine, or of many, by way of Ray (the extra `cluster`)."""

from __future__ import annotations

import logging
import os
import pickle
import re
import secrets
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import islice, pairwise
from typing import Any, NamedTuple, Self, TypeVar

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
SMALL = 64_000
"""Bytes of parameters that go along with every call, and not by way of Ray's memory."""
HELD = 4
"""Processes that stay hold shards of up to one part in so many of Ray's memory."""
AHEAD = 8
"""Most tasks per worker that are handed out and not done: what they return takes memory."""


class Ray:
    """A `Runner` on processes, of this machine or of several; the bits are those of one thread.

    The cluster is started, or joined, at first use. Shards are sent once, for as long as they live
    here; parameters once per call. Statistics are merged where they were made, in the tree of one
    thread. In a local cluster there are processes that stay, hold their shards, and get one call a
    step each; where one of them is lost, or shards are too large to be held, the step is done as
    tasks. Those that are lost with their process or machine are done again. After `close`, or
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
        dashboard: Whether a local cluster serves Ray's dashboard on this machine.

    Raises:
        InputError: A number makes no sense.
        MissingExtraError: Ray is not installed.

    A local cluster asks for a token that is drawn for it, and reports no usage; Ray's processes
    listen on the machine's network addresses too. The token of a cluster that is joined is in the
    environment: in RAY_AUTH_TOKEN, or in the file RAY_AUTH_TOKEN_PATH.
    """

    def __init__(
        self, address: str = LOCAL, *, n_workers: int | None = None, memory: int | None = None,
        retries: int = 3, dashboard: bool = False,
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
        self._memory, self._dashboard = memory, dashboard
        self._kept: dict[tuple[int, ...], tuple[list[weakref.ref[Any]], _Sent]] = {}
        self._ray: Any = None
        self._crew: _Crew | None = None
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
        groups = list(self._groups(shards, fn))
        if (crew := self._crew_for(groups)) is not None:
            with suppress(_LostError), self._ending():
                return crew.map(fn, groups, params)
        with self._tasks() as tasks:
            given = self._ray.put(params)
            parts = tasks.bounded(_each, ((fn, given, group.ref) for group in groups))
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
        groups = list(self._groups(shards, fn))
        if (crew := self._crew_for(groups)) is not None:
            with suppress(_LostError), self._ending():
                whole: Statistics = crew.map_reduce(fn, groups, params, merge)
                return whole
        with self._tasks() as tasks:
            given = self._ray.put(params)
            parts = tasks.bounded(_fold, ((fn, merge, given, group.ref) for group in groups))
            left = list(tasks.joined(merge, parts))
            while len(left) > 1:
                left = list(tasks.joined(merge, left))
            found: Statistics = tasks.get(left[0])
            return found

    def close(self) -> None:
        """End a local cluster, or leave another; then work is done in this thread."""
        ray, self._ray, self._is_closed = self._ray, None, True
        self._crew = None
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
            self._ray, self._is_ours = _connect(
                self.address, self.n_workers, self._memory, self._dashboard
            )
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

    def _crew_for(self, groups: Sequence[_Sent]) -> _Crew | None:
        """Return the processes that stay; None where they are not to hold these shards."""
        # What is held stays in the memory of a machine: it cannot be put on the disk
        if not self._is_ours:
            return None
        memory = self._ray.cluster_resources().get("object_store_memory", 0)
        if HELD * sum(group.n_bytes for group in groups) > memory:
            return None
        if self._crew is None:
            self._crew = _Crew(self._ray, self._slots)
        return self._crew

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """End the processes that stay where a call does not end as it should."""
        try:
            yield
        except BaseException as error:
            crew, self._crew = self._crew, None
            if crew is not None:
                crew.end(0.0 if isinstance(error, _LostError) else GRACE)
            raise

    def _groups(self, shards: Sequence[Shard], fn: Any) -> Iterator[_Sent]:
        """Yield groups of shards that were sent, a power of two in each."""
        _check(fn)
        size = 1
        while 2 * size * GROUPS * self._slots <= len(shards):
            size *= 2
        for first in range(0, len(shards), size):
            yield self._put(shards[first : first + size])

    def _put(self, group: Sequence[Any]) -> _Sent:
        """Send some shards as one object, unless they were sent."""
        # What no weak reference can follow is sent every time
        key = tuple(map(id, group))
        if key in self._kept:
            return self._kept[key][1]
        n_bytes = _size(list(group)) if self._is_ours else 0
        sent = _Sent(self._ray.put(list(group)), n_bytes)
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


class _Sent(NamedTuple):
    """Shards that were sent as one object: where they are, and how large."""

    ref: Any
    n_bytes: int


def _size(value: Any) -> int:
    """Return the bytes of a value as it is sent, without a copy of its arrays."""
    buffers: list[pickle.PickleBuffer] = []
    try:
        words = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    except Exception:  # noqa: BLE001 - Ray sends more than pickle can
        return sys.maxsize
    return len(words) + sum(buffer.raw().nbytes for buffer in buffers)


class _LostError(Exception):
    """A process that stays was lost with what it held."""


class _Member:
    """A process that stays, and the groups of shards that it holds."""

    def __init__(self) -> None:
        self.groups: tuple[Sequence[Any], ...] = ()

    def hold(self, *groups: Sequence[Any]) -> None:
        """Hold these groups in place of others."""
        self.groups = groups

    def each(self, fn: Callable[[Any, Any], Any], params: Any) -> list[Any]:
        """Call a function on every shard."""
        return [fn(shard, params) for group in self.groups for shard in group]

    def fold(
        self, fn: Callable[[Any, Any], Any], merge: Callable[[Any, Any], Any], params: Any,
        first: int, every: int,
    ) -> list[_Part]:  # fmt: skip
        """Call a function on every shard, and merge what the tree of all groups allows here."""
        made = (merge_in_order((fn(s, params) for s in group), merge) for group in self.groups)
        parts = (_Part(start, 1, value) for start, value in enumerate(made, start=first))
        return _merged(parts, every, merge)

    def call(self, fn: Callable[..., Any], *given: Any) -> Any:
        """Call a function."""
        return fn(*given)


class _Part(NamedTuple):
    """What some groups were merged to: the first of them, how many, and the statistics."""

    start: int
    n: int
    value: Any


def _merged(parts: Iterable[_Part], every: int, merge: Callable[[Any, Any], Any]) -> list[_Part]:
    """Merge parts that follow each other as far as the tree of all groups allows."""
    found: list[_Part] = []
    for part in parts:
        found.append(part)
        while len(found) > 1 and (
            found[-2].n == found[-1].n and not found[-2].start % (2 * found[-1].n)
        ):
            found.append(_joined(found.pop(), found.pop(), merge))
    loose = {every >> k << k for k in range(every.bit_length() + 1)}
    while len(found) > 1 and found[-1].start + found[-1].n == every and (
        {found[-2].start, found[-1].start} <= loose
    ):  # fmt: skip
        found.append(_joined(found.pop(), found.pop(), merge))
    return found


def _joined(right: _Part, left: _Part, merge: Callable[[Any, Any], Any]) -> _Part:
    return _Part(left.start, left.n + right.n, merge(left.value, right.value))


def _whole(merge: Callable[[Any, Any], Any], every: int, *some: list[_Part]) -> Any:
    """Merge what all processes have merged of all groups."""
    (last,) = _merged((one for parts in some for one in parts), every, merge)
    return last.value


class _Crew:
    """Processes that stay, one for every core: a call is handed over in half of a task's time.

    They take no places of tasks, which are needed where one of them is lost.
    """

    def __init__(self, ray: Any, n: int) -> None:
        self._ray = ray
        made = ray.remote(num_cpus=0, max_restarts=0, max_task_retries=0)(_Member)
        self._members = [made.remote() for _ in range(n)]
        self._held: tuple[Any, ...] = ()
        self._running: list[Any] = []

    def map(self, fn: Callable[[Any, Any], Any], groups: Sequence[_Sent], params: Any) -> list[Any]:
        """Call a function on every shard."""
        shares, given = self._hold(groups), self._given(params)
        members = zip(self._members, shares, strict=True)
        calls = [member.each.remote(fn, given) for member, share in members if share]
        return [one for part in self._get(calls) for one in part]

    def map_reduce(
        self, fn: Callable[[Any, Any], Any], groups: Sequence[_Sent], params: Any,
        merge: Callable[[Any, Any], Any],
    ) -> Any:  # fmt: skip
        """Call a function on every shard and merge in the fixed tree."""
        shares, given, every = self._hold(groups), self._given(params), len(groups)
        members = zip(self._members, shares, strict=True)
        calls = [
            member.fold.remote(fn, merge, given, share.start, every)
            for member, share in members
            if share
        ]
        whole = self._members[0].call.remote(_whole, merge, every, *calls)
        return self._get([*calls, whole], only=whole)

    def end(self, seconds: float) -> None:
        """End the processes; what runs gets some seconds."""
        running, self._running = self._running, []
        if running and seconds:
            every = len(running)
            self._ray.wait(running, num_returns=every, timeout=seconds, fetch_local=False)
        for member in self._members:
            self._ray.kill(member)

    def _hold(self, groups: Sequence[_Sent]) -> list[range]:
        """Have every process hold its share of the groups; return which they are."""
        shares = _shares(len(groups), len(self._members))
        refs = tuple(group.ref for group in groups)
        if refs != self._held:
            for member, share in zip(self._members, shares, strict=True):
                member.hold.remote(*refs[share.start : share.stop])
            self._held = refs
        return shares

    def _given(self, params: Any) -> Any:
        """Return parameters as they are sent: once for all processes, if they are large."""
        return params if _size(params) <= SMALL else self._ray.put(params)

    def _get(self, calls: list[Any], only: Any = None) -> Any:
        """Wait for calls, and raise the error of a shard as if it had happened here."""
        lost, self._running = self._ray.exceptions, calls
        try:
            found = self._ray.get(calls if only is None else only)
        except lost.RayTaskError as error:
            cause = _cause(error)
            if isinstance(cause, lost.RayError):  # what another process had made is lost
                raise _LostError from error
            raise cause from None
        except lost.RayError as error:
            raise _LostError from error
        self._running = []
        return found


def _shares(n: int, n_members: int) -> list[range]:
    """Cut groups into shares of about equal size, at places where the tree has few loose ends."""
    step = 1
    while 4 * step * n_members <= n:
        step *= 2
    cuts = [round(k * n / n_members / step) * step for k in range(n_members)]
    return [range(a, b) for a, b in pairwise([*cuts, n])]


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


def _connect(
    address: str, n_workers: int | None, memory: int | None, dashboard: bool
) -> tuple[Any, bool]:
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
            "include_dashboard": dashboard,
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
