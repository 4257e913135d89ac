"""How numbers and long words are written."""

from __future__ import annotations

import pytest

from goldspan.report.wording import count, number, percent, share, shorten
from goldspan.spans.notebook import printable


def test_numbers_are_written_as_readers_want_them():
    assert count(1234567) == "1,234,567"
    assert percent(0.8268) == "82.7\u00a0%"
    assert number(0.31296) == "0.313"
    assert number(-0.5) == "\u22120.500"


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_what_is_not_defined_is_a_dash(missing):
    assert number(missing) == share(missing) == "–"


@pytest.mark.parametrize("limit", [5, 17, 80])
def test_long_words_keep_both_ends_and_the_limit(limit):
    text = "a" + "x" * 200 + "z"
    short = shorten(text, limit)
    assert len(short) == limit
    assert (short[0], short[-1]) == ("a", "z")
    assert shorten(text[:limit], limit) == text[:limit]


def test_control_characters_and_stray_surrogates_are_replaced():
    assert printable("a\x00b\ud800c\td\u7ea2") == "a\ufffdb\ufffdc\td\u7ea2"
