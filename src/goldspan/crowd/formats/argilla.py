"""Argilla: records as JSON or as rows of a data set (2.x), and the records of 1.x.

The question that asks for spans is read, else the only one; suggestions and predictions are
counted. Responses that were not submitted are listed, and not placed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from goldspan.crowd.formats.char_spans import cut_fields, read_span
from goldspan.crowd.formats.json_records import (
    Record,
    collect,
    first_objects,
    keys_of,
    only_one,
    read_records,
    shown,
    stem,
    text_key,
    unfolded,
)
from goldspan.crowd.formats.span_crowd import Labels, SpanCrowd
from goldspan.crowd.formats.span_jsonl import HEADER
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source, counted

_ID = ("id", "external_id", "_server_id")
_RESPONSES = ".responses"
_KNOWN = {*_ID, "status", "annotation_agent", "prediction_agent", "inserted_at", "updated_at"}
"""Strings of a row that are not its text."""


_Said = tuple[str, Any, Any, Any]
"""The question of a response, its value, who gave it, and its status."""


def sniff(source: Source) -> bool:
    """Return whether there are records with responses to questions, or annotations of an agent."""
    found = first_objects(source, unless=HEADER)
    return any(map(_is_ours, found)) or any(map(_is_ours, unfolded(found)))


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read the responses to one question."""
    crowd = SpanCrowd(source, "argilla", options)
    rows, records = [], list(read_records(source, crowd.faults))
    if len(records) == 1 and not _is_ours(records[0].value):
        records = [records[0]._replace(value=one) for one in unfolded([records[0].value])]
    for number, record in enumerate(records, start=1):
        with collect(crowd.faults):
            name = record.name(*keys_of(options, "item", *_ID)) or str(number)
            rows.append((record.at(item=name), list(_responses(record))))
    asked = dict.fromkeys(one[0] for _, said in rows for one in said)
    spans = dict.fromkeys(q for row, said in rows for q, found, *_ in said if _is_spans(row, found))
    with collect(crowd.faults):
        wanted = options.columns.get("label")
        where, what = Record({}, source.name), "several questions were answered"
        question = only_one(where, asked if wanted else spans or asked, what, wanted)
        for record, said in counted(rows, options.progress):
            with collect(crowd.faults):
                _read_row(crowd, record, said, question, single=question not in spans)
    return crowd.build()


def _is_ours(one: Mapping[str, Any]) -> bool:
    if isinstance(one.get("fields"), dict) and isinstance(one.get("responses"), dict | list):
        return True
    is_old = {"annotation", "prediction", "status"} <= one.keys()
    return is_old or any(key.endswith(_RESPONSES) or _is_said(one[key]) for key in one)


def _is_said(value: object) -> bool:
    """Whether these are the responses to a question in a data set of 1.x."""
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(first, dict) and {"user_id", "value"} <= first.keys()


def _responses(record: Record) -> Iterator[_Said]:
    """Yield the responses of a record, wherever its version of Argilla has them."""
    found = record.find("responses")
    if isinstance(found, list):
        for one in record.inners("responses"):
            for question, answer in record.inner(one.find("values") or {}, "values").value.items():
                value = record.inner(answer, "a value").find("value")
                yield question, value, one.find("user_id"), one.find("status")
    elif "annotation" in record.value and found is None:
        value, status = record.find("annotation"), record.find("status")
        if value is not None or status == "Discarded":
            yield "annotation", value, record.find("annotation_agent"), status
    else:
        columns = record if found is None else record.inner(found, "responses")
        for name, value in columns.value.items():
            if found is None and name.endswith(_RESPONSES):
                keys = (name, f"{name}.users", f"{name}.status")
                for row in zip_longest(*(record.items(key) or [] for key in keys)):
                    yield name.removesuffix(_RESPONSES), *row
            elif found is not None or _is_said(value):
                listed = record._replace(value={name: _rows(value)}).inners(name)
                yield from [(name, *map(x.find, ("value", "user_id", "status"))) for x in listed]


def _rows(value: Any) -> Any:
    """Turn an object of columns, as data sets hold lists of objects, into the rows."""
    if not isinstance(value, dict) or not all(isinstance(one, list) for one in value.values()):
        return value
    return [dict(zip(value, row, strict=True)) for row in zip(*value.values(), strict=False)]


def _is_spans(record: Record, value: Any) -> bool:
    rows = _rows(value)
    first = rows[0] if isinstance(rows, list) and rows else None
    has_start = isinstance(first, list) or (isinstance(first, dict) and "start" in first)
    return has_start or ("tokens" in record.value and value == [])


def _read_row(
    crowd: SpanCrowd, record: Record, said: list[_Said], question: str | None, *, single: bool
) -> None:
    options, where = crowd.options, record.find("fields")
    where = record.find("inputs") if where is None and record.find("text") is None else where
    data = record if where is None else record.inner(where, "fields")
    but = {*_KNOWN, *(name for name in data.value if "suggestion" in name)}
    key = options.columns.get("text") or text_key(data, but)
    text = str(data.required(data.text(key), key))
    meta = record.find("metadata")
    cut = cut_fields(record, text, single=single, rule=options.tokens)
    item = crowd.item(record, cut, attributes=meta if isinstance(meta, dict) else None, once=True)
    for name, value in record.value.items():
        suggested = name in {"suggestions", "prediction"} or name.endswith("suggestion")
        crowd.leave_unread("suggestions", record, suggested and value not in (None, [], {}))
    for asked, value, worker, status in said:
        known = record._replace(value={"value": _rows(value), "worker": worker})
        known = known.at(worker=known.name("worker") or stem(record.file))
        with collect(crowd.faults):
            if asked != question:
                crowd.leave_unread(f"responses to {asked[:60]!r}", known)
            elif status not in {None, "submitted", "Validated"}:
                reason = f"response {str(status)[:30].lower()}"
                crowd.leave_out(known, f"{reason}, not submitted: left out", reason)
            elif single:
                crowd.choose(item, known, _labels(known))
            else:
                spans = [s[:3] if isinstance(s, list) else s for s in known.items("value") or []]
                placed = crowd.place(item, known, [read_span(known, span) for span in spans])
                crowd.answer_or_gold(item, known, Labels(placed))


def _labels(record: Record) -> list[str]:
    found = record.find("value")
    listed = found if isinstance(found, list) else [] if found is None else [found]
    if not all(type(one) in {str, int} and one != "" for one in listed):
        raise record.error(f"a response must be a label, not {shown(found)}", "response")
    return [str(one) for one in listed]
