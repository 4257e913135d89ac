"""Density: items that stand for many others, without any model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from goldspan.select.base import Task
from goldspan.select.ranking import Floats, Ranked, similarity


@dataclass(kw_only=True)
class Density(Ranked):
    """Mean cosine of an item's attribute–value pairs with those of all items.

    As a factor on a model's uncertainty it is the parameter `density` of the other rules:
    `mnlp(density=1)`.

    >>> Density().select([["a", "b"], ["a", "b", "c"], ["x"]], n=2).item.tolist()
    [0, 1]
    """

    name: ClassVar[str] = "density"

    def _scores(self, task: Task, index: NDArray[np.int64]) -> Floats:
        return np.asarray(similarity(task.described.items)[index])
