"""The pages of the requester's desk.

They hold no data but the frame: their scripts ask the JSON API, and listen to its stream.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, Response

from goldspan.server.doors import HouseHere, requester_here
from goldspan.server.errors import Refused
from goldspan.server.house import House
from goldspan.server.rendering import page_answer
from goldspan.server.routes.pages import label_keys

router = APIRouter(include_in_schema=False)
PAGES = {
    "overview": ("/desk", "Overview"),
    "doubts": ("/desk/doubts", "Review"),
    "workers": ("/desk/workers", "Workers"),
    "items": ("/desk/items", "Items"),
    "links": ("/desk/links", "Links"),
    "exports": ("/desk/exports", "Downloads"),
}
"""The pages in the order of the menu: path and name."""


@router.get("/desk", response_class=HTMLResponse)
def overview(request: Request, house: HouseHere) -> Response:
    """Show how far it is."""
    return _page(request, house, "overview")


@router.get("/desk/items/{item:path}", response_class=HTMLResponse)
def item(request: Request, house: HouseHere, item: str) -> Response:
    """Show all that is known of an item."""
    shown = _page(request, house, "items", "desk_item", item=item)
    house.service.desk.check_item(item)
    return shown


@router.get("/desk/{name}", response_class=HTMLResponse)
def page(request: Request, house: HouseHere, name: str) -> Response:
    """Show one of the other pages."""
    if name not in PAGES or name == "overview":
        raise HTTPException(404)
    return _page(request, house, name)


def _page(request: Request, house: House, here: str, template: str = "", **more: Any) -> Response:
    """Fill a page in; who is not logged in is led to where one logs in."""
    try:
        session = requester_here(request, None)
    except Refused as refused:
        if refused.status != 401:
            raise
        raise HTTPException(303, headers={"Location": "/login"}) from None
    plan, csrf = house.service.setting.plan, house.entrance.sessions.csrf(session)
    data = {
        "csrf": csrf,
        "kind": "single" if plan.is_single else "spans",
        "labels": label_keys(plan.task.labels or plan.task.types),
        "currency": plan.prices.currency,
        "paid": plan.is_paid,
        "control": bool(house.service.setting.control),
        **more,
    }
    name = template or f"desk_{here}"
    return page_answer(
        f"{name}.html.j2", data=data, csrf=csrf, pages=PAGES, here=here, script=f"{name}.js",
        title=plan.page.title or plan.name, paid=plan.is_paid, **more,
    )  # fmt: skip
