"""A signed value is read as it was made, by the seal that made it, or not at all."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from itsdangerous import URLSafeSerializer

from goldspan.web.settings import LONGEST, Signer, new_id

SEAL = Signer(bytes(range(32)))
FACTS = {"worker": "ann", "expires": 7}


@given(st.dictionaries(st.text(max_size=9), st.integers() | st.text(max_size=9), max_size=4))
def test_what_was_signed_is_read_back(facts):
    assert SEAL.read(SEAL.sign(facts)) == facts


@pytest.mark.torture("links and cookies are forged", "none is taken")
@given(st.data())
def test_a_token_with_any_other_character_is_none(data):
    token = SEAL.sign(FACTS)
    place = data.draw(st.integers(0, len(token) - 1))
    letter = data.draw(st.sampled_from("ABCyz019-_. é"))
    changed = token[:place] + letter + token[place + 1 :]
    read = SEAL.read(changed)
    # The last letter of Base64 holds bits that are not looked at.
    assert read is None or changed == token or place == len(token) - 1


@pytest.mark.parametrize(
    "token",
    [
        "", ".", "..", "a.b", "é", "\ud800", "x" * (LONGEST + 1),
        urlsafe_b64encode(json.dumps(FACTS).encode()).decode().rstrip("="),
        urlsafe_b64encode(json.dumps(FACTS).encode()).decode().rstrip("=") + ".",
        URLSafeSerializer(b"other", salt=b"goldspan").dumps(FACTS),
        URLSafeSerializer(bytes(range(32)), salt=b"other").dumps(FACTS),
    ],
)  # fmt: skip
def test_what_this_seal_has_not_made_is_none(token):
    assert SEAL.read(token) is None


def test_what_is_no_object_is_none():
    serializer = SEAL._serializer
    assert SEAL.read(serializer.dumps([1])) is None
    assert SEAL.read(serializer.dumps(FACTS)) == FACTS


def test_ids_are_long_and_never_the_same():
    made = {new_id() for _ in range(1_000)}
    assert len(made) == 1_000
    assert {len(one) for one in made} == {32}
