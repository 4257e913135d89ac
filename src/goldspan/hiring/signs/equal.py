"""Equal answers to the same item, and what the others say, the worker's own answer left out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd import Crowd

_STEP, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


class Groups(NamedTuple):
    """Answers to an item that are equal in every label.

    Attributes:
        of: int64 [n_answers], the group of every answer of `crowd.latest`.
        size: int64 [n_groups], answers in it.
        item: int64 [n_groups].
        key: uint64 [n_groups], the same for equal labels, whatever the item.
        best: int64 [n_items, 3], the three largest groups of every item, -1 for none.
    """

    of: NDArray[np.int64]
    size: NDArray[np.int64]
    item: NDArray[np.int64]
    key: NDArray[np.uint64]
    best: NDArray[np.int64]


def equal_answers(crowd: Crowd) -> Groups:
    """Group the answers that count by item and labels."""
    answers = crowd.latest
    key = sequence_keys(answers.codes, answers.offset)
    order = np.lexsort((key, answers.item))
    item, sorted_key = answers.item[order], key[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (item[1:] != item[:-1]) | (sorted_key[1:] != sorted_key[:-1])
    of = np.empty(len(order), np.int64)
    of[order] = np.cumsum(fresh) - 1
    size = np.bincount(of, minlength=int(fresh.sum()))
    first = np.flatnonzero(fresh)
    items = item[first].astype(np.int64)
    return Groups(of, size, items, sorted_key[first], _largest(items, size, crowd.n_items))


def sequence_keys(codes: NDArray[np.int16], offset: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Give every sequence a number that equal sequences share, uint64 [n].

    A sum of SplitMix64 hashes of (place, code): two different ones are equal once in 2^64.
    """
    place = np.arange(len(codes)) - np.repeat(offset[:-1], np.diff(offset))
    with np.errstate(over="ignore"):
        mixed = ((place << 16) + codes + 2).astype(np.uint64) * _STEP
        mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIX
        mixed ^= mixed >> np.uint64(27)
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
        return np.asarray(sums[offset[1:]] - sums[offset[:-1]])


def _largest(items: NDArray[np.int64], size: NDArray[np.int64], n_items: int) -> NDArray[np.int64]:
    order = np.lexsort((-size, items))
    begin = np.searchsorted(items[order], np.arange(n_items + 1))
    best = np.full((n_items, 3), -1, np.int64)
    for rank in range(3):
        there = begin[:-1] + rank < begin[1:]
        best[there, rank] = order[begin[:-1][there] + rank]
    return best


def others_choice(
    item: NDArray[np.int64], group: NDArray[np.int64], size: NDArray[np.int64],
    best: NDArray[np.int64],
) -> NDArray[np.int64]:  # fmt: skip
    """Say which group most others are in, [n]; -1 where several are as large, or nobody is there.

    What is left out is one answer of `group`, so that the choice does not depend on it.

    Args:
        item: int64 [n].
        group: int64 [n], the group of the answer that is left out.
        size: int64 [n_groups].
        best: int64 [n_items, 3].
    """
    rows = best[item]
    sizes = np.where(rows >= 0, size[rows], 0) - (rows == group[:, None])
    top = sizes.argmax(axis=1)
    at = np.arange(len(rows))
    most = sizes[at, top]
    alone = (sizes == most[:, None]).sum(axis=1) == 1
    return np.where(alone & (most > 0), rows[at, top], -1)
