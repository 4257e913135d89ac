"""Passwords are kept as argon2id hashes with the parameters of RFC 9106."""

from __future__ import annotations

import asyncio
import threading

import pytest
from argon2 import extract_parameters
from argon2.low_level import Type

from goldspan.server.errors import Refused
from goldspan.server.security import passwords
from goldspan.server.security.passwords import AT_ONCE, WAITING, hash_password, in_turn, is_password
from server.loops import run_loop

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
    ],
)  # fmt: skip
def test_a_password_that_is_short_or_tried_first_or_endless_is_refused(password):
    with pytest.raises(Refused, match="12 to 1000") as refused:
        hash_password(password)
    assert (refused.value.code, refused.value.status) == ("password", 422)


def test_any_characters_are_fine():
    password = "пароль 密码 🙂 ça va"
    assert is_password(password, hash_password(password))


def test_who_comes_when_too_many_wait_is_refused_at_once():
    going, checked = threading.Event(), []

    def check():
        going.wait(10)
        checked.append(threading.current_thread().name)

    async def crowd():
        tries = [asyncio.create_task(in_turn(check)) for _ in range(20)]
        await asyncio.sleep(0)  # all have asked
        told = [one.exception().status for one in tries if one.done()]
        going.set()
        await asyncio.gather(*tries, return_exceptions=True)
        await in_turn(check)  # there is room again
        return told

    assert run_loop(crowd) == [429] * (20 - AT_ONCE - WAITING)
    assert len(checked) == AT_ONCE + WAITING + 1
    assert len(set(checked)) <= AT_ONCE


def test_what_is_wrong_with_a_password_is_told_by_the_thread_that_hashes():
    with pytest.raises(Refused, match="12 to 1000"):
        run_loop(in_turn, lambda: hash_password("short"))
