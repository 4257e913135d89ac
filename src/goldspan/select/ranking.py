"""Rules that give every item a score: the batch from a ranking, dense or diverse if asked for."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import InputError
from goldspan.select.base import Selector, Task
from goldspan.select.greedy import BUDGET, EXHAUSTED, Purse, Wanted, cover
from goldspan.select.incidence import Incidence
from goldspan.select.selection import Picked
from goldspan.tagger.parameters import check_number

Floats = NDArray[np.float64]
_COVERS = 3
"""How often the pairs of a shortlist are covered before it is filled up by score."""


@dataclass(kw_only=True)
class Ranked(Selector):
    """Base of rules with a score per item; the highest scores are picked.

    Args:
        by_cost: Divide scores by costs.
        density: Multiply scores by this power of an item's mean similarity to the pool (Settles
            and Craven 2008, "information density"); 0: do not.
        top: More than 1: the batch is chosen by coverage within the best ones, `top` times as many
            as it holds, so that it does not hold the same thing many times.
    """

    by_cost: bool = False
    density: float = 0.0
    top: float = 1.0

    @abstractmethod
    def _scores(self, task: Task, index: NDArray[np.int64]) -> Floats:
        """Give the scores of some items, not negative."""

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        check_number("density", self.density, 0, 100)
        check_number("top", self.top, 1, 1e6)

    def _pick(self, task: Task) -> Picked:
        index = np.flatnonzero(~task.is_out)
        scores = np.zeros(task.pool.n_items)
        if len(index):
            scores[index] = self._scores(task, index)
        if not np.isfinite(scores).all():
            bad = task.pool.item_ids[int(np.flatnonzero(~np.isfinite(scores))[0])].as_py()
            raise InputError(f"{self.name}: the score of item {bad} is no finite number")
        if self.density:
            scores *= similarity(task.described.items) ** self.density
        purse, keys = task.limits.purse, scores
        if self.by_cost and purse.shares is not None:
            keys = scores / purse.shares
        ranks = task.ranks()
        ranks = ranks[~task.is_out[ranks]]
        order = ranks[np.argsort(-keys[ranks], kind="stable")]
        n_diverse = 0
        if self.top > 1:
            first = diverse(task.described.items, order, purse, self.top, task.ranks())
            order, n_diverse = np.concatenate([first, order[~np.isin(order, first)]]), len(first)
        taken = fill(order, purse)
        why = tuple(f"{self.name} {score:.4g}" for score in scores[taken].tolist())
        stopped = EXHAUSTED if len(taken) == len(order) else BUDGET
        facts: dict[str, Any] = {"diverse": n_diverse} if self.top > 1 else {}
        level = np.zeros(len(taken), np.int64)
        rule = (self.name,) * len(taken)
        return Picked(taken, scores[taken], level, rule, why, stopped, facts)


def fill(order: NDArray[np.int64], purse: Purse) -> NDArray[np.int64]:
    """Take items in order while the purse lasts, leaving out what does not fit.

    >>> fill(np.arange(3), Purse(3, np.array([2.0, 9.0, 1.0]), 4.0)).tolist()
    [0, 2]
    """
    if purse.spend is None:
        return order[: purse.most]
    spend = purse.spend[order].tolist()
    least, left = min(spend, default=0.0), purse.budget * (1 + 1e-12)
    kept: list[int] = []
    for n, price in enumerate(spend):
        if len(kept) == purse.most or left < least:
            break
        if price <= left:
            left -= price
            kept.append(n)
    return order[np.array(kept, np.intp)]


def diverse(
    items: Incidence, order: NDArray[np.int64], purse: Purse, top: float, ranks: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Choose a batch by coverage from the best of a ranking.

    Args:
        items: Which item has which values.
        order: int64 [n], items, the best first.
        purse: What may be spent.
        top: The shortlist is so many times as much as the purse holds.
        ranks: int64 [n_items], the permutation that decides ties.
    """
    wide = Purse(int(min(len(order), np.ceil(top * purse.most))), purse.spend, top * purse.budget)
    out = np.ones(items.n_items, np.bool_)
    out[fill(order, wide)] = False
    return cover(items, Wanted(w=_COVERS), purse, ranks, out).item


def similarity(items: Incidence) -> Floats:
    """Give every item's mean cosine with all items of the pool, float64 [n_items].

    >>> similarity(Incidence.of_sets([{0}, {0}, {1}])).round(3).tolist()
    [0.667, 0.667, 0.333]
    """
    norm = np.sqrt(np.maximum(1, np.diff(items.bounds)))
    each = np.repeat(1 / norm, np.diff(items.bounds))
    middle = np.bincount(items.ids, weights=each, minlength=items.n_values) / max(1, items.n_items)
    return items.sums(middle) / norm
