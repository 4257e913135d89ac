"""The server as an ASGI application: of one campaign, or of several with a page that lists them.

Of several, every campaign has its own store, secret, links, sessions and names of cookies, and its
own rules of who comes in: to each other they are strangers. Only the requester who logs in at the
list is led into each of them, by a session of that campaign's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

from fastapi import APIRouter, FastAPI, Request, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from goldspan import __version__
from goldspan.campaign.clock import CampaignClock, wall_clock
from goldspan.errors import GoldspanError, InputError
from goldspan.spans import Codec
from goldspan.store import SqlLedger, create_ledger
from goldspan.web import desk_api, pages, sign_in, work_api
from goldspan.web.dependencies import (
    ContextHere,
    DeskRoute,
    ServerContext,
    caller_here,
    requester_here,
    session_here,
    worker_here,
)
from goldspan.web.errors import Refused
from goldspan.web.models import refusals
from goldspan.web.pages import (
    Fields,
    LogoutForm,
    message_page,
    page_answer,
    read_form,
    static_files,
)
from goldspan.web.security.access import PROGRESS, Caller
from goldspan.web.security.middleware import (
    HEALTH,
    Faults,
    Headers,
    Mounted,
    RequestGuard,
    RequestLog,
    on_refusal,
)
from goldspan.web.security.sessions import DESK
from goldspan.web.service import Service
from goldspan.web.settings import CAMPAIGNS, ServerSettings
from goldspan.web.work import earned


def create_app(service: Service, settings: ServerSettings) -> FastAPI:
    """Return the application of a campaign."""
    settings = settings.timed(service.clock)
    context = ServerContext.of(service, service.ledger, service.inputs.key, settings)
    app = _new_app()
    # Paths are looked up in this order.
    routers = (
        sign_in.router, work_api.router, _worker_pages(context), desk_api.router,
        desk_api.views, desk_api.files, pages.router, sign_in.provider_routes(context),
        sign_in.oidc_routes(context), static_files(), _document(app), health_route(),
    )  # fmt: skip
    return assembled(app, context, routers)


def _new_app() -> FastAPI:
    return FastAPI(
        title="goldspan", version=__version__, openapi_url=None, docs_url=None, redoc_url=None,
        # It would lead to an address of its own making, http:// behind a proxy with TLS.
        redirect_slashes=False,
    )  # fmt: skip


def assembled(app: FastAPI, context: ServerContext, routers: Sequence[APIRouter]) -> FastAPI:
    """Return an application with its routes, and with what every request passes first."""
    app.state.context = context
    for router in routers:
        app.router.routes.extend(router.routes)
    for kind in (GoldspanError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, on_refusal)
    # The last one stands outermost.
    app.add_middleware(RequestGuard, context=context)
    app.add_middleware(Faults, metrics=context.metrics)
    app.add_middleware(Headers, secure=context.settings.is_secure)
    app.add_middleware(RequestLog, metrics=context.metrics)
    app.add_middleware(Mounted, prefix=context.settings.prefix)
    return app


def _worker_pages(context: ServerContext) -> APIRouter:
    shown, sessions = pages.LabelPage.of(context.service.inputs), context.auth.sessions

    def visitor(request: Request) -> dict[str, Any]:
        session = worker_here(request)
        paid = earned(context.service.inputs.plan, session.person, 0) is not None
        return {"scope": sessions.scope(session), "csrf": sessions.csrf(session), "paid": paid}

    return pages.worker_pages(shown, visitor)


def _document(app: FastAPI) -> APIRouter:
    """Return the route of the OpenAPI document, for the requester and for programs."""
    router = APIRouter(tags=["api"])

    @router.get("/api/openapi.json", responses=refusals())
    def openapi(caller: Annotated[Caller, Security(caller_here)]) -> dict[str, Any]:
        """Return the description of this API."""
        if caller.session is not None:  # a program may know it whatever its scopes are
            caller.check(PROGRESS)
        return app.openapi()

    return router


def health_route() -> APIRouter:
    """Return the route that proxies and containers ask; what the guard refuses, it refuses here."""
    router = APIRouter(include_in_schema=False)

    @router.api_route(HEALTH, methods=["GET", "HEAD"], response_class=PlainTextResponse)
    async def health() -> PlainTextResponse:
        """Say that the server answers and that its campaign can be written, and nothing else."""
        return PlainTextResponse("ok\n", headers={"Cache-Control": "no-store"})

    return router


# --------------------------------------------------------------------------------------------------
# The plans of a folder, and their names in addresses


LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")
PLAN = "campaign"
"""A plan of this name is called by its folder."""
STORE = "server.sqlite"
"""The file of the requester's password and sessions at the list."""


def find_plans(sources: Sequence[str | Path]) -> dict[str, Path]:
    """Return the plans of folders and files by the names that they have in addresses."""
    paths: list[Path] = []
    for source in map(Path, sources):
        if source.is_dir():
            found = [*source.glob("*.toml"), *source.glob(f"*/{PLAN}.toml")]
            # Editors and file systems leave copies whose names begin with a point.
            found = sorted(path for path in found if not path.name.startswith("."))
            if not found:
                raise InputError(
                    f"there is no plan in {source}: put them there as NAME.toml or as "
                    f"NAME/{PLAN}.toml"
                )
            paths += found
        else:
            paths.append(source)
    named: dict[str, Path] = {}
    for path in paths:
        name = _name(path)
        if name in named:
            raise InputError(
                f"{named[name]} and {path} would both be at {CAMPAIGNS}{name}: rename one of the "
                "files"
            )
        named[name] = path
    return named


def _name(path: Path) -> str:
    """Return the name of a plan in addresses.

    >>> _name(Path("plans/Cats and dogs.toml")), _name(Path("plans/news/campaign.toml"))
    ('cats-and-dogs', 'news')
    """
    words = path.resolve().parent.name if path.stem == PLAN else path.stem
    name = "".join(letter if letter in LETTERS else "-" for letter in words.lower()).strip("-_")
    if not name:
        raise InputError(f"{path}: its name has no letters of an address: rename the file")
    return name


# --------------------------------------------------------------------------------------------------
# What is served


@dataclass(frozen=True)
class Listed:
    """A campaign of the server."""

    name: str
    app: FastAPI | None = None  # Its application; None if it could not be opened
    error: str = ""  # Why it could not

    @property
    def context(self) -> ServerContext:
        """The context of an application."""
        assert self.app is not None
        return cast("ServerContext", self.app.state.context)

    @property
    def service(self) -> Service:
        """The campaign."""
        return self.context.service


def open_list(folder: str | Path) -> SqlLedger:
    """Open the store of the list: it holds the requester's password, and no campaign's data."""
    tags = Codec.from_types(["none"], "PLAIN")
    ledger = create_ledger(
        Path(folder) / STORE, name="server", cap=0, currency="-", tagset=tags, now=wall_clock(),
        private=True,
    )  # fmt: skip
    (Path(folder) / STORE).chmod(0o600)
    return ledger


def list_context(
    ledger: SqlLedger, settings: ServerSettings, moment: tuple[int, int] | None = None
) -> ServerContext:
    """Return the context of the list: an account and its sessions, without a campaign."""
    clock = CampaignClock(ledger, moment=moment)
    return ServerContext.of(None, ledger, "server", settings.timed(clock))


def create_list(context: ServerContext, campaigns: Sequence[Listed]) -> Several:
    """Return the application of several campaigns."""
    routers = (_pages(campaigns), sign_in.router, static_files(), health_route())
    return Several(assembled(_new_app(), context, routers), campaigns)


class Several:
    """Hands a request to the campaign of its path, or to the list."""

    def __init__(self, app: FastAPI, campaigns: Sequence[Listed]) -> None:
        self.state, self._list = app.state, app
        self.campaigns = {one.name: one.app for one in campaigns if one.app is not None}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        before, _, path = scope.get("path", "").partition(CAMPAIGNS)
        name = "" if before else path.partition("/")[0]
        await self.campaigns.get(name, self._list)(scope, receive, send)


# --------------------------------------------------------------------------------------------------
# The list


def _pages(campaigns: Sequence[Listed]) -> APIRouter:
    router = APIRouter(include_in_schema=False, route_class=DeskRoute)
    by_name: Mapping[str, Listed] = {one.name: one for one in campaigns}

    @router.get("/desk", response_class=HTMLResponse)
    def overview(request: Request, context: ContextHere) -> Response:
        if not session_here(request, DESK):
            raise HTTPException(303, headers={"Location": "/login"})
        csrf = context.auth.sessions.csrf(requester_here(request, None))
        rows = [_row(one) for one in campaigns]
        return page_answer("list.html.j2", csrf=csrf, rows=rows, title="Campaigns")

    @router.post("/open/{name}")
    def enter(request: Request, name: str, fields: Fields) -> Response:
        """Begin a session at the desk of a campaign."""
        requester_here(request, read_form(LogoutForm, fields).csrf)
        chosen = by_name.get(name)
        if chosen is None or chosen.app is None:
            raise Refused("unknown", "There is no such campaign here.", 404)
        sessions = chosen.context.auth.sessions
        return sign_in.welcome(chosen.context, sessions.begin_desk())

    @router.post("/logout")
    def log_out(request: Request, context: ContextHere, fields: Fields) -> Response:
        """End the session at the list and those that it led to in this browser."""
        requester_here(request, read_form(LogoutForm, fields).csrf)
        page = message_page("Goodbye", "You are logged out on this device.")
        for one in (context, *(each.context for each in campaigns if each.app is not None)):
            sessions = one.auth.sessions
            with suppress(Refused):
                sessions.end(sessions.read(DESK, one.cookie_of(request.cookies, DESK)))
            sign_in.drop_cookie(one, page, DESK)
        return page

    return router


def _row(one: Listed) -> dict[str, Any]:
    row: dict[str, Any] = {"name": one.name, "title": one.name, "error": one.error, "now": None}
    if one.app is not None:
        plan = one.service.inputs.plan
        row["title"] = plan.page.title or plan.name
        try:
            row["now"] = one.service.desk.overview().to_dict()
        except GoldspanError as error:  # its store cannot be read now
            row["error"] = str(error)
    return row
