"""Labels of tokens that an annotator has cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan.errors import SpanError
from goldspan.spans.encoding import PartSpan
from goldspan.spans.parts import (
    check_cuts,
    cuts_at,
    cuts_of,
    fit,
    nest,
    part_span,
    places_in,
    read_parts,
    write_parts,
)
from looping import each

WORDS = ["Der", "Apfelkuchen", "👩🏽\u200d🚀e\u0301x"]
TWO = [PartSpan("FRUIT", 1, 2, 0, 5), PartSpan("CAKE", 1, 2, 5)]


def test_two_spans_in_one_token():
    labels = write_parts(TWO, 3, "BIO")
    assert labels == ["O", [[0, "B-FRUIT"], [5, "B-CAKE"]], "O"]
    assert read_parts(labels, "BIO") == TWO
    assert cuts_of([labels, ["O", "O", "O"], None]) == {1: {5}}


def test_without_a_cut_labels_are_what_they_always_were():
    assert write_parts([PartSpan("X", 0, 2)], 3, "IOBES") == ["B-X", "E-X", "O"]
    assert fit(["B-X", None, "O"], {}, "BIO") == ["B-X", None, "O"]


@each(
    ("labels", "cuts", "tags"),
    [
        (["O", "B-X", "I-X"], {1: {5}}, ["O", "B-X", "I-X", "I-X"]),
        (["O", [[0, "B-X"], [5, "O"]], "O"], {}, ["O", "B-X", "O"]),
        (["O", [[0, "O"], [5, "B-X"]], "I-X"], {1: {3, 5}}, ["O", "O", "O", "B-X", "I-X"]),
        (["O", [[0, "B-X"], [5, "B-Y"]], "O"], {1: {3}}, ["O", "B-X", "I-X", "O"]),
        ([None, "B-X", "O"], {0: {1}}, [None, None, "B-X", "O"]),
    ],
)
def test_labels_are_fitted_to_tokens_that_others_cut(labels, cuts, tags):
    assert fit(labels, cuts, "BIO") == tags


def test_a_cut_is_between_what_readers_see_as_characters():
    check_cuts([PartSpan("X", 2, 3, 4), PartSpan("X", 2, 3, 0, 6)], WORDS)
    for char in (1, 2, 3, 5, 7, 99):
        with pytest.raises(SpanError, match=f"cannot be cut at {char}"):
            check_cuts([PartSpan("X", 2, 3, char)], WORDS)


@each("span", [(0, 4), (3, 4), (2, 2), (-1, 1), (1, 1)])
def test_a_span_that_is_no_place_is_refused(span):
    with pytest.raises(SpanError):
        write_parts([PartSpan("X", *span)], 3, "BIO")
    with pytest.raises(SpanError, match="overlaps"):
        write_parts([PartSpan("X", 0, 2, 0, 6), PartSpan("Y", 1, 2, 5)], 3, "BIO")


places = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=2, max_size=8, unique=True
)


@given(places, st.sampled_from(["BIO", "IOB", "IOBES", "BILOU", "BMEWO"]), st.booleans())
def test_what_is_written_is_read_again(ends, encoding, apart):
    ends = sorted(ends)
    pairs = zip(ends[:-1:2], ends[1::2], strict=False) if apart else pairwise(ends)
    spans = [part_span("XY"[n % 2], *pair) for n, pair in enumerate(pairs)]
    labels = write_parts(spans, 4, encoding)
    assert len(labels) == 4
    assert read_parts(labels, encoding) == spans
    cuts = cuts_of([labels])
    starts = [0, 5, 10, 15]
    fine = sorted({*starts, *(starts[n] + char for n, chars in cuts.items() for char in chars)})
    begins = places_in(starts, fine)
    assert cuts_at(begins) == cuts
    tags = fit(labels, cuts, encoding)
    assert len(tags) == len(begins)
    assert fit(nest(tags, begins), cuts, encoding) == tags
    assert read_parts(nest(tags, begins), encoding) == spans
