"""SageMaker Ground Truth: output manifests, consolidation requests, workers' responses; read only.

A manifest has a JSON object per line with the consolidated label, which is read as gold: spans, one
class or several. Consolidation requests have all answers with the texts, workers' responses have
them without, in a folder per item. Of the folder of a job the answers are read, and the texts of
the manifest. An item is called by the line of the manifest, from 0 on as in the other files.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from goldspan.crowd.formats.assignments import Assignment, is_spans, read_assignments, times
from goldspan.crowd.formats.json_records import (
    Record,
    collect,
    first_objects,
    keys_of,
    read_records,
)
from goldspan.crowd.formats.span_crowd import SpanCrowd
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source

_META = "-metadata"
_EVERYBODY = "annotationsFromAllWorkers"
"""Where jobs that consolidate nothing have the answers, within the label of the manifest."""


def sniff(source: Source) -> bool:
    """Return whether there are objects of Ground Truth."""
    return any(_kind(one) for one in first_objects(source))


def _kind(one: dict[str, Any]) -> str:
    """What an object is: "request", "response", "manifest", or nothing that is read."""
    listed = one.get("answers")
    if isinstance(listed, list) and all(isinstance(x, dict) for x in listed):
        return "response" if any("answerContent" in x for x in listed) else ""
    if "datasetObjectId" in one:
        return "request" if isinstance(one.get("annotations"), list) else ""
    return "manifest" if _jobs(one) and one.keys() & {"source", "source-ref"} else ""


def _jobs(one: dict[str, Any]) -> list[str]:
    """Return the names of the jobs that labelled an object of a manifest."""
    names = (key.removesuffix(_META) for key in one if key.endswith(_META))
    return [name for name in names if isinstance(one[name + _META], dict)]


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read a file, or the folder of a job."""
    crowd = SpanCrowd(source, "sagemaker", options)
    found: dict[str, list[Assignment]] = {"request": [], "response": [], "manifest": []}
    n_lines: Counter[str] = Counter()
    for record in read_records(source, crowd.faults):
        kind = _kind(record.value)
        if not kind and not source.is_folder:
            message = "not an output manifest, a consolidation request or a worker's response"
            crowd.faults.append(record.fault(message, "format"))
        elif kind and "intermediate" not in PurePath(record.file).parts:
            number = n_lines[record.file]
            n_lines[record.file] += 1
            with collect(crowd.faults):
                if kind == "manifest":
                    found[kind] += _of_manifest(crowd, record, number)
                elif kind == "request":
                    found[kind] += _of_request(record)
                else:
                    found[kind] += _of_response(crowd, record)
    rows = found["request"] or found["response"]
    if rows and found["manifest"]:
        texts = {one.record.item: one.text for one in found["manifest"]}
        rows = [row._replace(text=row.text or texts.get(row.record.item)) for row in rows]
        note = "the consolidated labels of the manifest are not read beside the answers"
        crowd.builder.notes.append(note)
    return read_assignments(crowd, rows or found["manifest"])


def _of_request(record: Record) -> Iterator[Assignment]:
    record = record.at(item=record.required(record.name("datasetObjectId"), "datasetObjectId"))
    shown = record.inner(record.find("dataObject") or {}, "dataObject")
    text = shown.text("content", "source")
    for one in record.inners("annotations"):
        yield _answer(one, text)


def _answer(one: Record, text: str | None) -> Assignment:
    """Return what one worker answered; `content` is the JSON of the page, as a string."""
    content = one.inner(one.find("annotationData") or {}, "annotationData").find("content")
    if isinstance(content, str):
        try:
            content = json.loads(content)
        except (ValueError, RecursionError):
            raise one.error("the content of an annotation is not JSON", "json") from None
    known = one.at(worker=one.required(one.name("workerId"), "workerId"))
    return Assignment(known, text, one.inner(content, "the content of an annotation").value)


def _of_response(crowd: SpanCrowd, record: Record) -> Iterator[Assignment]:
    path = PurePath(record.file)
    item = path.parent.name if path.parent.name.isdigit() else path.stem
    for one in record.at(item=item).inners("answers"):
        content = one.inner(one.find("answerContent"), "answerContent").value
        known = one.at(worker=one.required(one.name("workerId"), "workerId"))
        facts = times(crowd, known, "acceptanceTime", "submissionTime")
        yield Assignment(known, None, content, facts=facts)


def _of_manifest(crowd: SpanCrowd, record: Record, number: int) -> Iterator[Assignment]:
    key = crowd.options.columns.get("item")
    record = record.at(item=record.required(record.name(key), key) if key else str(number))
    text = record.text(*keys_of(crowd.options, "text", "source"))
    gold: dict[str, Any] = {}
    for name in _jobs(record.value):
        label = record.find(name)
        about = record.inner(record.value[name + _META], name + _META)
        if isinstance(label, dict) and isinstance(label.get(_EVERYBODY), list):
            for one in record.inner(label, name).inners(_EVERYBODY):
                yield _answer(one, text)
        elif label is not None and about.find("human-annotated") == "no":
            crowd.leave_unread("labels that a model gave", record)
        elif label is not None:
            gold[name] = _label(record, label, about)
    if text is None and not any(map(is_spans, gold.values())):
        text = record.text("source-ref")  # a picture, say
    yield Assignment(record, text, {}, gold)


def _label(record: Record, label: Any, about: Record) -> Any:
    """Return a consolidated label as pages answer: spans, a class by its name, or several."""
    if isinstance(label, dict):
        found = label.get("annotations", label)
        if isinstance(found, dict):
            return found
        kind = about.find("type")
        message = f"labels of {kind} are neither spans of a text nor classes: they are not read"
        raise record.error(message, "task")
    names = record.inner(about.find("class-map") or {}, "class-map").value
    if isinstance(label, list):
        return [names.get(str(one), str(one)) for one in label]
    return str(about.find("class-name") or names.get(str(label), label))
