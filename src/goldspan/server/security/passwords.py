"""The requester's password: argon2id, with the parameters of RFC 9106 for little memory."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import BoundedSemaphore, get_native_id
from typing import TypeVar

from argon2 import PasswordHasher, Type
from argon2.exceptions import InvalidHashError, VerificationError

from goldspan.old_name import OLD_NAME
from goldspan.server.errors import Refused

SHORTEST = 12
LONGEST = 1_000
OWN, DIFFERENT = 11, 4
"""Characters that must be left of it without what is tried first, and how many different ones: one
word is too little."""
ROW = 4
"""Characters that make a row, of keys, of the alphabet or of one digit after the other."""
WORDS = (
    "password", "passwort", "passwd", "passphrase", "pass", "admin", "administrator", "root",
    "user", "guest", "login", "welcome", "willkommen", "letmein", "changeme", "change", "default",
    "secret", "geheim", "iloveyou", "love", "master", "dragon", "monkey", "football", "baseball",
    "sunshine", "princess", "superman", "batman", "hello", "hallo", "test", "demo", "temp",
    "server", "requester", "annotator", "annotation", "worker", "label", "labels", "campaign",
    "summer", "winter", "spring", "autumn", "january", "february", "march", "april", "june",
    "july", "august", "september", "october", "november", "december", "monday", "friday",
    "goldspan", OLD_NAME,
)  # fmt: skip
"""What people take who want no password, in small letters."""
KEYS = (
    "1234567890", "qwertyuiop", "qwertzuiop", "azertyuiop", "asdfghjkl", "qsdfghjklm", "zxcvbnm",
    "yxcvbnm", "wxcvbn", "abcdefghijklmnopqrstuvwxyz",
)  # fmt: skip
"""Rows of keys as keyboards have them, and the alphabet."""
COLUMNS = ("1qaz2wsx3edc4rfv5tgb6yhn7ujm", "1q2w3e4r5t6y7u8i9o0p", "qawsedrftgyhujikolp")
"""Keys that lie beneath or beside each other."""
LIKE = str.maketrans("013457@$!|", "oieastasil")
"""Signs that stand for letters: p@ssw0rd."""
_ADVICE = "Take a sentence that only you would write, or several words that do not belong together."
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


def hash_password(password: str, campaign: str = "") -> str:
    """Return what is kept of a password.

    Args:
        password: What was chosen.
        campaign: The campaign's name, which others know too.

    Raises:
        Refused: It is too short or too long, or easily guessed.
    """
    if not SHORTEST <= len(password) <= LONGEST:
        raise Refused(
            "password", f"A password has {SHORTEST} to {LONGEST} characters. {_ADVICE}", 422
        )
    found = _guessable(password, campaign)
    if found:
        raise Refused(
            "password",
            f"This password is easily guessed: without {found}, too little is left of it. It needs "
            f"{SHORTEST} to {LONGEST} characters. {_ADVICE}",
            422,
        )
    return _HASHER.hash(_bytes(password))


def _guessable(password: str, campaign: str) -> str:
    """Return what a password is made of that is tried first; "" if enough is left without it."""
    left, kinds = unicodedata.normalize("NFKC", password).lower(), []
    parts = [part for part in re.split(r"[\W_]+", campaign.lower()) if len(part) >= ROW - 1]
    for kind, take in (
        ("what stands in it twice", _drop_repeats),
        ("rows of keys and of letters", _drop_rows),
        ("years and dates", _drop_years),
        ("words that everybody tries", lambda text: _drop_words(text, (*WORDS, *parts))),
    ):
        before, left = left, take(left)
        kinds += [kind] if left != before else []
    # Digits and signs that are put before or behind a word are tried too.
    bare = re.sub(r"^[\W\d_]+|[\W\d_]+$", "", left)
    if not kinds and bare.isalpha() and bare != left:
        kinds = ["digits and signs before and behind a word"]
    bare = bare if kinds else left
    if len(bare) >= OWN and len(set(bare)) >= DIFFERENT:
        return ""
    return ", ".join(kinds) or "what stands in it twice"


def _drop_repeats(text: str) -> str:
    """Leave one of what is there several times in a row: "aaaa", "abcabc"."""
    return re.sub(r"(.{2,}?)\1+", r"\1", re.sub(r"(.)\1{2,}", r"\1", text, flags=re.DOTALL))


def _drop_rows(text: str) -> str:
    """Leave out rows of keys or letters, forwards and backwards: "qwert", "4321", "1qaz2wsx"."""
    rows = [row + row[:3] for row in KEYS] + list(COLUMNS)
    rows += [row[::-1] for row in rows]
    kept, n = "", 0
    while n < len(text):
        end = n + ROW
        while end <= len(text) and any(text[n:end] in row for row in rows):
            end += 1
        if end > n + ROW:
            n = end - 1
        else:
            kept, n = kept + text[n], n + 1
    return kept


def _drop_years(text: str) -> str:
    """Leave out dates and years of our time."""
    text = re.sub(r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}", "", text)
    return re.sub(r"(?<!\d)(19|20)\d\d(?!\d)|(?<!\d)\d{8}(?!\d)", "", text)


def _drop_words(text: str, words: Sequence[str]) -> str:
    """Leave out words, also with signs in the place of letters, the longest first."""
    for word in sorted(set(words), key=len, reverse=True):
        found = text.translate(LIKE).find(like := word.translate(LIKE))
        while found >= 0:
            text = text[:found] + text[found + len(word) :]
            found = text.translate(LIKE).find(like)
    return text


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
