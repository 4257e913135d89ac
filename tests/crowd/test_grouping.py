"""Answers by group, sorted by NumPy and by counting."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan._arrays import fixed
from goldspan.crowd import grouping
from goldspan.crowd.grouping import sorted_by


@pytest.mark.parametrize("least", [grouping.LARGE, 1], ids=["sorted", "counted"])
@given(st.lists(st.integers(0, 4), max_size=12), st.integers(5, 7))
def test_groups_hold_their_answers_in_order(least, keys, n_groups):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "LARGE", least)
        order, bounds = sorted_by(np.array(keys, np.int32), n_groups)
    assert (order.dtype, bounds.dtype, len(bounds)) == (np.int64, np.int64, n_groups + 1)
    for group in range(n_groups):
        wanted = [a for a, key in enumerate(keys) if key == group]
        assert order[bounds[group] : bounds[group + 1]].tolist() == wanted


def test_an_array_for_a_kernel_cannot_be_written_and_the_given_one_stays_as_it_is():
    table = np.arange(6).reshape(3, 2)
    column = fixed(table[:, 1], np.int32)
    assert column.tolist() == [1, 3, 5]
    assert column.dtype == np.int32
    assert not column.flags.writeable
    assert table.flags.writeable


def test_small_crowds_are_read_without_numba():
    code = (
        "import sys, goldspan as g; crowd = g.read_crowd(b'task,worker,label\\n1,a,x\\n1,a,y\\n');"
        "print(len(crowd.latest), len(crowd.by_worker.order), 'numba' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["1", "1", "False"]
