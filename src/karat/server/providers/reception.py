"""People come in from a provider's site, and the provider says what became of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from karat.server.providers.protocol import Provider, Store
from karat.server.security.links import Link, Links

DAYS = 30.0
"""How long somebody who came in can come back on the same device."""


class Reception:
    """Where a provider's workers come in.

    Args:
        provider: Whose they are.
        store: The campaign's ledger.
        links: Of the campaign; every worker has one, which is never shown.
        clock: Milliseconds since 1970.
    """

    def __init__(
        self, provider: Provider, store: Store, links: Links, clock: Callable[[], int]
    ) -> None:
        self.provider, self._store, self._links, self._clock = provider, store, links, clock

    def enter(self, parameters: Mapping[str, str]) -> Link:
        """Give the link of who came in: the one that they have, if it holds.

        Raises:
            Refused: They are nobody's whom this campaign is for.
        """
        worker, now = self.provider.identify(parameters), self._clock()
        for link in reversed(self._links.all()):
            if link.worker == worker and not link.revoked and now < link.expires:
                return link
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
                    self._links.revoke(link.id)
        return event.said
