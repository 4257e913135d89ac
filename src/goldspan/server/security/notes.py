"""Facts of a ledger that every request asks for, read again after a moment.

Another process – `goldspan links --revoke` – may write them too, so they are never kept for long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from goldspan.campaign.clock import wall_of
from goldspan.protocols import Ledger
from goldspan.server.errors import Refused
from goldspan.store.bounds import BoundError

FRESH = 1_000
"""Milliseconds for which what was read is taken to hold."""


class Notes:
    """Records of a ledger by kind.

    Args:
        ledger: Where they are kept.
        clock: The campaign's clock: what lasts some time is counted by it.
    """

    def __init__(self, ledger: Ledger, clock: Callable[[], int]) -> None:
        self._ledger, self.clock, self.wall = ledger, clock, wall_of(clock)
        self._known: dict[str, tuple[int, Mapping[str, dict[str, Any]]]] = {}
        self._turn = Lock()

    def all(self, kind: str) -> Mapping[str, dict[str, Any]]:
        """Give the facts of a kind by name, as they were a second ago at most."""
        facts = self._fresh(kind)
        if facts is None:
            with self._turn:  # of many who ask at once, one reads
                facts = self._fresh(kind)
                if facts is None:
                    facts = self._read(kind)
        return facts

    def at_hand(self, kind: str) -> Mapping[str, dict[str, Any]] | None:
        """Give the same if that can be done without reading, and at once; else None."""
        return self._fresh(kind)

    def now(self, kind: str) -> Mapping[str, dict[str, Any]]:
        """Give the facts of a kind as they are."""
        with self._turn:
            return self._read(kind)

    def add(self, kind: str, name: str, body: Mapping[str, Any]) -> None:
        """Keep a fact.

        Raises:
            InputError: Another fact of this kind stands under the name.
        """
        self._ledger.record(kind, name, body, self.clock())
        with self._turn:
            self._known.pop(kind, None)

    def take(self, kind: str, name: str, most: int) -> None:
        """Count something that may be done so many times a day.

        Raises:
            Refused: It was done as often today.
        """
        try:
            self._ledger.take(kind, name, most, self.wall())
        except BoundError as error:
            words = f"That was too often today ({most} times): try again tomorrow."
            raise Refused("daily", words, 429, retry=error.seconds) from None

    def _fresh(self, kind: str) -> Mapping[str, dict[str, Any]] | None:
        read, facts = self._known.get(kind, (-FRESH, {}))
        return facts if 0 <= self.clock() - read < FRESH else None

    def _read(self, kind: str) -> Mapping[str, dict[str, Any]]:
        read, facts = self.clock(), self._ledger.records(kind)
        self._known[kind] = read, facts
        return facts
