"""Rows of items: `tokens`, and a column of tags for every annotator.

Every column of lists that are as long as the tokens holds tags. A single one is gold, and so is one
called `gold` or `truth`; of several, each is an annotator's if all have the same kind of tags.
Columns that are usually layers of one corpus (`pos_tags` beside `ner_tags`) are not taken for
annotators. null and negative numbers mean "no label".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan.crowd.formats.columns import (
    as_strings,
    frame_columns,
    names_in_metadata,
    parquet_table,
)
from goldspan.crowd.formats.json_records import first_objects, read_records
from goldspan.crowd.formats.wide import check_unique, crowd_of_tags
from goldspan.crowd.grid import reject_twice
from goldspan.crowd.guessing import ROLES, check_named, find_columns
from goldspan.crowd.labels import guess_encoding
from goldspan.crowd.model import Crowd, list_array
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source
from goldspan.errors import Fault, FormatError, InputError
from goldspan.spans.text import locate

TOKENS = ("tokens", "words")
_PLAIN = {
    "text": ("text", "sentence"),
    "item": (*ROLES["item"], "doc_id"),
    "doc": ROLES["doc"],
}
"""Roles of columns without lists."""
_LAYERS = {
    *("pos", "pos_tags", "upos", "xpos", "tags_pos", "chunk", "chunk_tags", "ner", "ner_tags"),
    *("ner_tags_fine", "ner_tags_coarse", "tags", "labels", "label", "lemma", "lemmas", "deprel"),
    *("head", "heads", "dep", "deps", "feats", "misc", "frames"),
}
"""Usual names of layers of one corpus, which are not annotators."""
_NOT_TAGS = {"token_start", "starts", "token_end", "ends", "offsets", "whitespace", "ws", "bbox"}
_NOT_TAGS |= {"set", "sets"}  # of alternatives, in labels that goldspan wrote
_OTHERS = {"worker", "annotator", "answers", "spans", "entities", "annotations", "goldspan"}
"""Fields of other formats of JSON lines."""


def find_tokens(schema: Mapping[str, pa.DataType | None], options: ReadOptions) -> str | None:
    """Return the column of tokens, a list of strings per row; None if there is none."""
    named = options.columns.get("token")
    lower = {name.lower(): name for name in reversed(list(schema))}
    for name in [named] if named else [lower[one] for one in TOKENS if one in lower]:
        kind = schema.get(str(name))
        if kind is not None and _is_list(kind) and _is_text(kind.value_type):
            return name
    return None


def id_column(schema: pa.Schema, options: ReadOptions) -> str | None:
    """Return the column of ids in a table with a row per item; None for other tables."""
    if find_tokens({field.name: field.type for field in schema}, options) is None:
        return None
    return _plain_columns(schema, "", options).get("item")


def sniff(source: Source) -> bool:
    """Return whether these are JSON lines with tokens and, in another field, a tag for each."""
    if source.is_folder or source.is_parquet:
        return False
    found = first_objects(source, limit=5)
    return bool(found) and all(map(_is_row, found))


def _is_row(one: Mapping[str, Any]) -> bool:
    name = next((name for name in TOKENS if isinstance(one.get(name), list)), None)
    if name is None or _OTHERS & one.keys():
        return False
    tokens = one[name]
    return all(isinstance(token, str) for token in tokens) and any(
        isinstance(value, list)
        and len(value) == len(tokens)
        and all(isinstance(tag, str) or type(tag) is int or tag is None for tag in value)
        for key, value in one.items()
        if key != name and key.lower() not in _NOT_TAGS
    )


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read a Parquet file, a DataFrame of any make whose cells are lists, or JSON lines."""
    table = parquet_table(source) if source.is_parquet else source.table
    if table is not None:
        if not isinstance(table, pa.Table):
            table = frame_columns(table, lambda header: header)
        return _read(table, source.name, options, names_in_metadata(table.schema))
    faults: list[Fault] = []
    rows = [record.value for record in read_records(source, faults)]
    if faults:
        raise FormatError(faults)
    columns = dict.fromkeys(name for row in rows for name in row)
    try:
        table = pa.table({name: [row.get(name) for row in rows] for name in columns})
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
        why = " ".join(str(error).split())[:200]
        message = f"a field mixes types: {why}"
        raise FormatError([Fault(message, source.name, kind="column-type")]) from None
    return _read(table, source.name, options, {})


def _read(
    table: pa.Table, name: str, options: ReadOptions, names: Mapping[str, Sequence[str]]
) -> Crowd:
    header = table.column_names
    reject_twice(header, header, name)
    schema = {field.name: field.type for field in table.schema}
    roles = {"token", "gold", "item", "doc", "text", "tag"} & options.columns.keys()
    check_named((options.columns[role] for role in roles), header, name)
    token = find_tokens(schema, options)
    if token is None:
        message = (
            f"no column of tokens, a list of strings per row (the table has {', '.join(header)}): "
            "name it with columns={'token': …} (--columns token=NAME)"
        )
        raise FormatError([Fault(message, file=name, kind="header")])
    if not len(table):
        raise FormatError([Fault("the table has no row", file=name, kind="empty")])
    gold, workers = _sides(table, token, name, options, names)
    plain = {
        role: as_strings(table.column(column), column, name)
        for role, column in _plain_columns(table.schema, name, options).items()
    }
    plain = {role: pc.if_else(pc.equal(cells, ""), None, cells) for role, cells in plain.items()}
    numbers = pa.array(np.arange(1, len(table) + 1)).cast(pa.string())
    ids = pc.coalesce(plain["item"], numbers) if "item" in plain else numbers
    tokens = _tokens(table.column(token), name, ids)
    starts = _starts(plain["text"], tokens) if "text" in plain else None
    notes = [f"column {gold!r} is read as gold"] if gold else []
    if not workers:
        notes.append("no column of an annotator: it is read as gold only")
    tags = {
        column: _tags(table.column(column), column, tokens, name, ids, options, names.get(column))
        for column in [*([gold] if gold else []), *workers]
    }
    lines = np.repeat(np.arange(1, len(table) + 1), np.diff(tokens.offsets))
    check_unique(ids, range(1, len(table) + 1), name)
    return crowd_of_tags(
        name,
        "tag-columns",
        options,
        notes,
        ids=ids,
        groups=_known(plain.get("doc")),
        tokens=tokens,
        line=lines,
        gold=tags[gold] if gold else None,
        workers=workers,
        given=(tags[column] for column in workers),
        texts=_known(plain.get("text")),
        token_start=starts,
    )


def has_tags(table: pa.Table) -> bool:
    """Return whether a table has tokens, and tags for each, of which it is clear whose they are."""
    options, names = ReadOptions(), names_in_metadata(table.schema)
    schema = {field.name: field.type for field in table.schema}
    token = find_tokens(schema, options)
    if token is None or len(schema) < table.num_columns:
        return False
    try:
        gold, workers = _sides(table, token, "", options, names)
    except FormatError:
        return False
    sizes = pc.list_value_length(table.column(token))
    for column in [*([gold] if gold else []), *workers]:
        same = pc.equal(pc.list_value_length(table.column(column)), sizes)
        has_names = _is_text(schema[column].value_type) or column in names
        if not has_names or not pc.all(same, min_count=0).as_py():
            return False
    return True


def _sides(
    table: pa.Table,
    token: str,
    file: str,
    options: ReadOptions,
    names: Mapping[str, Sequence[str]],
) -> tuple[str | None, list[str]]:
    """Choose the column of the gold, and those of annotators."""

    def refuse(message: str) -> FormatError:
        return FormatError([Fault(message, file=file, kind="header")])

    layers = [
        field.name
        for field in table.schema
        if field.name != token
        and _is_list(field.type)
        and (_is_text(field.type.value_type) or pa.types.is_integer(field.type.value_type))
        and field.name.lower() not in _NOT_TAGS
    ]
    absent = [name for name in options.workers or () if name not in layers]
    if absent:
        raise refuse(
            f"there is no column of tags {absent[0]!r}: there are {', '.join(layers) or 'none'}"
        )
    gold = options.columns.get("gold") or options.columns.get("tag")
    if gold is not None and gold not in layers:
        raise refuse(f"column {gold!r} does not hold a list of tags per row")
    gold = gold or next((name for name in layers if name.lower() in ROLES["gold"]), None)
    others = [name for name in layers if name != gold]
    if options.workers is not None:
        if not options.workers and gold is None and len(others) == 1:
            return others[0], []
        return (None if gold in options.workers else gold), list(options.workers)
    if not layers:
        raise refuse(
            "no column with a list of tags per row beside the tokens: is this a pool of texts?"
        )
    if gold is None and len(others) == 1:
        return others[0], []
    if others and _are_layers(table, others, names):
        if options.columns.keys() & {"gold", "tag"}:
            return gold, []
        raise refuse(
            f"columns {', '.join(layers)} hold a tag per token, but not the same kind of tags: "
            f"which are annotators? Name them with workers=[…] (--workers {','.join(others[:2])}), "
            f"or the gold with columns={{'gold': {others[0]!r}}} (--columns gold={others[0]})"
        )
    return gold, others


def _are_layers(
    table: pa.Table, columns: Sequence[str], names: Mapping[str, Sequence[str]]
) -> bool:
    """Whether columns are layers of one corpus and not annotators."""
    if any(name.lower() in _LAYERS for name in columns):
        return True
    shown = (
        {*names[name]}
        if name in names
        else {str(tag) for tag in pc.list_flatten(table.column(name)).unique().drop_null()}
        for name in columns
    )
    return len({guess_encoding(tags - {"O"}) == "PLAIN" for tags in shown if tags - {"O"}}) > 1


def _known(cells: pa.Array | None) -> pa.Array | None:
    return cells if cells is not None and cells.null_count < len(cells) else None


def _tokens(column: pa.ChunkedArray, file: str, ids: pa.Array) -> pa.ListArray:
    lists = column.combine_chunks()
    words = pc.list_flatten(lists).cast(pa.string())
    wrong = pc.is_in(words, pa.array(["", None]))
    bad = {*pc.list_parent_indices(lists).filter(wrong).to_pylist()}
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    message = "the row has no tokens, or an empty one: leave it out"
    _reject(message, sorted(bad | {*np.flatnonzero(sizes == 0).tolist()}), file, ids, "no-tokens")
    return list_array(words, np.concatenate([[0], np.cumsum(sizes)]))


def _tags(
    column: pa.ChunkedArray,
    name: str,
    tokens: pa.ListArray,
    file: str,
    ids: pa.Array,
    options: ReadOptions,
    names: Sequence[str] | None,  # Of tags that are numbers
) -> pa.Array:
    """Return a tag per token of a column of lists, null where there is none."""
    lists = column.combine_chunks()
    wanted = np.diff(tokens.offsets)
    sizes = pc.list_value_length(lists)
    there = sizes.is_valid().to_numpy(zero_copy_only=False)
    sizes = pc.fill_null(sizes, 0).to_numpy()
    rows = np.flatnonzero(there & (sizes != wanted)).tolist()
    what = [f"column {name!r} has {sizes[n]} tags for {wanted[n]} tokens" for n in rows]
    _reject(what, rows, file, ids, "length")
    tags = pc.list_flatten(lists)
    if pa.types.is_integer(tags.type):
        tags = pc.if_else(pc.less(tags, 0), None, tags)
        if names is None:
            _check_numbers(tags, name, file, options)
        else:
            n_named = len(names)
            high = pc.greater_equal(tags, n_named)
            rows = np.unique(pc.list_parent_indices(lists).filter(high)).tolist()
            many = f"column {name!r} has the tag {pc.max(tags)}, but only {n_named} names"
            _reject(many, rows, file, ids, "names")
            tags = pa.array(names, pa.string()).take(tags)
    place = np.repeat(there, wanted)
    return tags.cast(pa.string()).take(pa.array(np.cumsum(place) - 1, mask=~place))


def _check_numbers(tags: pa.Array, name: str, file: str, options: ReadOptions) -> None:
    """Reject numbers for which nobody gave a name."""
    seen = sorted(pc.unique(tags.drop_null()).to_pylist())
    if any(str(tag) not in options.labels for tag in seen):
        message = (
            f"column {name!r} holds numbers from {seen[0]} to {seen[-1]} without names: pass "
            "labels={'0': 'O', '1': 'B-PER', …} (--label 0=O --label 1=B-PER), one for each"
        )
        raise FormatError([Fault(message, file=file, kind="names")])


def _reject(
    message: str | Sequence[str], rows: Sequence[int], file: str, ids: pa.Array, kind: str
) -> None:
    each = [message] * len(rows) if isinstance(message, str) else message
    faults = [
        Fault(one, file, n + 1, ids[n].as_py(), kind=kind)
        for one, n in zip(each, rows, strict=True)
    ]
    if faults:
        raise FormatError(faults)


def _starts(texts: pa.Array, tokens: pa.ListArray) -> NDArray[np.int32] | None:
    """Return where the tokens begin in their texts, None if some are not found."""
    found: list[int] = []
    for text, words in zip(texts.to_pylist(), tokens.to_pylist(), strict=True):
        try:
            found += [start for start, _ in locate(text or "", words)]
        except InputError:
            return None
    return np.array(found, np.int32)


def _plain_columns(schema: pa.Schema, file: str, options: ReadOptions) -> dict[str, str]:
    """Return the columns of roles that do not hold lists."""
    header = [name for name in schema.names if not _is_list(schema.field(name).type)]
    named = {role: name for role, name in options.columns.items() if name in header}
    return find_columns(header, file, replace(options, columns=named), _PLAIN)


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
