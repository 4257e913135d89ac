"""Coverage as a selection rule: of a pool at once, as a stream, or in parts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from goldspan._kernel import kernel
from goldspan.errors import InputError, UnknownNameError
from goldspan.params import Number, OneOf, Whole, require
from goldspan.protocols import Runner
from goldspan.selection.base import (
    SMOOTHING,
    Budget,
    Limits,
    Picked,
    Selector,
    Task,
    error_rate,
)
from goldspan.selection.features import Features, Incidence
from goldspan.selection.greedy import (
    BUDGET,
    EXHAUSTED,
    ORDERS,
    SATURATED,
    Picks,
    Spending,
    Wanted,
    cover,
)
from goldspan.selection.pool import Pool

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
        picks = self._cover(task, items, wanted, spending, out | repeated)
        return self._picked(task, items, wanted, picks, int(repeated.sum()))

    def _cover(
        self,
        task: Task,
        items: Incidence,
        wanted: Wanted,
        spending: Spending,
        out: NDArray[np.bool_],
    ) -> Picks:
        return cover(items, wanted, spending, task.ranks(), out)

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


# --------------------------------------------------------------------------------------------------
# One item against one sieve: is what it brings worth its cost?


@kernel
def sift(
    bounds: NDArray[np.int64],  # [n_items + 1]
    ids: NDArray[np.int32],  # [nnz]
    weights: NDArray[np.float64],  # [n_values]
    cost: NDArray[np.float64],  # [n_items], positive
    w: int,  # How often every value is to be covered
    density: float,  # Least gain per cost
    counts: NDArray[np.int32],  # [n_values], how often the sieve's items cover every value; changed
    state: NDArray[np.float64],  # [2], what is left of the budget, and f; changed
    kept: NDArray[np.int64],  # [n_items], written: the items that stay
) -> int:
    """Let items pass a sieve, one after the other."""
    n = 0
    for item in range(len(bounds) - 1):
        if cost[item] > state[0]:
            continue
        gain = 0.0
        for place in range(bounds[item], bounds[item + 1]):
            if counts[ids[place]] < w:
                gain += weights[ids[place]]
        if gain > 0 and gain >= density * cost[item]:
            for place in range(bounds[item], bounds[item + 1]):
                counts[ids[place]] += 1
            state[0] -= cost[item]
            state[1] += gain
            kept[n] = item
            n += 1
    return n


# --------------------------------------------------------------------------------------------------
# Coverage of a pool too large for one greedy run: in parts, then among what the parts picked.


class PartitionedCoverage(Coverage):
    """`Coverage` in two rounds over parts of the pool; `runner` says where they are worked on.

    Args:
        parts: How many; the same number gives the same picks on any runner.

    >>> found = PartitionedCoverage(parts=2, weights="none").select(["a b", "b", "c d", "d"], n=2)
    >>> sorted(found.item.tolist())
    [0, 2]
    """

    name = "coverage-parts"
    parts: Annotated[int, Whole(1, 2**20)] = 8

    def _cover(
        self,
        task: Task,
        items: Incidence,
        wanted: Wanted,
        spending: Spending,
        out: NDArray[np.bool_],
    ) -> Picks:
        ranks, drawn = task.ranks(), task.ranks("parts")
        share = np.array_split(drawn[~out[drawn]], self.parts)
        return cover_in_parts(items, wanted, spending, ranks[~out[ranks]], share, task.runner)


def cover_in_parts(
    items: Incidence,  # Which item has which values
    wanted: Wanted,  # What is to be covered
    spending: Spending,  # What may be spent
    ranks: NDArray[np.int64],  # int64, items that can be picked, by rank
    parts: list[NDArray[np.int64]],  # The items of every part
    runner: Runner,
) -> Picks:
    """Pick greedily within parts, then among their picks."""
    place = np.empty(items.n_items, np.int64)
    place[ranks] = np.arange(len(ranks))

    def part(index: NDArray[np.int64]) -> Part:
        ranked = ranks[np.sort(place[index])]
        return ranked, items.take(ranked), spending.take(ranked)

    found = runner.map(_cover_part, [part(index) for index in parts if len(index)], wanted)
    last = _cover_part(part(np.concatenate([ranks[:0], *(one.item for one in found)])), wanted)
    best = max([last, *found], key=lambda one: wanted.value(one.counts))
    # A part that is used up says nothing about the pool.
    stopped = EXHAUSTED if len(best.item) == len(ranks) else best.stopped
    if stopped == EXHAUSTED and len(best.item) < len(ranks):
        stopped = BUDGET if len(best.item) == spending.most else SATURATED
    return best._replace(stopped=stopped)


Part = tuple[NDArray[np.int64], Incidence, Spending]
"""Items by rank, which decides ties; which of them has which values; what each costs."""


def _cover_part(part: Part, wanted: Wanted) -> Picks:
    index, items, spending = part
    found = cover(items, wanted, spending, np.arange(len(index)))
    return found._replace(item=index[found.item])


# --------------------------------------------------------------------------------------------------
# Coverage in one pass: items go by, few are kept, and none is seen again.


Floats = NDArray[np.float64]


@dataclass
class Sieve:
    """What a guess has kept."""

    counts: NDArray[np.int32]  # [n_values], how often the kept items cover every value
    state: Floats  # [2], what is left of the budget, and f
    items: list[int] = field(default_factory=list)  # Numbers of the kept items in the stream
    item_ids: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class StreamPicks:
    """What a stream left."""

    items: tuple[int, ...]  # Numbers of the items in the stream, counted from 0
    item_ids: tuple[str, ...]
    value: float
    cost: float  # What they cost, in the budget's unit (money in millionths)
    seen: int  # Number of items that went by
    sieves: int  # Number of sieves at the end; each takes 4 bytes per attribute–value pair


class StreamingCoverage:
    """Coverage in one pass and bounded memory; feed it pools one after the other.

    Args:
        features: The attribute–value pairs: fitted on a first part of the stream, or hashed.
        budget: As for `Budget.parse`.
        costs: A `Cost` for a budget of money; else None.
        w: How often every pair is to be covered, in the order "capped".
        weights: float64 [n_values], not negative; None: all alike.
        epsilon: How much closer each guess is to the next: memory goes with 1 / epsilon.

    Raises:
        InputError: A parameter makes no sense.

    >>> features = Features.fit(["a b c", "c d"], templates=["lower"])
    >>> stream = StreamingCoverage(features, budget="2items")
    >>> for pool in (["a b", "a"], ["c d", "a"]):
    ...     stream.feed(pool)
    >>> stream.result().items
    (0, 2)
    """

    def __init__(
        self, features: Features, *, budget: Any, costs: Any = None, w: int = 1,
        weights: Floats | None = None, epsilon: float = 0.1,
    ) -> None:  # fmt: skip
        require("w", w, Whole(1, 2**30))
        require("epsilon", epsilon, Number(0.001, 1))
        self.features, self.budget, self.costs = features, Budget.parse(budget), costs
        self.w, self.epsilon = w, epsilon
        self.weights = np.ones(features.n_values) if weights is None else np.array(weights, float)
        usable = self.weights.shape == (features.n_values,) and np.isfinite(self.weights).all()
        if not usable or (self.weights < 0).any():
            raise InputError(f"weights must be {features.n_values} numbers, not negative")
        self._is_even = self.budget.unit == "items" or not (self.budget.unit or costs)
        self._sieves: dict[int, Sieve] = {}
        self._single: tuple[float, int, str, float] = (0.0, -1, "", 0.0)
        self._densest, self._seen, self._limit = 0.0, 0, 0.0

    def feed(self, pool: Any) -> None:
        """Let items go by.

        Args:
            pool: As for `Pool.of`.

        Raises:
            InputError: The items are of another sort than the features, or have no costs.
        """
        part = Pool.of(pool)
        items = self.features.transform(part)
        cost, self._limit = self._costs(part)
        alone = np.where(cost <= self._limit, items.sums(self.weights), 0.0)
        if len(alone) and alone.max() > 0:
            best = int(np.argmax(alone))
            if alone[best] > self._single[0]:
                name = part.item_ids[best].as_py()
                self._single = (float(alone[best]), self._seen + best, name, float(cost[best]))
            self._densest = max(self._densest, float((alone / cost).max()))
            # Drop the guesses that are too low by now, and begin those that have come in reach
            base = math.log1p(self.epsilon)
            low = math.floor(math.log(self._single[0]) / base)
            high = math.floor(math.log(self._slack * self._limit * self._densest) / base)
            for guess in [guess for guess in self._sieves if guess < low]:
                del self._sieves[guess]
            for guess in range(low, high + 1):
                if guess not in self._sieves:
                    state = np.array([self._limit, 0.0])
                    self._sieves[guess] = Sieve(np.zeros(items.n_values, np.int32), state)
            for guess, sieve in self._sieves.items():
                density = (1 + self.epsilon) ** guess / (self._slack * self._limit)
                kept = np.empty(items.n_items, np.int64)
                n = sift(
                    items.bounds, items.ids, self.weights, cost, self.w, density,
                    sieve.counts, sieve.state, kept,
                )  # fmt: skip
                for item in kept[:n].tolist():
                    sieve.items.append(self._seen + item)
                    sieve.item_ids.append(part.item_ids[item].as_py())
        self._seen += part.n_items

    def result(self) -> StreamPicks:
        """Return the best sieve, or the best single item."""
        best = max(self._sieves.values(), key=lambda one: float(one.state[1]), default=None)
        value, number, name, cost = self._single
        sizes = (self._seen, len(self._sieves))
        if best is None or best.state[1] < value:
            if number < 0:
                return StreamPicks((), (), 0.0, 0.0, *sizes)
            return StreamPicks((number,), (name,), value, cost, *sizes)
        spent = self._limit - float(best.state[0])
        return StreamPicks(
            tuple(best.items), tuple(best.item_ids), float(best.state[1]), spent, *sizes
        )

    def _costs(self, pool: Pool) -> tuple[Floats, float]:
        if self._is_even:
            return np.ones(pool.n_items), float(self.budget.amount)
        limits = Limits.of(pool, self.budget, None, self.costs)
        assert limits.spending.spend is not None
        return np.maximum(1.0, limits.spending.spend), limits.spending.budget

    @property
    def _slack(self) -> float:
        return 2.0 if self._is_even else 1.5
