"""The tasks of Label Studio: as goldspan writes them, and made of the records of JSON-MIN."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from goldspan.crowd.formats.char_spans import CharSpan
from goldspan.crowd.formats.json_records import EPOCH, Record, keys_of
from goldspan.crowd.formats.span_exports import MAX_MOMENT, ItemRow, beside, dump, item_rows
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions

RESERVED = {"text", "item", "doc", "tokens", "token_start", "attributes"}
"""Fields of a task's data that are no attributes."""

_MIN = {"annotation_id", "annotator", "created_at", "updated_at", "lead_time", "agreement"}
_CHOICES = ("label", "choice", "sentiment")


def is_min(one: Mapping[str, Any]) -> bool:
    """Say whether this is a record of JSON-MIN: one annotation, with the data around it."""
    return {"annotation_id", "annotator"} <= one.keys()


def as_task(record: Record, options: ReadOptions) -> Record:
    """Give a record of JSON-MIN, which is one annotation, the form of a task."""
    if not is_min(record.value):
        return record
    results: list[dict[str, Any]] = []
    data = {key: value for key, value in record.value.items() if key not in _MIN}
    for key, value in list(data.items()):
        if isinstance(value, list) and any(
            isinstance(one, dict) and "start" in one for one in value
        ):
            results += [{"type": "labels", "from_name": key, "value": one} for one in value]
            del data[key]
        elif key in keys_of(options, "label", *_CHOICES) and isinstance(value, str | dict):
            value = {"choices": [value]} if isinstance(value, str) else value  # noqa: PLW2901
            results.append({"type": "choices", "from_name": key, "value": value})
            del data[key]
    annotation = {key: record.value.get(key) for key in ("created_at", "lead_time")}
    annotation |= {"completed_by": record.value["annotator"], "result": results}
    task = {"id": data.pop("id", None), "data": data, "annotations": [annotation]}
    return replace(record, value={**task, "json_min": True})


def lines(crowd: Crowd) -> Iterator[str]:
    """Write the tasks as a JSON array, one task per line."""
    number = 0
    for n, row in enumerate(item_rows(crowd)):
        data = {**row.fields, "item": row.id, **beside(row.attributes, RESERVED)}
        if row.group is not None:
            data["doc"] = row.group
        annotations = []
        if row.gold is not None:
            annotations.append({"ground_truth": True, "result": _results(crowd, row.gold, row)})
        for a, worker, spans in row.answers:
            by = int(worker) if _is_number(worker) else {"email": worker}
            found = {"completed_by": by, "ground_truth": False, "was_cancelled": False}
            annotations.append({**found, **_times(crowd, a), "result": _results(crowd, spans, row)})
        for one in annotations:
            number += 1
            one["id"] = number
        yield (
            ("," if n else "[")
            + "\n"
            + dump({"id": n + 1, "data": data, "annotations": annotations})
        )
    yield "\n]\n" if crowd.n_items else "[]\n"


def _results(crowd: Crowd, spans: list[CharSpan], row: ItemRow) -> list[dict[str, Any]]:
    if crowd.is_classification:
        head = {"from_name": "choice", "to_name": "text", "type": "choices"}
        return [{**head, "value": {"choices": [span.type]}} for span in spans]
    head = {"from_name": "label", "to_name": "text", "type": "labels"}
    return [
        {
            "id": f"r{n}",
            **head,
            "value": {
                "start": span.start,
                "end": span.end,
                "text": row.text.value[span.start : span.end],
                "labels": [span.type],
            },
        }
        for n, span in enumerate(spans)
    ]


def _times(crowd: Crowd, a: int) -> dict[str, Any]:
    started, submitted = crowd.answers.started, crowd.answers.submitted
    end = -1 if submitted is None else int(submitted[a])
    if not 0 <= end <= MAX_MOMENT:
        return {}
    moment = (EPOCH + timedelta(milliseconds=end)).isoformat(timespec="milliseconds")
    times = {"created_at": moment.replace("+00:00", "Z")}
    if started is None or started[a] < 0:
        return times
    return {**times, "lead_time": (end - int(started[a])) / 1000}


def _is_number(worker: str) -> bool:
    return worker.isascii() and worker.isdigit() and len(worker) < 19 and str(int(worker)) == worker
