"""The fixed tree in which statistics are merged."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan.protocols import Serial, merge_in_order


def tree(values):
    """Write the tree down: the largest power of two that is smaller goes to the left."""
    if len(values) == 1:
        return values[0]
    half = 1 << (len(values) - 1).bit_length() - 1
    return f"({tree(values[:half])}{tree(values[half:])})"


@given(st.integers(1, 70))
def test_the_tree_joins_the_largest_power_of_two_with_the_rest(n):
    values = [f"{i}," for i in range(n)]
    assert merge_in_order(iter(values), lambda a, b: f"({a}{b})") == tree(values)


@given(st.integers(1, 200))
def test_at_no_time_more_than_a_logarithm_of_the_results_is_kept(n):
    alive, most = 0, 0

    def results():
        nonlocal alive, most
        for _ in range(n):
            alive += 1
            most = max(most, alive)
            yield 1

    def merge(a, b):
        nonlocal alive
        alive -= 1
        return a + b

    assert merge_in_order(results(), merge) == n
    assert most <= math.log2(n) + 2


def test_nothing_cannot_be_merged():
    with pytest.raises(ValueError, match="nothing to merge"):
        merge_in_order([], lambda a, b: a + b)


def test_one_thread_works_in_order():
    seen = []

    def work(shard, params):
        seen.append(shard)
        return shard * params

    assert Serial().map(work, [3, 1, 2], 2) == [6, 2, 4]
    assert Serial().map_reduce(work, [3, 1, 2], 2, lambda a, b: a - b) == (6 - 2) - 4
    assert seen == [3, 1, 2] * 2
