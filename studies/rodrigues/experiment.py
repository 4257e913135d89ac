"""What an experiment of Rodrigues et al. is: crowds drawn repeatedly, methods, and unseen items.

The runs – every method in every repeat – are independent of each other. A `Runner` spreads them
over threads; within a run there is one thread, so that the bits do not depend on it.
"""

from __future__ import annotations

import hashlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from goldspan import __version__
from goldspan.aggregation import get_aggregator
from goldspan.aggregation.crf import CrfGold
from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.protocols import Runner
from studies.interrupting import at_interrupt
from studies.rodrigues.journal import Journal, Key
from studies.rodrigues.methods import UPPER, Effort, Run, learn

Told = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Experiment(ABC):
    """An experiment; a subclass says how a crowd is drawn.

    Attributes:
        study: Name of the study.
        source: The items with their gold; the real crowd's with its answers.
        tests: Unseen items by name, in the same encoding.
        methods: Labels of the methods.
        repeats: How many crowds are drawn.
        effort: How long the methods may take.
    """

    study: str
    source: Crowd
    tests: Mapping[str, Crowd]
    methods: tuple[str, ...]
    repeats: int
    effort: Effort

    @abstractmethod
    def draw(self, repeat: int) -> Crowd:
        """Draw a crowd; the same repeat gives the same crowd."""

    def prepared(self, runner: Runner) -> Self:  # noqa: ARG002
        """Do once what all draws need."""
        return self

    def inputs(self) -> str:
        """Return what the draws depend on beside the source."""
        return ""

    @property
    def keys(self) -> list[Key]:
        """The runs; the upper bound has one, which counts in every repeat."""
        return [
            (repeat, label)
            for repeat in range(self.repeats)
            for label in self.methods
            if label != UPPER or repeat == 0
        ]

    def fingerprint(self, label: str) -> str:
        """Name the data and all parameters, whatever the repeats: what a kept run belongs to."""
        name, params = self.effort.params(label)
        made = CrfGold(**params) if name == UPPER else get_aggregator(name, **params)
        tagger = sorted(self.effort.tagger.items())
        named = [__version__, self.study, self.inputs(), tagger, sorted(made.get_params().items())]
        return hashlib.blake2b(repr([*named, self._data]).encode(), digest_size=16).hexdigest()

    @cached_property
    def _data(self) -> str:
        """Name the data."""
        digest = hashlib.blake2b(digest_size=16)
        for crowd in (self.source, *self.tests.values()):
            for words in (crowd.item_ids, crowd.tokens.flatten()):
                digest.update("\n".join(words.to_pylist()).encode())
            answers = crowd.latest
            own = (answers.item, answers.worker, answers.codes)
            for part in (crowd.offsets, crowd.gold_tagged.codes, *own):
                digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class _Bench:
    """What every run is handed."""

    experiment: Experiment
    journal: Journal
    told: Callable[[], None]
    stop: threading.Event = field(default_factory=threading.Event)
    _drawn: dict[int, Crowd] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def crowd(self, repeat: int) -> Crowd:
        """Return a repeat's crowd, which all methods learn from; the last two are kept."""
        with self._lock:
            if repeat not in self._drawn:
                for old in sorted(self._drawn)[:-1]:
                    del self._drawn[old]
                self._drawn[repeat] = self.experiment.draw(repeat)
            return self._drawn[repeat]

    def listen(self, *_: Any) -> None:
        """End a run that is told of its steps, if Ctrl-C came."""
        if self.stop.is_set():
            raise KeyboardInterrupt


def carry_out(
    experiment: Experiment, runner: Runner, state: Path | None = None, told: Told | None = None
) -> dict[Key, Run]:
    """Do all runs that are not in the journal yet.

    Args:
        experiment: Which.
        runner: Where the runs are done.
        state: The file in which finished runs are kept, or None.
        told: Told how many runs of how many are over.

    Returns:
        The runs; the upper bound's stands in every repeat.
    """
    journal, keys = _journal(experiment, state), experiment.keys
    open_ = [key for key in keys if key not in journal.runs]
    if open_:
        counter = _Counter(len(keys) - len(open_), len(keys), told)
        bench = _Bench(experiment.prepared(runner), journal, counter)
        with at_interrupt(bench.stop):
            runner.map(_one_run, open_, bench)
    return {
        (repeat, label): journal.runs[0 if label == UPPER else repeat, label]
        for repeat in range(experiment.repeats)
        for label in experiment.methods
    }


def finished(experiment: Experiment, state: Path | None) -> dict[Key, Run]:
    """Return the runs that are in the journal; methods may have different numbers of repeats.

    The upper bound's stands in every repeat of which another method has finished.

    Raises:
        InputError: There is none, or the file cannot be read.
    """
    kept = _journal(experiment, state).runs
    over = [key for key in experiment.keys if key in kept]
    if not over:
        raise InputError(
            f"none of {len(experiment.keys)} runs is finished: without --so-far the study does them"
        )
    repeats = {repeat for repeat, label in over if label != UPPER} or {0}
    found = {
        (repeat, label): kept.get((0 if label == UPPER else repeat, label))
        for repeat in sorted(repeats)
        for label in experiment.methods
    }
    return {key: run for key, run in found.items() if run is not None}


def _journal(experiment: Experiment, state: Path | None) -> Journal:
    return Journal(state, {label: experiment.fingerprint(label) for label in experiment.methods})


def _one_run(key: Key, bench: _Bench) -> None:
    bench.listen()
    repeat, label = key
    own = bench.experiment
    run = learn(bench.crowd(repeat), label, own.tests, own.effort, bench.listen)
    bench.journal.add(key, run)
    bench.told()


class _Counter:
    """Counts the runs of all threads."""

    def __init__(self, done: int, total: int, told: Told | None) -> None:
        self._done, self._total, self._told, self._lock = done, total, told, threading.Lock()
        if told:
            told(done, total)

    def __call__(self) -> None:
        with self._lock:
            self._done += 1
            if self._told:
                self._told(self._done, self._total)
