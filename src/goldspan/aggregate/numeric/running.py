"""Running sums within groups, each from nothing: no group's numbers touch those of another.

Differences of one sum over all groups would: beside 1e17 in one group, numbers of 1 in the next are
lost, and even among small numbers the last bits depend on what went before.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldspan._kernel import kernel


@kernel
def running_sums(values: NDArray[np.float64], bounds: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sum up every group from its first number on.

    Args:
        values: float64 [n_numbers], group after group.
        bounds: int64 [n_groups + 1], where groups begin, and the end of the last.

    Returns:
        float64 [n_numbers], the sum of the group's numbers up to and with this one.
    """
    found = np.empty(len(values))
    for group in range(len(bounds) - 1):
        total = 0.0
        for at in range(bounds[group], bounds[group + 1]):
            total += values[at]
            found[at] = total
    return found
