"""Finished trials of the studies that go on after a break; see `studies.journal`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from studies import journal

Found = dict[str, list[list[float]]]
"""Rows of numbers by line."""


class Journal(journal.Journal[Found]):
    """Trials by seed and case."""

    label = "case"

    def plain(self, run: Found) -> dict[str, Any]:
        """Return a trial as values that JSON can hold."""
        return {"found": run}

    def made(self, found: Mapping[str, Any]) -> Found:
        """Make a trial of what a line holds."""
        return {str(name): [list(map(float, row)) for row in rows]
                for name, rows in found["found"].items()}  # fmt: skip
