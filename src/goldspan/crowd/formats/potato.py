"""Potato: the output folder of a project, with a folder per annotator.

Older versions write `annotated_instances.jsonl` with the texts; newer ones write `user_state.json`,
and have the texts in the data files of the project. Spans are read where there are any, else the
only scheme of labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from goldspan.crowd.formats.assignments import Assignment, questions, read_assignments
from goldspan.crowd.formats.char_spans import CharSpan, read_span
from goldspan.crowd.formats.json_records import (
    JSON_SUFFIXES,
    Record,
    collect,
    first_objects,
    keys_of,
    read_records,
    shown,
)
from goldspan.crowd.formats.span_crowd import SpanCrowd
from goldspan.crowd.grid import exact_rows
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source

_STATE, _LINES = _FILES = "user_state.json", "annotated_instances.jsonl"
_SAID = ("label_annotations", "span_annotations")
_LABELS, _SPANS = "instance_id_to_label_to_value", "instance_id_to_span_to_value"
_ID, _TEXT = ("id", "instance_id"), ("displayed_text", "text")
_NOT_CHOSEN = (None, False, "", "false", "False")


def sniff(source: Source) -> bool:
    """Return whether there are states or annotated instances of Potato's users."""
    files = source.files or {_LINES: source}
    first = next((one for path, one in files.items() if path.endswith(_FILES)), None)
    found = first_objects(first, limit=1) if first is not None else []
    return any(_LABELS in one or {*_SAID} & one.keys() for one in found)


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read what every annotator said."""
    return read_assignments(*_assignments(source, options))


def layers(source: Source, options: ReadOptions) -> list[str]:
    """Return the questions."""
    return questions(_assignments(source, options)[1])


def _assignments(source: Source, options: ReadOptions) -> tuple[SpanCrowd, list[Assignment]]:
    crowd = SpanCrowd(source, "potato", options)
    files = source.files or {_LINES: source}
    listed = sorted(files.items(), key=lambda one: (one[0].endswith(_STATE), one[0]))
    said = {Path(path).parent: one for path, one in listed if path.endswith(_FILES)}
    # Beside the folders of annotators may stand a file of all their lines
    below = {path for path in said if any(path in other.parents for other in said)}
    said = {path: one for path, one in said.items() if path not in below}
    texts = dict(_texts([one for path, one in listed if not path.endswith(_FILES)], options))
    answers = []
    for path, file in said.items():
        by = path.name or Path(file.name).resolve().parent.name
        for one in _instances(read_records(file, crowd.faults)):
            with collect(crowd.faults):
                item = one.required(one.name(*keys_of(options, "item", *_ID)), *_ID)
                record = one.at(item=item, worker=one.name("user_id") or by)
                text = record.text(*keys_of(options, "text", *_TEXT)) or texts.get(record.item)
                answers.append((record, text, _labels(record), _spans(record)))
    every = [labels for _, _, labels, _ in answers]
    fields = {s for s in {*chain(*every)} if _is_field([one.get(s, {}) for one in every])}
    has_spans = any(spans for *_, spans in answers)
    rows = []
    for record, text, labels, spans in answers:
        given: dict[str, list[Any]] = {
            scheme: [str(one) for one in (chosen.values() if scheme in fields else chosen)]
            for scheme, chosen in labels.items()
        }
        given |= {_SAID[1]: spans} if has_spans else {}
        rows.append(Assignment(record, text, given))
    return crowd, rows


def _is_field(chosen: list[dict[str, Any]]) -> bool:
    """Whether a scheme has one field, such as a slider, whose value is the label."""
    values = {str(value) for one in chosen for value in one.values()}
    return len({*chain(*chosen)}) == 1 < len(values)


def _instances(records: Iterator[Record]) -> Iterator[Record]:
    """Yield what was said of every item, in the form of `annotated_instances.jsonl`."""
    for record in records:
        if _LABELS not in record.value:
            yield record
            continue
        known = [record.inner(record.find(key) or {}, key).value for key in (_LABELS, _SPANS)]
        for name in dict.fromkeys(chain(*known)):
            said = zip(_SAID, (one.get(name) for one in known), strict=True)
            yield record._replace(
                value={"id": name, "user_id": record.find("user_id"), **dict(said)}
            )


def _texts(files: list[Source], options: ReadOptions) -> Iterator[tuple[str, str]]:
    """Yield ids and texts of the data files that are in the folder."""
    keys = keys_of(options, "item", *_ID), keys_of(options, "text", *_TEXT)
    for file in files:
        rows: list[dict[str, Any]] = []
        with collect([]):
            if file.suffix in JSON_SUFFIXES:
                rows = [one.value for one in read_records(file, [])]
            elif file.suffix in {".csv", ".tsv"}:
                _, names, cells = exact_rows(file)
                rows = [dict(zip(names, row, strict=False)) for _, row in cells]
        for row in rows:
            name, text = (next((row[k] for k in one if k in row), None) for one in keys)
            if isinstance(text, str) and isinstance(name, str | int):
                yield str(name), text


def _labels(record: Record) -> dict[str, dict[str, Any]]:
    """Return the labels of every scheme with their values: of pairs, or as they are."""
    found, schemes = record.find(_SAID[0]), dict[str, dict[str, Any]]()
    if isinstance(found, list):
        for pair in found:
            if not isinstance(pair, list) or len(pair) != 2:
                raise record.error(f"a label must be a list of two, not {shown(pair)}")
            one = record.inner(pair[0], "a label")
            schemes.setdefault(str(one.find("schema")), {})[str(one.find("name"))] = pair[1]
    else:
        for scheme in record.inner(found or {}, _SAID[0]).value:
            one = record.inner(found[scheme], f"each of {_SAID[0]}")
            inner = one.find("labels")
            schemes[scheme] = inner if isinstance(inner, dict) else one.value
    return {
        scheme: {name: value for name, value in one.items() if value not in _NOT_CHOSEN}
        for scheme, one in schemes.items()
    }


def _spans(record: Record) -> list[CharSpan]:
    found = record.find(_SAID[1])
    one = record._replace(value=found if isinstance(found, dict) else {"": found})
    listed = [span for key in one.value for span in one.items(key) or []]
    return [
        read_span(record, span[0] if isinstance(span, list) else span) for span in listed if span
    ]
