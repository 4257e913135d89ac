"""Sparse matrices of ones: turned over, counted, cut, and what is twice in them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan.errors import InputError
from goldspan.selection.features import Incidence

ROWS = st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=12)


@given(ROWS)
def test_rows_hold_every_value_once_and_sorted(rows):
    items = Incidence.of_sets(rows, 10)
    assert [items.row(n).tolist() for n in range(items.n_items)] == [sorted(set(r)) for r in rows]


@given(ROWS, st.integers(0, 3))
def test_of_items_alike_the_one_to_be_kept_stays(rows, seed):
    items = Incidence.of_sets(rows, 10)
    keep = np.random.default_rng(seed).permutation(len(rows)).astype(float)
    repeated = items.repeated(keep)
    for n, row in enumerate(rows):
        alike = [m for m, other in enumerate(rows) if set(other) == set(row)]
        assert repeated[n] == (keep[n] > min(keep[m] for m in alike))


def test_items_that_are_out_make_no_other_a_duplicate():
    items = Incidence.of_sets([{1, 2}, {1, 2}])
    assert items.repeated(np.arange(2.0), np.array([False, True])).tolist() == [False, False]


@given(ROWS, st.data())
def test_items_can_be_taken_in_any_order(rows, data):
    index = data.draw(st.lists(st.integers(0, max(0, len(rows) - 1)), max_size=5)) if rows else []
    some = Incidence.of_sets(rows, 10).take(np.array(index, np.intp))
    assert [some.row(n).tolist() for n in range(some.n_items)] == [
        sorted(set(rows[i])) for i in index
    ]


def test_values_out_of_range_are_refused():
    with pytest.raises(InputError, match=r"0 … 2"):
        Incidence.of_sets([[3]], 3)
