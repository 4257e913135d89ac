"""Label Studio: its JSON export, tasks with the annotations of every user; also JSON-MIN."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeGuard

from goldspan.crowd.atomic import write_text
from goldspan.crowd.formats.char_spans import CharSpan, char_span, cut_fields, reads_otherwise
from goldspan.crowd.formats.json_records import (
    EPOCH,
    JSON_SUFFIXES,
    Record,
    collect,
    first_objects,
    keys_of,
    one_of,
    only_one,
    read_records,
    shown,
    text_key,
)
from goldspan.crowd.formats.long import is_label_studio, label_studio_error
from goldspan.crowd.formats.span_crowd import GOLD, Facts, Item, Labels, SpanCrowd
from goldspan.crowd.formats.span_exports import (
    PREDICTED_BY,
    ItemRow,
    SoftLabels,
    array_lines,
    beside,
    item_rows,
    model_version,
    submitted,
)
from goldspan.crowd.formats.span_jsonl import HEADER
from goldspan.crowd.grid import header_names
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source, counted
from goldspan.errors import Fault, FormatError, GoldspanError

RESERVED = {"text", "item", "doc", "tokens", "token_start", "attributes"}
"""Fields of a task's data that are not attributes."""

MODEL = "model:"
"""How the ids of workers begin whose answers are a model's predictions."""
PREDICTION = "prediction"
"""What kind of worker that is, in their facts; their family is the version of the model."""
UNNAMED = "unnamed"
"""The version of a model that has none."""

_MIN = {"annotation_id", "annotator", "created_at", "updated_at", "lead_time", "agreement"}
_CHOICES = ("label", "choice", "sentiment")


def is_min(one: Mapping[str, Any]) -> bool:
    """Return whether this is a record of JSON-MIN: one annotation, with the data around it."""
    return {"annotation_id", "annotator"} <= one.keys()


def as_task(record: Record, choices: Collection[str]) -> Record:
    """Return a record of JSON-MIN, which is one annotation, the form of a task."""
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
        elif key in choices and isinstance(value, str | dict):
            value = {"choices": [value]} if isinstance(value, str) else value  # noqa: PLW2901
            results.append({"type": "choices", "from_name": key, "value": value})
            del data[key]
    annotation = {key: record.value.get(key) for key in ("created_at", "lead_time")}
    annotation |= {"completed_by": record.value["annotator"], "result": results}
    task = {"id": data.pop("id", None), "data": data, "annotations": [annotation]}
    return record._replace(value={**task, "json_min": True})


def _check_min(records: list[Record], options: ReadOptions) -> None:
    """Reject JSON-MIN in which no label is found, but a field that may be one."""
    mine = [record for record in records if "json_min" in record.value]
    if not mine or any(one["result"] for record in mine for one in record.value["annotations"]):
        return
    taken = {"text", "item", "doc", *(v for k, v in options.columns.items() if k != "label")}
    fields = dict.fromkeys(
        key
        for record in mine
        for key, value in record.value["data"].items()
        if isinstance(value, str) and key not in taken
    )
    if fields:
        only_one(mine[0], list(fields)[:8], "no labels, unless a field holds the choices", "")


def _tasks(
    crowd: Crowd, predicted: Mapping[str, float] | None, soft: SoftLabels | None
) -> Iterator[dict[str, Any]]:
    number, version, versions = 0, model_version(soft), _versions(crowd)
    for n, row in enumerate(item_rows(crowd, predicted, soft)):
        data = {**row.fields, "item": row.id, **beside(row.attributes, RESERVED)}
        if row.group is not None:
            data["doc"] = row.group
        annotations, predictions = [], []
        if row.gold is not None:
            result = {"result": _results(crowd, row.gold, row, row.sure)}
            if row.is_predicted:
                score = {} if row.score is None else {"score": row.score}
                predictions.append({"model_version": version, **score, **result})
            else:
                annotations.append({"ground_truth": True, **result})
        for a, worker, spans in row.answers:
            if worker in versions:
                made = {**_times(crowd, a), "result": _results(crowd, spans, row)}
                predictions.append({"model_version": versions[worker], **made})
                continue
            by = int(worker) if _is_number(worker) else {"email": worker}
            found = {"completed_by": by, "ground_truth": False, "was_cancelled": False}
            annotations.append({**found, **_times(crowd, a), "result": _results(crowd, spans, row)})
        for one in annotations:
            number += 1
            one["id"] = number
        task = {"id": n + 1, "data": data, "annotations": annotations}
        task |= {"predictions": predictions} if predictions else {}
        yield task


def _results(
    crowd: Crowd, spans: list[CharSpan], row: ItemRow, sure: list[float] | None = None
) -> list[dict[str, Any]]:
    """The regions or the choice; `sure` is the confidence of each."""
    scores = [{} if sure is None else {"score": sure[n]} for n in range(len(spans))]
    if crowd.is_classification:
        head = {"from_name": "choice", "to_name": "text", "type": "choices"}
        if crowd.wholes is not None:
            return [{**head, "value": {"choices": [span.type for span in spans]}}]
        both = zip(spans, scores, strict=True)
        return [{**head, "value": {"choices": [span.type]}, **score} for span, score in both]
    head = {"from_name": "label", "to_name": "text", "type": "labels"}
    found = []
    for n, (_, start, end, _) in enumerate(spans):
        value = {"start": start, "end": end, "text": row.text.value[start:end]}
        labels = {"labels": [spans[n].type]}
        found.append({"id": f"r{n}", **head, **scores[n], "value": value | labels})
    return found


def _times(crowd: Crowd, a: int) -> dict[str, Any]:
    started, end = crowd.answers.started, submitted(crowd, a)
    if end < 0:
        return {}
    moment = (EPOCH + timedelta(milliseconds=end)).isoformat(timespec="milliseconds")
    times = {"created_at": moment.replace("+00:00", "Z")}
    if started is None or started[a] < 0:
        return times
    return {**times, "lead_time": (end - int(started[a])) / 1000}


def _versions(crowd: Crowd) -> dict[str, str]:
    """Return the version of the model of workers who are one, as `read` names them."""
    return {
        worker: facts["family"]
        for worker, facts in crowd.known_facts.items()
        if facts.get("kind") == PREDICTION and worker.startswith(f"{MODEL}{facts.get('family')}")
    }


def _is_number(worker: str) -> bool:
    return worker.isascii() and worker.isdigit() and len(worker) < 19 and str(int(worker)) == worker


_REGIONS = ("labels", "hypertextlabels")
_NO_LABEL = "only results that are not read"
"""Why an annotation is no answer in a project without labels of spans."""


def sniff(source: Source) -> bool:
    """Return whether there are tasks with data and annotations, or annotations of JSON-MIN."""
    # Tables of Label Studio are recognised too, so that `read` can say what to export instead
    found = first_objects(source, unless=HEADER)
    return any(_is_task(one) or is_min(one) for one in found) or (not found and _is_table(source))


def _is_table(source: Source) -> bool:
    if source.is_folder or source.is_parquet or source.suffix in JSON_SUFFIXES:
        return False
    try:
        return is_label_studio(header_names(source))
    except GoldspanError:
        return False


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read a JSON or JSON-MIN export."""
    # The predictions of a model are answers of a worker; what goldspan itself predicted is not
    if _is_table(source):
        raise label_studio_error(source.name)
    crowd = SpanCrowd(source, "label-studio", options)
    records = _records(source, crowd.faults, options)
    _check_min(records, options)
    names = _names(records, options)
    if len(names) > 1 and "label" not in options.columns:
        crowd.builder.notes.append(one_of(names))
    kind = _kind_read(records, options)

    reader = _Reader(crowd, single=kind == "choices", has_regions=kind == "regions")
    for number, record in enumerate(counted(records, options.progress), start=1):
        with collect(crowd.faults):
            reader.task(record, number)
    if n := crowd.builder.reasons.get("cancelled"):
        items = "1 item was" if n == 1 else f"{n} items were"
        crowd.builder.notes.append(f"{items} cancelled by an annotator: that is not an answer")
    return replace(crowd.build(), worker_facts=reader.facts)


def layers(source: Source, options: ReadOptions) -> list[str]:
    """Return the controls with regions or choices of the text that is read."""
    return _names(_records(source, [], options), options)


def _records(source: Source, faults: list[Fault], options: ReadOptions) -> list[Record]:
    """Return all tasks; annotations of JSON-MIN become some."""
    records = list(read_records(source, faults))
    plain = {
        key
        for record in records
        if is_min(record.value)
        for key, value in record.value.items()
        if isinstance(value, dict) and isinstance(value.get("choices"), list)
    }
    choices = plain | {*keys_of(options, "label", *_CHOICES)}
    return [as_task(record, choices) for record in records]


def _names(records: list[Record], options: ReadOptions) -> list[str]:
    """Return the controls whose results can be read, those of spans first."""
    found = _controls(records, options, "annotations", "completions")
    found = found or _controls(records, options, "predictions")
    kinds = (*_REGIONS, "choices")
    mine = {(one[0] == "choices", one[1]) for one in found if one[0] in kinds and one[2] is None}
    return [name for _, name in sorted(mine)]


def write(
    crowd: Crowd,
    path: Path,
    predicted: Mapping[str, float] | None = None,
    soft: SoftLabels | None = None,
) -> None:
    """Write tasks with annotations; gold is the annotation that is marked `ground_truth`."""
    # Gold that nobody confirmed is a prediction instead
    write_text(path, array_lines(_tasks(crowd, predicted, soft)))


@dataclass
class _Reader:
    """Reads tasks into a crowd."""

    crowd: SpanCrowd
    single: bool  # Whether choices are read, and not regions
    has_regions: bool = False  # Whether annotators were asked for regions
    # Facts about the workers who are models
    facts: dict[str, dict[str, str]] = field(default_factory=dict)

    def task(self, record: Record, number: int) -> None:
        options = self.crowd.options
        data = record.inner(record.required(record.find("data"), "data"), "data")
        name = data.name(*keys_of(options, "item", "item"))
        if "item" in options.columns:
            data.required(name, options.columns["item"])
        record = record.at(item=name or record.name("id") or str(number))
        item = self._item(record, data.at(item=record.item))
        drafts = record.find("drafts")
        n_drafts = len(drafts) if isinstance(drafts, list) else bool(drafts)
        self.crowd.leave_unread("drafts", record, n_drafts)
        self.crowd.leave_unread("meta fields of tasks", record, bool(record.find("meta")))
        others = _other_texts(record.value, options)
        self._predictions(item, record, others)
        answers = []
        for one in record.inners("annotations", "completions"):
            with collect(self.crowd.faults):
                answers += self._annotation(item, one, others)
        if all(facts.submitted is not None for _, _, facts in answers):
            answers.sort(key=lambda answer: answer[2].submitted or 0)
        for one, labels, facts in answers:
            self.crowd.answer(item, one, labels, facts)

    def _predictions(self, item: Item, record: Record, others: Mapping[str, str]) -> None:
        """Read predictions as answers: several of a version are those of several workers."""
        # A prediction that cannot be read is counted: nobody answers for what a model wrote
        seen = Counter[str]()
        for one in record.items("predictions") or []:
            version = str(one.get("model_version") or UNNAMED) if isinstance(one, dict) else ""
            if version.split(" ")[0] == PREDICTED_BY:
                known = self.crowd.predicted(item, record, one.get("score"))
                if known and (labels := self._labels(item, known.inner(one, ""), others)):
                    self.crowd.set_gold(item, known, labels)
                continue
            seen[version] += 1
            worker = f"{MODEL}{version}" + (f":{seen[version]}" if seen[version] > 1 else "")
            faults, before, labels = list[Fault](), self.crowd.unplaced, None
            self.crowd.unplaced = faults
            with collect(faults):
                found = record.inner(one, "each of 'predictions'").at(worker=worker)
                labels = self._labels(item, found, others)
            self.crowd.unplaced = before
            if faults:
                self.crowd.leave_unread("predictions that cannot be read", record)
                continue
            if labels is not None:
                has_score = found.find("score") is not None
                self.crowd.leave_unread("scores of predictions", found, has_score)
                self.facts[worker] = {"kind": PREDICTION, "family": version}
                self.crowd.answer(item, found, labels, Facts(submitted=_moment(found)))

    def _item(self, record: Record, data: Record) -> Item:
        options = self.crowd.options
        key = options.columns.get("text") or text_key(data, ("item", "doc"))
        text = str(data.required(data.text(key), key))
        cut = cut_fields(data, text, single=self.single, rule=options.tokens)
        group = data.name(*keys_of(options, "doc", "doc"), may_be_empty=True)
        attributes = data.others({*RESERVED, key, *options.columns.values()})
        once = "json_min" not in record.value
        return self.crowd.item(record, cut, group=group, attributes=attributes, once=once)

    def _annotation(
        self, item: Item, one: Record, others: Mapping[str, str]
    ) -> list[tuple[Record, Labels, Facts]]:
        """One annotation: an answer, or gold, or none of both."""
        is_gold = one.find("ground_truth") is True
        one = one.at(worker=GOLD if is_gold else _worker(one))
        if any(one.find(key) is True for key in ("was_cancelled", "skipped")):
            self.crowd.workers.setdefault(one.worker)
            message = "the annotation was cancelled: it is not an answer"
            self.crowd.leave_out(one, message, "cancelled")
            return []
        labels = self._labels(item, one, others)
        if labels is None:
            return []
        if is_gold:
            self.crowd.set_gold(item, one, labels)
            return []
        end, lead = one.moment("created_at", 1000), one.find("lead_time")
        if lead is None or end is None:
            return [(one, labels, Facts(submitted=end))]
        if type(lead) not in {int, float} or not 0 <= end - lead * 1000 < 2**63:
            raise one.error(f"lead_time must be seconds since 1970 at most, not {shown(lead)}")
        return [(one, labels, Facts(started=end - round(lead * 1000), submitted=end))]

    def _labels(self, item: Item, one: Record, others: Mapping[str, str]) -> Labels | None:
        """The labels of an annotation or a prediction; None if it says nothing of the item."""
        values = list(self._values(one, others))
        if self.single:
            return self._choice(item, one, values)
        if not values and one.find("result") and not self.has_regions:
            message = "the annotation holds no regions of labels: it is not an answer"
            self.crowd.workers.setdefault(one.worker)
            self.crowd.leave_out(one, message, _NO_LABEL)
            return None
        spans = []
        for value in values:
            names = value.strings(*_REGIONS)
            if not names:
                self.crowd.leave_out(one, "a region without a label", "region without a label")
            spans += [_region(item, value, name) for name in names or []]
        return Labels(self.crowd.place(item, one, spans))

    def _choice(self, item: Item, one: Record, values: list[Record]) -> Labels | None:
        found = [name for value in values for name in value.strings("choices") or []]
        return self.crowd.single(item, one, self.crowd.chosen(found) if found else None)

    def _values(self, one: Record, others: Mapping[str, str]) -> Iterator[Record]:
        """The values of the results that are read; the others are counted."""
        kinds = ("choices",) if self.single else _REGIONS
        control = self.crowd.options.columns.get("label")
        one.required(one.items("result"), "result")
        for result in one.inners("result"):
            kind = result.string("type") or "unknown"
            if kind not in kinds or control not in {None, result.name("from_name")}:
                self.crowd.leave_unread(_kind(kind), one)
            elif _is_elsewhere(result.value, others, self.crowd.options.offsets):
                self.crowd.leave_unread(f"regions of {str(result.find('to_name'))[:60]!r}", one)
            else:
                has_score = result.find("score") is not None
                self.crowd.leave_unread("scores of regions and choices", one, has_score)
                yield result.inner(result.required(result.find("value"), "value"), "value")


def _other_texts(task: Mapping[str, Any], options: ReadOptions) -> dict[str, str]:
    """Return the texts of a task, by their fields, but for the one that is read."""
    data = task.get("data")
    texts = {k: v for k, v in data.items() if isinstance(v, str)} if _is_object(data) else {}
    mine = options.columns.get("text") or ("text" if "text" in texts else None)
    return {} if mine is None else {k: v for k, v in texts.items() if k != mine}


def _is_elsewhere(result: Mapping[str, Any], texts: Mapping[str, str], offsets: str) -> bool:
    """Return whether a region is of one of the other texts."""
    value, name = result.get("value"), result.get("to_name")
    if result.get("type") not in _REGIONS or not isinstance(name, str) or not _is_object(value):
        return False
    if name not in texts:
        return False
    covers, start, end = (value.get(key) for key in ("text", "start", "end"))
    if not isinstance(covers, str) or type(start) is not int or type(end) is not int:
        return True
    span = CharSpan("", max(start, 0), max(end, 0), covers)
    return not reads_otherwise(texts[name], span, offsets)


def _kind(result: str) -> str:
    return f"results of kind {result[:60]!r}"


def _is_task(one: Mapping[str, Any]) -> bool:
    lists = [one.get(key) for key in ("annotations", "completions", "predictions")]
    return isinstance(one.get("data"), dict) and any(isinstance(found, list) for found in lists)


def _kind_read(records: list[Record], options: ReadOptions) -> str:
    """Return what is read: "regions" of labels if there are any, else "choices", "" if none."""
    # Predictions tell where no annotation does
    wanted = options.columns.get("label")
    found = _controls(records, options, "annotations", "completions")
    if any(kind == "paragraphlabels" for kind, *_ in found):
        message = "a project of Paragraphs (dialogues), whose offsets count the characters of one "
        message += "turn: write a table with a row per span, every turn an item of its own (item, "
        message += "text, start, end, label, worker), and read that (--format span-table)"
        raise records[0].error(message, "paragraphs")
    if not any(kind in (*_REGIONS, "choices") for kind, *_ in found):
        found = _controls(records, options, "predictions")
    found = {one for one in found if wanted in {None, one[1]}}
    regions = {one for one in found if one[0] in _REGIONS}
    here = {name for _, name, other in regions if other is None}
    others = sorted({other for *_, other in regions if other is not None})
    if others and not here:
        message = f"the regions are of the text {others[0]!r}: pass columns={{'text': "
        message += f"{others[0]!r}}} (--columns text={others[0]})"
        raise records[0].error(message, "text")
    names = here or {name for kind, name, _ in found if kind == "choices"}
    if names:
        what = "labels" if here else "choices"
        only_one(records[0], sorted(names), f"{what} of several controls", None)
    return "regions" if here else "choices" if names else ""


def _controls(
    records: list[Record], options: ReadOptions, *keys: str
) -> set[tuple[str, str, str | None]]:
    """Return kind and control of all results, and their text if it is not the one that is read."""
    found = set()
    for record in records:
        others = _other_texts(record.value, options)
        for one in _objects(record.find(*keys)):
            for result in _objects(one.get("result")):
                is_other = _is_elsewhere(result, others, options.offsets)
                other = str(result["to_name"]) if is_other else None
                found.add((str(result.get("type")), str(result.get("from_name")), other))
    return found


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _moment(one: Record) -> int | None:
    """Return when a prediction was made, None where it is not known, or said in words."""
    try:
        return one.moment("created_at", 1000)
    except FormatError:
        return None


def _objects(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _region(item: Item, value: Record, name: str) -> CharSpan:
    start, end = value.find("start"), value.find("end")
    if isinstance(start, str):
        if "<" in (item.cut.text or ""):
            message = "a region of HTML: its offsets count the rendered page; annotate plain text"
            raise value.error(message, "hypertext")
        found = value.inner(value.required(value.find("globalOffsets"), "globalOffsets"), "offsets")
        start, end = found.find("start"), found.find("end")
    return char_span(value, name, start, end, value.find("text"))


def _worker(one: Record) -> str:
    by = one.find("completed_by")
    if not isinstance(by, dict):
        return str(one.required(one.name("completed_by", "created_username"), "completed_by"))
    found = one.inner(by, "completed_by").name("email", "username", "id")
    if found is None:
        raise one.error("no field 'completed_by' with a user: email, username and id are missing")
    return found
