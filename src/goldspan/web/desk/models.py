"""The views of the requester's desk, and the bodies of its requests.

A view is what a method of `goldspan.web.desk.Desk` returns. The API sends it, the page shows it and
`goldspan desk … --json` writes it as it is: a new field is added here and where it is computed.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from goldspan.campaign.section import newer
from goldspan.web.models import Kind, LabelsBody, Layers, Name, Note, Request, SpanBody

Scope = Literal["progress", "results", "review", "people", "links", "money", "steer"]
"""The keys of `goldspan.web.security.access.SCOPES`."""
Labels = list[SpanBody] | str | Layers | None
"""Spans, one label, the labels of several layers, or nothing yet."""


class View(BaseModel):
    """What the desk shows of something; unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return self.model_dump(mode="json")


class VerdictBody(Request):
    """A decision about a worker: keep, drop, or ask more gold questions."""

    verdict: Literal["keep", "drop", "test"]
    why: Note = ""


class GoldBody(LabelsBody):
    """What an item's labels are, by the requester's word."""


class DrawBody(Request):
    """How many items are drawn for the audit."""

    n: Annotated[int, Field(ge=10, le=100_000)] = 100


class LinksBody(Request):
    """Workers who are to have a link, and for how many days."""

    workers: Annotated[list[Name], Field(min_length=1, max_length=1_000)]
    days: Annotated[float, Field(gt=0, le=366, strict=False)] = 30


class TokenBody(Request):
    """A token for a program: what it is for, what it may do, and for how many days."""

    name: Name
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=20)]
    days: Annotated[float, Field(gt=0, le=366, strict=False)] = 90


class ReviewerBody(Request):
    """A reviewer who is to have a link, and for how many days."""

    name: Name
    days: Annotated[float, Field(gt=0, le=366, strict=False)] = 30


class Awaited(View):
    """What a round waits for."""

    answers: int
    items: int


class Computing(View):
    """What is computed, and how long it takes; "" for nothing."""

    words: str


class ItemCounts(View):
    """Items to label, items that were picked, and items with answers, without gold questions."""

    pool: int
    picked: int
    answered: int


class AnswerCounts(View):
    """Answers that count, gold questions among them, drafts, and who gave them."""

    counting: int
    control: int
    drafts: int
    workers: int


class Money(View):
    """Money as decimal text: the cap is what was spent, what is reserved and what is left.

    `labels` was spent on answers that make labels, `control` on answers to gold questions.
    """

    currency: str
    cap: str
    reserved: str
    spent: str
    left: str
    labels: str
    control: str


class Hours(View):
    """Hours since the beginning, and until the plan's end."""

    used: float
    left: float | None


class Round(View):
    """A round that is complete; scores are objects with `value`, `low` and `high`."""

    round: int
    items: int
    answers: int
    spent: str | None
    hours: float
    score: dict[str, Any] | None
    control: dict[str, Any] | None
    model: str | None
    stable: float | None


class Point(View):
    """The score that a round measured, with its interval."""

    items: int
    value: float
    low: float
    high: float


class Learning(View):
    """The model's learning curve: measured points, curve with its interval, target, forecast."""

    points: list[Point]
    curve: dict[str, list[float]] | None
    target: float | None
    forecast: dict[str, dict[str, Any] | None] | None


class AuditNow(View):
    """How many items are drawn, how many of them are open, and the certificate."""

    drawn: int
    open: int
    certificate: dict[str, Any] | None


class PlanNow(View):
    """The limits in force.

    Attributes:
        budget: Money and hours.
        stop: The stopping rules.
        guideline: Version of the label set and guideline, 0 before the campaign begins.
        changes: What changed in the plan since the campaign began, a line each.
        pending: What the plan file says otherwise: it is in force after the next start.
    """

    budget: dict[str, Any]
    stop: dict[str, Any]
    guideline: int
    changes: list[str]
    pending: list[str]


class Overview(View):
    """How far a campaign is; `warnings` say that the last labels ran away from the answers.

    `certificate` says how right they are: see `goldspan.campaign.auditing.certificate`;
    `confidence` is their mean confidence, None without labels.
    """

    campaign: str
    title: str
    kind: Kind
    version: int
    state: Literal["starting", "working", "waiting", "paused", "ending", "ended", "failed"]
    why: str
    error: str
    advice: str
    waiting: Awaited | None
    items: ItemCounts
    answers: AnswerCounts
    money: Money | None
    hours: Hours
    rounds: list[Round]
    certificate: dict[str, Any] | None
    confidence: float | None
    learning: Learning
    flags: int
    warnings: list[str]
    plan: PlanNow


class Control(View):
    """Gold questions that a worker answered; units that were right, of all.

    Attributes:
        unit: What is counted: "marked words", those that the worker or the known labels mark,
            "texts", or of several layers "labels" and spans.
    """

    answered: int
    right: float
    total: float
    unit: str


class Verdict(View):
    """What the rules make of a worker, what may be said, and what it rests on.

    Attributes:
        verdict: The rules' verdict: keep, drop or test more.
        by: "gold": known labels alone; "others": the other annotators; "": nothing yet.
        measure: What `mean` is: how often the worker is "right", or "agrees" with each other one.
        mean: Its posterior mean; `low` and `high` are its 95 % interval.
        judged: Answers that it rests on.
        known: Of them, those with known labels.
        why: All of it in words.
    """

    verdict: str
    by: Literal["gold", "others", ""]
    measure: Literal["right", "agrees"]
    mean: float
    low: float
    high: float
    judged: float
    known: float
    why: str


class Worker(View):
    """What is known of a worker.

    Attributes:
        earned: Money, as decimal text; None where nobody is paid.
        decided: The requester's last word, "" for none.
        standing: What stands now, in a word: the requester's decision, else the rules'.
    """

    worker: str
    answers: int
    drafts: int
    earned: str | None
    control: Control
    verdict: Verdict | None
    barred: bool
    why: str
    decided: str
    standing: str
    seconds: float | None


class Agreement(View):
    """How well the workers agree; no measures where there is too little, or there are `layers`."""

    n_answers: int
    measures: dict[str, Any] | None
    layers: dict[str, dict[str, Any] | None] | None = newer(default=None)


class LabelChoice(View):
    """A label that an item may have, and its probability."""

    label: str
    confidence: float


class FoundSpan(View):
    """A span in tokens, as in an answer, and its probability."""

    start: int
    end: int
    type: str
    confidence: float
    from_char: int | None = None
    to_char: int | None = None


class FoundLabel(View):
    """The consensus on an item with one label; the most probable labels first."""

    confidence: float
    tokens: list[float]
    label: str
    alternatives: list[LabelChoice]


class FoundSpans(View):
    """The consensus on an item with spans, and the most probable other spans.

    `confidence` is of all spans of the item together, `tokens` of each token.
    """

    confidence: float
    tokens: list[float]
    spans: list[FoundSpan]
    alternatives: list[FoundSpan]


class FoundSet(View):
    """The consensus on an item with any number of labels; the most probable labels first."""

    confidence: float
    labels: list[str]
    alternatives: list[LabelChoice]


FoundOne = FoundLabel | FoundSet | FoundSpans


class FoundLayers(View):
    """The consensus by layer, without those that nobody answered; `confidence` is of all."""

    confidence: float
    layers: dict[str, FoundOne]


Found = FoundOne | FoundLayers


class Shown(View):
    """An item as a page shows it: `starts` are the first characters of the tokens in the text."""

    item: str
    tokens: list[str]
    text: str
    starts: list[int] | None


class UncertainItem(Shown):
    """An item with uncertain labels."""

    found: Found
    answers: int


class ItemRow(View):
    """An item in short; `unsure` is the least certain of several layers, None for one question."""

    item: str
    text: str
    batch: str
    wanted: int
    answers: int
    leased: int
    state: Literal["open", "done"]
    confidence: float | None
    unsure: str | None = newer(default=None)
    control: bool
    flags: int
    gold: bool


class ItemPage(View):
    """A page of items; `more` if there is another, `total` of all that were asked about."""

    items: list[ItemRow]
    more: bool
    total: int


class Answered(View):
    """An answer to an item; `submitted` in milliseconds since 1970, None for who may not see it."""

    worker: str
    status: str
    counts: bool
    paid: str | None
    submitted: int | None
    seconds: float | None
    labels: Labels


class Skip(View):
    """Who passed an item, and why."""

    worker: str
    reason: str


class Flag(Skip):
    """Who said that something is wrong with an item."""

    note: str


class Item(Shown):
    """All that is known of an item; `gold` was decided here, `known` is from the plan's file.

    Of the answers, skips and reports there are 50 each on a page; the numbers are of all.
    """

    kind: Kind
    control: bool
    gold: Labels
    known: Labels
    answers: list[Answered]
    found: Found | None
    skipped: list[Skip]
    flags: list[Flag]
    n_answers: int
    n_skipped: int
    n_flags: int
    page: int
    pages: int


class Gold(View):
    """An item's labels after a decision."""

    item: str
    gold: Labels


class Decided(View):
    """A decision about a worker; `questions` more gold questions are asked."""

    worker: str
    verdict: str
    why: str
    questions: int


class Paused(View):
    """Whether the campaign assigns no new tasks."""

    paused: bool


class Ended(View):
    """Whether the campaign was ended."""

    ended: bool


class Row(View):
    """What was made and can be revoked; times in milliseconds since 1970."""

    holds: bool
    id: str
    issued: int
    expires: int
    revoked: bool


class LinkRow(Row):
    """A worker's link, "" for who may not see names. Its address is shown when it is made."""

    worker: str


class NewLink(LinkRow):
    """A link that was made, with its address: nothing shows it again."""

    url: str


class ReviewerRow(Row):
    """A reviewer's link. Its address is shown when it is made.

    Attributes:
        used: When it was last used, up to an hour late; None if never.
    """

    name: str
    used: int | None


class NewReviewer(ReviewerRow):
    """A reviewer's link that was made, with its address: nothing shows it again."""

    url: str


class TokenRow(ReviewerRow):
    """A token of a program. Its text is shown when it is made."""

    scopes: list[str]


class NewToken(TokenRow):
    """A token that was made, with its text: nothing shows it again."""

    token: str


class Hook(View):
    """A program that is told what happens; the rest of its address may be secret."""

    name: str
    host: str
    events: list[str]
    waiting: int
    sent: int
    failed: int


class Delivery(View):
    """A message to a program; times in milliseconds since 1970.

    Attributes:
        number: By which it can be sent again.
        id: `webhook-id`, the same whenever it is sent.
        due: When it is sent next, while it waits.
        status: What the program answered last; 0: nothing.
        why: Why it was not taken; "" if it was.
    """

    number: int
    id: str
    hook: str
    event: str
    state: Literal["waiting", "sent", "failed"]
    tries: int
    made: int
    changed: int
    due: int | None
    status: int
    why: str


class Deliveries(View):
    """The programs that are told what happens, and the last messages, the newest first."""

    hooks: list[Hook]
    messages: list[Delivery]


class Again(View):
    """Whether a message is sent again."""

    number: int
    again: bool


class Export(View):
    """A file that can be downloaded, of one of several layers or of all."""

    name: str
    what: str
    layer: str | None = newer(default=None)


class Revoked(View):
    """A link or a token that was taken back."""

    id: str
    revoked: bool
