"""Rows of items: `tokens`, and a column of tags for every annotator.

Every column of lists that are as long as the tokens holds tags. A single one is gold, and so is one
called `gold` or `truth`; of several, each is an annotator's if all have the same kind of tags.
Columns that are usually layers of one corpus (`pos_tags` beside `ner_tags`) are not taken for
annotators. null and negative numbers mean "no label".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from goldspan.crowd.builder import CrowdBuilder
from goldspan.crowd.formats.columns import as_strings, frame_columns, parquet_table
from goldspan.crowd.formats.json_records import collect, first_objects, read_records
from goldspan.crowd.labels import guess_encoding
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source, counted
from goldspan.errors import Fault, FormatError, InputError
from goldspan.spans.text import locate

TOKENS = ("tokens", "words")
_GOLD = ("gold", "truth", "gold_tags")
_ITEM = ("item", "id", "item_id", "sentence_id", "sent_id", "doc_id", "guid")
_DOC = ("doc", "document", "doc_id", "document_id", "group")
_TEXT = ("text", "sentence")
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
    return _plain_column(schema, options, "item", _ITEM)


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


def _read(
    table: pa.Table, name: str, options: ReadOptions, names: Mapping[str, Sequence[str]]
) -> Crowd:
    def refuse(message: str, kind: str = "header") -> FormatError:
        return FormatError([Fault(message, file=name, kind=kind)])

    header = table.column_names
    twice = sorted({one for one in header if header.count(one) > 1})
    if twice:
        raise refuse(f"columns {', '.join(map(repr, twice))} appear twice")
    schema = {field.name: field.type for field in table.schema}
    for role, column in options.columns.items():
        if role in {"token", "gold", "item", "doc", "text", "tag"} and column not in schema:
            raise refuse(f"there is no column {column!r}: the table has {', '.join(header)}")
    token = find_tokens(schema, options)
    if token is None:
        raise refuse(
            f"no column of tokens, a list of strings per row (the table has {', '.join(header)}): "
            "name it with columns={'token': …} (--columns token=NAME)"
        )
    if not len(table):
        raise refuse("the table has no row", "empty")
    shown = partial(_shown, table, names=names)
    gold, workers = _sides(_layers(schema, token), options, refuse, shown)
    reader = _Reader(table, name, options, names, token)
    return reader.crowd(gold, workers)


def has_tags(table: pa.Table) -> bool:
    """Return whether a table has tokens, and tags for each, of which it is clear whose they are."""
    options, names = ReadOptions(), names_in_metadata(table.schema)
    schema = {field.name: field.type for field in table.schema}
    token = find_tokens(schema, options)
    if token is None or len(schema) < table.num_columns:
        return False

    def refuse(message: str, kind: str = "header") -> FormatError:
        return FormatError([Fault(message, kind=kind)])

    shown = partial(_shown, table, names=names)
    try:
        gold, workers = _sides(_layers(schema, token), options, refuse, shown)
    except FormatError:
        return False
    sizes = pc.list_value_length(table.column(token))
    for column in [*([gold] if gold else []), *workers]:
        same = pc.equal(pc.list_value_length(table.column(column)), sizes)
        has_names = _is_text(schema[column].value_type) or column in names
        if not has_names or not pc.all(same, min_count=0).as_py():
            return False
    return True


def _layers(schema: Mapping[str, pa.DataType], token: str) -> dict[str, pa.DataType]:
    return {
        column: kind
        for column, kind in schema.items()
        if column != token
        and _is_list(kind)
        and (_is_text(kind.value_type) or pa.types.is_integer(kind.value_type))
        and column.lower() not in _NOT_TAGS
    }


def _sides(
    layers: Mapping[str, pa.DataType],
    options: ReadOptions,
    refuse: Callable[[str], FormatError],
    shown: Callable[[str], set[str]],
) -> tuple[str | None, list[str]]:
    """Choose the column of the gold, and those of annotators."""
    absent = [name for name in options.workers or () if name not in layers]
    if absent:
        raise refuse(
            f"there is no column of tags {absent[0]!r}: there are {', '.join(layers) or 'none'}"
        )
    gold = options.columns.get("gold") or options.columns.get("tag")
    if gold is not None and gold not in layers:
        raise refuse(f"column {gold!r} does not hold a list of tags per row")
    gold = gold or next((name for name in layers if name.lower() in _GOLD), None)
    others = [name for name in layers if name != gold]
    if options.workers is not None:
        if not options.workers and gold is None and len(others) == 1:
            return others[0], []
        return (None if gold in options.workers else gold), list(options.workers)
    if not layers:
        raise refuse(
            "no column with a list of tags per row beside the tokens: is this a pool of texts?"
        )
    named = options.columns.keys() & {"gold", "tag"}
    if named and len(others) >= 1 and _are_layers(others, shown):
        return gold, []
    if gold is None and len(others) == 1:
        return others[0], []
    if others and _are_layers(others, shown):
        names = ", ".join(layers)
        raise refuse(
            f"columns {names} hold a tag per token, but not the same kind of tags: which are "
            f"annotators? Name them with workers=[…] (--workers {','.join(others[:2])}), or the "
            f"gold with columns={{'gold': {others[0]!r}}} (--columns gold={others[0]})"
        )
    return gold, others


def _are_layers(columns: Sequence[str], shown: Callable[[str], set[str]]) -> bool:
    """Whether columns are layers of one corpus and not annotators."""
    if any(name.lower() in _LAYERS for name in columns):
        return True
    kinds = {guess_encoding(tags) == "PLAIN" for name in columns if (tags := shown(name) - {"O"})}
    return len(kinds) > 1


def _shown(table: pa.Table, column: str, names: Mapping[str, Sequence[str]]) -> set[str]:
    if column in names:
        return set(names[column])
    chunks = table.column(column).chunks
    tags = {tag for chunk in chunks for tag in chunk.flatten().unique().to_pylist()}
    return {str(tag) for tag in tags if tag is not None}


class _Reader:
    """Reads the rows of a table."""

    def __init__(
        self,
        table: pa.Table,
        name: str,
        options: ReadOptions,
        names: Mapping[str, Sequence[str]],
        token: str,
    ) -> None:
        self.table, self.name, self.options, self.names = table, name, options, names
        self.token = token
        self.builder = CrowdBuilder(options, name, "tag-columns")

    def crowd(self, gold: str | None, workers: Sequence[str]) -> Crowd:
        builder, table = self.builder, self.table
        for column in [*([gold] if gold else []), *workers]:
            self._check_numbers(column)
        tags = {column: table.column(column).to_pylist() for column in workers}
        known = table.column(gold).to_pylist() if gold else None
        for worker in workers:
            builder.add_worker(worker)
        ids, docs = self._strings("item", _ITEM), self._strings("doc", _DOC)
        texts = self._strings("text", _TEXT)
        tokens = table.column(self.token).to_pylist()
        for n, words in enumerate(counted(tokens, self.options.progress)):
            with collect(builder.faults):
                item = ids[n] if ids and ids[n] else str(n + 1)
                if not words or not all(isinstance(word, str) and word for word in words):
                    message = "the row has no tokens, or an empty one: leave it out"
                    raise self._error(n, item, message, "no-tokens")
                text, starts = self._placed(texts[n] if texts else None, words)
                place = builder.add_item(
                    item,
                    words,
                    group=docs[n] if docs and docs[n] else None,
                    text=text,
                    token_start=starts,
                    gold=self._tags(n, item, gold, known[n], words) if gold and known else None,
                    line=n + 1,
                )
                for worker in workers:
                    said = self._tags(n, item, worker, tags[worker][n], words)
                    if said is not None and any(tag is not None for tag in said):
                        builder.add_answer(place, worker, said, line=n + 1)
        if gold:
            builder.notes.append(f"column {gold!r} is read as gold")
        if not workers:
            builder.notes.append("no column of an annotator: it is read as gold only")
        return builder.build()

    def _check_numbers(self, column: str) -> None:
        kind = self.table.schema.field(column).type.value_type
        if not pa.types.is_integer(kind) or column in self.names:
            return
        seen = sorted(int(tag) for tag in _shown(self.table, column, {}) if int(tag) >= 0)
        absent = [tag for tag in seen if str(tag) not in self.options.labels]
        if absent:
            message = (
                f"column {column!r} holds numbers from {seen[0]} to {seen[-1]} without names: pass "
                "labels={'0': 'O', '1': 'B-PER', …} (--label 0=O --label 1=B-PER), one for each"
            )
            raise FormatError([Fault(message, file=self.name, kind="names")])

    def _tags(
        self, n: int, item: str, column: str, value: Any, words: Sequence[str]
    ) -> list[str | None] | None:
        """The tags of a cell; None where there is none."""
        if value is None:
            return None
        if len(value) != len(words):
            message = f"column {column!r} has {len(value)} tags for {len(words)} tokens"
            raise self._error(n, item, message, "length")
        names = self.names.get(column)
        found: list[str | None] = []
        for tag in value:
            if tag is None or (isinstance(tag, int) and tag < 0):
                found.append(None)
            elif isinstance(tag, int) and names is not None:
                if tag >= len(names):
                    message = f"column {column!r} has the tag {tag}, but only {len(names)} names"
                    raise self._error(n, item, message, "names")
                found.append(names[tag])
            else:
                found.append(str(tag))
        return found

    def _placed(
        self, text: str | None, words: Sequence[str]
    ) -> tuple[str | None, list[int] | None]:
        """The text, and where its tokens begin, if they are found in it."""
        if not text:
            return None, None
        try:
            return text, [start for start, _ in locate(text, words)]
        except InputError:
            return None, None

    def _strings(self, role: str, usual: Collection[str]) -> list[str] | None:
        """The cells of a column by role, None if there is no such column."""
        found = _plain_column(self.table.schema, self.options, role, usual)
        if found is None:
            return None
        cells: list[str] = as_strings(self.table.column(found), found, self.name).to_pylist()
        return cells

    def _error(self, n: int, item: str, message: str, kind: str) -> FormatError:
        return FormatError([Fault(message, self.name, n + 1, item, kind=kind)])


def _plain_column(
    schema: pa.Schema, options: ReadOptions, role: str, usual: Collection[str]
) -> str | None:
    """Return the column of a role, which does not hold lists; None if there is none."""
    lower = {name.lower(): name for name in reversed(schema.names)}
    found = options.columns.get(role) or next(
        (lower[name] for name in usual if name in lower), None
    )
    return found if found in schema.names and not _is_list(schema.field(found).type) else None


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
