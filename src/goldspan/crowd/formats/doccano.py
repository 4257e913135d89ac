"""doccano: its JSONL exports, one file per annotator (a folder or a .zip), or one for all of them.

doccano exports every example for every annotator, also those that an annotator never looked at,
unless only confirmed ones are exported. A record with an empty list of spans is read as an answer
without a span, and the notes of the report count them; an empty list of single labels is no answer.
`unknown.jsonl` has what nobody labelled; `all.jsonl` the labels of all members of a collaborative
project, who are read as one annotator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from goldspan.crowd.atomic import write_text
from goldspan.crowd.formats.assignments import Assignment, is_single, read_assignments
from goldspan.crowd.formats.char_spans import CharSpan
from goldspan.crowd.formats.json_records import (
    Record,
    collect,
    first_objects,
    keys_of,
    read_records,
    shown,
    stem,
)
from goldspan.crowd.formats.span_crowd import SpanCrowd
from goldspan.crowd.formats.span_exports import (
    PREDICTED,
    beside,
    dump,
    is_prediction,
    item_rows,
    reject_gold_worker,
)
from goldspan.crowd.formats.span_jsonl import HEADER
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source

_ID = ("id", "doc_id")
_LABEL = ("label", "labels", "entities")
_TEXT = ("text", "data")
_WORKER = ("annotator", "username", "user")
_NOBODY, _EVERYBODY = "unknown", "all"
"""Names of files that doccano gives to what is of no annotator, and of all members together."""
_NOT_USED = ("Comments", "comments", "relations")
_RESERVED = {
    *(*_ID, "doc", "tokens", "token_start", "attributes"),
    *(*_LABEL, *_TEXT, *_WORKER, *_NOT_USED),
}
_OTHERS = {
    *("worker", "spans", "tags", "answers", "answer", "annotations", "annotation_id", "cats"),
    *("_input_hash", "_task_hash", "_annotator_id", "_session_id"),
}


def sniff(source: Source) -> bool:
    """Return whether there are texts with a list of labels, and no field of another tool."""
    # Exports with ids of labels are recognised too: `read` says what to export instead
    found = first_objects(source, unless=HEADER)
    if any(_has_ids(one) for one in found):
        return True
    return any(_is_ours(one) for one in found) and not any(_OTHERS & one.keys() for one in found)


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read the export of one annotator or of several."""
    crowd = SpanCrowd(source, "doccano", options)
    records = list(read_records(source, crowd.faults))
    keys = keys_of(options, "label", *_LABEL)
    single = is_single(record.find(*keys) for record in records)
    counts: Counter[str] = Counter()
    has_ids = "item" in options.columns or any(record.find(*_ID) is not None for record in records)
    numbers: dict[str, str] | None = None if has_ids else {}
    rows = []
    for record in records:
        with collect(crowd.faults):
            rows.append(_row(crowd, record, counts, numbers, single=single))
    if n_empty := counts["empty"]:
        message = "are not answers" if single else "are read as answers without a span"
        note = (
            f"{n_empty} records with an empty list of labels {message}; if they were not looked at"
        )
        crowd.builder.notes.append(f"{note}, export confirmed ones only")
    if n_nobody := counts[_NOBODY]:
        note = f"{n_nobody} records of the file {_NOBODY!r} were labelled by nobody: not answers"
        crowd.builder.notes.append(note)
    if n_all := counts[_EVERYBODY]:
        note = f"{n_all} records of the file {_EVERYBODY!r} are read as answers of one annotator"
        crowd.builder.notes.append(f"{note}: in collaborative projects they are of several people")
    return read_assignments(crowd, rows, single=single)


def write(crowd: Crowd, path: Path, predicted: Mapping[str, float] | None = None) -> None:
    """Write one line per answer with its annotator, gold under the name "gold"."""
    reject_gold_worker(crowd)
    write_text(path, _lines(crowd, predicted))


def _is_ours(one: Mapping[str, Any]) -> bool:
    has_text = any(isinstance(one.get(key), str) for key in _TEXT)
    return has_text and any(isinstance(one.get(key), list) for key in _LABEL)


def _has_ids(one: Mapping[str, Any]) -> bool:
    """Return whether this is an old export, whose labels are ids of another file."""
    found = one.get("annotations")
    return isinstance(one.get("text"), str) and any(
        isinstance(label, dict) and type(label.get("label")) is int
        for label in (found if isinstance(found, list) else [])
    )


def _row(
    crowd: SpanCrowd,
    record: Record,
    counts: Counter[str],
    numbers: dict[str, str] | None,
    *,
    single: bool,
) -> Assignment:
    options = crowd.options
    text_keys = keys_of(options, "text", *_TEXT)
    text = str(record.required(record.text(*text_keys), *text_keys))
    if numbers is None:
        keys = keys_of(options, "item", *_ID)
        record = record.at(item=record.required(record.name(*keys), keys[0]))
    else:  # the lines of several annotators are of one item where their texts are the same
        record = record.at(item=numbers.setdefault(text, str(len(numbers) + 1)))
    named = record.name(*keys_of(options, "worker", *_WORKER))
    worker = named or stem(record.file)
    known = record.at(worker=worker)
    if _has_ids(record.value):
        message = "the labels of 'annotations' are ids, whose names the file does not hold: export"
        raise known.error(f"{message} 'JSONL (Text label)' from doccano", "label-ids")
    predicted = {PREDICTED} if is_prediction(worker, record.value) else set()
    for key in _NOT_USED:
        crowd.leave_unread(key.lower(), known, len(record.items(key) or []))
    item = Assignment(
        record,
        text,
        attributes=record.others(_RESERVED | {*options.columns.values()} | predicted),
        group=record.name(*keys_of(options, "doc", "doc"), may_be_empty=True),
    )
    found = record.find(*keys_of(options, "label", *_LABEL))
    if found is None:
        return item
    if named is None and worker == _NOBODY and not found:
        counts[_NOBODY] += 1
        return item
    counts[_EVERYBODY] += named is None and worker == _EVERYBODY
    counts["empty"] += found == []
    if single:
        found = [found] if isinstance(found, str) else found
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise known.error(f"expected a list of labels under 'label', found {shown(found)}")
    return item if single and not found else item._replace(record=known, answers={"": found})


def _lines(crowd: Crowd, predicted: Mapping[str, float] | None) -> Iterator[str]:
    taken = _RESERVED | _OTHERS | {PREDICTED}
    for row in item_rows(crowd, predicted):
        line = {"id": row.id, **row.fields, **beside(row.attributes, taken)}
        if row.group is not None:
            line["doc"] = row.group
        said: list[tuple[str, list[CharSpan], dict[str, Any]]] = [
            (worker, spans, {}) for _, worker, spans in row.answers
        ]
        if row.gold is not None:
            said.insert(0, (row.gold_by, row.gold, row.mark))
        if not said:
            yield dump(line) + "\n"
        for worker, spans, mark in said:
            names: list[Any] = [span.type for span in spans]
            if not crowd.is_classification:
                names = [[span.start, span.end, span.type] for span in spans]
            yield dump({**line, "label": names, "annotator": worker, **mark}) + "\n"
