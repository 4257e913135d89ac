"""The requester's account: a link that holds once to choose a password, then the password."""

from __future__ import annotations

import secrets
from hashlib import sha256
from hmac import compare_digest
from typing import Any

from goldspan.errors import InputError
from goldspan.server.errors import Refused
from goldspan.server.security.limits import Delays
from goldspan.server.security.notes import Notes
from goldspan.server.security.passwords import hash_password, is_password
from goldspan.server.security.sessions import MINUTE, PASSWORD, REQUESTER
from goldspan.server.security.tokens import Seal, new_id

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

    Args:
        notes: Where they are kept, passwords as argon2id hashes, tokens as SHA-256.
        minutes: How long the link holds.
        seal: For the cookies of known browsers.
        campaign: The campaign's id: a browser is known there alone, and its name is no password.
        delays: How long the next try has to wait.
    """

    def __init__(
        self, notes: Notes, minutes: float, seal: Seal, campaign: str, delays: Delays | None = None
    ) -> None:
        self._notes, self._minutes, self._seal = notes, minutes, seal
        self._campaign, self._delays = campaign, delays or Delays()

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
            Refused: The token does not hold, or the password is too short or easily guessed.
        """
        # The number is that of the link's own epoch: read anew, it could be the next one already.
        before = self.check_setup(token)
        try:
            self._set(before + 1, hash_password(password, self._campaign.rpartition("-")[0]))
        except InputError:  # two at once: the ledger keeps one of a name
            raise Refused("setup", "This link was used just now.", 403) from None

    def is_password(self, password: str, known: str | None = None) -> bool:
        """Whether one can log in with a password; takes as long if there is none.

        Args:
            password: What was typed.
            known: The cookie of a known browser, if one was sent.

        Raises:
            Refused: It was tried too often with wrong ones.
        """
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
