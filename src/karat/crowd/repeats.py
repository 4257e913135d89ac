"""Repeated answers: one worker, one item, several answers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from karat.errors import InputError

MAX_ATTEMPT = 2**15 - 1
"""Attempts are int16."""


def number_attempts(
    item: NDArray[np.int32], worker: NDArray[np.int32], repeated: str = "last"
) -> NDArray[np.int16]:
    """Number the answers of every worker to every item, so that the highest number counts.

    Args:
        item: int32 [n_answers].
        worker: int32 [n_answers].
        repeated: Which one counts: "last" or "first" in the order given.

    Returns:
        int16 [n_answers], from 0; all 0 where nothing is repeated.

    Raises:
        InputError: A worker has more answers to an item than int16 can count.

    >>> number_attempts(np.array([0, 0, 0]), np.array([1, 1, 2])).tolist()
    [0, 1, 0]
    """
    n = len(item)
    order = np.lexsort((worker, item))
    fresh = np.ones(n, np.bool_)
    fresh[1:] = (item[order][1:] != item[order][:-1]) | (worker[order][1:] != worker[order][:-1])
    head = np.flatnonzero(fresh)
    rank = np.arange(n) - np.repeat(head, np.diff(np.append(head, n)))
    if repeated == "first":
        size = np.repeat(np.diff(np.append(head, n)), np.diff(np.append(head, n)))
        rank = size - 1 - rank
    if n and rank.max() > MAX_ATTEMPT:
        raise InputError(
            f"one worker has {rank.max() + 1} answers to one item, more than {MAX_ATTEMPT}: "
            "are item and worker the right columns?"
        )
    attempt = np.empty(n, np.int16)
    attempt[order] = rank
    return attempt


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
