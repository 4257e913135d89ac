"""The runs of this study that are over; see `studies.journal`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from studies import journal
from studies.selection_ner.trial import Stop

Key = journal.Key
Runs = Mapping[Key, tuple[Stop, ...]]


class Journal(journal.Journal[tuple[Stop, ...]]):
    """Runs: the stops of a line, by seed and line."""

    label = "line"

    def plain(self, run: tuple[Stop, ...]) -> dict[str, Any]:
        """Return the stops as values that JSON can hold."""
        return {"stops": [asdict(stop) for stop in run]}

    def made(self, found: Mapping[str, Any]) -> tuple[Stop, ...]:
        """Make the stops of what a line holds."""
        return tuple(Stop(**stop) for stop in found["stops"])
