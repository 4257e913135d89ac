"""Random items: what every rule must beat, and the control slice of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from goldspan.select.base import Selector, Task
from goldspan.select.greedy import BUDGET, EXHAUSTED
from goldspan.select.selection import CONTROL, Picked


@dataclass(kw_only=True)
class Random(Selector):
    """Items in a random order that the seed and their ids decide.

    It stops at the first item that does not fit into the budget: going on with smaller ones would
    prefer short items. Drawing again with the same seed goes on in the same order.

    >>> len(Random().select(["a b", "c", "d e f", "g"], n=2))
    2
    """

    name: ClassVar[str] = CONTROL

    def _pick(self, task: Task) -> Picked:
        purse = task.limits.purse
        order = task.ranks("random")
        order = order[~task.is_out[order]]
        taken = order[: purse.most]
        if purse.spend is not None:
            fitting = np.cumsum(purse.spend[taken]) <= purse.budget * (1 + 1e-12)
            taken = taken[fitting]
        n = len(taken)
        stopped = EXHAUSTED if n == len(order) else BUDGET
        return Picked(
            taken, np.zeros(n), np.zeros(n, np.int64), (self.name,) * n, ("drawn",) * n, stopped
        )
