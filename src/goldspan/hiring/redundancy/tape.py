"""A crowd's real answers as a tape: which of them are revealed so far, and which comes next."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd import Answers, Crowd
from goldspan.errors import InputError
from goldspan.tagger.features import hash64

ORDERS = ("random", "time", "given")
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@dataclass(eq=False)
class Tape:
    """The answers of a crowd, and which of them are revealed, in which order.

    Attributes:
        crowd: All of it.
        answers: Its answers that count.
        rank: int64 [n_answers], place of an answer among those of its item.
        asked: int64 [n_answers], when it was revealed; -1 not yet.
    """

    crowd: Crowd
    answers: Answers
    rank: NDArray[np.int64]
    asked: NDArray[np.int64]

    @classmethod
    def of(cls, crowd: Crowd, order: str, seed: int) -> Tape:
        """Wind a crowd's answers up in an order of `ORDERS`.

        Raises:
            InputError: There is no answer, or the order is "time" and not all have one.
        """
        answers = crowd.latest
        if not len(answers):
            raise InputError("the crowd has no answer: there is nothing to replay")
        sorted_ = crowd.by_item.order
        if order == "random":
            sorted_ = np.lexsort((_scattered(crowd, answers, seed), answers.item))
        elif order == "time":
            when = answers.submitted
            if when is None or (when < 0).any():
                raise InputError("order: not all answers have a time; use random or given")
            sorted_ = np.lexsort((when, answers.item))
        rank = np.empty(len(answers), np.int64)
        starts = crowd.by_item.bounds[:-1]
        rank[sorted_] = np.arange(len(answers)) - starts[answers.item[sorted_]]
        # Without times, so that rules see the answers in the order in which they are revealed.
        plain = replace(
            answers, attempt=np.zeros_like(answers.attempt), started=None, submitted=None
        )
        return cls(crowd, plain, rank, np.full(len(answers), -1, np.int64))

    def ask(self, k: int) -> None:
        """Reveal the first k answers of every item."""
        first = self.rank < k
        self.asked[first] = self.rank[first]

    def ask_more(self, is_open: NDArray[np.bool_], gains: NDArray[np.float64] | None) -> None:
        """Reveal one more answer of every open item: the next, or that of largest gain."""
        rest = np.flatnonzero((self.asked < 0) & is_open[self.answers.item])
        wish = self.rank[rest] if gains is None else -gains[rest]
        rest = rest[np.lexsort((self.rank[rest], wish, self.answers.item[rest]))]
        items = self.answers.item[rest]
        chosen = rest[np.concatenate([[True], items[1:] != items[:-1]])] if len(rest) else rest
        self.asked[chosen] = self.asked.max() + 1

    def has_more(self) -> NDArray[np.bool_]:
        """Say which items have answers that are not revealed, bool [n_items]."""
        found = np.zeros(self.crowd.n_items, np.bool_)
        found[self.answers.item[self.asked < 0]] = True
        return found

    def so_far(self) -> Crowd:
        """Give the crowd with the answers revealed, in the order in which they were."""
        order = np.argsort(self.asked, kind="stable")
        shown = order[self.asked[order] >= 0]
        return replace(self.crowd, answers=self.answers.take(shown))


def _scattered(crowd: Crowd, answers: Answers, seed: int) -> NDArray[np.uint64]:
    """Hash the seed, item id and worker id of every answer, uint64 [n_answers].

    So an order by it does not depend on how the answers are sorted, nor on which others there are.
    Bits are scattered as in SplitMix64 (Steele, Lea and Flood 2014).
    """
    items = np.array([hash64(f"{seed}\0{name}") for name in crowd.item_ids.to_pylist()], np.uint64)
    workers = np.array([hash64(name) for name in crowd.worker_ids.to_pylist()], np.uint64)
    keys = items[answers.item] ^ workers[answers.worker]
    keys = (keys ^ (keys >> np.uint64(30))) * _FIRST
    keys = (keys ^ (keys >> np.uint64(27))) * _SECOND
    return np.asarray(keys ^ (keys >> np.uint64(31)))
