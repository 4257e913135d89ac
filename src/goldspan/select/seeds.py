"""The permutation that decides ties: by a hash of the seed and the item's id.

It does not depend on the order of the file, which biases what is picked (97–99 % of the steps of a
greedy coverage tie), and an item that joins or leaves the pool changes nothing for the others.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.errors import InputError
from goldspan.tagger.features import hash64

_STEP = np.uint64(0x9E3779B97F4A7C15)


def as_seed(random_state: int | np.random.Generator | None) -> int:
    """Take a seed, or draw one.

    Raises:
        InputError: It is no whole number, no generator and not None.
    """
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise InputError(
            f"random_state must be a whole number, a Generator or None, not {random_state!r}"
        )
    return int(random_state)


def keys_of(item_ids: pa.Array) -> NDArray[np.uint64]:
    """Give a number per id, uint64 [n_items], the same in every process."""
    return np.fromiter(map(hash64, item_ids.to_pylist()), np.uint64, count=len(item_ids))


def ranks_of(item_ids: pa.Array, seed: int, use: str) -> NDArray[np.int64]:
    """Give items in a random order, int64 [n_items]; of ties the first comes first.

    Args:
        item_ids: Arrow string array.
        seed: Of the order.
        use: What it is for; other uses have other orders.

    >>> ids = pa.array(["a", "b", "c"])
    >>> order, other = ranks_of(ids, 0, "ties"), ranks_of(ids[::-1], 0, "ties")
    >>> ids.take(pa.array(order)) == ids[::-1].take(pa.array(other))
    True
    """
    return order_of(keys_of(item_ids), seed, use)


def order_of(keys: NDArray[np.uint64], seed: int, use: str) -> NDArray[np.int64]:
    """Give the same from the numbers of `keys_of`, for who asks several times."""
    mixed = (keys ^ np.uint64(hash64(f"{seed}\0{use}"))) * _STEP
    mixed = (mixed ^ (mixed >> np.uint64(31))) * _STEP
    return np.argsort(mixed ^ (mixed >> np.uint64(29)), kind="stable")
