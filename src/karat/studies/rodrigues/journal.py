"""Finished runs in a file, one line of JSON each, so that an interrupted study goes on.

A line is appended as soon as a run is over. Every line names what it belongs to – the study, its
data and its parameters –, and lines of anything else are passed over: several studies may share a
file. A line that was cut off by a kill is passed over as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from karat.errors import InputError
from karat.studies.rodrigues.methods import Reliability, Run

VERSION = 1
Key = tuple[int, str]
"""A run: number of the repeat, and label of the method."""


class Journal:
    """Runs that are over.

    Args:
        path: The file; None keeps nothing.
        names: What the runs of a method belong to, by its label.

    Raises:
        InputError: The file cannot be read or written.
    """

    def __init__(self, path: Path | None, names: Mapping[str, str]) -> None:
        self._path, self._lock = path, Lock()
        self._names = {label: f"{VERSION} {name}" for label, name in names.items()}
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
            repeat, label = key
            head = {"of": self._names[label], "repeat": repeat, "method": label}
            line = json.dumps(head | _plain(run))
            with self._path.open("a", encoding="utf-8") as out:
                out.write(("\n" if self._is_cut else "") + line + "\n")
            self._is_cut = False

    def _read(self, line: str) -> None:
        try:
            found = json.loads(line)
            if found["of"] == self._names.get(found["method"]):
                self.runs[int(found["repeat"]), found["method"]] = _run(found)
        except (ValueError, KeyError, TypeError, AttributeError):
            return


def _plain(run: Run) -> dict[str, Any]:
    return {
        "scores": {name: list(rates) for name, rates in run.scores.items()},
        "workers": [list(worker) for worker in run.workers],
        "seconds": run.seconds,
    }


def _run(found: Mapping[str, Any]) -> Run:
    scores = {name: (float(p), float(r), float(f1)) for name, (p, r, f1) in found["scores"].items()}
    workers = tuple(Reliability(*worker) for worker in found["workers"])
    return Run(scores, workers, float(found["seconds"]))
