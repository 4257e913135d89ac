"""Coverage as a selection rule (Ntoulas et al.): what the labelled items lack comes first."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import InputError, UnknownNameError
from goldspan.params import Number, OneOf, Whole
from goldspan.selection.base import SMOOTHING, Picked, Selector, Task, error_rate
from goldspan.selection.features import Incidence
from goldspan.selection.greedy import ORDERS, Picks, Wanted, cover

# --------------------------------------------------------------------------------------------------
# Coverage: items that bring attribute–value pairs which the labelled ones lack (Ntoulas et al.).


WEIGHTS = ("log-df", "none")
USES = ("weights", "near", "target")
Repeats = Annotated[int, Whole(1, 2**30)]
"""How often every attribute–value pair is to be covered."""


def _check_weights(weights: Any) -> None:
    if isinstance(weights, str) and weights not in WEIGHTS:
        raise UnknownNameError("value of weights", weights, WEIGHTS)


class Coverage(Selector):
    """Greedy coverage by weight gained per cost: the rule for a cold start (docs/math.md, 9).

    Departs from Ntoulas et al., who count new pairs and take all items to cost the same: on texts
    that picks the longest sentences. Here a pair weighs the logarithm of its items in the pool
    (df), so that what occurs once weighs nothing, and gains are divided by costs.

    Args:
        w: How often every attribute–value pair is to be covered, if the budget lasts so long.
        order: "levels": everything once before anything twice; "capped": the gain of f itself.
        weights: "log-df", "none" (all alike), or float64 [n_values].
        by_cost: Divide gains by costs; costs that are all alike change nothing.
        errors_as: What `errors` do: "weights" multiplies every pair's weight by its smoothed error
            rate over the mean one, of which a pair that no labelled item has knows nothing; "near"
            by the mean of `error_rate` over the items of the pool that have it, seen or not;
            "target" covers the pairs of the wrong items, and no others, as if nothing were
            labelled. Where nothing is wrong, none of them changes anything.
        smoothing: Items with the mean error rate that every pair's error rate begins with.
        duplicates: Keep items with the same pairs as another; otherwise the cheapest of them
            stays.

    >>> found = Coverage(weights="none").select(["a b", "b", "c d e"], n=2)
    >>> found.item.tolist(), found.why
    ([2, 0], ('level 1: lower=c', 'level 1: lower=a'))
    """

    name = "coverage"
    w: Repeats = 10
    order: Annotated[str, OneOf(ORDERS)] = "levels"
    weights: Annotated[Any, _check_weights] = "log-df"
    by_cost: bool = True
    errors_as: Annotated[str, OneOf(USES)] = "weights"
    smoothing: Annotated[float, Number(above=0)] = SMOOTHING
    duplicates: bool = False

    def _pick(self, task: Task) -> Picked:
        items = task.described.items
        wanted = self._wanted(task, items)
        spending = task.limits.spending
        if not self.by_cost:
            spending = replace(spending, shares=None)
        out = task.is_out
        repeated = np.zeros(items.n_items, np.bool_)
        if not self.duplicates:
            # Of items alike the cheapest stays, of equal ones the first of the permutation.
            place = np.empty(items.n_items)
            ranks = task.ranks()
            ranks = ranks[np.argsort(task.limits.cost[ranks], kind="stable")]
            place[ranks] = np.arange(items.n_items)
            repeated = items.repeated(place, ~out)
        picks = cover(items, wanted, spending, task.ranks(), out | repeated)
        return self._picked(task, items, wanted, picks, int(repeated.sum()))

    def _wanted(self, task: Task, items: Incidence) -> Wanted:
        weights = self._weights(items)
        names, rows = task.known.rows(task.pool, items, task.described.features)
        counts = rows.counts
        if task.known.errors is not None and len(names):
            rate, mean = task.known.error_rates(names, rows, self.smoothing)
            even = np.ones(items.n_values) if weights is None else weights
            wrong = [n for n, name in enumerate(names) if task.known.errors.get(name)]
            if self.errors_as == "target" and wrong:
                hit = rows.take(np.array(wrong, np.intp)).counts > 0
                weights, counts = np.where(hit, even, 0.0), np.zeros_like(counts)
            elif wrong and self.errors_as == "near":
                weights = even * _near(items, error_rate(task, self.smoothing))
            elif wrong:
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

    def _picked(
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


def _near(items: Incidence, rate: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean rate of the items that have a value, float64 [n_values]; 1 where none has."""
    each = np.repeat(rate, np.diff(items.bounds))
    total = np.bincount(items.ids, weights=each, minlength=items.n_values)
    return np.where(items.counts > 0, total / np.maximum(1, items.counts), 1.0)


class PaperCoverage(Coverage):
    """Coverage as Ntoulas et al. have it: the most new pairs first, whatever the items cost.

    The arguments are those of `Coverage`.
    """

    name = "coverage-paper"
    w: Repeats = 1
    weights: Annotated[Any, _check_weights] = "none"
    by_cost: bool = False
