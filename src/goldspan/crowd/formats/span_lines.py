"""What goldspan writes as span JSONL: the header, and the lines of items (read in `span_jsonl.py`).

The header says what no line of an item can show: the version, all tags, all workers.

    {"goldspan": 1, "encoding": "BIO", "types": ["LOC", "PER"], "workers": ["A01", "A02"]}

`tags` stands instead of `types` where the tags are not all those of some types; `unit` says what
offsets count in all lines; `empty` names columns of the crowd that exist without holding a value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.crowd.formats.json_records import Record
from goldspan.crowd.formats.span_exports import (
    SpanRows,
    all_answers,
    answer_rows,
    attribute_rows,
    beside,
    code_table,
    dump,
    gold_rows,
)
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.errors import InputError
from goldspan.old_name import OLD_NAME
from goldspan.spans import Codec, get_encoding

VERSION = 1
HEADERS = ("goldspan", OLD_NAME)
"""Keys of the version in a header: what is written, and what was."""

TIMES = ("started", "submitted", "cost")
SAID = ("spans", "entities", "labels", "label", "tags")
WORKER = ("worker", "annotator")
RESERVED = {
    *(*HEADERS, "item", "id", "doc", "text", "tokens", "token_start", "unit", "gold", "answers"),
    *("attributes", "skipped", "attempt", *TIMES, *WORKER, *SAID),
}
"""Keys of a line that are no attributes of its item."""


@dataclass(frozen=True)
class Header:
    """What the first line says of all others.

    Attributes:
        encoding: Of the tags; None if it does not say.
        codec: All tags that there may be; None if it does not say.
        unit: What offsets count, "token" or "char"; None if it does not say.
        workers: Workers, also those without answers.
        empty: Columns that hold no value.
    """

    encoding: str | None = None
    codec: Codec | None = None
    unit: str | None = None
    workers: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()

    @classmethod
    def read(cls, record: Record) -> Header:
        """Read the header.

        Raises:
            FormatError: It is of a newer version, or a field is wrong.
        """
        key = next(key for key in HEADERS if key in record.value)
        if record.required(record.whole(key), key) != VERSION:
            found = record.value[key]
            message = f"the file is of version {found}, but this goldspan reads version {VERSION}"
            raise record.error(f"{message}: update goldspan", "version")
        types, tags, codec = record.strings("types"), record.strings("tags"), None
        encoding = record.string("encoding")
        if types is not None or tags is not None:
            encoding = str(record.required(encoding, "encoding"))
        try:
            name = None if encoding is None else get_encoding(encoding).name
            if name and tags is not None:
                codec = Codec(tuple(tags), name)
            elif name and types is not None:
                codec = Codec.from_types(types, name)
        except InputError as error:
            raise record.error(str(error)) from None
        workers, empty = record.strings("workers") or (), record.strings("empty") or ()
        return cls(name, codec, record.string("unit"), tuple(workers), tuple(empty))

    def options(self, record: Record, options: ReadOptions) -> ReadOptions:
        """Give the options for the lines: a tag that is declared never means "no label".

        Raises:
            FormatError: The user asks for another encoding.
        """
        asked = get_encoding(options.encoding).name if options.encoding else self.encoding
        if self.encoding and asked != self.encoding:
            message = f"the file is in {self.encoding}, not in {asked}: leave the encoding out"
            raise record.error(f"{message} and convert it afterwards", "encoding")
        declared = self.codec.tags if self.codec else ()
        missing = tuple(word for word in options.missing if word not in declared)
        return replace(options, encoding=asked, missing=missing)

    def check(
        self, record: Record, *, types: Collection[str] = (), tags: Collection[str] = ()
    ) -> None:
        """Refuse types and tags that are not declared.

        Raises:
            FormatError: There is one.
        """
        if self.codec is None:
            return
        unknown = sorted({*types} - {*self.codec.types}) + sorted({*tags} - {*self.codec.tags})
        if unknown:
            known = ", ".join((self.codec.types if types else self.codec.tags)[:20])
            message = f"{unknown[0][:60]!r} is not declared in the header, which has {known}"
            raise record.error(f"{message}: add it there, or mend it here", "undeclared")

    def apply(self, crowd: Crowd, options: ReadOptions) -> Crowd:
        """Give a crowd the tags and the empty columns that are declared."""
        if self.codec is not None:
            renamed = [options.rename(tag) for tag in self.codec.tags]
            tags = dict.fromkeys(name for name in renamed if name is not None)
            crowd = _with_tags(crowd, Codec(tuple(tags), self.codec.encoding))
        if "gold" in self.empty and crowd.gold is None:
            crowd = crowd.with_gold(np.full(crowd.n_tokens, -1, np.int16))
        nothing = pa.nulls(crowd.n_items, pa.string())
        if "groups" in self.empty and crowd.groups is None:
            crowd = replace(crowd, groups=nothing)
        if "texts" in self.empty and crowd.texts is None:
            crowd = replace(crowd, texts=nothing)
        unknown = np.full(len(crowd.answers), -1, np.int64)
        names = [name for name in TIMES if name in self.empty]
        lacking: dict[str, Any] = {n: unknown for n in names if getattr(crowd.answers, n) is None}
        return replace(crowd, answers=replace(crowd.answers, **lacking))


def describe(crowd: Crowd) -> dict[str, Any]:
    """Give the header of a crowd as a JSON object."""
    codec, answers = crowd.tagset, crowd.answers
    header: dict[str, Any] = {"goldspan": VERSION, "encoding": codec.encoding}
    if set(codec.tags) == set(Codec.from_types(codec.types, codec.encoding).tags):
        header["types"] = list(codec.types)
    else:
        header["tags"] = list(codec.tags)
    header["workers"] = crowd.worker_ids.to_pylist()
    columns = {name: getattr(answers, name) for name in TIMES} | {"gold": crowd.gold}
    empty = [name for name, column in columns.items() if column is not None and (column < 0).all()]
    for name in ("groups", "texts"):
        column = getattr(crowd, name)
        if column is not None and column.null_count == len(column):
            empty.append(name)
    return {**header, "empty": empty} if empty else header


def lines(crowd: Crowd) -> Iterator[str]:
    """Write the header and one line per item."""
    yield dump(describe(crowd)) + "\n"
    said, known = answer_rows(crowd), gold_rows(crowd)
    answers, workers = crowd.answers, crowd.worker_ids.to_pylist()
    listed = all_answers(crowd)
    optional = [
        (key, column.to_pylist())
        for key, column in (("doc", crowd.groups), ("text", crowd.texts))
        if column is not None
    ]
    bounds = crowd.offsets.tolist()
    attributes = attribute_rows(crowd)
    for n, name in enumerate(crowd.item_ids.to_pylist()):
        tokens = slice(bounds[n], bounds[n + 1])
        line: dict[str, Any] = {"item": name}
        line |= {key: values[n] for key, values in optional if values[n] is not None}
        line["tokens"] = crowd.tokens_list[n]
        if crowd.token_start is not None:
            line["token_start"] = crowd.token_start[tokens].tolist()
        if crowd.gold is not None and (crowd.gold[tokens] >= 0).any():
            line["gold"] = _said(crowd, known, n, crowd.gold[tokens])
        line["answers"] = []
        for a in listed[n]:
            codes = answers.codes[answers.offset[a] : answers.offset[a + 1]]
            one = {"worker": workers[answers.worker[a]], **_said(crowd, said, a, codes)}
            if answers.attempt[a]:
                one["attempt"] = int(answers.attempt[a])
            for key in TIMES:
                column = getattr(answers, key)
                if column is not None and column[a] >= 0:
                    one[key] = int(column[a])
            line["answers"].append(one)
        yield dump({**line, **beside(attributes[n], RESERVED)}) + "\n"


def _with_tags(crowd: Crowd, tagset: Codec) -> Crowd:
    table = code_table(crowd.tagset, tagset)
    gold = None if crowd.gold is None else np.asarray(table[crowd.gold])
    answers = replace(crowd.answers, codes=np.asarray(table[crowd.answers.codes]))
    return replace(crowd, tagset=tagset, answers=answers, gold=gold)


def _said(crowd: Crowd, rows: SpanRows, n: int, codes: NDArray[np.int16]) -> dict[str, Any]:
    """Labels as spans where these say all, else as tags."""
    words = [*crowd.tagset.tags, None]
    if crowd.tagset.rules.is_plain and len(codes) == 1 and codes[0] >= 0:
        return {"label": words[codes[0]]}
    if not rows.exact[n]:
        return {"tags": [words[code] for code in codes]}
    spans = [{"type": kind, "start": start, "end": end} for kind, start, end in rows.spans[n]]
    skipped = rows.skipped[n]
    return {"spans": spans, "skipped": skipped} if skipped else {"spans": spans}
