"""Rows grouped by item and worker, and which of repeated answers counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan._arrays import fixed
from goldspan.errors import InputError

# --------------------------------------------------------------------------------------------------
# Answers by group: by item, by worker.


LARGE = 200_000
"""Answers from which on Numba's loops, linear in the answers, make good for loading Numba."""


def sorted_by(
    key: NDArray[np.int32], n_groups: int, kind: type[np.int32 | np.int64] = np.int64
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Sort answers by group, within a group as they stand.

    >>> order, bounds = sorted_by(np.array([1, 0, 1], np.int32), 2)
    >>> order.tolist(), bounds.tolist()
    ([1, 0, 2], [0, 1, 3])
    """
    # key int32 [n_answers]
    if len(key) < LARGE:
        counts = np.bincount(key, minlength=n_groups)
        order = np.argsort(key, kind="stable").astype(kind, copy=False)
        return order, np.concatenate([[0], np.cumsum(counts)])
    from goldspan.crowd.kernels import fill_groups

    order, bounds = np.empty(len(key), kind), np.zeros(n_groups + 1, np.int64)
    fill_groups(fixed(key, np.int32), bounds, order)
    return order, bounds


# --------------------------------------------------------------------------------------------------
# Repeated answers: one worker, one item, several answers.


MAX_ATTEMPT = 2**15 - 1
"""Attempts are int16."""


def number_attempts(
    item: NDArray[np.int32], worker: NDArray[np.int32], repeated: str = "last"
) -> NDArray[np.int16]:
    """Number the answers of every worker to every item, so that the highest number counts.

    >>> number_attempts(np.array([0, 0, 0]), np.array([1, 1, 2])).tolist()
    [0, 1, 0]
    """
    # item int32 [n_answers], indices from 0; worker int32 [n_answers], indices from 0
    # returns int16 [n_answers], from 0; all 0 where nothing is repeated
    attempt = np.zeros(len(item), np.int16)
    fill = _fill_sorting if len(item) < LARGE else _fill_linear
    most = fill(item, worker, repeated == "first", attempt)
    if most > MAX_ATTEMPT:
        raise InputError(
            f"one worker has {most + 1} answers to one item, more than {MAX_ATTEMPT}: "
            "are item and worker the right columns?"
        )
    return attempt


def latest_answers(
    item: NDArray[np.int32], worker: NDArray[np.int32], attempt: NDArray[np.int16]
) -> NDArray[np.bool_]:
    """Mark the answers that count: of every worker's answers to an item, the last attempt.

    >>> latest_answers(np.array([0, 0, 1]), np.array([5, 5, 5]), np.array([1, 0, 0])).tolist()
    [True, False, True]
    """
    keep = np.zeros(len(item), np.bool_)
    if len(item) < LARGE:
        order = np.lexsort((attempt, worker, item))
        head = _heads(item[order], worker[order])
        keep[order[np.append(head, len(item))[1:] - 1]] = True
        return keep
    from goldspan.crowd.kernels import fill_latest

    order, bounds = sorted_by(item, int(item.max()) + 1, np.int32)
    columns = fixed(worker, np.int32), fixed(attempt, np.int16)
    fill_latest(order, bounds, *columns, int(worker.max()) + 1, keep)
    return keep


def count_first(
    item: NDArray[np.int32], worker: NDArray[np.int32], attempt: NDArray[np.int16]
) -> NDArray[np.int16]:
    """Renumber attempts that the input has numbered, so that the lowest of them counts.

    >>> count_first(np.array([0, 0, 1]), np.array([5, 5, 5]), np.array([3, 1, 0])).tolist()
    [0, 1, 0]
    """
    order = np.argsort(attempt, kind="stable")
    renumbered = np.empty(len(attempt), np.int16)
    renumbered[order] = number_attempts(item[order], worker[order], "first")
    return renumbered


def _fill_sorting(
    item: NDArray[np.int32],
    worker: NDArray[np.int32],
    backwards: bool,
    attempt: NDArray[np.int16],
) -> int:
    """Write the attempts and give the highest."""
    n = len(item)
    order = np.lexsort((worker, item))
    head = _heads(item[order], worker[order])
    size = np.diff(np.append(head, n))
    rank = np.arange(n) - np.repeat(head, size)
    if backwards:
        rank = np.repeat(size, size) - 1 - rank
    attempt[order] = rank
    return int(rank.max(initial=0))


def _fill_linear(
    item: NDArray[np.int32],
    worker: NDArray[np.int32],
    backwards: bool,
    attempt: NDArray[np.int16],
) -> int:
    """Write the attempts and give the highest, as `_fill_sorting`."""
    from goldspan.crowd.kernels import fill_attempts

    order, bounds = sorted_by(item, int(item.max()) + 1, np.int32)
    workers, n_workers = fixed(worker, np.int32), int(worker.max()) + 1
    return int(fill_attempts(order, bounds, workers, n_workers, backwards, attempt))


def _heads(item: NDArray[np.int32], worker: NDArray[np.int32]) -> NDArray[np.int64]:
    """Where another item or worker begins, both sorted."""
    fresh = np.ones(len(item), np.bool_)
    fresh[1:] = (item[1:] != item[:-1]) | (worker[1:] != worker[:-1])
    return np.flatnonzero(fresh)
