"""A selection rule: items with many capitalised words first, which often are names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from goldspan.selection.base import Task
from goldspan.selection.uncertainty import Ranked


@dataclass(kw_only=True)
class Capitals(Ranked):
    """Pick the items with the largest share of capitalised tokens.

    Args:
        skip_first: Leave the first token of an item out.
    """

    name: ClassVar[str] = "capitals"
    skip_first: bool = True

    def _scores(self, task: Task, index: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.array([self._share(task.pool.words(int(item))) for item in index])

    def _share(self, words: Any) -> float:
        words = words[1:] if self.skip_first else words
        return sum(word[:1].isupper() for word in words) / max(1, len(words))
