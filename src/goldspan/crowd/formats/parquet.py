"""Parquet: the compact file that holds everything of a crowd.

One table with two sorts of rows. A row without a worker is an item: `item` (its number), `id`,
`doc`, `tokens`, `gold`, `text`, `token_start` and the attributes. A row with a worker is an answer:
`item`, `worker`, `labels`, `attempt`, `started`, `submitted`, `cost`, `guideline`. Labels and gold
are list<int16> with null where a token has none; the schema's metadata hold the tags, the encoding
and the version of the layout. The file of an aggregation (`Consensus.to_arrow`: an item per row) is
read as items with gold. Any other Parquet file is a long table, a table of spans
(`span_table.py`), or has a row per item (`tag_columns.py`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from goldspan.crowd.atomic import new_file, write_folder
from goldspan.crowd.formats.columns import parquet_table
from goldspan.crowd.grouping import count_first
from goldspan.crowd.labels import keep_workers
from goldspan.crowd.layers import require_flat
from goldspan.crowd.model import ANSWER_COLUMNS, Answers, Crowd, list_array
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import ImportReport, Source
from goldspan.errors import Fault, FormatError, InputError
from goldspan.params import Whole, require
from goldspan.spans import Codec

VERSION = 1

_KEY = b"goldspan"
"""Of the metadata."""
_OF_ITEMS = frozenset({"item", "doc", "text", "label", "whole", "part"})
METHOD = "goldspan.method"
"""What the footer of a table of labels has, and that of answers has not."""
_TAGS, _ENCODING = b"goldspan.tags", b"goldspan.encoding"
_LAYOUT_ERRORS = (
    pa.ArrowException,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
"""What a table of another layout than the metadata say may raise."""


def sniff(source: Source) -> bool:
    """Return whether the bytes are a Parquet file."""
    return not source.is_folder and source.is_parquet


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read goldspan's layout, or any other Parquet file as the sort of table that it is."""
    table = parquet_table(source)
    known = table.schema.metadata or {}
    if not {_KEY, _TAGS} & known.keys():
        from goldspan.crowd.detection import read_parquet

        return read_parquet(table, source, options)
    try:
        if _KEY in known:
            about = json.loads(known[_KEY])
            _check_version(int(about["version"]), source.name)
            found = _read(table, about, source.name)
        else:
            found = _read_labels(table, source.name)
        broken = _broken(found)
    except FormatError:
        raise
    except _LAYOUT_ERRORS as error:
        broken = f"{type(error).__name__}: {error}"
    if broken:
        message = f"goldspan's layout is damaged ({broken}): write the file again"
        raise FormatError([Fault(message, file=source.name, kind="parquet")])
    if _KEY not in known:
        return found
    if options.repeated == "first":
        a = found.answers
        found = replace(found, answers=replace(a, attempt=count_first(a.item, a.worker, a.attempt)))
    return keep_workers(found, options)


def _check_version(version: int, file: str) -> None:
    if version > VERSION:
        message = (
            f"written by a newer goldspan (layout {version}, this one reads {VERSION}): "
            "update goldspan"
        )
        raise FormatError([Fault(message, file=file, kind="version")])


def write(crowd: Crowd, path: Path, more: Mapping[str, Any] | None = None) -> None:
    """Write goldspan's layout; DELTA_BINARY_PACKED integers under zstd."""
    items, answers = _item_rows(crowd), _answer_rows(crowd)
    about: dict[str, Any] = {
        "version": VERSION,
        "encoding": crowd.tagset.encoding,
        "tags": list(crowd.tagset.tags),
        "workers": crowd.worker_ids.to_pylist(),
        "has": [
            name
            for name in ("doc", "gold", "text", "token_start", "whole", "part")
            if name in items.column_names
        ],
        "attributes": crowd.attributes.column_names if crowd.attributes is not None else [],
    }
    if crowd.known_facts:
        about["worker_facts"] = crowd.known_facts
    about |= more or {}
    table = pa.concat_tables([items, answers], promote_options="default")
    table = table.replace_schema_metadata({_KEY: json.dumps(about)})
    packed = {"item": "DELTA_BINARY_PACKED", "labels.list.element": "DELTA_BINARY_PACKED"}
    plain = [name for name in ("id", "doc", "text", "worker") if name in table.column_names]
    with new_file(path) as temporary:
        pq.write_table(
            table,
            temporary,
            compression="zstd",
            use_dictionary=plain,
            column_encoding=packed,
            row_group_size=1 << 20,
            write_page_checksum=True,
        )


def about_of(path: Path) -> dict[str, Any]:
    """Return what the footer of goldspan's layout says of a crowd: tags, encoding, workers."""
    known: dict[bytes, bytes] = {}
    try:
        known = pq.read_schema(path).metadata or {}
        about = json.loads(known.get(_KEY, b"null"))
    except (pa.ArrowException, OSError, ValueError):
        about = None
    names = {"workers": list, "tags": list, "encoding": str}
    if not isinstance(about, dict) or any(
        not isinstance(about.get(name), kind) for name, kind in names.items()
    ):
        message = "it is not in goldspan's layout, or damaged: write it by goldspan convert"
        if METHOD.encode() in known:
            message = "it holds labels that were aggregated, not answers: name a file of answers"
        raise FormatError([Fault(message, file=str(path), kind="parquet")])
    return about


def _item_rows(crowd: Crowd) -> pa.Table:
    columns: dict[str, Any] = {
        "item": pa.array(np.arange(crowd.n_items, dtype=np.int64)),
        "id": crowd.item_ids,
        "tokens": crowd.tokens,
    }
    columns |= crowd.item_names
    if crowd.gold is not None:
        columns["gold"] = list_array(pa.array(crowd.gold, mask=crowd.gold < 0), crowd.offsets)
    if crowd.texts is not None:
        columns["text"] = crowd.texts
    if crowd.token_start is not None:
        columns["token_start"] = list_array(pa.array(crowd.token_start), crowd.offsets)
    if crowd.attributes is not None:
        for name in crowd.attributes.column_names:
            columns[f"attribute.{name}"] = crowd.attributes.column(name)
    return pa.table(columns)


def _answer_rows(crowd: Crowd) -> pa.Table:
    answers = crowd.answers
    workers = pa.DictionaryArray.from_arrays(pa.array(answers.worker), crowd.worker_ids)
    columns: dict[str, Any] = {
        "item": pa.array(answers.item.astype(np.int64)),
        "worker": workers.cast(pa.string()),
        "labels": list_array(pa.array(answers.codes, mask=answers.codes < 0), answers.offset),
        "attempt": pa.array(answers.attempt),
    }
    for name in ANSWER_COLUMNS:
        values = getattr(answers, name)
        if values is not None:
            columns[name] = pa.array(values)
    return pa.table(columns)


def _read(table: pa.Table, about: dict[str, Any], name: str) -> Crowd:
    """Read rows of items and rows of answers."""
    is_item = pc.is_null(table.column("worker"))
    items, rows = table.filter(is_item), table.filter(pc.invert(is_item))
    place = {worker: i for i, worker in enumerate(about["workers"])}
    workers = rows.column("worker").combine_chunks().dictionary_encode()
    order = np.array([place[w] for w in workers.dictionary.to_pylist()], np.int32)
    worker = order[workers.indices.to_numpy()] if len(rows) else np.zeros(0, np.int32)
    codes, offset = _flat(rows.column("labels"))
    times = {
        key: np.asarray(rows.column(key).fill_null(-1).to_numpy()).astype(np.int64)
        for key in ANSWER_COLUMNS
        if key in table.column_names
    }
    item = rows.column("item").fill_null(-1).to_numpy().astype(np.int32)
    attempt = rows.column("attempt").fill_null(-1).to_numpy().astype(np.int16)
    has, listed = set(about["has"]), [f"attribute.{key}" for key in about["attributes"]]
    placed = int((codes >= 0).sum())
    return _crowd_of(
        items,
        has,
        item_ids=_chunk(items.column("id")),
        worker_ids=pa.array(about["workers"], pa.string()),
        tagset=Codec(tuple(about["tags"]), about["encoding"]),
        answers=Answers(item, worker, offset, codes, attempt, **times),
        gold=_flat(items.column("gold"))[0] if "gold" in has else None,
        attributes=items.select(listed).rename_columns(about["attributes"]) if listed else None,
        import_report=ImportReport(name, "parquet", placed, placed),
        worker_facts={
            str(worker): {str(key): str(value) for key, value in facts.items()}
            for worker, facts in about.get("worker_facts", {}).items()
        },
    )


def _read_labels(table: pa.Table, name: str) -> Crowd:
    """Read what `Consensus.to_arrow` made: the labels are gold, the confidence is an attribute."""
    about = table.schema.metadata
    codec = Codec(tuple(json.loads(about[_TAGS])), about[_ENCODING].decode())
    tokens, labels = _chunk(table.column("tokens")), _chunk(table.column("tags"))
    if not np.array_equal(_bounds(tokens), _bounds(labels)):
        raise ValueError("not as many tags as tokens")
    places = {**codec.index, None: -1}
    gold = np.array([places[tag] for tag in labels.flatten().to_pylist()], np.int16)
    plain = [one for one in table.column_names if not pa.types.is_nested(table[one].type)]
    more = [one for one in plain if one not in _OF_ITEMS]
    return _crowd_of(
        table,
        set(table.column_names),
        item_ids=_chunk(table.column("item")).cast(pa.string()),
        worker_ids=pa.array([], pa.string()),
        tagset=codec,
        answers=Answers.none(),
        gold=gold,
        attributes=table.select(more) if more else None,
        import_report=ImportReport(
            name, "parquet", notes=("labels of an aggregation are read as gold",)
        ),
    )


def _crowd_of(items: pa.Table, has: Collection[str], **others: Any) -> Crowd:
    """Make a crowd of a row per item, of which both layouts have some columns."""
    tokens = _chunk(items.column("tokens"))
    starts = _chunk(items.column("token_start")).flatten() if "token_start" in has else None
    return Crowd(
        tokens=list_array(tokens.flatten(), _bounds(tokens)),
        groups=_chunk(items.column("doc")) if "doc" in has else None,
        texts=_chunk(items.column("text")) if "text" in has else None,
        token_start=None if starts is None else starts.to_numpy().astype(np.int32),
        wholes=_chunk(items.column("whole")) if "whole" in has else None,
        parts=_chunk(items.column("part")) if "part" in has else None,
        **others,
    )


def _broken(crowd: Crowd) -> str:
    """Return what does not fit together, "" if everything does."""
    answers, tokens = crowd.answers, np.diff(crowd.offsets)
    columns = (crowd.item_ids, crowd.tokens, crowd.tokens.flatten())
    n_items, n_tags = crowd.n_items, len(crowd.tagset.tags)
    keys = {name: getattr(answers, name) for name in ("item", "worker", "attempt")}
    n_keys = len(pa.table(keys).group_by(list(keys)).aggregate([]))
    checks = {
        "a value is missing": not any(column.null_count for column in columns),
        "an id appears twice": len(pc.unique(crowd.item_ids)) == n_items
        and len(pc.unique(crowd.worker_ids)) == crowd.n_workers,
        "an item has no token": bool((tokens > 0).all()),
        "an answer has no item": bool(((answers.item >= 0) & (answers.item < n_items)).all()),
        "a label is not a tag": all(
            codes is None or not codes.size or -1 <= codes.min() <= codes.max() < n_tags
            for codes in (answers.codes, crowd.gold)
        ),
        "a column is too short": all(
            column is None or len(column) == crowd.n_tokens
            for column in (crowd.gold, crowd.token_start)
        ),
        "an attempt appears twice": n_keys == len(answers) and not (answers.attempt < 0).any(),
    }
    wrong = [text for text, holds in checks.items() if not holds]
    if not wrong and not np.array_equal(tokens[answers.item], answers.lengths):
        wrong.append("an answer has not as many labels as its item has tokens")
    return "; ".join(wrong)


def _flat(column: pa.ChunkedArray) -> tuple[NDArray[np.int16], NDArray[np.int64]]:
    lists = _chunk(column)
    values = pc.fill_null(lists.flatten().cast(pa.int16()), -1)
    return values.to_numpy(zero_copy_only=False).astype(np.int16), _bounds(lists)


def _bounds(lists: pa.ListArray) -> NDArray[np.int64]:
    offsets = lists.offsets.to_numpy().astype(np.int64)
    return np.asarray(offsets - offsets[0])


def _chunk(column: pa.ChunkedArray) -> Any:
    found = column.combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found


# --------------------------------------------------------------------------------------------------
# A crowd in several files of one folder, each with all answers to its items: part-00000.parquet, …
# They have the same tags; workers may answer in several. `goldspan.aggregation.partitions` works on
# them without ever holding more than a few.


PARTITIONS = "part-*.parquet"
MAX_PARTITIONS = 99_999


def is_partitioned(path: str | Path) -> bool:
    """Return whether a path is a folder of partitions."""
    return Path(path).is_dir() and any(Path(path).glob(PARTITIONS))


def partitions_of(path: str | Path) -> list[Path]:
    """List the partitions of a folder in their order."""
    found = sorted(Path(path).glob(PARTITIONS))
    for one in found:
        if not one.is_file():
            raise InputError(f"{one} is no file: partitions are files")
    if not found:
        raise InputError(
            f"{path}: there is no partition ({PARTITIONS}); `goldspan convert` makes them"
        )
    return found


def write_partitions(crowd: Crowd, path: str | Path, n: int) -> int:
    """Write a crowd as partitions of about equal work, items in their order."""
    require("partitions", n, Whole(1, MAX_PARTITIONS))
    require_flat(crowd, "a folder of partitions")
    work = np.diff(crowd.offsets) + np.bincount(
        crowd.answers.item, np.diff(crowd.answers.offset), crowd.n_items
    )
    before = np.concatenate([[0], np.cumsum(work)])
    targets = before[-1] * np.arange(1, n) / n
    inner = np.searchsorted(before, targets)
    edges = np.unique(np.concatenate([[0], inner, [crowd.n_items]]).clip(0, crowd.n_items))

    def fill(folder: Path) -> None:
        for number, (first, last) in enumerate(pairwise(edges)):
            part = crowd.select_items(np.arange(first, last))
            there = np.bincount(part.answers.worker, minlength=crowd.n_workers) > 0
            place = {"partition": [number, len(edges) - 1]}  # so that a lost one is missed
            write(part.select_workers(there), folder / f"part-{number:05}.parquet", place)

    write_folder(path, fill)
    return len(edges) - 1
