"""The runs of this study that are over; see `studies.journal`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from studies import journal
from studies.campaign_ner.play import Point

Key = journal.Key
Runs = Mapping[Key, tuple[Point, ...]]


class Journal(journal.Journal[tuple[Point, ...]]):
    """Runs: the points of a way, by seed and way."""

    label = "way"

    def plain(self, run: tuple[Point, ...]) -> dict[str, Any]:
        """Return the points as values that JSON can hold."""
        return {"points": [asdict(point) for point in run]}

    def made(self, found: Mapping[str, Any]) -> tuple[Point, ...]:
        """Make the points of what a line holds."""
        return tuple(Point(**point) for point in found["points"])
