"""The paired t-test by which methods are compared, and the correction for many tests."""

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


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Correct the p values of tests that are judged together (Holm 1979).

    If each is compared with the same level, the chance of any false verdict is at most that level,
    however the tests depend on each other.

    Args:
        p_values: Of every test; None where a test says nothing, which then counts as no test.

    Returns:
        The corrected ones, at most 1, in the same order.

    >>> holm([0.01, 0.04, None, 0.03])
    [0.03, 0.06, None, 0.06]
    """
    told = sorted((p, n) for n, p in enumerate(p_values) if p is not None)
    found: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, n) in enumerate(told):
        largest = max(largest, min(1.0, (len(told) - rank) * p))
        found[n] = largest
    return found
