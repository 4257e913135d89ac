"""The option `--prices`: one amount for all workers, or a table of workers and prices."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from goldspan.errors import Fault

_COLUMNS = {"worker", "price"}


def read_prices(text: str | None) -> dict[str, str] | str | None:
    """Read one amount, or a table of workers and prices; it may price more workers than there are.

    Raises:
        InputError: It is neither.
        FormatError: The table lacks a column, a price is no amount, or a worker has two.
    """
    if text is None:
        return None
    if Path(text).is_file():
        return _read_table(text)
    from goldspan.errors import InputError
    from goldspan.money import to_micro

    try:
        to_micro(text)
    except InputError as error:
        if any(sign.isdigit() for sign in text) and not Path(text).suffix[1:].isalpha():
            raise InputError(f"--prices: {error}") from None
        raise InputError(
            f"--prices {text}: there is no such file; give one, or an amount such as 0.05"
        ) from None
    return text


def _read_table(path: str) -> dict[str, str]:
    from goldspan.errors import Fault, FormatError

    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise FormatError([Fault(f"it is no text in UTF-8: {error.reason}", path)]) from None
    rows = csv.reader(lines)
    head = [name.strip() for name in next(rows, [])]
    if not set(head) >= _COLUMNS:
        seen = ", ".join(head) or "nothing"
        message = f"a table of prices has columns worker and price with a comma between, not {seen}"
        raise FormatError([Fault(message, path, 1, kind="header")])
    found: dict[str, tuple[int, str]] = {}
    faults: list[Fault] = []
    for row in rows:
        if not any(map(str.strip, row)):
            continue
        worker, price = _cells(head, row)
        message = _fault(head, row, price, found.get(worker))
        if message:
            faults.append(Fault(message, path, rows.line_num, worker=worker, kind="price"))
        found.setdefault(worker, (rows.line_num, price))
    if faults:
        raise FormatError(faults)
    return {worker: price for worker, (_, price) in found.items()}


def _cells(head: list[str], row: list[str]) -> tuple[str, str]:
    """Return worker and price of a row, "" for a cell that is not there."""
    cells = dict(zip(head, row, strict=False))
    return cells.get("worker", "").strip(), cells.get("price", "").strip()


def _fault(head: list[str], row: list[str], price: str, former: tuple[int, str] | None) -> str:
    """Return what is wrong with a row, "" if nothing is."""
    from goldspan.errors import InputError
    from goldspan.money import to_micro

    if len(row) != len(head):
        return f"{len(row)} cells for {len(head)} columns"
    if former is not None:
        return f"the worker has a price already, {former[1] or 'none'} in line {former[0]}"
    try:
        to_micro(price, "a price")
    except InputError as error:
        return str(error)
    return ""
