"""Finished runs in a file, one line of JSON each, so that an interrupted study goes on.

Every line names what it belongs to – the data, the rule, its budget –, and lines of anything else
are passed over, as is a line that was cut off by a kill.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from threading import Lock

from karat.errors import InputError
from karat.studies.selection_ner.trial import Stop

Key = tuple[int, str]
"""A run: its seed, and the label of its line."""
Runs = Mapping[Key, tuple[Stop, ...]]


class Journal:
    """Runs that are over.

    Args:
        path: The file; None keeps nothing.
        names: What the runs of a line belong to, by its label.

    Raises:
        InputError: The file cannot be read or written.
    """

    def __init__(self, path: Path | None, names: Mapping[str, str]) -> None:
        self._path, self._names, self._lock = path, names, Lock()
        self.runs: dict[Key, tuple[Stop, ...]] = {}
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

    def add(self, key: Key, stops: tuple[Stop, ...]) -> None:
        """Keep a run; threads may call this."""
        with self._lock:
            self.runs[key] = stops
            if self._path is None:
                return
            seed, label = key
            head = {"of": self._names[label], "seed": seed, "line": label}
            text = json.dumps(head | {"stops": [asdict(stop) for stop in stops]})
            with self._path.open("a", encoding="utf-8") as out:
                out.write(("\n" if self._is_cut else "") + text + "\n")
            self._is_cut = False

    def _read(self, line: str) -> None:
        try:
            found = json.loads(line)
            if found["of"] == self._names.get(found["line"]):
                stops = tuple(Stop(**stop) for stop in found["stops"])
                self.runs[int(found["seed"]), found["line"]] = stops
        except (ValueError, KeyError, TypeError, AttributeError):
            return
