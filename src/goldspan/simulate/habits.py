"""What habits about spans share: reading the spans of an answer, changing them, writing them.

Malformed tags of the base are read as conlleval reads them and come out well-formed.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import InputError, UnknownNameError
from goldspan.simulate.base import Assignment, Codes, Habit, Scene
from goldspan.simulate.draws import Floats
from goldspan.spans import Codec, SpanArray, Tagged, find_spans, write_codes


@dataclass(frozen=True)
class SpanHabit(Habit):
    """A habit that shows at every span with probability p.

    Attributes:
        p: That probability, independent from span to span.
    """

    p: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_number("p")

    def prepare(self, scene: Scene) -> None:
        """Refuse labels that are no spans."""
        super().prepare(scene)
        if scene.codec.rules.is_plain:
            raise InputError(f"{self.name}: PLAIN labels hold no spans: use flip, cm or a spammer")

    def change(self, codes: Codes, work: Assignment) -> Codes:
        """Change the spans."""
        spans = find_spans(Tagged(codes, work.offsets), work.scene.codec)
        return write_codes(self.alter(spans, work), work.offsets, work.scene.codec)

    @abstractmethod
    def alter(self, spans: SpanArray, work: Assignment) -> SpanArray:
        """Change spans, which are sorted by place; their numbers are drawn at their start."""

    def happens(self, spans: SpanArray, work: Assignment) -> NDArray[np.bool_]:
        """Say at which spans the habit shows, bool [n_spans]."""
        return np.asarray(work.draws.per_token("whether")[spans.start] < self.p)

    def check_type(self, kind: str | None, codec: Codec) -> None:
        """Refuse a type that the tag set lacks."""
        if kind is not None and kind not in codec.types:
            raise UnknownNameError(f"type in {self.name}", kind, codec.types)


def covered(spans: SpanArray, n_tokens: int) -> NDArray[np.bool_]:
    """Say which tokens are in a span, bool [n_tokens]."""
    edges = np.zeros(n_tokens + 1, np.int64)
    edges[spans.start] += 1
    np.subtract.at(edges, spans.end, 1)
    return np.asarray(np.cumsum(edges[:-1]) > 0)


def pick(draws: Floats, n: int) -> NDArray[np.int16]:
    """Turn numbers in [0, 1) into whole ones in 0 … n - 1."""
    return np.floor(draws * n).astype(np.int16)
