"""Coverage in one pass: items go by, few are kept, and none is seen again.

Sieve-streaming (Badanidiyuru et al. 2014) with gains per cost. The best value OPT is guessed from a
grid v = (1 + epsilon)^i; the sieve of a guess keeps an item that fits and whose gain per cost is at
least v / (a B), with the budget B. For a = 2 and unit costs either the sieve is full and has
v / 2, or it left out nothing that adds more than OPT / 2 in all: f >= OPT / (2 (1 + epsilon)). With
unequal costs a = 3/2: if something that was worth it did not fit, the sieve with it would have more
than 2v / 3, so that the better of the sieve and the best single item has v / 3; otherwise the sieve
itself has. So f >= OPT / (3 (1 + epsilon)). Guesses lie between the best single item and a B times
the largest gain per cost so far: a sieve with a higher guess would have kept nothing yet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import InputError
from goldspan.select.budget import Budget, Limits
from goldspan.select.features import Features
from goldspan.select.incidence import Incidence
from goldspan.select.kernels.sieve import sift
from goldspan.select.pool import Pool
from goldspan.tagger.parameters import check_number, check_whole

Floats = NDArray[np.float64]


@dataclass
class Sieve:
    """What a guess has kept.

    Attributes:
        counts: int32 [n_values], how often the kept items cover every value.
        state: float64 [2], what is left of the budget, and f.
        items: Numbers of the kept items in the stream.
        item_ids: Their ids.
    """

    counts: NDArray[np.int32]
    state: Floats
    items: list[int] = field(default_factory=list)
    item_ids: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class StreamPicks:
    """What a stream left.

    Attributes:
        items: Numbers of the items in the stream, counted from 0.
        item_ids: Their ids.
        value: f of them.
        cost: What they cost, in the budget's unit (money in millionths).
        seen: Number of items that went by.
        sieves: Number of sieves at the end; each takes 4 bytes per attribute–value pair.
    """

    items: tuple[int, ...]
    item_ids: tuple[str, ...]
    value: float
    cost: float
    seen: int
    sieves: int


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
        check_whole("w", w, 1, 2**30)
        check_number("epsilon", epsilon, 0.001, 1)
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
            self._renew(items.n_values)
            for guess, sieve in self._sieves.items():
                self._sift(sieve, guess, part, items, cost)
        self._seen += part.n_items

    def result(self) -> StreamPicks:
        """Give the best sieve, or the best single item."""
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
        assert limits.purse.spend is not None
        return np.maximum(1.0, limits.purse.spend), limits.purse.budget

    @property
    def _slack(self) -> float:
        return 2.0 if self._is_even else 1.5

    def _renew(self, n_values: int) -> None:
        """Drop the guesses that are too low by now, and begin those that have come in reach."""
        base = math.log1p(self.epsilon)
        low = math.floor(math.log(self._single[0]) / base)
        high = math.floor(math.log(self._slack * self._limit * self._densest) / base)
        for guess in [guess for guess in self._sieves if guess < low]:
            del self._sieves[guess]
        for guess in range(low, high + 1):
            if guess not in self._sieves:
                state = np.array([self._limit, 0.0])
                self._sieves[guess] = Sieve(np.zeros(n_values, np.int32), state)

    def _sift(self, sieve: Sieve, guess: int, pool: Pool, items: Incidence, cost: Floats) -> None:
        density = (1 + self.epsilon) ** guess / (self._slack * self._limit)
        kept = np.empty(items.n_items, np.int64)
        n = sift(
            items.bounds, items.ids, self.weights, cost, self.w, density,
            sieve.counts, sieve.state, kept,
        )  # fmt: skip
        for item in kept[:n].tolist():
            sieve.items.append(self._seen + item)
            sieve.item_ids.append(pool.item_ids[item].as_py())
