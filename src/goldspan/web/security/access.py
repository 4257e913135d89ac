"""How people and programs sign in, and who may do what at the desk.

The requester's session has every scope. A program has a token, which is made with some of them, for
some days, and can be revoked. The store keeps the SHA-256 of a token: the token itself has 256
random bits, so that nobody finds it by trying, and is shown once, when it is made.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from hmac import compare_digest, new
from threading import Lock
from typing import Any

from goldspan.campaign.clock import wall_clock
from goldspan.errors import InputError, UnknownNameError
from goldspan.store import SqlLedger
from goldspan.store.engine import StoreError
from goldspan.store.programs import note_use, uses
from goldspan.web.errors import Refused
from goldspan.web.security.account import Account, Delays
from goldspan.web.security.sessions import (
    DAY,
    HOUR,
    MOST_DAYS,
    REVIEWER,
    Links,
    RecordCache,
    Session,
    Sessions,
)
from goldspan.web.settings import ServerSettings, Signer, new_id

# --------------------------------------------------------------------------------------------------
# Scopes


PROGRESS, RESULTS, REVIEW = "progress", "results", "review"
PEOPLE, LINKS, MONEY, STEER = "people", "links", "money", "steer"
SCOPES = {
    PROGRESS: "read how far the campaign is",
    RESULTS: "read labels, items and downloads; annotators have pseudonyms",
    REVIEW: "read uncertain items, decide what their labels are, check for the audit",
    PEOPLE: "read who the annotators are and how good, and decide about them",
    LINKS: "make personal links for new annotators, list and revoke links; names need people",
    MONEY: "read amounts of money, wherever they are shown",
    STEER: "pause, resume and end the campaign, draw for the audit",
}
"""What each scope allows."""
ALL = frozenset(SCOPES)
ONLY_REVIEW = frozenset({REVIEW})
"""What a reviewer may do."""


def check_scopes(names: Sequence[str]) -> tuple[str, ...]:
    """Return scopes in the order of `SCOPES`, each once.

    >>> check_scopes(["results", "progress", "results"])
    ('progress', 'results')
    """
    for name in names:
        if name not in SCOPES:
            raise UnknownNameError("scope", name, SCOPES)
    if not names:
        raise InputError(f"a token needs at least one scope: {', '.join(SCOPES)}")
    return tuple(name for name in SCOPES if name in names)


@dataclass(frozen=True)
class Caller:
    """Who asks the desk for something."""

    id: str  # "requester", or the id of a token or of a reviewer
    by: str  # The same in words, for the campaign's log
    scopes: frozenset[str]  # What they may do
    session: Session | None = None  # Of a browser; None for a program

    def may(self, scope: str) -> bool:
        """Whether they have a scope."""
        return scope in self.scopes

    def check(self, *scopes: str) -> None:
        """Raise `Refused` if one of the scopes is missing; "results or review": one will do."""
        missing = [one for one in scopes if not any(map(self.may, one.split(" or ")))]
        if missing:
            words = f"This needs the scope {' and '.join(map(repr, missing))}."
            raise Refused("scope", words, 403)


# --------------------------------------------------------------------------------------------------
# Tokens


TOKEN = "api-token"  # noqa: S105 - a kind of records
PREFIX = "gst"
"""How a token begins, so that scanners for secrets find one that was published."""
LONGEST = 200
"""Characters of a token that are looked at, and of its name."""
EVERY = HOUR
"""Milliseconds between two notes of when a token was used."""
_UNKNOWN = "This token is not valid here, has expired or was revoked."


@dataclass(frozen=True)
class Token:
    """A token, without what is secret of it."""

    id: str  # By which it is revoked
    name: str  # What it is for, in the words of who made it
    scopes: tuple[str, ...]  # What it allows
    issued: int  # When it was made, in milliseconds since 1970
    expires: int  # From when on it no longer holds
    revoked: bool = False  # Whether it was taken back
    used: int | None = None  # When it was last used, up to an hour late; None if never
    holds: bool = True  # Neither revoked nor expired


class Tokens:
    """The tokens of a campaign."""

    def __init__(
        self, notes: RecordCache, ledger: SqlLedger, kind: str = TOKEN, prefix: str = PREFIX
    ) -> None:
        self._notes, self._ledger, self._kind, self._prefix = notes, ledger, kind, prefix
        self.revoked_kind = f"{kind}-revoked"
        self._used: dict[str, int] = {}
        self._turn = Lock()

    def make(self, name: str, scopes: Sequence[str], days: float) -> tuple[Token, str]:
        """Make a token; return it with its text, which nothing gives again."""
        name = name.strip()
        if not 0 < len(name) <= LONGEST or not name.isprintable():
            raise InputError(f"a name must have 1 to {LONGEST} printable characters, not {name!r}")
        if not 0 < days <= MOST_DAYS:
            raise InputError(f"it is valid for up to {MOST_DAYS:.0f} days, not for {days:g}")
        now = self._notes.wall()  # the day on which it ends is told to people
        made = Token(new_id(), name, check_scopes(scopes), now, now + round(days * DAY))
        text = f"{self._prefix}_{made.id}_{secrets.token_urlsafe(32)}"
        body = {
            "name": made.name, "scopes": list(made.scopes), "issued": made.issued,
            "expires": made.expires, "hash": _digest(text),
        }  # fmt: skip
        self._notes.add(self._kind, made.id, body)
        return made, text

    def read(self, text: str) -> Token:
        """Return the token of a text."""
        prefix, _, rest = text[:LONGEST].partition("_")
        name, _, _ = rest.partition("_")
        body = self._notes.all(self._kind).get(name) if prefix == self._prefix else None
        # Whether there is such an id is no secret, and the hash is compared in the same time.
        kept = str(body["hash"]) if body is not None else ""
        is_right = compare_digest(kept.encode(), _digest(text).encode())
        if body is None or not is_right or not self.holds(name):
            raise Refused("token", _UNKNOWN, 401)
        return _token(name, body)

    def holds(self, name: str) -> bool:
        """Whether the token of an id has neither expired nor been revoked."""
        body = self._notes.all(self._kind).get(name)
        if body is None or name in self._notes.all(self.revoked_kind):
            return False
        return self._notes.wall() < int(body["expires"])

    def is_at_hand(self) -> bool:
        """Whether `read` needs no look at the store."""
        kinds = (self._kind, self.revoked_kind)
        return all(self._notes.at_hand(kind) is not None for kind in kinds)

    def touch(self, token: Token) -> None:
        """Keep beside the log, once an hour, that a token is used; the store may fail."""
        now = self._notes.wall()
        with self._turn:
            if now - self._used.get(token.id, -EVERY) < EVERY:
                return
            self._used[token.id] = now
        try:
            self._ledger.transact(now, lambda entry: note_use(entry, token.id))
        except StoreError:
            with self._turn:
                self._used.pop(token.id, None)

    def is_due(self, token: Token) -> bool:
        """Whether `touch` would write."""
        return self._notes.wall() - self._used.get(token.id, -EVERY) >= EVERY

    def revoke(self, name: str) -> None:
        """Take a token back: it no longer holds within a second, in every process."""
        if name not in self._notes.now(self._kind):
            raise Refused("unknown", f"There is no token {name!r}.", 404)
        if name not in self._notes.now(self.revoked_kind):
            self._notes.add(self.revoked_kind, name, {"time": self._notes.wall()})

    def all(self) -> list[Token]:
        """Return all tokens that were made, in their order."""
        gone = self._notes.now(self.revoked_kind)
        used = self._ledger.database.query(uses)
        return [
            replace(
                _token(name, body), revoked=name in gone, used=used.get(name),
                holds=self.holds(name),
            )
            for name, body in self._notes.now(self._kind).items()
        ]  # fmt: skip


def bearer_of(header: str) -> str:
    """Return the token of the header `Authorization`.

    >>> bearer_of("Bearer gst_1_a")
    'gst_1_a'
    """
    scheme, _, text = header.partition(" ")
    if scheme.lower() != "bearer" or not text.strip():
        raise Refused("token", _UNKNOWN, 401)
    return text.strip()


def _token(name: str, body: Mapping[str, Any]) -> Token:
    return Token(name, body["name"], tuple(body["scopes"]), body["issued"], body["expires"])


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# --------------------------------------------------------------------------------------------------
# Protection from cross-site requests


SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
HEADER = "X-Goldspan-CSRF"


class FormSigner:
    """The tokens of forms that are filled in before there is a session."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def new(self) -> str:
        """Return the value of the form's cookie."""
        return secrets.token_urlsafe(24)

    def token(self, cookie: str) -> str:
        """Return the hidden field that belongs to a cookie."""
        return new(self._key, cookie.encode(), sha256).hexdigest()

    def fits(self, cookie: str | None, token: str) -> bool:
        """Whether a form was made for the browser that sends it."""
        return compare_digest(self.token(cookie or "").encode(), token.encode()) and bool(cookie)


# --------------------------------------------------------------------------------------------------
# Sign-in: workers by links, the requester by a password


@dataclass(frozen=True)
class Auth:
    """How people sign in, and their sessions.

    Attributes:
        links: Of the workers.
        account: Of the requester.
        sessions: Of both.
        tokens: Of programs that use the desk's API.
        reviewers: The personal links of reviewers.
        records: What is kept of all of them.
    """

    links: Links
    account: Account
    sessions: Sessions
    tokens: Tokens
    reviewers: Tokens
    records: RecordCache

    @classmethod
    def of(cls, ledger: SqlLedger, campaign: str, settings: ServerSettings) -> Auth:
        """Return links, account and sessions of a campaign, by its id: `inputs.key`."""
        keys, notes = settings.keys, RecordCache(ledger, settings.clock)
        links = Links(notes, Signer(keys.of("worker link")), campaign)
        seal, csrf_key = Signer(keys.of("session cookie")), keys.of("csrf")
        sessions = Sessions(notes, seal, csrf_key, campaign, settings)
        known = Signer(keys.of("known browser"))
        delays = Delays(lambda: wall_clock() / 1000, ledger) if settings.processes > 1 else None
        account = Account(notes, settings.setup_minutes, known, campaign, delays)
        reviewers = Tokens(notes, ledger, REVIEWER, "grv")
        return cls(links, account, sessions, Tokens(notes, ledger), reviewers, notes)
