"""Coverage of a pool: against sets counted by hand, and draws counted one by one."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from goldspan.campaign.results import coverage_of
from goldspan.crowd import CrowdBuilder
from goldspan.selection import Pool
from goldspan.selection.features import Features

TEXTS = ["a b", "a c", "b c d", "d e", "f g"]


def crowd_of(texts):
    builder = CrowdBuilder()
    for n, text in enumerate(texts):
        builder.add_item(f"i{n}", text.split(), gold=["O"] * len(text.split()))
    return builder.build()


def rows_of(crowd):
    """Return the pairs of every item that at least two items have."""
    pool = Pool.of(crowd)
    found = Features.fit(pool).transform(pool)
    common = set(np.flatnonzero(found.counts >= 2).tolist())
    return common, [set(found.row(n).tolist()) & common for n in range(found.n_items)]


def test_what_is_covered_is_what_the_picked_items_have():
    crowd = crowd_of(TEXTS)
    common, rows = rows_of(crowd)
    found = coverage_of(crowd, [["i2"], ["i0", "i3"]])
    assert found["pairs"] == len(common)
    assert [one["items"] for one in found["rounds"]] == [1, 3]
    first, second = (one["covered"] for one in found["rounds"])
    assert first == pytest.approx(len(rows[2]) / len(common), abs=1e-6)
    assert second == pytest.approx(len(rows[2] | rows[0] | rows[3]) / len(common), abs=1e-6)


@pytest.mark.parametrize("n", [1, 2, 4, 5])
def test_the_expectation_at_random_is_the_mean_over_all_draws(n):
    crowd = crowd_of(TEXTS)
    common, rows = rows_of(crowd)
    draws = [len(set().union(*some)) / len(common) for some in combinations(rows, n)]
    found = coverage_of(crowd, [[f"i{k}" for k in range(n)]])["rounds"][0]["random"]
    assert found == pytest.approx(np.mean(draws), abs=1e-6)


def test_items_without_words_have_no_coverage():
    builder = CrowdBuilder()
    for name in ("q1", "q2"):
        builder.add_answer(builder.add_item(name, [name]), "ann", ["yes"])
    assert coverage_of(builder.build(single=True), [["q1"]]) is None
