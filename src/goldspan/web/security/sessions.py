"""Links and sessions of workers and requesters, signed by the server's secret."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from hmac import compare_digest, digest
from threading import Lock
from typing import Any

from goldspan.campaign.clock import wall_of
from goldspan.errors import Fault, FaultsError, InputError
from goldspan.store import SqlLedger
from goldspan.store.engine import BoundError
from goldspan.web.errors import Refused
from goldspan.web.settings import LONGEST, ServerSettings, Signer, new_id

# --------------------------------------------------------------------------------------------------
# Facts of a ledger that every request asks for, read again after a moment.


SEEN = "seen"
"""Kind of the numbers that say when a requester's session was in use."""
FRESH = 1_000
"""Milliseconds for which what was read is taken to hold."""


class RecordCache:
    """Records of a ledger by kind."""

    def __init__(self, ledger: SqlLedger, clock: Callable[[], int]) -> None:
        self._ledger, self.clock, self.wall = ledger, clock, wall_of(clock)
        self._known: dict[str, tuple[int, Mapping[str, dict[str, Any]]]] = {}
        self._turn = Lock()

    def all(self, kind: str) -> Mapping[str, dict[str, Any]]:
        """Return the facts of a kind by name, as they were a second ago at most."""
        facts = self.at_hand(kind)
        if facts is None:
            with self._turn:  # of many who ask at once, one reads
                facts = self.at_hand(kind)
                if facts is None:
                    facts = self._read(kind)
        return facts

    def now(self, kind: str) -> Mapping[str, dict[str, Any]]:
        """Return the facts of a kind as they are."""
        with self._turn:
            return self._read(kind)

    def add(self, kind: str, name: str, body: Mapping[str, Any]) -> None:
        """Keep a fact."""
        self._ledger.record(kind, name, body, self.clock())
        with self._turn:
            self._known.pop(kind, None)

    def take(self, kind: str, name: str, most: int, words: str = "") -> None:
        """Count something that may be done so many times a day; `words` refuse what is more."""
        try:
            self._ledger.take(kind, name, most, self.wall())
        except BoundError as error:
            words = words or f"The daily limit of {most:,} is reached: try again tomorrow."
            raise Refused("daily", words, 429, retry=error.seconds) from None

    def see(self, session: str, now: int, until: int) -> None:
        """Keep for other processes when a session was in use."""
        self._ledger.revise(SEEN, session, lambda _: (now, until), now)

    def seen(self, session: str) -> int:
        """Return when a session was in use, as `see` kept it; 0 if it was not."""
        return self._ledger.number_of(SEEN, session) or 0

    def at_hand(self, kind: str) -> Mapping[str, dict[str, Any]] | None:
        """Return what `all` does if that can be done without reading, and at once; else None."""
        read, facts = self._known.get(kind, (-FRESH, {}))
        return facts if 0 <= self.clock() - read < FRESH else None

    def _read(self, kind: str) -> Mapping[str, dict[str, Any]]:
        read, facts = self.clock(), self._ledger.records(kind)
        self._known[kind] = read, facts
        return facts


# --------------------------------------------------------------------------------------------------
# The personal links of workers: signed, of one campaign, for some days, revocable.


DAY = 86_400_000
"""Milliseconds."""
MOST_DAYS = 366.0
LONGEST_NAME = 200
LINK, REVOKED, ADDRESS = "link", "link-revoked", "address"
"""Kinds of records."""


@dataclass(frozen=True)
class Link:
    """A worker's link."""

    id: str  # By which it is revoked
    worker: str
    issued: int  # When it was made, in milliseconds since 1970
    expires: int  # From when on it no longer holds
    revoked: bool = False  # Whether it was taken back
    holds: bool = True  # Neither revoked nor expired


class Links:
    """The links of a campaign."""

    def __init__(self, notes: RecordCache, seal: Signer, campaign: str) -> None:
        self._notes, self._seal, self._campaign = notes, seal, campaign

    def make(
        self, workers: Sequence[str], days: float, taken: Collection[str] = ()
    ) -> list[tuple[Link, str]]:
        """Make a link for every worker; give each with its token, which nothing gives again."""
        if not 0 < days <= MOST_DAYS:
            raise InputError(f"a link holds for up to {MOST_DAYS:.0f} days, not for {days:g}")
        faults, seen = [], set()
        for worker in workers:
            if not worker.strip() or len(worker) > LONGEST_NAME or not worker.isprintable():
                faults.append(Fault(f"a name must have 1 to {LONGEST_NAME} printable characters",
                                    worker=worker))  # fmt: skip
            elif worker in seen:
                faults.append(Fault("appears twice", worker=worker))
            elif worker in taken:
                words = "is known here: another link needs the scope 'people'"
                faults.append(Fault(words, worker=worker))
            seen.add(worker)
        if faults or not workers:
            raise FaultsError(faults, "" if faults else "give at least one worker")
        now = self._notes.wall()  # the day on which it ends is told to people
        made = [Link(new_id(), worker, now, now + round(days * DAY)) for worker in workers]
        for link in made:
            body = {"worker": link.worker, "issued": link.issued, "expires": link.expires}
            self._notes.add(LINK, link.id, body)
        return [(link, self.token(link)) for link in made]

    def token(self, link: Link) -> str:
        """Sign a link."""
        return self._seal.sign({
            "campaign": self._campaign, "worker": link.worker, "id": link.id,
            "issued": link.issued, "expires": link.expires,
        })  # fmt: skip

    def read(self, token: str) -> Link:
        """Return the link of a token."""
        facts = self._seal.read(token)
        if facts is None or facts.pop("campaign", None) != self._campaign:
            raise Refused(
                "link", "This link is not valid here. Was it cut off when it was copied?", 403
            )
        link = Link(**facts)
        if self.has_ended(link.id):
            raise Refused("link", "This link was revoked. Ask the person who sent it to you.", 403)
        if self._notes.wall() >= link.expires:
            raise Refused(
                "link", "This link has expired. Ask the person who sent it for a new one.", 403
            )
        return link

    def has_ended(self, link: str) -> bool:
        """Whether a link was revoked."""
        return link in self._notes.all(REVOKED)

    def revoke(self, link: str) -> None:
        """Take a link back; the sessions that began with it end."""
        if link not in self._notes.now(LINK):
            raise Refused("unknown", f"There is no link {link!r}.", 404)
        if link not in self._notes.now(REVOKED):
            self._notes.add(REVOKED, link, {"time": self._notes.wall()})

    def all(self) -> list[Link]:
        """Return all links that were made, in their order."""
        gone, now = self._notes.now(REVOKED), self._notes.wall()
        return [
            Link(
                name, **body, revoked=name in gone, holds=name not in gone and now < body["expires"]
            )
            for name, body in self._notes.now(LINK).items()
        ]

    def move(self, public_url: str) -> None:
        """Keep the server's address, so that links made elsewhere lead there."""
        if self.place() != public_url:
            number = len(self._notes.now(ADDRESS)) + 1
            self._notes.add(ADDRESS, f"{number:04d}", {"url": public_url})

    def place(self) -> str | None:
        """Return the last address of the server; None before its first start."""
        last = list(self._notes.now(ADDRESS).values())[-1:]
        return str(last[0]["url"]) if last else None


# --------------------------------------------------------------------------------------------------
# Sessions: who asks, in a signed cookie, and which of them have ended.


WORKER, DESK, REVIEWER = "worker", "desk", "reviewer"
REQUESTER = "requester"
REVIEWER_REVOKED = "reviewer-revoked"
POLICY = "oidc "
"""How the name of what the plan says of logging in by OpenID Connect begins."""
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
    """Who asks, since when and until when."""

    role: str  # "worker", "desk" or "reviewer"
    person: str  # The worker's id, "requester", or the id of the reviewer's link
    campaign: str
    id: str
    issued: int  # When it began, by the campaign's clock, in milliseconds
    until: int  # When it ends, by the same clock
    link: str = ""  # Id of the link that it began with
    epoch: int = 0  # How often the password had been set


class Sessions:
    """The sessions of a campaign."""

    def __init__(
        self,
        notes: RecordCache,
        seal: Signer,
        csrf_key: bytes,
        campaign: str,
        settings: ServerSettings,
    ) -> None:
        self._notes, self._seal, self._csrf_key = notes, seal, csrf_key
        self._campaign, self._settings = campaign, settings
        self._seen: dict[str, int] = {}
        self.policy = ""
        """By which people log in with OpenID Connect now."""
        # What a cookie says never changes; whether its session still holds is asked every time.
        self._opened: OrderedDict[str, Session] = OrderedDict()
        self._turn = Lock()

    def begin_work(self, link: Link) -> Session:
        """Begin a worker's session; it never outlives what the link has left now."""
        self._notes.take("sessions", link.worker, DAILY)
        now, left = self._notes.clock(), link.expires - self._notes.wall()
        until = now + min(round(self._settings.worker_days * DAY), left)
        return Session(WORKER, link.worker, self._campaign, new_id(), now, until, link.id)

    def begin_desk(self, link: str = "") -> Session:
        """Begin a requester's session; `link` is the policy by which they logged in, if one is."""
        return self._begin(DESK, REQUESTER, link, self._desk_time, self.epoch())

    def begin_review(self, person: str, left: int, link: str = "") -> Session:
        """Begin a reviewer's session; it lasts as a requester's, and never outlives the link."""
        return self._begin(REVIEWER, person, link, min(self._desk_time, left))

    def _begin(self, role: str, person: str, link: str, lasts: int, epoch: int = 0) -> Session:
        now = self._notes.clock()
        session = Session(role, person, self._campaign, new_id(), now, now + lasts, link, epoch)
        self._touch(session, now)
        return session

    @property
    def _desk_time(self) -> int:
        return round(self._settings.desk_hours * HOUR)

    def cookie(self, session: Session) -> str:
        """Return the cookie of a session."""
        return self._seal.sign(asdict(session))

    def open(self, role: str, cookie: str | None) -> Session | None:
        """Return what a cookie says; None if this server has not made it. It may have ended."""
        if not cookie or len(cookie) > LONGEST:
            return None
        session = self._opened.get(cookie) or self._keep(cookie)
        return session if session is not None and session.role == role else None

    def read(self, role: str, cookie: str | None, facts: Facts | None = None) -> Session:
        """Return the session of a cookie; a requester's or reviewer's is then in use."""
        session = self.open(role, cookie)
        if session is None or not self.holds(session, facts):
            with self._turn:
                self._opened.pop(cookie or "", None)
            raise Refused("session", _ASK[role], 401)
        if role != WORKER:
            self._touch(session, self._notes.clock())
        return session

    def at_hand(self, role: str, cookie: str | None) -> Facts | None:
        """Return what `read` needs, if that can be done without reading the ledger."""
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
        if session.link.startswith(POLICY) and session.link != self.policy:
            return False
        if session.role == REVIEWER and session.link in other:
            return False
        if session.role == DESK and session.epoch != len(other):
            return False
        most = self._settings.desk_idle_minutes * MINUTE
        if now - self._seen.get(session.id, session.issued) < most:
            return True
        return self._settings.processes > 1 and now - self._notes.seen(session.id) < most

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
        """Return what the page of a session sends with every change."""
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
            oldest = now - self._desk_time
            for name in [name for name, seen in self._seen.items() if seen < oldest]:
                del self._seen[name]
            before, self._seen[session.id] = self._seen.get(session.id, 0), now
        if self._settings.processes > 1 and now - before >= MINUTE:
            self._notes.see(session.id, now, now + self._desk_time)


def ended_kind(session: Session) -> str:
    """Name the kind of the records that say whether a session has ended.

    Sessions that end at about the same time have one kind, so that those whose time is over anyway
    are never read again, however many people log out.
    """
    return f"{ENDED}-{session.until // SPAN}"


_OTHER = {WORKER: REVOKED, DESK: PASSWORD, REVIEWER: REVIEWER_REVOKED}
"""What else ends sessions of a role."""
_ASK = {
    WORKER: "Open your personal link again to go on.",
    DESK: "Log in to go on.",
    REVIEWER: "Open your personal link again to go on.",
}


def _session(facts: dict[str, Any] | None) -> Session | None:
    try:
        return None if facts is None else Session(**facts)
    except TypeError:  # of another version of goldspan
        return None
