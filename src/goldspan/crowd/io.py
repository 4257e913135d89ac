"""Reading and writing crowds in any format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from inspect import signature
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from goldspan.crowd.model import Crowd
from goldspan.crowd.names import check_names
from goldspan.crowd.options import ReadOptions, reading_options
from goldspan.crowd.registry import FORMATS
from goldspan.crowd.source import Source, open_source
from goldspan.errors import Fault, FormatError, InputError, UnknownNameError
from goldspan.plugins import plugins

READING = frozenset(reading_options())
"""The names of the options of `read_crowd`."""


class Format(Protocol):
    """What a format module has; see `registry.py`."""

    SUMMARY: str
    SUFFIXES: tuple[str, ...]

    def sniff(self, source: Source) -> bool:
        """Return whether the content looks like this format."""
        ...

    def read(self, source: Source, options: ReadOptions) -> Crowd:
        """Read a crowd."""
        ...

    def write(self, crowd: Crowd, path: Path) -> None:
        """Write a crowd."""
        ...


def formats() -> dict[str, str]:
    """Return all formats by name, those of other packages last."""
    others = plugins("goldspan.formats")
    return {**FORMATS, **{name: value for name, value in others.items() if name not in FORMATS}}


def get_format(name: str) -> Any:
    """Import the module of a format.

    Raises:
        UnknownNameError: There is no such format; the message names them all.
    """
    if name in FORMATS:
        return import_module(FORMATS[name])
    if name not in formats():
        raise UnknownNameError("format", name, formats())
    return import_module(formats()[name])


def guess_format(source: Source, columns: Mapping[str, str] | None = None) -> str:
    """Guess the format of a source from its content, and from the columns that the user named.

    Raises:
        FormatError: It looks like none of them.
    """
    named = _table_with(source, columns or {})
    if named:
        return named
    for name in chain(FORMATS, plugins("goldspan.formats")):
        if get_format(name).sniff(source):
            return name
    # A broken JSON file looks like nothing; its reader says where it is broken.
    by_ending = {".jsonl": "spans", ".json": "label-studio"}
    if source.suffix in by_ending:
        return by_ending[source.suffix]
    message = f"the format is not recognised: pass format=… ({', '.join(formats())})"
    raise FormatError([Fault(message, file=source.name, kind="format")])


def read_crowd(source: Any, **options: Any) -> Crowd:
    r"""Read a crowd: items, workers, their answers, and gold if there is some.

    Args:
        source: A path (plain or `.gz`), a folder, a `.zip`, "-" for standard input, bytes, a
            binary file; a DataFrame of any make, a Hugging Face `Dataset`, or a list of dicts.
        options: The fields of `ReadOptions`: format, gold, encoding, columns, workers, labels,
            missing, altered, repeated, unknown, strict, offsets, tokens, cut, overlapping,
            unlabelled, strip, rename_workers, delimiter, text_encoding, max_decompressed and
            progress. A DataFrame is of the format "long", "span-table", "tag-columns" or "wide".

    Returns:
        The crowd; `crowd.import_report` says what was found and decided.

    Raises:
        FormatError: The input is rejected; every fault is listed with its place.
        UnknownNameError: There is no such option, or it has no such value.

    >>> crowd = read_crowd(b"token\tann\tbob\nParis\tB-LOC\tO\n", format="wide")
    >>> crowd.answers_of("1")
    {'ann': ['B-LOC'], 'bob': ['O']}
    """
    _check_options(options)
    return _read(source, ReadOptions(**options))


def _check_options(names: Iterable[str]) -> None:
    """Reject what is not an option of a reader."""
    for name in sorted(names):
        if name not in READING:
            raise UnknownNameError("reading option", name, sorted(READING))


def _read(source: Any, options: ReadOptions) -> Crowd:
    source = _opened_rows(source, options.format)
    if is_dataframe(source):
        from goldspan.crowd.formats.tables import read_table

        crowd = read_table(source, options, options.format)
    else:
        opened = open_source(source, options.text_encoding, options.max_decompressed)
        name = options.format or guess_format(opened, options.columns)
        crowd = get_format(name).read(opened, options)
    crowd = check_names(_with_labels(crowd, options.unlabelled), options)
    if options.gold is not None:
        from goldspan.crowd.gold import attach_gold

        crowd = attach_gold(crowd, options.gold, options, refine=True)
    return crowd


def to_crowd(data: Any, argument: str = "crowd", **reading: Any) -> Crowd:
    r"""Return whatever a public function was given as a `Crowd`.

    Args:
        data: A `Crowd`, a `Consensus` (its crowd, with the consensus in the place of the gold), or
            anything that `read_crowd` reads.
        argument: Name of the argument, for messages.
        reading: Options of `read_crowd`; of a crowd that is there already only `gold` can be set.

    Raises:
        InputError: It cannot be read, or there is nothing to read that options could be for.

    >>> to_crowd(b"task,worker,label\n1,a,x\n").n_workers
    1
    """
    reading = {name: value for name, value in reading.items() if value is not None}
    _check_options(reading)
    if hasattr(type(data), "as_gold"):
        data = data.as_gold()
    if not isinstance(data, Crowd):
        return _read_argument(data, argument, reading)
    gold = reading.pop("gold", None)
    if reading:
        raise InputError(
            f"{argument}: this is a {type(data).__name__} already, {', '.join(reading)}=… say how "
            "to read a file or a table: pass them to read_crowd"
        )
    if gold is None:
        return data
    from goldspan.crowd.gold import attach_gold

    return attach_gold(data, gold, ReadOptions(), refine=True)


def _read_argument(data: Any, argument: str, reading: Mapping[str, Any]) -> Crowd:
    """Read a crowd; what is wrong is told with the name of the argument."""
    try:
        return read_crowd(data, **reading)
    except FormatError as error:
        headline = f"{argument} cannot be read" + (f": {error.headline}" if error.headline else ":")
        raise FormatError(error.faults, headline) from None
    except InputError as error:
        if type(error) is not InputError:
            raise
        raise InputError(f"{argument}: {error}") from None


def write_crowd(
    crowd: Any,
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002 - the word users know
    text: bool = True,
    raw_csv: bool = False,
    **reading: Any,
) -> list[str]:
    """Write a crowd; reading it back gives an equal one, but for what the format cannot hold.

    That is found by reading the file again and comparing all of it.

    Args:
        crowd: What to write: a `Crowd`, a `Consensus` (with its labels as gold), or anything that
            `read_crowd` reads.
        path: Where to; a name that ends in `.gz` is compressed. Nothing half-written is left.
        format: By default what the ending of the name says: `.tsv` wide, `.csv` long,
            `.jsonl` spans, `.parquet` parquet, `.conll` the gold only.
        text: Whether columns of tokens (conll, wide, long) come with the items' texts and offsets;
            other readers of such files may want neither.
        raw_csv: Whether cells of CSV stay as they are. By default an apostrophe goes before those
            that a spreadsheet may take for formulas; goldspan's reader takes it off.
        reading: How to read `crowd` if it is not one yet, as for `read_crowd`; its format is
            guessed.

    Returns:
        What of this crowd does not come back from the file, in words, with counts and first
        examples; empty if everything does.

    Raises:
        InputError: The format cannot be written, or the path cannot be.
    """
    from goldspan.crowd.losses import lost_in_file

    crowd = to_crowd(crowd, "crowd", **reading)
    name = format or _format_of(Path(path))
    module = get_format(name)
    if not hasattr(module, "write"):
        raise InputError(f"format {name!r} can only be read")
    takes = signature(module.write).parameters
    given = {"raw_csv": True} if raw_csv and "raw_csv" in takes else {}
    if text:
        module.write(crowd, Path(path), **given)
    elif "text" in takes:
        module.write(crowd, Path(path), text=False, **given)
    else:
        rule = "text=False (--no-text) is for conll, wide and long"
        raise InputError(f"format {name!r} always has the text: {rule}")
    return lost_in_file(crowd, Path(path), module)


def write_to_stdout(
    crowd: Crowd,
    format: str,  # noqa: A002 - the word users know
    *,
    text: bool = True,
    raw_csv: bool = False,
) -> list[str]:
    """Write a crowd to standard output; returns what the format cannot hold."""
    import sys
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "crowd"
        lost = write_crowd(crowd, path, format=format, text=text, raw_csv=raw_csv)
        if path.is_dir():
            raise InputError(f"format {format!r} is a folder: pass -o FOLDER")
        sys.stdout.flush()
        sys.stdout.buffer.write(path.read_bytes())
        sys.stdout.buffer.flush()
    return lost


def _format_of(path: Path) -> str:
    suffix = (path.with_suffix("") if path.suffix == ".gz" else path).suffix.lower()
    by_suffix = {
        ".tsv": "wide",
        ".csv": "long",
        ".jsonl": "spans",
        ".parquet": "parquet",
        ".conll": "conll",
        ".json": "label-studio",
        "": "folder",
    }
    if suffix not in by_suffix:
        raise InputError(f"{path}: the ending does not name a format: pass format=…")
    return by_suffix[suffix]


def _table_with(source: Source, columns: Mapping[str, str]) -> str | None:
    """The sort of table that has the named columns in its header."""
    from goldspan.crowd.formats.span_table import is_span_table
    from goldspan.crowd.grid import header_names

    if not columns or source.is_folder or source.is_parquet:
        return None
    cells = header_names(source)
    if "AssignmentId" in cells:  # of Mechanical Turk, whose reader knows what may be named
        return None
    if is_span_table(cells, columns):
        return "span-table"
    roles = {role for role, name in columns.items() if name in cells}
    if "worker" in roles or {"item", "label"} <= roles:
        return "long"
    return "wide" if "token" in roles and "tag" not in columns else None


def rows_as_table(source: Any) -> Any:
    """Return a list of dicts as an Arrow table; anything else as it is.

    Raises:
        InputError: The list is empty, or a column mixes types.
    """
    if not isinstance(source, list | tuple) or not all(isinstance(r, Mapping) for r in source):
        return source
    if not source:
        raise InputError("the list of rows is empty: there is nothing to read")
    import pyarrow as pa

    columns = {str(name): None for row in source for name in row}
    try:
        return pa.table({name: [row.get(name) for row in source] for name in columns})
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
        why = " ".join(str(error).split())[:200]
        raise InputError(
            f"the list of dicts cannot be read: {why}: give every column values of one type"
        ) from None


def is_dataframe(source: Any) -> bool:
    """Return whether something is a DataFrame of any make."""
    if isinstance(source, str | bytes | Path | Source) or hasattr(source, "read"):
        return False
    # Asked of the type: a lazy frame would compute its columns.
    return hasattr(type(source), "columns") or hasattr(type(source), "column_names")


JSON_FORMATS = ("label-studio", "prodigy", "doccano", "spans")
"""Formats whose records may also be given as a list of dicts."""


def _opened_rows(source: Any, name: str | None) -> Any:
    """Return a list of dicts as the JSON of an annotation tool or as a table, else the source.

    Raises:
        InputError: It is a list of something else, or a dict.
    """
    if isinstance(source, Mapping):
        names = ", ".join(map(str, list(source)[:5]))
        hint = "pass one of its values, such as data['train'], if these are splits of a data set"
        raise InputError(
            f"cannot read a {type(source).__name__} ({names}): {hint}, or a list of dicts"
        )
    if not isinstance(source, list | tuple) or not all(isinstance(r, Mapping) for r in source):
        return source
    nested = any(isinstance(value, list | dict) for row in source[:20] for value in row.values())
    if name in JSON_FORMATS or (name is None and nested):
        import json

        try:
            data = json.dumps(source, ensure_ascii=False, allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            if name is not None:
                raise InputError(f"the list of dicts cannot be written as JSON: {error}") from None
            return rows_as_table(source)
        opened = Source("<list>", data, text_encoding="utf-8")
        fits = (one for one in JSON_FORMATS if get_format(one).sniff(opened))
        if name is not None or next(fits, None) is not None:
            return opened
    return rows_as_table(source)


def _with_labels(crowd: Crowd, unlabelled: str) -> Crowd:
    """Reject what holds neither answers nor gold; where there is gold only, say so.

    goldspan's own formats may hold items alone: pools are written in them.

    Raises:
        FormatError: Nobody labelled anything.
    """
    report = crowd.import_report
    if crowd.n_workers:
        return crowd
    if crowd.gold is not None and (crowd.gold >= 0).any():
        note = "nobody's answers are in it: it is read as gold only"
        if not any("as gold" in one for one in report.notes) and report.format != "conll":
            return replace(crowd, import_report=replace(report, notes=(*report.notes, note)))
        return crowd
    if report.format in OWN_FORMATS or unlabelled == "keep":
        return crowd
    message = (
        f"there are {crowd.n_items} items, but nobody's labels (0 workers), and no gold: is this "
        f"the right file, and {report.format} its format? "
    )
    hints = {
        "wide": "name the columns of the workers with workers=[…] (--workers)",
        "long": "name the columns with columns={'worker': …, 'label': …} (--columns)",
        "label-studio": "export completed annotations; predictions are not read",
    }
    hint = hints.get(report.format, "export the annotations too, not the texts alone")
    raise FormatError([Fault(message + hint, file=report.source, kind="no-answers")])


OWN_FORMATS = ("parquet", "spans")
