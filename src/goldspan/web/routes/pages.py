"""The pages: labelling, the desk, and what leads there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, Response

from goldspan.web.dependencies import (
    ContextHere,
    ServerContext,
    has_reviewer,
    requester_here,
    reviewer_here,
)
from goldspan.web.errors import Refused
from goldspan.web.pages import MOUNT, page_answer, read_instructions
from goldspan.web.security.access import MONEY, SCOPES
from goldspan.web.security.sessions import REVIEWER, Session

# --------------------------------------------------------------------------------------------------
# The pages of a worker: where they label, and the help.


KEYS = "1234567890qweravtgdjklmpoix"
"""Keys of the labels in their order; b, c, f, h, n, s, u, y and z do other things on the page."""
SKIP_REASONS = (
    "I do not understand this text",
    "I am not sure what is right",
    "It is in a language that I do not read",
    "Another reason",
)
FLAG_REASONS = (
    "The text is garbled or cut off",
    "It is in the wrong language",
    "It is offensive, or private",
    "None of the labels fits",
    "Something else",
)


@dataclass(frozen=True)
class LabelPage:
    """What the labelling page shows of a campaign."""

    campaign: str
    title: str
    kind: str  # "spans", or "single" for one label per item
    labels: tuple[str, ...]  # Types of spans, or the labels, in the order in which they are offered
    instructions: str = ""  # In Markdown; examples show spans as `[Ann](PER)`
    paid: bool = True  # Whether answers are paid: a page of unpaid work does not speak of money
    skip_reasons: tuple[str, ...] = SKIP_REASONS  # Offered to a worker who skips a task
    flag_reasons: tuple[str, ...] = FLAG_REASONS  # Offered to a worker who reports an item


@dataclass(frozen=True)
class Visitor:
    """Who has opened the page."""

    scope: str  # Names the drafts of this worker and campaign in the browser; says nothing else
    csrf: str  # What the requests of the page carry in the header `X-Goldspan-CSRF`


def worker_pages(page: LabelPage, visitor: Callable[[Request], Visitor]) -> APIRouter:
    """Return the routes of a worker's pages."""
    router = APIRouter(include_in_schema=False)
    common: dict[str, Any] = {
        "title": page.title,
        "kind": page.kind,
        "paid": page.paid,
        "labels": label_keys(page.labels),
        "numbers": {label: number for number, label in enumerate(page.labels)},
        "blocks": read_instructions(page.instructions, page.labels),
    }

    @router.get("/label", response_class=HTMLResponse)
    def label(request: Request) -> HTMLResponse:
        return page_answer("label.html.j2", data=page_data(page, visitor(request)), **common)

    @router.get("/help", response_class=HTMLResponse)
    def help_page(request: Request) -> HTMLResponse:
        return page_answer("help.html.j2", csrf=visitor(request).csrf, **common)

    return router


def page_data(page: LabelPage, visitor: Visitor) -> dict[str, object]:
    """Return what the script of the page reads."""
    return {
        "csrf": visitor.csrf,
        "scope": visitor.scope,
        "campaign": page.campaign,
        "kind": page.kind,
        "title": page.title,
        "labels": label_keys(page.labels),
        "skip_reasons": list(page.skip_reasons),
        "flag_reasons": list(page.flag_reasons),
    }


def label_keys(labels: Sequence[str]) -> list[dict[str, str]]:
    """Return every label a key; those beyond the keys are chosen by mouse, touch or arrows.

    >>> label_keys(["PER", "LOC"])
    [{'name': 'PER', 'key': '1'}, {'name': 'LOC', 'key': '2'}]
    """
    keys = [*KEYS[: len(labels)], *[""] * max(0, len(labels) - len(KEYS))]
    return [{"name": name, "key": key} for name, key in zip(labels, keys, strict=True)]


# --------------------------------------------------------------------------------------------------
# The pages of the requester's desk.


router = APIRouter(include_in_schema=False)
PAGES = {
    "overview": ("/desk", "Overview"),
    "review": ("/desk/review", "Review"),
    "workers": ("/desk/workers", "Workers"),
    "items": ("/desk/items", "Items"),
    "links": ("/desk/links", "Links"),
    "exports": ("/desk/exports", "Downloads"),
    "api": ("/desk/api", "API"),
}
"""The pages in the order of the menu: path and name."""


@router.get("/desk", response_class=HTMLResponse)
def overview(request: Request, context: ContextHere) -> Response:
    """Show how far it is."""
    return _page(request, context, "overview")


@router.get("/desk/items/{item:path}", response_class=HTMLResponse)
def item(request: Request, context: ContextHere, item: str) -> Response:
    """Show all that is known of an item."""
    shown = _page(request, context, "items", "desk_item", item=item)
    context.service.desk.check_item(item)
    return shown


@router.get("/desk/{name}", response_class=HTMLResponse)
def page(request: Request, context: ContextHere, name: str) -> Response:
    """Show one of the other pages."""
    if name not in PAGES or name == "overview":
        raise HTTPException(404)
    return _page(request, context, name)


def _session(request: Request, here: str) -> Session:
    """Return whose page it is: a reviewer has the page of reviews alone."""
    try:
        return requester_here(request, None)
    except Refused as refused:
        if refused.status != 401:
            raise
    goes_to = "/login"
    if has_reviewer(request):
        try:
            session = reviewer_here(request)
        except Refused as refused:
            if refused.status != 401:
                raise
        else:
            if here == "review":
                return session
            goes_to = "/desk/review"
    raise HTTPException(303, headers={"Location": MOUNT.get() + goes_to})


def _page(
    request: Request, context: ServerContext, here: str, template: str = "", **more: Any
) -> Response:
    """Fill a page in; who is not logged in is led to where one logs in."""
    session = _session(request, here)
    plan, csrf = context.service.inputs.plan, context.auth.sessions.csrf(session)
    reviews = session.role == REVIEWER
    shown = {here: PAGES[here]} if reviews else PAGES
    data = {
        "csrf": csrf,
        "reviewer": reviews,
        "kind": "single" if plan.is_single else "spans",
        "labels": label_keys(plan.task.labels or plan.task.types),
        "currency": plan.prices.currency,
        "paid": plan.is_paid and not reviews,
        "control": bool(context.service.inputs.control),
        **more,
    }
    name = template or f"desk_{here}"
    return page_answer(
        f"{name}.html.j2", data=data, csrf=csrf, pages=shown, here=here, script=f"{name}.js",
        title=plan.page.title or plan.name, paid=plan.is_paid,
        scopes={one: words for one, words in SCOPES.items() if plan.is_paid or one != MONEY},
        **more,
    )  # fmt: skip
