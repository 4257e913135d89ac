"""Which format a source has, and reading it with the reader of that format."""

from __future__ import annotations

import gc
import io
import json
import re
import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from goldspan.crowd.formats.columns import (
    frame_columns,
    names_of,
    parquet_table,
    spell_labels,
    type_of,
    with_names,
)
from goldspan.crowd.formats.json_labels import TABLE
from goldspan.crowd.formats.json_records import JSON_SUFFIXES
from goldspan.crowd.formats.long import ROLES, has_roles, is_label_studio, label_studio_error
from goldspan.crowd.formats.span_table import has_spans, is_span_table
from goldspan.crowd.formats.tag_columns import TOKENS, find_tokens, has_tags
from goldspan.crowd.formats.texts import (
    ENDINGS,
    KINDS,
    are_wanted,
    has_texts,
    reject_other_lines,
)
from goldspan.crowd.grid import header_names
from goldspan.crowd.guessing import (
    ANSWERS,
    TEXTS,
    Guess,
    Table,
    guesses,
    label_columns,
    peek,
    reject_lists,
    table_of,
)
from goldspan.crowd.labels import check_names, with_notes
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.registry import FORMATS, Format, formats, get_format, of_kind, plugin_formats
from goldspan.crowd.source import Source, open_source
from goldspan.errors import Fault, FormatError, GoldspanError, InputError, UnknownNameError


def read_source(source: Any, options: ReadOptions) -> Crowd:
    """Read a crowd from anything that `read_crowd` takes; `options.gold` is left to the caller."""
    source = _opened_rows(source, options.format)
    if is_dataframe(source):
        _check_texts(options, f"a {type(source).__name__}")
        crowd = read_table(source, options, options.format)
    else:
        opened = open_source(source, options.text_encoding, options.max_decompressed)
        name, options, said = recognise(opened, options)
        _reject_texts(name, opened.name, options)
        module = get_format(name)
        if not getattr(module, "TAKES_TEXTS", False):
            _check_texts(options, f"of the format {name!r}")
        with _collector_paused():
            crowd = with_notes(module.read(opened, options), [*said, *_not_json(name, opened)])
    return check_names(_with_labels(crowd, options.unlabelled), options)


def find_layers(
    source: Any, options: ReadOptions, wanted: Sequence[str] | None
) -> tuple[Any, list[str]]:
    """Return a source that can be read again, and its questions where its format names them."""
    source = _opened_rows(source, options.format)
    if is_dataframe(source):
        return source, []
    opened = open_source(source, options.text_encoding, options.max_decompressed)
    label = {"label": wanted[0]} if wanted else {}
    known = replace(options, columns={**options.columns, **label})
    try:
        name = recognise(opened, known)[0]
    except FormatError:
        _check_columns(opened, options, wanted)
        raise
    if name == "long":
        _check_columns(opened, options, wanted)
    module = get_format(name)
    return opened, module.layers(opened, options) if hasattr(module, "layers") else []


def _check_columns(source: Source, options: ReadOptions, wanted: Sequence[str] | None) -> None:
    """Reject layers that are no columns of a table, and say which columns may be some."""
    is_text = wanted and not (source.is_folder or source.is_parquet)
    table = peek(source, options.delimiter) if is_text else None
    if table is not None and table.has_header:
        header = {one.name for one in table.columns}
        for name in wanted or ():
            if name not in header and not name.isdigit():
                raise UnknownNameError("layer", name, label_columns(table, options.columns))


def _not_json(name: str, source: Source) -> list[str]:
    """Say which files of a folder a format of JSON does not read."""
    others = [path for path, one in source.sorted_files() if one.suffix not in JSON_SUFFIXES]
    if not others or name not in of_kind("records") or name == "potato":
        return []
    return [f"{len(others)} files are not read, for they are not JSON: {', '.join(others[:5])}"]


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Keep Python's collector from going through the records again and again: all of them stay."""
    is_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_on:
            gc.enable()


def _reject_texts(
    name: str, file: str, options: ReadOptions, column: str = "", label: str = "…"
) -> None:
    """Reject texts that nobody has labelled, where answers are asked for."""
    if name == "texts" and options.unlabelled == "refuse":
        words = f"{f'--text-column {shlex.quote(column)} ' if column else ''}--labels LABEL,LABEL"
        message = (
            f"these are texts without answers: let people label them "
            f"(`{_command('init', file, words)}`), or, if some columns are answers, say which "
            f"(--columns item=… --columns worker=… --columns {shlex.quote(f'label={label}')}); "
            "without one of workers the labels are gold"
        )
        raise FormatError([Fault(message, file=file, kind="no-answers")])


def _command(name: str, file: str, options: str) -> str:
    return f"goldspan {name} {shlex.quote(file)} {options}"


def _check_texts(options: ReadOptions, what: str) -> None:
    if options.texts is not None:
        raise InputError(
            "is for answers of the format 'folder', whose files may differ in their tokens: this "
            f"is {what}, which is read with the tokens that it has",
            parameter="texts",
        )


_PARTITION = re.compile(r"(?:.*/)?part-.*\.parquet")


_HEAD, _MANY = 10_000, 100
"""Characters of a table, and rows of a frame, in which a list shows if its cells are lists."""


def guess_format(source: Source, columns: Mapping[str, str] | None = None) -> str:
    """Guess the format of a source from its content, and from the columns that the user named."""
    return recognise(source, ReadOptions(columns=columns or {}))[0]


_TABLES = ("wide", "long")
"""Formats whose columns are guessed."""
Recognised = tuple[str, ReadOptions, tuple[str, ...]]


def recognise(source: Source, options: ReadOptions, *, texts: bool = False) -> Recognised:
    """Return the format of a source, the options with the columns that were guessed, and a note.

    With `texts` its reader wants texts to label: what may be texts or answers is read as texts.
    """
    found = options.format or _of_plugin(source)
    if found and found not in _TABLES:
        return found, options, ()
    if found is None:
        if texts and are_wanted(source, options):
            return "texts", options, ()
        sure = (name for name in FORMATS if name not in {*_TABLES, "conll", "mace", "texts"})
        named = _table_with(source, options.columns)
        found = named or next((name for name in sure if get_format(name).sniff(source)), None)
    if found == "parquet" and _holds_texts(source, options, texts=texts):
        return "texts", options, ()
    if found in {None, *_TABLES} and not (source.is_folder or source.is_parquet):
        read = _of_columns(source, found, options, texts=texts)
        if read is not None:
            return read
    name = found or next((n for n in ("conll", "texts") if get_format(n).sniff(source)), None)
    name = name or _by_name(source, texts=texts)
    if name is not None:
        return name, options, ()
    if source.is_folder and any(_PARTITION.fullmatch(path) for path, _ in source.sorted_files()):
        message = (
            "a folder of partitions: only `goldspan aggregate` reads it as a whole, where it holds "
            "answers; others read one of its files"
        )
        raise FormatError([Fault(message, file=source.name, kind="format")])
    raise FormatError(
        [Fault(_unknown(source, texts=texts), source.name, kind="format")], hint="format"
    )


def _unknown(source: Source, *, texts: bool) -> str:
    """Return what to do with a source that looks like nothing."""
    if source.suffix == ".txt":
        reject_other_lines(source)
    if not source.is_folder and source.text.value.lstrip().startswith("<"):
        return f"the format is not recognised: of XML and HTML goldspan reads UIMA's alone: {TABLE}"
    if texts:
        return (
            "the format is not recognised: call a file of lines of text .txt, or say the format "
            f"(pool.format in a plan, --format): {', '.join(KINDS)}, conll, attributes, crowd"
        )
    table = None if source.is_folder or source.is_parquet else peek(source)
    if table is not None and table.has_header:
        names = ", ".join(repr(one.name) for one in table.columns[:8])
        return f"the columns ({names}) do not say what they are: {ANSWERS}"
    return f"the format is not recognised: name one of {', '.join(formats())}"


def is_annotated(source: Source) -> bool:
    """Return whether JSON is recognised as that of answers, by what is in it."""
    return any(get_format(name).sniff(source) for name in of_kind("records"))


def _by_name(source: Source, *, texts: bool) -> str | None:
    """Return the format whose reader says what is wrong with a file that looks like nothing."""
    if texts:
        is_conll = source.suffix in {".conll", ".conllu", ".bio", ".iob"}
        are_texts = source.is_folder or source.suffix in ENDINGS
        return "conll" if is_conll else "texts" if are_texts else None
    if source.suffix not in JSON_SUFFIXES:
        return None
    return "json-labels" if source.suffix == ".json" else "spans"


def _of_columns(
    source: Source, name: str | None, options: ReadOptions, *, texts: bool
) -> Recognised | None:
    """Find out by the columns of a table how it is read; None where they say nothing."""
    tables = [one for one in _TABLES if one == name or name is None]
    fits = next((one for one in tables if get_format(one).sniff(source)), None)
    header = header_names(source)
    are_texts = name is None and not {"worker", "label"} & {*options.columns}
    are_texts = are_texts and bool({one.lower() for one in header} & {*TEXTS})
    if (error := _lists_in(source, options)) is not None:
        if not (texts and are_texts):
            raise error
        return "texts", options, (f"read as texts to label: {error.faults[0].message}",)
    if fits == "wide":
        return fits, options, ()
    if "long" in {fits, name} and has_roles(header, options):
        is_pool = are_texts and _are_authors(header, partial(peek, source), texts=texts)
        return "texts" if is_pool else "long", options, ()
    if "label" not in options.columns and is_label_studio(header):
        raise label_studio_error(source.name)
    said: tuple[str, ...] = ()
    table = peek(source, options.delimiter)
    if table is not None:
        found = [g for g in guesses(table, options.columns) if name in {None, g.format}]
        if len(found) == 1 and (found[0].is_sure or name or options.columns):
            return found[0].format, found[0].options(options), (found[0].said,)
        if found:
            return _either(table, source.name, found, options, texts=texts and are_texts)
        if texts or not (fits or name):
            said = _of_texts(table, source.name, options, texts=texts, are_named=are_texts)
    kind = "texts" if texts and are_texts else fits or "texts"
    return (kind, options, said) if fits or said else None


def _of_texts(
    table: Table, file: str, options: ReadOptions, *, texts: bool, are_named: bool
) -> tuple[str, ...]:
    """Return what to say of texts to label that may have labels; reject them as answers."""
    is_other = not are_named or table.label is not None
    if not texts and is_other and table.has_header and table.text is not None:
        column = "" if are_named else table.text.name
        _reject_texts("texts", file, options, column, table.label or "…")
    if not (texts and are_named) or table.label is None:
        return ()
    words = shlex.join(["--format", "long", "--columns", f"label={table.label}"])
    return (f"read as texts to label; if they have labels: `{_command('inspect', file, words)}`",)


def _lists_in(source: Source, options: ReadOptions) -> FormatError | None:
    """Return what is wrong with a table whose cells are written lists, None with others."""
    table = peek(source, options.delimiter) if "[" in source.text.value[:_HEAD] else None
    try:
        if table is not None:
            reject_lists(table, source.name, options.columns)
    except FormatError as error:
        return error
    return None


def _either(
    table: Table, file: str, found: Sequence[Guess], options: ReadOptions, *, texts: bool
) -> Recognised:
    """Read as texts what may be answers too, or say with which command each reading is had."""
    answers = " or ".join(f"`{_command('aggregate', file, one.words)}`" for one in found[:3])
    if texts:
        return "texts", options, (f"read as texts to label; if these are answers: {answers}",)
    message = f"this looks like a table of answers; say how it is read: {answers}"
    if table.text is not None:
        column = f"--text-column {shlex.quote(table.text.name)} --labels LABEL,LABEL"
        message += f"; to label its texts: `{_command('init', file, column)}`"
    raise FormatError([Fault(message, file, kind="columns")])


def _are_authors(header: Sequence[str], look: Callable[[], Table | None], *, texts: bool) -> bool:
    """Whether usual columns of answers are those of texts: labels of nobody, or their authors.

    Many texts come with the users who wrote them: answers are several of an item.
    """
    lower = {name.lower() for name in header}
    workers = lower & {*ROLES["worker"]}
    if lower & {*ROLES["token"]} or workers - {"user"}:
        return False
    table = look() if workers else None
    if table is None:
        return texts and not workers
    known = {one.name.lower(): one for one in table.columns}
    item = next(known[name] for name in ROLES["item"] if name in known)
    return len({*item.cells}) == table.n_rows


def _holds_texts(source: Source, options: ReadOptions, *, texts: bool, table: Any = None) -> bool:
    """Whether Parquet, or a table, has a column of texts and no annotations of any kind."""
    try:
        schema = pq.read_schema(io.BytesIO(source.data)) if table is None else table.schema
    except (pa.ArrowException, OSError, ValueError):
        return False  # its reader says what is wrong
    is_ours = {b"goldspan", b"goldspan.tags"} & {*(schema.metadata or {})}
    header = schema.names
    if is_ours or not has_texts(schema) or {"worker", "label"} & {*options.columns}:
        return False
    table = parquet_table(source) if table is None else table
    if get_format("datasets").is_ours(header) or has_spans(header) or has_tags(table):
        return False
    lists = {one.name.lower() for one in schema if pa.types.is_nested(one.type)} - {*TOKENS}
    if not texts and (is_span_table(header, {}) or lists):
        return False
    if has_roles(header, options):
        return _are_authors(header, partial(table_of, table, source.name), texts=texts)
    found = guesses(table_of(table, source.name), options.columns)
    return not any(one.is_sure for one in found) and (texts or not found)


def _of_plugin(source: Source) -> str | None:
    """Return the first format of another package that recognises a source."""
    for name in plugin_formats():
        try:
            if get_format(name).sniff(source):
                return name
        except GoldspanError:
            continue  # it asked for the text of what is not text
        except Exception as error:  # noqa: BLE001 - a broken package must not keep others from reading
            message = (
                f"format {name!r} of another package is left out: {type(error).__name__}: {error}"
            )
            warnings.warn(message, RuntimeWarning, stacklevel=2)
    return None


def _table_with(source: Source, columns: Mapping[str, str]) -> str | None:
    """Return the kind of table that has the named columns in its header."""
    is_binary = source.is_parquet or get_format("docbin").sniff(source)
    if not columns or source.is_folder or is_binary:
        return None
    cells = header_names(source)
    if _platform(cells):  # whose reader knows what may be named
        return None
    if is_span_table(cells, columns):
        return "span-table"
    roles = {role for role, name in columns.items() if name in cells}
    lower = {cell.lower() for cell in cells}
    has_items = "item" in roles or bool(lower & {*TEXTS} and lower & {*ROLES["item"]})
    if "worker" in roles or ("label" in roles and has_items):
        return "long"
    return "wide" if "token" in roles and "tag" not in columns else None


def _platform(header: Sequence[str]) -> str | None:
    """Return the crowdsourcing platform that calls its columns so."""
    known = ("mturk", "toloka", "appen")
    return next((name for name in known if get_format(name).is_header(header)), None)


def is_dataframe(source: Any) -> bool:
    """Return whether something is a DataFrame of any make."""
    if isinstance(source, str | bytes | Path | Source) or hasattr(source, "read"):
        return False
    # Asked of the type: a lazy frame would compute its columns.
    return hasattr(type(source), "columns") or hasattr(type(source), "column_names")


def rows_as_table(source: Any) -> Any:
    """Return a list of dicts as an Arrow table; anything else as it is."""
    if not isinstance(source, list | tuple) or not all(isinstance(r, Mapping) for r in source):
        return source
    if not source:
        raise InputError("the list of rows is empty: there is nothing to read")
    columns = {str(name): None for row in source for name in row}
    try:
        return pa.table({name: [row.get(name) for row in source] for name in columns})
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
        why = " ".join(str(error).split())[:200]
        raise InputError(
            f"the list of dicts cannot be read: {why}: give every column values of one type"
        ) from None


def _opened_rows(source: Any, name: str | None) -> Any:
    """Return a list of dicts as the JSON of an annotation tool or as a table, else the source."""
    if isinstance(source, Mapping):
        names = ", ".join(map(str, list(source)[:5]))
        hint = "pass one of its values, such as data['train'], if these are splits of a data set"
        raise InputError(
            f"cannot read a {type(source).__name__} ({names}): {hint}, or a list of dicts"
        )
    if not isinstance(source, list | tuple) or not all(isinstance(r, Mapping) for r in source):
        return source
    nested = any(isinstance(value, list | dict) for row in source[:20] for value in row.values())
    if name in of_kind("records") or (name is None and nested):
        try:
            data = json.dumps(source, ensure_ascii=False, allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            if name is not None:
                raise InputError(f"the list of dicts cannot be written as JSON: {error}") from None
            return rows_as_table(source)
        opened = Source("<list>", data, text_encoding="utf-8")
        if name is not None or is_annotated(opened):
            return opened
    return rows_as_table(source)


def _with_labels(crowd: Crowd, unlabelled: str) -> Crowd:
    """Reject what holds neither answers nor gold; where there is gold only, say so."""
    # goldspan's own formats may hold items alone: pools are written in them
    report = crowd.import_report
    if crowd.n_workers:
        return crowd
    if crowd.gold is not None and (crowd.gold >= 0).any():
        note = "nobody's answers are in it: it is read as gold only"
        if not any("as gold" in one for one in report.notes) and report.format != "conll":
            return with_notes(crowd, [note])
        return crowd
    known = FORMATS.get(report.format, Format("", ""))
    if unlabelled == "keep" or known.holds_pools:
        return crowd
    message = (
        f"there are {crowd.n_items} items, but nobody's labels (0 workers), and no gold: is this "
        f"the right file, and {report.format} its format? "
    )
    raise FormatError([Fault(message + known.hint, file=report.source, kind="no-answers")])


# --------------------------------------------------------------------------------------------------
# Tables that come as objects, or as Parquet: which format they are in, and reading them by it. A
# DataFrame of any make, an Arrow table, or a Hugging Face `Dataset` (anything with `column_names`,
# `features` and `to_pandas`); goldspan does not import any of those packages.


def read_table(
    frame: Any,
    options: ReadOptions,
    format: str | None = None,  # noqa: A002
    source: str = "<DataFrame>",
) -> Crowd:
    """Read a table that comes as an object; `source` is its name in messages."""
    if format is not None and format not in of_kind("table"):
        _reject_format(format, type(frame).__name__)
    if hasattr(type(frame), "column_names") and hasattr(type(frame), "features"):
        frame = _dataset_table(frame)
        if format is None and (ours := _of_ours(frame, "<Dataset>", options)):
            return ours
    if isinstance(frame, pa.Table):
        frame = spell_labels(frame, source)
    name = format or guess_table(_schema(frame, options), options)
    return _read_guessed(name, frame, Source(source, table=frame), options)


def read_parquet(table: pa.Table, source: Source, options: ReadOptions) -> Crowd:
    """Read a Parquet file that is not of goldspan's layout."""
    if options.format in {None, "parquet"} and (ours := _of_ours(table, source.name, options)):
        return ours
    table = spell_labels(table, source.name)
    name = guess_table({field.name: field.type for field in table.schema}, options)
    return _read_guessed(name, table, replace(source, table=table), options)


def _of_ours(table: pa.Table, name: str, options: ReadOptions) -> Crowd | None:
    """Read a table that goldspan or Argilla wrote for Hugging Face; None if it is another."""
    if any(column.endswith(".responses") for column in table.column_names):
        return read_source(table.to_pylist(), options)
    module = get_format("datasets")
    if not module.is_ours(table.column_names):
        return None
    found: Crowd = module.read_ours(table, name, options)
    return found


def guess_table(schema: Mapping[str, pa.DataType | None], options: ReadOptions) -> str:
    """Guess the format of a table by its columns and their types, None where not known."""
    header = list(schema)
    if find_tokens(schema, options) is not None:
        return "tag-columns"
    if is_span_table(header, options.columns):
        return "span-table"
    return _platform(header) or "long"


def _read_guessed(name: str, frame: Any, source: Source, options: ReadOptions) -> Crowd:
    """Read a table; of one of answers find out what its columns are, if their names do not say."""
    said: tuple[str, ...] = ()
    if name == "long" and not hasattr(type(frame), "collect"):
        try:
            table = frame if isinstance(frame, pa.Table) else frame_columns(frame, tuple)
        except InputError:  # a column of mixed types, which need not be read
            table = pa.table({})
        names = table.column_names
        words = [one.name for one in table.schema if type_of(one.type) == "text"]
        words = [one for one in words if not pa.types.is_nested(table.schema.field(one).type)]
        head = table.select(words).slice(0, _MANY)
        reject_lists(table_of(head, source.name), source.name, options.columns)
        if options.format is None and _holds_texts(source, options, texts=False, table=table):
            _reject_texts("texts", source.name, options)
            name = "texts"
        elif not (has_roles(names, options) or is_label_studio(names)):
            found = guesses(table_of(table, source.name), options.columns)
            if len(found) == 1 and (found[0].is_sure or options.columns):
                name, options, said = found[0].format, found[0].options(options), (found[0].said,)
    return with_notes(get_format(name).read(source, options), said)


def _dataset_table(dataset: Any) -> pa.Table:
    """Return the rows of a Hugging Face `Dataset`, with the names of its integer labels."""
    if not hasattr(type(dataset), "to_pandas"):
        raise InputError(
            f"a {type(dataset).__name__} is read row by row and cannot be read as a whole: load "
            "the data set without streaming=True"
        )
    features = dataset.features or {}
    names = {name: names_of(feature) for name, feature in features.items()}
    try:
        if hasattr(type(dataset), "with_format"):  # pandas makes floats of integers with nulls
            table = dataset.with_format("arrow")[:]
        else:
            table = pa.Table.from_pandas(dataset.to_pandas(), preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        why = " ".join(str(error).split())[:200]
        raise InputError(f"the Dataset cannot be read: {why}") from None
    return with_names(table, {name: listed for name, listed in names.items() if listed})


def _schema(frame: Any, options: ReadOptions) -> dict[str, pa.DataType | None]:
    """The columns of a table with their Arrow types; None for types of other makes."""
    if isinstance(frame, pa.Table):
        return {field.name: field.type for field in frame.schema}
    found: dict[str, pa.DataType | None] = {}

    def choose(header: tuple[str, ...]) -> tuple[str, ...]:
        found.update(dict.fromkeys(header))
        named = {options.columns.get("token"), *TOKENS}
        return tuple(name for name in header if name in named)

    if hasattr(type(frame), "collect"):  # a lazy frame: its reader rejects it with a message
        return {}
    lists = frame_columns(frame, choose)
    for field in lists.schema:
        found[field.name] = field.type
    return found


def _reject_format(name: str, kind: str) -> None:
    if name not in formats():
        raise UnknownNameError("format", name, formats())
    raise InputError(
        f"format {name!r} is a file or a folder, and this is a {kind}: pass the path of the file, "
        f"or one of the formats of tables ({', '.join(sorted(of_kind('table')))})"
    )
