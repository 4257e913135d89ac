"""What a reader may be told: one frozen object, the same for every format.

An option of a reader is one field of `ReadOptions`: its default, and in its metadata the values
that it may have, the sentence that explains it and its spelling on the command line. `read_crowd`
takes the fields as keyword arguments; the command line makes its options from them
(`reading_options`). This module imports neither NumPy nor Arrow, so that `--help` stays fast.
"""

# ruff: noqa: RUF009 - `_option` makes a field

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, Literal

from goldspan.crowd.registry import FORMATS
from goldspan.errors import UnknownNameError
from goldspan.spans.encoding import ENCODINGS, get_encoding
from goldspan.spans.text import CUTS as SNAPS
from goldspan.spans.text import OFFSETS, RULES

ALTERED = ("missing", "keep", "drop-sentence")
"""What may become of a label on a token that was cut or altered."""
QUOTES = "'\"`´‘’‚‛“”„‟«»‹›"
"""What `strip` takes off the ends of names, with white space."""
ROLES = (
    *("item", "doc", "sent", "token", "position", "worker", "label", "tag", "gold", "text"),
    *("attempt", "started", "submitted", "cost", "guideline", "start", "end"),
)
"""What `columns` may name."""
MISSING = ("?", "", "NA", "N/A", "NaN", "nan", "null")
"""Cells that mean "no label"; `?` is goldspan's own, the others are how spreadsheets say it."""

Shape = Literal["text", "flag", "pairs", "list", "repeat"]


@dataclass(frozen=True)
class Option:
    """How an option of a reader is explained, checked and spelled."""

    help: str  # One sentence, the same in Python and on the command line
    what: str = ""  # Of one whose value must be a choice, for messages: "rule for cut tokens"
    shape: Shape = "text"  # How the command line reads it
    choices: tuple[str, ...] = ()  # The values that it may have, or proposals if `what` is ""
    flags: tuple[str, ...] = ()  # Its names on the command line
    metavar: str = ""  # What its value is called in help texts


def _option(
    help: str,  # noqa: A002 - the word of the command line
    *flags: str,
    default: Any = None,
    choices: Iterable[str] = (),
    **more: Any,
) -> Any:
    """Return a field of `ReadOptions`; the arguments are those of `Option`."""
    known = {"option": Option(help, choices=tuple(choices), flags=flags, **more)}
    if default is dict:
        return field(default_factory=dict, metadata=known)
    return field(default=default, metadata=known)


@dataclass(frozen=True)
class ReadOptions:
    """How to read a crowd; `read_crowd` takes every field as a keyword argument.

    Values are checked once, when the object is made.

    Raises:
        UnknownNameError: An option has no such value.

    >>> ReadOptions(cut="expand", columns={"item": "question"}).cut
    'expand'
    """

    format: str | None = _option(
        "Format of the file; guessed from its content by default.",
        "--format",
        "-f",
        choices=FORMATS,
    )
    gold: Any = _option("A second file or folder, with the gold labels.", "--gold")
    texts: Any = _option(
        "Format folder only: a folder or .zip with the reference tokens, a file per document.",
        "--texts",
        metavar="FOLDER",
    )
    encoding: str | None = _option(
        "Encoding: BIO, IOB, IOBES, BILOU, BMEWO or PLAIN; guessed by default.",
        "--encoding",
        "-e",
        choices=ENCODINGS,
    )
    columns: Mapping[str, str] = _option(
        "Name or number of the column for a role, for example item=question or tag=4.",
        "--columns",
        default=dict,
        shape="pairs",
        metavar="ROLE=NAME",
    )
    workers: tuple[str, ...] | None = _option(
        "The worker columns of a wide table; in other formats, the workers to keep.",
        "--workers",
        shape="list",
        metavar="ID,ID,…",
    )
    labels: Mapping[str, str] = _option(
        "Rename a label, also within tags: person=PER. OLD= drops a label.",
        "--label",
        default=dict,
        shape="pairs",
        metavar="OLD=NEW",
    )
    missing: tuple[str, ...] = _option(
        "A cell that means no label, as an empty one does; by default ?, NA, NaN and null.",
        "--missing",
        default=MISSING,
        shape="repeat",
    )
    altered: str = _option(
        "How to treat labels on tokens that a worker's file splits or alters: missing, keep "
        "or drop-sentence.",
        "--altered",
        default="missing",
        what="rule for altered tokens",
        choices=ALTERED,
    )
    repeated: str = _option(
        "Which of several answers of one worker to one item counts: last or first.",
        "--repeated",
        default="last",
        what="rule for repeated answers",
        choices=("last", "first"),
    )
    unknown: str = _option(
        "What happens to a string that is not a tag of the encoding: raise rejects the input; "
        "outside lists it in the import report and reads it as O (no label, in PLAIN).",
        default="raise",
        what="rule for unknown tags",
        choices=("raise", "outside"),
    )
    strict: bool = _option(
        "Reject input with faults, also those that could be aligned or only listed.",
        "--strict",
        default=False,
        shape="flag",
    )
    offsets: str = _option(
        "What character offsets count: codepoint, utf16 (JavaScript) or utf8.",
        "--offsets",
        default="codepoint",
        what="kind of offsets",
        choices=OFFSETS,
    )
    tokens: str = _option(
        "How texts without tokens are split: fine, space, words or characters.",
        "--tokens",
        default="fine",
        what="rule for tokens",
        choices=RULES,
    )
    cut: str = _option(
        "How to treat spans that begin or end within a token: split the token, expand or "
        "contract the span, or error.",
        "--cut",
        default="split",
        what="rule for cut tokens",
        choices=("split", *SNAPS),
    )
    overlapping: str = _option(
        "Which of several overlapping spans of one answer stay: all of them (layers), the longest, "
        "the outermost (begins first), or refuse.",
        "--overlapping",
        default="layers",
        what="rule for overlapping spans",
        choices=("layers", "longest", "outermost", "refuse"),
    )
    several: str = _option(
        "Answers that choose several labels: any number of labels holds (labels), or such answers "
        "are left out and listed (leave-out); auto: labels if two different sets were chosen.",
        "--several",
        default="auto",
        what="rule for several labels",
        choices=("auto", "labels", "leave-out"),
    )
    unlabelled: str = _option(
        "What happens to a file with neither labels nor gold: refuse, or keep (for pools); "
        "goldspan's own formats are always kept.",
        default="refuse",
        what="rule for items without labels",
        choices=("refuse", "keep"),
    )
    strip: bool = _option(
        "Remove white space and quotation marks from the ends of labels and worker ids.",
        "--strip",
        default=False,
        shape="flag",
    )
    rename_workers: Mapping[str, str] = _option(
        "New id of a worker; two workers may become one.",
        "--rename-worker",
        default=dict,
        shape="pairs",
        metavar="OLD=NEW",
    )
    delimiter: str | None = _option("Delimiter of a table; guessed by default.", "--delimiter")
    text_encoding: str | None = _option(
        "Encoding of the text, such as cp1252; UTF-8 by default.", "--text-encoding"
    )
    max_decompressed: int | str | None = _option(
        "Largest size to which compressed input may unpack, such as 20GiB; by default 4GiB.",
        "--max-decompressed",
        metavar="SIZE",
    )
    predicted: bool = _option("Read what goldspan wrote as predicted as gold.", default=False)
    progress: Callable[[int, int], Any] | None = _option(
        "Called with (done, total) by readers that may take long."
    )

    def __post_init__(self) -> None:
        for name, told in reading_options().items():
            value = getattr(self, name)
            if told.what and value not in told.choices:
                raise UnknownNameError(told.what, value, told.choices)
            if told.shape == "pairs":
                object.__setattr__(self, name, dict(value or {}))
        given = MISSING if self.missing is None else tuple(self.missing)
        object.__setattr__(self, "missing", given)
        if self.workers is not None:
            object.__setattr__(self, "workers", tuple(dict.fromkeys(self.workers)))
        if self.encoding is not None:
            get_encoding(self.encoding)
        for role in self.columns:
            if role not in ROLES:
                raise UnknownNameError("role of a column", role, ROLES)

    @property
    def rejects_unknown(self) -> bool:
        """Whether a string that is not a tag makes the input rejected."""
        return self.unknown == "raise" or self.strict

    @staticmethod
    def stripped(name: str) -> str:
        """Return a name without white space and quotation marks at its ends, and without `="…"`.

        >>> ReadOptions.stripped(' “PER” '), ReadOptions.stripped('="007"')
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

    def with_labels(self, known: Collection[str]) -> ReadOptions:
        """Return the options under which none of the known labels means "no label"."""
        return replace(self, missing=tuple(word for word in self.missing if word not in known))

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


@cache
def reading_options() -> Mapping[str, Option]:
    """Return the declared options of a reader by the names of their fields."""
    return {one.name: one.metadata["option"] for one in fields(ReadOptions)}
