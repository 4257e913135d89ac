"""The desk's API, and its live stream."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Collection
from functools import partial
from hashlib import blake2b
from typing import Annotated, Any, Literal
from urllib.parse import quote

import anyio
from fastapi import APIRouter, Header, Path, Query, Response, Security
from fastapi.responses import StreamingResponse

from goldspan.campaign.clock import WallTimes
from goldspan.errors import GoldspanError
from goldspan.store import SqlLedger
from goldspan.store.programs import FAILED, SENT, WAITING
from goldspan.web import models as w
from goldspan.web.dependencies import (
    BROWSER,
    ContextHere,
    DeskRoute,
    RequesterHere,
    ServerContext,
    caller_here,
)
from goldspan.web.desk import models as m
from goldspan.web.errors import Refused
from goldspan.web.models import refusals
from goldspan.web.pages import FLAG_REASONS
from goldspan.web.security.access import MONEY, PEOPLE, RESULTS, REVIEW, Caller
from goldspan.web.security.sessions import Session
from goldspan.web.webhooks import Webhooks

# --------------------------------------------------------------------------------------------------
# What changes, as it changes: a stream of events that an open desk listens to.


router = APIRouter(prefix="/api/desk", tags=["desk"], route_class=DeskRoute)
views, files = (
    APIRouter(
        prefix="/api/desk", tags=["desk"],
        route_class=type("DeskRoute", (DeskRoute,), {"threads": threads}),
    )
    for threads in ("view", "file")
)  # fmt: skip
PACE = 1.0
"""Seconds between two events at least."""
HEARTBEAT = 15.0
"""Seconds after which one is sent though nothing is new: time passes, and proxies do not wait."""
TROUBLE = "trouble"
NO_STORE = (
    "The server cannot read the campaign's store; nothing can be answered or decided until it can. "
    "The log of goldspan serve says why."
)
"""No more than that: while the store is gone, nobody knows whether the session still holds."""
STREAM = {"description": "Events.", "content": {"text/event-stream": {"schema": {}}}}


@router.get("/live", response_class=StreamingResponse, responses={200: STREAM, **refusals()})
async def live(requester: RequesterHere, context: ContextHere) -> StreamingResponse:
    """Send the overview whenever something has changed, once a second at most.

    The event `overview` holds what `GET overview` gives; `trouble` says that the store cannot be
    read at the moment, and `ended` that the session is over.
    """
    headers = {"X-Accel-Buffering": "no"}
    stream = events(context, requester)
    return StreamingResponse(stream, headers=headers, media_type="text/event-stream")


async def events(context: ServerContext, session: Session) -> AsyncIterator[str]:
    """Yield the events of a session's stream, until it or the server ends."""
    seen: Any = None
    told = -HEARTBEAT
    while not context.leaving.is_set():
        known = None if time.monotonic() - told >= HEARTBEAT else seen
        try:
            mark, news = await context.threads["desk"](partial(_look, context, session, known))
        except Refused:  # no place: the next look may find one
            mark, news = seen, ""
        if mark is None:
            yield "event: ended\ndata: {}\n\n"
            return
        seen = mark
        if news == TROUBLE:
            told = time.monotonic()
            yield f"event: trouble\ndata: {json.dumps({'error': NO_STORE})}\n\n"
        elif news:
            told = time.monotonic()
            yield f"event: overview\ndata: {news}\n\n"
        await anyio.sleep(PACE)


def _look(context: ServerContext, session: Session, seen: Any) -> tuple[Any, str]:
    """Return what marks the state of things, and the overview if it is another; None at the end."""
    try:
        if not context.auth.sessions.holds(session):
            return None, ""
        mark = context.service.desk.mark()
        if mark == seen:
            return mark, ""
        return mark, context.service.desk.overview().model_dump_json()
    except GoldspanError:  # the store cannot be read at the moment: the next look may
        return TROUBLE, "" if seen == TROUBLE else TROUBLE


# --------------------------------------------------------------------------------------------------
# The JSON API of the requester: what is seen at the desk, and what is decided there.


State = Literal["all", "open", "done", "flagged", "gold"]
Order = Literal["confidence", "information"]
Limit = Annotated[int, Query(ge=1, le=200)]
Names = Annotated[
    bool, Query(description="Include the workers' names; the campaign's log records this.")
]
Progress = Annotated[Caller, Security(caller_here, scopes=["progress"])]
Results = Annotated[Caller, Security(caller_here, scopes=["results"])]
Reads = Annotated[Caller, Security(caller_here, scopes=["results or review"])]
Reviews = Annotated[Caller, Security(caller_here, scopes=["review"])]
People = Annotated[Caller, Security(caller_here, scopes=["people"])]
ManagesLinks = Annotated[Caller, Security(caller_here, scopes=["links"])]
Steers = Annotated[Caller, Security(caller_here, scopes=["steer"])]
"""Who asks, with the scope that a route needs; `RequesterHere` is the requester's session alone."""
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key", pattern=r"^[A-Za-z0-9._-]{8,64}$",
        description="New for every decision: the same request under the same key counts once.",
    ),
]  # fmt: skip
Number = Annotated[int, Path(ge=1, le=2**53)]
FILE: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
FILES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file.",
        "content": {
            "application/octet-stream": FILE, "application/zip": FILE, "text/csv": FILE,
            "text/plain": FILE, "text/html": FILE, "application/json": {"schema": {}},
        },
    }
}  # fmt: skip
PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
"""A report holds its own styles and pictures, and runs nothing."""


@router.get("/overview", responses=refusals())
def overview(caller: Progress, context: ContextHere) -> m.Overview:
    """Return how far it is: state, money, time, rounds, the learning curve."""
    return mask_overview(context.service.desk.overview(), caller)


@views.get("/workers", responses=refusals())
def workers(caller: People, context: ContextHere) -> list[m.Worker]:
    """Return everybody who works, those with most answers first."""
    hidden = {} if caller.may(MONEY) else {"earned": None}
    return [one.model_copy(update=hidden) for one in context.service.desk.workers()]


@router.post("/workers/{worker:path}/verdict", responses=refusals(404, 409))
def judge(
    caller: People, context: ContextHere, worker: str, body: m.VerdictBody, key: Key = None
) -> m.Decided:
    """Keep a worker, drop them, or ask them more gold questions."""
    kept = {"by": _decider(context, caller), "key": _key(caller, key)}
    return context.service.desk.judge(worker, body.verdict, body.why, **kept)


@views.get("/agreement", responses=refusals())
def agreement(caller: Results, context: ContextHere) -> m.Agreement:
    """Return how well the workers agree."""
    return mask_agreement(context.service.desk.agreement(), caller)


@views.get("/uncertain", responses=refusals())
def uncertain(
    _: Reads, context: ContextHere, limit: Limit = 20, by: Order = "confidence"
) -> list[m.UncertainItem]:
    """Return uncertain items, without gold questions and reviewed items."""
    return context.service.desk.uncertain(limit, by)


@router.get("/computing", responses=refusals())
def computing(_: Reads, context: ContextHere) -> m.Computing:
    """Return what is computed at the moment and how long it takes, in words."""
    return m.Computing(words=context.service.desk.engine.live.wait())


@views.get("/items", responses=refusals())
def items(
    _: Results,
    context: ContextHere,
    after: Annotated[str, Query(max_length=2_000)] = "",
    find: Annotated[str, Query(max_length=200)] = "",
    state: State = "all",
    limit: Limit = 50,
) -> m.ItemPage:
    """Return a page of the items that were asked about, behind the item `after`."""
    return context.service.desk.items(after, find, state, limit)


@views.get("/items/{item:path}", responses=refusals(404, 409))
def item(
    caller: Reads,
    context: ContextHere,
    item: str,
    page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
) -> m.Item:
    """Return an item: its words, answers, what they say together, what was said of it."""
    desk = context.service.desk
    if not caller.may(RESULTS):
        desk.check_reviewable(item)
    reasons = {*FLAG_REASONS, *desk.inputs.plan.page.skip_reasons}
    return mask_item(desk.item(item, page), caller, desk.names, reasons)


@router.post("/items/{item:path}/gold", responses=refusals(404, 409))
def adjudicate(
    caller: Reviews, context: ContextHere, item: str, body: m.GoldBody, key: Key = None
) -> m.Gold:
    """Decide what an item's labels are; from now on they are gold."""
    by, key = _decider(context, caller), _key(caller, key)
    reviews = not caller.may(RESULTS)
    return context.service.desk.adjudicate(item, body.answer, by=by, key=key, reviews=reviews)


@router.delete("/items/{item:path}/gold", responses=refusals(404))
def retract(caller: Reviews, context: ContextHere, item: str) -> m.Gold:
    """Take the decision about an item's labels back."""
    reviews = not caller.may(RESULTS)
    return context.service.desk.retract(item, by=_decider(context, caller), reviews=reviews)


@router.get("/audit", responses=refusals())
def audit(caller: Reads, context: ContextHere) -> m.AuditNow:
    """Return how many items are drawn and open; who only reviews does not see what they say."""
    found = context.service.desk.checking.progress()
    shown = found.certificate if caller.may(RESULTS) else None
    if shown and not caller.may(MONEY):
        shown = {**shown, "cost": None}
    return found.model_copy(update={"certificate": shown})


@views.post("/audit/draw", responses=refusals(404))
def draw_audit(_: Steers, context: ContextHere, body: m.DrawBody) -> m.AuditNow:
    """Draw items of the labels as they are now, for people to check."""
    return context.service.desk.draw_audit(body.n)


@router.post("/audit/next", responses=refusals(), response_model_exclude_unset=True)
def next_check(caller: Reviews, context: ContextHere, _: w.NextBody) -> w.NextAnswer:
    """Return the next drawn item, its text alone."""
    found = context.service.desk.checking.next(f"audit {caller.id}")
    return w.NextAnswer.model_validate(found)


@router.post("/audit/answers", responses=refusals(409), response_model_exclude_unset=True)
def check(caller: Reviews, context: ContextHere, body: w.AnswerBody) -> w.AnswerAnswer:
    """Keep what is right in a drawn item; the same key and body again count once."""
    who, key = (f"audit {caller.id}", _decider(context, caller)), _key(caller, body.key)
    found = context.service.desk.checking.submit(*who, body.task, key, body.answer)
    return w.AnswerAnswer.model_validate(found)


@router.post("/audit/skip", responses=refusals(409), response_model_exclude_unset=True)
def pass_check(caller: Reviews, context: ContextHere, body: w.SkipBody) -> w.Done:
    """Keep that nobody can tell what is right in a drawn item."""
    who, key = (f"audit {caller.id}", _decider(context, caller)), _key(caller, body.key)
    found = context.service.desk.checking.skip(*who, body.task, key, body.reason)
    return w.Done.model_validate(found)


@router.post("/pause", responses=refusals(410))
def pause(_: Steers, context: ContextHere) -> m.Paused:
    """Hand out no new tasks; answers are still taken."""
    return context.service.desk.pause()


@router.post("/resume", responses=refusals(410))
def resume(_: Steers, context: ContextHere) -> m.Paused:
    """Hand out tasks again."""
    return context.service.desk.pause(paused=False)


@router.post("/stop", responses=refusals(410))
def stop(_: Steers, context: ContextHere) -> m.Ended:
    """End the campaign with what there is; it cannot be taken back."""
    return context.service.desk.stop()


@router.get("/links", responses=refusals())
def links(caller: ManagesLinks, context: ContextHere) -> list[m.LinkRow]:
    """Return the workers' links that were made, without addresses; without "people" nor names."""
    hidden = {} if caller.may(PEOPLE) else {"worker": ""}
    return [m.LinkRow(**{**vars(link), **hidden}) for link in context.auth.links.all()]


@router.post("/links", responses=refusals(409))
def make_links(caller: ManagesLinks, context: ContextHere, body: m.LinksBody) -> list[m.NewLink]:
    """Make a personal link for every worker; nothing shows their addresses again.

    Whoever has a link is that worker: without the scope "people" it is made for new names alone.
    """
    links, desk = context.auth.links, context.service.desk
    # Also of links that were revoked, or it could revoke somebody's and come in their place.
    taken = () if caller.may(PEOPLE) else desk.names_taken() | {one.worker for one in links.all()}
    made = links.make([name.strip() for name in body.workers], body.days, taken)
    address = context.settings.address
    return [m.NewLink(**vars(link), url=address(f"/w/{token}")) for link, token in made]


@router.delete("/links/{link}", responses=refusals(404))
def revoke(_: ManagesLinks, context: ContextHere, link: str) -> m.Revoked:
    """Take a worker's link back; the sessions that began with it end."""
    context.auth.links.revoke(link)
    return m.Revoked(id=link, revoked=True)


@router.get("/exports", responses=refusals())
def exports(caller: Results, context: ContextHere) -> list[m.Export]:
    """Name the files that can be downloaded."""
    found = context.service.desk.exports()
    return [one for one in found if all(map(caller.may, file_scopes(one.name)))]


@files.get("/exports/{name}", response_class=Response, responses={**FILES, **refusals(404)})
def export(caller: Results, context: ContextHere, name: str, names: Names = False) -> Response:
    """Make a file. Workers have pseudonyms in all of them but `bill.csv`, unless `names` is true.

    Every file with names is kept in the campaign's log. Files with names need the scope `people`
    too, and files about money the scope `money`; without it other files have no costs of answers.
    """
    caller.check(*file_scopes(name, names=names))
    money = caller.may(MONEY)
    made = context.service.desk.export(name, names=names, money=money, by=caller.by)
    attached = f"attachment; filename*=UTF-8''{quote(made.name)}"
    headers = {"Content-Disposition": attached, "Content-Security-Policy": PAGE_POLICY}
    if made.lost:
        headers["X-Not-Held"] = json.dumps(made.lost[:20])  # ASCII, as headers must be
    return Response(made.content, headers=headers, media_type=made.media)


@files.get(
    "/report.html", response_class=Response,
    responses={200: {"description": "The report.", "content": {"text/html": FILE}},
               **refusals(404)},
)  # fmt: skip
def report(caller: Results, context: ContextHere, names: Names = False) -> Response:
    """Show the report of the campaign as it is now; with `names` as for the downloads."""
    caller.check(*file_scopes("report.html", names=names))
    made = context.service.desk.export("report.html", names=names, by=caller.by)
    headers = {"Content-Security-Policy": PAGE_POLICY}
    return Response(made.content, headers=headers, media_type=made.media)


# --------------------------------------------------------------------------------------------------
# Tokens of programs: made, listed and revoked by the requester's session alone.


@router.get("/tokens", responses=refusals())
def tokens(_: RequesterHere, context: ContextHere) -> list[m.TokenRow]:
    """Return the tokens of programs that were made, without their texts."""
    return [m.TokenRow(**vars(token)) for token in context.auth.tokens.all()]


@router.post("/tokens", responses=refusals())
def make_token(_: RequesterHere, context: ContextHere, body: m.TokenBody) -> m.NewToken:
    """Make a token for a program; nothing shows its text again."""
    token, text = context.auth.tokens.make(body.name, body.scopes, body.days)
    return m.NewToken(**vars(token), token=text)


@router.delete("/tokens/{name}", responses=refusals(404))
def revoke_token(_: RequesterHere, context: ContextHere, name: str) -> m.Revoked:
    """Take a token back; within a second it no longer holds."""
    context.auth.tokens.revoke(name)
    return m.Revoked(id=name, revoked=True)


@router.get("/reviewers", responses=refusals())
def reviewers(_: RequesterHere, context: ContextHere) -> list[m.ReviewerRow]:
    """Return the links of reviewers that were made, without their addresses."""
    return [m.ReviewerRow.model_validate(one) for one in context.auth.reviewers.all()]


@router.post("/reviewers", responses=refusals())
def make_reviewer(_: RequesterHere, context: ContextHere, body: m.ReviewerBody) -> m.NewReviewer:
    """Make a reviewer's personal link; nothing shows its address again."""
    made, text = context.auth.reviewers.make(body.name, [REVIEW], body.days)
    url = context.settings.address(f"/r/{text}")
    return m.NewReviewer(**m.ReviewerRow.model_validate(made).to_dict(), url=url)


@router.delete("/reviewers/{name}", responses=refusals(404))
def revoke_reviewer(_: RequesterHere, context: ContextHere, name: str) -> m.Revoked:
    """Take a reviewer's link back; the sessions that began with it end."""
    context.auth.reviewers.revoke(name)
    return m.Revoked(id=name, revoked=True)


# --------------------------------------------------------------------------------------------------
# Webhooks: what programs were told


@router.get("/webhooks", responses=refusals())
def webhooks(_: Progress, context: ContextHere) -> m.Deliveries:
    """Return the plan's webhooks, and the last messages with what became of them."""
    return deliveries(context.service.webhooks, context.service.ledger)


@router.post("/webhooks/{number}/retry", responses=refusals(404))
def retry(_: Steers, context: ContextHere, number: Number) -> m.Again:
    """Send a message again that was not taken."""
    if not context.service.webhooks.send_again(number):
        raise Refused("unknown", f"There is no message {number} that was not taken.", 404)
    return m.Again(number=number, again=True)


# --------------------------------------------------------------------------------------------------
# Who decides, and under which key


DAILY = 20_000
"""Decisions of one reviewer or token on one day: each is a record in the log."""


def _decider(context: ServerContext, caller: Caller) -> str:
    """Count a decision; return who decides, for the log, "" for the requester."""
    if caller.by == BROWSER:
        return ""
    words = f"The daily limit of {DAILY:,} decisions is reached: try again tomorrow."
    context.auth.records.take("decisions", caller.id, DAILY, words)
    return caller.by


def _key(caller: Caller, key: str | None) -> str:
    """Return the name under which a decision is kept: of one caller, "" without a key."""
    words = f"{caller.id}\0{key}".encode()
    return blake2b(words, digest_size=16).hexdigest() if key else ""


# --------------------------------------------------------------------------------------------------
# What a caller sees who may not see all: no money, no names, no free texts. Views are computed
# whole and masked last.


BLOCKED = "The campaign does not go on. The desk of the requester says why."
OTHER = "Another reason"
"""In place of a reason that is not one of those that the page offers."""
WITH_MONEY = frozenset({"bill.csv", "record.json", "report.html"})
"""Files that hold amounts."""
WITH_NAMES = frozenset({"bill.csv"})
"""Files that name the annotators, whatever was asked for."""


def mask_overview(view: m.Overview, caller: Caller) -> m.Overview:
    """Return the overview without money, and without lines that may hold money or names."""
    changed: dict[str, object] = {}
    if not caller.may(MONEY):
        learning, paid = view.learning, view.money is not None
        forecast = learning.forecast and {
            name: facts and {**facts, "cost": None}
            for name, facts in learning.forecast.items()
            if not (paid and name == "end")
        }
        changed["money"] = None
        changed["certificate"] = view.certificate and {**view.certificate, "cost": None}
        changed["rounds"] = [one.model_copy(update={"spent": None}) for one in view.rounds]
        changed["learning"] = learning.model_copy(update={"forecast": forecast})
    if not caller.may(PEOPLE):
        changed |= {"error": BLOCKED if view.error else "", "advice": "", "warnings": []}
    if not (caller.may(MONEY) and caller.may(PEOPLE)):
        # Changes of the plan are told in words: amounts and names of annotators are among them.
        budget = dict(view.plan.budget)
        if not caller.may(MONEY):
            budget["money"] = None
        told = {"budget": budget, "changes": [], "pending": []}
        changed["plan"] = view.plan.model_copy(update=told)
    return view.model_copy(update=changed) if changed else view


def mask_agreement(view: m.Agreement, caller: Caller) -> m.Agreement:
    """Return the measures of all annotators together: those of single ones and pairs name them."""
    if view.measures is None or caller.may(PEOPLE):
        return view
    plain = {k: v for k, v in view.measures.items() if v is None or isinstance(v, int | float)}
    return view.model_copy(update={"measures": plain})


def mask_item(
    view: m.Item, caller: Caller, names: Callable[[str], str], reasons: Collection[str]
) -> m.Item:
    """Return an item without payments, names and what annotators wrote.

    With the scope "results" annotators have the pseudonyms of downloads. Who only reviews sees
    neither these nor times, and no gold question.
    """
    changed: dict[str, object] = {}
    answers = view.answers
    if not caller.may(PEOPLE):
        rows = [row.worker for part in (view.answers, view.skipped, view.flags) for row in part]
        known = {one: f"annotator {n}" for n, one in enumerate(dict.fromkeys(rows), start=1)}
        name = names if caller.may(RESULTS) else known.__getitem__
        answers = [one.model_copy(update={"worker": name(one.worker)}) for one in answers]

        def said(row: m.Skip) -> dict[str, str]:
            reason = row.reason if row.reason in reasons else OTHER
            return {"worker": name(row.worker), "reason": reason}

        changed["skipped"] = [one.model_copy(update=said(one)) for one in view.skipped]
        changed["flags"] = [one.model_copy(update={**said(one), "note": ""}) for one in view.flags]
    if not caller.may(MONEY):
        answers = [one.model_copy(update={"paid": None}) for one in answers]
    if not caller.may(RESULTS):
        unknown = {"submitted": None, "seconds": None}
        answers = [one.model_copy(update=unknown) for one in answers]
    return view.model_copy(update={**changed, "answers": answers})


def file_scopes(name: str, *, names: bool = False) -> list[str]:
    """Return the scopes that a file needs.

    >>> file_scopes("gold.csv"), file_scopes("bill.csv"), file_scopes("gold.csv", names=True)
    (['results'], ['results', 'people', 'money'], ['results', 'people'])
    """
    found = [RESULTS]
    found += [PEOPLE] if names or name in WITH_NAMES else []
    return found + ([MONEY] if name in WITH_MONEY else [])


# --------------------------------------------------------------------------------------------------
# What is shown of webhooks: the plan's programs, and the last messages to each


def deliveries(webhooks: Webhooks, ledger: SqlLedger) -> m.Deliveries:
    """Return the programs of the plan with their counts, and the last messages."""
    counts, wall = webhooks.counts(), WallTimes(ledger)
    hooks = [
        m.Hook(
            name=hook.called, host=str(hook.place.hostname), events=list(hook.events),
            **{one: counts.get((hook.called, one), 0) for one in (WAITING, SENT, FAILED)},
        )
        for hook in webhooks.hooks
    ]  # fmt: skip
    same = ("number", "hook", "event", "state", "tries", "status", "why")
    messages = [
        m.Delivery(
            id=one.name, made=wall(one.made), changed=wall(one.changed),
            due=wall(one.due) if one.state == WAITING else None,
            **{name: getattr(one, name) for name in same},
        )
        for one in webhooks.deliveries()
    ]  # fmt: skip
    return m.Deliveries(hooks=hooks, messages=messages)
