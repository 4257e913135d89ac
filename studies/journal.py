"""Finished runs in a file, one line of JSON each, so that an interrupted study goes on.

A line is appended as soon as a run is over. Every line names what it belongs to – the study, its
data and its parameters –, and lines of anything else are passed over: several studies may share a
file. A line that was cut off by a kill is passed over as well.

With `so_far` a study makes its tables of the finished runs alone, also while another process goes
on with them.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Generic, TypeVar

from goldspan.errors import InputError

Run = TypeVar("Run")
Key = tuple[int, str]
"""A run: number of the repeat, and label of the method."""


def whole_repeats(kept: Collection[Key], keys: Sequence[Key]) -> tuple[int, str]:
    """Return how many repeats, from the first on, have all their runs, and a note that says so.

    Args:
        kept: The runs that are finished.
        keys: All runs of the study.

    Raises:
        InputError: Not even the first repeat has.

    >>> keys = [(seed, label) for seed in range(3) for label in "ab"]
    >>> whole_repeats({(0, "a"), (0, "b"), (1, "b"), (2, "a"), (2, "b")}, keys)[0]
    1
    """
    repeats = sorted({number for number, _ in keys})
    is_open = {key[0] for key in keys if key not in kept}
    n_whole = next((n for n, repeat in enumerate(repeats) if repeat in is_open), len(repeats))
    done = f"{sum(key in kept for key in keys)} of {len(keys)} runs are finished"
    if not n_whole:
        raise InputError(
            f"{done}, and of no repeat all: without --so-far the study goes on with them"
        )
    of = f"the first {n_whole} of {len(repeats)} repeats, which all rows have finished"
    return n_whole, f"SO FAR: {done}. The tables are of {of}."


class Journal(ABC, Generic[Run]):
    """Runs that are over; a study says how a run is written.

    Args:
        path: The file; None keeps nothing.
        names: What the runs of a method belong to, by its label.

    Raises:
        InputError: The file cannot be read or written.
    """

    number: ClassVar[str] = "seed"
    """What the number of a run is called in a line."""
    label: ClassVar[str]
    """What its label is called."""

    def __init__(self, path: Path | None, names: Mapping[str, str]) -> None:
        self._path, self._names, self._lock = path, names, Lock()
        self.runs: dict[Key, Run] = {}
        if path is None:
            return
        try:
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            path.open("a", encoding="utf-8").close()  # fails now rather than after hours
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot keep finished runs in {path}: {error}") from None
        self._is_cut = bool(text) and not text.endswith("\n")
        for line in text.splitlines():
            self._read(line)

    def add(self, key: Key, run: Run) -> None:
        """Keep a run; threads may call this."""
        with self._lock:
            self.runs[key] = run
            if self._path is None:
                return
            number, label = key
            head = {"of": self._names[label], self.number: number, self.label: label}
            line = json.dumps(head | self.plain(run))
            with self._path.open("a", encoding="utf-8") as out:
                out.write(("\n" if self._is_cut else "") + line + "\n")
            self._is_cut = False

    @abstractmethod
    def plain(self, run: Run) -> dict[str, Any]:
        """Return a run as values that JSON can hold."""

    @abstractmethod
    def made(self, found: Mapping[str, Any]) -> Run:
        """Make a run of what a line holds."""

    def _read(self, line: str) -> None:
        try:
            found = json.loads(line)
            if found["of"] == self._names.get(found[self.label]):
                self.runs[int(found[self.number]), found[self.label]] = self.made(found)
        except (ValueError, KeyError, TypeError, AttributeError):
            return
