"""Arrays without Numba: as kernels take them, rows in flat arrays, random numbers of ids."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa


def fixed(values: NDArray[Any], kind: Any) -> NDArray[Any]:
    """Return a read-only array of a type: kernels that read it are compiled for no other kind."""
    view = np.ascontiguousarray(values, kind).view()
    view.flags.writeable = False
    return view


_HEADER = threading.Lock()


def load_array(path: Path) -> NDArray[Any]:
    """See an array that this program wrote in its file; threads may do so at the same time.

    NumPy reads the header by Python's parser, which in Python 3.11 may fail with a SystemError
    where two threads are in it.
    """
    with _HEADER:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def longest_first(lengths: NDArray[np.integer]) -> NDArray[np.int32]:
    """Return the rows that are not empty, the longest first, int32.

    >>> longest_first(np.array([1, 0, 3, 1])).tolist()
    [2, 0, 3]
    """
    most = int(lengths.max(initial=0))
    small = (most - lengths).astype(np.min_scalar_type(most))  # NumPy sorts bytes by counting
    order = np.argsort(small, kind="stable")
    return order[: np.count_nonzero(lengths)].astype(np.int32)


def rows_of(
    bounds: NDArray[np.int64], which: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Take some rows of a flat array and put them one behind another.

    >>> rows_of(np.array([0, 2, 5]), np.array([1, 0]))
    (array([0, 3, 5]), array([2, 3, 4, 0, 1]))
    """
    # bounds int64 [n_rows + 1]
    lengths = np.diff(bounds)[which]
    taken = np.concatenate([[0], np.cumsum(lengths)])
    return taken, np.repeat(bounds[which] - taken[:-1], lengths) + np.arange(taken[-1])


def count_between(
    flags: NDArray[np.bool_], begin: NDArray[np.integer], end: NDArray[np.integer]
) -> NDArray[np.int64]:
    """Count the true flags from begin to end (exclusive), int64 [n] for n such ranges.

    >>> count_between(np.array([True, False, True]), np.array([0, 1]), np.array([2, 3])).tolist()
    [1, 1]
    """
    before = np.concatenate([[0], np.cumsum(flags)])
    return np.asarray(before[end] - before[begin])


def count_in_rows(flags: NDArray[np.bool_], bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count the true flags of every row, int64 [n_rows]; bounds as for `rows_of`."""
    return count_between(flags, bounds[:-1], bounds[1:])


def plain(value: Any) -> Any:
    """Return a value for JSON: NaN is None, within dictionaries and lists too."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and np.isnan(value) else value


# --------------------------------------------------------------------------------------------------
# Random numbers that belong to ids: functions of a seed and of ids alone, so that the order of rows
# does not matter.


Keys = NDArray[np.uint64]

STEP = np.uint64(0x9E3779B97F4A7C15)
"""What SplitMix64 adds from one number to the next."""


def hash64(text: str) -> int:
    """Hash a string into 64 bits, the same in every process and on every machine."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def keys_of(ids: Sequence[str] | pa.Array) -> Keys:
    """Return the hash of every id, uint64 [n]."""
    names = ids if isinstance(ids, Sequence) else ids.to_pylist()
    return np.fromiter(map(hash64, names), np.uint64, count=len(names))


def draws(seed: object, purpose: str, *keys: Keys) -> NDArray[np.float64]:
    """Draw numbers from [0, 1), each a function of seed, purpose and its keys."""
    # keys uint64 [n] each, of ids; their order counts
    state = keys_of([f"{seed} {purpose}"])
    for key in keys:
        state = scattered((state ^ key) + STEP)
    return unit(state)


def scattered(keys: Keys) -> Keys:
    """Scatter every bit over all bits, one to one: the last step of SplitMix64.

    By Steele, Lea and Flood (2014).
    """
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(keys ^ (keys >> np.uint64(31)))


def unit(keys: Keys) -> NDArray[np.float64]:
    """Make numbers in [0, 1) of the upper 53 bits."""
    return np.asarray((keys >> np.uint64(11)) * 2.0**-53)
