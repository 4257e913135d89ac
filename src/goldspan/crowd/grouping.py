"""Answers by group: by item, by worker."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGE = 200_000
"""Answers from which on Numba's loops, linear in the answers, make good for loading Numba."""


def sorted_by(
    key: NDArray[np.int32], n_groups: int, kind: type[np.int32 | np.int64] = np.int64
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Sort answers by group, within a group as they stand.

    Args:
        key: int32 [n_answers], the group of every answer, from 0 to n_groups - 1.
        n_groups: Number of groups.
        kind: Type of `order`.

    Returns:
        order: int32 or int64 [n_answers], the answers sorted.
        bounds: int64 [n_groups + 1]; group g holds order[bounds[g]:bounds[g + 1]].

    >>> order, bounds = sorted_by(np.array([1, 0, 1], np.int32), 2)
    >>> order.tolist(), bounds.tolist()
    ([1, 0, 2], [0, 1, 3])
    """
    if len(key) < LARGE:
        counts = np.bincount(key, minlength=n_groups)
        order = np.argsort(key, kind="stable").astype(kind, copy=False)
        return order, np.concatenate([[0], np.cumsum(counts)])
    from goldspan.crowd.kernels.grouping import fill_groups

    order, bounds = np.empty(len(key), kind), np.zeros(n_groups + 1, np.int64)
    fill_groups(fixed(key, np.int32), bounds, order)
    return order, bounds


def fixed(values: NDArray[Any], kind: Any) -> NDArray[Any]:
    """Give a read-only array of a type: the kernels are compiled for such arrays alone."""
    view = np.ascontiguousarray(values, kind).view()
    view.flags.writeable = False
    return view
