"""Between characters and tokens: offsets in three units, and spans that cut a token."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan.errors import FaultsError, InputError, UnknownNameError
from goldspan.spans import Span, to_tokens, tokenize
from goldspan.spans.text import OFFSETS, locate, to_chars

FAMILY = "👨\u200d👩\u200d👧"
WAVE = "👋🏽"
CAFE = "cafe\u0301"  # e and a combining acute
MIXED = f"Ann {WAVE} 東京 {CAFE} {FAMILY} 𝒳yz 🇩🇪!"

pieces = st.sampled_from(
    [
        *("Ann", "1,000", "ß", "한국", "𝒳", "ا", "ก็", "東", "京", "カ", "\U00020000", "e\u0301"),
        *("🙂", "🇩🇪", WAVE, FAMILY, "\u0301", "\u200d", "\ufe0f", "\u200b"),
        *(" ", "\n", "\u3000", "'", "’", ".", "-", "_"),
    ]
)
texts = st.one_of(st.lists(pieces, max_size=12).map("".join), st.text(max_size=20))
offsets_kinds = st.sampled_from(OFFSETS)


def _units(text, offsets):
    """Count the units of a text by encoding it."""
    if offsets == "codepoint":
        return len(text)
    if offsets == "utf16":
        return len(text.encode("utf-16-le", "surrogatepass")) // 2
    return len(text.encode("utf-8", "surrogatepass"))


# tokenize


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        (" \t\n\u3000", []),
        ("Ann Lee sang.", ["Ann", "Lee", "sang", "."]),
        ("don't Jean-Luc O’Neil", ["don't", "Jean-Luc", "O’Neil"]),
        ("1,000.5 km", ["1,000.5", "km"]),
        ("a,b", ["a", ",", "b"]),
        ("end.Next", ["end", ".", "Next"]),
        ("U.S. law", ["U.S", ".", "law"]),
        ("'tis -x-", ["'", "tis", "-", "x", "-"]),
        ("東京へ", ["東", "京", "へ"]),
        ("in東京now", ["in", "東", "京", "now"]),
        ("𠀀𠀁", ["𠀀", "𠀁"]),
        (f"a {WAVE}{FAMILY} b", ["a", WAVE, FAMILY, "b"]),
        (f"{CAFE} noir", [CAFE, "noir"]),
        ("한국 사람", ["한국", "사람"]),
        ("snake_case", ["snake_case"]),
        ("a  b", ["a", "b"]),
        ("(x)", ["(", "x", ")"]),
        ("❤\ufe0f!", ["❤\ufe0f", "!"]),
    ],
)
def test_the_rule_words_splits_as_in_version_0_1(text, tokens):
    assert [text[start:end] for start, end in tokenize(text, "words")] == tokens


def test_a_joiner_before_a_space_does_not_swallow_it():
    assert tokenize("👨\u200d x", "words") == tokenize("👨\u200d x") == [(0, 2), (3, 4)]


# locate


def test_locate_finds_repeated_tokens_one_after_the_other():
    assert locate("a a  a", ["a", "a", "a"]) == [(0, 1), (2, 3), (5, 6)]


@given(text=texts)
def test_locate_finds_the_tokens_of_tokenize(text):
    bounds = tokenize(text)
    assert locate(text, [text[a:b] for a, b in bounds]) == bounds


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("to be", ["be"]), ("to be", ["to", "bee"]), ("to be", ["to", "to"]), ("", ["x"])],
)
def test_a_token_that_does_not_come_next_is_refused(text, tokens):
    with pytest.raises(InputError, match="does not come next"):
        locate(text, tokens)


def test_the_message_of_locate_shows_the_token_and_what_stands_there():
    with pytest.raises(InputError, match=r"token 1 'bee' .* has 'be or not'"):
        locate("to be or not", ["to", "bee"])


# to_tokens and to_chars


def test_characters_become_tokens_and_tokens_characters():
    text = "to First National Bank"
    assert to_tokens(text, [("ORG", 3, 22)]) == [Span("ORG", 1, 4)]
    assert to_chars(text, [Span("ORG", 1, 4)]) == [("ORG", 3, 22)]


@given(text=texts, offsets=offsets_kinds, data=st.data())
def test_token_spans_come_back_from_characters(text, offsets, data):
    n_tokens = len(tokenize(text))
    edges = st.integers(0, n_tokens)
    pairs = data.draw(st.lists(st.tuples(edges, edges).filter(lambda p: p[0] < p[1]), max_size=4))\
        if n_tokens else []  # fmt: skip
    spans = [Span("X", a, b) for a, b in pairs]
    chars = to_chars(text, spans, offsets=offsets)
    for cut in ("error", "expand", "contract"):
        assert to_tokens(text, chars, offsets=offsets, cut=cut) == spans


@given(text=texts, offsets=offsets_kinds)
def test_offsets_count_units_of_the_encoded_text(text, offsets):
    bounds = tokenize(text)
    spans = [Span("X", i, i + 1) for i in range(len(bounds))]
    expected = [("X", _units(text[:a], offsets), _units(text[:b], offsets)) for a, b in bounds]
    assert to_chars(text, spans, offsets=offsets) == expected


@pytest.mark.parametrize(
    ("offsets", "first", "stop"), [("utf16", 1, 2), ("utf16", 0, 1), ("utf8", 1, 4), ("utf8", 0, 3)]
)
def test_an_offset_within_a_character_is_refused(offsets, first, stop):
    with pytest.raises(FaultsError, match="within a character"):
        to_tokens("🙂", [("X", first, stop)], offsets=offsets)


@pytest.mark.parametrize("offsets", ["UTF-16", "utf-16", "bytes", ""])
def test_an_unknown_kind_of_offsets_is_refused_with_the_names_of_all(offsets):
    for function in (to_tokens, to_chars):
        with pytest.raises(UnknownNameError, match="codepoint, utf16, utf8"):
            function("a", [], offsets=offsets)


def test_a_lone_surrogate_counts_one_unit_in_utf16():
    assert to_chars("\ud800 a", [Span("X", 1, 2)], offsets="utf16") == [("X", 2, 3)]


# The rule for spans that cut a token


@pytest.mark.parametrize(
    ("span", "expand", "contract"),
    [
        ((0, 13), (0, 2), (0, 2)),
        ((1, 13), (0, 2), (1, 2)),
        ((0, 12), (0, 2), (0, 1)),
        ((2, 17), (0, 3), (1, 2)),
        ((7, 10), (0, 2), None),
        ((2, 5), (0, 1), None),
    ],
)
def test_expand_takes_cut_tokens_whole_and_contract_leaves_them_out(span, expand, contract):
    text = "National Bank sang"
    chars = [("ORG", *span)]
    assert to_tokens(text, chars, cut="expand") == [("ORG", *expand)]
    if contract:
        assert to_tokens(text, chars, cut="contract") == [("ORG", *contract)]
    else:
        with pytest.raises(FaultsError, match="no whole token"):
            to_tokens(text, chars, cut="contract")


def test_by_default_a_span_that_cuts_a_token_is_refused():
    with pytest.raises(FaultsError, match=r"cuts token 0 'National': pass cut='expand'") as caught:
        to_tokens("National Bank", [("ORG", 2, 13)])
    assert [fault.kind for fault in caught.value.faults] == ["cut"]


@given(text=texts, cut=st.sampled_from(["expand", "contract", "error"]), data=st.data())
def test_the_tokens_of_any_span_follow_from_its_characters(text, cut, data):
    first = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(0, len(text)))
    visible = {i for i in range(first, stop) if not text[i].isspace()}
    bounds = tokenize(text)
    touched = [i for i, (a, b) in enumerate(bounds) if visible & set(range(a, b))]
    whole = [i for i, (a, b) in enumerate(bounds) if visible >= set(range(a, b))]
    kept = touched if cut == "expand" or whole == touched else whole if cut == "contract" else []
    if kept:
        assert to_tokens(text, [("X", first, stop)], cut=cut) == [("X", kept[0], kept[-1] + 1)]
    else:
        with pytest.raises(FaultsError):
            to_tokens(text, [("X", first, stop)], cut=cut)


@pytest.mark.parametrize("cut", ["Expand", "", "drop"])
def test_an_unknown_rule_is_refused_with_the_names_of_all(cut):
    with pytest.raises(UnknownNameError, match="expand, contract, error"):
        to_tokens("a", [], cut=cut)


@pytest.mark.parametrize("span", [(0, 0), (2, 1), (-1, 2), (0, 6), (5, 6), (0, None), ("0", "1")])
@pytest.mark.parametrize("offsets", OFFSETS)
def test_a_span_that_is_empty_or_outside_the_text_is_refused(span, offsets):
    with pytest.raises(FaultsError) as caught:
        to_tokens("a b c", [("X", *span)], offsets=offsets, cut="expand")
    assert [fault.kind for fault in caught.value.faults] == ["out-of-range"]


def test_all_faulty_spans_are_listed_at_once():
    spans = [("A", 0, 99), ("B", 0, 5), ("C", 0, 2), ("D", 3, 3), ("E", 6, 10)]
    with pytest.raises(FaultsError) as caught:
        to_tokens("Maria sang", spans)
    assert [fault.message.split()[1] for fault in caught.value.faults] == ["A", "C", "D"]


@pytest.mark.parametrize("span", [(0, 0), (1, 0), (-1, 1), (0, 3), (2, 3)])
def test_a_token_span_that_is_empty_or_outside_is_refused(span):
    with pytest.raises(FaultsError, match="outside the 2 tokens"):
        to_chars("a b", [Span("X", *span)])


def test_spans_keep_the_order_that_they_are_given_in_and_may_overlap():
    chars = [("B", 2, 5), ("A", 0, 3)]
    assert to_tokens("a b c", chars) == [("B", 1, 3), ("A", 0, 2)]
    assert to_chars("a b c", [("B", 1, 3), ("A", 0, 2)]) == chars


def test_spans_may_come_from_an_iterator():
    assert to_tokens("a b", iter([("X", 0, 1)])) == [("X", 0, 1)]
    assert to_chars("a b", iter([("X", 0, 1)])) == [("X", 0, 1)]


# Tokens of one's own


def test_tokens_may_be_given_as_strings_or_as_bounds():
    text = "New York-based"
    for tokens in (["New York", "-", "based"], [(0, 8), (8, 9), (9, 14)]):
        assert to_tokens(text, [("LOC", 0, 8)], tokens=tokens) == [("LOC", 0, 1)]
        assert to_chars(text, [("LOC", 0, 1)], tokens=tokens) == [("LOC", 0, 8)]


def test_bounds_count_code_points_whatever_the_offsets_count():
    tokens = [(0, 1), (2, 5)]
    assert to_chars("🙂 abc", [("X", 1, 2)], tokens=tokens, offsets="utf16") == [("X", 3, 6)]


def test_an_empty_list_of_tokens_has_no_token_to_cover():
    with pytest.raises(FaultsError, match="covers no token"):
        to_tokens("abc", [("X", 0, 3)], tokens=[], cut="expand")


@pytest.mark.parametrize(
    "tokens", [[(0, 99)], [(-1, 1)], [(1, 0)], ["a", (2, 3)], [(0, 1), "b"]], ids=str
)
def test_bounds_outside_the_text_and_mixtures_are_refused(tokens):
    with pytest.raises(InputError, match="bounds within the text"):
        to_tokens("a b", [("X", 0, 1)], tokens=tokens)
    with pytest.raises(InputError, match="bounds within the text"):
        to_chars("a b", [("X", 0, 1)], tokens=tokens)


def test_strings_that_are_not_the_text_are_refused():
    with pytest.raises(InputError, match="does not come next"):
        to_tokens("a b", [("X", 0, 1)], tokens=["a", "c"])
