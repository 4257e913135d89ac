"""Tags as integers and back."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan.errors import FaultsError, InputError, UnknownNameError
from goldspan.spans import Codec, Tagged
from goldspan.spans.codec import MAX_TAGS, transition_mask
from goldspan.spans.encoding import Role
from looping import each
from spans import oracle

every_encoding = each("encoding", oracle.ENCODINGS)
SPAN_ENCODINGS = oracle.ENCODINGS[:-1]


def _corpora(encoding):
    tag = st.sampled_from([*oracle.alphabet(encoding, ("X", "Y", "O", "a-b")), None])
    return st.lists(st.lists(tag, max_size=6), max_size=6)


# Tag sets


@each("encoding", SPAN_ENCODINGS)
def test_outside_comes_first_and_the_other_tags_are_sorted(encoding):
    codec = Codec.from_types(["Y", "X", "Y"], encoding)
    expected = sorted(f"{p}-{kind}" for p in oracle.LETTERS[encoding] for kind in "XY")
    assert codec.tags == ("O", *expected)


def test_plain_labels_are_sorted_and_get_no_outside():
    assert Codec.from_types(["b", "a", "O"], "PLAIN").tags == ("O", "a", "b")
    assert Codec.from_types(["b", "a"], "PLAIN").tags == ("a", "b")
    assert Codec.from_types(["a", "O"], "PLAIN").outside == -1


@every_encoding
def test_from_tags_completes_the_tag_set_of_the_types_that_occur(encoding):
    last = oracle.alphabet(encoding)[-1]
    kind = last.split("-", 1)[-1]
    assert Codec.from_tags([last, last], encoding) == Codec.from_types([kind], encoding)


@each("encoding", SPAN_ENCODINGS)
def test_no_tags_make_a_tag_set_of_outside_alone(encoding):
    assert Codec.from_tags([], encoding).tags == ("O",)
    assert Codec.from_types([], encoding).types == ()


def test_tags_keep_the_order_that_they_are_given_in():
    codec = Codec(("I-X", "O", "B-X"), "BIO")
    assert codec.encode([["O", "B-X", "I-X"]]).codes.tolist() == [1, 2, 0]
    assert codec.outside == 1


def test_types_roles_and_codes_belong_together():
    codec = Codec(("I-b", "O", "S-a", "B-b"), "IOBES")
    assert codec.types == ("a", "b")
    assert codec.roles.tolist() == [Role.INSIDE, Role.OUTSIDE, Role.SINGLE, Role.BEGIN]
    assert codec.type_of.tolist() == [1, -1, 0, 1]
    assert codec.type_name == ("b", "", "a", "b")
    assert codec.code_of.tolist() == [[1, 1], [-1, 3], [-1, 0], [-1, -1], [2, -1]]


def test_a_tag_that_stands_twice_is_refused():
    with pytest.raises(FaultsError, match="'B-X' appears twice") as caught:
        Codec(("O", "B-X", "B-X"), "BIO")
    assert [fault.kind for fault in caught.value.faults] == ["duplicate-tag"]


@each("make", [Codec, Codec.from_tags])
def test_all_tags_that_are_not_of_the_encoding_are_listed(make):
    with pytest.raises(FaultsError) as caught:
        make(("B", "E-X", "O", "b-X"), "BIO")
    assert sorted(f.kind for f in caught.value.faults) == [
        "missing-type",
        "unknown-tag",
        "wrong-case",
    ]


def test_an_unknown_encoding_is_refused():
    with pytest.raises(UnknownNameError, match="BMEWO"):
        Codec.from_types(["X"], "BIE")


@every_encoding
def test_start_end_and_inner_masks_are_the_transition_mask(encoding):
    codec = Codec(oracle.alphabet(encoding), encoding)
    whole = transition_mask(codec.tags, encoding)
    assert (codec.mask == whole[:-2, :-2]).all()
    assert (codec.start_mask == whole[-2, :-2]).all()
    assert (codec.end_mask == whole[:-2, -1]).all()


def test_a_codec_survives_pickling_with_its_tables():
    codec = Codec.from_types(["X", "a-b"], "IOBES")
    table = codec.pairs
    again = pickle.loads(pickle.dumps(codec))
    assert again == codec
    assert (again.pairs == table).all()


# Encoding and decoding


@given(encoding=st.sampled_from(oracle.ENCODINGS), data=st.data())
def test_decode_is_the_inverse_of_encode(encoding, data):
    corpus = data.draw(_corpora(encoding))
    codec = Codec.from_types(["X", "Y", "O", "a-b"], encoding)
    tagged = codec.encode(corpus)
    assert codec.decode(tagged) == [list(tags) for tags in corpus]
    assert np.diff(tagged.offsets).tolist() == [len(tags) for tags in corpus]


def test_codes_are_int16_and_offsets_int64():
    tagged = Codec.from_types(["X"]).encode([["O"], []])
    assert tagged.codes.dtype == np.int16
    assert tagged.offsets.dtype == np.int64


def test_a_matrix_decodes_to_one_row_of_workers_per_token():
    codec = Codec.from_types(["X"])
    codes = np.array([[0, 1], [-1, 2], [0, 0]], np.int16)
    rows = codec.decode(Tagged(codes, np.array([0, 2, 3])))
    assert rows == [[["O", "B-X"], [None, "I-X"]], [["O", "O"]]]


def test_every_tag_outside_the_tag_set_is_listed_with_its_place():
    codec = Codec.from_types(["X"], "BIO")
    with pytest.raises(FaultsError) as caught:
        codec.encode([["O", "B-Y"], [], ["b-X", "O", "junk", 3, ["O"]], ["B"]])
    assert [(f.item, f.token, f.kind) for f in caught.value.faults] == [
        ("0", 1, "unknown-tag"),
        ("2", 0, "wrong-case"),
        ("2", 2, "unknown-tag"),
        ("2", 3, "unknown-tag"),
        ("2", 4, "unknown-tag"),
        ("3", 0, "missing-type"),
    ]


@each("single", ["O", ["O", "B-X"], ("O",)])
def test_a_single_sequence_is_not_taken_for_a_corpus(single):
    with pytest.raises(InputError, match="one per item"):
        Codec.from_types(["X"]).encode(single)


@each("code", [-2, 3, 4, 100, -32768])
def test_a_code_outside_the_tag_set_is_not_decoded(code):
    with pytest.raises(InputError, match=r"-1 … 2"):
        Codec.from_types(["X"]).decode(Tagged(np.array([0, code], np.int16), np.array([0, 2])))


# The limits of int16


def test_the_largest_tag_set_encodes_and_decodes_its_last_code():
    codec = Codec(tuple(f"L{i}" for i in range(MAX_TAGS)), "PLAIN")
    tagged = codec.encode([[codec.tags[-1], codec.tags[0], None]])
    assert tagged.codes.tolist() == [MAX_TAGS - 1, 0, -1]
    assert codec.decode(tagged) == [[f"L{MAX_TAGS - 1}", "L0", None]]


def test_more_tags_than_int16_holds_are_refused():
    with pytest.raises(InputError, match="are more than 32000"):
        Codec(tuple(f"L{i}" for i in range(MAX_TAGS + 1)), "PLAIN")
