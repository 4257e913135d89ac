"""Finished runs in a file, one line of JSON each, so that an interrupted study goes on.

Every line names what it belongs to – the data, the way, all parameters –, and lines of anything
else are passed over, as is a line that was cut off by a kill.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from karat.errors import InputError
from karat.studies.campaign_ner.play import Point

Key = tuple[int, str]
"""A run: its seed, and its label."""
Runs = Mapping[Key, tuple[Point, ...]]


class Journal:
    """Runs that are over.

    Args:
        path: The file; None keeps nothing.
        names: What the runs of a way belong to, by its label.

    Raises:
        InputError: The file cannot be read or written.
    """

    def __init__(self, path: Path | None, names: Mapping[str, str]) -> None:
        self._path, self._names = path, names
        self.runs: dict[Key, tuple[Point, ...]] = {}
        if path is None:
            return
        try:
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            path.open("a", encoding="utf-8").close()  # fails now rather than after an hour
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot keep finished runs in {path}: {error}") from None
        self._is_cut = bool(text) and not text.endswith("\n")
        for line in text.splitlines():
            self._read(line)

    def add(self, key: Key, points: Sequence[Point]) -> None:
        """Keep a run."""
        self.runs[key] = tuple(points)
        if self._path is None:
            return
        seed, label = key
        head = {"of": self._names[label], "seed": seed, "way": label}
        line = json.dumps(head | {"points": [asdict(point) for point in points]})
        with self._path.open("a", encoding="utf-8") as out:
            out.write(("\n" if self._is_cut else "") + line + "\n")
        self._is_cut = False

    def _read(self, line: str) -> None:
        try:
            found = json.loads(line)
            if found["of"] == self._names.get(found["way"]):
                points = tuple(Point(**point) for point in found["points"])
                self.runs[int(found["seed"]), found["way"]] = points
        except (ValueError, KeyError, TypeError, AttributeError):
            return
