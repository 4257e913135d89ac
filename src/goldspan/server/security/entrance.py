"""Who may come into a campaign's server: workers by links, the requester by a password."""

from __future__ import annotations

from dataclasses import dataclass

from goldspan.protocols import Ledger
from goldspan.server.security.account import Account
from goldspan.server.security.links import Links
from goldspan.server.security.notes import Notes
from goldspan.server.security.sessions import Sessions
from goldspan.server.security.tokens import Seal
from goldspan.server.settings import ServerSettings


@dataclass(frozen=True)
class Entrance:
    """Where people come in, and how they are known again.

    Attributes:
        links: Of the workers.
        account: Of the requester.
        sessions: Of both.
    """

    links: Links
    account: Account
    sessions: Sessions

    @classmethod
    def of(cls, ledger: Ledger, campaign: str, settings: ServerSettings) -> Entrance:
        """Give the entrance of a campaign.

        Args:
            ledger: Where links, passwords and ended sessions are kept.
            campaign: The campaign's id: `setting.key`.
            settings: The server's secret and clock, and how long things hold.
        """
        keys, notes = settings.keys, Notes(ledger, settings.clock)
        links = Links(notes, Seal(keys.of("worker link")), campaign)
        seal, csrf_key = Seal(keys.of("session cookie")), keys.of("csrf")
        sessions = Sessions(notes, seal, csrf_key, campaign, settings)
        known = Seal(keys.of("known browser"))
        account = Account(notes, settings.setup_minutes, known, campaign)
        return cls(links, account, sessions)
