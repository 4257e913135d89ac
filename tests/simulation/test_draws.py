"""Random numbers by address: even, independent, and the same whatever else is drawn."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from goldspan._arrays import keys_of
from goldspan.simulation.base import Draws


def draws_of(lengths, *, seed=0, name="w1", ids=None):
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Draws(seed, name, keys_of(ids or [f"s{n}" for n in range(len(lengths))]), offsets)


@pytest.mark.parametrize("lengths", [[200_000], [1] * 200_000, [4, 0, 36] * 5000])
def test_numbers_are_even_in_long_items_and_over_short_ones(lengths):
    draws = draws_of(lengths)
    for found in (draws.per_token("x"), draws.per_item("x")):
        assert ((found >= 0) & (found < 1)).all()
        if len(found) > 1000:
            counts = np.bincount((found * 64).astype(int), minlength=64)
            assert stats.chisquare(counts).pvalue > 1e-4


def test_numbers_of_different_addresses_do_not_know_of_each_other():
    draws = draws_of([20] * 5000)
    first = draws.per_token("x")
    others = [
        draws.per_token("y"),
        draws.within("part").per_token("x"),
        draws_of([20] * 5000, seed=1).per_token("x"),
        draws_of([20] * 5000, name="w2").per_token("x"),
        np.roll(first, 1),
        np.roll(first, 20),
        np.repeat(draws.per_item("x"), 20),
    ]
    for other in others:
        cells = (first * 8).astype(int) * 8 + (other * 8).astype(int)
        table = np.bincount(cells, minlength=64).reshape(8, 8)
        assert stats.chi2_contingency(table).pvalue > 1e-4


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_a_number_does_not_depend_on_the_other_items(lengths, random):
    ids = [f"s{n}" for n in range(len(lengths))]
    order = random.sample(range(len(lengths)), random.randint(1, len(lengths)))
    every = draws_of(lengths)
    some = draws_of([lengths[n] for n in order], ids=[ids[n] for n in order])
    assert some.per_item("x").tolist() == every.per_item("x")[order].tolist()
    bounds = list(pairwise(every.offsets.tolist()))
    wanted = [every.per_token("x")[slice(*bounds[n])] for n in order]
    assert some.per_token("x").tolist() == np.concatenate(wanted).tolist()


def test_numbers_are_the_same_on_every_machine_and_in_every_version():
    draws = draws_of([2, 1], seed=7)
    assert draws.per_item("x").tolist() == [0.5587130817560122, 0.2465128747451577]
    assert draws.per_token("x").tolist() == [
        0.29399028561544904,
        0.8738340966330331,
        0.6368368961455032,
    ]
    assert draws.generator("x").integers(10**9) == 491848172
