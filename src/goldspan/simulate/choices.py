"""Habits about which spans there are, and of which type: `misses`, `invents`, `wrong_type`."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import InputError
from goldspan.simulate.base import Assignment, Scene
from goldspan.simulate.habits import SpanHabit, covered, pick
from goldspan.spans import Codec, SpanArray


@dataclass(frozen=True)
class Misses(SpanHabit):
    """Overlooks spans.

    Attributes:
        type: Only of this type; by default of all.
    """

    type: str | None = None
    name = "misses"

    def prepare(self, scene: Scene) -> None:
        """Refuse a type that is not there."""
        super().prepare(scene)
        self.check_type(self.type, scene.codec)

    def alter(self, spans: SpanArray, work: Assignment) -> SpanArray:
        """Leave out spans."""
        hit = self.happens(spans, work) & _of_type(spans, self.type, work.scene.codec)
        return spans.take(~hit)


@dataclass(frozen=True)
class Invents(SpanHabit):
    """Marks tokens that are in no span, each with probability p, as spans of one token.

    Attributes:
        type: Of the new spans; by default any, each alike.
    """

    type: str | None = None
    name = "invents"

    def prepare(self, scene: Scene) -> None:
        """Refuse a type that is not there."""
        super().prepare(scene)
        self.check_type(self.type, scene.codec)
        if not scene.codec.types:
            raise InputError("invents: the tag set has no type of span")

    def alter(self, spans: SpanArray, work: Assignment) -> SpanArray:
        """Add spans."""
        free = ~covered(spans, len(work.truth))
        start = np.flatnonzero(free & (work.draws.per_token("whether") < self.p))
        types = work.scene.codec.types
        kind = pick(work.draws.per_token("type")[start], len(types))
        if self.type is not None:
            kind[:] = types.index(self.type)
        item = (np.searchsorted(work.offsets, start, side="right") - 1).astype(np.int32)
        order = np.argsort(np.concatenate([spans.start, start]), kind="stable")
        return SpanArray(
            np.concatenate([spans.start, start])[order],
            np.concatenate([spans.end, start + 1])[order],
            np.concatenate([spans.type, kind])[order],
            np.concatenate([spans.item, item])[order],
            np.zeros(len(order), np.int32),
        )


@dataclass(frozen=True)
class WrongType(SpanHabit):
    """Gives spans another type, any other alike.

    Attributes:
        type: Only spans of this type; by default all.
        to: The other type; by default any.
    """

    type: str | None = None
    to: str | None = None
    name = "wrong_type"

    def prepare(self, scene: Scene) -> None:
        """Refuse types that are not there, and a tag set with a single one."""
        super().prepare(scene)
        self.check_type(self.type, scene.codec)
        self.check_type(self.to, scene.codec)
        if self.p > 0 and len(scene.codec.types) < 2:
            raise InputError("wrong_type: there is only one type of span, and no wrong one")

    def alter(self, spans: SpanArray, work: Assignment) -> SpanArray:
        """Change types."""
        types = work.scene.codec.types
        hit = self.happens(spans, work) & _of_type(spans, self.type, work.scene.codec)
        step = pick(work.draws.per_token("which")[spans.start], len(types) - 1)
        other = (spans.type + 1 + step) % max(1, len(types))
        if self.to is not None:
            other[:] = types.index(self.to)
        return replace(spans, type=np.where(hit, other, spans.type).astype(np.int16))


def _of_type(spans: SpanArray, kind: str | None, codec: Codec) -> NDArray[np.bool_]:
    if kind is None:
        return np.ones(len(spans), np.bool_)
    return np.asarray(spans.type == codec.types.index(kind))
