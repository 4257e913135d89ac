"""Files of active learning: pools, where a model is wrong, and the lines of a batch."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from goldspan.crowd import Answers, Crowd
from goldspan.crowd.detection import is_dataframe, read_source, recognise
from goldspan.crowd.formats import texts
from goldspan.crowd.formats.span_exports import attribute_rows
from goldspan.crowd.grid import is_marked, reject_twice, unguard
from goldspan.crowd.labels import with_notes
from goldspan.crowd.model import list_array
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.registry import formats
from goldspan.crowd.source import ImportReport, Source, open_source
from goldspan.errors import Fault, FormatError, InputError, UnknownNameError
from goldspan.selection.base import Selection
from goldspan.selection.pool import Pool
from goldspan.spans import Codec
from goldspan.spans.text import RULES
from goldspan.tagger.streams import READERS

CONLL, ATTRIBUTES, CROWD = "conll", "attributes", "crowd"
FORMATS = (*texts.KINDS, CONLL, ATTRIBUTES, CROWD)
"""How a pool is read; any format of a crowd may be named too."""
CUTS = (*RULES, "given")
"""What `tokens` may be."""


def read_pool(
    source: Any,
    format: str | None = None,  # noqa: A002 - users' word
    *,
    text: str | None = None,  # Name of the column with the texts, where it cannot be told
    id: str | None = None,  # noqa: A002 - users' word
    document: str | None = None,  # Name of the column with the documents that items are part of
    tokens: str | None = None,  # How texts are cut into tokens
    max_decompressed: int | str | None = None,
) -> Crowd:
    """Read a pool: texts, a table of attributes, or the items of a crowd, with or without answers.

    Of a table of attributes the items are single labels, and their only tokens are their ids.
    """
    if tokens is not None and tokens not in CUTS:
        raise UnknownNameError("rule for tokens", tokens, CUTS)
    if format is not None and format not in {*FORMATS, *formats()}:
        raise UnknownNameError("format of a pool", format, FORMATS)
    roles = {"text": text, "item": id, "doc": document}
    named = {role: name for role, name in roles.items() if name is not None}
    options = ReadOptions(columns=named, tokens="fine", cut="expand", unlabelled="keep")
    if is_dataframe(source):
        return texts.read(Source("<DataFrame>", table=source), options, tokens)
    file = open_source(source, max_decompressed=max_decompressed)
    if format == ATTRIBUTES:
        texts.reject_columns(named, format, file)
        return _attributes(file)
    if format in texts.KINDS:
        return texts.read(file, options, tokens, format)
    given = replace(options, format=None if format == CROWD else format)
    name, given, said = recognise(file, given, texts=format != CROWD)
    if name == "texts":
        return with_notes(texts.read(file, options, tokens), said)
    texts.reject_columns(named, name, file)
    if name == CONLL:
        return texts.of_rows(
            file, _words(file), options, tokens, notes=texts.said(file), drop=int.__eq__
        )
    try:
        found = read_source(file, replace(given, format=name, tokens="words"))
    except FormatError as error:
        hint = (
            f'a table with a row per item is read with pool.format = "{ATTRIBUTES}" in a plan, '
            f"with --{ATTRIBUTES} in goldspan select; texts by their format: "
            f"{', '.join(one for one in FORMATS if one not in {ATTRIBUTES, CROWD})}"
        )
        raise FormatError(error.faults, f"{error.headline or 'no crowd'}; {hint}") from None
    _reject_answers(found, file)
    return with_notes(found, said)


def _reject_answers(found: Crowd, file: Source) -> None:
    """Reject labels of items of which only the ids are known."""
    if found.attributes is None and found.tokens.flatten().equals(found.item_ids):
        what, how = "known labels", "name the column of the texts, if there is one,"
        if found.n_workers:
            what = f"answers of {found.n_workers} annotators"
            how = f"aggregate them with `goldspan aggregate {shlex.quote(file.name)}`,"
        message = f"these are {what}, not texts to label: {how} or make a file of the texts alone"
        raise FormatError([Fault(f"{message}, each once", file.name, kind="answers")])


def _words(file: Source) -> Iterator[texts.Row]:
    """Yield the tokens of a CoNLL file, whatever its tags are."""
    for item in READERS[CONLL](file.stream(), file.name, "fine"):
        starts = [a for a, _ in item.bounds] or None
        yield texts.Row(
            item.name, Fault("", file.name), item.text or None, item.words, starts,
            str(item.document),
        )  # fmt: skip


def _attributes(file: Source) -> Crowd:
    """Read CSV, TSV or Parquet with a row per item; empty cells are missing."""
    from pyarrow import csv as tables
    from pyarrow import parquet

    try:
        if file.is_parquet:
            table = parquet.read_table(pa.BufferReader(file.data))
        else:
            value = file.text
            head = value.value.partition("\n")[0]
            mark = "\t" if "\t" in head else ";" if ";" in head and "," not in head else ","
            table = tables.read_csv(
                pa.BufferReader(value.data),
                # In one block: what a column holds is judged by all of it.
                read_options=tables.ReadOptions(block_size=min(len(value.data) + 1, 2**31 - 1)),
                parse_options=tables.ParseOptions(delimiter=mark, newlines_in_values=True),
                convert_options=tables.ConvertOptions(strings_can_be_null=True),
            )
    except pa.ArrowException as error:
        raise InputError(f"{file.name} is not a table of attributes: {error}") from None
    reject_twice(table.column_names, table.column_names, file.name)
    ids = Pool.of(table).item_ids
    more = [name for name in table.column_names if name not in texts.IDS]
    return Crowd(
        item_ids=ids,
        tokens=list_array(ids, np.arange(len(ids) + 1)),
        worker_ids=pa.array([], pa.string()),
        tagset=Codec((), "PLAIN"),
        answers=Answers.none(),
        attributes=table.select(more),
        import_report=ImportReport(file.name, ATTRIBUTES),
    )


def read_errors(source: Any) -> dict[str, float]:
    """Read where a model is wrong: a CSV table with a column item, and one called error."""
    file = open_source(source)
    rows, is_guarded = csv.DictReader(io.StringIO(file.text.value)), is_marked(file.text.value)
    names = [name.strip().lower() for name in rows.fieldnames or []]
    rows.fieldnames = names
    key = next((name for name in texts.IDS if name in names), None)
    if key is None:
        message = f"a table of errors has a column item, and may have one called error, not {names}"
        raise FormatError([Fault(message, file.name, 1, kind="columns")])
    found: dict[str, float] = {}
    for row in rows:
        name, cell = (row[key] or "").strip(), row.get("error", "1")
        name = unguard(name) if is_guarded else name
        try:
            share = float(cell or "")
        except ValueError:
            message = f"an error is a number from 0 to 1, not {cell!r}"
            raise FormatError([Fault(message, file.name, rows.line_num, name)]) from None
        if name in found:
            raise FormatError([Fault("the item appears twice", file.name, rows.line_num, name)])
        found[name] = share
    return found


def selection_lines(selection: Selection, crowd: Crowd) -> Iterator[str]:
    """Yield a selection as JSON lines: what the pool's file said, and `select` with the reasons."""
    rows = selection.to_arrow().to_pylist()
    index, pool = selection.item, selection.pool
    more = attribute_rows(crowd.select_items(index))
    for rank, (row, at) in enumerate(zip(rows, index.tolist(), strict=True), start=1):
        name, line = row.pop("item"), more[rank - 1]
        if pool.text is not None:
            line = {key: value for key, value in line.items() if value is not None}
            line |= {"text": pool.given[at], "tokens": pool.words(at)}
        line |= {"item": name, "select": {"rank": rank, **row}}
        yield json.dumps(line, ensure_ascii=False) + "\n"
