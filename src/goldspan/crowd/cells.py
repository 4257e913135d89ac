"""Tables that people open in a spreadsheet, where no name or text must become a formula.

Only tables that are made to be looked at: who gets what, who is how good. Labels, answers and lists
of items are read again by goldspan and by other programs, and are written exactly as they are.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""First characters for which a spreadsheet may take text for a formula, also of full width."""


def sheet_text(
    columns: Sequence[str], rows: Iterable[Mapping[str, Any]], written: Sequence[str] | None = None
) -> str:
    """Write a table as CSV, a heading and a line per row.

    As OWASP says ("CSV Injection"), an apostrophe goes before every text that a spreadsheet could
    take for a formula: it then shows the text.

    Args:
        columns: Their names.
        rows: Values by column.
        written: The columns that hold what people wrote; by default all where text stands.

    >>> print(sheet_text(["worker", "answers"], [{"worker": "=1+1", "answers": -3}]), end="")
    worker,answers
    '=1+1,-3
    """
    guarded = columns if written is None else written
    cells = (
        [_guard(row[name]) if name in guarded else row[name] for name in columns] for row in rows
    )
    return "".join(map(_line, [columns, *cells]))


def _guard(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell


def _line(cells: Sequence[Any]) -> str:
    buffer = io.StringIO(newline="")
    # With this end of lines both of its characters are quoted: neither begins a row of its own.
    csv.writer(buffer, lineterminator="\r\n").writerow(cells)
    return buffer.getvalue().removesuffix("\r\n") + "\n"
