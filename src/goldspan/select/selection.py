"""What was selected: items in the order of picking, and why each."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.select.pool import Pool

CONTROL = "random"
"""The rule whose picks are a random sample: the control slice."""


@dataclass(frozen=True, eq=False)
class Picked:
    """What a rule picked, in order.

    Attributes:
        item: int64 [n_picks], indexes in the pool.
        gain: float64 [n_picks].
        level: int64 [n_picks], cover that was being finished; 0 for rules without levels.
        rule: The name of the rule that picked each.
        why: A few words per pick.
        stopped: "budget", "saturated" or "exhausted".
        facts: Numbers about the whole.
    """

    item: NDArray[np.int64]
    gain: NDArray[np.float64]
    level: NDArray[np.int64]
    rule: tuple[str, ...]
    why: tuple[str, ...]
    stopped: str
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Selection:
    """Items to label, the first picked first.

    Attributes:
        pool: What they were chosen from.
        item: int64 [n_picks], their indexes in the pool.
        gain: float64 [n_picks], what each was picked for: weights newly covered, or the score of
            the rule.
        cost: [n_picks], int64 or float64.
        unit: Of the cost: "items", "tokens", "micro" (millionths of money) or "cost".
        rule: The rule that picked each.
        level: int64 [n_picks], the cover that was being finished; 0 for rules without levels.
        why: A few words per pick.
        stopped: "budget": nothing more fits; "saturated": nothing more is gained; "exhausted":
            nothing is left.
        facts: Numbers about the whole, such as how many duplicates were left out.
        seed: Of everything random.
    """

    pool: Pool = field(repr=False)
    item: NDArray[np.int64]
    gain: NDArray[np.float64]
    cost: NDArray[Any]
    unit: str
    rule: tuple[str, ...] = field(repr=False)
    level: NDArray[np.int64] = field(repr=False)
    why: tuple[str, ...] = field(repr=False)
    stopped: str
    facts: dict[str, Any]
    seed: int = 0

    def __len__(self) -> int:
        """Count the picks."""
        return len(self.item)

    @property
    def item_ids(self) -> list[str]:
        """The ids of the items."""
        return list(self.pool.item_ids.take(pa.array(self.item)).to_pylist())

    @property
    def is_control(self) -> NDArray[np.bool_]:
        """Which picks were drawn at random, bool [n_picks]: gold that no rule has bent."""
        return np.array([rule == CONTROL for rule in self.rule], np.bool_)

    @property
    def total_cost(self) -> int | float:
        """What all of them cost, in `unit`."""
        if self.cost.dtype.kind == "f":
            return math.fsum(self.cost.tolist())
        return int(self.cost.sum())

    @property
    def n_tokens(self) -> int:
        """Tokens of all of them; 0 for rows of a table."""
        return 0 if self.pool.text is None else int(self.pool.n_tokens[self.item].sum())

    def counts(self) -> dict[str, int]:
        """Count the picks of every rule."""
        return dict(Counter(self.rule))

    def to_arrow(self) -> pa.Table:
        """Give a row per pick: item, rule, level, gain, cost, why, is_control."""
        return pa.table(
            {
                "item": self.pool.item_ids.take(pa.array(self.item)),
                "rule": pa.array(self.rule, pa.string()),
                "level": pa.array(self.level),
                "gain": pa.array(self.gain),
                "cost": pa.array(self.cost),
                "why": pa.array(self.why, pa.string()),
                "is_control": pa.array(self.is_control),
            }
        )
