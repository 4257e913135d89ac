"""Span JSONL: goldspan's own format, an item and its answers per line.

It holds everything of a crowd, and can be written by hand.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.crowd.atomic import write_text
from goldspan.crowd.formats.char_spans import (
    CharSpan,
    Cut,
    check_starts,
    cut_text,
    read_span,
    whole_text,
)
from goldspan.crowd.formats.json_records import (
    MAX_INTEGER,
    Record,
    collect,
    first_objects,
    keys_of,
    read_records,
    shown,
)
from goldspan.crowd.formats.span_crowd import GOLD, Facts, Item, Labels, SpanCrowd
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
from goldspan.crowd.layers import by_whole
from goldspan.crowd.model import ANSWER_COLUMNS, YES, Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source
from goldspan.errors import Fault, FormatError, InputError
from goldspan.spans import Codec
from goldspan.spans.encoding import get_encoding

VERSION = 1
HEADER = "goldspan"
"""Key of the version in a header."""

LABEL_KEYS = ("spans", "entities", "labels", "label", "tags")
WORKER = ("worker", "annotator")
RESERVED = {
    *(HEADER, "item", "id", "doc", "text", "tokens", "token_start", "unit", "gold", "answers"),
    *("attributes", "skipped", "attempt", "started", "submitted", "cost", *WORKER, *LABEL_KEYS),
}
"""Keys of a line that are not attributes of its item."""


@dataclass(frozen=True)
class Header:
    """What the first line says of all others."""

    encoding: str | None = None  # Of the tags; None if it does not say
    codec: Codec | None = None  # All tags that there may be; None if it does not say
    unit: str | None = None  # What offsets count, "token" or "char"; None if it does not say
    workers: tuple[str, ...] = ()  # Workers, also those without answers
    empty: tuple[str, ...] = ()  # Columns that hold no value
    # Facts about workers by their ids
    facts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def read(cls, record: Record) -> Header:
        """Read the header."""
        if record.required(record.whole(HEADER), HEADER) != VERSION:
            found = record.value[HEADER]
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
        facts = _facts(record)
        return cls(name, codec, record.string("unit"), tuple(workers), tuple(empty), facts)

    def options(self, record: Record, options: ReadOptions) -> ReadOptions:
        """Return the options for the lines: a tag that is declared never means "no label"."""
        asked = get_encoding(options.encoding).name if options.encoding else self.encoding
        if self.encoding and asked != self.encoding:
            message = f"the file is in {self.encoding}, not in {asked}: leave the encoding out"
            raise record.error(f"{message} and convert it afterwards", "encoding")
        return replace(options.with_labels(self.codec.tags if self.codec else ()), encoding=asked)

    def check(
        self, record: Record, *, types: Collection[str] = (), tags: Collection[str] = ()
    ) -> None:
        """Reject types and tags that are not declared."""
        if self.codec is None:
            return
        unknown = sorted({*types} - {*self.codec.types}) + sorted({*tags} - {*self.codec.tags})
        if unknown:
            known = ", ".join((self.codec.types if types else self.codec.tags)[:20])
            message = f"{unknown[0][:60]!r} is not declared in the header, which has {known}"
            raise record.error(f"{message}: add it there, or fix it here", "undeclared")

    def apply(self, crowd: Crowd, options: ReadOptions) -> Crowd:
        """Return a crowd with the tags and the empty columns that are declared."""
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
        names = [name for name in ANSWER_COLUMNS if name in self.empty]
        lacking: dict[str, Any] = {n: unknown for n in names if getattr(crowd.answers, n) is None}
        answers = replace(crowd.answers, **lacking)
        return replace(crowd, answers=answers, worker_facts=self.facts)


def _facts(record: Record) -> dict[str, dict[str, str]]:
    found: Any = record.value.get("worker_facts", {})
    rows = [*found.values()] if isinstance(found, dict) else [None]
    texts = [[*row.values()] if isinstance(row, dict) else [None] for row in rows]
    if not all(isinstance(value, str) for row in texts for value in row):
        message = 'worker_facts must be an object such as {"gpt-a": {"family": "gpt"}}, not '
        raise record.error(f"{message}{shown(found)}")
    return {worker: dict(row) for worker, row in found.items()}


def describe(crowd: Crowd) -> dict[str, Any]:
    """Return the header of a crowd as a JSON object."""
    codec, answers = crowd.tagset, crowd.answers
    header: dict[str, Any] = {"goldspan": VERSION, "encoding": codec.encoding}
    if set(codec.tags) == set(Codec.from_types(codec.types, codec.encoding).tags):
        header["types"] = list(codec.types)
    else:
        header["tags"] = list(codec.tags)
    header["workers"] = crowd.worker_ids.to_pylist()
    if crowd.known_facts:
        header["worker_facts"] = crowd.known_facts
    columns = {name: getattr(answers, name) for name in ANSWER_COLUMNS} | {"gold": crowd.gold}
    empty = [name for name, column in columns.items() if column is not None and (column < 0).all()]
    for name in ("groups", "texts"):
        column = getattr(crowd, name)
        if column is not None and column.null_count == len(column):
            empty.append(name)
    return {**header, "empty": empty} if empty else header


def lines(crowd: Crowd) -> Iterator[str]:
    """Write the header and one line per item."""
    yield dump(describe(crowd)) + "\n"
    rows = _rows(crowd)
    if crowd.wholes is not None:
        rows = (_whole(whole, parts) for whole, parts in by_whole(crowd, rows))
    yield from (dump(row) + "\n" for row in rows)


def _whole(whole: str, parts: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """Put the lines of an item's parts together."""
    line = parts[0][1] | {"item": whole}
    known = [(part, row["gold"]) for part, row in parts if "gold" in row]
    if known:
        line["gold"] = _joined(known)
    answers: dict[tuple[str, int], list[tuple[str, dict[str, Any]]]] = {}
    for part, row in parts:
        for one in row["answers"]:
            answers.setdefault((one["worker"], one.get("attempt", 0)), []).append((part, one))
    line["answers"] = [own[0][1] | _joined(own) for own in answers.values()]
    for one in line["answers"]:
        one.pop("label", None)
    return line


def _joined(parts: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """Join the labels of parts: all spans by place, or the labels that were said to hold."""
    said = [(part, row["label"]) for part, row in parts if "label" in row]
    if said:
        return {"labels": [part for part, label in said if label == YES]}
    if any("tags" in row for _, row in parts):  # nothing was said
        return {key: value for key, value in parts[0][1].items() if key == "tags"}
    spans = {tuple(span.items()): span for _, row in parts for span in row["spans"]}
    order = sorted(spans.values(), key=lambda one: (one["start"], -one["end"], one["type"]))
    return {"spans": order}


def _rows(crowd: Crowd) -> Iterator[dict[str, Any]]:
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
            line["gold"] = _label_fields(crowd, known, n, crowd.gold[tokens])
        line["answers"] = []
        for a in listed[n]:
            codes = answers.codes[answers.offset[a] : answers.offset[a + 1]]
            one = {"worker": workers[answers.worker[a]], **_label_fields(crowd, said, a, codes)}
            if answers.attempt[a]:
                one["attempt"] = int(answers.attempt[a])
            for key in ANSWER_COLUMNS:
                column = getattr(answers, key)
                if column is not None and column[a] >= 0:
                    one[key] = int(column[a])
            line["answers"].append(one)
        yield {**line, **beside(attributes[n], RESERVED)}


def _with_tags(crowd: Crowd, tagset: Codec) -> Crowd:
    table = code_table(crowd.tagset, tagset)
    gold = None if crowd.gold is None else np.asarray(table[crowd.gold])
    answers = replace(crowd.answers, codes=np.asarray(table[crowd.answers.codes]))
    return replace(crowd, tagset=tagset, answers=answers, gold=gold)


def _label_fields(crowd: Crowd, rows: SpanRows, n: int, codes: NDArray[np.int16]) -> dict[str, Any]:
    """Labels as spans where these say all, else as tags."""
    words = [*crowd.tagset.tags, None]
    if crowd.tagset.rules.is_plain and len(codes) == 1 and codes[0] >= 0:
        return {"label": words[codes[0]]}
    if not rows.exact[n]:
        return {"tags": [words[code] for code in codes]}
    spans = [{"type": kind, "start": start, "end": end} for kind, start, end in rows.spans[n]]
    skipped = rows.skipped[n]
    return {"spans": spans, "skipped": skipped} if skipped else {"spans": spans}


_OTHERS = {"_input_hash", "_task_hash", "annotation_id", "annotations"}


def sniff(source: Source) -> bool:
    """Return whether there is a header, an item with answers, or a worker's spans or label."""
    found = [] if source.is_folder else first_objects(source)
    if found and type(found[0].get(HEADER)) is int:
        return True
    return any(map(_is_ours, found)) and not any(_OTHERS & one.keys() for one in found)


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read span JSONL."""
    faults: list[Fault] = []
    records = read_records(source, faults, options.progress)
    first, header = next(records, None), Header()
    if first is not None and HEADER in first.value:
        header = Header.read(first)
        options = header.options(first, options)
        first = None
    crowd = SpanCrowd(source, "spans", options)
    crowd.workers = dict.fromkeys(header.workers)
    for record in chain([first] if first else [], records):
        with collect(faults):
            _read_item(crowd, header, record)
    crowd.faults.extend(faults)
    return header.apply(crowd.build(), options)


def write(crowd: Crowd, path: Path) -> None:
    """Write a header and one line per item, offsets counted in tokens."""
    write_text(path, lines(crowd))


def _is_ours(one: Mapping[str, Any]) -> bool:
    said = any(key in one for key in LABEL_KEYS)
    by_annotator = "annotator" in one and ("spans" in one or isinstance(one.get("label"), str))
    mine = isinstance(one.get("answers"), list) or ("tokens" in one and "gold" in one)
    return bool({"item", "id"} & one.keys()) and (
        mine or by_annotator or ("worker" in one and said)
    )


def _read_item(crowd: SpanCrowd, header: Header, record: Record) -> None:
    options = crowd.options
    if HEADER in record.value:
        raise record.error("a header must be the first line", "header")
    name = record.name(*keys_of(options, "item", "item", "id"))
    record = record.at(item=record.required(name, "item", "id"))
    worker = record.name(*keys_of(options, "worker", *WORKER))
    flat = [key for key in LABEL_KEYS if key in record.value]
    # The labels of an aggregation stand there as gold and, for people, as tags or a label.
    if worker is None and flat and not ({*flat} <= {"tags", "label"} and "gold" in record.value):
        hint = "add the worker, or put gold labels under 'gold'"
        raise record.error(f"{flat[0]!r} without 'worker': {hint}")
    if worker is not None and "answers" in record.value:
        raise record.error("both 'answers' and a 'worker' of the line itself: use one of them")
    said = record.inners("answers") if worker is None else [record]
    gold = _gold(record)
    unit = record.string("unit") or header.unit or ("token" if "tokens" in record.value else "char")
    known = crowd.items.get(record.item)
    before = None if known is None else known.cut
    cut = _cut(record, [*said, *gold], unit, options.tokens, before)
    group = record.name(*keys_of(options, "doc", "doc"), may_be_empty=True)
    facts = record.others(RESERVED | set(options.columns.values()))
    item = crowd.item(record, cut, group=group, attributes=facts, once=worker is None)
    line = _Line(crowd, header, item, cut, unit)
    for one in gold:
        crowd.set_gold(item, one, line.labels(one))
    for one in said:
        with collect(crowd.faults):
            who = worker or str(one.required(one.name(*WORKER), "worker"))
            line.answer(one.at(worker=who), is_nested=worker is None)


class _Line(NamedTuple):
    """A line while it is read: its item, how it cuts the text, what its offsets count."""

    crowd: SpanCrowd
    header: Header
    item: Item
    cut: Cut
    unit: str

    def answer(self, record: Record, *, is_nested: bool) -> None:
        attempt = record.whole("attempt", 0, 2**15 - 1)
        times = (record.moment("started"), record.moment("submitted"))
        # In a line of one answer a field of this name is an attribute of the item.
        version = record.value.get("guideline") if is_nested else None
        guideline = version if type(version) is int and 0 <= version <= MAX_INTEGER else None
        facts = Facts(attempt, *times, record.whole("cost"), guideline)
        self.crowd.answer(self.item, record, self.labels(record), facts)

    def labels(self, record: Record) -> Labels:
        given = [key for key in LABEL_KEYS if record.value.get(key) is not None]
        if len(given) != 1:
            seen = " and ".join(given) or "none"
            raise record.error(f"expected one of spans, tags and label, found {seen}")
        if given[0] == "tags":
            return Labels(tags=self._tags(record))
        value = record.value[given[0]]
        is_list = given[0] == "labels" and isinstance(value, list)
        is_list = is_list and all(isinstance(one, str) for one in value)
        if is_list and (value or len(self.cut.tokens) == 1):
            self.crowd.builder.lists_labels = True
            return self.crowd.single(self.item, record, self.crowd.chosen(value))
        if isinstance(value, str):
            self.header.check(record, tags={value})
            return self.crowd.single(self.item, record, value)
        spans = [read_span(record, one) for one in record.items(given[0]) or []]
        self.header.check(record, types={span.type for span in spans})
        unit = record.string("unit") or self.unit
        if unit == "token":
            found = self.crowd.place_tokens(self.item, record, self.cut, spans)
        elif unit == "char":
            found = self.crowd.place(self.item, record, spans)
        else:
            raise record.error(f"unit must be 'token' or 'char', not {shown(unit)}")
        return Labels(found, self._skipped(record, found))

    def _tags(self, record: Record) -> list[str | None]:
        tags = record.items("tags") or []
        wrong = [tag for tag in tags if not isinstance(tag, str | None)]
        if wrong:
            raise record.error(f"field 'tags' must hold strings and null, not {shown(wrong[0])}")
        if len(tags) != len(self.cut.tokens):
            raise record.error(f"{len(tags)} tags for {len(self.cut.tokens)} tokens", "length")
        self._need_same_tokens(record)
        self.header.check(record, tags={tag for tag in tags if tag is not None})
        return list(tags)

    def _skipped(self, record: Record, spans: list[CharSpan]) -> list[tuple[int, int]]:
        ranges: list[tuple[int, int]] = []
        given = record.items("skipped")
        if not given:
            return ranges
        labelled = self.crowd.tokens_of(self.item, spans)
        for pair in given:
            whole = isinstance(pair, list) and len(pair) == 2 and {type(n) for n in pair} == {int}
            if not whole or not 0 <= pair[0] < pair[1] <= len(self.cut.tokens):
                message = f"skipped must be ranges among the {len(self.cut.tokens)} tokens"
                raise record.error(f"{message}, such as [0, 2], not {shown(pair)}")
            if not labelled.isdisjoint(range(*pair)):
                raise record.error(f"the skipped tokens {pair} have a span", "skipped")
            ranges.append((pair[0], pair[1]))
            self._need_same_tokens(record)
        return ranges

    def _need_same_tokens(self, record: Record) -> None:
        if self.cut.tokens != self.item.cut.tokens:
            place = f"{self.item.record.file} line {self.item.record.line}"
            message = f"other tokens than in {place}: only spans can be carried over"
            raise record.error(message, "tokens")


def _has_labels(record: Record) -> bool:
    """Return whether an answer lists labels, and no spans."""
    labels = record.find("labels")
    return isinstance(labels, list) and any(isinstance(one, str) for one in labels)


def _gold(record: Record) -> list[Record]:
    """The gold as an object like an answer's; none if there is none."""
    value = record.find("gold")
    if value is None:
        return []
    if isinstance(value, str | list):
        value = {"label" if isinstance(value, str) else "spans": value}
    return [record.inner(value, "gold").at(worker=GOLD)]


def _cut(record: Record, said: list[Record], unit: str, rule: str, known: Cut | None) -> Cut:
    """Cut the line's text; tokens of lines that count tokens need not be found in the text."""
    tokens, starts = record.strings("tokens"), record.items("token_start")
    if tokens is None:
        if starts is not None:
            raise record.error("'token_start' without 'tokens'")
        whole = str(record.required(record.text("text"), "text", "tokens"))
        single = any(isinstance(one.find("label"), str) or _has_labels(one) for one in said)
        if known is not None and not (single or known.is_given) and known.text == whole:
            return known
        return whole_text(whole) if single else cut_text(record, whole, rule=rule)
    text = record.string("text")
    check_starts(record, tokens, starts)
    try:
        cut = cut_text(record, text, tokens, starts)
    except FormatError:
        if unit == "char" or not tokens:
            raise
        cut = Cut(tokens, None, [], None, None)
    return cut._replace(keep_text=text, starts=starts)
