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

from karat import __version__
from karat.errors import KaratError
from karat.server.answers import on_refusal
from karat.server.doors import RequesterHere, worker_here
from karat.server.house import House
from karat.server.instructions import load_instructions
from karat.server.models import refusals
from karat.server.protocols import ServiceFace
from karat.server.security.gates import Faults, Gate, Log
from karat.server.security.headers import Headers
from karat.server.settings import ServerSettings

ROUTERS = (
    "karat.server.routes.join:router",
    "karat.server.routes.work:often",
    "karat.server.routes.work:router",
    "karat.server.app:pages",
    "karat.server.routes.desk_api:router",
    "karat.server.routes.desk_pages:router",
    "karat.server.routes.live:router",
    "karat.server.routes.outside:outside",
    "karat.server.app:static",
)
"""Every part of the server, in the order in which paths are looked up: an `APIRouter`, or a
function of the `House` that gives one. Parts that are not there are left out."""


def create_app(service: ServiceFace, settings: ServerSettings) -> FastAPI:
    """Give the application of a campaign.

    Args:
        service: The campaign.
        settings: How it is run.
    """
    house = House.of(service, settings)
    app = FastAPI(
        title="karat", version=__version__, openapi_url=None, docs_url=None, redoc_url=None,
        # It would lead to an address of its own making, http:// behind a proxy with TLS.
        redirect_slashes=False,
    )  # fmt: skip
    app.state.house = house
    for place in ROUTERS:
        app.router.routes.extend(_routes(place, house))
    app.router.routes.extend(_document(app))
    for kind in (KaratError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, on_refusal)
    # The last one stands outermost.
    app.add_middleware(Gate, house=house)
    app.add_middleware(Faults)
    app.add_middleware(Headers, secure=settings.is_secure)
    app.add_middleware(Log)
    return app


def pages(house: House) -> APIRouter:
    """Give the pages of a worker."""
    from karat.server.routes.pages import LabelPage, Visitor, worker_pages

    setting, sessions = house.service.setting, house.entrance.sessions
    plan = setting.plan
    shown = LabelPage(
        campaign=setting.key,
        title=plan.page.title or plan.name,
        kind="single" if plan.is_single else "spans",
        labels=plan.task.labels or plan.task.types,
        instructions=load_instructions(setting.folder, plan.page.instructions),
        skip_reasons=plan.page.skip_reasons,
    )

    def visitor(request: Request) -> Visitor:
        session = worker_here(request)
        return Visitor(scope=sessions.scope(session), csrf=sessions.csrf(session))

    return worker_pages(shown, visitor)


def static(_: House) -> APIRouter:
    """Give the route of scripts and styles."""
    from karat.server.assets import static_files

    return static_files()


def _routes(place: str, house: House) -> list[BaseRoute]:
    """Give the routes of a part of the server."""
    module, _, name = place.partition(":")
    if find_spec(module) is None:
        return []
    made: APIRouter | Callable[[House], APIRouter] = getattr(import_module(module), name)
    return list((made if isinstance(made, APIRouter) else made(house)).routes)


def _document(app: FastAPI) -> list[BaseRoute]:
    """Give the route of the OpenAPI document, which is for the requester."""
    router = APIRouter(tags=["api"])

    @router.get("/api/openapi.json", responses=refusals())
    def openapi(_: RequesterHere) -> dict[str, Any]:
        """Give the description of this API."""
        return app.openapi()

    return list(router.routes)
