"""The traps that other tools fall into (MATH section 1), one test each."""

from __future__ import annotations

import contextlib

import pytest

from goldspan.errors import FaultsError, GoldspanError, SpanError
from goldspan.spans import (
    Codec,
    convert,
    find_spans,
    parse,
    score,
    validate,
    write,
)
from goldspan.spans.codec import transition_mask
from goldspan.spans.parsing import parse_with_errors
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


def test_the_case_of_a_type_is_its_own():
    assert parse(["B-per", "I-PER"]) == [("per", 0, 1), ("PER", 1, 2)]


@each("encoding", SPAN_ENCODINGS)
def test_a_type_named_o_raises_no_false_error(encoding):
    for length in range(4):
        for spans in oracle.layouts(length, ("O", "X")):
            tags = oracle.spell(spans, length, encoding)
            assert parse_with_errors(tags, encoding) == (spans, [])
            assert write(spans, length, encoding) == tags


def test_a_type_named_like_a_prefix_or_a_boundary_is_a_type():
    for kind in ("B", "I", "B-X", "<START>", "<END>", "?", "-", "None", "0"):
        tags = [f"B-{kind}", f"I-{kind}", "O"]
        assert parse(tags) == [(kind, 0, 2)]
        assert convert(tags, "BIO", "IOBES") == [f"B-{kind}", f"E-{kind}", "O"]


@each("encoding", ["IOBES", "BILOU", "BMEWO"])
@pytest.mark.parametrize("after", [["O"], [], ["B-X", "E-X"], ["S-X"]], ids=str)
def test_one_fault_is_told_once(encoding, after):
    letters = dict(zip("BIES", oracle.LETTERS[encoding], strict=True))
    tags = ["B-X", *after]
    tags = [tag if tag == "O" else letters[tag[0]] + tag[1:] for tag in tags]
    assert [(e.index, e.kind) for e in validate(tags, encoding)] == [(0, "not-closed")]


@each("encoding", ["IOBES", "BILOU", "BMEWO"])
def test_a_change_of_type_is_told_once_and_not_as_an_open_span_too(encoding):
    begin, inside, end, _ = oracle.LETTERS[encoding]
    tags = [f"{begin}-X", f"{inside}-Y", f"{end}-Y"]
    assert [(e.index, e.kind) for e in validate(tags, encoding)] == [(1, "type-change")]


@each("encoding", SPAN_ENCODINGS)
def test_a_span_that_is_open_at_the_end_is_not_dropped(encoding):
    inside = oracle.LETTERS[encoding][1]
    tags = ["O", "B-X", f"{inside}-X"]
    codec = Codec.from_types(["X"], encoding)
    assert parse(tags, encoding) == [("X", 1, 3)]
    assert find_spans(codec.encode([tags, ["O"]]), codec).end.tolist() == [3]


@each("encoding", SPAN_ENCODINGS)
def test_overlapping_spans_are_not_overwritten(encoding):
    for spans in (
        [("X", 0, 2), ("Y", 1, 3)],
        [("Y", 1, 3), ("X", 0, 2)],
        [("X", 0, 3), ("X", 1, 2)],
    ):
        with pytest.raises(SpanError, match="overlap"):
            write(spans, 3, encoding)


@each("encoding", oracle.ENCODINGS)
def test_input_lists_are_not_mutated(encoding):
    for tags in oracle.sequences(encoding, 2):
        given = list(tags)
        for call in (
            lambda: parse_with_errors(given, encoding),  # noqa: B023
            lambda: convert(given, encoding, encoding),  # noqa: B023
            lambda: score([given], [given], encoding=encoding),  # noqa: B023
        ):
            with contextlib.suppress(GoldspanError):
                call()
            assert given == list(tags)


def test_input_spans_are_not_mutated():
    spans = [("Y", 2, 3), ("X", 0, 2)]
    write(spans, 4)
    assert spans == [("Y", 2, 3), ("X", 0, 2)]


@each("encoding", SPAN_ENCODINGS)
@each("length", [0, 1, 5])
def test_writing_zero_spans_does_not_fail(encoding, length):
    assert write([], length, encoding) == ["O"] * length


def test_two_spans_that_the_perl_script_merges_stay_two():
    assert parse(["B-A", "E-A", "B-A", "E-A"], "IOBES") == [("A", 0, 2), ("A", 2, 4)]
    assert parse(["S-A", "S-A"], "IOBES") == [("A", 0, 1), ("A", 1, 2)]


@each("encoding", SPAN_ENCODINGS)
def test_types_may_contain_hyphens(encoding):
    spans = [("creative-work", 0, 2), ("creative-work", 2, 3), ("creative", 3, 4)]
    tags = write(spans, 5, encoding)
    assert parse_with_errors(tags, encoding) == (spans, [])
