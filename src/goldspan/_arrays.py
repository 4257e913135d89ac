"""Arrays as kernels take them, and rows of different lengths in flat arrays; without Numba."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


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
