"""Habits about where spans begin and end: `early`, `late`, `merges`."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from goldspan.simulate.base import Assignment
from goldspan.simulate.habits import SpanHabit, covered
from goldspan.spans import SpanArray


@dataclass(frozen=True)
class Early(SpanHabit):
    """Starts spans one token early, where the token before is in the item and in no span."""

    name = "early"

    def alter(self, spans: SpanArray, work: Assignment) -> SpanArray:
        """Move starts."""
        before = spans.start - 1
        taken = covered(spans, len(work.truth))[before]
        room = (before >= work.offsets[spans.item]) & ~taken
        return replace(spans, start=spans.start - (self.happens(spans, work) & room))


@dataclass(frozen=True)
class Late(SpanHabit):
    """Ends spans one token late, where the next token is in the item and in no span."""

    name = "late"

    def alter(self, spans: SpanArray, work: Assignment) -> SpanArray:
        """Move ends."""
        taken = np.append(covered(spans, len(work.truth)), True)[spans.end]
        room = (spans.end < work.offsets[spans.item + 1]) & ~taken
        return replace(spans, end=spans.end + (self.happens(spans, work) & room))


@dataclass(frozen=True)
class Merges(SpanHabit):
    """Joins a span to the one before it; the first one's type stays.

    Attributes:
        gap: Most tokens between the two, at which they are still neighbours.
    """

    gap: int = 1
    name = "merges"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_whole("gap")

    def alter(self, spans: SpanArray, work: Assignment) -> SpanArray:
        """Join spans; p is per pair of neighbours, and several may become one."""
        if not len(spans):
            return spans
        near = np.zeros(len(spans), np.bool_)
        near[1:] = spans.start[1:] - spans.end[:-1] <= self.gap
        near[1:] &= spans.item[1:] == spans.item[:-1]
        first = np.flatnonzero(~(near & self.happens(spans, work)))
        last = np.append(first[1:], len(spans)) - 1
        return replace(spans.take(first), end=spans.end[last])
