"""The traps that other tools fall into (MATH section 1), one test each."""

from __future__ import annotations

import pytest

from goldspan.errors import FaultsError
from goldspan.spans import Codec, convert, parse, score, write
from goldspan.spans.codec import transition_mask
from looping import each
from spans import oracle

SPAN_ENCODINGS = oracle.ENCODINGS[:-1]
READERS = {
    "parse": lambda tags: parse(tags, "BIO"),
    "convert": lambda tags: convert(tags, "BIO", "IOBES"),
    "score": lambda tags: score([tags], [tags]),
    "mask": lambda tags: transition_mask(tags, "BIO"),
    "codec": lambda tags: Codec.from_types(["PER"], "BIO").encode([tags]),
    "from_tags": lambda tags: Codec.from_tags(tags, "BIO"),
}
every_reader = pytest.mark.parametrize("read", READERS.values(), ids=READERS)


@every_reader
@each("tag", ["PER", "X-PER", "o", "0", "", " O", "E-PER", "O-PER"])
def test_an_unknown_tag_is_not_read_as_outside(read, tag):
    with pytest.raises(FaultsError):
        read([tag])


@every_reader
@each("tag", ["B", "I", "B-", "I-"])
def test_a_tag_without_a_type_is_not_read_as_a_type(read, tag):
    with pytest.raises(FaultsError) as caught:
        read([tag])
    assert [fault.kind for fault in caught.value.faults] == ["missing-type"]


@every_reader
@each("tag", ["b-PER", "i-PER"])
def test_a_prefix_in_the_wrong_case_is_not_accepted(read, tag):
    with pytest.raises(FaultsError) as caught:
        read([tag])
    assert [fault.kind for fault in caught.value.faults] == ["wrong-case"]


def test_a_type_named_like_a_prefix_or_a_boundary_is_a_type():
    for kind in ("B", "I", "B-X", "<START>", "<END>", "?", "-", "None", "0"):
        tags = [f"B-{kind}", f"I-{kind}", "O"]
        assert parse(tags) == [(kind, 0, 2)]
        assert convert(tags, "BIO", "IOBES") == [f"B-{kind}", f"E-{kind}", "O"]


def test_input_spans_are_not_mutated():
    spans = [("Y", 2, 3), ("X", 0, 2)]
    write(spans, 4)
    assert spans == [("Y", 2, 3), ("X", 0, 2)]
