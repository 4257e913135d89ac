"""One item against one sieve: is what it brings worth its cost?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldspan._kernel import kernel


@kernel
def sift(
    bounds: NDArray[np.int64],
    ids: NDArray[np.int32],
    weights: NDArray[np.float64],
    cost: NDArray[np.float64],
    w: int,
    density: float,
    counts: NDArray[np.int32],
    state: NDArray[np.float64],
    kept: NDArray[np.int64],
) -> int:
    """Let items pass a sieve, one after the other.

    Args:
        bounds: int64 [n_items + 1].
        ids: int32 [nnz].
        weights: float64 [n_values].
        cost: float64 [n_items], positive.
        w: How often every value is to be covered.
        density: Least gain per cost.
        counts: int32 [n_values], how often the sieve's items cover every value; changed.
        state: float64 [2], what is left of the budget, and f; changed.
        kept: int64 [n_items], written: the items that stay.

    Returns:
        How many stay.
    """
    n = 0
    for item in range(len(bounds) - 1):
        if cost[item] > state[0]:
            continue
        gain = 0.0
        for place in range(bounds[item], bounds[item + 1]):
            if counts[ids[place]] < w:
                gain += weights[ids[place]]
        if gain > 0 and gain >= density * cost[item]:
            for place in range(bounds[item], bounds[item + 1]):
                counts[ids[place]] += 1
            state[0] -= cost[item]
            state[1] += gain
            kept[n] = item
            n += 1
    return n
