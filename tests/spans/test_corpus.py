"""A whole corpus at once: the array path says what the single-sentence path says."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest

from goldspan.errors import FaultsError, InputError, SpanError, UnknownNameError
from goldspan.spans import Codec, Tagged, find_errors, find_spans, parse
from goldspan.spans.corpus import POLICIES, SpanArray, token_flags, write_codes
from goldspan.spans.encoding import FAULT_KINDS
from goldspan.spans.parsing import parse_with_errors
from looping import each
from spans import oracle

LONGEST = 4
every_encoding = each("encoding", oracle.ENCODINGS)
every_policy = each("policy", oracle.POLICIES)


def _codec(encoding):
    return Codec(oracle.alphabet(encoding), encoding)


@cache
def _every_sequence(encoding):
    """All sequences up to four tokens as one corpus, with items without tokens among them."""
    items = [list(tags) for tags in oracle.sequences(encoding, LONGEST)]
    items.insert(len(items) // 2, [])
    items.append([])
    return items, _codec(encoding).encode(items)


@cache
def _every_column(encoding):
    """All rows of four tokens in which some may be unlabelled, one worker each."""
    codec = _codec(encoding)
    codes = np.array(list(product(range(-1, len(codec.tags)), repeat=4)), np.int16).T
    tags = [[None if c < 0 else codec.tags[c] for c in column] for column in codes.T.tolist()]
    return tags, codes


def _by_item(spans, codec, offsets):
    """Turn a span array into lists of (type, start, end), one list per item."""
    found = [[] for _ in range(len(offsets) - 1)]
    for start, end, kind, item in zip(
        spans.start.tolist(), spans.end.tolist(), spans.type, spans.item, strict=True
    ):
        base = int(offsets[item])
        found[item].append((codec.types[kind], start - base, end - base))
    return found


def _by_worker(spans, codec, n_workers):
    found = [[] for _ in range(n_workers)]
    for start, end, kind, worker in zip(
        spans.start.tolist(), spans.end.tolist(), spans.type, spans.worker, strict=True
    ):
        found[worker].append((codec.types[kind], start, end))
    return found


def _span_array(rows, codec):
    """Make a span array from (type, start, end)."""
    place = {kind: i for i, kind in enumerate(codec.types)}
    zeros = np.zeros(len(rows), np.int32)
    return SpanArray(
        np.array([row[1] for row in rows], np.int64),
        np.array([row[2] for row in rows], np.int64),
        np.array([place[row[0]] for row in rows], np.int16),
        zeros,
        zeros,
    )


# find_spans on one column


@every_policy
@every_encoding
def test_the_array_path_reads_every_short_sequence_as_parse_does(encoding, policy):
    codec = _codec(encoding)
    items, tagged = _every_sequence(encoding)
    found = _by_item(find_spans(tagged, codec, policy), codec, tagged.offsets)
    for tags, spans in zip(items, found, strict=True):
        assert spans == parse(tags, encoding, policy), tags


def test_policy_raise_lists_the_faults_of_all_items_and_workers():
    codec = Codec.from_types(["X", "Y"], "BIO")
    column = [codec.index[tag] for tag in ("B-X", "O", "I-X", "I-Y")]
    codes = np.array([[0, 0, 0, 0], column], np.int16).T
    with pytest.raises(FaultsError) as caught:
        find_spans(Tagged(codes, np.array([0, 1, 1, 4])), codec, "raise")
    assert [(f.item, f.token, f.worker, f.kind) for f in caught.value.faults] == [
        ("2", 1, "1", "no-begin"),
        ("2", 2, "1", "type-change"),
    ]


def test_spans_come_by_worker_and_then_by_place():
    codec = Codec.from_types(["X"], "BIO")
    codes = np.array([[1, 1], [0, 1], [1, -1]], np.int16)
    spans = find_spans(Tagged(codes, np.array([0, 3])), codec)
    assert spans.worker.tolist() == [0, 0, 1, 1]
    assert spans.start.tolist() == [0, 2, 0, 1]


@each("n_empty", [0, 1, 50])
def test_items_without_tokens_do_not_shift_the_item_of_a_span(n_empty):
    codec = Codec.from_types(["X"], "BIO")
    empty = [[]] * n_empty
    tagged = codec.encode([*empty, ["O"], *empty, ["B-X"], *empty, ["O", "I-X"], *empty])
    assert find_spans(tagged, codec).item.tolist() == [2 * n_empty + 1, 3 * n_empty + 2]
    assert find_spans(tagged, codec, "boundaries").item.tolist() == [2 * n_empty + 1]
    told = find_errors(tagged, codec).describe(tagged, codec)
    assert [(f.item, f.token) for f in told] == [(str(3 * n_empty + 2), 1)]


@every_policy
def test_a_large_corpus_is_read_like_its_parts(policy):
    codec = _codec("BIO")
    items, part = _every_sequence("BIO")
    copies = 1 + 150_000 // len(part.codes)
    starts = part.offsets[:-1] + len(part.codes) * np.arange(copies)[:, None]
    offsets = np.append(starts.ravel(), copies * len(part.codes))
    whole = find_spans(Tagged(np.tile(part.codes, copies), offsets), codec, policy)
    alone = find_spans(part, codec, policy)
    shift = np.arange(copies)[:, None]
    assert (whole.start == (alone.start + len(part.codes) * shift).ravel()).all()
    assert (whole.end == (alone.end + len(part.codes) * shift).ravel()).all()
    assert (whole.item == (alone.item + len(items) * shift).ravel()).all()
    assert (whole.type == np.tile(alone.type, copies)).all()


def test_span_arrays_have_the_types_that_they_promise():
    codec = Codec.from_types(["X"], "IOBES")
    for policy in POLICIES:
        spans = find_spans(codec.encode([["S-X"]]), codec, policy)
        dtypes = [getattr(spans, name).dtype for name in ("start", "end", "type", "item", "worker")]
        assert dtypes == [np.int64, np.int64, np.int16, np.int32, np.int32], policy


def test_take_selects_by_mask_and_by_index():
    codec = Codec.from_types(["X"], "BIO")
    spans = find_spans(codec.encode([["B-X", "B-X", "B-X"]]), codec)
    assert spans.take(np.array([True, False, True])).start.tolist() == [0, 2]
    assert spans.take(np.array([2, 0])).start.tolist() == [2, 0]
    assert len(spans) == 3


# find_spans on matrices


@every_policy
@every_encoding
def test_every_column_with_gaps_is_read_piece_by_piece(encoding, policy):
    codec = _codec(encoding)
    tags, codes = _every_column(encoding)
    spans = find_spans(Tagged(codes, np.array([0, 4])), codec, policy)
    found = _by_worker(spans, codec, codes.shape[1])
    reading = oracle.READINGS[policy]
    for column, seen in zip(tags, found, strict=True):
        expected = [
            (kind, start + first, end + first)
            for first, piece in oracle.split_at_gaps(column)
            for kind, start, end in reading(piece, encoding)
        ]
        assert seen == expected, column


@every_policy
@every_encoding
def test_a_matrix_is_read_column_by_column(encoding, policy):
    codec = _codec(encoding)
    _, codes = _every_column(encoding)
    codes = codes[:, :: max(1, codes.shape[1] // 200)]
    offsets = np.array([0, 0, 1, 3, 3, 4])
    every = Tagged(codes, offsets)
    whole, errors = find_spans(every, codec, policy), find_errors(every, codec)
    flags = token_flags(every, codec)
    for worker, column in enumerate(codes.T):
        alone = Tagged(column.copy(), offsets)
        assert (flags[:, worker] == token_flags(alone, codec)).all()
        mine, theirs = whole.take(whole.worker == worker), find_spans(alone, codec, policy)
        for name in ("start", "end", "type", "item"):
            assert (getattr(mine, name) == getattr(theirs, name)).all(), (worker, name)
        own, faults = errors.worker == worker, find_errors(alone, codec)
        assert (errors.position[own] == faults.position).all()
        assert (errors.kind[own] == faults.kind).all()


@every_encoding
def test_errors_of_every_column_with_gaps_are_those_of_its_pieces(encoding):
    codec = _codec(encoding)
    tags, codes = _every_column(encoding)
    errors = find_errors(Tagged(codes, np.array([0, 4])), codec)
    told = [[] for _ in tags]
    for place, kind, worker in zip(
        errors.position.tolist(), errors.kind.tolist(), errors.worker.tolist(), strict=True
    ):
        told[worker].append((place, FAULT_KINDS[kind]))
    for column, seen in zip(tags, told, strict=True):
        expected = [
            (token + first, kind)
            for first, piece in oracle.split_at_gaps(column)
            for token, kind in oracle.faults(piece, encoding)
        ]
        assert seen == expected, column


@each("shape", [(0,), (0, 3), (4, 0), (0, 0)])
@each("policy", POLICIES)
def test_arrays_without_tokens_or_workers_have_no_spans(shape, policy):
    codec = _codec("IOBES")
    tagged = Tagged(np.zeros(shape, np.int16), np.array([0, 0, shape[0]]))
    assert len(find_spans(tagged, codec, policy)) == 0
    assert len(find_errors(tagged, codec)) == 0
    assert token_flags(tagged, codec).shape == shape


# token_flags and find_errors


def test_flags_are_one_byte_a_token():
    codec = Codec.from_types(["X"], "BIO")
    assert token_flags(codec.encode([["B-X", "O"]]), codec).dtype == np.uint8


@every_encoding
def test_errors_are_told_in_the_words_of_the_single_sentence_path(encoding):
    codec = _codec(encoding)
    items, tagged = _every_sequence(encoding)
    told = find_errors(tagged, codec).describe(tagged, codec)
    expected = [
        (str(n), error.index, error.kind, error.message)
        for n, tags in enumerate(items)
        for error in parse_with_errors(tags, encoding)[1]
    ]
    assert [(f.item, f.token, f.kind, f.message) for f in told] == expected


def test_the_worker_of_an_error_is_named_only_for_a_matrix():
    codec = Codec.from_types(["X"], "BIO")
    one = codec.encode([["I-X"]])
    two = Tagged(np.array([[0, 2]], np.int16), one.offsets)
    assert [f.worker for f in find_errors(one, codec).describe(one, codec)] == [""]
    assert [f.worker for f in find_errors(two, codec).describe(two, codec)] == ["1"]


# Widths and types of the arrays


@each(
    ("encoding", "n_types"),
    [("BIO", 7), ("BIO", 8), ("IOBES", 3), ("IOBES", 4), ("BIO", 127), ("BIO", 128), ("IOB", 150)],
)
@every_policy
def test_tag_sets_of_any_width_are_read_alike(encoding, n_types, policy):
    codec = Codec.from_types([f"T{i:03d}" for i in range(n_types)], encoding)
    n_tags = len(codec.tags)
    rng = np.random.default_rng(n_types)
    near = (rng.integers(n_tags, size=600)[:, None] + rng.integers(-1, 2, (600, 5))) % n_tags
    ends = np.array([[0, 0, 1, n_tags - 1, n_tags - 1], [n_tags - 1, 1, n_tags - 2, 0, 1]])
    rows = np.concatenate([near, ends]).astype(np.int16)
    tagged = Tagged(rows.ravel(), np.arange(0, rows.size + 1, 5))
    found = _by_item(find_spans(tagged, codec, policy), codec, tagged.offsets)
    for tags, spans in zip(codec.decode(tagged), found, strict=True):
        assert spans == oracle.READINGS[policy](tags, encoding), tags


@each("dtype", [np.int8, np.int16, np.int32, np.int64])
@each("n_types", [2, 7, 63, 64])
def test_codes_may_be_integers_of_any_width(dtype, n_types):
    codec = Codec.from_types([f"T{i:03d}" for i in range(n_types)], "BIO")
    last = min(len(codec.tags) - 1, 127)
    codes = np.array([last, -1, last, 0, 1], np.int64)
    wide = find_spans(Tagged(codes, np.array([0, 5])), codec)
    found = find_spans(Tagged(codes.astype(dtype), np.array([0, 5])), codec)
    assert found.start.tolist() == wide.start.tolist() == [0, 2, 4]
    assert found.type.tolist() == wide.type.tolist()


@each("policy", POLICIES)
def test_arrays_that_cannot_be_written_to_are_read(policy):
    codec = Codec.from_types(["X"], "BIO")
    tagged = codec.encode([["B-X", "I-X"], ["O", "B-X"]])
    before = tagged.codes.copy()
    for array in tagged:
        array.flags.writeable = False
    assert len(find_spans(tagged, codec, policy)) == 2
    assert (tagged.codes == before).all()


@each(
    ("codes", "offsets", "why"),
    [
        ([0.0, 1.0], [0, 2], "integers"),
        ([[[0]]], [0, 1], "integers"),
        ([0, 1], [0, 1], "run from 0"),
        ([0, 1], [0, 3], "run from 0"),
        ([0, 1], [1, 2], "run from 0"),
        ([0, 1], [], "run from 0"),
        ([0, 1], [0, 2, 1, 2], "must not fall"),
        ([0, 3], [0, 2], r"-1 … 2"),
        ([0, -2], [0, 2], r"-1 … 2"),
        ([[0, 5]], [0, 1], r"-1 … 2"),
    ],
)
def test_arrays_that_make_no_sense_are_refused(codes, offsets, why):
    codec = Codec.from_types(["X"], "BIO")
    tagged = Tagged(np.array(codes), np.array(offsets))
    for function in (token_flags, find_spans, find_errors):
        with pytest.raises(InputError, match=why):
            function(tagged, codec)


def test_an_unknown_policy_is_refused_with_the_names_of_all():
    codec = Codec.from_types(["X"], "BIO")
    with pytest.raises(UnknownNameError, match="conlleval, strict, boundaries, raise"):
        find_spans(codec.encode([["O"]]), codec, "lenient")


# write_codes


@each("encoding", oracle.ENCODINGS[:-1])
def test_write_codes_spells_every_layout_over_two_items(encoding):
    codec = Codec.from_types(["X", "Y"], encoding)
    offsets = np.array([0, 0, 2, 2, 4])
    for left, right in product(oracle.layouts(2), repeat=2):
        shifted = [(kind, start + 2, end + 2) for kind, start, end in right]
        codes = write_codes(_span_array([*left, *shifted], codec), offsets, codec)
        items = codec.decode(Tagged(codes, offsets))
        assert items == [[], oracle.spell(left, 2, encoding), [], oracle.spell(right, 2, encoding)]


@every_encoding
def test_write_codes_is_the_inverse_of_find_spans_on_well_formed_tags(encoding):
    codec = _codec(encoding)
    tagged = codec.encode(list(oracle.well_formed(encoding, LONGEST)))
    codes = write_codes(find_spans(tagged, codec), tagged.offsets, codec)
    assert codes.dtype == np.int16
    assert (codes == tagged.codes).all()


def test_write_codes_takes_spans_in_any_order():
    codec = Codec.from_types(["X", "Y"], "IOBES")
    spans = _span_array([("Y", 3, 4), ("X", 0, 2)], codec)
    codes = write_codes(spans, np.array([0, 4]), codec)
    assert codec.decode(Tagged(codes, np.array([0, 4]))) == [["B-X", "E-X", "O", "S-Y"]]


@each(
    ("rows", "why"),
    [
        ([("X", 1, 3)], "leaves its item"),
        ([("X", 0, 5)], "leaves its item"),
        ([("X", 0, 1), ("Y", 4, 6)], "out of range"),
        ([("X", 0, 2), ("Y", 1, 2)], "overlaps"),
        ([("X", 2, 2)], "empty"),
        ([("X", -1, 1)], "out of range"),
    ],
)
def test_spans_that_cannot_be_written_are_refused(rows, why):
    codec = Codec.from_types(["X", "Y"], "BIO")
    with pytest.raises(SpanError, match=why):
        write_codes(_span_array(rows, codec), np.array([0, 2, 2, 5]), codec)


@each(
    ("tags", "encoding", "row"),
    [
        (("O", "B-X"), "BIO", ("X", 0, 2)),
        (("O", "I-X"), "BIO", ("X", 0, 1)),
        (("O", "B-X", "I-X", "E-X"), "IOBES", ("X", 0, 1)),
        (("O", "B-X", "E-X", "S-X"), "IOBES", ("X", 0, 3)),
        (("B-X", "I-X"), "BIO", ("X", 0, 2)),
    ],
)
def test_a_tag_that_the_tag_set_lacks_is_not_left_out_silently(tags, encoding, row):
    codec = Codec(tags, encoding)
    with pytest.raises(SpanError, match="no tag for token"):
        write_codes(_span_array([row], codec), np.array([0, 3]), codec)
