"""Prodigy: the JSONL that `db-out` writes, one line per annotated task, or a folder of such files.

Only accepted tasks are answers; others, and choices of none or of several, are listed and counted.
Where all tasks ask about one label, a rejected one is the answer "not LABEL".
Several accepted binary tasks on one input are repeated answers, of which the last counts. A task
with `options` or `accept`, or with a `label` but no `spans`, is a single label. Labels that nobody
confirmed are written as ignored tasks of the annotator "goldspan" with a field `predicted`. Hashes
are made anew when a task is written: `item` keeps the one that named it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from goldspan.crowd.atomic import write_text
from goldspan.crowd.formats.assignments import Assignment, read_assignments
from goldspan.crowd.formats.char_spans import CharSpan
from goldspan.crowd.formats.json_records import (
    Record,
    collect,
    first_objects,
    keys_of,
    one_of,
    only_one,
    read_records,
    stem,
)
from goldspan.crowd.formats.span_crowd import GOLD_NAMES, Facts, SpanCrowd
from goldspan.crowd.formats.span_exports import (
    PREDICTED,
    ItemRow,
    SoftLabels,
    dump,
    is_prediction,
    item_rows,
    labels_asked,
    reject_gold_worker,
    submitted,
)
from goldspan.crowd.formats.span_jsonl import HEADER
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source
from goldspan.errors import UnknownNameError

SPANS, LABEL = "spans", "label"
_MARKS = {"_input_hash", "_task_hash", "_annotator_id", "_session_id", "_view_id"}
_ANSWERS = ("accept", "reject", "ignore")
_NOT_USED = {"relations": "relations", "versions": "versions of a review", "score": "scores"}
_KNOWN = {
    *("text", "tokens", "spans", "label", "options", "accept", "answer", "meta", "item", "doc"),
    *("view_id", "config", PREDICTED, *_NOT_USED),
}
"""Fields of a task that are read or counted, or that say nothing of the item."""


def sniff(source: Source) -> bool:
    """Return whether there are texts with Prodigy's hashes or its accept, reject and ignore."""
    return any(
        isinstance(one.get("text"), str) and (_MARKS & one.keys() or one.get("answer") in _ANSWERS)
        for one in first_objects(source, unless=HEADER)
    )


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read annotated tasks."""
    crowd = SpanCrowd(source, "prodigy", options)
    numbers: dict[str, str] = {}
    records = list(read_records(source, crowd.faults))
    tasks = [record.value for record in records]
    wanted = options.columns.get("label")
    names = _names(tasks)
    if wanted is not None and records:
        only_one(records[0], names, f"no answer {wanted!r}", wanted)
    elif len(names) > 1:
        crowd.builder.notes.append(one_of(names))
    asked = {str(task["label"]) for task in tasks if _is_binary(task)}
    has_spans = any("spans" in task and not _has_choice(task) for task in tasks)
    single = any(map(_is_single, tasks)) and not has_spans if wanted is None else wanted != SPANS
    rows = []
    for record in records:
        with collect(crowd.faults):
            text = str(record.required(record.text("text"), "text"))
            name = record.name(*keys_of(options, "item", "item", "_input_hash", "_task_hash"))
            name = name or numbers.setdefault(text, str(len(numbers) + 1))
            rows.append(_row(crowd, record.at(item=name), text, asked))
    return read_assignments(crowd, rows, single=single)


def layers(source: Source, options: ReadOptions) -> list[str]:  # noqa: ARG001
    """Return what is answered: "spans", "accept" (choices), "label" (tasks that ask about one)."""
    return _names([record.value for record in read_records(source, [])])


def _names(tasks: list[dict[str, Any]]) -> list[str]:
    is_there = {SPANS: lambda task: bool(task.get(SPANS)), "accept": _has_choice, LABEL: _is_binary}
    return [name for name, find in is_there.items() if any(map(find, tasks))]


def write(
    crowd: Crowd,
    path: Path,
    predicted: Mapping[str, float] | None = None,
    soft: SoftLabels | None = None,
) -> None:
    """Write one accepted task per answer; gold is annotated by "gold"."""
    # What has a confidence has it as `score`: spans, and the task itself
    reject_gold_worker(crowd)
    write_text(path, _lines(crowd, predicted, soft))


def _row(crowd: SpanCrowd, record: Record, text: str, asked: set[str]) -> Assignment:
    task, meta, answer = record.value, record.find("meta"), record.string("answer")
    keys = keys_of(crowd.options, "worker", "_annotator_id", "_session_id")
    by = record.at(worker=record.name(*keys) or stem(record.file))
    item = Assignment(
        record._replace(value=_tokens_of(record)),
        text,
        attributes={} if meta is None else record.inner(meta, "meta").value,
        group=record.name(*keys_of(crowd.options, "doc", "doc"), may_be_empty=True),
    )
    if answer is None and not {"spans", "accept", "label"} & task.keys():
        return item
    wanted = crowd.options.columns.get("label")
    single = _is_single(task) if wanted is None else wanted != SPANS
    is_asked = {None: True, LABEL: _is_binary(task), "accept": _has_choice(task)}
    if not is_asked.get(wanted, SPANS in task or "tokens" in task):
        return item
    known = by._replace(value=item.record.value)
    if is_prediction(by.worker, task):
        known.value[PREDICTED] = task[PREDICTED]
        answer = "accept"
    else:
        _count_unread(crowd, by)
        crowd.workers |= {} if by.worker in GOLD_NAMES else {by.worker: None}
    if answer not in {None, *_ANSWERS}:
        raise by.error(str(UnknownNameError("answer", answer, _ANSWERS)))
    facts = Facts(submitted=by.moment("_timestamp", 1000))
    item = item._replace(record=known, facts=facts)
    if answer == "reject" and len(asked) == 1 and _is_binary(task):
        return item._replace(answers={"": [f"not {task['label']}"]})
    if answer not in {None, "accept"}:
        message = f"the task was answered with {answer!r}: not used"
        crowd.leave_out(by, message, f"answer {answer}")
        return item._replace(record=item.record.at(worker=""))
    found = _choices(by) if single else by.items("spans") or []
    return item._replace(answers={"": found})


def _count_unread(crowd: SpanCrowd, record: Record) -> None:
    for key, what in _NOT_USED.items():
        found = record.find(key)
        crowd.leave_unread(what, record, len(found) if isinstance(found, list) else bool(found))
    spans = record.find("spans")
    listed = spans if isinstance(spans, list) else []
    scores = [one for one in listed if isinstance(one, dict) and one.get("score") is not None]
    crowd.leave_unread("scores of spans", record, len(scores))
    taken = _KNOWN | {*crowd.options.columns.values()}
    for key, value in record.value.items():
        if key not in taken and not key.startswith("_") and value not in (None, "", [], {}):
            crowd.leave_unread(f"fields {key[:60]!r}", record)


def _is_single(task: Mapping[str, Any]) -> bool:
    return _has_choice(task) or _is_binary(task)


def _has_choice(task: Mapping[str, Any]) -> bool:
    return isinstance(task.get("accept"), list) or isinstance(task.get("options"), list)


def _is_binary(task: Mapping[str, Any]) -> bool:
    """Whether a task asks if one label is right."""
    return not _has_choice(task) and isinstance(task.get("label"), str) and "spans" not in task


def _choices(record: Record) -> list[str]:
    """The labels that were chosen, by the ids of their options."""
    if "accept" not in record.value and "options" not in record.value:
        return [str(record.string("label"))]
    found = []
    for one in record.items("accept") or []:
        choice = record.inner({"accept": one}, "a choice")
        found.append(str(choice.required(choice.name("accept"), "accept")))
    return found


def _tokens_of(record: Record) -> dict[str, Any]:
    """Return the tokens of a task and where they begin, but for those of white space."""
    listed = [
        (one.required(one.string("text"), "text"), one.required(one.whole("start"), "start"))
        for one in record.inners("tokens")
    ]
    listed = [(token, start) for token, start in listed if token.strip()]
    return {"tokens": [token for token, _ in listed], "token_start": [start for _, start in listed]}


def _lines(
    crowd: Crowd, predicted: Mapping[str, float] | None, soft: SoftLabels | None
) -> Iterator[str]:
    classes = [{"id": tag, "text": tag} for tag in labels_asked(crowd)]
    for row in item_rows(crowd, predicted, soft):
        text = row.id + "\0" + row.text.value
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).digest()
        number = int.from_bytes(digest, "big", signed=True)
        task: dict[str, Any] = {"item": row.id, "text": row.text.value}
        task |= {"_input_hash": number, "_task_hash": number}
        if row.group is not None:
            task["doc"] = row.group
        if row.attributes:
            task["meta"] = row.attributes
        if "tokens" in row.fields or not crowd.is_classification:
            task["tokens"] = _tokens(row)
        if crowd.is_classification:
            task["options"] = classes
        said: list[tuple[str, str, list[CharSpan], dict[str, Any], list[float] | None]]
        said = [("accept", name, spans, _time(crowd, a), None) for a, name, spans in row.answers]
        if row.gold is not None:
            answer = "ignore" if row.is_predicted else "accept"
            score = None if soft is None else row.score
            mark = row.mark | ({} if score is None else {"score": score})
            said.insert(0, (answer, row.gold_by, row.gold, mark, row.sure))
        if not said:
            yield dump(task) + "\n"
        for answer, by, spans, more, sure in said:
            names = {"answer": answer, "_annotator_id": by, "_session_id": by}
            yield dump({**task, **more, **_spans(crowd, row, spans, sure), **names}) + "\n"


def _tokens(row: ItemRow) -> list[dict[str, Any]]:
    text, bounds = row.text.value, row.text.bounds
    return [
        {"text": text[a:b], "start": a, "end": b, "id": n, "ws": text[b : b + 1] == " "}
        for n, (a, b) in enumerate(bounds)
    ]


def _spans(
    crowd: Crowd, row: ItemRow, spans: Sequence[CharSpan], sure: list[float] | None
) -> dict[str, Any]:
    if crowd.is_classification:
        return {"accept": [span.type for span in spans], "_view_id": "choice"}
    first = {a: n for n, (a, _) in enumerate(row.text.bounds)}
    last = {b: n for n, (_, b) in enumerate(row.text.bounds)}
    listed: list[dict[str, Any]] = [
        {"start": a, "end": b, "token_start": first[a], "token_end": last[b], "label": kind}
        for kind, a, b, _ in spans
    ]
    for one, score in zip(listed, sure or [], strict=False):
        one["score"] = score
    return {"spans": listed, "_view_id": "ner_manual"}


def _time(crowd: Crowd, a: int) -> dict[str, Any]:
    seconds, rest = divmod(submitted(crowd, a), 1000)
    return {} if seconds < 0 else {"_timestamp": seconds + rest / 1000 if rest else seconds}
