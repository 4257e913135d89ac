"""The requester's password: argon2id, with the parameters of RFC 9106 for little memory."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import BoundedSemaphore, get_native_id
from typing import TypeVar

from argon2 import PasswordHasher, Type
from argon2.exceptions import InvalidHashError, VerificationError

from goldspan.server.errors import Refused

SHORTEST = 12
LONGEST = 1_000
OWN = 5
"""Characters that must be left of it without what is tried first, all but one different."""
TRIED = (
    "password", "passwort", "passw0rd", "1234567890", "0123456789", "123456789", "12345678",
    "123456", "12345", "1234", "qwertyuiop", "qwerty", "qwertz", "azerty", "asdfghjkl", "asdfgh",
    "zxcvbnm", "1q2w3e4r5t6y", "1q2w3e4r", "q1w2e3r4t5y6", "1qaz2wsx3edc", "1qaz2wsx", "qazwsxedc",
    "abcdefgh", "abc123", "iloveyou", "letmein", "welcome", "administrator", "admin", "changeme",
    "requester", "secret", "goldspan",
)  # fmt: skip
"""What people take who want no password, in small letters."""
AT_ONCE, WAITING = 2, 4
"""Passwords that are checked, and people who wait for that."""
_HASHER = PasswordHasher(
    time_cost=3, memory_cost=64 * 1024, parallelism=4, hash_len=32, salt_len=16, type=Type.ID
)


def _step_back() -> None:
    """Let all other threads go first; Linux alone can say so of one, and of those it starts."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, get_native_id(), 10)


# A hash takes 64 MiB: so many at once, and no more, however many ask. They have threads of their
# own: whoever tries passwords takes none of those in which workers are answered.
_THREADS = ThreadPoolExecutor(AT_ONCE, "password", _step_back)
_PLACES = BoundedSemaphore(AT_ONCE + WAITING)
Made = TypeVar("Made")


async def in_turn(act: Callable[[], Made]) -> Made:
    """Do what checks or hashes a password, when its turn comes.

    Raises:
        Refused: Too many wait already.
    """
    if not _PLACES.acquire(blocking=False):
        raise Refused("slow-down", "Too many people are logging in: try again.", 429, retry=10)
    doing = _THREADS.submit(act)
    doing.add_done_callback(lambda _: _PLACES.release())  # also if nobody waits for it any more
    return await asyncio.wrap_future(doing)


def hash_password(password: str) -> str:
    """Give what is kept of a password.

    Raises:
        Refused: It is too short or too long, or all of one character.
    """
    if not SHORTEST <= len(password) <= LONGEST or _is_guessable(password):
        raise Refused(
            "password",
            f"A password has {SHORTEST} to {LONGEST} characters, and not only words and rows of "
            "keys that everybody tries. A sentence that only you would write is a good one.",
            422,
        )
    return _HASHER.hash(_bytes(password))


def _is_guessable(password: str) -> bool:
    """Whether little is left of a password without what is tried first."""
    left = password.lower()
    for word in TRIED:
        left = left.replace(word, "")
    return len(left) < OWN or len(set(left)) < OWN - 1


def is_password(password: str, kept: str) -> bool:
    """Whether a password is the one of which this is kept; takes as long if none is kept."""
    if len(password) > LONGEST:
        return False
    try:
        return _HASHER.verify(kept or _NONE, _bytes(password)) and bool(kept)
    except (VerificationError, InvalidHashError):
        return False


def _bytes(password: str) -> bytes:
    return password.encode("utf-8", "surrogatepass")


_NONE = (
    "$argon2id$v=19$m=65536,t=3,p=4$AAAAAAAAAAAAAAAAAAAAAA$"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
)
"""A hash that no password has, in the same form: checking it takes as long."""
