"""Simulated annotators: flips, worker models, spammers, copiers, drift, choices, span habits."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation.workermodels import Prior, get_worker_model
from goldspan.errors import InputError, UnknownNameError
from goldspan.params import Number, OneOf, Whole, require
from goldspan.simulation.base import (
    Assignment,
    Codes,
    Draws,
    Floats,
    Habit,
    SimulatedWorker,
    SimulationContext,
    draw_labels,
)
from goldspan.spans import Codec, Tagged, find_spans
from goldspan.spans.corpus import SpanArray, write_codes

# --------------------------------------------------------------------------------------------------
# `flip(p)`: with probability p a token gets a different label, each of the others alike.


Probability = Annotated[float, Number(0, 1)]
LABELS = ("all", "used")


@dataclass(frozen=True)
class Flip(Habit):
    """Flips labels of single tokens, whatever stands around them.

    Attributes:
        p: Probability of a different label.
        labels: "all" labels of the tag set, or those that are "used" in the truth.
    """

    p: Probability
    labels: Annotated[str, OneOf(LABELS)] = "all"
    name = "flip"

    def prepare(self, context: SimulationContext) -> None:
        """Reject a truth that has only one label."""
        super().prepare(context)
        if self.p > 0 and len(context.codes) and len(self._among(context)) < 2:
            raise InputError("flip: there is only one label, and no different one to flip to")

    def change(self, codes: Codes, work: Assignment) -> Codes:
        """Flip labels; one that is not among those to flip to may become any of them."""
        among = self._among(work.context)
        place = np.searchsorted(among, codes)
        known = among[np.minimum(place, len(among) - 1)] == codes
        n_others = len(among) - known
        step = np.floor(work.draws.per_token("which") * n_others).astype(np.int64)
        other = among[(place + 1 + step) % len(among)]
        return np.where(work.draws.per_token("whether") < self.p, other, codes)

    def _among(self, context: SimulationContext) -> Codes:
        n_labels = len(context.codec.tags)
        every = np.arange(n_labels) if self.labels == "all" else np.flatnonzero(context.counts)
        return every.astype(np.int16)


# --------------------------------------------------------------------------------------------------
# The worker models acc, mace, cv, cm and seq run forwards (docs/math.md, sections 3 and 11).


@dataclass(frozen=True)
class ModelWorker(SimulatedWorker):
    """Answers by a worker model.

    Attributes:
        diagonal: Pseudo-count of the right label; at least `off`.
        off: Pseudo-count of every other label.
        table: float64 [n_previous, J, J] by previous label, truth, label given, in place of a
            drawn one; not in text. Without memory n_previous is 1; with memory it is J, or J + 1
            in PLAIN, where the last stands for the item's start.
    """

    diagonal: Annotated[float, Number(0)] = 20.0
    off: Annotated[float, Number(0.1)] = 1.25
    table: Floats | None = field(default=None, kw_only=True, compare=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(f"{self.name}: diagonal", self.diagonal, Number(self.off))

    def prepare(self, context: SimulationContext) -> None:
        """Reject a table of another shape, or one that is no distribution."""
        if self.table is None:
            return
        table, shape = np.asarray(self.table), self._shape(context.codec)
        if table.shape != shape:
            raise InputError(f"{self.name}: the table must have shape {shape}, not {table.shape}")
        if (table < 0).any() or not np.allclose(table.sum(axis=2), 1):
            raise InputError(f"{self.name}: the table's last axis must hold probabilities")

    def answer(self, work: Assignment) -> Codes:
        """Draw a label for every token."""
        codec = work.context.codec
        table = self.confusion(codec, work.draws)
        cumulative = np.ascontiguousarray(np.cumsum(table, axis=2), np.float64)
        codes = np.empty(len(work.truth), np.int16)
        begin = _begin(codec) if len(table) > 1 else 0
        uniform = work.draws.per_token("label")
        draw_labels(work.offsets, work.truth, uniform, cumulative, begin, codes)
        return codes

    def confusion(self, codec: Codec, draws: Draws) -> Floats:
        """Return the worker's table, float64 [n_previous, J, J] by previous, truth, given."""
        if self.table is not None:
            return np.asarray(self.table, np.float64)
        n_previous, n_labels, _ = self._shape(codec)
        model, rng = get_worker_model(self.name), draws.generator("table")
        return model.draw(self._prior(codec), n_previous, n_labels, rng)

    def _prior(self, codec: Codec) -> Prior:
        del codec
        return Prior(self.off, self.diagonal - self.off)

    def __str__(self) -> str:
        """Write it as it is read, unless it has a table."""
        return super().__str__() if self.table is None else f"{self.name} with a given table"

    def _shape(self, codec: Codec) -> tuple[int, int, int]:
        n_labels = len(codec.tags)
        memory = get_worker_model(self.name).has_memory
        n_previous = max(n_labels, _begin(codec) + 1) if memory else 1
        return n_previous, n_labels, n_labels


def _begin(codec: Codec) -> int:
    """Return the state before an item: `O`, or one of its own where there is no `O`."""
    return codec.outside if codec.outside >= 0 else len(codec.tags)


class Acc(ModelWorker):
    """One probability of being right."""

    name = "acc"


class Mace(ModelWorker):
    """Knows, or gives a label by habit."""

    name = "mace"


class Cv(ModelWorker):
    """A probability of being right for every truth."""

    name = "cv"


class Cm(ModelWorker):
    """A confusion matrix."""

    name = "cm"


@dataclass(frozen=True)
class Seq(ModelWorker):
    """A confusion matrix for every label given before.

    Attributes:
        forbidden: Pseudo-count of labels that the encoding forbids after the previous one.
    """

    forbidden: Annotated[float, Number(0.001)] = 0.1
    name = "seq"

    def _prior(self, codec: Codec) -> Prior:
        mask = None if codec.rules.is_plain else codec.mask
        return Prior(self.off, self.diagonal - self.off, mask, self.forbidden)


# --------------------------------------------------------------------------------------------------
# `spammer(kind)`: a worker who never looks at the item.


KINDS = ("constant", "frequent", "random")


@dataclass(frozen=True)
class Spammer(SimulatedWorker):
    """Answers without looking.

    Attributes:
        kind: "constant" (one label everywhere), "frequent" (everywhere the label that is the
            truth most often: in tags `O`) or "random" (any label, each alike, token by token).
        label: Of a constant spammer; drawn for the worker by default.
    """

    kind: Annotated[str, OneOf(KINDS)] = "random"
    label: str | None = None
    name = "spammer"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.label is not None and self.kind != "constant":
            raise InputError(f"spammer: only a constant one has a label, not a {self.kind} one")

    def prepare(self, context: SimulationContext) -> None:
        """Reject a label that is not in the tag set."""
        if self.label is not None and self.label not in context.codec.tags:
            raise UnknownNameError("label of a spammer", self.label, context.codec.tags)

    def answer(self, work: Assignment) -> Codes:
        """Return labels."""
        n_labels, n_tokens = len(work.context.codec.tags), len(work.truth)
        if self.kind == "random":
            return np.floor(work.draws.per_token("label") * n_labels).astype(np.int16)
        return np.full(n_tokens, self._label(work), np.int16)

    def _label(self, work: Assignment) -> int:
        context = work.context
        if self.kind == "frequent":
            return int(context.counts.argmax())
        if self.label is not None:
            return context.codec.tags.index(self.label)
        return int(work.draws.generator("label").integers(len(context.codec.tags)))


# --------------------------------------------------------------------------------------------------
# `copier(ID)`: a worker who copies another's answers, mistakes and all.


@dataclass(frozen=True)
class Copier(Habit):
    """Copies some items from another worker and answers the others as the base does.

    Attributes:
        source: Id of the other worker.
        p: Probability of copying an item.
    """

    source: str
    p: Probability = 1.0
    name = "copier"

    def prepare(self, context: SimulationContext) -> None:
        """Reject a source that is not there, and workers who copy in a circle."""
        super().prepare(context)
        if self.source not in context.workers:
            raise UnknownNameError("worker to copy from", self.source, context.workers)
        if self.source in _copied_by(context.workers[self.source], context.workers):
            raise InputError(f"copier: worker {self.source!r} copies in a circle: break it")

    def change(self, codes: Codes, work: Assignment) -> Codes:
        """Put the other's answers in the place of some items."""
        context = work.context
        other = context.workers[self.source].answer(context.assign(self.source, work.items))
        copies = np.repeat(work.draws.per_item("whether") < self.p, work.lengths)
        return np.where(copies, other, codes)


def _copied_by(worker: SimulatedWorker, workers: Mapping[str, SimulatedWorker]) -> set[str]:
    """Return the ids of all whom a worker copies from, also through others."""
    found: set[str] = set()
    waiting = [worker]
    while waiting:
        one = waiting.pop()
        waiting += one.parts()
        if isinstance(one, Copier) and one.source not in found and one.source in workers:
            found.add(one.source)
            waiting.append(workers[one.source])
    return found


# --------------------------------------------------------------------------------------------------
# What habits about spans share: reading the spans of an answer, changing them, writing them.


@dataclass(frozen=True)
class SpanHabit(Habit):
    """A habit that shows at every span with probability p.

    Attributes:
        p: That probability, independent from span to span.
    """

    p: Probability

    def prepare(self, context: SimulationContext) -> None:
        """Reject labels that are no spans, and types that are not there."""
        super().prepare(context)
        if context.codec.rules.is_plain:
            raise InputError(f"{self.name}: PLAIN labels hold no spans: use flip, cm or a spammer")
        for kind in (getattr(self, "type", None), getattr(self, "to", None)):
            if kind is not None and kind not in context.codec.types:
                raise UnknownNameError(f"type in {self.name}", kind, context.codec.types)

    def change(self, codes: Codes, work: Assignment) -> Codes:
        """Change the spans."""
        spans = find_spans(Tagged(codes, work.offsets), work.context.codec)
        return write_codes(self._alter(spans, work), work.offsets, work.context.codec)

    @abstractmethod
    def _alter(self, spans: SpanArray, work: Assignment) -> SpanArray:
        """Change spans, which are sorted by place; their numbers are drawn at their start."""

    def happens(self, spans: SpanArray, work: Assignment) -> NDArray[np.bool_]:
        """Say at which spans the habit shows, bool [n_spans]."""
        return np.asarray(work.draws.per_token("whether")[spans.start] < self.p)


def covered(spans: SpanArray, n_tokens: int) -> NDArray[np.bool_]:
    """Return which tokens are in a span, bool [n_tokens]."""
    edges = np.zeros(n_tokens + 1, np.int64)
    edges[spans.start] += 1
    np.subtract.at(edges, spans.end, 1)
    return np.asarray(np.cumsum(edges[:-1]) > 0)


def pick(draws: Floats, n: int) -> NDArray[np.int16]:
    """Turn numbers in [0, 1) into whole ones in 0 … n - 1."""
    return np.floor(draws * n).astype(np.int16)


def _together(spans: SpanArray, more: SpanArray) -> SpanArray:
    """Return all spans of two tables, sorted by place."""
    order = np.argsort(np.concatenate([spans.start, more.start]), kind="stable")
    pairs = ((getattr(spans, one.name), getattr(more, one.name)) for one in fields(SpanArray))
    return SpanArray(*(np.concatenate(pair)[order] for pair in pairs))


# --------------------------------------------------------------------------------------------------
# Habits about which spans there are, and of which type: `misses`, `invents`, `wrong_type`.


@dataclass(frozen=True)
class Misses(SpanHabit):
    """Overlooks spans.

    Attributes:
        type: Only of this type; by default of all.
    """

    type: str | None = None
    name = "misses"

    def _alter(self, spans: SpanArray, work: Assignment) -> SpanArray:
        hit = self.happens(spans, work) & _of_type(spans, self.type, work.context.codec)
        return spans.take(~hit)


@dataclass(frozen=True)
class Invents(SpanHabit):
    """Marks tokens that are in no span, each with probability p, as spans of one token.

    Attributes:
        type: Of the new spans; by default any, each alike.
    """

    type: str | None = None
    name = "invents"

    def prepare(self, context: SimulationContext) -> None:
        """Reject a tag set without types."""
        super().prepare(context)
        if not context.codec.types:
            raise InputError("invents: the tag set has no type of span")

    def _alter(self, spans: SpanArray, work: Assignment) -> SpanArray:
        free = ~covered(spans, len(work.truth))
        start = np.flatnonzero(free & (work.draws.per_token("whether") < self.p))
        types = work.context.codec.types
        kind = pick(work.draws.per_token("type")[start], len(types))
        if self.type is not None:
            kind[:] = types.index(self.type)
        item = (np.searchsorted(work.offsets, start, side="right") - 1).astype(np.int32)
        return _together(spans, SpanArray(start, start + 1, kind, item, np.zeros_like(item)))


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

    def prepare(self, context: SimulationContext) -> None:
        """Reject a tag set with a single type."""
        super().prepare(context)
        if self.p > 0 and len(context.codec.types) < 2:
            raise InputError("wrong_type: there is only one type of span, and no wrong one")

    def _alter(self, spans: SpanArray, work: Assignment) -> SpanArray:
        types = work.context.codec.types
        hit = self.happens(spans, work) & _of_type(spans, self.type, work.context.codec)
        step = pick(work.draws.per_token("which")[spans.start], len(types) - 1)
        other = (spans.type + 1 + step) % max(1, len(types))
        if self.to is not None:
            other[:] = types.index(self.to)
        return replace(spans, type=np.where(hit, other, spans.type).astype(np.int16))


def _of_type(spans: SpanArray, kind: str | None, codec: Codec) -> NDArray[np.bool_]:
    if kind is None:
        return np.ones(len(spans), np.bool_)
    return np.asarray(spans.type == codec.types.index(kind))


# --------------------------------------------------------------------------------------------------
# `drift(first, last)`: a worker who changes while working.


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
    at: Probability | None = None
    name = "drift"

    def answer(self, work: Assignment) -> Codes:
        """Let the one or the other answer every item."""
        moments = work.moments
        change = work.draws.per_item("change") if self.at is None else self.at
        late = np.repeat(moments >= change, work.lengths)
        first = self.first.answer(work.within("first"))
        return np.where(late, self.last.answer(work.within("last")), first)


# --------------------------------------------------------------------------------------------------
# `sister(family, model, rho)`: one of several models, or prompts of one model, that err alike.


@dataclass(frozen=True)
class Sister(SimulatedWorker):
    """Answers as the other sisters of the family do on some items, and on its own on the others.

    With probability √rho, for every item, the answer is that of the family: the same mistakes for
    all sisters with the same model. So the mistakes of two of them have the correlation rho, where
    the model errs everywhere alike.

    Attributes:
        family: Name of the family.
        model: How a sister answers.
        rho: Correlation of the mistakes of two sisters: 0 independent, 1 the same answers.
    """

    family: str
    model: SimulatedWorker
    rho: Probability = 0.7
    name = "sister"

    def answer(self, work: Assignment) -> Codes:
        """Let the family or the sister answer every item."""
        shared = replace(work, draws=replace(work.draws, name=f"\0family\0{self.family}"))
        alike = np.repeat(work.draws.per_item("alike") < np.sqrt(self.rho), work.lengths)
        own = self.model.answer(work.within("own"))
        return np.where(alike, self.model.answer(shared), own)


# --------------------------------------------------------------------------------------------------
# Habits about where spans begin and end: `early`, `late`, `merges`, `splits`.


@dataclass(frozen=True)
class Early(SpanHabit):
    """Starts spans early, as far as the tokens before are in the item and in no span.

    Attributes:
        tokens: How many tokens early.
    """

    tokens: Annotated[int, Whole(1)] = 1
    name = "early"

    def _alter(self, spans: SpanArray, work: Assignment) -> SpanArray:
        before = work.offsets[spans.item]  # where the span before ends, or the item begins
        before[1:] = np.maximum(before[1:], spans.end[:-1])
        shift = np.minimum(spans.start - before, self.tokens)
        return replace(spans, start=spans.start - self.happens(spans, work) * shift)


@dataclass(frozen=True)
class Late(SpanHabit):
    """Ends spans late, as far as the next tokens are in the item and in no span.

    Attributes:
        tokens: How many tokens late.
    """

    tokens: Annotated[int, Whole(1)] = 1
    name = "late"

    def _alter(self, spans: SpanArray, work: Assignment) -> SpanArray:
        after = work.offsets[spans.item + 1]  # where the next span starts, or the item ends
        after[:-1] = np.minimum(after[:-1], spans.start[1:])
        shift = np.minimum(after - spans.end, self.tokens)
        return replace(spans, end=spans.end + self.happens(spans, work) * shift)


@dataclass(frozen=True)
class Merges(SpanHabit):
    """Joins a span to the one before it; the first one's type stays.

    Attributes:
        gap: Most tokens between the two, at which they are still neighbours.
    """

    gap: Annotated[int, Whole(0)] = 1
    name = "merges"

    def _alter(self, spans: SpanArray, work: Assignment) -> SpanArray:
        # Join spans; p is per pair of neighbours, and several may become one.
        if not len(spans):
            return spans
        near = np.zeros(len(spans), np.bool_)
        near[1:] = spans.start[1:] - spans.end[:-1] <= self.gap
        near[1:] &= spans.item[1:] == spans.item[:-1]
        first = np.flatnonzero(~(near & self.happens(spans, work)))
        last = np.append(first[1:], len(spans)) - 1
        return replace(spans.take(first), end=spans.end[last])


@dataclass(frozen=True)
class Splits(SpanHabit):
    """Cuts spans of several tokens in two; the place is drawn, each alike."""

    name = "splits"

    def _alter(self, spans: SpanArray, work: Assignment) -> SpanArray:
        # Cut spans; both parts have the span's type.
        inner = spans.end - spans.start - 1
        cut = np.flatnonzero(self.happens(spans, work) & (inner > 0))
        first = spans.start[cut]
        step = np.floor(work.draws.per_token("where")[first] * inner[cut]).astype(np.int64)
        place = first + 1 + step
        second = replace(spans.take(cut), start=place)
        end = spans.end.copy()
        end[cut] = place
        return _together(replace(spans, end=end), second)
