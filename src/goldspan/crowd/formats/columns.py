"""Columns of tables: any Arrow type to strings, strings to numbers and times; columns of texts."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from goldspan.archives import Allowance, TooLargeError
from goldspan.crowd.grid import cell_text
from goldspan.crowd.model import Crowd, ItemText, item_texts
from goldspan.crowd.source import Source
from goldspan.errors import Fault, FormatError, GoldspanError, InputError
from goldspan.spans.text import token_bounds

MOMENTS = ("started", "submitted")
"""Roles that may be times."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WHOLE = re.compile(r"[+-]?\d{1,18}(\.0*)?")


def frame_columns(frame: Any, choose: Callable[[tuple[str, ...]], Iterable[str]]) -> pa.Table:
    """Take some columns of a DataFrame of any make as an Arrow table."""
    import narwhals as nw

    try:
        opened = nw.from_native(frame, eager_only=True)
        return opened.select(*choose(tuple(map(str, opened.columns)))).to_arrow()
    except GoldspanError:
        raise
    except (TypeError, ValueError, KeyError, pa.ArrowException) as error:
        why = " ".join(str(error).split())[:200]
        raise InputError(
            f"the DataFrame cannot be read: {why}: collect() it if it is lazy, name every column "
            "once, and turn columns of mixed types into strings"
        ) from None


def parquet_table(source: Source) -> pa.Table:
    """Read a Parquet file and check that it holds what it says."""
    if source.table is not None:
        return source.table
    allowance = Allowance(len(source.data), source.max_decompressed)
    try:
        _check_footer(source.data, allowance)
        _check_words(source.data, allowance)
        with pq.ParquetFile(io.BytesIO(source.data), page_checksum_verification=True) as file:
            batches = []
            for batch in file.iter_batches(_BATCH):
                allowance.take(batch.nbytes)
                batches.append(batch)
            table = pa.Table.from_batches(batches, file.schema_arrow).unify_dictionaries()
        table.validate(full=True)
        [name.encode() for name in table.column_names]
    except TooLargeError as error:
        raise FormatError([Fault(str(error), file=source.name, kind="too-large")]) from None
    except (pa.ArrowException, OSError, ValueError) as error:
        why = str(error).strip().split("\n")[0]
        message = f"the Parquet file is truncated or damaged ({why}): fetch or write it again"
        raise FormatError([Fault(message, file=source.name, kind="parquet")]) from None
    return table


_BATCH = 1 << 16
"""Rows of a Parquet file that are decoded at a time."""
_FEW = 1 << 7
"""The same where their size is not known before."""


def _check_footer(data: bytes, allowance: Allowance) -> None:
    """Reject a Parquet file that says of itself that it is too large."""
    about = pq.read_metadata(io.BytesIO(data))
    groups = [about.row_group(n) for n in range(about.num_row_groups)]
    # What is said of a single column must not be asked for: Arrow ends the process where that is
    # damaged. Once a value of the column was read, it is safe.
    allowance.check(sum(max(group.total_byte_size, 0) for group in groups))
    allowance.check(sum(max(group.num_rows, 0) * group.num_columns for group in groups) // 8)


def _check_words(data: bytes, allowance: Allowance) -> None:
    """Reject a Parquet file in which a few long words are repeated too often."""
    # What its footer says is right then, and small: the words stand in a dictionary
    with pq.ParquetFile(io.BytesIO(data)) as file:
        names = file.schema_arrow.names
        columns = [file.schema.column(n) for n in range(len(file.schema))]
        about = file.metadata
        groups = [about.row_group(n) for n in range(about.num_row_groups)]
    words = {n: one.path for n, one in enumerate(columns) if one.physical_type == "BYTE_ARRAY"}
    least = most = 0
    for name in names:
        own = {n: path for n, path in words.items() if f"{path}.".startswith(f"{name}.")}
        if not own:
            continue
        try:
            with pq.ParquetFile(io.BytesIO(data), read_dictionary=list(own.values())) as file:
                bound = 0
                for n_group, group in enumerate(groups):
                    first = next(file.iter_batches(1, [n_group], [name]), None)
                    longest = 0 if first is None else _longest(first.column(0))
                    chunks = [group.column(n) for n in own]
                    bound += sum(
                        max(one.num_values, group.num_rows) * longest + one.total_uncompressed_size
                        for one in chunks
                    )
                if least + most + bound <= allowance.left:
                    most += bound
                else:
                    for batch in file.iter_batches(_BATCH, columns=[name]):
                        least += _n_bytes(batch.column(0))
                        allowance.check(least)
        except pa.ArrowNotImplementedError:  # structs whose parts have several dictionaries
            with pq.ParquetFile(io.BytesIO(data)) as file:
                for batch in file.iter_batches(_FEW, columns=[name]):
                    least += batch.nbytes
                    allowance.check(least)


def _longest(values: Any) -> int:
    if pa.types.is_struct(values.type):
        return max(map(_longest, values.flatten()), default=0)
    if pa.types.is_nested(values.type):
        return _longest(values.values) if hasattr(values, "values") else 0
    if not pa.types.is_dictionary(values.type):
        return 0
    lengths = pc.binary_length(values.dictionary.cast(pa.large_binary()))
    return int(pc.max(lengths).as_py() or 0)


def _n_bytes(values: Any) -> int:
    """Return how many bytes the words of an array take, each as often as it stands there."""
    if pa.types.is_struct(values.type):
        return sum(map(_n_bytes, values.flatten()))
    if pa.types.is_nested(values.type):
        return _n_bytes(values.values) if hasattr(values, "values") else 0
    if not pa.types.is_dictionary(values.type):
        return int(values.nbytes)
    lengths = pc.binary_length(values.dictionary.cast(pa.large_binary()))
    counts = np.bincount(values.indices.drop_null().to_numpy(), minlength=len(lengths))
    return int((counts * lengths.fill_null(0).to_numpy()).sum())


def as_strings(values: Any, column: str, name: str) -> pa.Array:
    """Turn a column of any type into strings, "" where it has no value."""
    cells = _one_chunk(values)
    try:
        if pa.types.is_dictionary(cells.type):
            cells = cells.dictionary_decode()
        if pa.types.is_floating(cells.type):
            cells = _whole(cells.cast(pa.float64()))
        return pc.fill_null(cells.cast(pa.string()), "")
    except pa.ArrowException:
        message = f"column {column!r} holds {cells.type}: turn it into strings or numbers"
        raise FormatError([Fault(message, file=name, kind="column-type")]) from None


def type_of(column: pa.DataType) -> str:
    """Return what the values of a column are: "int", "float", "bool", or "text" for all else."""
    if pa.types.is_dictionary(column):
        column = column.value_type
    for name, is_such in (
        ("bool", pa.types.is_boolean),
        ("int", pa.types.is_integer),
        ("float", pa.types.is_floating),
    ):
        if is_such(column):
            return name
    return "text"


def numbered(values: Any, column: str, name: str) -> pa.DictionaryArray:
    """Turn a column of any type into numbered strings, as `as_strings` makes them."""
    # Only the distinct values become strings
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _renumbered(_one_chunk(values), column, name)
    if values.null_count or not (pa.types.is_integer(kind) or pa.types.is_large_string(kind)):
        values = as_strings(values, column, name)
    found = _one_chunk(values.dictionary_encode())
    words = as_strings(found.dictionary, column, name)
    # Arrow would keep the room of its hash table, of the size of the column.
    pa.default_memory_pool().release_unused()
    return pa.DictionaryArray.from_arrays(found.indices, words)


def _renumbered(values: pa.DictionaryArray, column: str, name: str) -> pa.DictionaryArray:
    """Number the categories that occur, each string once, in the order in which they come."""
    # No value is "", and a string may be a category more than once
    found = values.indices.dictionary_encode("encode")
    words = as_strings(values.dictionary.take(found.dictionary), column, name).dictionary_encode()
    return pa.DictionaryArray.from_arrays(words.indices.take(found.indices), words.dictionary)


def _one_chunk(values: Any) -> Any:
    chunks = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return chunks.combine_chunks() if isinstance(chunks, pa.ChunkedArray) else chunks


def _whole(values: pa.Array) -> pa.Array:
    """Integers where all values are; NaN is not a value."""
    known = pc.if_else(pc.is_nan(values), None, values)
    small = pc.less(pc.abs(known), 2.0**53)
    whole = pc.and_(pc.equal(pc.floor(known), known), small)
    return known.cast(pa.int64()) if pc.all(whole, skip_nulls=True).as_py() else known


def numbers(
    cells: pa.Array, role: str, place: Callable[[int], Fault], *, blank: int = -1
) -> NDArray[np.int64]:
    """Read a column of whole numbers; `MOMENTS` may hold ISO times, read as milliseconds (UTC)."""
    # returns int64 [n_rows]
    empty = pc.equal(cells, "")
    try:
        found = pc.cast(pc.if_else(empty, str(blank), cells), pa.int64())
        return np.asarray(found.to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:
        pass
    values = np.full(len(cells), blank, np.int64)
    faults = []
    for row, cell in enumerate(cells.to_pylist()):
        value = _number(cell, role) if cell else blank
        if value is None:
            what = "a whole number or an ISO time" if role in MOMENTS else "a whole number"
            message = f"{role} {cell[:80]!r} is not {what}: correct it, or rename the column"
            faults.append(replace(place(row), message=message, kind="number"))
        else:
            values[row] = value
    if faults:
        raise FormatError(faults)
    return values


def _number(cell: str, role: str) -> int | None:
    if _WHOLE.fullmatch(cell.strip()) and cell.isascii():
        return int(cell.strip().partition(".")[0])
    if role not in MOMENTS:
        return None
    try:
        moment = datetime.fromisoformat(cell.strip())
    except ValueError:
        return None
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (zoned - _EPOCH) // timedelta(milliseconds=1)


# --------------------------------------------------------------------------------------------------
# Names of integer labels, as Hugging Face's `datasets` writes them.


def names_in_metadata(schema: pa.Schema) -> dict[str, list[str]]:
    """Return the names of integer labels by column, as Hugging Face's `datasets` writes them."""
    try:
        about = json.loads((schema.metadata or {})[b"huggingface"])
        features = about["info"]["features"]
    except (KeyError, TypeError, ValueError):
        return {}
    if not isinstance(features, Mapping):
        return {}
    found = {name: names_of(feature) for name, feature in features.items()}
    return {name: listed for name, listed in found.items() if listed}


def with_names(table: pa.Table, names: Mapping[str, Sequence[str]]) -> pa.Table:
    """Return a table that tells the names of its integer labels, for `names_in_metadata`."""
    features = {column: {"names": list(listed)} for column, listed in names.items()}
    about = json.dumps({"info": {"features": features}}).encode()
    return table.replace_schema_metadata({b"huggingface": about})


def spell_labels(table: pa.Table, file: str) -> pa.Table:
    """Return a table with names in place of its integer labels; lists stay as they are."""
    for column, listed in names_in_metadata(table.schema).items():
        place = table.schema.get_field_index(column)
        if place < 0 or not pa.types.is_integer(table.schema.field(place).type):
            continue
        codes = table.column(place)
        highest = pc.max(codes).as_py()
        if highest is not None and highest >= len(listed):
            message = f"column {column!r} has the label {highest}, but only {len(listed)} names"
            raise FormatError([Fault(message, file=file, kind="names")])
        known = pc.if_else(pc.greater_equal(codes, 0), codes, None)
        table = table.set_column(place, column, pa.array(listed, pa.string()).take(known))
    return table


def names_of(feature: Any) -> list[str]:
    """Find the names of the classes within the description of a column."""
    if isinstance(feature, list):
        return next((names for one in feature if (names := names_of(one))), [])
    if isinstance(feature, Mapping):
        listed: Any = feature.get("names")
        if isinstance(listed, Mapping):  # {"0": "O", "1": "B-PER"}, in any order
            numbers = all(str(key).isdecimal() for key in listed)
            keys = sorted(listed, key=int) if numbers else list(listed)
            listed = [listed[key] for key in keys]
        if isinstance(listed, list) and all(isinstance(one, str) for one in listed):
            return listed
        return names_of(feature.get("feature") or feature.get("sequence") or [])
    listed = getattr(feature, "names", None)
    if isinstance(listed, list | tuple) and all(isinstance(one, str) for one in listed):
        return list(listed)
    inner = getattr(feature, "feature", None)
    return [] if inner is None else names_of(inner)


# --------------------------------------------------------------------------------------------------
# The text of an item, and where its tokens are in it, in columns of tokens (CoNLL, wide, long).
# A text stands on one line as a JSON string, which holds every character as it is; where cells can
# be quoted (CSV) it stands as it is. Offsets are `start:end`, the token's first code point and one
# past its last, `_` where they are not known.


TEXT, OFFSETS = "text", "offsets"
"""Names of the two columns."""
UNKNOWN = "_"

_OFFSETS = re.compile(r"(\d{1,9}):(\d{1,9})")
_LINE_ENDS = re.compile("[\x7f-\x9f\u2028\u2029]")


def has_texts(crowd: Crowd) -> bool:
    """Return whether the text of any item is known."""
    return crowd.texts is not None and crowd.texts.null_count < crowd.n_items


def texts_with_offsets(crowd: Crowd) -> Iterator[tuple[str | None, list[str]]]:
    """Return the text of every item, None where it is not known, and the cells of offsets."""
    texts = [None] * crowd.n_items if crowd.texts is None else crowd.texts.to_pylist()
    for whole, tokens, own in zip(texts, crowd.tokens_list, item_texts(crowd), strict=True):
        there = whole is not None and _shown_as_they_are(own, tokens)
        yield whole, [f"{a}:{b}" if there else UNKNOWN for a, b in own.bounds]


def json_text(text: str) -> str:
    """Write a text as a JSON string without anything that any reader takes for a line end."""
    written = json.dumps(text, ensure_ascii=False)
    return _LINE_ENDS.sub(lambda char: f"\\u{ord(char[0]):04x}", written)


def read_json_text(value: str) -> str | None:
    """Read a JSON string; None for anything else, such as the plain text of CoNLL-U."""
    try:
        found = json.loads(value) if value.startswith('"') else None
    except ValueError:
        return None
    return found if isinstance(found, str) else None


def are_offsets(cells: Iterator[str]) -> bool:
    """Return whether cells hold offsets alone, and at least one."""
    found = (_OFFSETS.fullmatch(cell) for cell in cells if cell != UNKNOWN)
    first = next(found, None)
    return first is not None and all(found)


def read_offsets(cells: Sequence[str], text: str, tokens: Sequence[str]) -> list[int] | None:
    """Read where tokens begin; None where the cells do not say."""
    if all(cell == UNKNOWN for cell in cells):
        return None
    starts = []
    for cell, token in zip(cells, tokens, strict=True):
        match = _OFFSETS.fullmatch(cell)
        if match is None or text[int(match[1]) : int(match[2])] != token:
            message = f"offsets {cell!r} are not those of token {token!r} in the text"
            raise InputError(f"{message}: correct them, or leave text and offsets out")
        starts.append(int(match[1]))
    token_bounds(text, tokens, starts)
    return starts


def _shown_as_they_are(own: ItemText, tokens: Sequence[str]) -> bool:
    """Return whether the tokens are in the text as cells show them."""
    pairs = zip(tokens, own.bounds, strict=True)
    return own.is_own and all(
        own.value[a:b] == token == cell_text(token).strip(" ") for token, (a, b) in pairs
    )
