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
from goldspan.crowd.formats.char_spans import CharSpan, cut_fields, read_span
from goldspan.crowd.formats.json_records import (
    Record,
    collect,
    first_objects,
    keys_of,
    read_records,
    shown,
    stem,
)
from goldspan.crowd.formats.span_crowd import Item, Labels, SpanCrowd
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
from goldspan.crowd.source import Source, counted

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
    single = _has_names_only(records, keys)
    counts: Counter[str] = Counter()
    has_ids = "item" in options.columns or any(record.find(*_ID) is not None for record in records)
    numbers: dict[str, str] | None = None if has_ids else {}
    for record in counted(records, options.progress):
        with collect(crowd.faults):
            _read_record(crowd, record, counts, numbers, single=single)
    n_empty = counts.pop("empty", 0)
    if n_empty:
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
    return crowd.build()


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


def _has_names_only(records: list[Record], keys: tuple[str, ...]) -> bool:
    names = False
    for record in records:
        found = record.find(*keys)
        listed = found if isinstance(found, list) else [found]
        if any(isinstance(one, list | dict) for one in listed):
            return False
        names |= any(isinstance(one, str) for one in listed)
    return names


def _read_record(
    crowd: SpanCrowd,
    record: Record,
    counts: Counter[str],
    numbers: dict[str, str] | None,
    *,
    single: bool,
) -> None:
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
    record = record.at(worker=worker)
    if _has_ids(record.value):
        message = "the labels of 'annotations' are ids, whose names the file does not hold: export"
        raise record.error(f"{message} 'JSONL (Text label)' from doccano", "label-ids")
    predicted = is_prediction(worker, record.value)
    taken = _RESERVED | set(options.columns.values()) | ({PREDICTED} if predicted else set())
    for key in _NOT_USED:
        crowd.leave_unread(key.lower(), record, len(record.items(key) or []))
    item = crowd.item(
        record,
        cut_fields(record, text, single=single, rule=options.tokens),
        group=record.name(*keys_of(options, "doc", "doc"), may_be_empty=True),
        attributes=record.others(taken),
    )
    found = record.find(*keys_of(options, "label", *_LABEL))
    if found is None:
        return
    known = crowd.predicted(item, record, record.find(PREDICTED)) if predicted else record
    if known is None:
        return
    if named is None and worker == _NOBODY and not found:
        counts[_NOBODY] += 1
        return
    counts[_EVERYBODY] += named is None and worker == _EVERYBODY
    counts["empty"] += found == []
    _read_labels(crowd, item, known, found, single=single)


def _read_labels(
    crowd: SpanCrowd, item: Item, record: Record, found: object, *, single: bool
) -> None:
    if not single:
        if not isinstance(found, list):
            raise record.error(f"expected a list of spans under 'label', found {shown(found)}")
        spans = [read_span(record, one) for one in found]
        crowd.answer_or_gold(item, record, Labels(crowd.place(item, record, spans)))
        return
    labels = [found] if isinstance(found, str) else found
    if not isinstance(labels, list) or not all(isinstance(one, str) for one in labels):
        raise record.error(f"expected a list of labels under 'label', found {shown(found)}")
    if len(labels) > 1:
        message = f"{len(labels)} labels, but a single one is needed: left out"
        crowd.leave_out(record, message, "several labels")
    elif labels:
        crowd.answer_or_gold(item, record, crowd.single(item, record, labels[0]))


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
