"""Greedy coverage with weights and costs: a heap of gains, most of them out of date.

Gains only fall, so the item on top whose gain is still true is the best of all (Minoux 1978). The
sums are taken in the order of an item's values: a sum over fewer of them is never larger, not even
by rounding, so that this is the plain greedy algorithm to the bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldspan._kernel import kernel


@kernel
def sink(keys: NDArray[np.float64], ranks: NDArray[np.int32], size: int, at: int) -> None:
    """Let an entry of a heap sink to its place: the largest key on top, then the lowest rank.

    Args:
        keys: float64 [size or more]; changed.
        ranks: int32, the same length; changed.
        size: Of the heap.
        at: The entry's place.
    """
    key, rank = keys[at], ranks[at]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        right = child + 1
        if right < size and (
            keys[right] > keys[child]
            or (keys[right] == keys[child] and ranks[right] < ranks[child])
        ):
            child = right
        if key > keys[child] or (key == keys[child] and rank < ranks[child]):
            break
        keys[at], ranks[at] = keys[child], ranks[child]
        at = child
    keys[at], ranks[at] = key, rank


@kernel
def pick_weighted(
    bounds: NDArray[np.int64],
    ids: NDArray[np.int32],
    weights: NDArray[np.float64],
    shares: NDArray[np.float64],
    spend: NDArray[np.float64],
    left: float,
    order: NDArray[np.int64],
    need: NDArray[np.int32],
    is_out: NDArray[np.bool_],
    picked: NDArray[np.int64],
    gains: NDArray[np.float64],
    why: NDArray[np.int32],
) -> tuple[int, float, bool]:
    """Pick by gain per cost until no item brings anything, fits, or there is no more room.

    Args:
        bounds: int64 [n_items + 1].
        ids: int32 [nnz], the values of every item.
        weights: float64 [n_values], not negative.
        shares: float64 [n_items], what a gain is divided by, positive.
        spend: float64 [n_items], what an item takes from the budget.
        left: Of the budget.
        order: int64 [n_items], the permutation that decides ties.
        need: int32 [n_values], how often a value is still needed; changed.
        is_out: bool [n_items], items that cannot be picked (any more); changed.
        picked: int64 [most], written.
        gains: float64 [most], written.
        why: int32 [most], the weightiest value that was needed; written.

    Returns:
        How many were picked, what is left of the budget, and whether an item with a gain did not
        fit.
    """
    n_items, most = len(bounds) - 1, len(picked)
    keys = np.empty(n_items)
    ranks = np.empty(n_items, np.int32)
    size, n, is_tight = 0, 0, False
    for rank in range(n_items):
        item = order[rank]
        if is_out[item]:
            continue
        gain = 0.0
        for place in range(bounds[item], bounds[item + 1]):
            if need[ids[place]] > 0:
                gain += weights[ids[place]]
        if gain > 0:
            keys[size], ranks[size] = gain / shares[item], rank
            size += 1
    for at in range(size // 2 - 1, -1, -1):
        sink(keys, ranks, size, at)
    while size > 0 and n < most:
        item = order[ranks[0]]
        gain = 0.0
        for place in range(bounds[item], bounds[item + 1]):
            if need[ids[place]] > 0:
                gain += weights[ids[place]]
        key = gain / shares[item]
        fits = spend[item] <= left
        if gain > 0 and not fits:
            is_tight = True
        if gain > 0 and fits and key < keys[0]:
            keys[0] = key
            sink(keys, ranks, size, 0)
            continue
        size -= 1
        keys[0], ranks[0] = keys[size], ranks[size]
        sink(keys, ranks, size, 0)
        if gain <= 0 or not fits:
            continue
        is_out[item] = True
        left -= spend[item]
        picked[n], gains[n], why[n] = item, gain, -1
        heaviest = 0.0
        for place in range(bounds[item], bounds[item + 1]):
            value = ids[place]
            if need[value] > 0:
                if weights[value] > heaviest:
                    heaviest, why[n] = weights[value], value
                need[value] -= 1
        n += 1
    return n, left, is_tight
