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
_OPTIONS = {"text_encoding=…": "--text-encoding"}
"""What messages say of arguments, and of options."""

Input = Annotated[
    str, typer.Argument(metavar="FILE", help="A file (.gz too), a folder, a .zip, or - for stdin.")
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format", "-f", help="Format; guessed from the content by default.", rich_help_panel=_READ
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
        help="Character spans that cut a token: expand, contract or error.", rich_help_panel=_READ
    ),
]
Delimiter = Annotated[
    str | None, typer.Option(help="Of a table; guessed by default.", rich_help_panel=_READ)
]
TextEncoding = Annotated[
    str | None, typer.Option(help="Of the text, such as cp1252.", rich_help_panel=_READ)
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
    cut: str = "expand"
    delimiter: str | None = None
    text_encoding: str | None = None
    unknown: str = "raise"

    def read(self, source: str, progress: Callable[[int, int], None] | None = None) -> Crowd:
        """Read a crowd."""
        from goldspan.crowd import read_crowd

        with in_options(_OPTIONS):
            return read_crowd(source, progress=progress, **self.arguments())

    def arguments(self) -> dict[str, Any]:
        """Give the options as arguments of `read_crowd`."""
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
        }


def check_files(**outputs: str | None) -> None:
    """Refuse `-` for outputs that cannot go to standard output, by the names of their options.

    Raises:
        typer.BadParameter: One of them is `-`.
    """
    for option, path in outputs.items():
        if path == "-":
            name = option.replace("_", "-")
            raise typer.BadParameter(f"--{name} cannot be standard output: give the name of a file")


def check_there(*inputs: str | None) -> None:
    """Refuse inputs that are not there, before any work is done.

    Raises:
        InputError: One of them is not there.
    """
    from goldspan.errors import InputError

    for path in inputs:
        if path and path != "-" and not Path(path).exists():
            raise InputError(f"{path}: there is no such file")
