"""How the report writes numbers, and words that are too long."""

from __future__ import annotations

import math
import unicodedata


def count(n: int) -> str:
    """Write a whole number, thousands set apart."""
    return f"{n:,}"


def plural(n: int, word: str) -> str:
    """Write a number of things: 1 worker, 2 workers."""
    return f"{count(n)} {word}{'' if n == 1 else 's'}"


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
    """Cut the middle out of what has more characters than `limit`.

    >>> shorten("abcdefghij", 5)
    'abc…j'
    """
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 3
    return f"{text[: limit - 1 - tail]}…{text[-tail:]}"


def printable(text: str) -> str:
    """Show control characters, which HTML forbids, and stray surrogates as a replacement mark."""
    if text.isprintable():
        return text
    bad = {"Cc", "Cs"}
    return "".join(
        "\ufffd" if unicodedata.category(c) in bad and c not in "\t\n" else c for c in text
    )
