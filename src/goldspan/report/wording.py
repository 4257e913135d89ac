"""How the report writes numbers, amounts of money, and words that are too long."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from goldspan.money import MICRO, from_micro

if TYPE_CHECKING:
    from goldspan.campaign import CampaignRecord

CALLED = {
    "people": "people",
    "llm": "language models",
    "python": "functions",
    "tagger": "taggers",
    "simulated": "simulated workers",
    "replay": "recorded workers",
}
"""What workers of a kind are called together."""


def count(n: int) -> str:
    """Write a whole number, thousands set apart."""
    return f"{n:,}"


def percent(value: float) -> str:
    """Write a share between 0 and 1 in per cent."""
    return f"{100 * value:.1f}\u00a0%"


def share(value: float | None) -> str:
    """Write a share in per cent, a dash where it is not defined."""
    return "–" if value is None or math.isnan(value) else percent(value)


def number(value: float | None) -> str:
    """Write a measure with three digits, a dash where it is not defined."""
    return "–" if value is None or math.isnan(value) else f"{value:.3f}".replace("-", "\u2212")


def shorten(text: str, limit: int = 80) -> str:
    """Cut the middle out of what has more characters than `limit`."""
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 3
    return f"{text[: limit - 1 - tail]}…{text[-tail:]}"


def amount(micro: int) -> str:
    """Write millionths with two decimals, less than a hundredth with as many as it needs.

    >>> amount(1_234_567_890), amount(2_500)
    ('1,234.57', '0.0025')
    """
    return from_micro(micro) if 0 < micro < MICRO / 100 else f"{micro / MICRO:,.2f}"


def with_unit(record: CampaignRecord, micro: int) -> str:
    """Write an amount with its currency."""
    currency = currency_of(record)
    return amount(micro) + (f"\u00a0{currency}" if currency else "")


def currency_of(record: CampaignRecord) -> str:
    """Return the name of the currency; "" for none."""
    return "" if record.money is None else str(record.money["currency"])


def interval(measured: Mapping[str, Any]) -> str:
    """Write an interval of shares in per cent."""
    return f"{100 * measured['low']:.1f}\u2013{100 * measured['high']:.1f}"


def bare_percent(value: float | None) -> str:
    """Write a share in per cent without the sign, a dash for None."""
    return "\u2013" if value is None else f"{100 * value:.1f}"
