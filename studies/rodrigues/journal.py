"""The runs of these studies that are over; see `studies.journal`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from studies import journal
from studies.rodrigues.methods import Reliability, Run

VERSION = 1
Key = journal.Key


class Journal(journal.Journal[Run]):
    """Runs: scores and workers, by repeat and method."""

    number, label = "repeat", "method"

    def __init__(self, path: Path | None, names: Mapping[str, str]) -> None:
        super().__init__(path, {label: f"{VERSION} {name}" for label, name in names.items()})

    def plain(self, run: Run) -> dict[str, Any]:
        """Return a run as values that JSON can hold."""
        return {
            "scores": {name: list(rates) for name, rates in run.scores.items()},
            "workers": [list(worker) for worker in run.workers],
            "seconds": run.seconds,
        }

    def made(self, found: Mapping[str, Any]) -> Run:
        """Make a run of what a line holds."""
        scores = {
            name: (float(p), float(r), float(f1)) for name, (p, r, f1) in found["scores"].items()
        }
        workers = tuple(Reliability(*worker) for worker in found["workers"])
        return Run(scores, workers, float(found["seconds"]))
