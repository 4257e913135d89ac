"""Argilla: records as JSON or as rows of a data set (2.x), and the records of 1.x.

The question that asks for spans is read, else the only one; suggestions and predictions are
counted. Responses that were not submitted are listed, and not placed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from goldspan.crowd.formats.assignments import Assignment, questions, read_assignments
from goldspan.crowd.formats.char_spans import is_span
from goldspan.crowd.formats.json_records import (
    Record,
    collect,
    first_objects,
    keys_of,
    read_records,
    shown,
    stem,
    text_key,
    unfolded,
)
from goldspan.crowd.formats.span_crowd import SpanCrowd
from goldspan.crowd.formats.span_jsonl import HEADER
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source

_ID = ("id", "external_id", "_server_id")
_RESPONSES = ".responses"
_KNOWN = {*_ID, "status", "annotation_agent", "prediction_agent", "inserted_at", "updated_at"}
"""Strings of a row that are not its text."""


def sniff(source: Source) -> bool:
    """Return whether there are records with responses to questions, or annotations of an agent."""
    found = first_objects(source, unless=HEADER)
    return any(map(_is_ours, found)) or any(map(_is_ours, unfolded(found)))


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read the responses to one question."""
    return read_assignments(*_assignments(source, options))


def layers(source: Source, options: ReadOptions) -> list[str]:
    """Return the questions."""
    return questions(_assignments(source, options)[1])


def _assignments(source: Source, options: ReadOptions) -> tuple[SpanCrowd, list[Assignment]]:
    crowd = SpanCrowd(source, "argilla", options)
    records = list(read_records(source, crowd.faults))
    if len(records) == 1 and not _is_ours(records[0].value):
        records = [records[0]._replace(value=one) for one in unfolded([records[0].value])]
    rows: list[Assignment] = []
    for number, record in enumerate(records, start=1):
        with collect(crowd.faults):
            name = record.name(*keys_of(options, "item", *_ID)) or str(number)
            rows += _rows_of(crowd, record.at(item=name))
    return crowd, rows


def _is_ours(one: Mapping[str, Any]) -> bool:
    if isinstance(one.get("fields"), dict) and isinstance(one.get("responses"), dict | list):
        return True
    is_old = {"annotation", "prediction", "status"} <= one.keys()
    return is_old or any(key.endswith(_RESPONSES) or _is_said(one[key]) for key in one)


def _is_said(value: object) -> bool:
    """Whether these are the responses to a question in a data set of 1.x."""
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(first, dict) and {"user_id", "value"} <= first.keys()


def _responses(record: Record) -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield question, value, user and status, wherever a version of Argilla has them."""
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


def _rows_of(crowd: SpanCrowd, record: Record) -> Iterator[Assignment]:
    """Yield the item of a record, and what every user answered."""
    where = record.find("fields")
    where = record.find("inputs") if where is None and record.find("text") is None else where
    data = record if where is None else record.inner(where, "fields")
    but = {*_KNOWN, *(name for name in data.value if "suggestion" in name)}
    key = crowd.options.columns.get("text") or text_key(data, but)
    text = str(data.required(data.text(key), key))
    meta = record.find("metadata")
    about = meta if isinstance(meta, dict) else {}
    for name, value in record.value.items():
        suggested = name in {"suggestions", "prediction"} or name.endswith("suggestion")
        crowd.leave_unread("suggestions", record, suggested and value not in (None, [], {}))
    answers: dict[tuple[str, int], dict[str, Any]] = {}
    times = Counter[tuple[str, str]]()  # which a user answered a question
    for question, value, user, status in _responses(record):
        with collect(crowd.faults):
            named = record._replace(value={"worker": user}).name("worker")
            known = record.at(worker=named or stem(record.file))
            if status in {None, "submitted", "Validated"}:
                n = times[known.worker, question]
                times[known.worker, question] += 1
                answers.setdefault((known.worker, n), {})[question] = _answer(known, _rows(value))
            else:
                reason = f"response {str(status)[:30].lower()}"
                crowd.leave_out(known, f"{reason}, not submitted: left out", reason)
    one = Assignment(record, text, attributes=about, once=True)
    yield one
    for (worker, _), said in answers.items():
        yield one._replace(record=record.at(worker=worker), answers=said, once=False)


def _answer(record: Record, found: Any) -> list[Any]:
    """Return the spans or the labels of a response."""
    listed = found if isinstance(found, list) else [] if found is None else [found]
    if not all(is_span(one) or (type(one) in {str, int} and one != "") for one in listed):
        raise record.error(f"a response must be a label, not {shown(found)}", "response")
    return listed
