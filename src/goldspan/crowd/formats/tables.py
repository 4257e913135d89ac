"""Tables that come as objects, or as Parquet: which format they are in, and reading them by it.

A DataFrame of any make, an Arrow table, a Hugging Face `Dataset` (anything with `column_names`,
`features` and `to_pandas`), or a list of dicts. `goldspan` does not import any of those packages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from goldspan.crowd.formats.columns import frame_columns
from goldspan.crowd.formats.span_table import is_span_table
from goldspan.crowd.formats.tag_columns import (
    TOKENS,
    find_tokens,
    names_in_metadata,
    names_of,
)
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.registry import formats, get_format, of_kind
from goldspan.crowd.source import Source
from goldspan.errors import InputError, UnknownNameError


def read_table(frame: Any, options: ReadOptions, format: str | None = None) -> Crowd:  # noqa: A002
    """Read a table that comes as an object."""
    if format is not None and format not in of_kind("table"):
        _reject_format(format, type(frame).__name__)
    names: Mapping[str, Sequence[str]] = {}
    if _is_dataset(frame):
        frame, names = _dataset_table(frame)
    elif isinstance(frame, pa.Table):
        names = names_in_metadata(frame.schema)
    name = format or guess_table(_schema(frame, options), options)
    module = get_format(name)
    if name == "tag-columns":
        found: Crowd = module.read_frame(frame, options, names)
    else:
        found = module.read_frame(frame, options)
    return found


def read_parquet(table: pa.Table, source: Source, options: ReadOptions) -> Crowd:
    """Read a Parquet file that goldspan did not write."""
    name = guess_table({field.name: field.type for field in table.schema}, options)
    found: Crowd = get_format(name).read(source, options)
    return found


def guess_table(schema: Mapping[str, pa.DataType | None], options: ReadOptions) -> str:
    """Guess the format of a table by its columns and their types, None where not known."""
    header = list(schema)
    if find_tokens(schema, options) is not None:
        return "tag-columns"
    if is_span_table(header, options.columns):
        return "span-table"
    return "long"


def _is_dataset(frame: Any) -> bool:
    kind = type(frame)
    return hasattr(kind, "column_names") and hasattr(kind, "features")


def _dataset_table(dataset: Any) -> tuple[Any, dict[str, list[str]]]:
    """Return the rows of a Hugging Face `Dataset`, and the names of its integer labels."""
    if not hasattr(type(dataset), "to_pandas"):
        raise InputError(
            f"a {type(dataset).__name__} is read row by row and cannot be read as a whole: load "
            "the data set without streaming=True"
        )
    features = dataset.features or {}
    names = {name: names_of(feature) for name, feature in features.items()}
    try:
        table = pa.Table.from_pandas(dataset.to_pandas(), preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        why = " ".join(str(error).split())[:200]
        raise InputError(f"the Dataset cannot be read: {why}") from None
    return table, {name: listed for name, listed in names.items() if listed}


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
