"""One campaign's server as an ASGI application: routes, and what every request passes first."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute

from goldspan import __version__
from goldspan.errors import GoldspanError
from goldspan.web.answers import on_refusal
from goldspan.web.house import House, RequesterHere, worker_here
from goldspan.web.models import refusals
from goldspan.web.protocols import ServiceFace
from goldspan.web.security.entrance import Headers
from goldspan.web.security.gates import Faults, Gate, Log
from goldspan.web.settings import ServerSettings

ROUTERS = (
    "goldspan.web.routes.join:router",
    "goldspan.web.routes.work:often",
    "goldspan.web.routes.work:router",
    "goldspan.web.app:pages",
    "goldspan.web.routes.desk_api:router",
    "goldspan.web.routes.pages:router",
    "goldspan.web.routes.join:outside",
    "goldspan.web.app:static",
)
"""Every part of the server, in the order in which paths are looked up: an `APIRouter`, or a
function of the `House` that gives one. Parts that are not there are left out."""


def create_app(service: ServiceFace, settings: ServerSettings) -> FastAPI:
    """Return the application of a campaign.

    Args:
        service: The campaign.
        settings: How it is run.
    """
    house = House.of(service, settings)
    app = FastAPI(
        title="goldspan", version=__version__, openapi_url=None, docs_url=None, redoc_url=None,
        # It would lead to an address of its own making, http:// behind a proxy with TLS.
        redirect_slashes=False,
    )  # fmt: skip
    app.state.house = house
    for place in ROUTERS:
        app.router.routes.extend(_routes(place, house))
    app.router.routes.extend(_document(app))
    for kind in (GoldspanError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, on_refusal)
    # The last one stands outermost.
    app.add_middleware(Gate, house=house)
    app.add_middleware(Faults)
    app.add_middleware(Headers, secure=settings.is_secure)
    app.add_middleware(Log)
    return app


def pages(house: House) -> APIRouter:
    """Return the pages of a worker."""
    from goldspan.web.routes.pages import LabelPage, Visitor, worker_pages

    inputs, sessions = house.service.inputs, house.entrance.sessions
    plan = inputs.plan
    shown = LabelPage(
        paid=plan.is_paid,
        campaign=inputs.key,
        title=plan.page.title or plan.name,
        kind="single" if plan.is_single else "spans",
        labels=plan.task.labels or plan.task.types,
        instructions=inputs.guideline,
        skip_reasons=plan.page.skip_reasons,
    )

    def visitor(request: Request) -> Visitor:
        session = worker_here(request)
        return Visitor(scope=sessions.scope(session), csrf=sessions.csrf(session))

    return worker_pages(shown, visitor)


def static(_: House) -> APIRouter:
    """Return the route of scripts and styles."""
    from goldspan.web.pages import static_files

    return static_files()


def _routes(place: str, house: House) -> list[BaseRoute]:
    """Return the routes of a part of the server."""
    module, _, name = place.partition(":")
    if find_spec(module) is None:
        return []
    made: APIRouter | Callable[[House], APIRouter] = getattr(import_module(module), name)
    return list((made if isinstance(made, APIRouter) else made(house)).routes)


def _document(app: FastAPI) -> list[BaseRoute]:
    """Return the route of the OpenAPI document, which is for the requester."""
    router = APIRouter(tags=["api"])

    @router.get("/api/openapi.json", responses=refusals())
    def openapi(_: RequesterHere) -> dict[str, Any]:
        """Return the description of this API."""
        return app.openapi()

    return list(router.routes)
