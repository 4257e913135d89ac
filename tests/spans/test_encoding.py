"""Names of encodings, and how a single tag is read."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan.errors import FaultsError, UnknownNameError
from goldspan.spans import Codec, parse
from goldspan.spans.encoding import (
    ALIASES,
    ENCODINGS,
    Role,
    TagFault,
    get_encoding,
    read_tag,
    write_tag,
)
from looping import each
from spans import oracle

every_encoding = pytest.mark.parametrize("encoding", oracle.ENCODINGS)


def test_there_are_six_encodings():
    assert tuple(ENCODINGS) == oracle.ENCODINGS


@each(
    ("alias", "name"),
    [("IOB1", "IOB"), ("IOB2", "BIO"), ("BIOES", "IOBES"), ("BIOUL", "BILOU"), ("BMEOW", "BMEWO")],
)
def test_an_alias_means_its_encoding(alias, name):
    assert get_encoding(alias).name == name


@each("name", [*ENCODINGS, *ALIASES])
def test_names_and_aliases_are_found_in_any_case(name):
    assert get_encoding(name.lower()) == get_encoding(name) == get_encoding(name.title())


@each("name", ["IOBE", "", " BIO", None, 3, "BMES"])
def test_an_unknown_encoding_is_refused_and_all_are_named(name):
    with pytest.raises(UnknownNameError) as caught:
        get_encoding(name)
    assert all(known in str(caught.value) for known in [*ENCODINGS, *ALIASES])
    assert repr(name) in str(caught.value)


def test_a_near_miss_is_told_the_name_that_was_meant():
    with pytest.raises(UnknownNameError, match="did you mean 'IOBES'"):
        get_encoding("IOBEZ")


@each("encoding", oracle.ENCODINGS[:-1])
def test_every_prefix_plays_the_role_that_the_papers_give_it(encoding):
    roles = (Role.BEGIN, Role.INSIDE, Role.END, Role.SINGLE)
    expected = dict(zip(oracle.LETTERS[encoding], roles, strict=False))
    assert ENCODINGS[encoding].prefixes == expected
    for letter, role in expected.items():
        assert read_tag(f"{letter}-X", ENCODINGS[encoding]) == (role, "X")


def test_the_prefix_of_a_role_that_an_encoding_lacks_is_a_key_error():
    with pytest.raises(KeyError):
        ENCODINGS["BIO"].prefix(Role.END)


@each("kind", ["PER", "creative-work", "O", "-", "B-X", "é", "人", "a b", "🙂"])
@each("encoding", oracle.ENCODINGS[:-1])
def test_the_type_is_all_that_follows_the_first_hyphen(encoding, kind):
    for letter, role in ENCODINGS[encoding].prefixes.items():
        assert read_tag(f"{letter}-{kind}", ENCODINGS[encoding]) == (role, kind)


@given(kind=st.text(min_size=1))
def test_write_tag_is_the_inverse_of_read_tag(kind):
    for rules in ENCODINGS.values():
        roles = [*rules.prefixes.values()] or [Role.SINGLE]
        for role in roles:
            assert read_tag(write_tag(role, kind, rules), rules) == (role, kind)


@each(
    ("tag", "encoding", "kind"),
    [
        ("PER", "BIO", "unknown-tag"),
        ("O-PER", "BIO", "unknown-tag"),
        ("BI-PER", "BIO", "unknown-tag"),
        ("-PER", "BIO", "unknown-tag"),
        ("B_PER", "BIO", "unknown-tag"),
        (" B-PER", "BIO", "unknown-tag"),
        ("0", "BIO", "unknown-tag"),
        ("", "BIO", "unknown-tag"),
        ("E-PER", "BIO", "unknown-tag"),
        ("L-PER", "IOBES", "unknown-tag"),
        ("I-PER", "BMEWO", "unknown-tag"),
        (None, "BIO", "unknown-tag"),
        (float("nan"), "BIO", "unknown-tag"),
        (b"O", "BIO", "unknown-tag"),
        (None, "PLAIN", "unknown-tag"),
        ("b-PER", "BIO", "wrong-case"),
        ("e-PER", "IOBES", "wrong-case"),
        ("b-", "BIO", "wrong-case"),
        ("b", "BIO", "wrong-case"),
        ("o", "BIO", "wrong-case"),
        ("B", "BIO", "missing-type"),
        ("B-", "BIO", "missing-type"),
        ("M", "BMEWO", "missing-type"),
        ("", "PLAIN", "missing-type"),
    ],
)
def test_what_is_no_tag_is_a_fault_of_its_own_kind(tag, encoding, kind):
    read = read_tag(tag, ENCODINGS[encoding])
    assert isinstance(read, TagFault)
    assert read.kind == kind


@each("tag", ["X-PER", "b-PER", "B"])
def test_the_message_shows_the_tag_and_what_is_allowed(tag):
    message = read_tag(tag, ENCODINGS["IOBES"]).message
    assert repr(tag) in message
    assert "B-TYPE, I-TYPE, E-TYPE, S-TYPE and O" in message


@each(
    ("tag", "encoding", "hint"),
    [
        ("L-PER", "BIO", 'encoding="BILOU"'),
        ("E-PER", "BIO", 'encoding="IOBES"'),
        ("M-PER", "IOBES", 'encoding="BMEWO"'),
        ("I-PER", "BMEWO", 'encoding="IOB"'),
    ],
)
def test_the_message_names_the_encoding_in_which_the_tag_would_be_fine(tag, encoding, hint):
    assert hint in read_tag(tag, ENCODINGS[encoding]).message


def test_a_tag_of_no_encoding_gets_no_hint():
    assert "pass encoding" not in read_tag("Q-PER", ENCODINGS["BIO"]).message


@every_encoding
@given(tag=st.text(max_size=6))
def test_any_string_is_either_read_or_a_fault(encoding, tag):
    read = read_tag(tag, ENCODINGS[encoding])
    if isinstance(read, TagFault):
        assert read.kind in {"unknown-tag", "wrong-case", "missing-type"}
        assert read.message
    else:
        assert write_tag(*read, ENCODINGS[encoding]) == tag


@each("name", ENCODINGS)
def test_lists_are_read_as_other_sequences_are(name):
    """Lists have a short way of their own; the pair table decides in both."""
    codec = Codec.from_types(["A", "B"], name)
    for length in range(4):
        for tags in product(codec.tags, repeat=length):
            assert parse(list(tags), name) == parse(tags, name)


def test_more_labels_than_are_remembered_are_read():
    labels = [f"label {n}" for n in range(2500)]
    found = parse(labels, "PLAIN")
    assert [span.type for span in found] == labels
    assert parse(labels, "PLAIN") == found == parse(tuple(labels), "PLAIN")


@each("wrong", [None, "X-PER", "B", 3, ["B-PER"], "b-PER"])
def test_what_is_no_tag_is_refused_wherever_it_stands(wrong):
    for tags in ([wrong], ["O", wrong], [wrong, "B-PER"], ["B-PER", wrong, "O"]):
        with pytest.raises(FaultsError) as caught:
            parse(tags)
        assert [fault.token for fault in caught.value.faults] == [tags.index(wrong)]
