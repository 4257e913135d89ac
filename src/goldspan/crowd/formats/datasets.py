"""Hugging Face `datasets`: the folder of a DatasetDict, or one Parquet file with its features.

A row per item. Labels are integers whose names are in the features (ClassLabel); -100, which the
losses of most trainers pass over, stands where a token has no label, and null where an item has
none. An annotator's last answer counts. Folders and files that others saved are read as tables
(`tag_columns.py`, `long.py`); several splits become one crowd with an attribute `split`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from goldspan._arrays import count_in_rows
from goldspan.crowd.atomic import new_file, write_folder
from goldspan.crowd.builder import CrowdBuilder
from goldspan.crowd.formats.columns import names_in_metadata, parquet_table
from goldspan.crowd.formats.span_crowd import settle_attributes
from goldspan.crowd.formats.span_exports import SoftLabels, SpanRows
from goldspan.crowd.formats.tag_columns import id_column
from goldspan.crowd.labels import keep_workers, with_notes
from goldspan.crowd.model import Crowd, columns_of_items, known_texts, list_array
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source
from goldspan.errors import Fault, FormatError
from goldspan.spans import Tagged

NO_LABEL = -100
"""What stands for a token without a label."""
SPLIT = "split"
"""The attribute that names the split that an item came from."""
_ANNOTATOR, _ATTRIBUTE = "annotator.", "attribute."
_SOFT = ("probs", "confidence", "spans")
"""What a method says beside the labels."""
_OURS = {"item", "doc", "text", "tokens", "token_start", "ner_tags", "label", SPLIT, *_SOFT}
_DATA_FILE = "data-00000-of-00001.arrow"
_STATE: dict[str, Any] = {
    "_data_files": [{"filename": _DATA_FILE}],
    "_format_columns": None,
    "_format_kwargs": {},
    "_format_type": None,
    "_output_all_columns": False,
    "_split": None,
}


def is_ours(names: Sequence[str]) -> bool:
    """Return whether a table has labels in the columns that goldspan writes, and no other."""
    said = {"ner_tags", "label"} & set(names) or any(one.startswith(_ANNOTATOR) for one in names)
    return bool(said) and _has_only_ours(names)


def _has_only_ours(names: Sequence[str]) -> bool:
    more = {name for name in names if name.startswith((_ANNOTATOR, _ATTRIBUTE))}
    return {"item", "tokens"} <= set(names) <= _OURS | more


def sniff(source: Source) -> bool:
    """Return whether this is a folder of `save_to_disk`, or a Parquet file of goldspan's."""
    if source.is_folder:
        names = (source.files or {}).keys()
        return any(name.rpartition("/")[2] == "state.json" for name in names) and any(
            name.endswith(".arrow") for name in names
        )
    return False


# --------------------------------------------------------------------------------------------------
# Reading.


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read a folder of `save_to_disk`, of a data set or of a dictionary of them."""
    from goldspan.crowd.detection import read_table

    if not source.is_folder and not source.is_parquet:
        message = "neither a folder of save_to_disk nor a Parquet file"
        raise FormatError([Fault(message, file=source.name, kind="format")])
    splits = _split_tables(source) if source.is_folder else {"": parquet_table(source)}
    table, notes = _joined(splits, source.name, options)
    if _has_only_ours(table.column_names):
        return with_notes(read_ours(table, source.name, options), notes)
    crowd = read_table(table, options, source=source.name)
    # What others saved is read by its columns; a split is one of the item only in a row of it.
    if len(splits) > 1 and crowd.attributes is None and crowd.n_items == len(table):
        crowd = replace(crowd, attributes=table.select([SPLIT]))
    return with_notes(crowd, notes)


def _split_tables(source: Source) -> dict[str, pa.Table]:
    parts: dict[str, list[pa.Table]] = {}
    for path, file in source.sorted_files():
        if path.endswith(".arrow"):
            try:
                with pa.ipc.open_stream(file.data) as reader:
                    parts.setdefault(path.rpartition("/")[0], []).append(reader.read_all())
            except (pa.ArrowException, OSError, ValueError) as error:
                why = " ".join(str(error).split())[:200]
                message = f"the Arrow file is damaged ({why}): save the data set again"
                raise FormatError([Fault(message, file=file.name, kind="arrow")]) from None
    if not parts:
        message = "no .arrow file in the folder: is it one of save_to_disk?"
        raise FormatError([Fault(message, file=source.name, kind="empty")])
    tables = {}
    for name in _order(source, parts):
        table = pa.concat_tables(parts[name])
        if len(parts) > 1 and SPLIT not in table.column_names:
            table = table.append_column(SPLIT, pa.array([name] * len(table), pa.string()))
        tables[name] = table
    return tables


def _joined(
    splits: Mapping[str, pa.Table], file: str, options: ReadOptions
) -> tuple[pa.Table, tuple[str, ...]]:
    """Join splits to one table, and say what was changed in them for that."""
    if len(splits) == 1:
        return next(iter(splits.values())), ()
    splits = _with_spelled_labels(splits, file)
    splits, notes = _with_own_ids(splits, options)
    try:
        return pa.concat_tables(splits.values()), notes
    except pa.ArrowException as error:
        why = str(error).split("\n", 1)[0][:200]
        message = (
            f"the splits {', '.join(splits)} have different columns ({why}): read them one by one"
        )
        raise FormatError([Fault(message, file=file, kind="splits")]) from None


def _with_spelled_labels(splits: Mapping[str, pa.Table], file: str) -> Mapping[str, pa.Table]:
    """Write names in place of the numbers of labels, where splits number them in several ways."""
    named = {split: names_in_metadata(table.schema) for split, table in splits.items()}
    first, *others = named.values()
    if all(names == first for names in others):
        return splits
    columns = {column for names in named.values() for column in names}
    spelled = {}
    for split, table in splits.items():
        place = f"{file}, split {split}"
        for column in sorted(columns & {*table.column_names}):
            if column not in named[split]:
                message = (
                    f"column {column!r} has no names of labels, and that of other splits has: read "
                    "the splits one by one"
                )
                raise FormatError([Fault(message, file=place, kind="names")])
            labels = _named(table[column].to_pylist(), named[split][column], place)
            is_list = pa.types.is_nested(table.schema.field(column).type)
            kind = pa.list_(pa.string()) if is_list else pa.string()
            at = table.schema.get_field_index(column)
            table = table.set_column(at, column, pa.array(labels, kind))  # noqa: PLW2901
        spelled[split] = table
    return spelled


def _named(values: Sequence[Any], names: Sequence[str], file: str) -> list[Any]:
    """Return labels, or lists of them, by their names; None for what is no label."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, list):
            found.append(_named(value, names, file))
        elif isinstance(value, int) and value >= len(names):
            message = f"a label is {value}, but there are only {len(names)} names"
            raise FormatError([Fault(message, file=file, kind="names")])
        elif isinstance(value, int):
            found.append(None if value < 0 else names[value])
        else:
            found.append(value)
    return found


def _with_own_ids(
    splits: Mapping[str, pa.Table], options: ReadOptions
) -> tuple[Mapping[str, pa.Table], tuple[str, ...]]:
    """Put the names of the splits before the ids of rows that begin anew in every split."""
    table = next(iter(splits.values()))
    column = "item" if _has_only_ours(table.column_names) else id_column(table.schema, options)
    if column is None or any(column not in table.column_names for table in splits.values()):
        return splits, ()
    ids = {split: table[column].to_pylist() for split, table in splits.items()}
    seen: set[Any] = {None, ""}
    twice: list[Any] = []
    for listed in ids.values():
        known = {*listed} - {None, ""}
        twice += [name for name in listed if name in known & seen]
        seen |= known
    if not twice:
        return splits, ()
    changed = {}
    for split, table in splits.items():
        place = table.schema.get_field_index(column)
        named = [None if name in {None, ""} else f"{split}-{name}" for name in ids[split]]
        changed[split] = table.set_column(place, column, pa.array(named, pa.string()))
    example = f"{next(iter(splits))}-{twice[0]}"
    note = (
        f"{len(set(twice))} ids of items are in several splits: the name of the split is put "
        f"before all ids, as in {example!r}"
    )
    return changed, (note,)


def _order(source: Source, parts: Mapping[str, object]) -> list[str]:
    """The splits in the order in which the dictionary names them."""
    try:
        listed = json.loads((source.files or {})["dataset_dict.json"].text.value)["splits"]
    except (KeyError, TypeError, ValueError, FormatError):
        return list(parts)
    known = [name for name in listed if isinstance(name, str) and name in parts]
    return known + [name for name in parts if name not in known]


def read_ours(table: pa.Table, name: str, options: ReadOptions) -> Crowd:
    """Read a table with the columns that goldspan writes."""
    names, header = names_in_metadata(table.schema), table.column_names
    gold = "label" if "label" in header else "ner_tags"
    workers = [column for column in header if column.startswith(_ANNOTATOR)]
    said = [column for column in (gold, *workers) if column in names]
    single = not any(pa.types.is_nested(table.schema.field(column).type) for column in said)
    classes = {one for listed in names.values() for one in listed}
    builder = CrowdBuilder(options.with_labels(classes), name, "datasets")
    columns = {column: table.column(column).to_pylist() for column in header if column != "probs"}
    labels = {column: _named(columns[column], names[column], name) for column in said}
    if single:
        labels = {column: [one and [one] for one in labels[column]] for column in said}
    unread = [column for column in _SOFT if column in header]
    if unread:
        builder.notes.append(f"columns that are not read: {', '.join(unread)}")
    for column in workers:
        builder.add_worker(column.removeprefix(_ANNOTATOR))
    extra = [column for column in header if column.startswith(_ATTRIBUTE) or column == SPLIT]
    rows = [{column.removeprefix(_ATTRIBUTE): columns[column][n] for column in extra}
            for n in range(len(table))]  # fmt: skip
    nothing = [None] * len(table)
    for n, attributes in enumerate(settle_attributes(rows, builder.notes)):
        item = builder.add_item(
            str(columns["item"][n]),
            columns["tokens"][n],
            group=columns.get("doc", nothing)[n],
            text=columns.get("text", nothing)[n],
            token_start=columns.get("token_start", nothing)[n],
            gold=labels.get(gold, nothing)[n],
            attributes=attributes,
            line=n + 1,
        )
        for column in workers:
            tags = labels.get(column, nothing)[n]
            if tags is not None:
                builder.add_answer(item, column.removeprefix(_ANNOTATOR), tags, line=n + 1)
    return keep_workers(builder.build(single=single), options)


# --------------------------------------------------------------------------------------------------
# Writing.


def write(crowd: Crowd, path: Path, soft: SoftLabels | None = None) -> None:
    """Write a folder with the split `train`; a Parquet file if the name ends in `.parquet`."""
    if Path(path).suffix == ".parquet":
        with new_file(path) as temporary:
            pq.write_table(to_table(crowd, soft), temporary, compression="zstd")
        return
    write_splits(path, {"train": to_table(crowd, soft)})


def write_splits(path: Path, splits: Mapping[str, pa.Table], card: str = "") -> None:
    """Write the folder of a DatasetDict, as `save_to_disk` does, perhaps with a README.md."""

    def fill(folder: Path) -> None:
        listed = json.dumps({"splits": list(splits)})
        (folder / "dataset_dict.json").write_text(listed, encoding="utf-8")
        for name, table in splits.items():
            _write_split(folder / name, table)
        if card:
            (folder / "README.md").write_text(card, encoding="utf-8")

    write_folder(path, fill)


def _write_split(folder: Path, table: pa.Table) -> None:
    folder.mkdir()
    file = folder / _DATA_FILE
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table, max_chunksize=1000)
    about = json.loads(table.schema.metadata[b"huggingface"])["info"]
    info = {"citation": "", "description": "", **about, "homepage": "", "license": ""}
    state = {**_STATE, "_fingerprint": blake2b(file.read_bytes(), digest_size=8).hexdigest()}
    for name, facts in (("dataset_info.json", info), ("state.json", state)):
        (folder / name).write_text(json.dumps(facts, indent=2), encoding="utf-8")


def to_table(crowd: Crowd, soft: SoftLabels | None = None) -> pa.Table:
    """Return a row per item, with the features that `datasets` reads in the metadata."""
    single = crowd.is_classification
    columns = {"item": crowd.item_ids, **columns_of_items(crowd, known_texts(crowd))}
    classes = []
    if crowd.gold is not None:
        name = "label" if single else "ner_tags"
        columns[name] = _labels(Tagged(crowd.gold, crowd.offsets), single=single)
        classes.append(name)
    for w, worker in enumerate(crowd.worker_ids.to_pylist()):
        codes, mine = np.full(crowd.n_tokens, -1, np.int16), crowd.worker_of == w
        codes[crowd.token_of[mine]] = crowd.latest.codes[mine]
        columns[f"{_ANNOTATOR}{worker}"] = _labels(Tagged(codes, crowd.offsets), single=single)
        classes.append(f"{_ANNOTATOR}{worker}")
    others = pa.table({}) if crowd.attributes is None else crowd.attributes.combine_chunks()
    for name, column in zip(others.column_names, others.columns, strict=True):
        if _is_plain(column.type):
            columns[f"{_ATTRIBUTE}{name}"] = column
    if soft is not None and crowd.gold is not None:
        columns |= _soft(crowd, soft)
    labels = {"names": list(crowd.tagset.tags), "_type": "ClassLabel"}
    features = {name: feature_of(column.type) for name, column in columns.items()}
    own = labels if single else {"feature": labels, "_type": "Sequence"}
    features |= dict.fromkeys(classes, own)
    about = json.dumps({"info": {"features": features}}, ensure_ascii=False)
    return pa.table(columns).replace_schema_metadata({"huggingface": about})


def _labels(tagged: Tagged, *, single: bool) -> pa.Array:
    """Codes as labels: a list per item, or one; null where nothing is known of an item."""
    codes = tagged.codes.astype(np.int64)
    if single:
        return pa.array(codes, mask=codes < 0)
    known, sizes = count_in_rows(codes >= 0, tagged.offsets) > 0, np.diff(tagged.offsets)
    bounds = np.concatenate([[0], np.cumsum(np.where(known, sizes, 0))])
    kept = np.where(codes < 0, NO_LABEL, codes)[np.repeat(known, sizes)]
    offsets = pa.array(bounds, pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(kept), mask=pa.array(~known))


def _soft(crowd: Crowd, soft: SoftLabels) -> dict[str, pa.Array]:
    found: dict[str, pa.Array] = {}
    if soft.token_probs is not None:
        n, width = soft.token_probs.shape
        flat = pa.array(np.ascontiguousarray(soft.token_probs, np.float32).reshape(-1))
        rows = list_array(flat, np.arange(n + 1) * width)
        is_single = crowd.is_classification
        found["probs"] = rows if is_single else list_array(rows, crowd.offsets)
    if soft.confidence is not None:
        found["confidence"] = pa.array(soft.confidence.astype(np.float32))
    if not crowd.tagset.rules.is_plain:
        rows = SpanRows.of(crowd.gold_tagged, crowd.tagset).spans
        scores = soft.by_item(crowd)
        kind = pa.struct([("start", pa.int32()), ("end", pa.int32()), ("type", pa.string()),
                          ("confidence", pa.float32())])  # fmt: skip
        both = (zip(row, sure, strict=True) for row, sure in zip(rows, scores, strict=True))
        listed = [[{**span._asdict(), "confidence": score} for span, score in row] for row in both]
        found["spans"] = pa.array(listed, pa.list_(kind))
    return found


def _is_plain(kind: pa.DataType) -> bool:
    checks = (pa.types.is_string, pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    return any(check(kind) for check in checks)


def feature_of(kind: pa.DataType) -> Any:
    """Describe a type as `datasets` does in its files."""
    if pa.types.is_list(kind):
        inner = feature_of(kind.value_type)
        return [inner] if "_type" not in inner else {"feature": inner, "_type": "Sequence"}
    if pa.types.is_struct(kind):
        return {field.name: feature_of(field.type) for field in kind}
    names = {pa.float32(): "float32", pa.float64(): "float64"}
    return {"dtype": names.get(kind, str(kind)), "_type": "Value"}
