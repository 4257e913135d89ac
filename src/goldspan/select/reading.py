"""Pools, labelled items and errors in files."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from goldspan.crowd import Crowd, read_crowd
from goldspan.crowd.source import Source, open_source
from goldspan.errors import Fault, FormatError, InputError, UnknownNameError
from goldspan.select.pool import IDS, Pool
from goldspan.select.selection import Selection
from goldspan.tagger.streams import READERS, Item, read_items

TABLE, CROWD = "attributes", "crowd"
FORMATS = (*READERS, TABLE, CROWD)
"""How a pool is read: texts, a table of attributes, or any format of a crowd."""
_ENDINGS = {".txt": "text", ".jsonl": "jsonl", ".conll": "conll", ".bio": "conll", ".iob": "conll"}


@dataclass(frozen=True, eq=False)
class PoolFile:
    """A pool as it was read.

    Attributes:
        pool: The items.
        fields: Of every item what its line held besides ids and words; empty for crowds.
    """

    pool: Pool
    fields: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)


def read_pool(source: Any, format: str | None = None) -> PoolFile:  # noqa: A002 - users' word
    r"""Read a pool.

    Args:
        source: A path, "-" or bytes.
        format: "text" (a line is an item), "jsonl" (`tokens` or `text`), "conll" (a token per
            line), "attributes" (a table: CSV, TSV or Parquet with a row per item) or "crowd" (any
            format of `read_crowd`); by the ending of the name by default, else "crowd".

    Raises:
        UnknownNameError: There is no such format.
        InputError: The file is not there, not of the format, or an id stands twice.

    >>> read_pool(b"Rome is old.\nIt rains.\n", "text").pool.n_tokens.tolist()
    [4, 3]
    """
    file = open_source(source)
    chosen = format or _ENDINGS.get(file.suffix, CROWD)
    if chosen not in FORMATS:
        raise UnknownNameError("format of a pool", chosen, FORMATS)
    if chosen == TABLE:
        return PoolFile(Pool.of(_table(file)))
    if chosen == CROWD:
        return PoolFile(Pool.of(_crowd(file)))
    items = list(read_items(io.StringIO(file.text.value), chosen, file.name))
    return _of_items(items)


def read_errors(source: Any) -> dict[str, float]:
    r"""Read where a model is wrong: a CSV table with a column item, and one called error.

    Args:
        source: A path or bytes. Errors are shares, 0 to 1; without that column every item that
            stands there is wrong.

    Raises:
        InputError: It is no such table; the line is named.

    >>> read_errors(b"item,error\nD1,0.5\nD2,0\n")
    {'D1': 0.5, 'D2': 0.0}
    """
    import csv

    file = open_source(source)
    rows = csv.DictReader(io.StringIO(file.text.value))
    names = [name.strip().lower() for name in rows.fieldnames or []]
    rows.fieldnames = names
    key = next((name for name in IDS if name in names), None)
    if key is None:
        message = f"a table of errors has a column item, and may have one called error, not {names}"
        raise FormatError([Fault(message, file.name, 1, kind="columns")])
    found: dict[str, float] = {}
    for row in rows:
        name, cell = (row[key] or "").strip(), row.get("error", "1")
        try:
            share = float(cell or "")
        except ValueError:
            message = f"an error is a number from 0 to 1, not {cell!r}"
            raise FormatError([Fault(message, file.name, rows.line_num, name)]) from None
        if name in found:
            raise FormatError([Fault("the item stands twice", file.name, rows.line_num, name)])
        found[name] = share
    return found


def selection_lines(selection: Selection, fields: tuple[Mapping[str, Any], ...]) -> Iterator[str]:
    """Give a selection as JSON lines: item, words or attributes, and `select` with the reasons.

    Args:
        selection: The items.
        fields: Other fields of every item of the pool, as `read_pool` gave them, or empty.
    """
    rows = selection.to_arrow().to_pylist()
    for rank, (row, at) in enumerate(zip(rows, selection.item.tolist(), strict=True), start=1):
        facts = {"item": row.pop("item"), **_content(selection.pool, at)}
        more = fields[at] if fields else {}
        line = {**more, **facts, "select": {"rank": rank, **row}}
        yield json.dumps(line, ensure_ascii=False) + "\n"


def _content(pool: Pool, item: int) -> dict[str, Any]:
    if pool.text is not None:
        return {"text": pool.given[item], "tokens": pool.words(item)}
    found = {}
    for name, cells in (pool.columns or {}).items():
        value = cells[item].as_py() if isinstance(cells, pa.Array) else float(cells[item])
        found[name] = None if isinstance(value, float) and np.isnan(value) else value
    return found


def _of_items(items: list[Item]) -> PoolFile:
    texts = [item.text or " ".join(item.words) for item in items]
    pool = Pool.of_items(
        [item.name for item in items],
        [item.words for item in items],
        texts,
        [str(item.document) for item in items],
    )
    return PoolFile(pool, tuple(item.fields for item in items))


def _crowd(file: Source) -> Crowd:
    try:
        return read_crowd(file, tokens="words", cut="expand", unlabelled="keep")
    except FormatError as error:
        hint = (
            f'a table with a row per item is read with pool.format = "{TABLE}" in a plan, with '
            f"--{TABLE} in goldspan select; texts by their format: {', '.join(READERS)}"
        )
        if all(fault.kind == "format" for fault in error.faults):  # crowds' formats are no help
            raise FormatError([Fault(f"it is no crowd; {hint}", file.name)]) from None
        raise FormatError(error.faults, f"{error.headline or 'no crowd'}; {hint}") from None


def _table(file: Source) -> pa.Table:
    """Read CSV, TSV or Parquet; empty cells are missing."""
    from pyarrow import csv, parquet

    try:
        if file.is_parquet:
            return parquet.read_table(pa.BufferReader(file.data))
        value = file.text
        head = value.value.partition("\n")[0]
        mark = "\t" if "\t" in head else ";" if ";" in head and "," not in head else ","
        return csv.read_csv(
            pa.BufferReader(value.data),
            # In one block: what a column holds is judged by all of it.
            read_options=csv.ReadOptions(block_size=min(len(value.data) + 1, 2**31 - 1)),
            parse_options=csv.ParseOptions(delimiter=mark, newlines_in_values=True),
            convert_options=csv.ConvertOptions(strings_can_be_null=True),
        )
    except pa.ArrowException as error:
        raise InputError(f"{file.name} is no table of attributes: {error}") from None
