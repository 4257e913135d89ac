"""Result files of Mechanical Turk."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from goldspan.crowd.formats.char_spans import CharSpan, char_span, cut_text, whole_text
from goldspan.crowd.formats.json_records import Record, collect, shown
from goldspan.crowd.formats.span_crowd import Facts, Item, Labels, SpanCrowd
from goldspan.crowd.grid import csv_rows, header_names
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source, counted
from goldspan.errors import Fault, FormatError, InputError
from goldspan.money import to_micro

# --------------------------------------------------------------------------------------------------
# What an assignment of Mechanical Turk answers: its Answer columns as one answer per question.


PREFIX, ALL = "Answer.", "taskAnswers"
_FLAGS = {"true": True, "false": False}


def answers_in(row: Mapping[str, str]) -> dict[str, Any]:
    """Return the answers of a row by question; empty ones are left out.

    >>> answers_in({"Answer.mood": "glad", "HITId": "1"})
    {'mood': 'glad'}
    >>> answers_in({"Answer.mood.glad": "true", "Answer.mood.sad": "false"})
    {'mood': {'glad': True, 'sad': False}}
    >>> answers_in({"Answer.taskAnswers": '[{"mood": {"label": "glad"}}]'})
    {'mood': {'label': 'glad'}}
    """
    found: dict[str, Any] = {}
    for name, cell in row.items():
        key = name.removeprefix(PREFIX)
        if key == name or not cell.strip():
            continue
        value = _value(cell)
        question, point, choice = key.rpartition(".")
        if key == ALL:
            found |= dict(_members(value))
        elif point and isinstance(value, bool):
            found.setdefault(question, {})[choice] = value
        elif point and choice == "entities" and isinstance(value, list):
            found[question] = {"entities": value}
        elif point and choice == "label" and isinstance(value, str):
            found[question] = {"label": value}
        else:
            found[key] = value
    return found


def is_spans(answer: Any) -> bool:
    """Whether an answer is that of the page element `crowd-entity-annotation`."""
    return isinstance(answer, dict) and isinstance(answer.get("entities"), list)


def spans_of(record: Record, answer: Any) -> list[CharSpan]:
    """Return the spans of an answer, in characters."""
    if not is_spans(answer):
        raise record.error(f"expected entities, found {shown(answer)}", "mixed")
    found = [record.inner(one, "each entity") for one in answer["entities"]]
    return [
        char_span(record, one.find("label"), one.find("startOffset"), one.find("endOffset"))
        for one in found
    ]


def choices_of(answer: Any) -> list[str]:
    """Return the labels that an answer chooses: one, several, or none.

    >>> choices_of({"glad": True, "sad": False}), choices_of({"labels": ["a", "b"]})
    (['glad'], ['a', 'b'])
    """
    if isinstance(answer, dict):
        if isinstance(answer.get("label"), str):
            return [answer["label"]]
        if isinstance(answer.get("labels"), list):
            return [str(one) for one in answer["labels"]]
        # A radio button may stand in an object of its own: {"on": true}.
        return [name for name, chosen in answer.items() if chosen is True]
    if isinstance(answer, list):
        return [str(one) for one in answer]
    if isinstance(answer, bool):
        return ["true" if answer else "false"]
    return [str(answer)]


def _value(cell: str) -> Any:
    """Read a cell: JSON where it is an object or a list, a flag, or else text."""
    word = cell.strip()
    if word[0] in "[{":
        try:
            return json.loads(word)
        except (ValueError, RecursionError):
            return word
    return _FLAGS.get(word.lower(), word)


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, dict):
            yield from one.items()


# --------------------------------------------------------------------------------------------------
# Mechanical Turk: the results of a batch, the CSV file that requesters could download.


NEEDED = ("HITId", "AssignmentId", "WorkerId")
_LEFT_OUT = {"Approve", "Reject"}
"""Columns at the end, for the requester to fill in: rows may be without them."""
_INPUT = "Input."
_WRITTEN = "%a %b %d %H:%M:%S %Y"
_ZONES = {"UTC": 0, "GMT": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6,
          "PST": -8, "PDT": -7}  # fmt: skip


def sniff(source: Source) -> bool:
    """Return whether the columns are those of a batch."""
    if source.is_folder or source.is_parquet or "AssignmentId" not in source.text.value[:20_000]:
        return False
    return set(NEEDED) <= set(header_names(source))


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read the results of a batch."""
    crowd = SpanCrowd(source, "mturk", options)
    rows = [(row, answers_in(row.value)) for row in _rows(source)]
    if not rows:
        raise FormatError([Fault("the file holds no assignment", source.name, kind="empty")])
    first = rows[0][0]
    text, question = _text_column(first, options), _question(first, rows, options)
    single = not any(is_spans(answers.get(question)) for _, answers in rows)
    n_rejected = 0
    for row, answers in counted(rows, options.progress):
        with collect(crowd.faults):
            item, record = _item(crowd, row, text, single=single)
            status = str(row.value.get("AssignmentStatus", "")).strip().lower()
            if status == "rejected" or str(row.value.get("Reject", "")).strip():
                n_rejected += 1
                crowd.workers.setdefault(record.worker)
                crowd.leave_out(
                    record, "the assignment was rejected: it is not an answer", "rejected"
                )
            elif question not in answers:
                crowd.workers.setdefault(record.worker)
                crowd.leave_out(record, f"no answer under {question!r}", "no answer")
            else:
                _answer(crowd, item, record, answers[question], single=single)
    if n_rejected:
        crowd.builder.notes.append(f"{n_rejected} rejected assignments are not answers")
    return crowd.build()


def _rows(source: Source) -> Iterator[Record]:
    faults: list[Fault] = []
    header: list[str] = []
    with collect(faults):
        for line, _, cells in csv_rows(source.text.value, source.name):
            if not header:
                header = [cell.strip() for cell in cells]
                absent = [name for name in NEEDED if name not in header]
                if absent:
                    message = f"no column {', '.join(absent)}: is this the results file of a batch?"
                    raise FormatError([Fault(message, source.name, 1, kind="column")])
            elif any(cells):
                if len(cells) > len(header) or not set(header[len(cells) :]) <= _LEFT_OUT:
                    message = f"{len(cells)} cells where the header has {len(header)}"
                    faults.append(Fault(message, source.name, line, kind="width"))
                yield Record(dict(zip(header, cells, strict=False)), source.name, line)
    if faults:
        raise FormatError(faults)


def _item(crowd: SpanCrowd, row: Record, text: str, *, single: bool) -> tuple[Item, Record]:
    key = _role(crowd.options, "item", _INPUT, "HITId")
    worker = _role(crowd.options, "worker", "", "WorkerId")
    record = row.at(item=_cell(row, key), worker=_cell(row, worker))
    words = str(record.required(record.text(text), text))
    cut = whole_text(words) if single else cut_text(record, words, rule=crowd.options.tokens)
    taken = {text, key}
    others = {
        name.removeprefix(_INPUT): value
        for name, value in row.value.items()
        if name.startswith(_INPUT) and name not in taken
    }
    return crowd.item(record, cut, attributes=others), record


def _answer(crowd: SpanCrowd, item: Item, record: Record, answer: Any, *, single: bool) -> None:
    facts = Facts(
        started=_moment(record, "AcceptTime"),
        submitted=_moment(record, "SubmitTime"),
        cost=_reward(record),
    )
    if not single:
        spans = crowd.place(item, record, spans_of(record, answer))
        crowd.answer(item, record, Labels(spans), facts)
        return
    chosen = choices_of(answer)
    if len(chosen) == 1:
        crowd.answer(item, record, crowd.single(item, record, chosen[0]), facts)
        return
    crowd.workers.setdefault(record.worker)
    message = f"{len(chosen)} choices, but a single label is needed: left out"
    crowd.leave_out(record, message, "several choices" if chosen else "no answer")


def _text_column(first: Record, options: ReadOptions) -> str:
    inputs = [name for name in first.value if name.startswith(_INPUT)]
    named = _role(options, "text", _INPUT, "")
    if named:
        return str(first.required(named if named in first.value else None, named))
    inputs = [name for name in inputs if name != options.columns.get("item")] or inputs
    if f"{_INPUT}text" in inputs or len(inputs) == 1:
        return f"{_INPUT}text" if f"{_INPUT}text" in inputs else inputs[0]
    if not inputs:
        raise first.error("no column Input.…: where is the text? Pass columns={'text': …}", "text")
    message = f"which column is the text: {', '.join(inputs[:12])}? Pass "
    raise first.error(f"{message}columns={{'text': {inputs[0]!r}}}", "text")


def _question(
    first: Record, rows: list[tuple[Record, dict[str, Any]]], options: ReadOptions
) -> str:
    """Find the question whose answer is the label; spans go before other answers."""
    there = dict.fromkeys(name for _, answers in rows for name in answers)
    named = options.columns.get("label")
    if named is not None:
        found = named.removeprefix(PREFIX)
        if found in there:
            return found
        raise first.error(f"no answer {found!r} (there are: {', '.join(there)})", "label")
    spans = [name for name in there if any(is_spans(answers.get(name)) for _, answers in rows)]
    names = spans or list(there)
    if len(names) == 1:
        return names[0]
    if not names:
        raise first.error("no column Answer.… has an answer: where is the label?", "label")
    message = f"which answer is the label: {', '.join(names[:12])}? Pass "
    raise first.error(f"{message}columns={{'label': {PREFIX + names[0]!r}}}", "label")


def _role(options: ReadOptions, role: str, prefix: str, otherwise: str) -> str:
    """Return the column of a role; the prefix may be left out."""
    named = options.columns.get(role)
    if named is None:
        return otherwise
    is_whole = not prefix or named.startswith(prefix) or named in NEEDED
    return named if is_whole else prefix + named


def _cell(row: Record, name: str) -> str:
    return str(row.required(row.value.get(name, "").strip() or None, name))


def _reward(record: Record) -> int | None:
    word = str(record.value.get("Reward", "")).strip().lstrip("$")
    try:
        return to_micro(word, "Reward") if word else None
    except InputError as error:
        raise record.error(str(error), "cost") from None


def _moment(record: Record, key: str) -> int | None:
    """Return a time in milliseconds since 1970: "Mon Jan 07 15:54:06 PST 2019", or ISO 8601."""
    word = str(record.value.get(key, "")).strip()
    parts = word.split()
    if not word:
        return None
    if len(parts) != 6:
        return Record({key: word}, record.file, record.line, record.item).moment(key)
    zone, rest = parts[4], " ".join([*parts[:4], parts[5]])
    try:
        hours = timezone(timedelta(hours=_ZONES[zone]))
        read = datetime.strptime(rest, _WRITTEN).replace(tzinfo=hours)
    except (KeyError, ValueError):
        message = f"{key} must be a time such as Mon Jan 07 15:54:06 PST 2019, not {word[:60]!r}"
        raise record.error(message, "time") from None
    return round((read - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1))
