"""Labels that are numbers, and how far each answer moved the mean of its item."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregate.numeric.running import running_sums
from goldspan.crowd import Crowd
from goldspan.errors import InputError


def mean_moves(crowd: Crowd, last: int = 1) -> NDArray[np.float64]:
    r"""Give the largest move of the mean by any of an item's last answers.

    Answers count in the order of their times where all have one, else in the order in which they
    stand.

    Args:
        crowd: Single labels that are numbers.
        last: How many answers to look at.

    Returns:
        float64 [n_items]; infinite where there are not more than `last` answers.

    Raises:
        InputError: The items are not single labels, or a label is no number.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"task,worker,label\n1,a,4\n1,b,2\n1,c,3\n")
    >>> mean_moves(crowd).tolist(), mean_moves(crowd, last=2).tolist()
    ([0.0], [1.0])
    """
    values, item = _in_order(crowd)
    bounds = np.searchsorted(item, np.arange(crowd.n_items + 1))
    counts = np.diff(bounds)
    place = np.arange(len(values)) - np.repeat(bounds[:-1], counts)
    means = running_sums(values, bounds) / (place + 1)
    moves = np.abs(np.diff(means, prepend=0.0))
    found = np.where(counts > last, 0.0, np.inf)
    kept = (place >= np.repeat(counts - last, counts)) & (place > 0)
    np.maximum.at(found, item[kept], moves[kept])
    return found


def _in_order(crowd: Crowd) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Give the numbers answered and their items, by item and within it in order of time."""
    if not crowd.is_classification:
        raise InputError("stable_average is for single labels that are numbers")
    answers = crowd.latest
    when = answers.submitted
    if when is None or (when < 0).any():
        order = crowd.by_item.order
    else:
        order = np.lexsort((when, answers.item))
    order = order[answers.codes[order] >= 0]
    return _numbers(crowd)[answers.codes[order]], answers.item[order]


def _numbers(crowd: Crowd) -> NDArray[np.float64]:
    """Give the number that every tag stands for, float64 [n_labels]."""
    found = []
    for tag in crowd.tagset.tags:
        try:
            found.append(float(tag))
        except ValueError:
            found.append(np.nan)
    values = np.array(found)
    bad = [
        tag for tag, value in zip(crowd.tagset.tags, found, strict=True) if not np.isfinite(value)
    ]
    if bad:
        raise InputError(
            f"stable_average needs labels that are numbers, but there is {bad[0]!r}: rename labels "
            f"to numbers when reading, or use clear_majority"
        )
    return values
