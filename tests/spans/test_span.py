"""One sequence: parse, errors, write, convert, legality, each against the plain reading."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest

import goldspan.spans
from goldspan.errors import FaultsError, InputError, SpanError, UnknownNameError
from goldspan.spans import (
    Span,
    convert,
    next_tags,
    parse,
    transition_mask,
    transitions,
    validate,
    write,
)
from goldspan.spans.parsing import TagError, parse_with_errors
from looping import each
from spans import oracle

LONGEST = 4
every_encoding = each("encoding", oracle.ENCODINGS)


# Span


# parse


@each("policy", oracle.POLICIES)
@every_encoding
def test_parse_reads_every_short_sequence_as_the_definition_does(encoding, policy):
    reading = oracle.READINGS[policy]
    for tags in oracle.sequences(encoding, LONGEST):
        assert parse(tags, encoding, policy) == reading(tags, encoding), tags


@every_encoding
def test_policy_raise_refuses_exactly_the_malformed_sequences(encoding):
    well_formed = oracle.well_formed(encoding, 3)
    for tags in oracle.sequences(encoding, 3):
        if tags in well_formed:
            assert parse(tags, encoding, "raise") == well_formed[tags], tags
        else:
            with pytest.raises(FaultsError):
                parse(tags, encoding, "raise")


@each("tags", [[], ["O"]])
def test_an_unknown_policy_is_refused_with_the_names_of_all(tags):
    with pytest.raises(UnknownNameError, match="conlleval, strict, boundaries, raise"):
        parse(tags, policy="perl")


@each("policy", ["conlleval", "strict", "boundaries", "raise"])
def test_every_policy_refuses_a_string_that_is_no_tag(policy):
    with pytest.raises(FaultsError) as caught:
        parse(["O", "PER", "b-X"], policy=policy)
    assert [(f.token, f.kind) for f in caught.value.faults] == [
        (1, "unknown-tag"),
        (2, "wrong-case"),
    ]


# What a sequence may be


@pytest.mark.parametrize(
    "kind",
    [list, tuple, iter, np.array, lambda tags: (tag for tag in tags)],
    ids=["list", "tuple", "iterator", "array", "generator"],
)
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (parse, [("X", 0, 2), ("Y", 2, 3)]),
        (parse_with_errors, ([("X", 0, 2), ("Y", 2, 3)], [])),
        (validate, []),
        (lambda tags: convert(tags, "BIO", "IOBES"), ["B-X", "E-X", "S-Y"]),
    ],
    ids=["parse", "parse_with_errors", "validate", "convert"],
)
def test_any_kind_of_sequence_is_read_whole(function, expected, kind):
    assert function(kind(["B-X", "I-X", "B-Y"])) == expected


def test_a_pandas_column_is_read_by_place_and_not_by_its_index():
    column = pd.Series(["I-X", "O", "I-Y"], index=[2, 0, 1])
    spans, errors = parse_with_errors(column)
    assert spans == [("X", 0, 1), ("Y", 2, 3)]
    assert [(e.index, e.previous, e.current) for e in errors] == [(0, None, "I-X"), (2, "O", "I-Y")]


@pytest.mark.parametrize(
    "function",
    [parse, parse_with_errors, validate, lambda tags: convert(tags, "BIO", "IOB")],
    ids=["parse", "parse_with_errors", "validate", "convert"],
)
@each("text", ["O", "B-PER", ""])
def test_a_single_string_is_not_taken_for_a_list_of_tags(function, text):
    with pytest.raises(InputError, match="list of tags"):
        function(text)


# parse_with_errors, validate


@every_encoding
def test_errors_of_every_short_sequence_are_those_of_the_definition(encoding):
    for tags in oracle.sequences(encoding, LONGEST):
        spans, errors = parse_with_errors(tags, encoding)
        assert spans == oracle.conlleval(tags, encoding), tags
        assert [(e.index, e.kind) for e in errors] == oracle.faults(tags, encoding), tags


@every_encoding
def test_an_error_shows_the_tag_and_its_neighbours(encoding):
    for tags in oracle.sequences(encoding, 3):
        for error in validate(tags, encoding):
            padded = [None, *tags, None]
            around = (error.previous, error.current, error.next)
            assert around == tuple(padded[error.index : error.index + 3]), tags


@each(
    ("tags", "encoding", "error"),
    [
        (["O", "I-X"], "BIO", TagError(1, "no-begin", "O", "I-X", None,
            "I-X follows O: in BIO a span must open with its begin tag")),
        (["I-X"], "BIO", TagError(0, "no-begin", None, "I-X", None,
            "I-X follows the beginning: in BIO a span must open with its begin tag")),
        (["B-X", "I-Y", "O"], "BIO", TagError(1, "type-change", "B-X", "I-Y", "O",
            "I-Y follows B-X: the type changes within a span")),
        (["B-X", "O"], "IOBES", TagError(0, "not-closed", None, "B-X", "O",
            "B-X is followed by O: in IOBES a span must be closed")),
        (["B-X", "I-X"], "BILOU", TagError(1, "not-closed", "B-X", "I-X", None,
            "I-X is followed by the end: in BILOU a span must be closed")),
        (["O", "B-X"], "IOB", TagError(1, "needless-begin", "O", "B-X", None,
            "B-X follows O: in IOB B- is used only between touching spans of one type")),
    ],
)  # fmt: skip
def test_each_kind_of_error_says_what_is_wrong_in_a_sentence(tags, encoding, error):
    assert validate(tags, encoding) == [error]


@each(
    ("tag", "kind"),
    [
        ("junk", "unknown-tag"),
        ("E-X", "unknown-tag"),
        ("", "unknown-tag"),
        (None, "unknown-tag"),
        (3, "unknown-tag"),
        (["B-X"], "unknown-tag"),
        ("b-X", "wrong-case"),
        ("o", "wrong-case"),
        ("i", "wrong-case"),
        ("B", "missing-type"),
        ("I-", "missing-type"),
    ],
)
def test_a_string_that_is_no_tag_is_an_error_of_its_own_kind(tag, kind):
    spans, errors = parse_with_errors(["B-X", tag, "B-Y"])
    assert [(e.index, e.kind, e.current) for e in errors] == [(1, kind, tag)]
    assert spans == [("X", 0, 1), ("Y", 2, 3)]


@each("encoding", oracle.ENCODINGS[:-1])
def test_the_neighbours_of_a_string_that_is_no_tag_are_not_blamed(encoding):
    for left, right in product(oracle.alphabet(encoding), repeat=2):
        errors = validate([left, "junk", right], encoding)
        kinds = [(e.index, e.kind) for e in errors if e.index == 1]
        assert kinds == [(1, "unknown-tag")]
        beside = {(e.index, e.kind) for e in errors if e.index != 1}
        from_left = {fault for fault in oracle.faults([left], encoding) if fault[1] != "not-closed"}
        from_right = {
            (2, kind) for _, kind in oracle.faults([right], encoding) if kind == "not-closed"
        }
        assert beside == from_left | from_right, (left, right)


def test_errors_come_in_the_order_of_the_tokens():
    errors = validate(["I-X", "junk", "I-Y", "O", "B", "O", "I-X"])
    assert [e.index for e in errors] == [0, 1, 4, 6]


# write


@each("encoding", oracle.ENCODINGS[:-1])
def test_write_spells_every_layout_as_the_encoding_is_defined(encoding):
    for length in range(LONGEST + 1):
        for spans in oracle.layouts(length):
            assert write(spans, length, encoding) == oracle.spell(spans, length, encoding), spans


def test_write_takes_an_iterator_of_spans():
    assert write(iter([("X", 0, 1)]), 2) == ["B-X", "O"]


def test_write_takes_numpy_integers():
    edges = np.array([1, 3], np.int32)
    assert write([Span("X", edges[0], edges[1])], 3) == ["O", "B-X", "I-X"]


@each(
    ("spans", "length", "encoding", "why"),
    [
        ([("X", 0, 2), ("Y", 1, 3)], 4, "BIO", "overlaps"),
        ([("X", 0, 2), ("X", 0, 2)], 4, "BIO", "overlaps"),
        ([("X", 0, 4), ("Y", 1, 2)], 4, "BIO", "overlaps"),
        ([("Y", 1, 2), ("X", 0, 4)], 4, "IOB", "overlaps"),
        ([("X", 2, 2)], 4, "BIO", "empty"),
        ([("X", 3, 2)], 4, "BIO", "empty"),
        ([("X", 0, 0)], 0, "BIO", "empty"),
        ([("X", 0, 1)], 0, "BIO", "out of range"),
        ([("X", 2, 5)], 4, "IOBES", "out of range"),
        ([("X", 4, 5)], 4, "IOBES", "out of range"),
        ([("X", 9, 12)], 4, "IOBES", "out of range"),
        ([("X", -1, 2)], 4, "BILOU", "out of range"),
        ([("X", -3, -1)], 4, "BILOU", "out of range"),
        ([("", 0, 1)], 4, "BIO", "no type"),
        ([(None, 0, 1)], 4, "BIO", "no type"),
        ([("X", 0.5, 2)], 4, "BIO", "whole numbers"),
        ([("X", 0, 1.0)], 4, "BIO", "whole numbers"),
        ([], -1, "BIO", "-1 tokens"),
        ([("X", 0, 2)], 2, "PLAIN", "more than one token"),
        ([("X", 0, 1)], 2, "PLAIN", "1 labels for 2 tokens"),
        ([], 1, "PLAIN", "0 labels for 1 tokens"),
    ],
)
def test_spans_that_cannot_be_written_are_refused_with_the_reason(spans, length, encoding, why):
    with pytest.raises(SpanError, match=why):
        write(spans, length, encoding)


# convert

SPAN_ENCODINGS = oracle.ENCODINGS[:-1]


@each(("source", "target"), list(product(SPAN_ENCODINGS, repeat=2)))
def test_convert_writes_the_same_spans_in_the_other_encoding(source, target):
    for tags, spans in oracle.well_formed(source, 3).items():
        assert convert(tags, source, target) == oracle.spell(spans, len(tags), target), tags


@each("source", SPAN_ENCODINGS)
def test_convert_refuses_every_malformed_sequence_with_all_its_errors(source):
    well_formed = oracle.well_formed(source, 3)
    for tags in oracle.sequences(source, 3):
        if tags in well_formed:
            continue
        with pytest.raises(FaultsError) as caught:
            convert(tags, source, "BIO")
        found = [(fault.token, fault.kind) for fault in caught.value.faults]
        assert found == oracle.faults(tags, source), tags


def test_convert_puts_every_sentence_of_its_errors_into_one_exception():
    tags = ["I-X", "O", "junk", "b-Y", "I-Z"]
    with pytest.raises(FaultsError) as caught:
        convert(tags, "BIO", "IOBES")
    assert [f.message for f in caught.value.faults] == [e.message for e in validate(tags)]
    assert all(f.message in str(caught.value) for f in caught.value.faults)


@each("pair", [("PLAIN", "BIO"), ("BIO", "PLAIN")])
def test_plain_labels_are_not_turned_into_spans(pair):
    with pytest.raises(InputError, match="PLAIN"):
        convert(["O"], *pair)


# transitions


def _legal_pairs(encoding):
    """Neighbours that occur in any well-formed sequence; None is the start and the end."""
    pairs = set()
    for tags in oracle.well_formed(encoding, LONGEST):
        padded = [None, *tags, None]
        pairs |= set(pairwise(padded))
    return pairs


@every_encoding
def test_a_transition_is_legal_exactly_if_some_well_formed_sequence_has_it(encoding):
    tags = oracle.alphabet(encoding)
    pairs = _legal_pairs(encoding)
    for source, target, legal in transitions(tags, encoding):
        before = None if source == "<START>" else source
        after = None if target == "<END>" else target
        reachable = target != "<START>" and source != "<END>"
        assert legal == (reachable and (before, after) in pairs), (source, target)


@every_encoding
def test_the_mask_is_the_list_of_transitions_as_an_array(encoding):
    tags = oracle.alphabet(encoding)
    mask = transition_mask(tags, encoding)
    assert mask.dtype == np.bool_
    assert mask.shape == (len(tags) + 2, len(tags) + 2)
    assert mask.ravel().tolist() == [t.legal for t in transitions(tags, encoding)]


@every_encoding
def test_the_dictionary_of_transitions_has_the_same(encoding):
    tags = oracle.alphabet(encoding)
    found = next_tags(tags, encoding)
    legal = [(t.source, t.target) for t in transitions(tags, encoding) if t.legal]
    assert [(source, target) for source, after in found.items() for target in after] == legal
    assert found.keys() == {*tags, "<START>"}


@each("name", ["iob", "bio", "iobes", "bilou", "bmewo"])
def test_there_is_a_parser_for_every_encoding(name):
    for tags in oracle.well_formed(name.upper(), 3):
        assert getattr(goldspan.spans, f"parse_{name}")(tags) == parse(tags, name)


LIGHT = """
import sys
from goldspan import spans

def check(use):
    use()
    loaded = {"numba", "pyarrow", "pandas", "narwhals", "scipy"} & {*sys.modules}
    assert not loaded, (use.__code__.co_firstlineno, loaded)

tags, long = ["B-X", "I-X"], [["B-X", "I-X", "O"]] * 20_000
codec = spans.Codec.from_types(["X"])
for use in [
    lambda: spans.parse(tags), lambda: spans.parse_bio(tags), lambda: spans.validate(["I-X"]),
    lambda: spans.write([("X", 0, 2)], 3), lambda: spans.convert(tags, "BIO", "IOBES"),
    lambda: spans.next_tags(tags, "BIO"), lambda: spans.transitions(tags, "BIO"),
    lambda: spans.transition_mask(tags, "BIO"), lambda: codec.decode(codec.encode(long)),
    lambda: spans.find_spans(codec.encode(long), codec),
    lambda: spans.find_errors(codec.encode(long), codec),
    lambda: spans.tokenize("Ann é"), lambda: spans.to_tokens("Ann é", [("X", 0, 3)]),
    lambda: spans.score(long, long),
]:
    check(use)
"""


def test_all_of_it_runs_with_numpy_alone():
    subprocess.run([sys.executable, "-c", LIGHT], check=True)


# names of encodings


@each("name", ["BIOES", "bioes", "iobes", "IOBES", "BioEs"])
def test_every_function_takes_aliases_in_any_case(name):
    tags = ["B-X", "E-X"]
    assert parse(tags, name) == [("X", 0, 2)]
    assert validate(tags, name) == []
    assert write([("X", 0, 2)], 2, name) == tags
    assert convert(tags, name, name) == tags
    assert transition_mask(["O", "S-X"], name).shape == (4, 4)


@each(
    "call",
    [
        lambda name: parse([], name),
        lambda name: validate([], name),
        lambda name: write([], 0, name),
        lambda name: convert([], name, "BIO"),
        lambda name: convert([], "BIO", name),
        lambda name: transitions([], name),
        lambda name: transition_mask([], name),
    ],
)
def test_every_function_refuses_an_unknown_encoding_by_naming_them_all(call):
    with pytest.raises(UnknownNameError, match=r"IOB, BIO, IOBES, BILOU, BMEWO, PLAIN.*BMEOW"):
        call("IOBESX")
