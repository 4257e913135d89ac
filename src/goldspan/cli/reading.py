"""The options with which every command reads a crowd."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldspan.cli.output import key_values, listed
from goldspan.cli.wording import in_options

if TYPE_CHECKING:
    from goldspan.crowd import Crowd

_READ = "Reading"
OPTIONS = {"text_encoding=…": "--text-encoding", "max_decompressed=…": "--max-decompressed"}
"""What messages say of arguments, and of options."""


def format_names(incomplete: str) -> list[str]:
    """Complete the name of a format."""
    from goldspan.crowd.registry import FORMATS

    return [name for name in FORMATS if name.startswith(incomplete)]


def method_names(incomplete: str) -> list[str]:
    """Complete the name of a method."""
    from goldspan.aggregation.registry import METHODS

    return [name for name in METHODS if name.startswith(incomplete)]


Input = Annotated[
    str, typer.Argument(metavar="FILE", help="A file (.gz too), a folder, a .zip, or - for stdin.")
]
Overlap = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Answers per item, in place of what the plan says in redundancy.",
        show_default=False,
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        help="Format; guessed from the content by default.",
        rich_help_panel=_READ,
        autocompletion=format_names,
    ),
]
NoText = Annotated[
    bool,
    typer.Option(
        "--no-text",
        help="Columns of tokens (conll, wide, long) without the items' texts and offsets.",
    ),
]
RawCsv = Annotated[
    bool,
    typer.Option(
        "--raw-csv",
        help="Write cells of CSV as they are, also what a spreadsheet may take for a formula.",
    ),
]
Gold = Annotated[
    str | None,
    typer.Option(help="A second file or folder with the known tags.", rich_help_panel=_READ),
]
EncodingName = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        "-e",
        help="BIO, IOB, IOBES, BILOU, BMEWO or PLAIN; guessed by default.",
        rich_help_panel=_READ,
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar="ROLE=NAME",
        help="Name of a column, for example item=question or tag=4. Repeatable.",
        rich_help_panel=_READ,
    ),
]
Workers = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ID,ID,…",
        help="Worker columns of a wide table, or workers to keep: a,b,c. Repeatable. An id with a "
        """comma stands in double quotes: --workers '"Lee, Ann",bob'.""",
        rich_help_panel=_READ,
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="OLD=NEW",
        help="Rename a label: person=PER; OLD= drops it. Repeatable.",
        rich_help_panel=_READ,
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        help="A cell that means no label (? by default). Repeatable.", rich_help_panel=_READ
    ),
]
Altered = Annotated[
    str,
    typer.Option(
        help="Labels on cut or altered tokens: missing, keep or drop-sentence.",
        rich_help_panel=_READ,
    ),
]
Repeated = Annotated[
    str,
    typer.Option(help="Which repeated answer counts: last or first.", rich_help_panel=_READ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict", help="Refuse faults that could be aligned or listed.", rich_help_panel=_READ
    ),
]
Offsets = Annotated[
    str,
    typer.Option(
        help="What character offsets count: codepoint, utf16 or utf8.", rich_help_panel=_READ
    ),
]
Cut = Annotated[
    str,
    typer.Option(
        help="Character spans that begin or end within a token: split (the token is cut there), "
        "expand, contract or error.",
        rich_help_panel=_READ,
    ),
]
TokenRule = Annotated[
    str,
    typer.Option(
        "--tokens",
        help="How texts without tokens are cut: fine, space or words.",
        rich_help_panel=_READ,
    ),
]
Overlapping = Annotated[
    str,
    typer.Option(
        help="Which spans of one answer stay where several overlap: longest, outermost or refuse.",
        rich_help_panel=_READ,
    ),
]
Strip = Annotated[
    bool,
    typer.Option(
        "--strip",
        help="Take white space and quotation marks off the ends of labels and workers' ids.",
        rich_help_panel=_READ,
    ),
]
RenameWorkers = Annotated[
    list[str] | None,
    typer.Option(
        "--rename-worker",
        metavar="OLD=NEW",
        help="Give a worker another id; two may become one. Repeatable.",
        rich_help_panel=_READ,
    ),
]
Delimiter = Annotated[
    str | None, typer.Option(help="Of a table; guessed by default.", rich_help_panel=_READ)
]
TextEncoding = Annotated[
    str | None, typer.Option(help="Of the text, such as cp1252.", rich_help_panel=_READ)
]
MaxDecompressed = Annotated[
    str | None,
    typer.Option(
        "--max-decompressed",
        metavar="SIZE",
        help="Most that compressed input may grow to, such as 20GiB; 4GiB by default, and beyond "
        "256MiB 100 times its size.",
        rich_help_panel=_READ,
        show_default=False,
    ),
]
_POOL = "Pools"
TextColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Column that holds the texts.", rich_help_panel=_POOL),
]
IdColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Column that holds the items' ids.", rich_help_panel=_POOL),
]
DocumentColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Column that holds the documents of the items.",
        rich_help_panel=_POOL,
    ),
]
Tokens = Annotated[
    str | None,
    typer.Option(
        help="How texts are cut: fine, space or given; by default given where the pool has tokens, "
        "else fine.",
        show_default=False,
        rich_help_panel=_POOL,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Policy = Annotated[
    str,
    typer.Option(help="How malformed tags are read: conlleval, strict, boundaries or raise."),
]


@dataclass(frozen=True)
class Reading:
    """The reading options of one call."""

    format: str | None = None
    gold: str | None = None
    encoding: str | None = None
    columns: list[str] | None = None
    workers: list[str] | None = None
    labels: list[str] | None = None
    missing: list[str] | None = None
    altered: str = "missing"
    repeated: str = "last"
    strict: bool = False
    offsets: str = "codepoint"
    cut: str = "split"
    delimiter: str | None = None
    text_encoding: str | None = None
    unknown: str = "raise"
    tokens: str = "fine"
    overlapping: str = "longest"
    strip: bool = False
    rename_workers: list[str] | None = None
    unlabelled: str = "refuse"
    max_decompressed: str | None = None

    def read(self, source: Any, progress: Callable[[int, int], None] | None = None) -> Crowd:
        """Read a crowd."""
        from goldspan.crowd import read_crowd

        with in_options(OPTIONS):
            return read_crowd(source, progress=progress, **self.arguments())

    def arguments(self) -> dict[str, Any]:
        """Return the options as arguments of `read_crowd`."""
        delimiter = {"tab": "\t", "\\t": "\t"}.get(self.delimiter or "", self.delimiter)
        return {
            "format": self.format,
            "gold": self.gold,
            "encoding": self.encoding,
            "columns": key_values(self.columns, "ROLE=NAME"),
            "workers": listed(self.workers, "--workers"),
            "labels": key_values(self.labels, "OLD=NEW"),
            "missing": self.missing or None,
            "altered": self.altered,
            "repeated": self.repeated,
            "strict": self.strict,
            "offsets": self.offsets,
            "cut": self.cut,
            "delimiter": delimiter,
            "text_encoding": self.text_encoding,
            "unknown": self.unknown,
            "tokens": self.tokens,
            "overlapping": self.overlapping,
            "strip": self.strip,
            "rename_workers": key_values(self.rename_workers, "OLD=NEW"),
            "unlabelled": self.unlabelled,
            "max_decompressed": self.max_decompressed,
        }


def check_files(**outputs: str | None) -> None:
    """Reject `-` for outputs that cannot go to standard output, by the names of their options.

    Raises:
        typer.BadParameter: One of them is `-`.
    """
    for option, path in outputs.items():
        if path == "-":
            name = option.replace("_", "-")
            raise typer.BadParameter(f"--{name} cannot be standard output: give the name of a file")


def check_there(*inputs: str | None) -> None:
    """Reject inputs that are not there, before any work is done.

    Raises:
        InputError: One of them is not there.
    """
    from goldspan.errors import InputError

    for path in inputs:
        if path and path != "-" and not Path(path).exists():
            raise InputError(f"{path}: there is no such file")
