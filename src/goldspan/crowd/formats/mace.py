"""MACE's matrix: a line per item, a column per annotator, without a header; in and out.

An empty cell is no label, and a line of empty cells an item that nobody labelled. Items are called
by the numbers of their lines, annotators by those of their columns (Hovy et al. 2013).
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

from goldspan.crowd.atomic import write_text
from goldspan.crowd.builder import CrowdBuilder
from goldspan.crowd.grid import csv_rows, read_delimiter
from goldspan.crowd.guessing import guesses, peek
from goldspan.crowd.labels import keep_workers
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source
from goldspan.errors import Fault, FormatError, InputError


def sniff(source: Source) -> bool:
    """Return whether all columns have the same few labels, under no header."""
    table = None if source.is_folder or source.is_parquet else peek(source)
    found = guesses(table) if table is not None else []
    return any(one.format == "mace" and one.is_sure for one in found)


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read everybody's labels."""
    mark = read_delimiter(source, options.delimiter)
    found = csv_rows(source.text.value.rstrip("\n") + "\n", source.name, mark)
    rows = [[cell.strip() for cell in row] for _, _, row in found]
    width = max(map(len, rows))
    builder = CrowdBuilder(options, source.name, "mace")
    if width < 2:
        message = "one column: a matrix has a column per annotator"
        builder.faults.append(Fault(message, source.name, 1, kind="columns"))
    for n in range(width):
        builder.add_worker(str(n + 1))
    for line, row in enumerate(rows, start=1):
        if row and len(row) != width:
            message = f"{len(row)} cells where another line has {width}"
            builder.faults.append(Fault(message, source.name, line, kind="ragged-row"))
        item = builder.add_item(str(line), [str(line)], line=line)
        for n, label in enumerate(row, start=1):
            if label:
                builder.add_answer(item, str(n), [label], line=line)
    if builder.faults:
        raise FormatError(builder.faults)
    return keep_workers(builder.build(single=True), options)


def write(crowd: Crowd, path: Path) -> None:
    """Write everybody's last labels, without the names of items and annotators."""
    if not crowd.is_classification:
        raise InputError("MACE's matrix holds single labels: write another format, such as wide")
    latest, labels = crowd.latest, crowd.tagset.tags
    wrong = [name for name in labels if set(name) & set(',"\n\r') or name != name.strip()]
    if wrong:
        raise InputError(f"MACE would cut the label {wrong[0]!r} at its comma: rename it")
    rows = [[""] * crowd.n_workers for _ in range(crowd.n_items)]
    for item, worker, code in zip(crowd.token_of, crowd.worker_of, latest.codes, strict=True):
        rows[item][worker] = labels[code] if code >= 0 else ""
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    write_text(path, [buffer.getvalue()])
