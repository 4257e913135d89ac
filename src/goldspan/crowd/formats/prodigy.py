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
from goldspan.crowd.formats.char_spans import CharSpan, Cut, cut_text, read_span, whole_text
from goldspan.crowd.formats.json_records import (
    Record,
    collect,
    first_objects,
    keys_of,
    read_records,
    stem,
)
from goldspan.crowd.formats.span_crowd import Facts, Labels, SpanCrowd
from goldspan.crowd.formats.span_exports import (
    MAX_MOMENT,
    PREDICTED,
    ItemRow,
    SoftLabels,
    dump,
    is_prediction,
    item_rows,
    reject_gold_worker,
)
from goldspan.crowd.formats.span_jsonl import HEADER
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source, counted
from goldspan.errors import UnknownNameError

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
    asked = {str(record.value["label"]) for record in records if _is_binary(record.value)}
    for record in counted(records, options.progress):
        with collect(crowd.faults):
            text = str(record.required(record.text("text"), "text"))
            name = record.name(*keys_of(options, "item", "item", "_input_hash", "_task_hash"))
            name = name or numbers.setdefault(text, str(len(numbers) + 1))
            _read_task(crowd, record.at(item=name), text, asked)
    return crowd.build()


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


def _read_task(crowd: SpanCrowd, record: Record, text: str, asked: set[str]) -> None:
    options = crowd.options
    single = _is_single(record.value)
    meta = record.find("meta")
    item = crowd.item(
        record,
        _cut(record, text, options.tokens, single=single),
        group=record.name(*keys_of(options, "doc", "doc"), may_be_empty=True),
        attributes=None if meta is None else record.inner(meta, "meta").value,
    )
    answer = record.string("answer")
    if answer is None and not {"spans", "accept", "label"} & record.value.keys():
        return
    keys = keys_of(options, "worker", "_annotator_id", "_session_id")
    record = record.at(worker=record.name(*keys) or stem(record.file))
    if is_prediction(record.worker, record.value):
        known = crowd.predicted(item, record, record.find(PREDICTED))
        if known is None:
            return
        record, answer = known, "accept"
    else:
        _count_unread(crowd, record)
    if answer not in {None, *_ANSWERS}:
        raise record.error(str(UnknownNameError("answer", answer, _ANSWERS)))
    facts = Facts(submitted=record.moment("_timestamp", 1000))
    if answer == "reject" and len(asked) == 1 and _is_binary(record.value):
        crowd.choose(item, record, [f"not {record.value['label']}"], facts)
        return
    if answer not in {None, "accept"}:
        crowd.workers.setdefault(record.worker)
        crowd.leave_out(
            record, f"the task was answered with {answer!r}: not used", f"answer {answer}"
        )
        return
    if not single:
        spans = [read_span(record, one) for one in record.items("spans") or []]
        crowd.answer_or_gold(item, record, Labels(crowd.place(item, record, spans)), facts)
        return
    crowd.choose(item, record, _choices(record), facts)


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


def _cut(record: Record, text: str, rule: str, *, single: bool) -> Cut:
    listed = [
        (one.required(one.string("text"), "text"), one.required(one.whole("start"), "start"))
        for one in record.inners("tokens")
    ]
    listed = [(token, start) for token, start in listed if token.strip()]
    if listed:
        return cut_text(
            record, text, [token for token, _ in listed], [start for _, start in listed]
        )
    return whole_text(text) if single else cut_text(record, text, rule=rule)


def _lines(
    crowd: Crowd, predicted: Mapping[str, float] | None, soft: SoftLabels | None
) -> Iterator[str]:
    classes = [{"id": tag, "text": tag} for tag in crowd.tagset.tags]
    for n, row in enumerate(item_rows(crowd, predicted, soft)):
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
        if row.gold is not None:
            answer = "ignore" if row.is_predicted else "accept"
            score = None if soft is None else soft.of_item(n)
            known = task | row.mark | ({} if score is None else {"score": score})
            yield _line(crowd, row, known, answer, row.gold_by, row.gold, row.sure)
        for a, worker, spans in row.answers:
            yield _line(crowd, row, task | _time(crowd, a), "accept", worker, spans)
        if row.gold is None and not row.answers:
            yield dump(task) + "\n"


def _line(
    crowd: Crowd,
    row: ItemRow,
    task: dict[str, Any],
    answer: str,
    by: str,
    spans: list[CharSpan],
    sure: list[float] | None = None,
) -> str:
    names = {"answer": answer, "_annotator_id": by, "_session_id": by}
    said = _spans(crowd, row, spans)
    for one, score in zip(said.get("spans", []), sure or [], strict=False):
        one["score"] = score
    return dump({**task, **said, **names}) + "\n"


def _tokens(row: ItemRow) -> list[dict[str, Any]]:
    text, bounds = row.text.value, row.text.bounds
    return [
        {"text": text[a:b], "start": a, "end": b, "id": n, "ws": text[b : b + 1] == " "}
        for n, (a, b) in enumerate(bounds)
    ]


def _spans(crowd: Crowd, row: ItemRow, spans: Sequence[CharSpan]) -> dict[str, Any]:
    if crowd.is_classification:
        return {"accept": [span.type for span in spans], "_view_id": "choice"}
    first = {a: n for n, (a, _) in enumerate(row.text.bounds)}
    last = {b: n for n, (_, b) in enumerate(row.text.bounds)}
    listed = [
        {"start": a, "end": b, "token_start": first[a], "token_end": last[b], "label": kind}
        for kind, a, b, _ in spans
    ]
    return {"spans": listed, "_view_id": "ner_manual"}


def _time(crowd: Crowd, a: int) -> dict[str, Any]:
    submitted = crowd.answers.submitted
    if a < 0 or submitted is None or not 0 <= submitted[a] <= MAX_MOMENT:
        return {}
    seconds, rest = divmod(int(submitted[a]), 1000)
    return {"_timestamp": seconds + rest / 1000 if rest else seconds}
