"""JSON of other tools: a text, and beside it its labels, in the few forms that leave no doubt.

Spans are objects or lists with start, end and label, under any field that holds nothing else. They
may name their annotators, or stand under the annotators' names. What looks like labels and has
another form is refused by its name: no file is read as texts without labels in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from goldspan.crowd.formats.assignments import Assignment, read_assignments
from goldspan.crowd.formats.char_spans import SPAN_KEYS, CharSpan, char_span, is_span, read_span
from goldspan.crowd.formats.json_records import (
    TEXT_KEYS,
    Record,
    collect,
    first_objects,
    json_files,
    keys_of,
    only_one,
    read_records,
    stem,
    text_key,
    unfolded,
)
from goldspan.crowd.formats.span_crowd import GOLD, SpanCrowd
from goldspan.crowd.formats.span_jsonl import HEADER
from goldspan.crowd.guessing import Guess, guesses, table_of
from goldspan.crowd.labels import with_notes
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.registry import FORMATS, get_format
from goldspan.crowd.source import Source

_TOOLS = {
    "BioC": {"documents", "key"},
    "Datasaur": {"sentences", "labelSets"},
    "tagtog": {"annotatable", "anncomplete"},
    "INCEpTION (the old UIMA JSON)": {"_referenced_fss", "_views"},
    "Google AutoML": {"text_snippet"},
    "Amazon Comprehend": {"Entities", "File"},
    "Azure": {"projectFileVersion"},
    "Kili": {"jsonContent"},
    "Labelbox": {"data_row"},
    "Rasa": {"rasa_nlu_data"},
    "OpenAI's batches": {"custom_id", "response"},
    "Anthropic's batches": {"custom_id", "result"},
}
_ID = ("id", "item", "example_id", "doc_id", "uid")
_WORKER = (
    *("annotator", "worker", "username", "user", "annotated_by", "created_by", "rater"),
    *("annotator_id", "worker_id", "user_id"),
)
_LABEL = ("label", "value", "answer", "rating", "choice")
_NAMES = re.compile(r"annot|label|entit|cats$|respons|answer|judg|rating|vote|^ner|gold|truth")
_NEVER = re.compile(r"meta|attributes$|relations$|vectors?$|embedding")
_SEVERAL = "several fields look like labels"
TABLE = (
    "write a table with a row per span (item, text, start, end, label, worker), and read that "
    "(--format span-table), or a row per answer (item, worker, label; --format long)"
)
"""The way out for what is not read."""

_Said = list[tuple[str | None, str | list[CharSpan]]]
"""Annotators with their labels or spans."""


def sniff(source: Source) -> bool:
    """Return whether there are texts with what looks like labels, which no other reader knows."""
    if len(json_files(source)) < len(source.files or [source]):
        return False  # a folder with files of another kind
    found = first_objects(source, unless=HEADER)
    rows = unfolded(found)
    if not (any(map(_tool, found)) or any(map(_suspects, rows)) or _as_table(rows)):
        return False
    others = FORMATS.keys() - {"json-labels", "wide", "long", "conll", "texts"}
    return not any(get_format(name).sniff(source) for name in others)


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read spans, or a label of every annotator."""
    crowd = SpanCrowd(source, "json-labels", options)
    records = list(read_records(source, crowd.faults))
    for record in records:
        if tool := _tool(record.value):
            message = f"this looks like an export of {tool}, which goldspan does not read"
            raise record.error(f"{message}: {TABLE}", "tool")
    if len(records) == 1:
        records = [records[0]._replace(value=one) for one in unfolded([records[0].value])]
    if not crowd.faults and (way := _as_table([one.value for one in records], options.columns)):
        table, guess = way
        source = replace(source, table=table)
        read_table = get_format(guess.format).read
        return with_notes(read_table(source, guess.options(options)), [guess.said])
    wanted = options.columns.get("label")
    fields = dict.fromkeys(key for one in records for key in _suspects(one.value))
    key = wanted or (only_one(records[0], fields, _SEVERAL, wanted) if records else None)
    by = GOLD if key and re.search("gold|truth", key.lower()) else None
    rows: list[Assignment] = []
    numbers: dict[str, str] = {}
    for record in records:
        with collect(crowd.faults):
            rows += _rows_of(record.at(worker=by), key, numbers, options)
    return read_assignments(crowd, rows)


def _as_table(
    rows: list[dict[str, Any]], named: Mapping[str, str] | None = None
) -> tuple[pa.Table, Guess] | None:
    """Return objects without lists as a table, and how it is read if it is one of answers."""
    if any(isinstance(value, list | dict) for row in rows for value in row.values()):
        return None
    cells = {
        key: [None if row.get(key) is None else str(row[key]) for row in rows]
        for key in dict.fromkeys(key for row in rows for key in row)
    }
    table = pa.table(cells)
    found = guesses(table_of(table, ""), named) if len(rows) > 1 else []
    return (table, found[0]) if len(found) == 1 and found[0].is_sure else None


def _tool(one: Mapping[str, Any]) -> str | None:
    return next((name for name, keys in _TOOLS.items() if keys <= one.keys()), None)


def _suspects(one: Mapping[str, Any]) -> list[str]:
    """Return the fields beside a text that look like labels."""
    is_text = any(isinstance(v, str) and (k in TEXT_KEYS or " " in v) for k, v in one.items())
    if not (is_text or isinstance(one.get("tokens"), list)):
        return []
    return [k for k, found in one.items() if not _NEVER.match(k.lower()) and _looks(k, found)]


def _looks(key: str, value: object) -> bool:
    if _has_spans(value) or not _NAMES.search(key.lower()):
        return _has_spans(value)
    if not isinstance(value, dict):
        return isinstance(value, list) and any(isinstance(one, dict | list) for one in value)
    lists = [one for found in value.values() if isinstance(found, list) for one in found]
    scalars = [one for one in value.values() if isinstance(one, str | int | float)]
    return bool(scalars) or any(isinstance(one, list | str) for one in lists)


def _has_spans(value: object, depth: int = 3) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return _is_span(value) or (depth > 0 and any(_has_spans(one, depth - 1) for one in inner))


def _is_span(value: object) -> bool:
    if not isinstance(value, dict):
        return is_span(value)
    keys = {*value} - {"from", "to"}  # which are of relations
    has = [not keys.isdisjoint(names) for names in SPAN_KEYS]
    return all(has) or (has[0] and "points" in value)


def _are_spans(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_span, value))


def _said(record: Record, key: str | None) -> _Said:
    """Read what a field says, in one of the forms that are known."""
    found = None if key is None else record.find(key)
    if found is None:
        return []
    by: dict[str | None, list[CharSpan]] = {one: [] for one in _names(record.find("seen_by"))}
    if _are_spans(found):
        for one in found:
            named = _names(record.inner(one, "").find(*_WORKER)) if isinstance(one, dict) else []
            for worker in named or (None,):
                by.setdefault(worker, []).extend(_spans(record, one))
        return [*by.items()] or [(None, [])]
    if isinstance(found, dict) and all(map(_are_spans, found.values())):
        return [(by, [s for one in row for s in _spans(record, one)]) for by, row in found.items()]
    answers: _Said = []
    for one in record.inners(str(key)) if isinstance(found, list) else ():
        lists = [value for value in one.value.values() if isinstance(value, list)]
        label: str | list[CharSpan] | None = one.name(*_LABEL) if not lists else None
        if len(lists) == 1 and _are_spans(lists[0]):
            label = [span for value in lists[0] for span in _spans(one, value)]
        answers += [(worker, label) for worker in _names(one.find(*_WORKER)) if label is not None]
    if answers and len(answers) == len(found):
        return answers
    message = f"the field {key!r} looks like labels, but goldspan does not know its form: {TABLE}"
    raise record.error(f"{message}; if it holds none, leave it out of the file", "labels")


def _names(value: object) -> list[str]:
    """Return the names of annotators: names, numbers, or objects with one."""
    if isinstance(value, dict):
        keys = ("annotator", "username", "name", "email", "id")
        value = next((value[key] for key in keys if value.get(key)), None)
    if isinstance(value, list):
        return [name for one in value for name in _names(one)]
    return [str(value)] if isinstance(value, str | int) and value != "" else []


def _spans(record: Record, value: Any) -> list[CharSpan]:
    if isinstance(value, list) or "points" not in value:
        return [read_span(record, value)]
    # Dataturks, whose ends are the last character
    one = record.inner(value, "a span")
    kinds = one.find("label")
    return [
        char_span(record, kind, p.find("start"), (p.whole("end") or 0) + 1, p.find("text"))
        for p in one.inners("points")
        for kind in (kinds if isinstance(kinds, list) else [kinds])
    ]


def _rows_of(
    record: Record, key: str | None, numbers: dict[str, str], options: ReadOptions
) -> Iterator[Assignment]:
    """Yield the item of a record, and what every annotator said of it."""
    usual = [key for key in TEXT_KEYS if isinstance(record.value.get(key), str)]
    field = options.columns.get("text") or (usual or [text_key(record, (*_ID, *_WORKER))])[0]
    if record.find(field) is None and isinstance(record.find("tokens"), list):
        message = "spans of tokens without a text are read as span JSONL: name the fields 'item', "
        message += "'tokens' and 'gold', with 'type', 'start' and 'end' (past the last) of each"
        raise record.error(message, "tokens")
    text = str(record.required(record.text(field), field))
    name = record.name(*keys_of(options, "item", *_ID))
    record = record.at(item=name or numbers.setdefault(text, str(len(numbers) + 1)))
    item = Assignment(record._replace(value={}, worker=""), text)
    yield item
    named = _names(record.find(*keys_of(options, "worker", *_WORKER))) or [stem(record.file)]
    for worker, labels in _said(record, key):
        by = item.record.at(worker=worker or record.worker or named[0])
        answer = [labels] if isinstance(labels, str) else labels
        yield item._replace(record=by, answers={str(key): answer})
