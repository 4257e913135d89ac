"""Finding items among those that were asked about: by their words, by their names, by their state.

The order of the items and their words stay as they are: both are kept as columns, which only grow.
What changes, the places, the store looks up for the few items of a page.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

if TYPE_CHECKING:
    from goldspan.server.service import Service
    from goldspan.store.order import Asked
    from goldspan.store.paging import Slot

FEW, MANY = 200, 10_000
"""Items that are looked up at first, and most at once."""


class Finder:
    """Finds items; safe to use from several threads.

    Args:
        service: The campaign.
    """

    def __init__(self, service: Service) -> None:
        self.service, self._lock = service, threading.Lock()
        self._words = pa.chunked_array([], pa.string())

    def rows(
        self, after: str, find: str, names: Collection[str] | None, state: str, limit: int
    ) -> list[Slot]:
        """Give the first items behind another that fit.

        Args:
            after: Id of the other; "", or the id of none: all items.
            find: What their ids or texts hold, whatever the case; "" for all.
            names: Only these; None for all.
            state: "all", "open" or "done".
            limit: Most items.
        """
        ledger, word = self.service.ledger, find.casefold()
        behind = ledger.position(after) if after else None
        begin = -1 if behind is None else behind
        if not word and names is None:
            return ledger.page(begin, state, limit)
        parts = _parts(self._fitting(begin, word, names), limit)
        rows = (row for part in parts for row in ledger.page(begin, state, len(part), part))
        return list(islice((row for row in rows if self._holds(row.item, word)), limit))

    def _fitting(self, begin: int, word: str, names: Collection[str] | None) -> NDArray[np.int64]:
        """Give the numbers of the items behind a position that may fit, in order."""
        asked = self.service.ledger.asked()
        fits = asked.position > begin
        if names is not None:
            fits &= _mask(pc.is_in(asked.item, pa.array(sorted(names), pa.string())))
        if word:
            fits &= _mask(pc.match_substring(self._words_of(asked), word))
        return asked.number[fits]

    def _words_of(self, asked: Asked) -> pa.ChunkedArray:
        """Give the words of items: those that were asked about since are read."""
        with self._lock:
            new = asked.item.slice(len(self._words)).to_pylist()
            if new:
                words = pa.array([self._words_in(item) for item in new], pa.string())
                self._words = pa.chunked_array([*self._words.chunks, words])
            return self._words.slice(0, len(asked))

    def _words_in(self, item: str) -> str:
        """Return all that an item may be found by."""
        return f"{item}\n{self.service.work.tasks.text(item)}".casefold()

    def _holds(self, item: str, word: str) -> bool:
        """Whether an item's id or its whole text holds a word."""
        if not word or word in item.casefold():
            return True
        return word in self.service.work.tasks.text(item).casefold()


def _mask(found: Any) -> NDArray[np.bool_]:
    """Take a column of truth values."""
    return np.asarray(found, np.bool_)


def _parts(numbers: NDArray[np.int64], limit: int) -> Iterator[list[int]]:
    """Cut numbers into parts that grow: mostly the first one fills a page."""
    start, size = 0, max(limit, FEW)
    while start < len(numbers):
        yield numbers[start : start + size].tolist()
        start, size = start + size, min(2 * size, MANY)
