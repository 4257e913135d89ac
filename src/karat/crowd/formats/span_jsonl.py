"""Span JSONL: karat's own format, which holds everything of a crowd and can be written by hand.

One JSON object per line. The first may be a header:

    {"karat": 1, "encoding": "BIO", "types": ["PER"], "workers": ["A01", "A02"]}

`types` (or `tags`) is then the complete list: another type is an error. Every other line is an item
with its answers, or one worker's answer to an item:

    {"item": "D1-1", "doc": "D1", "tokens": ["Ann", "sang"], "gold": [["PER", …]], "answers":
     [{"worker": "A01", "spans": [{"type": "PER", "start": 0, "end": 1}], "skipped": [[1, 2]]}]}
    {"id": 7, "text": "Ann sang", "spans": [[0, 3, "PER"]], "worker": "A01"}

A span is an object, or a list of start, end and type. Offsets count tokens; they count characters
where a line has a text but no tokens (it is then tokenised) or says `"unit": "char"`. Instead of
`spans` (also `entities`, `labels`) an answer may have `tags`, one per token with null for none, or
`label`, if the item gets a single one. `skipped` lists ranges of tokens without a label. Also
`attempt`, `started`, `submitted` (milliseconds since 1970, or ISO 8601) and `cost` (millionths).
`gold` is a list of spans, a label, or an object as for an answer. Other fields, and those of an
object `attributes`, are attributes of the item. karat writes spans where they say all, else tags.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from karat.crowd.atomic import write_text
from karat.crowd.formats.char_spans import CharSpan, Cut, char_span, cut_text, whole_text
from karat.crowd.formats.json_records import (
    Record,
    collect,
    first_objects,
    keys_of,
    read_records,
    shown,
)
from karat.crowd.formats.span_crowd import GOLD, Facts, Item, Labels, SpanCrowd
from karat.crowd.formats.span_exports import (
    SpanRows,
    all_answers,
    answer_rows,
    attribute_rows,
    beside,
    dump,
    gold_rows,
)
from karat.crowd.model import Crowd
from karat.crowd.options import ReadOptions
from karat.crowd.source import Source
from karat.errors import Fault, FaultsError, FormatError, InputError
from karat.spans import Codec, get_encoding

SUMMARY = "karat's own JSON lines: texts or tokens with the spans of every worker; holds everything"
SUFFIXES = (".jsonl", ".ndjson")
VERSION = 1

_SAID = ("spans", "entities", "labels", "label", "tags")
_WORKER = ("worker", "annotator")
_FACTS = ("attempt", "started", "submitted", "cost")
_RESERVED = {
    *("item", "id", "doc", "group", "text", "tokens", "token_start", "unit", "gold", "answers"),
    *("attributes", "skipped", *_WORKER, *_SAID, *_FACTS, "karat"),
}
_OTHERS = {"_input_hash", "_task_hash", "annotation_id", "annotations"}


def sniff(source: Source) -> bool:
    """Say whether there is a header, an item with answers, or a worker's spans or label."""
    if source.is_folder:
        return False
    found = first_objects(source)
    if not found or any(_OTHERS & one.keys() for one in found):
        return False
    return type(found[0].get("karat")) is int or any(map(_is_ours, found))


def _is_ours(one: Mapping[str, Any]) -> bool:
    if not {"item", "id"} & one.keys():
        return False
    said = any(key in one for key in _SAID)
    by_annotator = "annotator" in one and ("spans" in one or isinstance(one.get("label"), str))
    mine = isinstance(one.get("answers"), list) or ("tokens" in one and "gold" in one)
    return mine or ("worker" in one and said) or by_annotator


@dataclass(frozen=True)
class _Header:
    """What the first line says of all others."""

    encoding: str | None = None
    unit: str | None = None
    types: frozenset[str] | None = None
    tags: tuple[str, ...] | None = None
    workers: tuple[str, ...] = ()
    empty: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, record: Record) -> _Header:
        if record.whole("karat", 1) != VERSION:
            found = record.value["karat"]
            message = f"the file is of version {found}, this karat reads version {VERSION}: update it"
            raise record.error(message, "version")
        encoding, types, tags = record.string("encoding"), record.strings("types"), record.strings("tags")
        try:
            name = None if encoding is None else get_encoding(encoding).name
            if tags is not None:
                Codec(tuple(tags), str(record.required(name, "encoding")))
            elif types is not None and name is not None:
                tags = list(Codec.from_types(types, name).tags)
        except FaultsError as error:
            raise record.error(str(error)) from None
        except InputError as error:
            raise record.error(str(error)) from None
        return cls(
            name,
            record.string("unit"),
            None if types is None else frozenset(types),
            None if tags is None else tuple(tags),
            tuple(record.strings("workers") or ()),
            tuple(record.strings("empty") or ()),
        )
