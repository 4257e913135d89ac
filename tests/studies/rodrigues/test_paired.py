"""The paired t-test, by hand and against its meaning."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t, ttest_rel

from studies.rodrigues.paired import paired_p


def test_the_p_value_is_that_of_the_formula_and_of_scipy():
    rng = np.random.default_rng(0)
    ours = rng.normal(70, 1, 12)
    other = ours - 0.4 + rng.normal(0, 1, 12)
    gaps = ours - other
    statistic = gaps.mean() / (gaps.std(ddof=1) / math.sqrt(12))
    by_hand = 2 * t.sf(abs(statistic), 11)
    assert paired_p(ours.tolist(), other.tolist()) == pytest.approx(by_hand, abs=1e-12)
    assert by_hand == pytest.approx(ttest_rel(ours, other).pvalue, abs=1e-12)


def test_the_order_of_the_two_methods_does_not_matter():
    assert paired_p([1.0, 3.0, 2.0], [0.0, 4.0, 1.5]) == paired_p([0.0, 4.0, 1.5], [1.0, 3.0, 2.0])


@pytest.mark.parametrize(
    ("ours", "other"), [([1.0], [2.0]), ([1.0, 2.0], [1.0, 2.0]), ([1.0, 2.0], [0.5, 1.5])]
)
def test_one_repeat_or_gaps_that_do_not_vary_have_no_p_value(ours, other):
    assert paired_p(ours, other) is None
