"""Money as whole numbers: exact both ways, and refusals."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan.errors import InputError
from goldspan.money import from_micro, to_micro


@given(st.integers(min_value=0, max_value=10**18))
def test_what_is_written_reads_the_same(micro: int) -> None:
    assert to_micro(from_micro(micro)) == micro


@pytest.mark.parametrize("amount", ["0.1", 0.1, Decimal("0.1"), " 0.10 "])
def test_a_tenth_is_a_tenth(amount) -> None:
    assert to_micro(amount) == 100_000


def test_debts_have_a_sign() -> None:
    assert from_micro(-1_500_000) == "-1.50"


@pytest.mark.parametrize(
    ("amount", "message"),
    [
        ("free", "must be a number"),
        (True, "must be a number"),
        (float("nan"), "must be a number"),
        (-1, "must lie in"),
        ("1e13", "must lie in"),
        ("0.0000001", "whole number of millionths"),
    ],
)
def test_amounts_that_are_none_are_refused(amount, message) -> None:
    with pytest.raises(InputError, match=message):
        to_micro(amount)
