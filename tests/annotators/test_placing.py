"""What was said finds its place in the text, or is listed; nothing is guessed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan.annotators.base import SoftSpan
from goldspan.annotators.placing import Quoted, place_characters, place_quoted, with_text
from goldspan.protocols import PoolItem
from goldspan.spans import tokenize

NAMES = ("LOC", "PER")


def item_of(text, rule="fine"):
    bounds = tokenize(text, rule)
    words = tuple(text[a:b] for a, b in bounds)
    return PoolItem("1", words, text=text, token_start=tuple(a for a, _ in bounds))


def places(placed):
    return [span[1:3] for span in placed.spans]


def test_an_item_without_a_text_has_its_words_with_blanks_between():
    item = with_text(PoolItem("1", ("a", "b")))
    assert (item.text, item.token_start) == ("a b", (0, 2))
    assert with_text(PoolItem("1", ("1",), text="other")).token_start is None


@pytest.mark.parametrize(
    ("text", "quote", "expected"),
    [
        ("New York is big", "New York", [(0, 2)]),
        ("New\n  York is big", "New York", [(0, 2)]),
        ("NEW YORK is big", "new york", [(0, 2)]),
        ("Annual, ann", "Ann", [(2, 3)]),  # not within another word
        ("Annual", "Ann", []),
        ("Ann Lee", "nn Lee", []),
        ("東京に行く", "東京", [(0, 2)]),  # without spaces every character is a token
        ("(a+b)*", "(a+b)", [(0, 5)]),
        ("l'été", "été", [(2, 3)]),
        ("", "x", []),
        ("x", " ", []),
    ],
)
def test_a_quote_is_found_between_words_whatever_the_space_and_the_capitals(text, quote, expected):
    placed = place_quoted(item_of(text), [Quoted("PER", quote)], NAMES)
    assert places(placed) == expected
    assert len(placed.unplaced) == (not expected)


def test_with_tokens_of_several_words_a_quote_takes_whole_ones():
    placed = place_quoted(item_of("to London, then", "space"), [Quoted("LOC", "London")], NAMES)
    assert places(placed) == [(1, 2)]


def test_exact_words_go_before_those_with_other_capitals():
    placed = place_quoted(item_of("us and US"), [Quoted("LOC", "US")], NAMES)
    assert places(placed) == [(2, 3)]


def test_the_nth_mention_is_the_nth_place_and_one_too_many_is_listed():
    said = [Quoted("PER", "Ann")] * 3
    placed = place_quoted(item_of("Ann met Ann"), said, NAMES)
    assert places(placed) == [(0, 1), (2, 3)]
    assert placed.unplaced == ["PER 'Ann' is said 3 times, and the text has it 2 times"]


@pytest.mark.parametrize(
    ("text", "said", "expected"),
    [
        ("Jordan visited Jordan", ["PER Jordan", "LOC Jordan"], ["PER 0-1", "LOC 2-3"]),
        ("Apple ate apple", ["PER Apple", "LOC apple"], ["PER 0-1", "LOC 2-3"]),
        ("New York loves York", ["LOC New York", "PER York"], ["LOC 0-2", "PER 3-4"]),
        ("York and New York", ["PER York", "LOC New York"], ["PER 0-1", "LOC 2-4"]),
        ("New York or York", ["PER York", "LOC New York"], ["LOC 0-2", "PER 3-4"]),
        ("Ann-Marie met Ann", ["PER Ann"], ["PER 2-3"]),
        ("Ann-Marie met Ann", ["PER Ann", "PER Ann"], ["PER 0-1", "PER 2-3"]),
        ("to London, and London", ["LOC London"], ["LOC 1-2"]),
        ("Jose\u0301 sang", ["PER Jos\u00e9"], ["PER 0-1"]),
        ("Jos\u00e9 sang", ["PER Jose\u0301"], ["PER 0-1"]),
        ("Mr O\u2019Neill sang", ["PER O'Neill"], ["PER 1-2"]),
        ("\u0930\u093e\u092e\u093e \u0930\u093e\u092e", ["PER \u0930\u093e\u092e"], ["PER 1-2"]),
    ],
)
def test_quotes_find_the_place_that_was_meant(text, said, expected):
    quotes = [Quoted(*one.split(" ", 1)) for one in said]
    placed = place_quoted(item_of(text, "space"), quotes, NAMES)
    assert [f"{span.type} {span.start}-{span.end}" for span in placed.spans] == expected
    assert placed.unplaced == []


def test_numbers_and_words_agree_whatever_the_spelling_of_accents():
    placed = place_quoted(item_of("Jose\u0301 sang"), [Quoted("PER", "Jos\u00e9", 0, 0)], NAMES)
    assert places(placed) == [(0, 1)]


def test_words_between_the_tokens_and_tokens_that_are_not_in_the_text_do_no_harm():
    gap = PoolItem("1", ("Ann", "Bob"), text="Ann @@@ Bob", token_start=(0, 8))
    assert place_quoted(gap, [Quoted("PER", "@@@")], NAMES).unplaced == [
        "PER '@@@' is not in the text"
    ]
    other = PoolItem("1", ("``", "Ann", "''"), text='"Ann"')
    assert places(place_quoted(other, [Quoted("PER", "Ann")], NAMES)) == [(1, 2)]
    assert places(place_quoted(other, [Quoted("PER", "Ann", 0, 0)], NAMES)) == [(1, 2)]


@pytest.mark.parametrize(
    ("first", "last", "quote", "expected"),
    [
        (0, 1, "Ann Lee", [(0, 2)]),
        (0, 1, "ann  lee", [(0, 2)]),
        (5, 6, "Ann Lee", [(4, 6)]),  # one off: the words decide, the nearest of them
        (90, 91, "Ann Lee", [(4, 6)]),
        (1, 0, "Ann Lee", [(0, 2)]),
        (-1, 0, "Lee", [(1, 2)]),
        (0, 1, "Bob", []),
        (0, 1, None, [(0, 2)]),
        (5, 6, None, []),
    ],
)
def test_numbers_and_words_are_held_against_each_other(first, last, quote, expected):
    item = item_of("Ann Lee saw . Ann Lee")
    placed = place_quoted(item, [Quoted("PER", quote, first, last)], NAMES)
    assert places(placed) == expected
    assert len(placed.unplaced) == (not expected)


def test_labels_that_there_are_not_and_overlaps_are_listed():
    said = [
        Quoted("EVIL", "Ann", 0, 0), Quoted("PER", "Ann Lee", 0, 1), Quoted("LOC", "Lee", 1, 1),
        Quoted("PER", "Ann Lee", 0, 1),
    ]  # fmt: skip
    placed = place_quoted(item_of("Ann Lee"), said, NAMES)
    assert placed.spans == [SoftSpan("PER", 0, 2)]
    assert placed.unplaced == [
        "'EVIL' of 'Ann' is not a label of the task",
        "LOC at tokens 1-1 overlaps another",
    ]


def test_characters_take_whole_tokens_and_what_is_outside_is_listed():
    spans = [("PER", 1, 5, 0.5), ("PER", 50, 60, 1.0), ("EVIL", 0, 3, 1.0), ("LOC", 7, 8, 1.0)]
    placed = place_characters(item_of("Ann Lee "), spans, NAMES)
    assert placed.spans == [SoftSpan("PER", 0, 2, 0.5)]
    assert len(placed.unplaced) == 3


words = st.lists(st.text("abAB é東 ", min_size=1, max_size=4), min_size=1, max_size=6)


@given(words, st.data())
def test_words_of_the_text_are_always_placed_where_they_are(parts, data):
    item = item_of(" ".join(parts))
    if not item.tokens:
        return
    first = data.draw(st.integers(0, len(item.tokens) - 1))
    last = data.draw(st.integers(first, len(item.tokens) - 1))
    starts = item.token_start
    quote = item.text[starts[first] : starts[last] + len(item.tokens[last])]
    placed = place_quoted(item, [Quoted("PER", quote, first, last)], NAMES)
    assert places(placed) == [(first, last + 1)]
    alone = place_quoted(item, [Quoted("PER", quote)], NAMES)
    (found,) = alone.spans
    squeezed = "".join(item.tokens[found.start : found.end])
    assert squeezed.casefold() == "".join(quote.split()).casefold()


@given(words, st.text(max_size=8), st.integers(-3, 9), st.integers(-3, 9))
def test_whatever_is_said_is_placed_or_listed_once(parts, quote, first, last):
    item = item_of(" ".join(parts))
    placed = place_quoted(item, [Quoted("PER", quote, first, last)], NAMES)
    assert len(placed.spans) + len(placed.unplaced) == 1
    for span in placed.spans:
        assert 0 <= span.start < span.end <= len(item.tokens)
