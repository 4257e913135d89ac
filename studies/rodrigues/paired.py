"""The paired t-test with which paper 000 compares methods over the same draws."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_SAME = 1e-12


def paired_p(ours: Sequence[float], other: Sequence[float]) -> float | None:
    """Return the two-sided p value of the paired t-test.

    Args:
        ours: [n_repeats], for example the F1 of one method in every repeat.
        other: [n_repeats], of the other method in the same repeats.

    Returns:
        The p value; None where the test says nothing: fewer than two repeats, or differences that
        do not vary.

    >>> round(paired_p([3.0, 4.0, 6.0], [1.0, 3.0, 3.0]), 4)  # t = 2 / (1 / sqrt 3), 2 degrees
    0.0742
    """
    difference = np.asarray(ours, np.float64) - np.asarray(other, np.float64)
    if len(difference) < 2 or np.ptp(difference) <= _SAME:
        return None
    from scipy.stats import ttest_rel

    return float(ttest_rel(ours, other).pvalue)
