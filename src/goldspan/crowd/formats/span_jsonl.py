"""Span JSONL: goldspan's own format, which holds everything of a crowd and can be written by hand.

One JSON object per line. The first may be a header (`span_lines.py`); every other line is an item
with its answers, or one worker's answer to an item:

    {"item": "D1-1", "doc": "D1", "tokens": ["Ann", "sang"], "gold": [[0, 1, "PER"]],
     "answers": [{"worker": "A01", "spans": [{"type": "PER", "start": 0, "end": 1}]}]}
    {"id": 7, "text": "Ann sang", "spans": [[0, 3, "PER"]], "worker": "A01"}

A span is an object, or a list of start, end and type. Offsets count tokens; they count characters
where a line has a text but no tokens (it is then tokenised) or says `"unit": "char"`. Instead of
`spans` (or `entities`, `labels`) an answer may have `tags`, one per token with null for none, or
`label`, where an item gets a single one. `skipped` lists ranges of tokens without a label. Also
`attempt`, `started`, `submitted` (milliseconds since 1970, or ISO 8601) and `cost` (millionths).
`gold` is a list of spans, a label, or an object as for an answer. All other fields, and those of an
object `attributes`, are attributes of the item. goldspan writes spans where they say all, else
tags. What counts as a label, and what becomes of spans that overlap: see `span_crowd.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goldspan.crowd.atomic import write_text
from goldspan.crowd.formats.char_spans import Cut, cut_text, read_span, whole_text
from goldspan.crowd.formats.json_records import (
    Record,
    collect,
    first_objects,
    keys_of,
    read_records,
    shown,
)
from goldspan.crowd.formats.span_crowd import GOLD, Facts, Item, Labels, SpanCrowd
from goldspan.crowd.formats.span_lines import HEADERS, RESERVED, SAID, WORKER, Header, lines
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source
from goldspan.errors import Fault, FormatError

SUMMARY = "goldspan's own JSON lines: texts or tokens with every worker's spans; holds everything"
SUFFIXES = (".jsonl", ".ndjson")

_OTHERS = {"_input_hash", "_task_hash", "annotation_id", "annotations"}


def sniff(source: Source) -> bool:
    """Say whether there is a header, an item with answers, or a worker's spans or label."""
    found = [] if source.is_folder else first_objects(source)
    if found and any(type(found[0].get(key)) is int for key in HEADERS):
        return True
    return any(map(_is_ours, found)) and not any(_OTHERS & one.keys() for one in found)


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read span JSONL.

    Raises:
        FormatError: A line is broken or of a newer version, a field is missing or of the wrong
            type, a span lies outside its item, an item stands twice or with two texts.
    """
    faults: list[Fault] = []
    records = read_records(source, faults, options.progress)
    first, header = next(records, None), Header()
    if first is not None and not first.value.keys().isdisjoint(HEADERS):
        header = Header.read(first)
        options = header.options(first, options)
        first = None
    crowd = SpanCrowd(source, "spans", options)
    crowd.workers = dict.fromkeys(header.workers)
    for record in [first] if first else []:
        with collect(faults):
            _read_item(crowd, header, record)
    for record in records:
        with collect(faults):
            _read_item(crowd, header, record)
    crowd.faults.extend(faults)
    return header.apply(crowd.build(), options)


def write(crowd: Crowd, path: Path) -> None:
    """Write a header and one line per item, offsets counted in tokens."""
    write_text(path, lines(crowd))


def _is_ours(one: Mapping[str, Any]) -> bool:
    said = any(key in one for key in SAID)
    by_annotator = "annotator" in one and ("spans" in one or isinstance(one.get("label"), str))
    mine = isinstance(one.get("answers"), list) or ("tokens" in one and "gold" in one)
    return bool({"item", "id"} & one.keys()) and (
        mine or by_annotator or ("worker" in one and said)
    )


def _read_item(crowd: SpanCrowd, header: Header, record: Record) -> None:
    """Read one line: an item with its answers, or one worker's answer to an item."""
    options = crowd.options
    if not record.value.keys().isdisjoint(HEADERS):
        raise record.error("a header must be the first line", "header")
    name = record.name(*keys_of(options, "item", "item", "id"))
    record = record.at(item=record.required(name, "item", "id"))
    worker = record.name(*keys_of(options, "worker", *WORKER))
    flat = [key for key in SAID if key in record.value]
    # The labels of an aggregation stand there as gold and, for people, as tags or a label.
    if worker is None and flat and not ({*flat} <= {"tags", "label"} and "gold" in record.value):
        raise record.error(f"{flat[0]!r} without 'worker': who says so? Gold stands under 'gold'")
    if worker is not None and "answers" in record.value:
        raise record.error("both 'answers' and a 'worker' of the line itself: use one of them")
    said = record.inners("answers") if worker is None else [record]
    gold = _gold(record)
    unit = record.string("unit") or header.unit or ("token" if "tokens" in record.value else "char")
    cut = _cut(record, [*said, *gold], unit, options.tokens)
    group = record.name(*keys_of(options, "doc", "doc"), may_be_empty=True)
    facts = record.others(RESERVED | set(options.columns.values()))
    item = crowd.item(record, cut, group=group, attributes=facts, once=worker is None)
    line = _Line(crowd, header, item, cut, unit)
    for one in gold:
        crowd.set_gold(item, one, line.labels(one))
    for one in said:
        with collect(crowd.faults):
            who = worker or str(one.required(one.name(*WORKER), "worker"))
            line.answer(one.at(worker=who))


@dataclass(frozen=True)
class _Line:
    """A line while it is read: its item, how it cuts the text, what its offsets count."""

    crowd: SpanCrowd
    header: Header
    item: Item
    cut: Cut
    unit: str

    def answer(self, record: Record) -> None:
        attempt = record.whole("attempt", 0, 2**15 - 1)
        times = (record.moment("started"), record.moment("submitted"))
        facts = Facts(attempt, *times, record.whole("cost"))
        self.crowd.answer(self.item, record, self.labels(record), facts)

    def labels(self, record: Record) -> Labels:
        given = [key for key in SAID if record.value.get(key) is not None]
        if len(given) != 1:
            seen = " and ".join(given) or "none"
            raise record.error(f"expected one of spans, tags and label, found {seen}")
        if given[0] == "tags":
            return Labels(tags=self._tags(record))
        value = record.value[given[0]]
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
        return Labels(found, self._skipped(record, self.crowd.tokens_of(self.item, found)))

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

    def _skipped(self, record: Record, labelled: set[int]) -> list[tuple[int, int]]:
        ranges = []
        for pair in record.items("skipped") or []:
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


def _gold(record: Record) -> list[Record]:
    """The gold as an object like an answer's; none if there is none."""
    value = record.find("gold")
    if value is None:
        return []
    if isinstance(value, str | list):
        value = {"label" if isinstance(value, str) else "spans": value}
    return [record.inner(value, "gold").at(worker=GOLD)]


def _cut(record: Record, said: list[Record], unit: str, rule: str) -> Cut:
    """Cut the line's text; tokens of lines that count tokens need not be found in the text."""
    tokens, starts = record.strings("tokens"), record.items("token_start")
    if tokens is None:
        if starts is not None:
            raise record.error("'token_start' without 'tokens'")
        whole = str(record.required(record.text("text"), "text", "tokens"))
        single = any(isinstance(one.find("label"), str) for one in said)
        return whole_text(whole) if single else cut_text(record, whole, rule=rule)
    text = record.string("text")
    if starts is not None:
        wrong = [n for n in starts if type(n) is not int or not 0 <= n < 2**31]
        if wrong or len(starts) != len(tokens):
            seen = shown(wrong[0]) if wrong else f"{len(starts)} numbers"
            message = f"token_start must be {len(tokens)} whole numbers, one per token, not {seen}"
            raise record.error(message)
    try:
        cut = cut_text(record, text, tokens, starts)
    except FormatError:
        if unit == "char" or not tokens:
            raise
        cut = Cut(tokens, None, [], None, None)
    return cut._replace(keep_text=text, starts=starts)
