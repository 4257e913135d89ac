"""Equal runs of two sequences: what `difflib` finds, in near linear time on long inputs.

`difflib` compares small sequences. Of large ones, what they share at both ends is taken, and runs
that occur exactly once on both sides split the rest (a patience diff); what has no such run, and is
too large for `difflib`, stays unmatched.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from typing import NamedTuple

SMALL = 1 << 16
"""Product of lengths up to which `difflib` is used at once: 256 by 256."""
LARGE = 1 << 20
"""Product of lengths up to which `difflib` is used where nothing splits the sequences."""
RUNS = (16, 8, 4, 2, 1)
"""Lengths of the runs that split; long ones are the most certain."""


class Block(NamedTuple):
    """`a[i : i + size] == b[j : j + size]`."""

    i: int
    j: int
    size: int


def match(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[Block]:
    """Find equal runs of two sequences, in order and without overlap.

    >>> match(["the", "Africans", "won"], ["the", "Africa", "ns", "won"])
    [Block(i=0, j=0, size=1), Block(i=2, j=3, size=1)]
    """
    blocks: list[Block] = []
    stack = [(0, len(a), 0, len(b))]
    while stack:
        i, i_end, j, j_end = stack.pop()
        if (i_end - i) * (j_end - j) > SMALL:
            head = _common(a, b, i, j, min(i_end - i, j_end - j), step=1)
            i, j = i + head, j + head
            tail = _common(a, b, i_end - 1, j_end - 1, min(i_end - i, j_end - j), step=-1)
            i_end, j_end = i_end - tail, j_end - tail
            blocks += [Block(i - head, j - head, head), Block(i_end, j_end, tail)]
        inner, rest = _split(a[i:i_end], b[j:j_end])
        blocks += [Block(i + di, j + dj, size) for di, dj, size in inner]
        stack += [(i + p, i + q, j + r, j + s) for p, q, r, s in rest]
    return sorted(block for block in blocks if block.size)


def _common(
    a: Sequence[Hashable], b: Sequence[Hashable], i: int, j: int, limit: int, *, step: int
) -> int:
    """Count the equal elements from (i, j) on, forwards or backwards, at most `limit`."""
    return sum(1 for _ in takewhile(lambda n: a[i + n] == b[j + n], range(0, limit * step, step)))


def _split(
    a: Sequence[Hashable], b: Sequence[Hashable]
) -> tuple[list[Block], list[tuple[int, int, int, int]]]:
    """Match two sequences, or split them into pairs of slices that are still to be matched."""
    product = len(a) * len(b)
    if product > SMALL:
        for size in RUNS:
            anchors = _anchors(a, b, size)
            if anchors:
                starts = [(0, 0), *((i + 1, j + 1) for i, j in anchors)]
                ends = [*anchors, (len(a), len(b))]
                between = zip(starts, ends, strict=True)
                rest = [(p, q, r, s) for (p, r), (q, s) in between if p < q and r < s]
                return [Block(i, j, 1) for i, j in anchors], rest
    if product > LARGE:
        return [], []
    found = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    return [Block(*block) for block in found], []


def _anchors(a: Sequence[Hashable], b: Sequence[Hashable], size: int) -> list[tuple[int, int]]:
    """Pair the runs of `size` elements that occur once in both, as many as keep their order."""
    once_a, once_b = dict(_once(a, size)), dict(_once(b, size))
    pairs = [(i, once_b[run]) for run, i in once_a.items() if run in once_b]
    return _longest_rise(sorted(pairs))


def _once(sequence: Sequence[Hashable], size: int) -> Iterator[tuple[Hashable, int]]:
    """Yield the runs that occur exactly once, with their starts."""
    places: dict[Hashable, int] = {}
    for start in range(len(sequence) - size + 1):
        run = tuple(sequence[start : start + size])
        places[run] = -1 if run in places else start
    return ((run, start) for run, start in places.items() if start >= 0)


def _longest_rise(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Keep the most pairs, sorted by their first numbers, whose second numbers rise too."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for n, (_, j) in enumerate(pairs):
        rank = bisect_left(ends, j)
        before.append(last[rank - 1] if rank else -1)
        ends[rank : rank + 1] = [j]
        last[rank : rank + 1] = [n]
    kept = []
    n = last[-1] if last else -1
    while n >= 0:
        kept.append(pairs[n])
        n = before[n]
    return kept[::-1]
