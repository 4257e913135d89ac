"""Two stopping rules: when an item has enough answers, and when a campaign ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation import Consensus
from goldspan.campaign import Decision
from goldspan.crowd import Crowd
from goldspan.workers import Rule


@dataclass(frozen=True)
class EnoughOrLong(Rule):
    """An item is finished after some answers; long items need one more.

    Args:
        answers: How many answers finish an item.
        long: From how many tokens on an item is long.
    """

    name: ClassVar[str] = "enough_or_long"
    reason: ClassVar[str] = "enough answers"

    answers: int = 2
    long: int = 20

    def finished(self, crowd: Crowd, result: Consensus | None = None) -> NDArray[np.bool_]:
        """Return which items have enough answers, bool [n_items]."""
        given = np.diff(crowd.by_item.bounds)
        is_long = np.diff(crowd.offsets) >= self.long
        return np.asarray(given >= self.answers + is_long)


@dataclass(frozen=True)
class EnoughLabelled:
    """End a campaign when some items are labelled.

    Args:
        items: How many.
    """

    items: int

    def decide(self, rounds: Sequence[Mapping[str, Any]]) -> Decision:
        """Decide after a round, from the facts of all rounds (`goldspan.campaign.protocols`)."""
        labelled = rounds[-1]["items"]
        if labelled >= self.items:
            return Decision(stop=True, rule="enough", why=f"{labelled} items are labelled")
        return Decision(stop=False)
