"""Security headers, tokens of forms, and who may sign in: workers and the requester."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest, new

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from goldspan.store import SqlLedger
from goldspan.web.security.access import Tokens
from goldspan.web.security.account import Account, StoredDelays
from goldspan.web.security.secret import Signer
from goldspan.web.security.sessions import REVIEWER, Links, RecordCache, Sessions
from goldspan.web.settings import ServerSettings

# --------------------------------------------------------------------------------------------------
# Headers of every response


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; object-src 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""Nothing but this server's own files: no script in a page, nothing of third parties."""
UNUSED = (
    "accelerometer", "camera", "display-capture", "geolocation", "gyroscope", "magnetometer",
    "microphone", "midi", "payment", "usb",
)  # fmt: skip
ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": ", ".join(f"{name}=()" for name in UNUSED),
}
DEFAULT = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store"}
"""What a route may say otherwise: files that never change, a report that holds its own styles."""
YEAR = 31_536_000


class Headers:
    """Sets the headers."""

    def __init__(self, app: ASGIApp, *, secure: bool) -> None:
        self._app = app
        strict = (
            {"Strict-Transport-Security": f"max-age={YEAR}; includeSubDomains"} if secure else {}
        )
        self._always = {**ALWAYS, **strict}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with them."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def add(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(self._always)
                for name, value in DEFAULT.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, add)


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
    """

    links: Links
    account: Account
    sessions: Sessions
    tokens: Tokens
    reviewers: Tokens

    @classmethod
    def of(cls, ledger: SqlLedger, campaign: str, settings: ServerSettings) -> Auth:
        """Return links, account and sessions of a campaign.

        Args:
            ledger: Where links, passwords and ended sessions are kept.
            campaign: The campaign's id: `inputs.key`.
            settings: The server's secret and clock, and how long things hold.
        """
        keys, notes = settings.keys, RecordCache(ledger, settings.clock)
        links = Links(notes, Signer(keys.of("worker link")), campaign)
        seal, csrf_key = Signer(keys.of("session cookie")), keys.of("csrf")
        sessions = Sessions(notes, seal, csrf_key, campaign, settings)
        known = Signer(keys.of("known browser"))
        delays = StoredDelays(ledger) if settings.processes > 1 else None
        account = Account(notes, settings.setup_minutes, known, campaign, delays)
        reviewers = Tokens(notes, ledger, REVIEWER, "grv")
        return cls(links, account, sessions, Tokens(notes, ledger), reviewers)
