"""The option `--prices`: one amount for all workers, or a table of workers and prices."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any


def read_prices(text: str | None) -> dict[str, str] | str | None:
    """Read one amount, or a table of workers and prices.

    Raises:
        InputError: It is neither, or the table lacks a column or names a worker twice.
    """
    from karat.errors import InputError

    if text is None or not Path(text).is_file():
        return text
    rows = csv.reader(Path(text).read_text(encoding="utf-8-sig").splitlines())
    head = [name.strip() for name in _first(rows)]
    if not {"worker", "price"} <= set(head):
        raise InputError(f"{text}: a table of prices has columns worker and price, not {head}")
    found: dict[str, str] = {}
    for line, row in enumerate(rows, start=2):
        if not row:
            continue
        if len(row) < len(head):
            raise InputError(f"{text} line {line}: {len(row)} cells for {len(head)} columns")
        worker = row[head.index("worker")]
        if worker in found:
            raise InputError(f"{text} line {line}: worker {worker} has a price already")
        found[worker] = row[head.index("price")]
    return found


def _first(rows: Any) -> list[str]:
    for row in rows:
        return list(row)
    return []
