"""The requester's account: a link that holds once to choose a password, then the password."""

from __future__ import annotations

import secrets
from hashlib import sha256
from hmac import compare_digest
from typing import Any

from goldspan.errors import InputError
from goldspan.server.errors import Refused
from goldspan.server.security.notes import Notes
from goldspan.server.security.passwords import hash_password, is_password
from goldspan.server.security.sessions import MINUTE, PASSWORD

SETUP = "setup"
"""Kind of records."""


class Account:
    """The one account of a campaign's requester.

    Every password, and every moment from which on there is none, is a record: the last one counts,
    and their number is the epoch of the sessions.

    Args:
        notes: Where they are kept, passwords as argon2id hashes, tokens as SHA-256.
        minutes: How long the link holds.
    """

    def __init__(self, notes: Notes, minutes: float) -> None:
        self._notes, self._minutes = notes, minutes

    @property
    def has_password(self) -> bool:
        """Whether one can log in."""
        return bool(self._kept())

    def open_setup(self) -> str:
        """Give the token of a link to choose a password; those before it end."""
        token = secrets.token_urlsafe(32)
        expires = self._notes.clock() + round(self._minutes * MINUTE)
        body = {"hash": _digest(token), "expires": expires, "epoch": self._epoch()}
        self._notes.add(SETUP, f"{len(self._notes.now(SETUP)) + 1:04d}", body)
        return token

    def check_setup(self, token: str) -> int:
        """Give the epoch that a token may end by a new password.

        Raises:
            Refused: It was used, has expired, or is none.
        """
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
        """Set the password; the token is used up, and all sessions end.

        Raises:
            Refused: The token does not hold, or the password is too short.
        """
        # The number is that of the link's own epoch: read anew, it could be the next one already.
        before = self.check_setup(token)
        try:
            self._set(before + 1, hash_password(password))
        except InputError:  # two at once: the ledger keeps one of a name
            raise Refused("setup", "This link was used just now.", 403) from None

    def is_password(self, password: str) -> bool:
        """Whether one can log in with a password; takes as long if there is none."""
        return is_password(password, self._kept())

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
