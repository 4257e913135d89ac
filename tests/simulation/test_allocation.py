"""Who answers what: exactly k different workers per item, workloads as wished."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan._arrays import keys_of
from goldspan.errors import InputError, UnknownNameError
from goldspan.simulation.crowd import allocate, shares, weights_of

KEYS = keys_of([f"s{n}" for n in range(4000)])


def names(n):
    return [f"w{i}" for i in range(n)]


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=9).filter(any), st.integers(0, 30), st.data()
)
def test_every_item_has_exactly_k_workers_who_want_work(weights, n_items, data):
    k = data.draw(st.integers(1, sum(weight > 0 for weight in weights)))
    chosen = allocate(KEYS[:n_items], names(len(weights)), k, weights, data.draw(st.integers(0, 9)))
    assert chosen.shape == (n_items, len(weights))
    assert (chosen.sum(axis=1) == k).all()
    assert not chosen[:, np.array(weights) == 0].any()


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=9), st.data())
def test_shares_sum_up_to_k_and_nobody_has_more_than_all(weights, data):
    k = data.draw(st.integers(1, len(weights)))
    found = shares(np.array(weights), k)
    assert found.sum() == pytest.approx(k)
    assert (found <= 1).all()
    free = found < 1
    if free.any():  # those who do not answer everything share as they wish
        ratio = found[free] / np.array(weights)[free]
        assert ratio == pytest.approx(ratio[0])
        assert (ratio[0] * np.array(weights)[~free] >= 1 - 1e-6).all()


@pytest.mark.parametrize(
    ("weights", "k"),
    [([1, 1, 1, 1, 1], 2), ([5, 3, 1, 1], 1), ([5, 3, 1, 1], 2), ([9, 1, 1], 2), ([1] * 4, 4)],
)
def test_workloads_are_the_shares(weights, k):
    chosen = allocate(KEYS, names(len(weights)), k, weights, 3)
    wanted = shares(np.array(weights, float), k)
    error = np.sqrt(wanted * (1 - wanted) / len(KEYS))
    assert (np.abs(chosen.mean(axis=0) - wanted) <= 4.5 * error + 1e-12).all()


def test_equal_workers_meet_each_other_equally_often():
    chosen = allocate(KEYS, names(5), 2, "equal", 0)
    together = [(chosen[:, a] & chosen[:, b]).mean() for a, b in combinations(range(5), 2)]
    np.testing.assert_allclose(together, 0.1, atol=4.5 * np.sqrt(0.09 / len(KEYS)))


def test_items_choose_for_themselves_and_blocks_do_not_matter(monkeypatch):
    chosen = allocate(KEYS, names(7), 3, "zipf", 5)
    order = np.random.default_rng(0).permutation(len(KEYS))[:1000]
    np.testing.assert_array_equal(allocate(KEYS[order], names(7), 3, "zipf", 5), chosen[order])
    monkeypatch.setattr("goldspan.simulation.crowd._BLOCK", 70)
    np.testing.assert_array_equal(allocate(KEYS, names(7), 3, "zipf", 5), chosen)
    assert (allocate(KEYS, names(7), 3, "zipf", 6) != chosen).any()


def test_named_workloads():
    assert weights_of("equal", names(3)).tolist() == [1, 1, 1]
    assert weights_of("zipf", names(3)).tolist() == [1, 1 / 2, 1 / 3]
    assert weights_of({"w1": 5.0}, names(3)).tolist() == [1, 5, 1]


@pytest.mark.parametrize("k", [0, 4, -1, True])
def test_k_must_lie_between_1_and_the_number_of_workers(k):
    with pytest.raises(InputError, match=r"1 … 3"):
        allocate(KEYS, names(3), k, "equal", 0)


def test_workers_without_work_do_not_count():
    with pytest.raises(InputError, match=r"1 … 2"):
        allocate(KEYS, names(3), 3, [1, 0, 1], 0)


@pytest.mark.parametrize("workload", [[1, 2], [1, -1, 1], [1, np.nan, 1], [[1, 2, 3]]])
def test_weights_that_are_none_are_refused(workload):
    with pytest.raises(InputError, match="workload must be"):
        weights_of(workload, names(3))


def test_somebody_must_want_work():
    with pytest.raises(InputError, match="every workload is 0"):
        allocate(KEYS, names(3), 1, [0, 0, 0], 0)


def test_unknown_workloads_and_workers_are_refused_with_the_names():
    with pytest.raises(UnknownNameError, match="zipf"):
        weights_of("ziph", names(3))
    with pytest.raises(UnknownNameError, match="w0"):
        weights_of({"w9": 1}, names(3))
