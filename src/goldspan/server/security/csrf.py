"""Requests that other sites make in somebody's name.

A change needs a token that only a page of the session has, and comes from this server's own pages
(Origin, and what browsers say of themselves). Before there is a session – at the login – the token
belongs to a cookie of its own.
"""

from __future__ import annotations

import secrets
from hashlib import sha256
from hmac import compare_digest, new

from goldspan.old_name import OLD_NAME

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
HEADER = "X-Goldspan-CSRF"
OLD_HEADER = f"X-{OLD_NAME}-CSRF"
"""What pages send that were loaded before the package was called goldspan."""


class FormSeal:
    """The tokens of forms that are filled in before there is a session.

    Args:
        key: Of this purpose.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def new(self) -> str:
        """Give the value of the form's cookie."""
        return secrets.token_urlsafe(24)

    def token(self, cookie: str) -> str:
        """Give the hidden field that belongs to a cookie."""
        return new(self._key, cookie.encode(), sha256).hexdigest()

    def fits(self, cookie: str | None, token: str) -> bool:
        """Whether a form was made for the browser that sends it."""
        return compare_digest(self.token(cookie or "").encode(), token.encode()) and bool(cookie)
