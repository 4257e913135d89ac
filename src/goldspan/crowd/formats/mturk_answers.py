"""What an assignment of Mechanical Turk answers: its Answer columns as one answer per question.

A question is a column `Answer.NAME`, or a name within the JSON of `Answer.taskAnswers`, in which
the pages of later years keep everything. Radio buttons and boxes make a column per choice,
`Answer.NAME.CHOICE`, with `true` and `false`: these are one question again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from goldspan.crowd.formats.char_spans import CharSpan, char_span
from goldspan.crowd.formats.json_records import Record, shown

PREFIX, ALL = "Answer.", "taskAnswers"
_FLAGS = {"true": True, "false": False}


def answers_in(row: Mapping[str, str]) -> dict[str, Any]:
    """Give the answers of a row by question; empty ones are left out.

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
    """Give the spans of an answer, in characters.

    Raises:
        FormatError: An entity has no label or offsets.
    """
    if not is_spans(answer):
        raise record.error(f"expected entities, found {shown(answer)}", "mixed")
    found = [record.inner(one, "each entity") for one in answer["entities"]]
    return [
        char_span(record, one.find("label"), one.find("startOffset"), one.find("endOffset"))
        for one in found
    ]


def choices_of(answer: Any) -> list[str]:
    """Give the labels that an answer chooses: one, several, or none.

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
