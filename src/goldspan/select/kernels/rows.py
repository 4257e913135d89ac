"""Rows of a sparse matrix of ones: turned over, counted, compared."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldspan._kernel import kernel


@kernel
def turn_over(
    bounds: NDArray[np.int64],
    ids: NDArray[np.int32],
    value_bounds: NDArray[np.int64],
    value_items: NDArray[np.int32],
) -> None:
    """List the items of every value, in the order of the items.

    Args:
        bounds: int64 [n_items + 1].
        ids: int32 [nnz].
        value_bounds: int64 [n_values + 1].
        value_items: int32 [nnz], written.
    """
    at = value_bounds[:-1].copy()
    for item in range(len(bounds) - 1):
        for place in range(bounds[item], bounds[item + 1]):
            value = ids[place]
            value_items[at[value]] = item
            at[value] += 1


@kernel
def only_once(
    bounds: NDArray[np.int64], ids: NDArray[np.int32], n_values: int, kept: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Sort the values of every row and leave out what it holds twice.

    Args:
        bounds: int64 [n_items + 1].
        ids: int32 [nnz].
        n_values: Number of values.
        kept: int64 [n_items + 1], written: the new bounds.

    Returns:
        int32 [kept[-1]], the new values.
    """
    last = np.full(n_values, -1, np.int64)
    found = np.empty(len(ids), np.int32)
    n = 0
    kept[0] = 0
    for item in range(len(bounds) - 1):
        first = n
        for place in range(bounds[item], bounds[item + 1]):
            value = ids[place]
            if last[value] != item:
                last[value] = item
                found[n] = value
                n += 1
        found[first:n].sort()
        kept[item + 1] = n
    return found[:n].copy()


@kernel
def hash_rows(
    bounds: NDArray[np.int64], ids: NDArray[np.int32], hashes: NDArray[np.uint64]
) -> None:
    """Give rows of the same values the same number.

    Args:
        bounds: int64 [n_items + 1].
        ids: int32 [nnz], sorted within a row.
        hashes: uint64 [n_items], written.
    """
    for item in range(len(bounds) - 1):
        total = np.uint64(0xD1B54A32D192ED03)
        for place in range(bounds[item], bounds[item + 1]):
            total = (total ^ np.uint64(ids[place] + 1)) * np.uint64(0x9E3779B97F4A7C15)
            total ^= total >> np.uint64(32)
        hashes[item] = total


@kernel
def same_as_before(
    bounds: NDArray[np.int64],
    ids: NDArray[np.int32],
    order: NDArray[np.int64],
    hashes: NDArray[np.uint64],
    repeated: NDArray[np.bool_],
) -> None:
    """Mark every row that equals an earlier one of those with its hash.

    Args:
        bounds: int64 [n_items + 1].
        ids: int32 [nnz], sorted within a row.
        order: int64 [n], rows sorted by hash and then by what makes one stay.
        hashes: uint64 [n_items].
        repeated: bool [n_items], written.
    """
    first = 0
    for place in range(1, len(order)):
        item = order[place]
        if hashes[item] != hashes[order[first]]:
            first = place
            continue
        a, b = bounds[order[first]], bounds[item]
        length = bounds[item + 1] - b
        same = length == bounds[order[first] + 1] - a
        for n in range(length):
            same = same and ids[a + n] == ids[b + n]
        repeated[item] = same


@kernel
def row_sums(
    bounds: NDArray[np.int64],
    ids: NDArray[np.int32],
    weights: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> None:
    """Add up the weights of every row, in the order of its values.

    Args:
        bounds: int64 [n_items + 1].
        ids: int32 [nnz].
        weights: float64 [n_values].
        sums: float64 [n_items], written.
    """
    for item in range(len(bounds) - 1):
        total = 0.0
        for place in range(bounds[item], bounds[item + 1]):
            total += weights[ids[place]]
        sums[item] = total
