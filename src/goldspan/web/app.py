"""One campaign's server as an ASGI application: routes, and what every request passes first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Request, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse
from starlette.exceptions import HTTPException

from goldspan import __version__
from goldspan.errors import GoldspanError
from goldspan.web.dependencies import ServerContext, caller_here, worker_here
from goldspan.web.error_handlers import on_refusal
from goldspan.web.models import refusals
from goldspan.web.pages import static_files
from goldspan.web.routes import desk_api, pages, sign_in, work
from goldspan.web.security.access import PROGRESS, Caller
from goldspan.web.security.auth import Headers
from goldspan.web.security.middleware import HEALTH, Faults, Mounted, RequestGuard, RequestLog
from goldspan.web.service import Service
from goldspan.web.settings import ServerSettings


def create_app(service: Service, settings: ServerSettings) -> FastAPI:
    """Return the application of a campaign.

    Args:
        service: The campaign.
        settings: How it is run.
    """
    context = ServerContext.of(service, settings)
    app = FastAPI(
        title="goldspan", version=__version__, openapi_url=None, docs_url=None, redoc_url=None,
        # It would lead to an address of its own making, http:// behind a proxy with TLS.
        redirect_slashes=False,
    )  # fmt: skip
    # Paths are looked up in this order.
    routers = (
        sign_in.router, work.router, _worker_pages(context), desk_api.router,
        pages.router, sign_in.provider_routes(context), sign_in.oidc_routes(context),
        static_files(), _document(app), health_route(),
    )  # fmt: skip
    return assembled(app, context, routers)


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
    """Return the pages of a worker."""
    inputs, sessions = context.service.inputs, context.auth.sessions
    plan = inputs.plan
    shown = pages.LabelPage(
        paid=plan.is_paid,
        campaign=inputs.key,
        title=plan.page.title or plan.name,
        kind="single" if plan.is_single else "spans",
        labels=plan.task.labels or plan.task.types,
        instructions=inputs.guideline,
        skip_reasons=plan.page.skip_reasons,
    )

    def visitor(request: Request) -> pages.Visitor:
        session = worker_here(request)
        return pages.Visitor(scope=sessions.scope(session), csrf=sessions.csrf(session))

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
