"""The personal links of workers: signed, of one campaign, for some days, revocable.

A link is `/w/TOKEN`. It can be opened again as long as it holds, on another device or the next day;
whoever has it is the worker, so it is exchanged for a cookie at once and leaves the address bar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from goldspan.errors import Fault, FaultsError, InputError
from goldspan.server.errors import Refused
from goldspan.server.security.notes import Notes
from goldspan.server.security.tokens import Seal, new_id

DAY = 86_400_000
"""Milliseconds."""
MOST_DAYS = 366.0
LONGEST_NAME = 200
LINK, REVOKED, ADDRESS = "link", "link-revoked", "address"
"""Kinds of records."""


@dataclass(frozen=True)
class Link:
    """A worker's link.

    Attributes:
        id: By which it is revoked.
        worker: Whose it is.
        issued: When it was made, in milliseconds since 1970.
        expires: From when on it no longer holds.
        revoked: Whether it was taken back.
    """

    id: str
    worker: str
    issued: int
    expires: int
    revoked: bool = False


class Links:
    """The links of a campaign.

    Args:
        notes: Where they are kept; the signature itself is kept nowhere.
        seal: For links.
        campaign: The campaign's id.
    """

    def __init__(self, notes: Notes, seal: Seal, campaign: str) -> None:
        self._notes, self._seal, self._campaign = notes, seal, campaign

    def make(self, workers: Sequence[str], days: float) -> list[tuple[Link, str]]:
        """Make a link for every worker; give each with its token, which nothing gives again.

        Raises:
            FaultsError: A name cannot be one, or stands twice.
            InputError: The days are not between 0 and 366.
        """
        if not 0 < days <= MOST_DAYS:
            raise InputError(f"a link holds for up to {MOST_DAYS:.0f} days, not for {days:g}")
        _check_names(workers)
        now = self._notes.wall()  # the day on which it ends is told to people
        return [self._make(worker, now, now + round(days * DAY)) for worker in workers]

    def token(self, link: Link) -> str:
        """Sign a link."""
        return self._seal.sign({
            "campaign": self._campaign, "worker": link.worker, "id": link.id,
            "issued": link.issued, "expires": link.expires,
        })  # fmt: skip

    def read(self, token: str) -> Link:
        """Give the link of a token.

        Raises:
            Refused: It is not one of this campaign's, has expired or was revoked.
        """
        facts = self._seal.read(token)
        if facts is None or facts.pop("campaign", None) != self._campaign:
            raise Refused(
                "link", "This link does not hold here. Was it cut off when it was copied?", 403
            )
        link = Link(**facts)
        if self.has_ended(link.id):
            raise Refused("link", "This link was taken back. Ask who sent it to you.", 403)
        if not self.is_in_time(link):
            raise Refused("link", "This link has expired. Ask who sent it for a new one.", 403)
        return link

    def is_in_time(self, link: Link) -> bool:
        """Whether a link has not expired, by the wall clock."""
        return self._notes.wall() < link.expires

    def has_ended(self, link: str) -> bool:
        """Whether a link was revoked."""
        return link in self._notes.all(REVOKED)

    def revoke(self, link: str) -> None:
        """Take a link back; the sessions that began with it end.

        Raises:
            Refused: There is no such link.
        """
        if link not in self._notes.now(LINK):
            raise Refused("unknown", f"There is no link {link!r}.", 404)
        if link not in self._notes.now(REVOKED):
            self._notes.add(REVOKED, link, {"time": self._notes.wall()})

    def all(self) -> list[Link]:
        """Give all links that were made, in their order."""
        gone = self._notes.now(REVOKED)
        return [
            Link(name, body["worker"], body["issued"], body["expires"], name in gone)
            for name, body in self._notes.now(LINK).items()
        ]

    def move(self, public_url: str) -> None:
        """Keep the server's address, so that links made elsewhere lead there."""
        if self.place() != public_url:
            number = len(self._notes.now(ADDRESS)) + 1
            self._notes.add(ADDRESS, f"{number:04d}", {"url": public_url})

    def place(self) -> str | None:
        """Give the last address of the server; None before its first start."""
        last = list(self._notes.now(ADDRESS).values())[-1:]
        return str(last[0]["url"]) if last else None

    def _make(self, worker: str, issued: int, expires: int) -> tuple[Link, str]:
        link = Link(new_id(), worker, issued, expires)
        body = {"worker": worker, "issued": issued, "expires": expires}
        self._notes.add(LINK, link.id, body)
        return link, self.token(link)


def _check_names(workers: Sequence[str]) -> None:
    faults, seen = [], set()
    for worker in workers:
        if not worker.strip() or len(worker) > LONGEST_NAME or not worker.isprintable():
            faults.append(Fault(f"a name has 1 to {LONGEST_NAME} characters that can be printed",
                                worker=worker))  # fmt: skip
        elif worker in seen:
            faults.append(Fault("stands twice", worker=worker))
        seen.add(worker)
    if faults or not workers:
        raise FaultsError(faults, "" if faults else "give at least one worker")
