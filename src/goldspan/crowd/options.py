"""What a reader may be told: one frozen object, the same for every format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from goldspan.errors import UnknownNameError
from goldspan.spans import get_encoding
from goldspan.spans.characters import CUTS, OFFSETS

Altered = Literal["missing", "keep", "drop-sentence"]
Repeated = Literal["last", "first"]
Unknown = Literal["raise", "outside"]
ALTERED: tuple[str, ...] = get_args(Altered)
REPEATED: tuple[str, ...] = get_args(Repeated)
UNKNOWN: tuple[str, ...] = get_args(Unknown)
ROLES = (
    *("item", "doc", "sent", "token", "position", "worker", "label", "tag", "gold", "text"),
    *("attempt", "started", "submitted", "cost"),
)
"""What `columns` may name."""
MISSING = ("?", "", "NA", "N/A", "NaN", "nan", "null")
"""Cells that mean "no label"; `?` is the project's own, the others are how spreadsheets say it."""


@dataclass(frozen=True)
class ReadOptions:
    """How to read a crowd.

    Attributes:
        encoding: Encoding of the tags; None guesses it from the tags.
        columns: Names of columns by their role, where they are not the usual ones: roles are
            item, doc, sent, token, position, worker, label, tag, gold, text, attempt, started,
            submitted, cost.
        workers: Names of the worker columns of a wide table, or the workers to keep.
        labels: Other names for labels: {"person": "PER"} also turns `B-person` into `B-PER`;
            an empty new name means "no label".
        missing: Cells that mean "no label", as an empty one always does.
        altered: What becomes of a label on a cut or altered token: "missing", "keep" or
            "drop-sentence".
        repeated: Which of a worker's several answers to an item counts: "last" or "first".
        unknown: What becomes of a string that is no tag of the encoding: "raise" refuses the
            input; "outside" lists it in the import report and reads it as `O` (no label, in
            PLAIN).
        strict: Refuse an input with faults instead of listing them in the import report.
        offsets: What character offsets count: "codepoint", "utf16" or "utf8".
        cut: What to do with a character span that cuts a token: "expand", "contract", "error".
        delimiter: Of a table; None guesses it.
        progress: Called with (done, total) now and then by slow readers.
    """

    encoding: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    workers: tuple[str, ...] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = MISSING
    altered: str = "missing"
    repeated: str = "last"
    unknown: str = "raise"
    strict: bool = False
    offsets: str = "codepoint"
    cut: str = "expand"
    delimiter: str | None = None
    progress: Callable[[int, int], Any] | None = None

    def __post_init__(self) -> None:
        if self.altered not in ALTERED:
            raise UnknownNameError("rule for altered tokens", self.altered, ALTERED)
        if self.repeated not in REPEATED:
            raise UnknownNameError("rule for repeated answers", self.repeated, REPEATED)
        if self.unknown not in UNKNOWN:
            raise UnknownNameError("rule for unknown tags", self.unknown, UNKNOWN)
        if self.offsets not in OFFSETS:
            raise UnknownNameError("kind of offsets", self.offsets, OFFSETS)
        if self.cut not in CUTS:
            raise UnknownNameError("rule for cut tokens", self.cut, CUTS)
        if self.encoding is not None:
            get_encoding(self.encoding)
        for role in self.columns:
            if role not in ROLES:
                raise UnknownNameError("role of a column", role, ROLES)

    def rename(self, label: str) -> str | None:
        """Give a label's name after `labels` and `missing`; None for no label.

        >>> ReadOptions(labels={"person": "PER"}).rename("B-person")
        'B-PER'
        """
        label = label.strip()
        if not label or label in self.missing:
            return None
        if label in self.labels:
            return self.labels[label] or None
        prefix, hyphen, kind = label.partition("-")
        if hyphen and kind in self.labels:
            return f"{prefix}-{self.labels[kind]}" if self.labels[kind] else None
        return label
