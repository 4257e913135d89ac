"""The paired t-test, by hand and against its meaning."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t, ttest_rel

from studies.rodrigues.paired import holm, paired_p


def test_the_p_value_is_that_of_the_formula_and_of_scipy():
    rng = np.random.default_rng(0)
    ours = rng.normal(70, 1, 12)
    other = ours - 0.4 + rng.normal(0, 1, 12)
    gaps = ours - other
    statistic = gaps.mean() / (gaps.std(ddof=1) / math.sqrt(12))
    by_hand = 2 * t.sf(abs(statistic), 11)
    assert paired_p(ours.tolist(), other.tolist()) == pytest.approx(by_hand, abs=1e-12)
    assert by_hand == pytest.approx(ttest_rel(ours, other).pvalue, abs=1e-12)


@pytest.mark.parametrize(
    ("ours", "other"), [([1.0], [2.0]), ([1.0, 2.0], [1.0, 2.0]), ([1.0, 2.0], [0.5, 1.5])]
)
def test_one_repeat_or_gaps_that_do_not_vary_have_no_p_value(ours, other):
    assert paired_p(ours, other) is None


@pytest.mark.parametrize("seed", range(5))
def test_holm_rejects_what_the_step_down_procedure_rejects(seed):
    """The definition: go up from the smallest, stop at the first above level / (tests left)."""
    p = np.random.default_rng(seed).random(12) ** 4
    for level in (0.01, 0.05, 0.2):
        rejected = np.zeros(12, bool)
        for rank, n in enumerate(np.argsort(p)):
            if p[n] > level / (12 - rank):
                break
            rejected[n] = True
        assert (np.array(holm(p.tolist())) <= level).tolist() == rejected.tolist()
