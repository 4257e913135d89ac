"""Annotators whose answers are known: simulated workers, and those of a recorded crowd."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from goldspan.annotators.base import (
    AnnotationTask,
    Annotator,
    ItemAnswer,
    WorkerEntry,
    answer_of_tags,
    priced,
)
from goldspan.crowd import Crowd, read_crowd
from goldspan.errors import InputError
from goldspan.params import Number, Seed
from goldspan.protocols import PoolItem
from goldspan.simulation import simulate_crowd

Tags = Mapping[str, Sequence[str | None]]
"""An annotator's tags by item."""


class _Known(Annotator):
    """An annotator whose answers are known by item."""

    def __init__(self, entry: WorkerEntry, task: AnnotationTask) -> None:
        super().__init__(entry, task)
        self._tags = self._read()

    def _read(self) -> Tags:
        raise NotImplementedError

    def knows(self, item: PoolItem) -> bool:
        """Whether there is an answer to the item."""
        return item.id in self._tags

    def label(self, items: Sequence[PoolItem]) -> Iterator[ItemAnswer]:
        """Yield the answers."""
        for item in items:
            yield priced(self, item, self._answer(item))

    def _answer(self, item: PoolItem) -> ItemAnswer:
        tags = self._tags.get(item.id)
        if tags is None:
            return ItemAnswer(item.id, missing="there is no answer to this item")
        if len(tags) != len(item.tokens):
            raise InputError(
                f"worker {self.id}: item {item.id} has {len(item.tokens)} tokens, and {len(tags)} "
                "where its answers are known"
            )
        return answer_of_tags(item, tags, self.task.codec)

    def _crowd(self, file: str) -> Crowd:
        """Read a file of labels of the task."""
        path, codec = self.task.folder / file, self.task.codec
        changed = path.stat().st_mtime_ns if path.is_file() else 0
        crowd = _read_once(path, None if self.task.is_single else codec.encoding, changed)
        more = {*crowd.tagset.tags} - {*codec.tags}
        if more:
            raise InputError(
                f"worker {self.id}: {file} has labels that the task has not: "
                f"{', '.join(sorted(more))}"
            )
        return crowd


@lru_cache(maxsize=1)
def _read_once(path: Path, encoding: str | None, changed: int) -> Crowd:
    """Read a file that the entries of several workers name; again if it has changed."""
    del changed
    return read_crowd(path, encoding=encoding)


@dataclass(frozen=True)
class SimulatedOptions:
    """What the kind "simulated" takes."""

    worker: str  # How it answers, in text: "flip(0.1)"
    truth: str  # File of the gold that it knows
    # That an answer takes where no people answer: with it all work side by side, the others as
    # fast as `crowd.seconds` says; 0 for all: they take turns
    seconds: Annotated[float, Number(0)] = 0.0
    seed: Seed = 0  # Of the random numbers


class Simulated(_Known):
    """A simulated worker."""

    Options = SimulatedOptions

    def _read(self) -> Tags:
        made = self._crowd(self.options.truth)
        crowd = simulate_crowd(made, {self.id: self.options.worker}, seed=self.options.seed or 0)
        return _tags_of(crowd, self.id)


@dataclass(frozen=True)
class ReplayOptions:
    """What the kind "replay" takes."""

    answers: str  # File of the recorded crowd
    worker: str | None = None  # Who of it answers; by default who has the id of the entry
    seconds: Annotated[float, Number(0)] = 0.0  # As of a simulated one


class Replayed(_Known):
    """A worker of a recorded crowd, who answers as then."""

    Options = ReplayOptions

    def _read(self) -> Tags:
        crowd = self._crowd(self.options.answers)
        try:
            return _tags_of(crowd, self.options.worker or self.id)
        except InputError as error:
            raise InputError(f"worker {self.id}: {self.options.answers}: {error}") from None


def labels_by_item(crowd: Crowd) -> dict[str, dict[str, list[str | None]]]:
    """Return the labels by item and worker; None where a token was skipped."""
    answers, tags = crowd.latest, [*crowd.tagset.tags, None]
    names, people = crowd.item_ids.to_pylist(), crowd.worker_ids.to_pylist()
    codes, offset = answers.codes.tolist(), answers.offset.tolist()
    found: dict[str, dict[str, list[str | None]]] = {}
    pairs = zip(answers.item.tolist(), answers.worker.tolist(), strict=True)
    for n, (item, worker) in enumerate(pairs):
        labels = [tags[code] for code in codes[offset[n] : offset[n + 1]]]
        found.setdefault(names[item], {})[people[worker]] = labels
    return found


def _tags_of(crowd: Crowd, worker: str) -> Tags:
    """Return a worker's latest tags by item, None where a token was skipped."""
    crowd.worker_index(worker)  # rejects who is not there
    return {item: by[worker] for item, by in labels_by_item(crowd).items() if worker in by}
