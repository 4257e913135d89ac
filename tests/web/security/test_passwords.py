"""Passwords are kept as argon2id hashes with the parameters of RFC 9106."""

from __future__ import annotations

import asyncio
import threading

import pytest
from argon2 import extract_parameters
from argon2.low_level import Type
from hypothesis import given, settings
from hypothesis import strategies as st

from goldspan.web.errors import Refused
from goldspan.web.security import account as passwords
from goldspan.web.security.account import AT_ONCE, WAITING, hash_password, in_turn, is_password
from web.loops import run_loop

GOOD = "correct horse battery"
REAL, NONE = passwords._HASHER, passwords._NONE
"""As the server has them; other tests pay less."""


@pytest.fixture
def kept():
    return hash_password(GOOD)


def test_the_hash_is_argon2id_with_64_mib_three_passes_and_a_salt(monkeypatch):
    monkeypatch.setattr(passwords, "_HASHER", REAL)
    found = extract_parameters(hash_password(GOOD))
    assert (found.type, found.memory_cost, found.time_cost) == (Type.ID, 65_536, 3)
    assert (found.salt_len, found.hash_len) == (16, 32)
    assert extract_parameters(NONE) == found


def test_the_same_password_has_another_hash_every_time(kept):
    assert hash_password(GOOD) != kept


def test_the_password_fits_and_no_other(kept):
    assert is_password(GOOD, kept)
    for other in ("", GOOD + " ", GOOD.upper(), GOOD[:-1], "\ud800", "x" * 2_000):
        assert not is_password(other, kept)


def test_where_no_password_is_kept_none_fits_though_one_is_checked(monkeypatch):
    checked = []

    class Watched:
        def verify(self, kept, _):
            checked.append(kept)
            return True

    monkeypatch.setattr(passwords, "_HASHER", Watched())
    assert not is_password(GOOD, "")
    assert checked == [passwords._NONE]


@pytest.mark.parametrize("kept", ["plain", "$argon2id$broken", GOOD])
def test_what_is_no_hash_fits_nothing(kept):
    assert not is_password(GOOD, kept)


@pytest.mark.parametrize(
    "password",
    [
        "", "elevenchars", "aaaaaaaaaaaaaaaa", "abababababab", "x1" * 501, "Password1234",
        "PASSWORDpassword!", "qwertyuiop123456", "1q2w3e4r5t6y", "goldspangoldspan2026",
        "iloveyou123456",
        # rows of keys, forwards, backwards and beneath each other; the alphabet
        "poiuytrewq12", "1qaz2wsx3edc", "qwertzuiop!!", "azertyuiop2024", "abcdefghijkl",
        "987654321000", "zxcvbnmasdfghjkl",
        # one thing again and again
        "abcabcabcabc", "xyxyxyxyxyxyxyxy", "121212121212", "7777777aaaaaaa",
        # words with digits, years and signs, and signs in the place of letters
        "P@ssw0rd2024!", "Admin1234567", "admin_admin_2025", "Welcome2025!!", "Summer2024!!!!",
        "letmein01.01.1990", "changeme-99999", "W3lc0me!W3lc0me!", "goldspan-admin-1",
        "ＰＡＳＳＷＯＲＤ1234",
        # one word or name of any kind with rows, years, digits or signs, or twice
        "charlie123456", "jennifer1234", "michael19851985", "trustno1trustno1", "Manchester1234",
        "Hunter2Hunter2", "chelsea88127", "#!Rotterdam72",
    ],
)  # fmt: skip
def test_a_password_that_is_short_or_tried_first_or_endless_is_refused(password):
    with pytest.raises(Refused, match="12 to 1000") as refused:
        hash_password(password)
    assert (refused.value.code, refused.value.status) == ("password", 422)
    assert "sentence that only you would write" in refused.value.message


@pytest.mark.parametrize(
    ("password", "words"),
    [
        ("password123456", "rows of keys and of letters, words that everybody tries"),
        ("Welcome2025!!", "years and dates, words that everybody tries"),
        ("abcabcabcabc", "what it repeats"),
        ("chelsea88127", "digits and signs before and behind a word"),
        ("short", "has 12 to 1000 characters"),
    ],
)
def test_it_is_said_why(password, words):
    with pytest.raises(Refused, match=words) as refused:
        hash_password(password)
    assert password not in refused.value.message


def test_the_name_of_the_campaign_is_no_password():
    for password in ("Street-Names-2025", "street names 1234", "namesnamesstreet"):
        assert hash_password(password)
        with pytest.raises(Refused, match="easily guessed"):
            hash_password(password, "street-names")
    assert hash_password("the street where Bo was born", "street-names")


@pytest.mark.parametrize(
    "password",
    [
        GOOD, "another good sentence", "tulip axle 9 moth", "zK4#pw!8vLq2", "Mein Hund frißt Senf.",
        "8d1f0b6c7a3e", "my password is my own secret sentence about a blue kettle",
        "in 1987 we had four grey geese", "ab12cd34ef56gh", "                a b c d e f",
    ],
)  # fmt: skip
def test_a_password_of_its_own_is_fine(password):
    assert hash_password(password)


@settings(max_examples=200)
@given(st.text(max_size=200), st.text(max_size=20))
def test_any_text_is_taken_or_refused_in_words(password, campaign):
    told = "$argon2id$"
    try:
        told = hash_password(password, campaign)
    except Refused as refused:
        told = refused.message
    assert told.startswith(("$argon2id$", "A password has", "This password is easily guessed"))


def test_any_characters_are_fine():
    password = "пароль 密码 🙂 ça va"
    assert is_password(password, hash_password(password))


def test_who_comes_when_too_many_wait_is_refused_at_once():
    going, checked = threading.Event(), []

    def check():
        going.wait(10)
        checked.append(threading.current_thread().name)

    async def crowd():
        tries = [asyncio.create_task(in_turn(check)) for _ in range(100)]
        await asyncio.sleep(0)  # all have asked
        told = [one.exception().status for one in tries if one.done()]
        going.set()
        await asyncio.gather(*tries, return_exceptions=True)
        await in_turn(check)  # there is room again
        return told

    assert run_loop(crowd) == [429] * (100 - AT_ONCE - WAITING)
    assert len(checked) == AT_ONCE + WAITING + 1
    assert len(set(checked)) <= AT_ONCE
