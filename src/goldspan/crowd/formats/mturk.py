"""Mechanical Turk: the results of a batch, the CSV file that requesters could download."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from goldspan.crowd.formats.assignments import (
    Assignment,
    cell,
    moment,
    questions,
    read_assignments,
    reward,
    table_rows,
    value_of,
)
from goldspan.crowd.formats.json_records import Record, collect
from goldspan.crowd.formats.span_crowd import Facts, SpanCrowd
from goldspan.crowd.grid import header_names
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source

PREFIX, ALL = "Answer.", "taskAnswers"
NEEDED = ("HITId", "AssignmentId", "WorkerId")
_LEFT_OUT = ("Approve", "Reject")
"""Columns at the end, for the requester to fill in: rows may be without them."""
_INPUT = "Input."


def sniff(source: Source) -> bool:
    """Return whether the columns are those of a batch."""
    return not (source.is_folder or source.is_parquet) and is_header(header_names(source))


def is_header(names: Sequence[str]) -> bool:
    """Return whether these are the columns of a batch."""
    return {*NEEDED} <= {*names}


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read the results of a batch."""
    return read_assignments(*_assignments(source, options), PREFIX, in_cells=True)


def layers(source: Source, options: ReadOptions) -> list[str]:
    """Return the questions."""
    return questions(_assignments(source, options)[1])


def _assignments(source: Source, options: ReadOptions) -> tuple[SpanCrowd, list[Assignment]]:
    crowd = SpanCrowd(source, "mturk", options)
    rows = table_rows(source, options, NEEDED, _LEFT_OUT)
    text = _text_column(rows[0], options) if rows else ""
    found = []
    for row in rows:
        with collect(crowd.faults):
            found.append(_assignment(row, text, options))
    return crowd, found


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
    for name, word in row.items():
        key = name.removeprefix(PREFIX)
        if key == name or not word.strip():
            continue
        value = value_of(word)
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


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, dict):
            yield from one.items()


def _assignment(row: Record, text: str, options: ReadOptions) -> Assignment:
    key = _role(options, "item", _INPUT, "HITId")
    worker = _role(options, "worker", "", "WorkerId")
    record = row.at(item=cell(row, key), worker=cell(row, worker))
    words = str(record.required(record.text(text), text))
    others = {
        name.removeprefix(_INPUT): value
        for name, value in row.value.items()
        if name.startswith(_INPUT) and name not in {text, key}
    }
    status = str(row.value.get("AssignmentStatus", "")).strip().lower()
    is_rejected = status == "rejected" or bool(str(row.value.get("Reject", "")).strip())
    facts = Facts(
        started=moment(record, "AcceptTime"),
        submitted=moment(record, "SubmitTime"),
        cost=reward(record, "Reward"),
    )
    rejected = "rejected" if is_rejected else ""
    answers = answers_in(row.value)
    return Assignment(record, words, answers, {}, facts, others, rejected)


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


def _role(options: ReadOptions, role: str, prefix: str, otherwise: str) -> str:
    """Return the column of a role; the prefix may be left out."""
    named = options.columns.get(role)
    if named is None:
        return otherwise
    is_whole = not prefix or named.startswith(prefix) or named in NEEDED
    return named if is_whole else prefix + named
