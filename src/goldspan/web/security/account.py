"""The requester's account: passwords, and how fast they can be tried."""

from __future__ import annotations

import asyncio
import math
import os
import re
import secrets
import sys
import time
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import lru_cache
from hashlib import sha256
from hmac import compare_digest, digest
from ipaddress import IPv6Address, ip_address
from threading import BoundedSemaphore, Lock, get_native_id
from typing import Any, TypeVar

from argon2 import PasswordHasher, Type
from argon2.exceptions import InvalidHashError, VerificationError

from goldspan.errors import InputError
from goldspan.store import SqlLedger
from goldspan.web.errors import Refused
from goldspan.web.security.sessions import MINUTE, PASSWORD, REQUESTER, RecordCache
from goldspan.web.settings import Rate, Signer, new_id

# --------------------------------------------------------------------------------------------------
# Rate limits: token buckets by address or session, delays by account


MOST = 10_000
"""Buckets that are kept; those that were used longest ago are forgotten."""
LONGEST = 64
"""Characters of an address that are looked at."""
FREE = 5
"""Passwords that may be tried for an account, from wherever, before the next one has to wait."""
LONGEST_WAIT = 30.0
"""Seconds of the longest wait: not long, as guesses from many addresses delay the owner too."""
FORGOTTEN = 3_600.0
"""Seconds after the last wrong password in which wrong ones are forgotten."""


Made = TypeVar("Made")


class OwnThreads:
    """Threads apart from those in which workers are answered; who finds no place is refused."""

    def __init__(
        self, name: str, n: int, waiting: int, refused: Refused,
        begin: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        self._threads, self._refused = ThreadPoolExecutor(n, name, begin), refused
        self._places = BoundedSemaphore(n + waiting)

    async def __call__(self, act: Callable[[], Made]) -> Made:
        """Do something when its turn comes."""
        if not self._places.acquire(blocking=False):
            raise self._refused
        doing = self._threads.submit(copy_context().run, act)
        doing.add_done_callback(lambda _: self._places.release())  # also if nobody waits any more
        return await asyncio.wrap_future(doing)


class Memory:
    """Numbers by name, revised as `SqlLedger.revise` does it, but known to this process alone."""

    def __init__(self) -> None:
        self.kept: OrderedDict[str, int] = OrderedDict()
        self._turn = Lock()

    def revise(
        self, _: str, name: str, change: Callable[[int | None], tuple[int, int]], __: int
    ) -> None:
        """Replace a number."""
        with self._turn:
            self.kept[name], _until = change(self.kept.get(name))
            self.kept.move_to_end(name)
            if len(self.kept) > MOST:
                self.kept.popitem(last=False)


class Buckets:
    """Buckets of one rate, by name: in the store, for several processes, or in memory.

    What is kept of a name is when its bucket will be full again, in microseconds (the generic cell
    rate algorithm). Of the names, which may be addresses, the store has a hash with a key.
    """

    def __init__(
        self, rate: Rate, clock: Callable[[], int], where: Memory | SqlLedger | None = None,
        kind: str = "", key: bytes = b"",
    ) -> None:  # fmt: skip
        self._rate, self._clock, self._where = rate, clock, where or Memory()
        self._kind, self._key = f"rate {kind}", key

    def take(self, name: str) -> None:
        """Take one from a bucket."""
        every, now = 1e6 / self._rate.per_second, 1000 * self._clock()
        most = (self._rate.burst - 1) * every

        def change(full: int | None) -> tuple[int, int]:
            # A clock that was set back fills nothing, and locks nobody out for longer than it may.
            full = min(max(full or 0, now), now + round(most + every))
            if full - now > most:
                seconds = math.ceil((full - now - most) / 1e6)
                words = f"Too many requests: try again in {_seconds(seconds)}."
                raise Refused("slow-down", words, 429, retry=seconds)
            full += round(every)
            return full, full // 1000

        hidden = digest(self._key, name.encode(), "sha256").hex()
        self._where.revise(self._kind, hidden, change, now // 1000)


class Delays:
    """Slows down the guessing of one password, from however many addresses: 1, 2, 4, … seconds.

    A try that comes too early is refused unseen, right or wrong, and does not make the wait longer.
    What is kept by name is when one was tried last, and how many since the last right one: in the
    store, for several processes, or in memory.
    """

    KIND, TRIES = "wrong passwords", 1_000
    """Kind of the numbers, and more tries than are counted in one."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, where: Memory | SqlLedger | None = None
    ) -> None:
        self._clock, self._where = clock, where or Memory()

    def begin(self, name: str) -> None:
        """Count a try as wrong before it is known: of many at once, only so many are looked at."""
        now = round(1000 * self._clock())

        def change(kept: int | None) -> tuple[int, int]:
            then, n_wrong = divmod(kept or 0, self.TRIES)
            ago = max(now - then, 0) / 1000
            if ago >= FORGOTTEN:
                n_wrong = 0
            # Doubling is bounded before it is done: nobody counts the tries of a year.
            wait = min(2.0 ** min(n_wrong - FREE, 30), LONGEST_WAIT) if n_wrong >= FREE else 0.0
            if wait > ago:
                seconds = math.ceil(wait - ago)
                words = f"Too many wrong passwords: try again in {_seconds(seconds)}."
                raise Refused("slow-down", words, 429, retry=seconds)
            number = now * self.TRIES + min(n_wrong + 1, self.TRIES - 1)
            return number, now + round(1000 * FORGOTTEN)

        self._where.revise(self.KIND, name, change, now)

    def forget(self, name: str) -> None:
        """Begin anew: the password was right."""
        now = round(1000 * self._clock())
        self._where.revise(self.KIND, name, lambda _: (0, now), now)


def _seconds(n: int) -> str:
    return "1 second" if n == 1 else f"{n} seconds"


def address_name(host: str | None) -> str:
    """Return the name of an address's bucket; a network of IPv6 (/64) is one."""
    # A proxy may pass on what somebody made up, of any length.
    return _name((host or "unknown")[:LONGEST])


@lru_cache(maxsize=4_096)
def _name(host: str) -> str:
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return f"{IPv6Address(int(address) >> 64 << 64)}/64"
    return str(address)


# --------------------------------------------------------------------------------------------------
# The requester's password: argon2id, with the parameters of RFC 9106 for little memory.


SHORTEST = 12
LONGEST_PASSWORD = 1_000
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
    "goldspan",
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


# A hash takes 64 MiB: so many at once, and no more, however many ask.
_MANY = Refused("slow-down", "Too many people are logging in: try again.", 429, retry=10)
in_turn = OwnThreads("password", AT_ONCE, WAITING, _MANY, _step_back)
"""Does what checks or hashes a password, when its turn comes."""


def hash_password(password: str, campaign: str = "") -> str:
    """Return what is kept of a password."""
    if not SHORTEST <= len(password) <= LONGEST_PASSWORD:
        raise Refused(
            "password",
            f"A password has {SHORTEST} to {LONGEST_PASSWORD} characters. {_ADVICE}",
            422,
        )
    found = _guessable(password, campaign)
    if found:
        raise Refused(
            "password",
            f"This password is easily guessed: without {found}, too little is left of it. It needs "
            f"{SHORTEST} to {LONGEST_PASSWORD} characters. {_ADVICE}",
            422,
        )
    return _HASHER.hash(_bytes(password))


def _guessable(password: str, campaign: str) -> str:
    """Return what a password is made of that is tried first; "" if enough is left without it."""
    left, kinds = unicodedata.normalize("NFKC", password).lower(), []
    parts = [part for part in re.split(r"[\W_]+", campaign.lower()) if len(part) >= ROW - 1]
    for kind, take in (
        ("what it repeats", _drop_repeats),
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
    return ", ".join(kinds) or "what it repeats"


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
    if len(password) > LONGEST_PASSWORD:
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


# --------------------------------------------------------------------------------------------------
# The requester's account: a link that holds once to choose a password, then the password.


SETUP = "setup"
"""Kind of records."""
KNOWN_DAYS = 180
"""How long a browser is known in which somebody logged in."""
_DAY = 24 * 60 * MINUTE


class Account:
    """The one account of a campaign's requester.

    Every password, and every moment from which on there is none, is a record: the last one counts,
    and their number is the epoch of the sessions.

    Wrong passwords slow the next try down, from wherever they come. A browser in which somebody has
    logged in before has a count of its own: whoever guesses from elsewhere does not lock it out.
    """

    def __init__(
        self,
        notes: RecordCache,
        minutes: float,
        seal: Signer,
        campaign: str,
        delays: Delays | None = None,
    ) -> None:
        self._notes, self._minutes, self._seal = notes, minutes, seal
        self._campaign, self._delays = campaign, delays or Delays()

    @property
    def has_password(self) -> bool:
        """Whether one can log in."""
        return bool(self._kept())

    def open_setup(self) -> str:
        """Return the token of a link to choose a password; those before it end."""
        token = secrets.token_urlsafe(32)
        expires = self._notes.clock() + round(self._minutes * MINUTE)
        body = {"hash": _digest(token), "expires": expires, "epoch": self._epoch()}
        self._notes.add(SETUP, f"{len(self._notes.now(SETUP)) + 1:04d}", body)
        return token

    def check_setup(self, token: str) -> int:
        """Return the epoch that a token may end by a new password."""
        made = list(self._notes.now(SETUP).values())
        last: dict[str, Any] = made[-1] if made else {"hash": "", "expires": 0, "epoch": -1}
        same = compare_digest(str(last["hash"]).encode(), _digest(token).encode())
        if not same or self._notes.clock() >= last["expires"] or last["epoch"] != self._epoch():
            raise Refused(
                "setup",
                "This link was used, or has expired. `goldspan serve PLAN --reset-password` "
                "gives a new one.",
                403,
            )
        return int(last["epoch"])

    def choose(self, token: str, password: str) -> None:
        """Set the password; the token is used up, and all sessions end."""
        # The number is that of the link's own epoch: read anew, it could be the next one already.
        before = self.check_setup(token)
        try:
            self._set(before + 1, hash_password(password, self._campaign.rpartition("-")[0]))
        except InputError:  # two at once: the ledger keeps one of a name
            raise Refused("setup", "This link was used just now.", 403) from None

    def is_password(self, password: str, known: str | None = None) -> bool:
        """Whether one can log in with a password; takes as long if there is none."""
        browser = self._known(known)
        try:
            self._delays.begin(browser or REQUESTER)
        except Refused:
            if not browser:
                raise
            # Somebody else has the cookie, or its owner is wrong again and again: like a stranger.
            self._delays.begin(REQUESTER)
        is_right = is_password(password, self._kept())
        if is_right:
            self._delays.forget(browser or REQUESTER)
        return is_right

    def know(self) -> str:
        """Return the cookie by which a browser is known in which somebody has logged in."""
        until = self._notes.clock() + KNOWN_DAYS * _DAY
        return self._seal.sign({"campaign": self._campaign, "id": new_id(), "until": until})

    def _known(self, cookie: str | None) -> str:
        """Return the name under which a known browser's tries are counted, "" for others."""
        facts = self._seal.read(cookie) if cookie else None
        if facts is None or facts.get("campaign") != self._campaign:
            return ""
        until = facts.get("until")
        if not isinstance(until, int) or self._notes.clock() >= until:
            return ""
        return f"browser {facts.get('id')}"

    def reset(self) -> str:
        """Take the password away, end all sessions, and give a token to choose another."""
        self._set(self._epoch() + 1, "")
        return self.open_setup()

    def _set(self, number: int, kept: str) -> None:
        self._notes.add(PASSWORD, f"{number:04d}", {"hash": kept, "time": self._notes.wall()})

    def _epoch(self) -> int:
        return len(self._notes.now(PASSWORD))

    def _kept(self) -> str:
        last = list(self._notes.now(PASSWORD).values())[-1:]
        return str(last[0]["hash"]) if last else ""


def _digest(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
