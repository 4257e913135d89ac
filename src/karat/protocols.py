"""The small agreements between rooms: where work runs, who is told of it, where state is kept.

The mathematics imports neither the rooms that run work nor those that store it: an object with one
of these faces is handed in. `Serial` is the plainest of them, and what is used when none is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

Shard = TypeVar("Shard")
Params = TypeVar("Params")
Statistics = TypeVar("Statistics")


class Runner(Protocol):
    """Where work runs: this thread, several threads, a cluster.

    Whatever it is, the statistics of the shards are merged in the same pairwise tree by shard
    number (`merge_in_order`), so that the bits of the result depend on the shards alone.
    """

    def map(
        self, fn: Callable[[Shard, Params], Statistics], shards: Sequence[Shard], params: Params
    ) -> list[Statistics]:
        """Call `fn` on every shard; the results stand in the order of the shards."""
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
    """Who is told how far iterative work is."""

    def __call__(self, done: int, total: int, objective: float, seconds_left: float) -> None:
        """Hear that step `done` of at most `total` is over."""
        ...


class Checkpoint(Protocol):
    """Where the state of iterative work is kept."""

    def load(self, fingerprint: str) -> Mapping[str, Any] | None:
        """Give the last state, None if there is none.

        Raises:
            InputError: What is there belongs to another run, or is damaged.
        """
        ...

    def save(self, fingerprint: str, state: Mapping[str, Any]) -> None:
        """Keep a state in place of the last one."""
        ...


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
