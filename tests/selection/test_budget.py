"""Budgets and costs: what is read, what an item costs, what is never overspent."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan.errors import InputError
from goldspan.selection import Cost, Pool
from goldspan.selection.base import Budget, Limits
from goldspan.selection.schedule import get_selector

TEXTS = ["a b c", "d", "e f", "g h i j"]


@pytest.mark.parametrize(
    ("text", "amount", "unit"),
    [
        (100, 100, ""), ("100", 100, ""), ("100items", 100, "items"), ("1 item", 1, "items"),
        ("5000tokens", 5000, "tokens"), ("5_000 Tokens", 5000, "tokens"),
        ("12.50money", "12.50", "money"), (2.5, "2.5", ""), (np.int64(7), 7, ""),
    ],
)  # fmt: skip
def test_a_budget_is_read(text, amount, unit):
    assert Budget.parse(text) == Budget(Decimal(amount), unit)


@pytest.mark.parametrize(
    "text",
    [
        *("", "tokens", "5000 pounds", "-3", 0, "0tokens", "1.5items", "2.5tokens", "1e3tokens"),
        *(True, float("nan"), float("inf"), None, "5000tokens please"),
    ],
)
def test_a_faulty_budget_is_refused(text):
    with pytest.raises(InputError, match="budget"):
        Budget.parse(text)


def test_an_item_costs_its_answers_times_fixed_and_tokens():
    cost = Cost(fixed="0.05", per_token="0.001", answers=3)
    assert cost.micro(Pool.of(TEXTS)).tolist() == [159_000, 153_000, 156_000, 162_000]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({}, "must cost something"),
        ({"fixed": -1}, "fixed must lie in 0"),
        ({"fixed": "x"}, "fixed must be a number"),
        ({"per_token": 1e-9}, "millionths"),
        ({"fixed": 1, "answers": 0}, "answers must be a whole number"),
        ({"fixed": True}, "fixed must be a number"),
        ({"fixed": 10**9 + 1}, "fixed must lie in 0 … 1,000,000,000"),
    ],
)
def test_faulty_costs_are_refused(params, words):
    with pytest.raises(InputError, match=words):
        Cost(**params)


def test_costs_beyond_all_budgets_are_refused():
    with pytest.raises(InputError, match="are these prices right"):
        Cost(fixed=10**9, answers=10**6).micro(Pool.of(TEXTS))


@pytest.mark.parametrize(
    ("budget", "costs", "unit", "spent_in", "most", "limit"),
    [
        (None, None, "items", "items", 4, np.inf),
        (2, None, "items", "items", 2, np.inf),
        ("5tokens", None, "tokens", "tokens", 4, 5),
        ("0.10money", Cost(fixed="0.05"), "micro", "micro", 4, 100_000),
        ("3items", Cost(fixed="0.05"), "micro", "items", 3, np.inf),
        ("5tokens", Cost(fixed="0.05"), "micro", "tokens", 4, 5),
        (2.5, [1.0, 2.0, 0.5, 1.0], "cost", "cost", 4, 2.5),
        ("2items", [1, 2, 3, 4], "cost", "items", 2, np.inf),
    ],
)
def test_costs_and_budgets_fit_together(budget, costs, unit, spent_in, most, limit):
    found = Limits.of(Pool.of(TEXTS), budget, None, costs)
    assert (found.unit, found.spent_in) == (unit, spent_in)
    assert (found.spending.most, found.spending.budget) == (most, limit)


@pytest.mark.parametrize(
    ("budget", "costs", "words"),
    [
        ("2money", None, "needs costs"),
        (2, Cost(fixed=1), '"2money"'),
        ("2money", [1, 1, 1, 1], "plain number"),
        (2, [1, 1], "4 numbers"),
        (2, [1, 1, 0, 1], "item 2 has 0"),
        (2, [1, 1, float("nan"), 1], "item 2 has nan"),
        (2, ["a"] * 4, "4 numbers"),
        (2.5, None, "whole number"),
    ],
)
def test_what_does_not_fit_is_refused(budget, costs, words):
    with pytest.raises(InputError, match=words):
        Limits.of(Pool.of(TEXTS), budget, None, costs)


def test_a_table_has_no_budget_of_tokens():
    with pytest.raises(InputError, match="no tokens to count"):
        Limits.of(Pool.of(np.eye(3)), "5tokens", None, None)


RULES = ("coverage", "coverage-paper", "random", "density")


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=12),
    st.integers(1, 40),
    st.integers(0, 12),
    st.sampled_from(RULES),
)
def test_no_rule_spends_more_than_the_budget(lengths, budget, n, name):
    texts = [[f"w{(7 * i + j) % 5}" for j in range(length)] for i, length in enumerate(lengths)]
    found = get_selector(name).select(texts, budget=f"{budget}tokens", n=n)
    assert found.total_cost == found.n_tokens <= budget
    assert len(set(found.item.tolist())) == len(found) <= n
