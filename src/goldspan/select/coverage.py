"""Coverage: items that bring attribute–value pairs which the labelled ones lack (paper 003)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import InputError, UnknownNameError
from goldspan.select.base import Selector, Task
from goldspan.select.greedy import ORDERS, Picks, Purse, Wanted, cover
from goldspan.select.incidence import Incidence
from goldspan.select.selection import Picked
from goldspan.tagger.parameters import check_number, check_whole

WEIGHTS = ("log-df", "none")
USES = ("weights", "target")


@dataclass(kw_only=True)
class Coverage(Selector):
    """Greedy coverage by weight gained per cost: the rule for a cold start (MATH section 9).

    Departs from paper 003, which counts new pairs and takes all items to cost the same: on texts
    that picks the longest sentences. Here a pair weighs the logarithm of its items in the pool
    (df), so that what occurs once weighs nothing, and gains are divided by costs.

    Args:
        w: How often every attribute–value pair is to be covered, if the budget lasts so long.
        order: "levels": everything once before anything twice; "capped": the gain of f itself.
        weights: "log-df", "none" (all alike), or float64 [n_values].
        by_cost: Divide gains by costs; costs that are all alike change nothing.
        errors_as: What `errors` do: "weights" multiplies every pair's weight by its smoothed error
            rate over the mean one; "target" covers the pairs of the wrong items, and no others,
            as if nothing were labelled.
        smoothing: Items with the mean error rate that every pair's error rate begins with.
        duplicates: Keep items with the same pairs as another; otherwise the cheapest of them
            stays.

    >>> found = Coverage(weights="none").select(["a b", "b", "c d e"], n=2)
    >>> found.item.tolist(), found.why
    ([2, 0], ('level 1: lower=c', 'level 1: lower=a'))
    """

    name: ClassVar[str] = "coverage"
    w: int = 10
    order: str = "levels"
    weights: Any = "log-df"
    by_cost: bool = True
    errors_as: str = "weights"
    smoothing: float = 5.0
    duplicates: bool = False

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        check_whole("w", self.w, 1, 2**30)
        check_number("smoothing", self.smoothing, 0, is_open=True)
        if self.order not in ORDERS:
            raise UnknownNameError("order", self.order, ORDERS)
        if self.errors_as not in USES:
            raise UnknownNameError("use of errors", self.errors_as, USES)
        if isinstance(self.weights, str) and self.weights not in WEIGHTS:
            raise UnknownNameError("weights", self.weights, WEIGHTS)

    def _pick(self, task: Task) -> Picked:
        items = task.described.items
        wanted = self._wanted(task, items)
        purse = task.limits.purse
        if not self.by_cost:
            purse = replace(purse, shares=None)
        out = task.is_out
        repeated = np.zeros(items.n_items, np.bool_)
        if not self.duplicates:
            # Of items alike the cheapest stays, of equal ones the first of the permutation.
            place = np.empty(items.n_items)
            ranks = task.ranks()
            ranks = ranks[np.argsort(task.limits.cost[ranks], kind="stable")]
            place[ranks] = np.arange(items.n_items)
            repeated = items.repeated(place, ~out)
        picks = self._cover(task, items, wanted, purse, out | repeated)
        return self._told(task, items, wanted, picks, int(repeated.sum()))

    def _cover(
        self, task: Task, items: Incidence, wanted: Wanted, purse: Purse, out: NDArray[np.bool_]
    ) -> Picks:
        return cover(items, wanted, purse, task.ranks(), out)

    def _wanted(self, task: Task, items: Incidence) -> Wanted:
        weights = self._weights(items)
        names, rows = task.known.rows(task.pool, items, task.described.features)
        counts = rows.counts
        if task.known.errors is not None and len(names):
            rate, mean = task.known.error_rates(names, rows, self.smoothing)
            even = np.ones(items.n_values) if weights is None else weights
            if self.errors_as == "target":
                wrong = [n for n, name in enumerate(names) if task.known.errors.get(name, 0) > 0]
                hit = rows.take(np.array(wrong, np.intp)).counts > 0
                weights, counts = np.where(hit, even, 0.0), np.zeros_like(counts)
            elif mean > 0:
                weights = even * rate / mean
        counts = counts + items.take(task.picked).counts
        return Wanted(self.w, self.order, counts, weights)

    def _weights(self, items: Incidence) -> NDArray[np.float64] | None:
        if isinstance(self.weights, str):
            return None if self.weights == "none" else np.log(np.maximum(1.0, items.counts))
        found = np.asarray(self.weights, np.float64)
        if found.shape != (items.n_values,):
            raise InputError(f"weights must be {items.n_values} numbers, not {found.shape}")
        if not (np.isfinite(found) & (found >= 0)).all():
            raise InputError("weights must be finite and not negative")
        return found

    def _told(
        self, task: Task, items: Incidence, wanted: Wanted, picks: Picks, repeated: int
    ) -> Picked:
        features = task.described.features
        why = tuple(
            (f"level {level}: " if level else "") + features.name(value)
            for level, value in zip(picks.level.tolist(), picks.value.tolist(), strict=True)
        )
        asked = np.ones(items.n_values, np.bool_) if wanted.weights is None else wanted.weights > 0
        facts = {
            "duplicates": repeated,
            "values": int(asked.sum()),
            "covered": int((asked & (picks.counts > 0)).sum()),
            "coverage": wanted.value(picks.counts),
        }
        rule = (self.name,) * len(picks.item)
        return Picked(picks.item, picks.gain, picks.level, rule, why, picks.stopped, facts)


@dataclass(kw_only=True)
class PaperCoverage(Coverage):
    """Coverage as paper 003 writes it: the most new pairs first, whatever the items cost.

    The arguments are those of `Coverage`.
    """

    name: ClassVar[str] = "coverage-paper"
    w: int = 1
    weights: Any = "none"
    by_cost: bool = False
