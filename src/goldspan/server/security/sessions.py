"""Sessions: who asks, in a signed cookie, and which of them have ended.

The cookie says who it is and since when. What a cookie cannot say is kept in the ledger – who has
logged out, how often the password was changed, which links were revoked – or in memory: when
something was last done in a requester's session, which after a restart counts from its beginning.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hmac import compare_digest, digest
from threading import Lock
from typing import Any

from goldspan.server.errors import Refused
from goldspan.server.security.links import DAY, REVOKED, Link
from goldspan.server.security.notes import Notes
from goldspan.server.security.tokens import LONGEST, Seal, new_id
from goldspan.server.settings import ServerSettings

WORKER, DESK = "worker", "desk"
REQUESTER = "requester"
ENDED, PASSWORD = "session-ended", "password"
"""Kinds of records; those of ended sessions are of a kind for every `SPAN`, see `ended_kind`."""
KEPT = 2_000
"""Cookies that hold, whose signature need not be checked again."""
DAILY = 200
"""Sessions of one worker that begin on one day."""
HOUR, MINUTE = 3_600_000, 60_000
SPAN = 30 * DAY
Facts = tuple[Mapping[str, Any], Mapping[str, Any]]
"""What a session's end is known by: those that have ended, and links taken back or passwords."""


@dataclass(frozen=True)
class Session:
    """Who asks, since when and until when.

    Attributes:
        role: "worker" or "desk".
        person: The worker's id, or "requester".
        campaign: The campaign's id.
        id: The session's.
        issued: When it began, by the campaign's clock, in milliseconds.
        until: When it ends, by the same clock.
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
        notes: Where ended ones are kept, and revoked links.
        seal: For cookies.
        csrf_key: For the tokens that forms and scripts carry.
        campaign: The campaign's id.
        settings: How long sessions last.
    """

    def __init__(
        self, notes: Notes, seal: Seal, csrf_key: bytes, campaign: str, settings: ServerSettings
    ) -> None:
        self._notes, self._seal, self._csrf_key = notes, seal, csrf_key
        self._campaign, self._settings = campaign, settings
        self._seen: dict[str, int] = {}
        # What a cookie says never changes; whether its session still holds is asked every time.
        self._opened: OrderedDict[str, Session] = OrderedDict()
        self._turn = Lock()

    def begin_work(self, link: Link) -> Session:
        """Begin a worker's session; it never outlives what the link has left now.

        Raises:
            Refused: Too many began today, each of which may leave a record when it ends.
        """
        self._notes.take("sessions", link.worker, DAILY)
        now, left = self._notes.clock(), link.expires - self._notes.wall()
        until = now + min(round(self._settings.worker_days * DAY), left)
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

    def open(self, role: str, cookie: str | None) -> Session | None:
        """Give what a cookie says; None if this server has not made it. It may have ended."""
        if not cookie or len(cookie) > LONGEST:
            return None
        session = self._opened.get(cookie) or self._keep(cookie)
        return session if session is not None and session.role == role else None

    def read(self, role: str, cookie: str | None, facts: Facts | None = None) -> Session:
        """Give the session of a cookie; a requester's is then in use.

        Args:
            role: "worker" or "desk".
            cookie: What the browser sent.
            facts: What `at_hand` gave; the ledger may be read without.

        Raises:
            Refused: There is none, or it has ended.
        """
        session = self.open(role, cookie)
        if session is None or not self.holds(session, facts):
            with self._turn:
                self._opened.pop(cookie or "", None)
            raise Refused("session", _ASK[role], 401)
        if role == DESK:
            self._touch(session, self._notes.clock())
        return session

    def at_hand(self, role: str, cookie: str | None) -> Facts | None:
        """Give what `read` needs, if that can be done without reading the ledger."""
        session = self.open(role, cookie)
        if session is None:
            return {}, {}  # it is refused, whatever is known
        ended, other = self._notes.at_hand(ended_kind(session)), self._notes.at_hand(_OTHER[role])
        return None if ended is None or other is None else (ended, other)

    def holds(self, session: Session, facts: Facts | None = None) -> bool:
        """Whether a session lasts; asking does not prolong it."""
        now = self._notes.clock()
        if session.campaign != self._campaign or now >= session.until:
            return False
        ended, other = facts or self._facts(session)
        if session.id in ended:
            return False
        if session.role == WORKER:
            return session.link not in other
        idle = now - self._seen.get(session.id, session.issued)
        return idle < self._settings.desk_idle_minutes * MINUTE and session.epoch == len(other)

    def end(self, session: Session) -> None:
        """End a session, whoever has the cookie."""
        kind = ended_kind(session)
        if session.id not in self._notes.now(kind):
            self._notes.add(kind, session.id, {"time": self._notes.wall()})
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

    def _facts(self, session: Session) -> Facts:
        return self._notes.all(ended_kind(session)), self._notes.all(_OTHER[session.role])

    def _keep(self, cookie: str) -> Session | None:
        """Open a cookie, and keep it if it holds: what others make up takes no memory."""
        session = _session(self._seal.read(cookie))
        if session is not None:
            with self._turn:
                self._opened[cookie] = session
                if len(self._opened) > KEPT:
                    self._opened.popitem(last=False)
        return session

    def _touch(self, session: Session, now: int) -> None:
        with self._turn:
            oldest = now - round(self._settings.desk_hours * HOUR)
            for name in [name for name, seen in self._seen.items() if seen < oldest]:
                del self._seen[name]
            self._seen[session.id] = now


def ended_kind(session: Session) -> str:
    """Name the kind of the records that say whether a session has ended.

    Sessions that end at about the same time have one kind, so that those whose time is over anyway
    are never read again, however many people log out.
    """
    return f"{ENDED}-{session.until // SPAN}"


_OTHER = {WORKER: REVOKED, DESK: PASSWORD}
"""What else ends sessions of a role."""
_ASK = {
    WORKER: "Open your personal link again to go on.",
    DESK: "Log in to go on.",
}


def _session(facts: dict[str, Any] | None) -> Session | None:
    try:
        return None if facts is None else Session(**facts)
    except TypeError:  # of another version of goldspan
        return None
