"""Sessions: who asks, in a signed cookie, and which of them have ended.

The cookie says who it is and since when. What a cookie cannot say is kept in the ledger – who has
logged out, how often the password was changed, which links were revoked – or in memory: when
something was last done in a requester's session, which after a restart counts from its beginning.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from hmac import compare_digest, digest
from threading import Lock
from typing import Any

from karat.server.errors import Refused
from karat.server.security.links import DAY, REVOKED, Link, Links
from karat.server.security.notes import Notes
from karat.server.security.tokens import Seal, new_id
from karat.server.settings import ServerSettings

WORKER, DESK = "worker", "desk"
REQUESTER = "requester"
ENDED, PASSWORD = "session-ended", "password"
"""Kinds of records."""
KEPT = 2_000
"""Cookies whose signature need not be checked again."""
HOUR, MINUTE = 3_600_000, 60_000


@dataclass(frozen=True)
class Session:
    """Who asks, since when and until when.

    Attributes:
        role: "worker" or "desk".
        person: The worker's id, or "requester".
        campaign: The campaign's id.
        id: The session's.
        issued: When it began, in milliseconds since 1970.
        until: When it ends.
        link: Id of the link that it began with.
        epoch: How often the password had been set.
    """

    role: str
    person: str
    campaign: str
    id: str
    issued: int
    until: int
    link: str = ""
    epoch: int = 0


class Sessions:
    """The sessions of a campaign.

    Args:
        notes: Where ended ones are kept.
        links: Which links were revoked.
        seal: For cookies.
        csrf_key: For the tokens that forms and scripts carry.
        campaign: The campaign's id.
        settings: How long sessions last.
    """

    def __init__(
        self, notes: Notes, links: Links, seal: Seal, csrf_key: bytes, campaign: str,
        settings: ServerSettings,
    ) -> None:  # fmt: skip
        self._notes, self._links, self._seal, self._csrf_key = notes, links, seal, csrf_key
        self._campaign, self._settings = campaign, settings
        self._seen: dict[str, int] = {}
        self._turn = Lock()
        # What a cookie says never changes; whether its session still holds is asked every time.
        self._opened = lru_cache(KEPT)(lambda cookie: _session(seal.read(cookie)))

    def begin_work(self, link: Link) -> Session:
        """Begin a worker's session; it never outlives the link."""
        now = self._notes.clock()
        until = min(now + round(self._settings.worker_days * DAY), link.expires)
        return Session(WORKER, link.worker, self._campaign, new_id(), now, until, link.id)

    def begin_desk(self) -> Session:
        """Begin a requester's session."""
        now = self._notes.clock()
        until = now + round(self._settings.desk_hours * HOUR)
        session = Session(DESK, REQUESTER, self._campaign, new_id(), now, until, epoch=self.epoch())
        self._touch(session, now)
        return session

    def cookie(self, session: Session) -> str:
        """Give the cookie of a session."""
        return self._seal.sign(asdict(session))

    def read(self, role: str, cookie: str | None) -> Session:
        """Give the session of a cookie; a requester's is then in use.

        Raises:
            Refused: There is none, or it has ended.
        """
        session = self._opened(cookie) if cookie else None
        if session is None or session.role != role or not self.holds(session):
            raise Refused("session", _ASK[role], 401)
        if role == DESK:
            self._touch(session, self._notes.clock())
        return session

    def is_at_hand(self, role: str) -> bool:
        """Whether `read` needs nothing of the ledger at the moment."""
        return self._notes.has(ENDED, REVOKED if role == WORKER else PASSWORD)

    def holds(self, session: Session) -> bool:
        """Whether a session lasts; asking does not prolong it."""
        now = self._notes.clock()
        if session.campaign != self._campaign or now >= session.until:
            return False
        if session.id in self._notes.all(ENDED):
            return False
        if session.role == WORKER:
            return not self._links.has_ended(session.link)
        idle = now - self._seen.get(session.id, session.issued)
        return idle < self._settings.desk_idle_minutes * MINUTE and session.epoch == self.epoch()

    def end(self, session: Session) -> None:
        """End a session, whoever has the cookie."""
        if session.id not in self._notes.now(ENDED):
            self._notes.add(ENDED, session.id, {"time": self._notes.clock()})
        with self._turn:
            self._seen.pop(session.id, None)

    def epoch(self) -> int:
        """Count how often the password was set or taken away: older sessions have ended."""
        return len(self._notes.all(PASSWORD))

    def csrf(self, session: Session) -> str:
        """Give what the page of a session sends with every change."""
        return digest(self._csrf_key, session.id.encode(), "sha256").hex()

    def scope(self, session: Session) -> str:
        """Name what a browser keeps for a person of this campaign, and for nobody else."""
        words = f"{session.campaign} {session.role} {session.person}"
        return digest(self._csrf_key, words.encode(), "sha256").hex()[:16]

    def is_csrf(self, session: Session, token: str | None) -> bool:
        """Whether a request comes from a page of the session; takes the same time if not."""
        return compare_digest(self.csrf(session).encode(), (token or "").encode())

    def _touch(self, session: Session, now: int) -> None:
        with self._turn:
            oldest = now - round(self._settings.desk_hours * HOUR)
            for name in [name for name, seen in self._seen.items() if seen < oldest]:
                del self._seen[name]
            self._seen[session.id] = now


_ASK = {
    WORKER: "Open your personal link again to go on.",
    DESK: "Log in to go on.",
}


def _session(facts: dict[str, Any] | None) -> Session | None:
    try:
        return None if facts is None else Session(**facts)
    except TypeError:  # of another version of karat
        return None
