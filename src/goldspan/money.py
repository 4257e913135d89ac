"""Money as whole numbers: millionths of the currency's unit, so that sums are exact."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from goldspan.errors import InputError

MICRO = 1_000_000
"""Millionths in a unit: 0.05 dollars are 50,000 of them."""
MOST = 10**12
"""The largest amount in units: in millionths it still fits into int64."""
UNLIMITED = MOST * MICRO
"""The cap, in millionths, of a campaign whose answers cost nothing: a store needs a number."""


def to_micro(amount: Any, what: str = "an amount", most: int = MOST) -> int:
    """Turn an amount of money into millionths.

    Args:
        amount: A whole number of units, a decimal number, or text such as "0.05"; a float counts
            as it is printed.
        what: Its name in messages.
        most: The largest amount that is taken, in units.

    Raises:
        InputError: It is not a number, negative, too large, or finer than a millionth.

    >>> to_micro("0.05"), to_micro(3)
    (50000, 3000000)
    """
    try:
        value = None if isinstance(amount, bool) else Decimal(str(amount).strip())
    except InvalidOperation:
        value = None
    if value is None or not value.is_finite():
        raise InputError(f"{what} must be a number such as 0.05, not {amount!r}")
    if not 0 <= value <= most:
        raise InputError(f"{what} must lie in 0 … {most:,}, not {amount}")
    micro = value * MICRO
    if micro != micro.to_integral_value():
        raise InputError(f"{what} must be a whole number of millionths, not {amount}")
    return int(micro)


def from_micro(micro: int) -> str:
    """Write millionths as an amount, with two decimals or as many as it needs.

    >>> from_micro(50_000), from_micro(1_234_500), from_micro(3_000_000)
    ('0.05', '1.2345', '3.00')
    """
    sign, (units, rest) = "-" if micro < 0 else "", divmod(abs(int(micro)), MICRO)
    digits = f"{rest:06d}".rstrip("0").ljust(2, "0")
    return f"{sign}{units}.{digits}"
