"""Protocols between packages: where work runs, who hears of its progress, where state is kept.

The mathematics imports neither the packages that run work nor those that store it: an object with
one of these protocols is handed in. `Serial` is the simplest runner, and the default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

Shard = TypeVar("Shard")
Params = TypeVar("Params")
Statistics = TypeVar("Statistics")


RUNNER = r"threads(\((?P<n>[1-9][0-9]{0,4})\))?|ray(\((?P<address>[^()]+)\))?"
"""How a runner is named: threads, threads(2), ray, ray(ADDRESS); `goldspan.runners.working`."""


class Runner(Protocol):
    """Where work runs: this thread, several threads, a cluster.

    The statistics of the shards are always merged in the same pairwise tree by shard number
    (`merge_in_order`), so that the bits of the result depend on the shards alone.
    """

    def map(
        self, fn: Callable[[Shard, Params], Statistics], shards: Sequence[Shard], params: Params
    ) -> list[Statistics]:
        """Call `fn` on every shard; the results are in the order of the shards."""
        ...

    def map_reduce(
        self,
        fn: Callable[[Shard, Params], Statistics],
        shards: Sequence[Shard],
        params: Params,
        merge: Callable[[Statistics, Statistics], Statistics],
    ) -> Statistics:
        """Call `fn` on every shard and merge the results in the fixed tree."""
        ...


class Progress(Protocol):
    """Who hears how far iterative work has come."""

    def __call__(self, done: int, total: int, objective: float, seconds_left: float) -> None:
        """Report that step `done` of at most `total` is over."""
        ...


class Checkpoint(Protocol):
    """Where the state of iterative work is kept."""

    def load(self, fingerprint: str) -> Mapping[str, Any] | None:
        """Return the last state, None if there is none.

        Raises:
            InputError: What is there belongs to another run, or is damaged.
        """
        ...

    def save(self, fingerprint: str, state: Mapping[str, Any]) -> None:
        """Keep a state in place of the last one."""
        ...


@dataclass(frozen=True)
class PoolItem:
    """An item of a campaign's pool."""

    id: str  # Its id
    tokens: tuple[str, ...]  # Its tokens; one for a single label
    cost: int = 0  # What one answer to it costs, in millionths of the currency unit
    group: str | None = None  # The document that it is part of
    text: str | None = None  # The text that the tokens were cut from
    token_start: tuple[int, ...] | None = None  # First character of every token in the text
    # Other facts about it, of values that JSON can hold
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Lease:
    """An item that is assigned to a worker for a time."""

    item: str  # Id of the item
    worker: str  # Id of the worker
    tokens: tuple[str, ...]  # The tokens to label
    taken: int  # When it was assigned, in milliseconds since 1970
    expires: int  # When the assignment ends, in milliseconds since 1970
    cost: int  # The money reserved for it, in millionths of the currency unit


class Suggestion(NamedTuple):
    """What a worker was to see of an item before the answer, and whether it was shown."""

    item: str  # Id of the item
    worker: str  # Id of the worker
    by: str  # Whose labels these are: another worker's id, or "consensus"
    labels: Any  # One per token, or by layer; None where nobody had any yet
    shown: bool  # Whether the worker saw them; else the answer is blind


@dataclass(frozen=True)
class Receipt:
    """What became of an answer; the same for the same key, however often it is sent."""

    key: str  # The key that it was sent under
    # "accepted": it counts and is paid. "late": it came without a valid assignment, and counts and
    # is paid, since a place was free. "draft": it is kept, and neither counts nor is paid.
    # "duplicate": so too, since the worker's first answer counts already. "conflict": another
    # answer was sent under this key before; nothing was kept. "changed": it counts in place of the
    # worker's earlier answer; nothing more is paid.
    status: str
    cost: int = 0  # What is paid for it, in millionths of the currency unit
    reason: str = ""  # Why it does not count, in words for the worker; "" if it does
    # Whether this is the reply to a repetition
    repeated: bool = field(default=False, compare=False)

    @property
    def counts(self) -> bool:
        """Whether the answer counts."""
        return self.status in {"accepted", "late", "changed"}


@dataclass(frozen=True)
class Totals:
    """The money of a campaign, in millionths of the currency unit."""

    currency: str  # Its unit
    cap: int  # What may be spent
    reserved: int  # Set aside for answers that are being given
    spent: int  # Paid

    @property
    def left(self) -> int:
        """What can still be reserved."""
        return self.cap - self.reserved - self.spent


@dataclass(frozen=True)
class Event:
    """One entry of a campaign's log."""

    number: int  # 1, 2, …
    time: int  # When it happened, in milliseconds since 1970
    kind: str  # What happened
    body: Mapping[str, Any]  # The facts
    hash: str  # Of this entry and the hash of the one before, in hexadecimal digits


class Price(NamedTuple):
    """What a worker is paid for an answer, in millionths, where it is not what the item costs."""

    answer: int  # For the answer
    token: int = 0  # For each token of the item


class Serial:
    """A `Runner` that does one shard after the other."""

    def map(
        self, fn: Callable[[Shard, Params], Statistics], shards: Sequence[Shard], params: Params
    ) -> list[Statistics]:
        """Call `fn` on every shard."""
        return [fn(shard, params) for shard in shards]

    def map_reduce(
        self,
        fn: Callable[[Shard, Params], Statistics],
        shards: Sequence[Shard],
        params: Params,
        merge: Callable[[Statistics, Statistics], Statistics],
    ) -> Statistics:
        """Call `fn` on every shard and merge as soon as the tree allows."""
        return merge_in_order((fn(shard, params) for shard in shards), merge)


def here(runner: Runner) -> Runner:
    """Return the runner for work on what this process holds and should not send: its threads."""
    return getattr(runner, "here", None) or Serial()


def merge_in_order(
    results: Iterable[Statistics], merge: Callable[[Statistics, Statistics], Statistics]
) -> Statistics:
    """Merge results in a fixed pairwise tree, as they come in order.

    The tree joins equals: 0 and 1, 2 and 3, then the two pairs, and so on; what is left over at
    the end is joined from the right. At no time more than log2(n) + 1 results are kept.

    Raises:
        ValueError: There is no result.

    >>> merge_in_order(["a", "b", "c", "d", "e"], lambda x, y: f"({x}{y})")
    '(((ab)(cd))e)'
    """
    stack: list[tuple[int, Statistics]] = []
    for result in results:
        size, value = 1, result
        while stack and stack[-1][0] == size:
            size, value = 2 * size, merge(stack.pop()[1], value)
        stack.append((size, value))
    if not stack:
        raise ValueError("there is nothing to merge")
    value = stack.pop()[1]
    while stack:
        value = merge(stack.pop()[1], value)
    return value


# --------------------------------------------------------------------------------------------------
# Who is told that kernels are compiled, which takes up to a minute, once on a machine. Kernels live
# where Numba is imported, and who is told must not import it: they meet here.


listeners: list[Callable[[bool], None]] = []
"""Are told True when the compilation of a kernel begins that no cache has, False when it ends."""


def tell(*, begins: bool) -> None:
    """Tell all listeners."""
    for listener in listeners:
        listener(begins)
