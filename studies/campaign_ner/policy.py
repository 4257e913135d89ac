"""What the next answer is asked about, and of whom: the promise of every answer not yet asked for.

Nothing here sees gold. An answer's promise is made of

* the doubt about its item: the expected gain of an answer (`goldspan.workers.stopping`), the
  expected number of wrong spans, the entropy of its labels, or how far the crowd's labels change
  when the text has its say;
* who gives it: the worker of the largest expected gain, or whoever comes next in a random order;
* how much the item's earlier answers have told already. Workers share their mistakes: n labels
  are worth n / (1 + (n - 1) d) independent ones (`goldspan.aggregation.bsc.text`), so that the
  next one is worth the rise of that, 1, 0.6, 0.4, 0.29, ... for d = 0.25;
* and its price, where the promise per money counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation import Consensus, aggregate
from goldspan.workers.redundancy import RevealedAnswers
from goldspan.workers.stopping import (
    Floats,
    Habits,
    item_gain,
    learn_habits,
    pair_gain,
    per_item,
    posterior_of,
    worth,
)

LABELS = "bsc-seq+crf"
"""Makes the labels that are scored, with every policy."""
CROWD = "bsc-seq"
"""The crowd without the text."""
DEPENDENCE = 0.25
"""How much workers share their mistakes, where the method does not measure it."""
CLEAR = 0.95
"""Tokens above this confidence have no say in what a worker is worth."""
DOUBTS = ("gain", "spans", "entropy", "disagreement")
WHO = ("best", "any")

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Policy:
    """How a campaign asks on.

    Attributes:
        doubt: What an item promises, one of `DOUBTS`.
        who: "best", the worker of largest expected gain, or "any".
        least: Answers that every item begins with; 0 asks two of a random quarter of the items, and
            leaves it to the promise whether the others are asked about at all.
        by: The method whose probabilities are looked at.
        shared: Whether earlier answers count less since workers share their mistakes.
        per_price: Whether the promise is divided by the price.
    """

    doubt: str = "gain"
    who: str = "best"
    least: int = 0
    by: str = LABELS
    shared: bool = True
    per_price: bool = False

    def promises(
        self, labels: Consensus, revealed: RevealedAnswers, prices: Ints
    ) -> tuple[Ints, Floats]:
        """Return what every answer that is not asked for yet promises.

        Args:
            labels: What the answers so far say, by `LABELS`.
            revealed: The answers.
            prices: int64 [n_answers], millionths.

        Returns:
            int64 [n], the answers, and float64 [n], what each promises.
        """
        result = labels if self.by == LABELS else aggregate(revealed.so_far(), self.by)
        rest = np.flatnonzero(revealed.asked < 0)
        item = revealed.answers.item[rest].astype(np.int64)
        worker = revealed.answers.worker[rest].astype(np.int64)
        found = self._plain(result, revealed, item, worker)
        if self.shared:
            told = np.bincount(
                revealed.answers.item[revealed.asked >= 0], minlength=revealed.crowd.n_items
            )
            found = found * next_share(told, labels.memory.dependence or DEPENDENCE)[item]
        return rest, found / prices[rest] if self.per_price else found

    def _plain(
        self, result: Consensus, revealed: RevealedAnswers, item: Ints, worker: Ints
    ) -> Floats:
        """Return the promise of pairs of item and worker, whatever was asked before."""
        habits = learn_habits(result)
        probs = posterior_of(result, habits)
        if self.doubt == "gain" and self.who == "best":
            return pair_gain(probs, result.crowd.offsets, habits.tables, item, worker)
        doubt = self._doubt(result, revealed, probs, habits)[item]
        if self.who == "any":
            return doubt
        return doubt * worth(habits, probs[probs.max(axis=1) < CLEAR])[worker]

    def _doubt(
        self, result: Consensus, revealed: RevealedAnswers, probs: Floats, habits: Habits
    ) -> Floats:
        """Return the doubt about every item, float64 [n_items]."""
        offsets = result.crowd.offsets
        if self.doubt == "gain":
            return item_gain(probs, offsets, habits.mean)
        if self.doubt == "spans":
            return wrong_spans(result)
        if self.doubt == "entropy":
            assert result.entropy is not None  # bsc methods have it
            return result.entropy.astype(np.float64)
        crowd = aggregate(revealed.so_far(), CROWD)
        moved = np.abs(posterior_of(crowd, learn_habits(crowd)) - probs).sum(axis=1) / 2
        return per_item(np.add, moved, offsets, 0.0)


def wrong_spans(result: Consensus) -> Floats:
    """Return the expected number of wrong spans of every item: false ones and missed ones.

    A span that was given is false with 1 - p, any other of posterior p is missed with p.

    Returns:
        float64 [n_items].
    """
    every = result.posterior.marginals()
    n = result.crowd.n_items
    given = 1 - 2 * result.span_confidence.astype(np.float64)
    found = np.bincount(every.item, every.mass, n) + np.bincount(result.span_array.item, given, n)
    return np.asarray(np.maximum(found, 0.0))


def next_share(told: Ints, dependence: float) -> Floats:
    """Return what the next answer tells, as a share of the first: the rise of n / (1 + (n - 1) d).

    Args:
        told: Whole numbers [n_items], answers so far.
        dependence: d, 0 to 1.

    >>> next_share(np.arange(4), 0.25).round(2).tolist()
    [1.0, 0.6, 0.4, 0.29]
    """
    after, before = told + 1.0, np.maximum(told, 1.0)
    worth_before = np.where(told > 0, before / (1 + (before - 1) * dependence), 0.0)
    return np.asarray(after / (1 + (after - 1) * dependence) - worth_before)
