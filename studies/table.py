"""What a study gives: tables with a caption, and notes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from goldspan.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Table:
    """A table of a study.

    Attributes:
        caption: What it shows.
        columns: Headings.
        rows: Cells: text, numbers, or None for nothing.
        digits: Decimals of numbers by heading, or a format such as ".1e"; 2 where nothing is said.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    digits: Mapping[str, int | str] = field(default_factory=dict)

    def markdown(self) -> str:
        """Write it in Markdown, numbers to the right."""
        numeric = [
            all(isinstance(row[i], int | float | None) for row in self.rows)
            for i in range(len(self.columns))
        ]
        lines = [
            f"**{self.caption}**",
            "",
            "| " + " | ".join(self.columns) + " |",
            "|" + "|".join("---:" if right else "---" for right in numeric) + "|",
        ]
        for row in self.rows:
            cells = (self._cell(*pair) for pair in zip(self.columns, row, strict=True))
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and lists, for JSON."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"caption": self.caption, "rows": rows}

    def _cell(self, column: str, value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, float):
            form = self.digits.get(column, 2)
            return format(value, form if isinstance(form, str) else f".{form}f")
        return str(value)


@dataclass(frozen=True)
class Study:
    """The result of a study.

    Attributes:
        title: Its name in words.
        tables: The tables.
        notes: What to know about them.
        picture: Draws its picture; None if it has none.
    """

    title: str
    tables: Sequence[Table]
    notes: Sequence[str] = ()
    picture: Callable[[], Figure] | None = None

    def markdown(self) -> str:
        """Write all of it in Markdown."""
        parts = [f"# {self.title}", *(table.markdown() for table in self.tables)]
        parts += ["\n".join(f"* {note}" for note in self.notes)] if self.notes else []
        return "\n\n".join(parts) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and lists, for JSON."""
        tables = [table.to_dict() for table in self.tables]
        return {"title": self.title, "tables": tables, "notes": list(self.notes)}


def check_repeats(repeats: int | None) -> None:
    """Raise `InputError` if the repeats of a study are given and are no whole number from 1 on."""
    if repeats is not None and (not isinstance(repeats, int) or repeats < 1):
        raise InputError(f"repeats must be a whole number of at least 1, not {repeats!r}")
