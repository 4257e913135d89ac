"""Repeated answers: one worker, one item, several answers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


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
    attempt = np.empty(n, np.int16)
    attempt[order] = rank
    return attempt
