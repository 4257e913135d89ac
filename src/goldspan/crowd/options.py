"""What a reader may be told: one frozen object, the same for every format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from goldspan.errors import UnknownNameError
from goldspan.spans import get_encoding
from goldspan.spans.text import CUTS as SNAPS
from goldspan.spans.text import OFFSETS, RULES

Altered = Literal["missing", "keep", "drop-sentence"]
Repeated = Literal["last", "first"]
Unknown = Literal["raise", "outside"]
ALTERED: tuple[str, ...] = get_args(Altered)
REPEATED: tuple[str, ...] = get_args(Repeated)
UNKNOWN: tuple[str, ...] = get_args(Unknown)
CUTS: tuple[str, ...] = ("split", *SNAPS)
OVERLAPPING = ("longest", "outermost", "refuse")
TOKENS: tuple[str, ...] = tuple(RULES)
QUOTES = "'\"`´‘’‚‛“”„‟«»‹›"
"""What `strip` takes off the ends of names, with white space."""
ROLES = (
    *("item", "doc", "sent", "token", "position", "worker", "label", "tag", "gold", "text"),
    *("attempt", "started", "submitted", "cost", "guideline", "start", "end"),
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
            submitted, cost, guideline, and start and end of a span.
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
        tokens: How a text is cut whose file names no tokens: "fine", "space" or "words"; see
            `goldspan.spans.text`.
        cut: What to do with a character span that begins or ends within a token: "split" cuts the
            token there, so that the span stays exact; "expand" takes the whole token, "contract"
            leaves it out, "error" refuses.
        overlapping: Which of the spans of one answer stays where several overlap: "longest",
            "outermost" (the one that begins first), or "refuse".
        strip: Take white space and quotation marks off the ends of labels and of workers' ids.
        rename_workers: Other ids for workers: {"Ann": "ann"}.
        delimiter: Of a table; None guesses it.
        max_decompressed: Most bytes that a second file (of gold) may decompress to; see
            `goldspan.crowd.source.open_source`.
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
    tokens: str = "fine"
    cut: str = "split"
    overlapping: str = "longest"
    strip: bool = False
    rename_workers: Mapping[str, str] = field(default_factory=dict)
    delimiter: str | None = None
    max_decompressed: int | str | None = None
    progress: Callable[[int, int], Any] | None = None

    def __post_init__(self) -> None:
        for what, name, allowed in (
            ("rule for altered tokens", self.altered, ALTERED),
            ("rule for repeated answers", self.repeated, REPEATED),
            ("rule for unknown tags", self.unknown, UNKNOWN),
            ("kind of offsets", self.offsets, OFFSETS),
            ("rule for cut tokens", self.cut, CUTS),
            ("rule for tokens", self.tokens, TOKENS),
            ("rule for overlapping spans", self.overlapping, OVERLAPPING),
        ):
            if name not in allowed:
                raise UnknownNameError(what, name, allowed)
        if self.encoding is not None:
            get_encoding(self.encoding)
        for role in self.columns:
            if role not in ROLES:
                raise UnknownNameError("role of a column", role, ROLES)

    def stripped(self, name: str) -> str:
        """Return a name without white space and quotation marks at its ends, and without `="…"`.

        >>> ReadOptions().stripped(' “PER” '), ReadOptions().stripped('="007"')
        ('PER', '007')
        """
        name = name.strip()
        if name[:2] == '="':
            name = name[1:]
        return name.strip(QUOTES).strip()

    def _bare(self, label: str) -> str:
        """Take white space and quotation marks off the ends of a label, and of a tag's type."""
        label = self.stripped(label)
        prefix, hyphen, kind = label.partition("-")
        if hyphen and len(prefix) == 1 and prefix.isupper():
            return f"{prefix}-{self.stripped(kind)}"
        return label

    def rename(self, label: str) -> str | None:
        """Return a label's name after `labels` and `missing`; None for no label.

        >>> ReadOptions(labels={"person": "PER"}).rename("B-person")
        'B-PER'
        """
        label = self._bare(label) if self.strip else label.strip()
        if not label or label in self.missing:
            return None
        if label in self.labels:
            return self.labels[label] or None
        prefix, hyphen, kind = label.partition("-")
        if hyphen and kind in self.labels:
            return f"{prefix}-{self.labels[kind]}" if self.labels[kind] else None
        return label
