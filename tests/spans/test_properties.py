"""Round trips on random input, and input that makes no sense at all."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan.errors import GoldspanError
from goldspan.spans import Codec, Span, Tagged, convert, find_spans, parse, score, write
from goldspan.spans.codec import transition_mask, transitions
from goldspan.spans.corpus import POLICIES, write_codes
from goldspan.spans.parsing import parse_with_errors
from spans import oracle

SPAN_ENCODINGS = oracle.ENCODINGS[:-1]
every_span_encoding = pytest.mark.parametrize("encoding", SPAN_ENCODINGS)

types = st.one_of(
    st.sampled_from(["X", "O", "B-X", "creative-work", "-", "人"]), st.text(min_size=1)
)
encodings = st.sampled_from(oracle.ENCODINGS)
span_encodings = st.sampled_from(SPAN_ENCODINGS)
junk = st.one_of(
    st.text(max_size=5),
    st.sampled_from(["O", "B-X", "I-X", "E-X", "S-X", "B", "b-X", "O-X", "", "B-", "I-Y", "L-X"]),
)


@st.composite
def layouts(draw):
    """Draw a length and spans that do not overlap, often adjacent, in any order."""
    spans, place = [], draw(st.integers(0, 2))
    for kind in draw(st.lists(types, max_size=5)):
        end = place + draw(st.integers(1, 4))
        spans.append(Span(kind, place, end))
        place = end + draw(st.sampled_from([0, 0, 1, 3]))
    return place + draw(st.integers(0, 2)), spans


@every_span_encoding
@given(layout=layouts())
def test_parse_is_the_inverse_of_write(encoding, layout):
    length, spans = layout
    tags = write(spans, length, encoding)
    assert len(tags) == length
    for policy in POLICIES:
        assert parse(tags, encoding, policy) == spans


@given(encoding=span_encodings, layout=layouts(), seed=st.randoms())
def test_the_order_of_spans_does_not_change_what_is_written(encoding, layout, seed):
    length, spans = layout
    shuffled = spans.copy()
    seed.shuffle(shuffled)
    assert write(shuffled, length, encoding) == write(spans, length, encoding)


@every_span_encoding
@given(layout=layouts(), other=span_encodings)
def test_convert_there_and_back_changes_nothing(encoding, layout, other):
    length, spans = layout
    tags = write(spans, length, encoding)
    there = convert(tags, encoding, other)
    assert parse(there, other) == spans
    assert convert(there, other, encoding) == tags


@given(encoding=span_encodings, corpus=st.lists(layouts(), max_size=4))
def test_codes_of_a_corpus_are_written_from_its_spans(encoding, corpus):
    items = [write(spans, length, encoding) for length, spans in corpus]
    codec = Codec.from_tags([tag for tags in items for tag in tags], encoding)
    tagged = codec.encode(items)
    codes = write_codes(find_spans(tagged, codec, "raise"), tagged.offsets, codec)
    assert codec.decode(Tagged(codes, tagged.offsets)) == items


@given(encoding=encodings, tags=st.lists(junk, max_size=6))
def test_any_strings_give_spans_or_a_goldspan_error(encoding, tags):
    before = list(tags)
    calls = [
        *(lambda policy=policy: parse(tags, encoding, policy) for policy in POLICIES),
        *(lambda other=other: convert(tags, encoding, other) for other in oracle.ENCODINGS),
        lambda: score([tags], [tags], encoding=encoding, bootstrap=100, wrong=True),
        lambda: Codec.from_tags(tags, encoding).encode([tags]),
        lambda: Codec(tuple(tags), encoding),
        lambda: transition_mask(tags, encoding),
        lambda: transitions(tags, encoding),
        lambda: write([(tag, i, i + 1) for i, tag in enumerate(tags)], len(tags), encoding),
    ]
    for call in calls:
        with contextlib.suppress(GoldspanError):
            call()
        assert tags == before


@given(encoding=encodings, tags=st.lists(junk, max_size=6))
def test_any_strings_are_parsed_with_errors_and_never_refused(encoding, tags):
    spans, errors = parse_with_errors(tags, encoding)
    assert all(error.current == tags[error.index] and error.message for error in errors)
    wrong = {
        error.index
        for error in errors
        if error.kind in {"unknown-tag", "wrong-case", "missing-type"}
    }
    for span in spans:
        assert 0 <= span.start < span.end <= len(tags)
        assert not wrong & set(span.tokens)
    try:
        assert parse(tags, encoding) == spans
    except GoldspanError:
        assert wrong


@given(
    encoding=encodings,
    rows=st.lists(
        st.tuples(st.one_of(st.none(), types), st.integers(-3, 6), st.integers(-3, 6)), max_size=4
    ),
    length=st.integers(-1, 5),
)
def test_any_spans_are_written_and_read_back_or_refused(encoding, rows, length):
    try:
        tags = write(rows, length, encoding)
    except GoldspanError:
        return
    assert parse(tags, encoding, "raise") == sorted(rows, key=lambda row: row[1])


@given(
    encoding=encodings,
    codes=st.lists(st.integers(-1, 9), max_size=8),
    cuts=st.lists(st.integers(0, 8), max_size=4),
    policy=st.sampled_from(POLICIES),
)
def test_any_arrays_give_spans_or_a_goldspan_error(encoding, codes, cuts, policy):
    codec = Codec(oracle.alphabet(encoding), encoding)
    tagged = Tagged(np.array(codes, np.int16), np.array([0, *cuts, len(codes)], np.int64))
    try:
        spans = find_spans(tagged, codec, policy)
    except GoldspanError:
        return
    assert (spans.start < spans.end).all()
    assert (tagged.offsets[spans.item] <= spans.start).all()
    assert (spans.end <= tagged.offsets[spans.item + 1]).all()
