"""All runs of the study: every line with every seed, in threads, each kept when it is over."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from goldspan import __version__
from goldspan.protocols import Runner
from goldspan.tagger import CRF
from studies.interrupting import at_interrupt
from studies.journal import whole_repeats
from studies.selection_ner.bench import STEPS, Bench
from studies.selection_ner.journal import Journal, Key, Runs
from studies.selection_ner.lines import Extent, Line
from studies.selection_ner.trial import run_line

VERSION = 2
Told = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class _Work:
    """What every run is handed."""

    bench: Bench
    lines: dict[str, Line]
    journal: Journal
    told: Callable[[int], None]
    stop: threading.Event = field(default_factory=threading.Event)

    def listen(self) -> None:
        """Hear of a stop of a run, and end the run if Ctrl-C came."""
        self.told(1)
        if self.stop.is_set():
            raise KeyboardInterrupt


def carry_out(
    bench: Bench,
    extent: Extent,
    runner: Runner,
    state: Path | None = None,
    told: Told | None = None,
) -> Runs:
    """Do all runs that are not in the journal yet.

    Args:
        bench: The pool and the test sets.
        extent: How much is done.
        runner: Where the runs are done.
        state: The file in which finished runs are kept, or None.
        told: Told how many stops of all runs are behind, of how many.

    Returns:
        The runs by seed and line.

    Raises:
        InputError: The file cannot be read or written.
    """
    lines = {line.label: line for line in extent.lines}
    journal, keys = _journal(bench, extent, state), _keys(extent)
    open_ = [key for key in keys if key not in journal.runs]
    n_stops = {key: len(lines[key[1]].limits) for key in keys}
    counter = _Counter(sum(n_stops.values()), told)
    counter(sum(n_stops.values()) - sum(n_stops[key] for key in open_))
    work = _Work(bench, lines, journal, counter)
    with at_interrupt(work.stop):
        runner.map(_one_run, open_, work)
    return {key: journal.runs[key] for key in keys}


def finished(bench: Bench, extent: Extent, state: Path | None) -> tuple[int, str]:
    """Return how many repeats all lines have finished, and a note that says so.

    Raises:
        InputError: None, or the file cannot be read.
    """
    return whole_repeats(_journal(bench, extent, state).runs, _keys(extent))


def _journal(bench: Bench, extent: Extent, state: Path | None) -> Journal:
    return Journal(state, {line.label: _name(bench, line) for line in extent.lines})


def _keys(extent: Extent) -> list[Key]:
    """List the runs, seed by seed, so that a study that is stopped has whole repeats."""
    return [(seed, line.label) for seed in range(extent.repeats) for line in extent.lines]


def _one_run(key: Key, work: _Work) -> None:
    if work.stop.is_set():
        raise KeyboardInterrupt
    seed, label = key
    work.journal.add(key, run_line(work.bench, work.lines[label], seed, work.listen))


def _name(bench: Bench, line: Line) -> str:
    """Name the data and all parameters: what a kept run belongs to."""
    parts = repr(
        [VERSION, __version__, line, sorted(CRF(max_iter=STEPS).get_params().items()), bench.digest]
    )
    return hashlib.blake2b(parts.encode(), digest_size=16).hexdigest()


class _Counter:
    """Counts the stops of all threads."""

    def __init__(self, total: int, told: Told | None) -> None:
        self._done, self._total, self._told, self._lock = 0, total, told, threading.Lock()

    def __call__(self, more: int) -> None:
        with self._lock:
            self._done += more
            if self._told:
                self._told(self._done, self._total)
