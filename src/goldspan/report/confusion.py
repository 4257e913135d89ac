"""Which labels a crowd, or one worker, takes for which others: expected confusions in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregate import Consensus
from goldspan.aggregate.votes import vote_counts
from goldspan.aggregate.workers import confusion_counts

MAX_WORKERS = 6
EQUAL = 5.0
"""Labels of the whole crowd that are added to a worker's, so that few labels are no finding."""
RARE = 0.5
"""Truths that are expected less often than this in all labels are no row to compare."""


@dataclass(frozen=True, eq=False)
class Confusions:
    """Expected confusions of one worker, of several or of all.

    Attributes:
        labels: Names of rows and columns; the last stands for all others if there were too many.
        counts: float64 [n_labels, n_labels], expected: truth, label given.
        n_merged: Labels that the last row stands for; 0 if every label has its own.
    """

    labels: tuple[str, ...]
    counts: NDArray[np.float64]
    n_merged: int = 0

    @property
    def totals(self) -> NDArray[np.float64]:
        """Expected labels given per truth, float64 [n_labels]."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def rates(self) -> NDArray[np.float64]:
        """P(label given | truth), rows that sum to 1; rows of nothing are 0."""
        total = self.totals[:, None]
        return np.asarray(
            np.divide(self.counts, total, out=np.zeros_like(self.counts), where=total > 0)
        )

    def take(self, kept: Sequence[int], n_others: int) -> Confusions:
        """Keep some labels in their order, and put the others together as the last."""
        if not n_others:
            return self
        place = np.full(len(self.labels), len(kept))
        place[list(kept)] = np.arange(len(kept))
        counts = np.zeros((len(kept) + 1, len(kept) + 1))
        np.add.at(counts, (place[:, None], place[None, :]), self.counts)
        names = (*(self.labels[i] for i in kept), f"{n_others} others")
        return Confusions(names, counts, n_others)

    def fold(self, max_labels: int) -> Confusions:
        """Keep the most frequent labels, so that there are at most `max_labels` rows."""
        return self.take(*self.most_frequent(max_labels))

    def most_frequent(self, max_labels: int) -> tuple[list[int], int]:
        """Say which labels to keep, in their order, and how many others there are."""
        n = len(self.labels)
        if n <= max_labels:
            return list(range(n)), 0
        seen = self.counts.sum(axis=0) + self.counts.sum(axis=1)
        kept = np.sort(np.argsort(-seen, kind="stable")[: max(max_labels - 1, 0)])
        return kept.tolist(), n - len(kept)


@dataclass(frozen=True)
class Mistake:
    """A frequent confusion.

    Attributes:
        truth: The likely truth.
        given: What was said instead.
        share: P(given | truth).
        count: How often, expected.
    """

    truth: str
    given: str
    share: float
    count: float


def confusions(consensus: Consensus, worker: str | None = None) -> Confusions:
    """Count the expected confusions of a worker, or of all together.

    Args:
        consensus: The result.
        worker: Id, or None for all.

    Raises:
        InputError: There is no such worker.
    """
    crowd, probs = consensus.crowd, consensus.token_probs
    if worker is None:
        counts = probs.T.astype(np.float64) @ vote_counts(crowd)
    else:
        counts = confusion_counts(crowd, probs, crowd.worker_index(worker))
    return Confusions(tuple(crowd.tagset.tags), counts)


def mistakes(found: Confusions, n: int = 8) -> list[Mistake]:
    """List the most frequent confusions, at most `n`.

    >>> counts = np.array([[8.0, 2.0], [0.1, 4.9]])
    >>> mistakes(Confusions(("yes", "no"), counts))[0]
    Mistake(truth='yes', given='no', share=0.2, count=2.0)
    """
    wrong = found.counts.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:n]
    rates, names = found.rates, found.labels
    pairs = [(int(i), int(j)) for i, j in zip(*np.unravel_index(order, wrong.shape), strict=True)]
    return [
        Mistake(names[i], names[j], float(rates[i, j]), float(wrong[i, j]))
        for i, j in pairs
        if wrong[i, j] >= RARE
    ]


def unlike_the_others(
    consensus: Consensus, workers: Sequence[str], n: int = MAX_WORKERS
) -> list[str]:
    """Give the workers whose confusions differ most from those of all together, the most first.

    The difference is the total variation between the rows of a worker and of all, each row
    counting alike: rare labels matter as much as frequent ones.

    Args:
        consensus: The result.
        workers: Ids among which to choose; those without labels are left out.
        n: How many.
    """
    whole = confusions(consensus)
    compared = whole.totals >= RARE
    if not compared.any():
        return []
    rates = whole.rates[compared]
    far: list[tuple[float, str]] = []
    for worker in workers:
        counts = confusions(consensus, worker).counts[compared]
        if counts.sum() > 0:
            own = counts + EQUAL * rates
            gap = np.abs(own / own.sum(axis=1, keepdims=True) - rates).sum() / 2
            far.append((float(gap), worker))
    far.sort(key=lambda pair: -pair[0])  # stable: equal ones stay in their order
    return [worker for _, worker in far[:n]]
