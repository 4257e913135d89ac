"""Repeated answers against plain counting: sorted as in small crowds, linear as in large ones."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan.crowd import grouping
from goldspan.crowd.grouping import MAX_ATTEMPT, count_first, latest_answers, number_attempts
from goldspan.errors import InputError

KEYS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=12)


@pytest.fixture(scope="module", params=[grouping.LARGE, 1], ids=["sorted", "linear"], autouse=True)
def large(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "LARGE", request.param)
        yield


def columns(keys):
    table = np.array(keys, np.int32).reshape(-1, 2)
    return table[:, 0], table[:, 1]


@given(KEYS)
def test_answers_are_numbered_in_the_order_given(keys):
    seen = Counter()
    wanted = []
    for key in keys:
        wanted.append(seen[key])
        seen[key] += 1
    found = number_attempts(*columns(keys))
    assert found.tolist() == wanted
    assert found.dtype == np.int16


@given(KEYS)
def test_if_the_first_counts_they_are_numbered_from_the_end(keys):
    found = number_attempts(*columns(keys), "first")
    assert found.tolist() == number_attempts(*columns(keys[::-1])).tolist()[::-1]


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 9)), unique=True, max_size=12
    )
)
def test_attempts_of_the_input_are_turned_round(rows):
    item, worker = columns([row[:2] for row in rows])
    attempt = np.array([row[2] for row in rows], np.int16)
    found = count_first(item, worker, attempt).tolist()
    for n, (i, w, a) in enumerate(rows):
        higher = sum(row[:2] == (i, w) and row[2] > a for row in rows)
        assert found[n] == higher


def test_more_attempts_than_int16_can_count_are_refused():
    item = np.zeros(MAX_ATTEMPT + 1, np.int32)
    assert number_attempts(item, item).max() == MAX_ATTEMPT
    more = np.append(item, np.int32(0))
    with pytest.raises(
        InputError, match="one worker has 32769 answers to one item, more than 32767"
    ):
        number_attempts(more, more)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)), max_size=12))
def test_of_every_worker_and_item_the_highest_attempt_counts_of_equal_ones_the_later(rows):
    last = {}
    for n, (i, w, a) in enumerate(rows):
        if (i, w) not in last or a >= rows[last[i, w]][2]:
            last[i, w] = n
    item, worker = columns([row[:2] for row in rows])
    attempt = np.array([row[2] for row in rows], np.int16)
    found = latest_answers(item, worker, attempt)
    assert np.flatnonzero(found).tolist() == sorted(last.values())
    assert found.dtype == np.bool_
