"""Numbers become values: at the edges, kept, and written."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan.errors import InputError, UnknownNameError
from goldspan.selection.pool import Discretiser, read_discretiser

NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30).map(np.array)


@pytest.mark.parametrize(
    ("number", "word"),
    [(12, "10"), (27, "30"), (5, "10"), (4.999, "0"), (-5, "0"), (-5.1, "-10"), (0, "0")],
)
def test_nearest_tens_are_those_of_the_paper_with_halves_up(number, word):
    rule = Discretiser("nearest", 10)
    assert rule.word(rule.bins(np.array([float(number)]))[0]) == word


@given(NUMBERS)
def test_a_number_lies_within_half_a_step_of_its_bin(numbers):
    rule = Discretiser("nearest", 0.5)
    words = [float(rule.word(code)) for code in rule.bins(numbers)]
    assert np.abs(np.array(words) - numbers).max() <= 0.25 + 1e-5 * np.abs(numbers).max()


@given(NUMBERS)
def test_log2_bins_begin_at_powers_of_two_and_mirror_negative_numbers(numbers):
    rule = Discretiser("log2")
    for number, code in zip(numbers.tolist(), rule.bins(numbers).tolist(), strict=True):
        edge = float(rule.word(code))
        assert np.sign(edge) == np.sign(number)
        if abs(number) > 1e-300:
            assert abs(edge) <= abs(number) * (1 + 1e-5)
            assert abs(number) < 2 * abs(edge) * (1 + 1e-5)


def test_quantiles_hold_equally_many_of_the_pool():
    numbers = np.random.default_rng(0).normal(size=1000)
    rule = Discretiser("quantile", 4).fitted(numbers)
    assert np.bincount(rule.bins(numbers).astype(int)).tolist() == [250] * 4


def test_quantiles_of_a_column_that_is_mostly_one_number_have_fewer_bins():
    numbers = np.array([0.0] * 95 + [1.0] * 5)
    rule = Discretiser("quantile", 10).fitted(numbers)
    assert rule.edges == (0.0,)
    assert len(set(rule.bins(numbers))) == 1


def test_quantile_edges_are_those_of_the_pool_for_new_numbers_too():
    rule = Discretiser("quantile", 2).fitted(np.array([1.0, 2.0, 3.0]))
    assert rule.bins(np.array([-9.0, 2.0, 9.0])).tolist() == [0, 1, 1]
    assert [rule.word(0), rule.word(1)] == ["-inf…2", "2…inf"]


@pytest.mark.parametrize("text", ["nearest(2.5)", "quantile(7)", "log2", "categorical"])
def test_a_rule_is_read_as_it_is_written(text):
    assert str(read_discretiser(f" {text} ")) == text


def test_a_rule_may_be_given_as_such():
    assert read_discretiser(Discretiser("categorical")) == Discretiser("categorical")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nearest(0)", "positive"),
        ("nearest(x)", "is not a number"),
        ("nearest(inf)", "positive"),
        ("quantile(1)", "at least 2"),
        ("quantile(2.5)", "whole number"),
        ("log2(3)", "takes no number"),
        ("nearest(10", "must look like"),
    ],
)
def test_a_faulty_rule_is_refused(text, words):
    with pytest.raises(InputError, match=words):
        read_discretiser(text)


def test_an_unknown_rule_is_named_with_the_known_ones():
    with pytest.raises(UnknownNameError, match="did you mean 'quantile'"):
        read_discretiser("quantiles(3)")
