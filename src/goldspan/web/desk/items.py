"""Items at the desk: searching those that were asked about, and what the answers to one say."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan.web.desk.models import FoundLabel, FoundSpan, FoundSpans, LabelChoice

if TYPE_CHECKING:
    from goldspan.aggregation import Consensus
    from goldspan.store import SqlLedger
    from goldspan.store.queries import Asked, Slot
    from goldspan.web.work import Tasks

FEW, MANY = 200, 10_000
"""Items that are looked up at first, and most at once."""
LIKELY = 8
"""Most alternatives of an item that are named."""


class ItemSearch:
    """Searches items by text, id and state; safe to use from several threads."""

    def __init__(self, ledger: SqlLedger, tasks: Tasks) -> None:
        self._ledger, self._tasks, self._lock = ledger, tasks, threading.Lock()
        self._texts = pa.chunked_array([], pa.string())

    def rows(
        self, after: str, find: str, names: Collection[str] | None, state: str, limit: int
    ) -> list[Slot]:
        """Return the first matching items after another one."""
        ledger, word = self._ledger, find.casefold()
        position = ledger.position(after) if after else None
        begin = -1 if position is None else position
        if not word and names is None:
            return ledger.page(begin, state, limit)
        parts = _parts(self._candidates(begin, word, names), limit)
        rows = (row for part in parts for row in ledger.page(begin, state, len(part), part))
        return list(islice((row for row in rows if self._contains(row.item, word)), limit))

    def _candidates(
        self, begin: int, word: str, names: Collection[str] | None
    ) -> NDArray[np.int64]:
        """Return the numbers of the items after a position that may match, in order."""
        asked = self._ledger.asked()
        fits = asked.position > begin
        if names is not None:
            fits &= _mask(pc.is_in(asked.item, pa.array(sorted(names), pa.string())))
        if word:
            fits &= _mask(pc.match_substring(self._texts_of(asked), word))
        return asked.number[fits]

    def _texts_of(self, asked: Asked) -> pa.ChunkedArray:
        """Return id and text of the items; those that were asked about since are added."""
        with self._lock:
            new = asked.item.slice(len(self._texts)).to_pylist()
            if new:
                texts = [f"{item}\n{self._tasks.text(item)}".casefold() for item in new]
                more = pa.array(texts, pa.string())
                self._texts = pa.chunked_array([*self._texts.chunks, more])
            return self._texts.slice(0, len(asked))

    def _contains(self, item: str, word: str) -> bool:
        """Whether an item's id or text contains a word: both together may without either doing."""
        if not word or word in item.casefold():
            return True
        return word in self._tasks.text(item).casefold()


def _mask(found: Any) -> NDArray[np.bool_]:
    return np.asarray(found, np.bool_)


def _parts(numbers: NDArray[np.int64], limit: int) -> Iterator[list[int]]:
    """Cut numbers into growing parts: mostly the first one fills a page."""
    start, size = 0, max(limit, FEW)
    while start < len(numbers):
        yield numbers[start : start + size].tolist()
        start, size = start + size, min(2 * size, MANY)


def positions(result: Consensus | None, items: Sequence[str]) -> list[int | None]:
    """Return the positions of items in a result, None for those without an answer."""
    if result is None:
        return [None] * len(items)
    found = pc.index_in(pa.array(items, pa.string()), value_set=result.crowd.item_ids)
    return list(found.to_pylist())


def found_labels(result: Consensus | None, item: str) -> FoundLabel | FoundSpans | None:
    """Return the consensus on an item with its confidence; None without answers."""
    (n,) = positions(result, [item])
    if result is None or n is None:
        return None
    if result.crowd.is_classification and result.codes[n] < 0:  # nobody answered
        return None
    return found_at(result, n)


def found_at(result: Consensus, n: int) -> FoundLabel | FoundSpans:
    """Return the consensus on the item at a position of a result."""
    begin, end = result.crowd.offsets[n : n + 2].tolist()
    confidence = round(float(result.confidence[n]), 4)
    tokens = [round(one, 3) for one in result.token_confidence[begin:end].tolist()]
    if result.crowd.is_classification:
        probs = result.token_probs[n]
        order = np.argsort(-probs, kind="stable")[:LIKELY].tolist()
        choices = [
            LabelChoice(label=result.tagset.tags[code], confidence=round(float(probs[code]), 4))
            for code in order
        ]
        return FoundLabel(
            confidence=confidence, tokens=tokens, label=result.labels[n], alternatives=choices
        )
    mine = np.flatnonzero(result.span_array.item == n).tolist()
    rows = result.spans.take(pa.array(mine, pa.int64())).to_pylist()
    item = result.crowd.item_ids[n].as_py()
    others = [] if result.posterior is None else result.alternatives(item)[:LIKELY]
    return FoundSpans(
        confidence=confidence, tokens=tokens,
        spans=[_span(row["start"], row["end"], row["type"], row["confidence"]) for row in rows],
        alternatives=[_span(one.start, one.end, one.type, one.confidence) for one in others],
    )  # fmt: skip


def _span(start: int, end: int, kind: str, confidence: float) -> FoundSpan:
    return FoundSpan(start=start, end=end, type=kind, confidence=round(float(confidence), 4))
