"""The pair table itself: written out by hand once, and its laws in every encoding."""

from __future__ import annotations

import numpy as np
import pytest

from goldspan.spans import Codec
from goldspan.spans.encoding import (
    ENDED,
    LINKED,
    NEEDLESS_BEGIN,
    NO_BEGIN,
    NOT_CLOSED,
    STARTS,
    TYPE_CHANGE,
)
from spans import oracle

every_encoding = pytest.mark.parametrize("encoding", oracle.ENCODINGS)
S, E, N, T, C, L, U = STARTS, ENDED, NO_BEGIN, TYPE_CHANGE, NOT_CLOSED, LINKED, NEEDLESS_BEGIN


def _table(encoding):
    return Codec(oracle.alphabet(encoding), encoding).pairs


def test_the_table_of_bio_is_the_one_written_out_by_hand():
    expected = [
        # end    O     B-X    I-X        B-Y    I-Y
        [0,      0,    S,     S | N,     S,     S | N],      # start
        [0,      0,    S,     S | N,     S,     S | N],      # O
        [E,      E,    E | S, L,         E | S, E | S | T],  # B-X
        [E,      E,    E | S, L,         E | S, E | S | T],  # I-X
        [E,      E,    E | S, E | S | T, E | S, L],          # B-Y
        [E,      E,    E | S, E | S | T, E | S, L],          # I-Y
    ]  # fmt: skip
    assert _table("BIO").tolist() == expected


def test_the_table_of_iob_is_the_one_written_out_by_hand():
    expected = [
        # end    O     B-X        I-X    B-Y        I-Y
        [0,      0,    S | U,     S,     S | U,     S],      # start
        [0,      0,    S | U,     S,     S | U,     S],      # O
        [E,      E,    E | S,     L,     E | S | U, E | S],  # B-X
        [E,      E,    E | S,     L,     E | S | U, E | S],  # I-X
        [E,      E,    E | S | U, E | S, E | S,     L],      # B-Y
        [E,      E,    E | S | U, E | S, E | S,     L],      # I-Y
    ]  # fmt: skip
    assert _table("IOB").tolist() == expected


def test_the_table_of_iobes_is_the_one_written_out_by_hand():
    expected = [
        # end    O      B-X        I-X        E-X        S-X
        [0,      0,     S,         S | N,     S | N,     S],          # start
        [0,      0,     S,         S | N,     S | N,     S],          # O
        [E | C,  E | C, E | S | C, L,         L,         E | S | C],  # B-X
        [E | C,  E | C, E | S | C, L,         L,         E | S | C],  # I-X
        [E,      E,     E | S,     E | S | N, E | S | N, E | S],      # E-X
        [E,      E,     E | S,     E | S | N, E | S | N, E | S],      # S-X
    ]  # fmt: skip
    tags = ("O", "B-X", "I-X", "E-X", "S-X")
    assert Codec(tags, "IOBES").pairs.tolist() == expected


def test_with_end_tags_a_change_of_type_is_linked_and_a_fault():
    table = Codec(("O", "B-X", "I-Y", "E-Y"), "IOBES").pairs
    assert table[2, 3] == table[2, 4] == E | S | T | L


def test_plain_labels_are_spans_of_one_token_without_faults():
    expected = [[0, S, S, S], *[[E, E | S, E | S, E | S]] * 3]
    assert _table("PLAIN").tolist() == expected


@pytest.mark.parametrize("other", ["BILOU", "BMEWO"])
def test_encodings_that_differ_only_in_letters_have_one_table(other):
    assert (_table(other) == _table("IOBES")).all()


@every_encoding
def test_the_table_is_one_byte_a_pair_and_cannot_be_written(encoding):
    table = _table(encoding)
    assert table.dtype == np.uint8
    with pytest.raises(ValueError, match="read-only"):
        table[0, 0] = 1


@every_encoding
def test_the_order_of_the_tags_only_permutes_the_table(encoding):
    tags = oracle.alphabet(encoding)
    order = np.random.default_rng(1).permutation(len(tags))
    states = [0, *(order + 1)]
    shuffled = Codec(tuple(tags[i] for i in order), encoding).pairs
    assert (shuffled == _table(encoding)[np.ix_(states, states)]).all()


@every_encoding
def test_renaming_the_types_keeps_the_table(encoding):
    renamed = Codec(oracle.alphabet(encoding, ("creative-work", "zz")), encoding).pairs
    assert (renamed == _table(encoding)).all()
