"""`drift(first, last)`: a worker whose answers change over the course of the work.

The course is `Assignment.moments`: a moment in [0, 1) for every (worker, item), which does not
depend on what other items there are. `simulate_crowd(…, times=True)` writes it down as the time at
which the answer was submitted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from goldspan.simulate.base import Assignment, Codes, SimulatedWorker


@dataclass(frozen=True)
class Drift(SimulatedWorker):
    """Begins as one worker and ends as another.

    Attributes:
        first: Who answers at the beginning.
        last: Who answers at the end.
        at: None: the probability that `last` answers an item grows evenly from 0 to 1. A number
            in [0, 1]: the moment of a sudden change.
    """

    first: SimulatedWorker
    last: SimulatedWorker
    at: float | None = None
    name = "drift"

    def __post_init__(self) -> None:
        self.check_worker("first")
        self.check_worker("last")
        if self.at is not None:
            self.check_number("at")

    def answer(self, work: Assignment) -> Codes:
        """Let the one or the other answer every item."""
        moments = work.moments
        change = work.draws.per_item("change") if self.at is None else self.at
        late = np.repeat(moments >= change, work.lengths)
        first = self.first.answer(work.within("first"))
        return np.where(late, self.last.answer(work.within("last")), first)
