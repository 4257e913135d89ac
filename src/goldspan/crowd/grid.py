"""Delimited text as columns of strings, with the line of every row: fast, and exact about faults.

Arrow reads lines whose cells are not quoted; nothing loops over them. TSV is never quoted (a token
may be `"`); in CSV a double quote quotes, and then the standard library's reader is used.
"""

from __future__ import annotations

import csv
import io
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from goldspan.crowd.source import Source
from goldspan.errors import Fault, FormatError, InputError

MAX_CELL = 10_000
"""Longest cell, in bytes, that is still believed to be an id, a token or a label."""
TEXT = "text"
"""The column whose cells may be longer."""

_DECLARED = re.compile(r'\A"?sep=(.)"?[ \t]*(?:\r\n|\r|\n|\Z)', re.IGNORECASE)
_QUOTED = re.compile(r'(?:\A|\t|\n|\r)"(?:[^"]|"")*?(?:""|\t|\n|\r)(?:[^"]|"")*"(?=\t|\r|\n|\Z)')
"""A cell of a TSV that only a program that quotes would have written."""
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_NEWLINE, _SPACE = 10, 32
_MANY = 100
"""Columns from which on runs of equal cells are kept as one."""
_BLOCK, _CELLS = 1 << 22, 1 << 17
"""Bytes, and cells that may be quoted, that are read at a time."""
_NO_CELL = dict.fromkeys(map(ord, "\t\n\r\0"), " ")


@dataclass(frozen=True, eq=False)
class Grid:
    """A table of strings, or one of any types that did not come as text."""

    name: str
    table: pa.Table = field(repr=False)  # Of text: strings
    line: NDArray[np.int64] | range = field(repr=False)  # [n_rows], the line of every row, from 1
    block: NDArray[np.int64] = field(repr=False)  # [n_rows]
    notes: tuple[str, ...] = ()  # What was found out about the table

    @property
    def header(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.table.column_names)

    @property
    def n_rows(self) -> int:
        """Number of rows, without header, blank lines and comments."""
        return len(self.line)

    def column(self, name: str) -> pa.ChunkedArray:
        """Return one column, [n_rows]."""
        column = self.table.column(name)
        return pc.run_end_decode(column) if pa.types.is_run_end_encoded(column.type) else column


def guess_delimiter(first_line: str) -> str:
    """Guess what separates the cells of a header: a tab, else the more frequent of `;` and `,`."""
    if "\t" in first_line:
        return "\t"
    return ";" if first_line.count(";") > first_line.count(",") else ","


def first_line(source: Source) -> str:
    """Return the first line that is neither blank nor a comment nor Excel's `sep=;`."""
    value = source.text.value
    declared = _DECLARED.match(value)
    place = declared.end() if declared else 0
    for _ in range(200):
        end = value.find("\n", place)
        line = value[place : end if end >= 0 else len(value)]
        if line.strip() and not is_comment(line):
            return line
        if end < 0:
            break
        place = end + 1
    return ""


def header_names(source: Source) -> list[str]:
    """Return the cells of the first line, without quotes and outer blanks."""
    line = first_line(source)
    return [cell.strip().strip('"') for cell in line.split(delimiter_of(source))]


def is_comment(line: str) -> bool:
    """Return whether a line of a TSV or CoNLL file is a comment: `# ` first, and no tab in it."""
    # `# O` is none: where blanks separate, it is the token `#` and its tag
    return line.startswith("# ") and "\t" not in line and len(line.split()) != 2


def cell_text(word: str) -> str:
    """Return what a cell that is never quoted shows of a string."""
    if word.isalnum():
        return word
    return word.translate(_NO_CELL)


def read_delimiter(source: Source, given: str | None) -> str:
    """Return the delimiter that is given, or else the one that the file shows."""
    mark = delimiter_of(source) if given is None else given
    if len(mark) != 1 or ord(mark) > 127 or mark in '"\n':
        raise InputError(
            f"delimiter {mark!r} must be one ASCII character, such as a tab or a comma"
        )
    return mark


def read_grid(source: Source, delimiter: str | None = None) -> Grid:
    """Read a delimited table with a header."""
    mark = read_delimiter(source, delimiter)
    # In a TSV quotes are part of cells, unless its header is quoted too
    quotes = '"' in source.text.value and (mark != "\t" or _is_quoted(source, mark))
    head, is_of_r = first_line(source), has_row_names(source, mark)
    source = _without_declaration(source)
    if is_of_r:
        value = source.exact_text.value.replace(head, f"{mark}{head}", 1)
        source = replace(source, data=value.encode("utf-8", "surrogatepass"), text_encoding="utf-8")
    grid = _read_quoted(source, mark) if quotes else _read_plain(source, mark)
    _check(grid)
    usual = mark in {"\t", ","}
    return grid if usual else replace(grid, notes=(f"cells are separated by {mark!r}",))


def numbered_grid(source: Source, delimiter: str | None = None) -> Grid:
    """Read a delimited table without a header: its columns are called 1, 2, …."""
    mark = read_delimiter(source, delimiter)
    width = next(len(row) for _, _, row in csv_rows(source.text.value, source.name, mark) if row)
    head = mark.join(map(str, range(1, width + 1)))
    data = f"{head}\n{source.exact_text.value}".encode("utf-8", "surrogatepass")
    grid = read_grid(replace(source, data=data, text_encoding="utf-8"), mark)
    return replace(grid, line=np.asarray(grid.line) - 1)


def delimiter_of(source: Source) -> str:
    """What separates cells: as a first line `sep=;` says, else what the header looks like."""
    declared = _DECLARED.match(source.text.value)
    return declared[1] if declared else guess_delimiter(first_line(source))


def _without_declaration(source: Source) -> Source:
    """Blank a first line `sep=;`, so that the other lines keep their numbers."""
    if _DECLARED.match(source.text.value) is None:
        return source
    value = source.exact_text.value
    declared = _DECLARED.match(value)
    assert declared is not None
    rest = "\n" + value[declared.end() :]
    return replace(source, data=rest.encode("utf-8", "surrogatepass"), text_encoding="utf-8")


def has_row_names(source: Source, mark: str) -> bool:
    """Return whether rows have a cell more than the header: R gives them names, and those none."""
    width, is_quoted = first_line(source).count(mark) + 2, _is_quoted(source, mark)
    if not (mark == "\t" or is_quoted):
        return False  # unquoted commas of texts make cells too
    quoting = csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE
    rows = csv_rows(source.text.value[:1_000_000], source.name, mark, quoting)
    try:
        body = list(islice((row for _, _, row in rows if any(row)), 1, 20))
    except FormatError:
        return False
    names = {row[0] for row in body if row[0] and row[-1] and len(row) == width}
    return len(body) > 1 and len(names) == len(body)


def _is_quoted(source: Source, mark: str) -> bool:
    """Whether all of the header is in quotes, as R writes it."""
    return all(re.fullmatch('"[^"]*"', cell) for cell in first_line(source).split(mark))


def _read_plain(source: Source, mark: str) -> Grid:
    raw = source.utf8
    raw = raw if raw.endswith(b"\n") else raw + b"\n"
    data, bare = (np.frombuffer(b, np.uint8) for b in (raw, raw.translate(None, mark.encode())))
    ends = np.flatnonzero(data == _NEWLINE)
    starts = np.concatenate([[0], ends[:-1] + 1])
    sizes = ends - starts
    n_marks = sizes + 1 - np.diff(np.flatnonzero(bare == _NEWLINE), prepend=-1)
    blank = sizes == n_marks
    for n in np.flatnonzero((n_marks == 0) & ~blank & (data[starts] == _SPACE)).tolist():
        blank[n] = not data[starts[n] : ends[n]].tobytes().strip()
    # Lines that start with `# ` and hold no delimiter
    long = (sizes >= 2) & (n_marks == 0)
    hash_space = (data[starts] == ord("#")) & (data[np.minimum(starts + 1, len(data) - 1)] == 32)
    comment = np.asarray(long & hash_space) | (blank & (n_marks == 0) & (sizes > 0))
    is_row = ~blank & ~comment
    rows = np.flatnonzero(is_row)
    if not len(rows):
        message = "the file holds no row: is the path right?"
        raise FormatError([Fault(message, file=source.name, kind="empty")])
    _check_widths(source.name, rows + 1, n_marks[rows] + 1, int(n_marks[rows[0]]) + 1)
    header = raw[starts[rows[0]] : ends[rows[0]]].decode("utf-8", "surrogatepass").split(mark)
    names = _names(header, source.name)
    # How many comment lines stand between each row and the one before it
    before = np.concatenate([[0], np.cumsum(comment)])[rows]
    gaps = np.diff(rows, prepend=-1) - np.diff(np.concatenate([[0], before])) > 1
    block_of = np.cumsum(gaps, dtype=np.int64)
    cells = raw if is_row.all() else data[np.repeat(is_row, sizes + 1)].tobytes()
    longest = int(sizes[rows].max())
    del bare, data
    source.release_text()
    table = _table_of(cells, names, mark, longest) if len(rows) > 1 else pa.table({})
    return Grid(source.name, table, rows[1:] + 1, block_of[1:])


def _table_of(lines: bytes, names: Sequence[str], mark: str, longest: int) -> pa.Table:
    """Read lines, a header first, whose cells are never quoted."""
    reader = pa_csv.open_csv(
        pa.BufferReader(lines),
        pa_csv.ReadOptions(
            column_names=names,
            skip_rows=1,
            block_size=max(_BLOCK, 2 * longest + 2),
            use_threads=False,
        ),
        pa_csv.ParseOptions(delimiter=mark, quote_char=False, double_quote=False),
        pa_csv.ConvertOptions(
            check_utf8=False, null_values=[], column_types=dict.fromkeys(names, pa.string())
        ),
    )
    if len(names) < _MANY:
        return reader.read_all()
    # Of many annotators few answer an item: most cells are empty, as those above and below are.
    runs = ([pc.run_end_encode(column) for column in batch.columns] for batch in reader)
    return pa.Table.from_batches([pa.record_batch(columns, list(names)) for columns in runs])


def csv_rows(
    value: str, file: str, mark: str = ",", quoting: Any = csv.QUOTE_MINIMAL, before: int = 0
) -> Iterator[tuple[int, int, list[str]]]:
    """Yield the rows of a table whose cells may be quoted, with their first and last lines."""
    # `before` lines of the file stand before the table
    lines = (found[0] for found in _LINE.finditer(value))
    reader = csv.reader(lines, delimiter=mark, strict=True, quoting=quoting)
    limit = csv.field_size_limit(2**31 - 1)  # texts are long
    last = before
    try:
        for row in reader:
            yield last + 1, before + reader.line_num, row
            last = before + reader.line_num
    except csv.Error as error:
        message = f"{error}: a quoted cell is not closed, or a quote inside a cell is not doubled"
        fault = Fault(message, file=file, line=before + reader.line_num, kind="quotes")
        raise FormatError([fault]) from None
    finally:
        csv.field_size_limit(limit)


def exact_rows(
    source: Source, delimiter: str | None = None
) -> tuple[str, list[str], list[tuple[int, list[str]]]]:
    """Return delimiter, names, and line and cells of every row, exactly as the file has them."""
    mark, value = read_delimiter(source, delimiter), source.exact_text.value
    declared = _DECLARED.match(value)
    if declared is not None:
        value = value[declared.end() :]
    # In a TSV quotes are part of the text, unless some cell shows that its writer quotes
    quotes = mark != "\t" or value.startswith('"') or _QUOTED.search(value) is not None
    quoting = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    is_guarded = mark == "," and is_marked(value)
    found = csv_rows(value, source.name, mark, quoting, int(declared is not None))
    rows = [
        (line, [unguard(cell) for cell in cells] if is_guarded else cells)
        for line, _, cells in found
        if any(cells)
    ]
    if len(rows) < 2:
        message = "there is a header but no row below it" if rows else "the file holds no row"
        raise FormatError([Fault(message, source.name, 1, kind="empty")])
    names = [name.strip() for name in rows[0][1]]
    # Spreadsheets leave columns at the end that have neither a name nor a cell.
    while names and not names[-1] and not any(any(cells[len(names) - 1 :]) for _, cells in rows):
        names.pop()
    rows = [
        (line, [*cells[: len(names)], *filter(None, cells[len(names) :])]) for line, cells in rows
    ]
    reject_twice(names, names, source.name)
    lines, widths = np.array([(line, len(cells)) for line, cells in rows[1:]], np.int64).T
    more = f"a text that holds the separator {mark!r} or a line end must be in double quotes"
    _check_widths(source.name, lines, widths, len(names), more)
    return mark, names, rows[1:]


def exact_grid(source: Source, delimiter: str | None = None) -> Grid:
    """Read a delimited table as `exact_rows` does."""
    _, names, rows = exact_rows(source, delimiter)
    line = np.array([n for n, _ in rows], np.int64)
    table = pa.Table.from_batches([_batch(names, [cells for _, cells in rows])])
    return Grid(source.name, table, line, np.zeros_like(line))


def _read_quoted(source: Source, mark: str) -> Grid:
    # In a quoted cell, such as a text, line ends stay what they are.
    whole = source.exact_text.value
    is_guarded = mark == "," and is_marked(whole)
    names: tuple[str, ...] = ()
    cells, batches = list[list[str]](), []
    lines, widths, blocks = array("q"), array("q"), array("q")
    block, was_blank = 0, False
    for _, line, row in csv_rows(whole, source.name, mark):
        if not any(row):
            was_blank = True
            continue
        if len(row) == 1 and row[0].startswith("# "):
            continue
        block += was_blank
        was_blank = False
        lines.append(line)
        widths.append(len(row))
        blocks.append(block)
        found = [unguard(cell) for cell in row] if is_guarded else row
        if not names:
            names = _names(found, source.name)
            continue
        if len(row) == len(names):
            cells.append(found)
        if len(cells) * len(names) >= _CELLS:
            batches.append(_batch(names, cells))
            cells.clear()
    if not lines:
        message = "the file holds no row: is the path right?"
        raise FormatError([Fault(message, file=source.name, kind="empty")])
    _check_widths(source.name, np.array(lines), np.array(widths), widths[0])
    batches.append(_batch(names, cells))
    places = np.array([lines, blocks], np.int64)[:, 1:]
    return Grid(source.name, pa.Table.from_batches(batches), places[0], places[1])


def _batch(names: Sequence[str], rows: Sequence[Sequence[str]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    arrays = [pa.array(column, pa.string()) for column in columns]
    return pa.record_batch(arrays, list(names))


def _names(header: Iterable[str], file: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in header)
    if max(map(len, names)) > MAX_CELL:
        message = f"a column name longer than {MAX_CELL} characters: is this a table?"
        raise FormatError([Fault(message, file=file, line=1, kind="long-cell")])
    reject_twice(names, names, file)
    return names


def reject_twice(names: Iterable[str], header: Sequence[str], file: str) -> None:
    """Reject a header that has one of some columns twice."""
    twice = sorted({name for name in names if header.count(name) > 1})
    if twice:
        message = f"columns {', '.join(map(repr, twice))} appear twice in the header"
        raise FormatError([Fault(message, file=file, line=1, kind="header")])


def _check_widths(
    file: str, lines: NDArray[np.int64], widths: NDArray[np.int64], width: int,
    more: str = "does a token hold the delimiter?",
) -> None:  # fmt: skip
    faults = []
    for n in np.flatnonzero(widths != width).tolist():
        hint = more if widths[n] > width else "is the row cut off?"
        message = f"{widths[n]} cells where the header has {width}: {hint}"
        faults.append(Fault(message, file=file, line=int(lines[n]), kind="ragged-row"))
    if faults:
        raise FormatError(faults)


def _check(grid: Grid) -> None:
    if not grid.n_rows:
        message = "there is a header but no row below it"
        raise FormatError([Fault(message, file=grid.name, line=1, kind="empty")])
    long = set[int]()
    for name in grid.header:
        sizes = pc.binary_length(grid.column(name))
        if name.lower() != TEXT and pc.max(sizes).as_py() > MAX_CELL:
            long.update(np.flatnonzero(pc.greater(sizes, MAX_CELL)).tolist())
    if long:
        message = f"a cell longer than {MAX_CELL} bytes: this is not a token, id or label"
        lines = np.asarray(grid.line)[sorted(long)].tolist()
        raise FormatError([Fault(message, grid.name, line, kind="long-cell") for line in lines])


# --------------------------------------------------------------------------------------------------
# CSV that people open in a spreadsheet, where no name, label or text must become a formula. As
# OWASP says ("CSV Injection"), an apostrophe goes before every text that a spreadsheet could take
# for a formula, and before one that would be taken for a guarded one. Where a cell of a table that
# goldspan reads again is guarded, the header says so: the name of the first column is quoted and
# the others are not (or the other way round). TSV and CoNLL are for programs and are not guarded.


FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""First characters for which a spreadsheet may take text for a formula, also of full width."""

_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)*(?:[eE][+-]?\d{1,3})?")
_MARKED = re.compile(r'"\w+"(?:,\w+)+|\w+(?:,"\w+")+')


def is_formula(cell: str) -> bool:
    """Return whether a spreadsheet could take a text, bare of apostrophes, for a formula."""
    bare = cell.lstrip("'")
    return bare.startswith(FORMULA) and not _NUMBER.fullmatch(bare)


def guard(cell: Any) -> Any:
    """Return a cell with an apostrophe before it, if it is text that could become a formula."""
    return f"'{cell}" if isinstance(cell, str) and is_formula(cell) else cell


def unguard(cell: str) -> str:
    """Return the text that `guard` was given."""
    return cell[1:] if cell[:1] == "'" and is_formula(cell) else cell


def any_formula(*cells: Iterable[str | None]) -> bool:
    """Return whether one of them could become a formula."""
    return any(cell and is_formula(cell) for some in cells for cell in some)


def marked(header: str) -> str:
    """Return the header line of a table with guarded cells."""
    first, comma, rest = header.partition(",")
    return f"{first[1:-1] if first[:1] == chr(34) else chr(34) + first + chr(34)}{comma}{rest}"


def is_marked(text: str) -> bool:
    """Return whether a table, given from its first line on, has guarded cells."""
    return _MARKED.fullmatch(text.partition("\n")[0].rstrip("\r")) is not None


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, raw: bool = False) -> str:
    """Write a table that goldspan reads again as CSV, with guarded cells and a marked header."""
    given = [list(row) for row in rows]
    kept = given if raw else [[guard(cell) for cell in row] for row in given]
    head = _line(columns)
    return "".join([head if kept == given else marked(head), *map(_line, kept)])


def sheet_text(
    columns: Sequence[str], rows: Iterable[Mapping[str, Any]], written: Sequence[str] | None = None
) -> str:
    """Write a table that is only looked at as CSV, a heading and a line per row."""
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
