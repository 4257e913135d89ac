"""CSV that people open in a spreadsheet, where no name, label or text must become a formula.

As OWASP says ("CSV Injection"), an apostrophe goes before every text that a spreadsheet could take
for a formula, and before one that would be taken for a guarded one. Where a cell of a table that
goldspan reads again is guarded, the header says so: the name of the first column is quoted and the
others are not (or the other way round). TSV and CoNLL are for programs and are not guarded.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""First characters for which a spreadsheet may take text for a formula, also of full width."""

_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)*(?:[eE][+-]?\d{1,3})?")
_MARKED = re.compile(r'"\w+"(?:,\w+)+|\w+(?:,"\w+")+')


def is_formula(cell: str) -> bool:
    """Return whether a spreadsheet could take a text, without apostrophes before it, for a formula.

    >>> [is_formula(cell) for cell in ("=1+1", "'@ann", "-", "-1.5", "'tis", "Rome")]
    [True, True, True, False, False, False]
    """
    bare = cell.lstrip("'")
    return bare.startswith(FORMULA) and not _NUMBER.fullmatch(bare)


def guard(cell: Any) -> Any:
    """Return a cell with an apostrophe before it, if it is text that could become a formula."""
    return f"'{cell}" if isinstance(cell, str) and is_formula(cell) else cell


def unguard(cell: str) -> str:
    """Return the text that `guard` was given.

    >>> [unguard(guard(cell)) for cell in ("=1", "'=1", "''=1", "-1", "'-1", "a")]
    ['=1', "'=1", "''=1", '-1', "'-1", 'a']
    """
    return cell[1:] if cell[:1] == "'" and is_formula(cell) else cell


def any_formula(*cells: Iterable[str | None]) -> bool:
    """Return whether one of them could become a formula."""
    return any(cell and is_formula(cell) for some in cells for cell in some)


def marked(header: str) -> str:
    """Return the header line of a table with guarded cells.

    >>> marked("item,label")
    '"item",label'
    """
    first, comma, rest = header.partition(",")
    return f"{first[1:-1] if first[:1] == chr(34) else chr(34) + first + chr(34)}{comma}{rest}"


def is_marked(text: str) -> bool:
    """Return whether a table, given from its first line on, has guarded cells."""
    return _MARKED.fullmatch(text.partition("\n")[0].rstrip("\r")) is not None


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, raw: bool = False) -> str:
    """Write a table that goldspan reads again as CSV, with guarded cells and a marked header.

    >>> print(csv_text(["item", "label"], [["=1+1", "x"], ["-1", "y"]]), end="")
    "item",label
    '=1+1,x
    -1,y
    """
    given = [list(row) for row in rows]
    kept = given if raw else [[guard(cell) for cell in row] for row in given]
    head = _line(columns)
    return "".join([head if kept == given else marked(head), *map(_line, kept)])


def sheet_text(
    columns: Sequence[str], rows: Iterable[Mapping[str, Any]], written: Sequence[str] | None = None
) -> str:
    """Write a table that is only looked at as CSV, a heading and a line per row.

    >>> print(sheet_text(["worker", "answers"], [{"worker": "=1+1", "answers": -3}]), end="")
    worker,answers
    '=1+1,-3
    """
    guarded = columns if written is None else written
    cells = (
        [_shown(row[name]) if name in guarded else row[name] for name in columns] for row in rows
    )
    return "".join(map(_line, [columns, *cells]))


def _shown(cell: Any) -> Any:
    """Return a cell guarded, also a name that is a number: it is shown as it is, `+1` not as 1."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else guard(cell)


def _line(cells: Sequence[Any]) -> str:
    buffer = io.StringIO(newline="")
    # With this end of lines both of its characters are quoted: neither begins a row of its own.
    csv.writer(buffer, lineterminator="\r\n").writerow(cells)
    return buffer.getvalue().removesuffix("\r\n") + "\n"
