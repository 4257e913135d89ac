"""People come in from a provider's site, and the provider says what became of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock

from goldspan.server.errors import Refused
from goldspan.server.providers.protocol import Provider, Store
from goldspan.server.security.links import Link, Links

DAYS = 30.0
"""How long somebody who came in can come back on the same device."""
LEFT = "link-left"
"""Kind of records: links that ended as their worker went, and that nobody took back."""
_TAKEN_BACK = (
    "Whoever runs this study has ended your work here, and you cannot come in again. If you have a "
    "question, please send them a message on the site from which you came."
)


class Reception:
    """Where a provider's workers come in.

    Args:
        provider: Whose they are.
        store: The campaign's ledger.
        links: Of the campaign; every worker has one, which is never shown.
        clock: The campaign's clock, in milliseconds.
        admit: Raises if nobody new may come in from an address today.
    """

    def __init__(
        self, provider: Provider, store: Store, links: Links, clock: Callable[[], int],
        admit: Callable[[str], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self.provider, self._store, self._links, self._clock = provider, store, links, clock
        self._turn, self._admit = Lock(), admit

    def enter(self, parameters: Mapping[str, str], address: str = "") -> Link:
        """Give the link of who came in: the one that they have, if it holds.

        Who was shut out by the requester, whose last link was taken back, stays out until the
        requester makes them a new one.

        Raises:
            Refused: They are nobody's whom this campaign is for, or were shut out, or too many new
                people came in today.
        """
        if self.provider.is_new(parameters):
            self._admit(address)
        worker = self.provider.identify(parameters)
        with self._turn:  # of two visits at once one makes the link: the requester sees one
            mine = [link for link in self._links.all() if link.worker == worker]
            for link in reversed(mine):
                if not link.revoked and self._links.is_in_time(link):
                    return link
            if mine and mine[-1].revoked and mine[-1].id not in self._store.records(LEFT):
                raise Refused("revoked", _TAKEN_BACK, 403)
            ((link, _),) = self._links.make([worker], DAYS)
        return link

    def hear(self, headers: Mapping[str, str], body: bytes) -> str:
        """Take a message of the provider's; say what it meant.

        Who has left holds no tasks any more, and their session ends. A repeated message does it
        again, as the first time may have been cut off.

        Raises:
            Refused: It is not the provider's, or too old.
        """
        event = self.provider.on_event(headers, body)
        if event.left:
            now = self._clock()
            for lease in self._store.held(event.left, now):
                self._store.release(event.left, lease.item, now)
            for link in self._links.all():
                if link.worker == event.left and not link.revoked:
                    self._store.record(LEFT, link.id, {"worker": link.worker}, now)
                    self._links.revoke(link.id)
        return event.said
