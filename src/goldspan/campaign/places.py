"""Answers without a lease: sent to the ledger where they find a free place and the money for it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from goldspan.campaign.keys import key_of
from goldspan.campaign.setting import Setting
from goldspan.protocols import Ledger, Receipt

TAKEN, FULL, MONEY, BARRED = "taken", "full", "money", "barred"
"""What became of an answer: it counts, or why it does not."""


class Places:
    """What is free and what was answered, read once and kept while answers are sent.

    Args:
        setting: The campaign.
        ledger: Where it is kept.
    """

    def __init__(self, setting: Setting, ledger: Ledger) -> None:
        self.setting, self.ledger, self._left = setting, ledger, ledger.totals().left
        rows, crowd = ledger.slots().to_pylist(), ledger.crowd()
        self._free = {row["item"]: row["places"] - row["leased"] - row["filled"] for row in rows}
        items, workers = crowd.item_ids.to_pylist(), crowd.worker_ids.to_pylist()
        answers, tags = crowd.latest, [*crowd.tagset.tags, None]
        codes, offset = answers.codes.tolist(), answers.offset.tolist()
        pairs = zip(answers.item.tolist(), answers.worker.tolist(), strict=True)
        self._given: dict[tuple[str, str], list[str | None]] = {
            (items[item], workers[worker]): [tags[c] for c in codes[offset[n] : offset[n + 1]]]
            for n, (item, worker) in enumerate(pairs)
        }

    def given(self, item: str, worker: str) -> list[str | None] | None:
        """Give the answer that counts, None if there is none."""
        return self._given.get((item, worker))

    def take(self, item: str, worker: str, labels: Sequence[str | None], now: int) -> str:
        """Send an answer if it finds a place, and say what became of it."""
        if self._free[item] <= 0:
            return FULL
        if self.setting.costs[self.setting.pool.place[item]] > self._left:
            return MONEY
        receipt = self._send(item, worker, labels, now)
        if not receipt.counts:  # there were place and money
            return BARRED
        self._free[item] -= 1
        self._left -= receipt.cost
        self._given[item, worker] = list(labels)
        return TAKEN

    def _send(self, item: str, worker: str, labels: Sequence[str | None], now: int) -> Receipt:
        """Send it under the first key that no answer that does not count has used up."""
        for attempt in count():
            key = key_of(item, worker, attempt)
            receipt = self.ledger.submit(key, worker, item, labels, now)
            if receipt.status == "conflict":
                continue
            # A draft beside another of the worker is not kept: its key is as good as any.
            if receipt.counts or not receipt.repeated or not self.ledger.is_sent(key):
                return receipt
        raise AssertionError
