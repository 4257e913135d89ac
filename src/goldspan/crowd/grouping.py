"""Rows grouped by item and worker, and which of repeated answers counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import InputError

LARGE = 200_000
"""Answers from which on SciPy's sparse arrays, which sort in linear time, are worth loading."""
MAX_ATTEMPT = 2**15 - 1
"""Attempts are int16."""


def sorted_by(key: NDArray[np.int32], n_groups: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sort answers by group, within a group as they stand."""
    # key int32 [n_answers]
    n = len(key)
    if n < LARGE:
        counts = np.bincount(key, minlength=n_groups)
        return np.argsort(key, kind="stable"), np.concatenate([[0], np.cumsum(counts)])
    from scipy.sparse import coo_array

    place = np.arange(n, dtype=np.int32)
    rows = coo_array((np.ones(n, np.bool_), (key, place)), shape=(n_groups, n)).tocsr()
    return rows.indices.astype(np.int64), rows.indptr.astype(np.int64)


def number_attempts(
    item: NDArray[np.int32], worker: NDArray[np.int32], repeated: str = "last"
) -> NDArray[np.int16]:
    """Number the answers of every worker to every item, so that the highest number counts."""
    # item int32 [n_answers], indices from 0; worker int32 [n_answers], indices from 0
    # returns int16 [n_answers], from 0; all 0 where nothing is repeated
    attempt = np.zeros(len(item), np.int16)
    again = _repeated(item, worker)
    order = np.lexsort((worker[again], item[again]))
    head = _heads(item[again[order]], worker[again[order]])
    size = np.diff(np.append(head, len(again)))
    rank = np.arange(len(again)) - np.repeat(head, size)
    if repeated == "first":
        rank = np.repeat(size, size) - 1 - rank
    most = int(rank.max(initial=0))
    if most > MAX_ATTEMPT:
        raise InputError(
            f"one worker has {most + 1} answers to one item, more than {MAX_ATTEMPT}: "
            "are item and worker the right columns?"
        )
    attempt[again[order]] = rank
    return attempt


def latest_answers(
    item: NDArray[np.int32], worker: NDArray[np.int32], attempt: NDArray[np.int16]
) -> NDArray[np.bool_]:
    """Mark the answers that count: of every worker's answers to an item, the last attempt."""
    keep = np.ones(len(item), np.bool_)
    again = _repeated(item, worker)
    order = again[np.lexsort((attempt[again], worker[again], item[again]))]
    head = _heads(item[order], worker[order])
    keep[again] = False
    keep[order[np.append(head, len(order))[1:] - 1]] = True
    return keep


def count_first(
    item: NDArray[np.int32], worker: NDArray[np.int32], attempt: NDArray[np.int16]
) -> NDArray[np.int16]:
    """Renumber attempts that the input has numbered, so that the lowest of them counts."""
    order = np.argsort(attempt, kind="stable")
    renumbered = np.empty(len(attempt), np.int16)
    renumbered[order] = number_attempts(item[order], worker[order], "first")
    return renumbered


def _repeated(item: NDArray[np.int32], worker: NDArray[np.int32]) -> NDArray[np.intp]:
    """Find the answers of workers who answered an item several times."""
    near = np.arange(len(item))
    if len(item) >= LARGE:
        from scipy.sparse import coo_array

        pairs = coo_array((np.ones(len(item), np.int32), (item, worker))).tocsr()
        several = np.zeros(pairs.shape[0], np.bool_)
        several[np.searchsorted(pairs.indptr, np.flatnonzero(pairs.data > 1), side="right") - 1] = 1
        near = np.flatnonzero(several[item])
    key = item[near].astype(np.int64) * (int(worker.max(initial=0)) + 1) + worker[near]
    _, which, counts = np.unique(key, return_inverse=True, return_counts=True)
    return np.asarray(near[counts[which] > 1])


def _heads(item: NDArray[np.int32], worker: NDArray[np.int32]) -> NDArray[np.int64]:
    """Where another item or worker begins, both sorted."""
    fresh = np.ones(len(item), np.bool_)
    fresh[1:] = (item[1:] != item[:-1]) | (worker[1:] != worker[:-1])
    return np.flatnonzero(fresh)
