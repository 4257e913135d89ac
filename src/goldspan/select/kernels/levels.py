"""Greedy coverage where every value and every item counts alike: gains are integers that fall.

Items stand in buckets by gain. The highest bucket is walked in the order of the permutation; an
item whose gain has fallen since it was put there moves down, the others are picked. As no gain ever
rises, this is the plain greedy algorithm to the item. When a value needs no more, its list of items
is walked, once: all in all O(nnz).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldspan._kernel import kernel


@kernel
def pick_unweighted(
    bounds: NDArray[np.int64],
    ids: NDArray[np.int32],
    value_bounds: NDArray[np.int64],
    value_items: NDArray[np.int32],
    order: NDArray[np.int64],
    need: NDArray[np.int32],
    is_out: NDArray[np.bool_],
    picked: NDArray[np.int64],
    gains: NDArray[np.float64],
    why: NDArray[np.int32],
) -> int:
    """Pick until nothing is needed that an item has, or there is no more room.

    Args:
        bounds: int64 [n_items + 1].
        ids: int32 [nnz], the values of every item.
        value_bounds: int64 [n_values + 1].
        value_items: int32 [nnz], the items of every value.
        order: int64 [n_items], the permutation that decides ties.
        need: int32 [n_values], how often a value is still needed; changed.
        is_out: bool [n_items], items that cannot be picked (any more); changed.
        picked: int64 [most], written.
        gains: float64 [most], written.
        why: int32 [most], the first value that was needed; written.

    Returns:
        How many were picked.
    """
    n_items, most = len(bounds) - 1, len(picked)
    gain = np.zeros(n_items, np.int32)
    top = 0
    for item in range(n_items):
        if not is_out[item]:
            for place in range(bounds[item], bounds[item + 1]):
                if need[ids[place]] > 0:
                    gain[item] += 1
            top = max(top, gain[item])
    head = np.full(top + 1, -1, np.int32)
    behind = np.full(n_items, -1, np.int32)
    for rank in range(n_items - 1, -1, -1):
        level = gain[order[rank]]
        behind[rank] = head[level]
        head[level] = rank
    bucket = np.empty(n_items, np.int32)
    n = 0
    for level in range(top, 0, -1):
        size, rank = 0, head[level]
        is_sorted = True
        while rank >= 0:
            bucket[size] = rank
            is_sorted = is_sorted and (size == 0 or bucket[size - 1] < rank)
            size += 1
            rank = behind[rank]
        if not is_sorted:
            bucket[:size].sort()
        for b in range(size):
            if n == most:
                return n
            rank = bucket[b]
            item = order[rank]
            if gain[item] < level:
                behind[rank] = head[gain[item]]
                head[gain[item]] = rank
                continue
            is_out[item] = True
            picked[n], gains[n], why[n] = item, level, -1
            for place in range(bounds[item], bounds[item + 1]):
                value = ids[place]
                if need[value] <= 0:
                    continue
                if why[n] < 0:
                    why[n] = value
                need[value] -= 1
                if need[value] == 0:
                    for other in range(value_bounds[value], value_bounds[value + 1]):
                        gain[value_items[other]] -= 1
            n += 1
    return n
