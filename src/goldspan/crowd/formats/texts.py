"""Texts to label: items that nobody has answered.

They are lines of a `.txt` file (blank lines separate documents), the `.txt` files of a folder, or a
column of texts or of tokens in a table (CSV, TSV, Parquet, a DataFrame) or in JSON. A text is
exactly what the file holds, without the end of its line. Other columns are attributes. What looks
like another format than its name says is refused: no file is read as texts for want of a better
reading.
"""

from __future__ import annotations

import difflib
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, repeat
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from goldspan.crowd.builder import half_character, string_faults
from goldspan.crowd.formats.columns import frame_columns, parquet_table
from goldspan.crowd.formats.conll import sniff as is_conll
from goldspan.crowd.formats.json_records import first_objects, read_records, shown
from goldspan.crowd.formats.span_crowd import settle_attributes
from goldspan.crowd.formats.span_exports import as_json
from goldspan.crowd.formats.tag_columns import TOKENS
from goldspan.crowd.grid import exact_rows, header_names
from goldspan.crowd.guessing import ANSWERS, TEXTS, guesses, peek
from goldspan.crowd.model import Answers, Crowd, list_array
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import ImportReport, Source
from goldspan.errors import Fault, FormatError, InputError
from goldspan.spans import Codec, tokenize
from goldspan.spans.text import locate

TEXT, FOLDER, TABLE, JSONL, JSON = KINDS = ("text", "folder", "table", "jsonl", "json")
"""The forms of a file of texts, which may be named as its format."""
IDS = ("item", "id", "task", "item_id", "task_id")
"""Columns of a table that hold the items' ids."""
_DOCUMENTS = ("document", "doc", "document_id", "doc_id")
ENDINGS = {
    ".txt": TEXT, ".jsonl": JSONL, ".ndjson": JSONL, ".json": JSON,
    ".csv": TABLE, ".tsv": TABLE, ".tab": TABLE,
}  # fmt: skip
"""The form of a file by the ending of its name."""
_OPTIONS = {"item": "id", "doc": "document", "text": "text"}
_NAMING = "with pool.{0} in a plan, --{0}-column on the command line, or {0}=… in Python"
_SHOWN = 5
_LABELS = ("spans", "entities", "labels", "answers", "gold")
"""Fields whose lists are labels, also where they are empty."""


def sniff(source: Source) -> bool:
    """Return whether there are lines of a `.txt` file, or a column known to hold texts."""
    if source.is_folder:
        are_texts = [one.suffix == ".txt" for one in (source.files or {}).values()]
        return 2 * sum(are_texts) > len(are_texts)
    if source.is_parquet:
        return False  # `detection` looks at the columns of tables that are read already
    if source.suffix == ".txt":
        return not_lines(source) is None
    found = first_objects(source)
    if found:
        # What else looks like labels is for `json-labels`, which is tried before
        lists = [isinstance(one.get(key), list) for one in found for key in _LABELS]
        return all(map(_text_key, found)) and not any(lists)
    return bool({name.lower() for name in header_names(source)} & {*TEXTS})


def are_wanted(source: Source, options: ReadOptions) -> bool:
    """Return whether a reader that wants texts takes a file as such, whatever else is in it.

    Raises:
        FormatError: It is a `.txt` file that holds something else than lines of text.
    """
    if "text" in options.columns:
        return True
    if source.is_folder or source.is_parquet:
        return False
    if source.suffix == ".txt":
        reject_other_lines(source)
        return True
    found = first_objects(source, unless="goldspan")
    is_array = bool(found) and source.text.value.lstrip()[:1] == "["
    return bool(found) and not is_array and bool(_text_key(found[0]))


def has_texts(schema: pa.Schema) -> bool:
    """Return whether a table has a column of texts, or of lists of tokens, by its name."""
    return any(
        pa.types.is_list(one.type) or pa.types.is_large_list(one.type)
        if one.name.lower() in TOKENS
        else one.name.lower() in TEXTS
        for one in schema
    )


def _text_key(record: dict[str, Any]) -> str:
    """Return the first field of a record that holds a text or a list of tokens, "" for none."""
    for name, value in record.items():
        if isinstance(value, str) and name.lower() in TEXTS:
            return name
        if isinstance(value, list) and name.lower() in TOKENS:
            return name
    return ""


def not_lines(source: Source) -> tuple[str, str] | None:
    """Return what a plain text rather is: its format and what was seen; None if nothing."""
    lines = source.text.value.split("\n", 50)[:50]
    first = next((line for line in lines if line.strip()), "").strip()
    if first[:1] in {"{", "["} and first_objects(source):
        if first[:1] == "{":
            return JSONL, "its first line is a JSON object (.jsonl)"
        return JSON, "it is a JSON array (.json)"
    if is_conll(source):
        return "conll", "its lines are a token and its tag each (.conll)"
    if re.fullmatch(r'("[^"]*" )+"[^"]*"', first):
        return "long", "its lines are quoted cells, as R writes tables (--delimiter ' ', or .csv)"
    if first.lower() in TEXTS:
        return TABLE, f"its first line is the name of a column, {first!r} (.csv)"
    table = peek(source)
    if table is None:
        return None
    names = [one.name for one in table.columns]
    if any(guess.is_sure for guess in guesses(table)) or {"token", "word"} & {*names}:
        return "crowd", "its lines look like a table of answers (.csv)"
    known = {*TEXTS, *IDS, *_DOCUMENTS, "label", "labels", "category"}
    if known & {name.lower() for name in names} and all(len(name) < 40 for name in names):
        return TABLE, f"its first line names columns, {', '.join(map(repr, names))} (.csv)"
    return None


def reject_other_lines(source: Source) -> None:
    """Reject a `.txt` file that is something else than lines of text."""
    seen = not_lines(source)
    if seen is not None:
        message = (
            f"{seen[1]}, and not plain text: give the file that ending, or say the format "
            f'(pool.format = "{seen[0]}" in a plan, --format {seen[0]}); if every line is '
            f'an item all the same, the format is "{TEXT}"'
        )
        raise FormatError([Fault(message, source.name, kind="format")])


def read(
    source: Source, options: ReadOptions, rule: str | None = None, kind: str | None = None
) -> Crowd:
    """Read texts, of one of `KINDS` if its name does not say so.

    With a `rule` also those are cut whose tokens the file gives; "given" cuts none.
    """
    kind = kind or _kind(source)
    if kind in {TEXT, FOLDER}:
        reject_columns(options.columns, kind, source)
    if kind == TEXT:
        return of_rows(
            source, _lines(source), options, rule, notes=said(source), drop=lambda n, _: n < 2
        )
    if kind == FOLDER:
        rows, notes = _files(source)
        return of_rows(source, rows, options, rule, notes=notes)
    columns = (_json if kind in {JSON, JSONL} else _table)(source, options)
    columns = columns._replace(roles=_roles(columns, source.name, options))
    return of_rows(source, _rows(columns), options, rule, notes=columns.notes, columns=columns)


def reject_columns(columns: Mapping[str, str], name: str, source: Source) -> None:
    """Reject columns that are named where the format has none to name."""
    if columns:
        given = ", ".join(_OPTIONS.get(role, role) for role in columns)
        message = f"there are no columns to name in a pool of the format {name}: leave out {given}"
        raise FormatError([Fault(message, source.name, kind="columns")])


def is_numbered(crowd: Crowd) -> bool:
    """Return whether items are known by their places in a file: they have no ids there."""
    report, names = crowd.import_report, crowd.item_ids
    if report.format != "texts" or "item" in report.columns:
        return False
    are_files = crowd.groups is not None and crowd.groups.equals(names)
    return not are_files and all(name.isdecimal() for name in names.to_pylist())


def _kind(source: Source) -> str:
    """Return the form of the file: as its name says, if it is nothing else."""
    if source.is_folder:
        return FOLDER
    if source.table is not None or source.is_parquet:
        return TABLE
    kind = ENDINGS.get(source.suffix)
    if kind == TEXT:
        reject_other_lines(source)
    return kind or {"[": JSON, "{": JSONL}.get(source.text.value.lstrip()[:1], TABLE)


def said(source: Source) -> tuple[str, ...]:
    """Return what was found out about the encoding of a file."""
    return tuple(note for note in source.text.notes if "not UTF-8" in note)


# --------------------------------------------------------------------------------------------------
# Items as they stand in a file, one after the other.


class Row(NamedTuple):
    """An item before its text is cut."""

    name: str
    place: Fault  # Where it is in the file, for messages
    text: str | None = None
    tokens: list[str] | None = None
    starts: list[int] | None = None  # First character of every token in the text
    document: str | None = None


def _lines(source: Source) -> Iterator[Row]:
    """Yield a line per item; blank lines separate documents, where there are any."""
    block, was_blank = 0, True
    for number, line in enumerate(source.stream(), start=1):
        if line.strip():
            block += was_blank
            place = Fault("", source.name, number)
            yield Row(str(number), place, line.removesuffix("\n"), document=str(block))
        was_blank = not line.strip()


def _files(source: Source) -> tuple[list[Row], list[str]]:
    """Return a `.txt` file per item, and a note of the others."""
    rows, others = [], []
    for path, one in source.sorted_files():
        if one.suffix != ".txt":
            others.append(path)
            continue
        value = one.exact_text.value if one.data.strip(b"\xef\xbb\xbf\r\n\t ") else ""
        end = 2 if value.endswith("\r\n") else value.endswith(("\n", "\r"))
        name = str(PurePosixPath(path.removesuffix(".gz")).with_suffix(""))
        rows.append(Row(name, Fault("", one.name), value[: len(value) - end], document=name))
    if not rows:
        seen = _first(others) or "nothing"
        message = f"the folder has no .txt file, and is none of a crowd; it has {seen}"
        raise FormatError([Fault(message, source.name, kind="format")])
    left = f"{len(others)} files that are not .txt are left out: {_first(others)}"
    return rows, [left] if others else []


def _first(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


class _Columns(NamedTuple):
    """A table, or the fields of JSON objects."""

    names: list[str]
    column: Callable[[str], Sequence[Any]]  # The cells of a column, None where there is none
    place: Callable[[int], Fault]  # Where a row is, from 0
    n_rows: int
    kind: str = TABLE
    notes: tuple[str, ...] = ()
    roles: Mapping[str, str] = {}  # The columns of the roles, once they are found


def _table(source: Source, options: ReadOptions) -> _Columns:
    """Read CSV, TSV, Parquet or a DataFrame; cells of CSV and TSV are exactly as they are."""
    if source.table is None and not source.is_parquet:
        mark, names, rows = exact_rows(source, options.delimiter)
        notes = () if mark in ",\t" else (f"cells are separated by {mark!r}",)
        return _Columns(
            names,
            lambda name: [cells[names.index(name)] for _, cells in rows],
            lambda n: Fault("", source.name, rows[n][0]),
            len(rows),
            notes=(*said(source), *notes),
        )
    table = source.table
    if table is None:
        table = parquet_table(source)
    elif hasattr(table, "with_format"):  # of `datasets`, which Narwhals does not know
        table = table.with_format("arrow")[:]
    elif not isinstance(table, pa.Table):
        table = frame_columns(table, lambda names: names)
    names = [str(name) for name in table.column_names]

    def column(name: str) -> list[Any]:
        try:
            return [as_json(cell) for cell in table.column(names.index(name)).to_pylist()]
        except (pa.ArrowException, ValueError) as error:
            raise InputError(f"{source.name} cannot be read: {error}") from None

    return _Columns(
        names, column, lambda n: Fault("", source.name, item=f"row {n + 1}"), table.num_rows
    )


def _json(source: Source, options: ReadOptions) -> _Columns:
    """Read an object per line, or a list of objects."""
    faults: list[Fault] = []
    rows = list(read_records(source, faults, options.progress))
    if faults:
        raise FormatError(faults)
    lists = [key for key, value in rows[0].value.items() if isinstance(value, list)] if rows else []
    if len(rows) == 1 and source.suffix == ".json" and not _text_key(rows[0].value):
        more = f": take the list {lists[0]!r} out of it" if len(lists) == 1 else ""
        message = f"it holds one object, and a pool is a list of objects{more}"
        raise FormatError([Fault(message, source.name, kind="format")])
    is_array = source.text.value.lstrip()[:1] == "["
    return _Columns(
        list(dict.fromkeys(key for row in rows for key in row.value)),
        lambda name: [row.value.get(name) for row in rows],
        lambda n: Fault("", source.name, rows[n].line),
        len(rows),
        JSON if is_array else JSONL,
        said(source),
    )


# --------------------------------------------------------------------------------------------------
# The columns of the roles.


def _roles(columns: _Columns, file: str, options: ReadOptions) -> dict[str, str]:
    names, listed = columns.names, ", ".join(map(repr, columns.names)) or "none"
    found: dict[str, str] = {}
    for role, name in options.columns.items():
        if role not in _OPTIONS:
            message = f"texts have no column for {role}: name those of text, item and doc"
            raise FormatError([Fault(message, file, kind="columns")])
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            message = f"there is no column {name!r}{hint}: the columns are {listed}"
            raise FormatError([Fault(message, file, kind="columns")])
        found[role] = name
    for name in names:
        if name.lower() in TOKENS and any(isinstance(c, list) for c in columns.column(name)):
            found["token"] = name
            break
    if "text" not in found:
        found |= _text_role(columns, file, listed, has_tokens="token" in found)
    ids = IDS if columns.kind == TABLE else IDS[:2]
    for role, usual in (("item", ids), ("doc", _DOCUMENTS)):
        if role not in found:
            lower = {n.strip().lower(): n for n in reversed(names) if n not in found.values()}
            match = next((lower[one] for one in usual if one in lower), None)
            if match is not None:
                found[role] = match
    return found


def _text_role(columns: _Columns, file: str, listed: str, *, has_tokens: bool) -> dict[str, str]:
    """Find the column of the texts by its name."""
    texts = [name for name in columns.names if name.strip().lower() in TEXTS]
    if columns.kind != TABLE and "text" in texts:
        texts = ["text"]
    if len(texts) == 1 or (has_tokens and not texts):
        return {"text": texts[0]} if texts else {}
    what = f"any of the columns {', '.join(map(repr, texts))} may be the text (all are {listed})"
    if not texts:
        what = f"no column is known to hold the texts (the columns are {listed})"
    message = f"{what}: name it {_NAMING.format('text')}"
    if columns.kind == TABLE and not texts:
        message += (
            '; a table without texts is read with pool.format = "attributes" in a plan, with '
            f"--attributes in goldspan select; {ANSWERS}"
        )
    raise FormatError([Fault(message, file, 1, kind="columns")])


def _rows(columns: _Columns) -> Iterator[Row]:
    """Yield the items of a table or of JSON; raise for all rows that are none at the end."""
    roles = columns.roles
    each = [
        columns.column(roles[role]) if role in roles else repeat(None)
        for role in ("item", "text", "token", "doc")
    ]
    starts = columns.column("token_start") if "token_start" in columns.names else repeat(None)
    faults: list[Fault] = []
    for n, cells in zip(range(columns.n_rows), zip(*each, starts, strict=False), strict=False):
        found = _row(columns, n, *cells)
        if isinstance(found, Fault):
            faults.append(found)
        else:
            yield found
    if faults:
        raise FormatError(faults, "the pool is refused")


def _row(
    columns: _Columns, n: int, item: Any, text: Any, tokens: Any, document: Any, starts: Any,
) -> Row | Fault:  # fmt: skip
    """Return a row's item, or what is wrong with it."""
    place, is_table, roles = columns.place(n), columns.kind == TABLE, columns.roles
    if isinstance(tokens, list) and tokens and all(isinstance(one, dict) for one in tokens):
        starts = [one.get("start") for one in tokens]
        tokens = [one.get("text") for one in tokens]
    if tokens is not None and not _are(str, tokens):
        message = f"{roles['token']} must be a list of strings, not {shown(tokens)}"
        return replace(place, message=message, kind="columns")
    if text is None and tokens is None and is_table:
        text = ""
    if (text is None and tokens is None) or not isinstance(text, str | None):
        wanted = " or ".join(roles[role] for role in ("text", "token") if role in roles)
        seen = "" if text is None else f", not {shown(text)}"
        message = f"it needs {wanted}: a string or a list of tokens{seen}"
        return replace(place, message=message, kind="columns")
    if is_table and "item" in roles and item in {None, ""}:
        message = f"column {roles['item']}, row {n + 1}: an item has no id"
        return replace(place, message=message, kind="columns")
    number = place.line if columns.kind == JSONL else n + 1
    return Row(
        str(number if item is None else item), place, text, tokens,
        starts if _are(int, starts) else None, None if document in {None, ""} else str(document),
    )  # fmt: skip


def _are(kind: type, values: Any) -> bool:
    return isinstance(values, list) and all(type(one) is kind for one in values)


# --------------------------------------------------------------------------------------------------
# From items to a crowd.


class Strings:
    """Strings on their way into an Arrow array, block by block."""

    BLOCK = 1 << 16

    def __init__(self, kind: pa.DataType) -> None:
        self._kind, self._done = kind, [pa.array([], kind)]
        self._rest: list[str | None] = []

    def extend(self, values: Iterable[str | None]) -> None:
        """Add some."""
        self._rest += values
        if len(self._rest) >= self.BLOCK:
            self._flush()

    def done(self) -> pa.Array:
        """Return all of them."""
        self._flush()
        blocks, self._done = self._done, []
        return pa.concat_arrays(blocks)

    def _flush(self) -> None:
        self._done.append(pa.array(self._rest, self._kind))
        self._rest = []


def of_rows(
    source: Source,
    rows: Iterable[Row],
    options: ReadOptions,
    rule: str | None = None,
    *,
    notes: Iterable[str] = (),
    drop: Callable[[int, int], bool] = lambda *_: False,
    columns: _Columns | None = None,
) -> Crowd:
    """Cut texts into tokens, and leave out those that have none.

    `drop` tells from the numbers of documents and of items whether documents say nothing. Words,
    texts and ids go into Arrow arrays block by block: a Python object per token would take some
    twenty times the room of the file.
    """
    words, texts, ids, documents = (Strings(pa.string()) for _ in range(4))
    starts, lengths, kept, n_made = array("i"), array("q", [0]), array("q"), 0
    faults, empty, said = [], [], list(notes)
    for n, row in enumerate(rows):
        try:
            text, tokens, places = _cut(row, rule, options.tokens)
        except InputError as error:
            faults.append(replace(row.place, message=str(error), item=row.name, kind="tokens"))
            continue
        if not tokens:
            empty.append(row.name)
            continue
        kept.append(n)
        words.extend(tokens)
        starts.extend(places)
        lengths.append(len(tokens))
        ids.extend((row.name,))
        texts.extend((text,))
        documents.extend((row.document,))
        n_made += row.text is None
    names, groups = ids.done(), documents.done()
    faults += _item_faults(names, source.name)
    if faults:
        raise FormatError(faults, "the pool is refused")
    attributes = None if columns is None else _attributes(columns, kept, said)
    if empty:
        left = f"{len(empty)} items are empty, with nothing to label, and left out"
        said.append(f"{left}: {_first(empty)}")
    if n_made:
        said.append(
            f"{n_made} items have tokens and no text: their texts are the tokens with a blank "
            "between two"
        )
    has_groups = groups.null_count < len(groups) and not drop(len(groups.unique()), len(names))
    roles = {} if columns is None else columns.roles
    return Crowd(
        item_ids=names,
        tokens=list_array(words.done(), np.cumsum(np.frombuffer(lengths, np.int64))),
        worker_ids=pa.array([], pa.string()),
        tagset=Codec(("O",), "BIO"),
        answers=Answers.none(),
        groups=groups if has_groups else None,
        texts=texts.done(),
        token_start=np.frombuffer(starts, np.int32),
        attributes=attributes,
        import_report=ImportReport(source.name, "texts", notes=tuple(said), columns=roles),
    )


def _cut(row: Row, rule: str | None, otherwise: str) -> tuple[str, Sequence[str], Sequence[int]]:
    """Return an item's text, its tokens and where each begins."""
    for name, value in (("text", row.text), ("id", row.name), ("document", row.document)):
        if string_faults({name: value}):
            raise InputError(f"the {name} {half_character(str(value))}")
    if row.tokens is None or (rule is not None and rule != "given"):
        if rule == "given":
            raise InputError("there are no tokens, and the tokens are to be the given ones")
        text = " ".join(row.tokens or []) if row.text is None else row.text
        bounds = tokenize(text, rule or otherwise)
        return text, [text[a:b] for a, b in bounds], [a for a, _ in bounds]
    if row.text is not None:
        try:
            return row.text, row.tokens, starts_in(row.text, row.tokens, row.starts)
        except InputError as error:
            if otherwise == "fine":
                raise InputError(
                    f'the text does not hold its tokens: {error}; tokens "fine" cut the text again '
                    '(task.tokens = "fine" in a plan), or leave the text out'
                ) from None
    lengths = (len(word) + 1 for word in row.tokens)
    return " ".join(row.tokens), row.tokens, [*accumulate(lengths, initial=0)][:-1]


def _item_faults(names: pa.Array, file: str) -> list[Fault]:
    """Return what is wrong with the ids: there are none, or one appears twice."""
    if not len(names):
        return [Fault("there is no text in the file: is the path right?", file, kind="empty")]
    twice = repeated_id(names)
    message = f"item {twice} appears in the pool twice: ids must differ"
    return [] if twice is None else [Fault(message, file, kind="duplicate-item")]


def repeated_id(names: pa.Array) -> str | None:
    """Return the first id that several items have, None if they differ."""
    if len(names.unique()) == len(names):
        return None
    return next(str(one["values"]) for one in names.value_counts() if one["counts"].as_py() > 1)


def _attributes(columns: _Columns, kept: Iterable[int], notes: list[str]) -> pa.Table | None:
    """Return the other columns of the items that are kept."""
    roles, found, nested = columns.roles, {}, []
    taken = {*roles.values()}
    if columns.kind != TABLE:  # ids and documents of JSON stay beside what else it says
        taken = {roles[role] for role in ("text", "token") if role in roles} | {"item"}
    for name in (one for one in columns.names if one not in taken):
        cells = columns.column(name)
        values = [cells[n] for n in kept]
        try:
            found[name] = pa.array(values)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            rows = settle_attributes([{name: value} for value in values], notes)
            found[name] = pa.array([row[name] for row in rows])
        if any(isinstance(one, list | dict) for one in values) and name != "token_start":
            nested.append(name)
    if nested:
        notes.append(f"lists are not attributes, and are left out: {', '.join(sorted(nested))}")
    if "item" not in roles and (like := _like_ids(columns)):
        how = _NAMING.format("id")
        notes.append(f"items have their rows' numbers; if {like!r} has ids, name it {how}")
    return pa.table(found) if found else None


def _like_ids(columns: _Columns) -> str:
    """Return the first column of which every cell is another word or whole number, "" for none."""
    for name in (one for one in columns.names if one not in columns.roles.values()):
        cells = {str(cell).strip() for cell in columns.column(name)}
        if len(cells) == columns.n_rows > 1 and all(c and " " not in c for c in cells):
            return name
    return ""


def starts_in(text: str, words: Sequence[str], starts: Sequence[int] | None = None) -> list[int]:
    """Return where each word begins in a text: the given places if they are right."""
    if starts is not None and len(starts) == len(words):
        pairs = zip(words, starts, strict=True)
        if all(text.startswith(word, start) for word, start in pairs):
            return list(starts)
    return [start for start, _ in locate(text, words)]
