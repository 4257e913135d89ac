"""What workers' requests and answers look like: strict types, nothing unknown.

Answers are models too: what a body holds beyond its model is not sent, so that nothing of the
inside – which task is a gold question – can leak by mistake.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from goldspan.spans import Span
from goldspan.spans.encoding import PartSpan

MOST_SPANS = 5_000
Kind = Literal["spans", "single", "layers"]
"""What a task asks for: spans, one label, or several layers."""
Given = Sequence[Span | PartSpan] | str | Mapping[str, Any]
"""An answer: spans, a label, or by layer."""
LONGEST_NOTE = 1_000
"""Characters of what a worker writes about an item."""


def _plain(text: str) -> str:
    """Reject text that not every database can hold."""
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError("must not hold NUL or half of a surrogate pair")
    return text


def json_object(body: bytes) -> dict[str, Any] | None:
    """Return the object of a JSON text, None if it is something else or nested too deeply.

    >>> json_object(b'{"keys": []}'), json_object(b"[]"), json_object(b"<html>")
    ({'keys': []}, None, None)
    """
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


TaskId = Annotated[str, Field(min_length=1, max_length=2_000), AfterValidator(_plain)]
Key = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{8,64}$", description="New for every answer.")]
Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_plain)]
Note = Annotated[str, Field(max_length=LONGEST_NOTE), AfterValidator(_plain)]
Index = Annotated[int, Field(ge=0, le=1_000_000)]


class Request(BaseModel):
    """A body that is sent to the server."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class SpanBody(Request):
    """A span in tokens, of one of the plan's types; `end` is one past the last token.

    A span that begins or ends within a token says `from_char`, the first of its characters in its
    first token, or `to_char`, one past the last in its last token.
    """

    start: Index
    end: Index
    type: Name
    from_char: Index | None = None
    to_char: Index | None = None


class NextBody(Request):
    """The wish for a task, or for the answers of this session: an empty object."""


Spans = Annotated[list[SpanBody], Field(max_length=MOST_SPANS)]
Layers = dict[Name, Spans | Annotated[list[Name], Field(max_length=1_000)] | Name | None]
"""What was answered by layer: spans, any number of labels, a label, or nothing."""


class LabelsBody(Request):
    """Labels of an item: spans, none of which is an answer too, one label, or several layers."""

    spans: Spans | None = None
    label: Name | None = None
    layers: Layers | None = None

    @model_validator(mode="after")
    def _one_of_all(self) -> Self:
        if sum(one is not None for one in (self.spans, self.label, self.layers)) != 1:
            raise ValueError("give either spans or a label, or layers")
        return self

    @property
    def answer(self) -> Given:
        """The labels, as the campaign takes them."""
        if self.layers is not None:
            kept: dict[str, Any] = self.model_dump(exclude_none=True)["layers"]
            return kept
        if self.label is not None:
            return self.label
        return [
            PartSpan(one.type, one.start, one.end, one.from_char or 0, one.to_char)
            for one in self.spans or []
        ]


class AnswerBody(LabelsBody):
    """An answer to a task."""

    task: TaskId
    key: Key


class SkipBody(Request):
    """A task that the worker leaves to others, and why."""

    task: TaskId
    key: Key
    reason: Name


class FlagBody(SkipBody):
    """An item with which something is wrong."""

    note: Note = ""


class TaskBody(Request):
    """A task that is to be seen again, or that is given back."""

    task: TaskId


class Me(BaseModel):
    """What a worker has done: answers that were taken, drafts that do not count, and earnings.

    Attributes:
        total: Answers with what the worker may still get; None where nobody can know.
        earned: Money, as decimal text; None where nobody is paid.
    """

    done: int
    total: int | None = None
    earned: str | None
    currency: str
    drafts: int


class Suggested(BaseModel):
    """Labels that somebody else gave, shown before the answer: spans, even none, or one label."""

    spans: list[SpanBody] | None = None
    label: str | None = None
    layers: Layers | None = None


class Task(BaseModel):
    """What is to be labelled.

    Attributes:
        id: Says nothing, and is sent back with the answer.
        text: As it was written; None: the tokens joined by spaces.
        starts: First character of every token in the text.
        expires: Until when it is held, in milliseconds since 1970.
        training: Whether the page tells the right answer afterwards.
        suggestion: What is shown before the answer; the answer is sent whole all the same.
    """

    id: str
    tokens: list[str]
    text: str | None = None
    starts: list[int] | None = None
    kind: Kind
    expires: int
    training: bool = False
    suggestion: Suggested | None = None


class Completion(BaseModel):
    """Where a worker of a provider goes at the end."""

    url: str | None = None
    code: str | None = None


class NextAnswer(BaseModel):
    """A task, or why there is none."""

    state: Literal["task", "wait", "paused", "done"]
    me: Me
    task: Task | None = None
    seconds: float | None = None
    message: str = ""
    completion: Completion | None = None


class Feedback(Suggested):
    """In training: whether the answer was right, and the right one."""

    right: bool


class AnswerAnswer(BaseModel):
    """What became of an answer."""

    status: Literal["accepted", "late", "draft", "duplicate"]
    message: str = ""
    paid: str | None = "0"
    feedback: Feedback | None = None


class OwnAnswer(BaseModel):
    """An answer of this session, and whether it can still be changed."""

    task: str
    open: bool


class GivenAnswer(BaseModel):
    """The answers of this session that count, the last one first."""

    answers: list[OwnAnswer]


class RecallAnswer(Suggested):
    """A task that was answered, with the answer, and why it cannot be changed, "" if it can."""

    task: Task
    open: bool
    why: str = ""


class ChangeAnswer(BaseModel):
    """What became of a change."""

    status: Literal["changed"]
    message: str = ""


class Done(BaseModel):
    """What became of a task that was skipped, flagged or given back."""

    status: Literal["skipped", "flagged", "released"]


class ErrorFacts(BaseModel):
    """What was refused: a code for programs, a message for people."""

    code: str
    message: str


class ErrorBody(BaseModel):
    """Every refusal of the API."""

    error: ErrorFacts


_WHY = {
    400: "The request cannot be read, or was sent to another name of this machine.",
    401: "The session has ended, or there is none.",
    403: "Not from a page of this session, or not allowed.",
    404: "There is no such thing.",
    405: "Another method is meant.",
    408: "The request took too long to come.",
    409: "Something else was sent under this key before.",
    410: "The campaign is over.",
    413: "The body is too large.",
    422: "The body is not as described, or does not fit the task.",
    429: "Too often: Retry-After says when again.",
    503: "Not at the moment: the store is away, or too much is asked. Retry-After says when again.",
}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe the refusals of a route for OpenAPI: those that every route has, and these."""
    every = {400, 401, 403, 408, 413, 422, 429, 503}
    return {
        one: {"model": ErrorBody, "description": _WHY[one]} for one in sorted({*every, *statuses})
    }
