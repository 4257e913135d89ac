"""Which numbers parameters may be: what is no number, or would leave the range of float64, raises.

The bounds lie far beyond what is of use; they keep every sum and every product finite.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from goldspan.errors import InputError

MOST = 1e12
"""Of penalties, pseudo-counts and weights of items."""

FINITE = sys.float_info.max


def check_whole(name: str, value: Any, least: int, most: float = np.inf) -> None:
    """Refuse what is no whole number from `least` to `most`; True and False are none.

    Raises:
        InputError: It is none.

    >>> check_whole("max_iter", 2.5, 1)
    Traceback (most recent call last):
    goldspan.errors.InputError: max_iter must be a whole number of at least 1, not 2.5
    """
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or not least <= value <= most:
        raise InputError(f"{name} must be a whole number {_range(least, most)}, not {value!r}")


def check_number(
    name: str, value: Any, least: float, most: float = FINITE, *, is_open: bool = False
) -> None:
    """Refuse what is no finite number from `least` to `most`; True and False are none.

    Args:
        name: Of the parameter.
        value: What was given.
        least: The smallest number.
        most: The largest number.
        is_open: Whether it must lie above `least`.

    Raises:
        InputError: It is none.
    """
    numbers = int | float | np.integer | np.floating
    is_number = isinstance(value, numbers) and not isinstance(value, bool)
    if not is_number or not least <= value <= most or (is_open and value == least):
        allowed = _range(least, most, is_open=is_open)
        raise InputError(f"{name} must be a number {allowed}, not {value!r}")


def _range(least: float, most: float, *, is_open: bool = False) -> str:
    low = f"above {least:g}" if is_open else f"of at least {least:g}"
    return low if most >= FINITE else f"{low} and at most {most:g}"
