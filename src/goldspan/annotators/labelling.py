"""Annotators label the items of a crowd: their answers become answers of the crowd."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from goldspan.annotators.base import Annotator, Estimate, ItemAnswer, Usage
from goldspan.crowd import Answers, Crowd
from goldspan.crowd.labels import recode
from goldspan.crowd.model import ANSWER_COLUMNS
from goldspan.errors import InputError
from goldspan.protocols import PoolItem
from goldspan.spans import Codec


def items_of(crowd: Crowd) -> list[PoolItem]:
    """Return the items of a crowd as annotators take them."""
    texts = [None] * crowd.n_items if crowd.texts is None else crowd.texts.to_pylist()
    groups = [None] * crowd.n_items if crowd.groups is None else crowd.groups.to_pylist()
    rows = [{}] * crowd.n_items if crowd.attributes is None else crowd.attributes.to_pylist()
    names, bounds = crowd.item_ids.to_pylist(), crowd.offsets.tolist()
    found = []
    for n, tokens in enumerate(crowd.tokens_list):
        starts = None
        if crowd.token_start is not None and texts[n] is not None:
            starts = tuple(crowd.token_start[bounds[n] : bounds[n + 1]].tolist())
        facts = {key: value for key, value in rows[n].items() if value is not None}
        item = PoolItem(names[n], tuple(tokens), 0, groups[n], texts[n], starts, facts)
        found.append(item)
    return found


@dataclass(frozen=True)
class LabelledBy:
    """What an annotator answered."""

    id: str  # Its name among the workers
    kind: str
    family: str  # Its family; "" for none
    answers: Sequence[ItemAnswer] = ()  # One per item that it was asked about
    estimate: Estimate = field(default_factory=Estimate)  # What was estimated before
    facts: dict[str, Any] = field(default_factory=dict)  # What belongs into the log

    @property
    def missing(self) -> list[ItemAnswer]:
        """Items without an answer."""
        return [answer for answer in self.answers if answer.missing]

    @property
    def usage(self) -> Usage:
        """What a model used for all answers, also those that were there before."""
        return sum((answer.usage for answer in self.answers), Usage())

    @property
    def cost(self) -> int:
        """What all answers cost, also those that were there before, in millionths."""
        return sum(answer.cost for answer in self.answers)

    @property
    def stored(self) -> list[ItemAnswer]:
        """Answers of replies that were there before, and not only those to the same text."""
        return [answer for answer in self.answers if answer.repeated and answer.usage.calls]

    @property
    def unplaced(self) -> list[tuple[str, str]]:
        """The ids of items and what could not be placed in them."""
        return [(answer.item, words) for answer in self.answers for words in answer.unplaced]


def label_with(
    annotator: Annotator,
    items: Sequence[PoolItem],
    progress: Callable[[int, int], None] = lambda _, __: None,  # Hears how many of them are done
) -> LabelledBy:
    """Let an annotator label items."""
    asked = items if annotator.entry.limit is None else items[: annotator.entry.limit]
    estimate, answers = annotator.estimate(asked), []
    for answer in annotator.label(asked):
        answers.append(answer)
        progress(len(answers), len(asked))
    return LabelledBy(
        annotator.id, annotator.entry.kind, annotator.family, answers, estimate, annotator.facts()
    )


def with_answers(crowd: Crowd, codec: Codec, given: Sequence[LabelledBy]) -> Crowd:
    """Return a crowd with the answers of more workers; missing ones are not there."""
    crowd = recode(crowd, codec)
    place = {name: n for n, name in enumerate(crowd.item_ids.to_pylist())}
    names = crowd.worker_ids.to_pylist()
    lengths = np.diff(crowd.offsets)
    rows: list[tuple[int, int, list[str | None], int]] = []
    for n, one in enumerate(given):
        if one.id in names or one.id in [other.id for other in given[:n]]:
            raise InputError(f"there is a worker {one.id!r} already: give this one another id")
        for answer in one.answers:
            item = place[answer.item]
            tags = answer.labels(codec, int(lengths[item]))
            if tags is not None:
                rows.append((item, len(names) + n, tags, answer.cost))
    new = answers_of_rows(rows, codec, has_cost=any(row[3] for row in rows))
    facts = {
        one.id: {"kind": one.kind} | ({"family": one.family} if one.family else {}) for one in given
    }
    return replace(
        crowd,
        worker_ids=pa.array([*names, *(one.id for one in given)], pa.string()),
        answers=_joined(crowd.answers, new),
        worker_facts={**crowd.worker_facts, **facts},
    )


def answers_of_rows(
    rows: Sequence[tuple[int, int, Sequence[str | None], int]], codec: Codec, *, has_cost: bool
) -> Answers:
    """Return answers as columns: item, worker, tags, cost."""
    codes = [codec.index[tag] for row in rows for tag in row[2]]
    offset = np.concatenate([[0], np.cumsum([len(row[2]) for row in rows])]).astype(np.int64)
    return Answers(
        np.array([row[0] for row in rows], np.int32),
        np.array([row[1] for row in rows], np.int32),
        offset,
        np.array(codes, np.int16),
        np.zeros(len(rows), np.int16),
        cost=np.array([row[3] for row in rows], np.int64) if has_cost else None,
    )


def _joined(one: Answers, other: Answers) -> Answers:
    """Return the answers of both, sorted by item; what is not known of some is -1."""
    if not len(one):
        joined = other
    else:
        columns: dict[str, Any] = {}
        for name in ANSWER_COLUMNS:
            parts = [(getattr(part, name), len(part)) for part in (one, other)]
            if any(column is not None for column, _ in parts):
                full = [np.full(n, -1, np.int64) if c is None else c for c, n in parts]
                columns[name] = np.concatenate(full)
        joined = Answers(
            np.concatenate([one.item, other.item]),
            np.concatenate([one.worker, other.worker]),
            np.concatenate([one.offset, one.offset[-1] + other.offset[1:]]),
            np.concatenate([one.codes, other.codes]),
            np.concatenate([one.attempt, other.attempt]),
            **columns,
        )
    return joined.take(np.argsort(joined.item, kind="stable"))


def detail_rows(given: Sequence[LabelledBy]) -> Iterator[dict[str, Any]]:
    """Yield all that is known of every answer, as JSON holds it: soft answers, reasons, cost."""
    return chain.from_iterable((_detail(one, a) for a in one.answers) for one in given)


def _detail(one: LabelledBy, answer: ItemAnswer) -> dict[str, Any]:
    row: dict[str, Any] = {"item": answer.item, "worker": one.id}
    if answer.missing:
        row["missing"] = answer.missing
    elif answer.classes is not None:
        row["classes"] = dict(answer.classes)
    else:
        row["spans"] = [span._asdict() for span in answer.spans or ()]
    if answer.unplaced:
        row["unplaced"] = list(answer.unplaced)
    if answer.unsure:
        row["unsure"] = list(answer.unsure)
    if answer.usage.calls:
        row["usage"] = vars(answer.usage)
    return row | {"cost": answer.cost}
