"""Pools, labelled items and errors in files.

A pool is read from lines of text, a folder of texts, a table with a column of texts (CSV, TSV,
Parquet, a DataFrame), JSON, CoNLL, a table of attributes or any crowd. A text is exactly what the
file holds, without the end of its line. What looks like another format than its name says is
refused: no file is read as something else in silence.
"""

from __future__ import annotations

import csv
import difflib
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from goldspan.crowd import Crowd, read_crowd
from goldspan.crowd.builder import half_character, string_faults
from goldspan.crowd.formats.columns import frame_columns, parquet_table
from goldspan.crowd.grid import exact_rows, guess_delimiter, header_names, is_marked, unguard
from goldspan.crowd.source import Source, open_source
from goldspan.errors import Fault, FormatError, InputError, UnknownNameError
from goldspan.selection.base import Selection
from goldspan.selection.pool import IDS, Pool, PoolBuilder, joined, placed, starts_in
from goldspan.spans import tokenize
from goldspan.spans.text import RULES
from goldspan.tagger.streams import READERS, finite

TEXT, FOLDER, JSON, JSONL, CONLL = "text", "folder", "json", "jsonl", "conll"
TABLE, ATTRIBUTES, CROWD = "table", "attributes", "crowd"
FORMATS = (TEXT, FOLDER, TABLE, JSONL, JSON, CONLL, ATTRIBUTES, CROWD)
"""How a pool is read."""
TEXTS = (
    "text", "sentence", "content", "body", "message", "utterance", "paragraph", "snippet", "review",
    "tweet", "comment",
)  # fmt: skip
"""Columns that hold texts, in any case."""
TOKENS = ("tokens", "words")
"""Columns that hold lists of tokens."""
DOCUMENTS = ("document", "doc", "document_id", "doc_id")
"""Columns that hold the name of the document."""
CUTS = (*RULES, "given")
"""What `tokens` may be."""
_ENDINGS = {
    ".txt": TEXT, ".jsonl": JSONL, ".ndjson": JSONL, ".json": JSON, ".conll": CONLL,
    ".conllu": CONLL, ".bio": CONLL, ".iob": CONLL, ".csv": TABLE, ".tsv": TABLE, ".tab": TABLE,
}  # fmt: skip
_NAMING = "with pool.{0} in a plan, --{0}-column on the command line, or {0}=… in Python"
_SHOWN = 5


@dataclass(frozen=True, eq=False)
class PoolFile:
    """A pool as it was read."""

    pool: Pool
    # Of every item what its line held besides ids and words; empty for crowds
    fields: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    format: str = ""  # As what it was read
    # Names of the columns of a table or of JSON by role: text, tokens, id, document
    columns: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # What its requester should know
    # Whether items are known by their places in the file, for they have no ids
    numbered: bool = False


def read_pool(
    source: Any,
    format: str | None = None,  # noqa: A002 - users' word
    *,
    text: str | None = None,  # Name of the column with the texts, where it cannot be told
    id: str | None = None,  # noqa: A002 - users' word
    document: str | None = None,  # Name of the column with the documents that items are part of
    tokens: str | None = None,  # How texts are cut into tokens
    otherwise: str = "fine",
    max_decompressed: int | str | None = None,
) -> PoolFile:
    """Read a pool."""
    if tokens is not None and tokens not in CUTS:
        raise UnknownNameError("rule for tokens", tokens, CUTS)
    names = {"text": text, "id": id, "document": document}
    if format is not None and format not in FORMATS:
        raise UnknownNameError("format of a pool", format, FORMATS)
    is_named = isinstance(source, str | bytes | Source) or hasattr(source, "read")
    if not is_named and (hasattr(type(source), "columns") or hasattr(type(source), "column_names")):
        found = _of_columns(_frame(source), "<DataFrame>", names)
        return _made(found, tokens, otherwise)
    file = open_source(source, max_decompressed=max_decompressed)
    chosen = format or pool_format(file, text)
    given = ", ".join(role for role, name in names.items() if name is not None)
    if given and chosen in {ATTRIBUTES, CROWD, TEXT, FOLDER, CONLL}:
        message = (
            f"there are no columns to name in a pool of the format {chosen}: leave out {given}"
        )
        raise FormatError([Fault(message, file.name, kind="columns")])
    if chosen == ATTRIBUTES:
        return PoolFile(Pool.of(_attributes(file)), format=ATTRIBUTES)
    if chosen == CROWD:
        return PoolFile(Pool.of(_crowd(file)), format=CROWD)
    rows = {TEXT: _lines, FOLDER: _folder, CONLL: _conll}.get(chosen)
    if rows is not None:
        return _made(rows(file), tokens, otherwise)
    records = {TABLE: _table, JSONL: _json_lines, JSON: _json_array}[chosen](file)
    return _made(_of_columns(records, file.name, names, chosen), tokens, otherwise)


def pool_format(file: Source, text: str | None = None) -> str:
    """Return how a pool is read: by the ending of its name, if the content agrees."""
    if file.is_folder:
        return CROWD if _guessed(file) else FOLDER
    if file.is_parquet:
        return _table_or_crowd(_table(file), file, text)
    chosen = _ENDINGS.get(file.suffix)
    if chosen is None:
        chosen = _by_content(file)
    if chosen == TEXT:
        seen = not_lines(file)
        if seen is not None:
            message = (
                f"{seen[1]}, and not plain text: give the file that ending, or say the format "
                f'(pool.format = "{seen[0]}" in a plan, --format {seen[0]}); if every line is '
                f'an item all the same, the format is "{TEXT}"'
            )
            raise FormatError([Fault(message, file.name, kind="format")])
    if chosen == JSON and text is None and _guessed(file):
        return CROWD
    if chosen == TABLE and text is None and _is_conll(file.text.value.split("\n", 50)[:50]):
        return CROWD
    return _table_or_crowd(None, file, text) if chosen == TABLE else chosen


def not_lines(file: Source) -> tuple[str, str] | None:
    """Return what a plain text rather is: a format of a pool and what was seen; None if nothing."""
    value = file.text.value
    lines = value.split("\n", 50)[:50]
    first = next((line for line in lines if line.strip()), "").strip()
    if first[:1] == "{" and _is_json(first):
        return JSONL, "its first line is a JSON object (.jsonl)"
    if first[:1] == "[" and _is_json(value):
        return JSON, "it is a JSON array (.json)"
    if _is_conll(lines):
        return CONLL, "its lines are a token and its tag each (.conll)"
    if first.lower() in TEXTS:
        return TABLE, f"its first line is the name of a column, {first!r} (.csv)"
    try:
        rows = [row for row in csv.reader(lines[:20], delimiter=guess_delimiter(first)) if row]
    except csv.Error:
        return None
    names = [cell.strip().lower() for cell in rows[0]] if rows else []
    known = {*TEXTS, *IDS, *DOCUMENTS, "label", "labels", "category"}
    if len(names) > 1 and len(known & set(names)) and all(len(name) < 40 for name in names):
        even = [row for row in rows[:-1] if len(row) == len(names)]  # the last one may be cut
        if len(even) >= len(rows[:-1]):
            return TABLE, f"its first line names columns, {', '.join(map(repr, rows[0]))} (.csv)"
    return None


def read_errors(source: Any) -> dict[str, float]:
    """Read where a model is wrong: a CSV table with a column item, and one called error."""
    file = open_source(source)
    rows, is_guarded = csv.DictReader(io.StringIO(file.text.value)), is_marked(file.text.value)
    names = [name.strip().lower() for name in rows.fieldnames or []]
    rows.fieldnames = names
    key = next((name for name in IDS if name in names), None)
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


def selection_lines(selection: Selection, fields: tuple[Mapping[str, Any], ...]) -> Iterator[str]:
    """Yield a selection as JSON lines: item, words or attributes, and `select` with the reasons."""
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


class _Row(NamedTuple):
    """An item before it is cut."""

    name: str
    place: Fault  # Where it is in the file, for messages
    text: str | None = None  # Its text, or None
    tokens: list[str] | None = None  # Its tokens, or None
    starts: list[int] | None = None  # First character of every token in the text, or None
    document: str | None = None  # Name of its document, or None
    fields: Mapping[str, Any] = {}
    attributes: Mapping[str, Any] = {}  # What of it is kept with the item


class _Rows(NamedTuple):
    """The items of a file, and how they were found there."""

    rows: Iterable[_Row]  # The items, read as they are asked for where the format allows it
    format: str  # As what the file was read
    columns: Mapping[str, str] = {}  # Names of the columns by role
    notes: tuple[str, ...] = ()  # What was found out
    numbered: bool | None = False  # Whether items are known by their places
    # Told the number of documents and of items whether documents say nothing
    drop: Callable[[int, int], bool] = lambda *_: False


class _Records(NamedTuple):
    """A table or JSON: rows of cells by the names of columns, and the place of each."""

    names: list[str]
    rows: Sequence[Mapping[str, Any]]
    places: Sequence[Fault]
    notes: tuple[str, ...] = ()


def _made(found: _Rows, rule: str | None, otherwise: str) -> PoolFile:
    """Cut the texts into tokens, and leave out what has none."""
    items, fields = PoolBuilder(), []
    faults: list[Fault] = []
    empty: list[str] = []
    n_made, numbered = 0, True
    for number, row in enumerate(found.rows, start=1):
        numbered = numbered and row.name == str(number)
        try:
            text, words, starts = _cut(row, rule, otherwise)
        except InputError as error:
            faults.append(replace(row.place, message=str(error), item=row.name, kind="tokens"))
            continue
        if words:
            items.add(row.name, words, starts, text, row.document, row.attributes)
            fields.append(row.fields)
            n_made += row.text is None
        else:
            empty.append(row.name)
    if faults:
        raise FormatError(faults, "the pool is refused")
    notes = list(found.notes)
    if empty:
        more = f" and {len(empty) - _SHOWN} more" if len(empty) > _SHOWN else ""
        shown = f"{', '.join(empty[:_SHOWN])}{more}"
        notes.append(f"{len(empty)} items are empty, with nothing to label, and left out: {shown}")
    if n_made:
        notes.append(
            f"{n_made} items have tokens and no text: their texts are the tokens with a blank "
            "between two"
        )
    return PoolFile(
        items.build(found.drop), tuple(fields), found.format, found.columns, tuple(notes),
        numbered if found.numbered is None else found.numbered,
    )  # fmt: skip


def _cut(row: _Row, rule: str | None, otherwise: str) -> tuple[str, list[str], list[int]]:
    """Return an item's text, its tokens and where each begins."""
    for name, value in (("text", row.text), ("id", row.name), ("document", row.document)):
        if string_faults({name: value}):
            raise InputError(f"the {name} {half_character(str(value))}")
    if row.tokens is None or (rule is not None and rule != "given"):
        if rule == "given":
            raise InputError("there are no tokens, and the tokens are to be the given ones")
        text = joined(row.tokens or [])[0] if row.text is None else row.text
        bounds = tokenize(text, rule or otherwise)
        return text, [text[a:b] for a, b in bounds], [a for a, _ in bounds]
    if row.text is not None and otherwise == "fine":
        try:
            return row.text, row.tokens, starts_in(row.text, row.tokens, row.starts)
        except InputError as error:
            raise InputError(
                f'the text does not hold its tokens: {error}; tokens "fine" cut the text again '
                '(task.tokens = "fine" in a plan), or leave the text out'
            ) from None
    text, starts = placed(row.tokens, row.text, row.starts)
    return text, row.tokens, starts


def _lines(file: Source) -> _Rows:
    """Read a line per item; blank lines separate documents, where there are any."""

    def rows() -> Iterator[_Row]:
        block, was_blank = 0, True
        for number, line in enumerate(file.stream(), start=1):
            if not line.strip():
                was_blank = True
                continue
            block += was_blank
            was_blank = False
            place = Fault("", file.name, number)
            yield _Row(str(number), place, line.removesuffix("\n"), document=str(block))

    def is_one(n_documents: int, _: int) -> bool:
        return n_documents < 2

    return _Rows(rows(), TEXT, notes=_said(file), numbered=True, drop=is_one)


def _folder(file: Source) -> _Rows:
    """Read a `.txt` file per item."""
    rows, others = [], []
    for path, one in file.sorted_files():
        if one.suffix != ".txt":
            others.append(path)
            continue
        place = Fault("", one.name)
        value = one.exact_text.value if one.data.strip(b"\xef\xbb\xbf\r\n\t ") else ""
        end = 2 if value.endswith("\r\n") else value.endswith(("\n", "\r"))
        name = str(PurePosixPath(path.removesuffix(".gz")).with_suffix(""))
        rows.append(_Row(name, place, value[: len(value) - end], document=name))
    if not rows:
        seen = ", ".join(others[:_SHOWN]) or "nothing"
        message = f"the folder has no .txt file, and is none of a crowd; it has {seen}"
        raise FormatError([Fault(message, file.name, kind="format")])
    notes: tuple[str, ...] = ()
    if others:
        shown = ", ".join(others[:_SHOWN]) + (" …" if len(others) > _SHOWN else "")
        notes = (f"{len(others)} files that are not .txt are left out: {shown}",)
    return _Rows(rows, FOLDER, notes=notes)


def _conll(file: Source) -> _Rows:
    def rows() -> Iterator[_Row]:
        for item in READERS[CONLL](file.stream(), file.name, "fine"):
            starts = [a for a, _ in item.bounds] or None
            place, document = Fault("", file.name), str(item.document)
            yield _Row(item.name, place, item.text or None, item.words, starts, document)

    return _Rows(rows(), CONLL, notes=_said(file), numbered=None, drop=int.__eq__)


def _of_columns(
    records: _Records, name: str, asked: Mapping[str, str | None], kind: str = TABLE
) -> _Rows:
    """Find the columns of the roles, and make items of rows."""
    roles = _roles(records, name, asked, kind)
    rows, faults = [], []
    for number, (cells, place) in enumerate(
        zip(records.rows, records.places, strict=True), start=1
    ):
        found = _row_of(cells, place, roles, number, kind)
        if isinstance(found, str):
            faults.append(replace(place, message=found, kind="columns"))
        else:
            rows.append(found)
    if faults:
        raise FormatError(faults, "the pool is refused")
    nested = sorted({
        key for row in rows for key, value in row.fields.items() if isinstance(value, list | dict)
    } - {*roles.values(), "token_start"})  # fmt: skip
    notes = records.notes
    if nested:
        notes = (*notes, f"lists are not attributes, and are left out: {', '.join(nested)}")
    if "id" not in roles and (like := _like_ids(records, roles)):
        how = _NAMING.format("id")
        notes = (*notes, f"items have their rows' numbers; if {like!r} has ids, name it {how}")
    return _Rows(rows, kind, roles, notes, numbered="id" not in roles)


def _like_ids(records: _Records, roles: Mapping[str, str]) -> str:
    """Return the first column of which every cell is another word or whole number, "" for none."""
    for name in (one for one in records.names if one not in roles.values()):
        cells = {str(row.get(name, "")).strip() for row in records.rows}
        if len(cells) == len(records.rows) > 1 and all(c and " " not in c for c in cells):
            return name
    return ""


def _roles(
    records: _Records, file: str, asked: Mapping[str, str | None], kind: str
) -> dict[str, str]:
    names = records.names
    listed = ", ".join(map(repr, names)) or "none"
    found: dict[str, str] = {}
    for role, name in asked.items():
        if name is None:
            continue
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            message = f"there is no column {name!r}{hint}: the columns are {listed}"
            raise FormatError([Fault(message, file, kind="columns")])
        found[role] = name
    lists = [
        name for name in names
        if name.lower() in TOKENS and any(isinstance(row.get(name), list) for row in records.rows)
    ]  # fmt: skip
    if lists:
        found["tokens"] = lists[0]
    if "text" not in found:
        found |= _text_role(names, file, kind, has_tokens=bool(lists))
    usual = {"id": IDS if kind == TABLE else ("item", "id"), "document": DOCUMENTS}
    for role, known in usual.items():
        if role not in found:
            lower = {n.strip().lower(): n for n in reversed(names) if n not in found.values()}
            match = next((lower[one] for one in known if one in lower), None)
            if match is not None:
                found[role] = match
    return found


def _text_role(names: Sequence[str], file: str, kind: str, *, has_tokens: bool) -> dict[str, str]:
    """Find the column of the texts by its name."""
    texts = [name for name in names if name.strip().lower() in TEXTS]
    if kind != TABLE and "text" in texts:
        texts = ["text"]
    if len(texts) == 1 or (has_tokens and not texts):
        return {"text": texts[0]} if texts else {}
    listed = ", ".join(map(repr, names)) or "none"
    if texts:
        what = (
            f"any of the columns {', '.join(map(repr, texts))} may be the text (all are {listed})"
        )
    else:
        what = f"no column is known to hold the texts (the columns are {listed})"
    message = f"{what}: name it {_NAMING.format('text')}"
    if kind == TABLE and not texts:
        message += (
            f'; a table without texts is read with pool.format = "{ATTRIBUTES}" in a plan, with '
            f"--{ATTRIBUTES} in goldspan select"
        )
    raise FormatError([Fault(message, file, 1, kind="columns")])


def _row_of(
    cells: Mapping[str, Any], place: Fault, roles: Mapping[str, str], number: int, kind: str
) -> _Row | str:
    """Return a row's item, or what is wrong with it."""
    # A column may have no name, such as that of the index that pandas writes.
    text, tokens, where = (
        cells.get(roles[role]) if role in roles else None for role in ("text", "tokens", "document")
    )
    starts = cells.get("token_start")
    if tokens is not None:
        if isinstance(tokens, list) and all(isinstance(one, dict) for one in tokens):
            starts = [one.get("start") for one in tokens]
            tokens = [one.get("text") for one in tokens]
        if not isinstance(tokens, list) or not all(isinstance(one, str) for one in tokens):
            return f"{roles['tokens']} must be a list of strings, not {_short(tokens)}"
    if isinstance(starts, list) and not all(type(one) is int for one in starts):
        starts = None
    if text is None and tokens is None and kind == TABLE:
        text = ""
    if (text is None and tokens is None) or not isinstance(text, str | None):
        wanted = " or ".join(roles[role] for role in ("text", "tokens") if role in roles)
        seen = "" if text is None else f", not {_short(text)}"
        return f"it needs {wanted}: a string or a list of tokens{seen}"
    name = str(number) if kind != JSONL else str(place.line)
    if "id" in roles:
        given = cells.get(roles["id"])
        if kind == TABLE and (given is None or given == "" or given != given):  # noqa: PLR0124
            return f"column {roles['id']}, row {number}: an item has no id"
        name = name if given is None else str(given)
    special = {roles.get(role) for role in ("text", "tokens", "id", "document")}
    used = {roles.get("text"), "item"} if kind != TABLE else special
    fields = {key: value for key, value in cells.items() if key not in used}
    facts = {
        key: value
        for key, value in fields.items()
        if key not in special and isinstance(value, str | int | float | bool) and value != ""
    }
    return _Row(
        name, place, text, tokens, starts if isinstance(starts, list) else None,
        None if where in {None, ""} else str(where), fields, facts,
    )  # fmt: skip


def _table(file: Source) -> _Records:
    """Read CSV, TSV or Parquet; cells of CSV and TSV are strings, exactly as they are."""
    if file.is_parquet:
        return _of_arrow(parquet_table(file), file.name)
    if file.is_folder:
        message = "this is a folder or an archive of files; a table is a single file"
        raise FormatError([Fault(message, file.name, kind="folder")])
    mark, names, rows = exact_rows(file)
    records = [dict(zip(names, cells, strict=True)) for _, cells in rows]
    places = [Fault("", file.name, line) for line, _ in rows]
    notes = () if mark in ",\t" else (f"cells are separated by {mark!r}",)
    return _Records(names, records, places, (*_said(file), *notes))


def _of_arrow(table: pa.Table, name: str) -> _Records:
    try:
        rows = table.to_pylist()
    except (pa.ArrowException, ValueError) as error:
        raise InputError(f"{name} cannot be read: {error}") from None
    names = [str(key) for key in table.column_names]
    places = [Fault("", name, item=f"row {n}") for n in range(1, len(rows) + 1)]
    return _Records(names, [{key: _plain(row[key]) for key in row} for row in rows], places)


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold."""
    if isinstance(value, bool | int | str | list | dict) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)


def _json_lines(file: Source) -> _Records:
    """Read an object per line."""
    rows, places = [], []
    for number, line in enumerate(file.text.value.split("\n"), start=1):
        if line.strip():
            rows.append(_json(line, file.name, number))
            places.append(Fault("", file.name, number))
    if rows and isinstance(rows[0], list) and len(rows) == 1:
        return _objects(rows[0], file)
    return _checked_records(rows, places, _said(file))


def _json_array(file: Source) -> _Records:
    """Read a list of objects."""
    found = _json(file.text.value, file.name, 0)
    if isinstance(found, dict):
        lists = [key for key, value in found.items() if isinstance(value, list)]
        message = "it holds one object, and a pool is a list of objects" + (
            f": take the list {lists[0]!r} out of it" if len(lists) == 1 else ""
        )
        raise FormatError([Fault(message, file.name, kind="format")])
    return _objects(found, file)


def _objects(found: Any, file: Source) -> _Records:
    places = [Fault("", file.name)] * len(found) if isinstance(found, list) else []
    return _checked_records(found, places, _said(file))


def _json(text: str, name: str, line: int) -> Any:
    try:
        return json.loads(text, parse_constant=lambda _: None, parse_float=finite)
    except (ValueError, RecursionError) as error:
        raise FormatError([Fault(f"this is not JSON: {error}", name, line)]) from None


def _checked_records(rows: Any, places: list[Fault], notes: tuple[str, ...]) -> _Records:
    wrong = [
        replace(place, message=f"an item must be an object, not {_short(row)}", kind="format")
        for row, place in zip(rows, places, strict=True)
        if not isinstance(row, dict)
    ]
    if wrong:
        raise FormatError(wrong)
    return _Records(list(dict.fromkeys(key for row in rows for key in row)), rows, places, notes)


def _frame(frame: Any) -> _Records:
    """Take a DataFrame of any make, or a data set of `datasets`."""
    if hasattr(frame, "with_format"):  # of `datasets`, which Narwhals does not know
        return _of_arrow(frame.with_format("arrow")[:], "<Dataset>")
    return _of_arrow(frame_columns(frame, lambda names: names), "<DataFrame>")


def _table_or_crowd(records: _Records | None, file: Source, text: str | None) -> str:
    """Tell a table of texts from the tables that are crowds."""
    from goldspan.crowd.formats import mturk, wide
    from goldspan.crowd.formats.long import ROLES

    if text is not None:
        return TABLE
    if records is None:
        if wide.sniff(file) or mturk.sniff(file):
            return CROWD
        names = header_names(file)
    else:
        from goldspan.crowd.formats import datasets, span_table, tag_columns

        # Whether a Parquet file has annotations: goldspan's, spans, or a tag for each token
        table = parquet_table(file)
        header = table.column_names
        if (
            bool({b"goldspan", b"goldspan.tags"} & {*(table.schema.metadata or {})})
            or datasets.is_ours(header)
            or span_table.has_spans(header)
            or tag_columns.has_tags(table)
        ):
            return CROWD
        names = records.names
    lower = {name.lower() for name in names}
    has = {role for role, known in ROLES.items() if lower & set(known)}
    is_long, guessed = {"item", "label"} <= has, _guessed(file)
    if not lower & {*TEXTS, *TOKENS}:
        return CROWD if is_long or guessed else TABLE
    if guessed not in {None, "long", "parquet", "conll"}:
        return CROWD
    if not is_long or not {"worker", "token"} & has:
        return TABLE
    if "token" in has or lower & {*ROLES["worker"]} - {"user"}:
        return CROWD
    # Many texts come with their authors: answers are several of an item.
    rows = (records or _table(file)).rows
    key = next(name for name in names if name.lower() in ROLES["item"])
    return CROWD if len({row[key] for row in rows}) < len(rows) else TABLE


def _by_content(file: Source) -> str:
    """Return what a file without a telling name is."""
    value = file.text.value.lstrip()
    if value[:1] == "[" and _is_json(value):
        return JSON
    if _guessed(file):
        return CROWD
    if value[:1] == "{":
        return JSONL
    seen = not_lines(file)
    if seen is not None:
        return seen[0]
    message = (
        f"the format is not recognised by the name: say it (pool.format in a plan, --format): "
        f"{', '.join(FORMATS)}"
    )
    raise FormatError([Fault(message, file.name, kind="format")])


def _guessed(file: Source) -> str | None:
    from goldspan.crowd.detection import guess_format

    try:
        name = guess_format(file)
    except InputError:
        return None
    # Their endings make these guesses, for better messages; the content does not.
    if name in {"spans", "json-labels"} and file.suffix in {".json", ".jsonl"}:
        from goldspan.crowd.registry import get_format

        return name if get_format(name).sniff(file) else None
    return name


_TAG = re.compile(r"(?:O|[BIESLUM]-\S+)")


def _is_conll(lines: Sequence[str]) -> bool:
    """Return whether lines are a token and a tag each."""
    rows = [line.split() for line in lines[:-1] or lines if line.strip() and line[:2] != "# "]
    rows = [row for row in rows if row[0] != "-DOCSTART-"]
    tagged = [len(row) > 1 and _TAG.fullmatch(row[-1]) for row in rows]
    return bool(rows) and all(tagged) and len({len(row) for row in rows}) == 1


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _said(file: Source) -> tuple[str, ...]:
    """Return what was found out about the encoding of a file."""
    return tuple(note for note in file.text.notes if "not UTF-8" in note)


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}…"


def _crowd(file: Source) -> Crowd:
    try:
        return read_crowd(file, tokens="words", cut="expand", unlabelled="keep")
    except FormatError as error:
        hint = (
            f'a table with a row per item is read with pool.format = "{ATTRIBUTES}" in a plan, '
            f"with --{ATTRIBUTES} in goldspan select; texts by their format: "
            f"{', '.join(one for one in FORMATS if one not in {ATTRIBUTES, CROWD})}"
        )
        if all(fault.kind == "format" for fault in error.faults):  # crowds' formats are no help
            raise FormatError([Fault(f"it is not a crowd; {hint}", file.name)]) from None
        raise FormatError(error.faults, f"{error.headline or 'no crowd'}; {hint}") from None


def _attributes(file: Source) -> pa.Table:
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
        raise InputError(f"{file.name} is not a table of attributes: {error}") from None
