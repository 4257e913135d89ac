"""Error handlers: JSON for programs, a page for people; error messages reveal no internals."""

from __future__ import annotations

import logging
import time
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from goldspan.errors import GoldspanError, InputError
from goldspan.store.engine import LostError, StoreError
from goldspan.store.people import ForgottenError
from goldspan.web.errors import Refused
from goldspan.web.logs import fields_of

REPLACED = (
    "Another server has taken over this campaign, and this one accepts nothing more. Every "
    "confirmed answer is kept. Load the page again in a moment."
)
UNSURE = "The campaign cannot be read or written now; nothing was lost. Try again soon."
QUIET = 10.0
"""Seconds between two lines of the log that say the same of a store that fails."""
ANSWERS = "/api/work/answers"
"""The route of answers, whose refusals are counted by reason."""
MESSAGES = 20
"""Messages that are remembered for that."""
log = logging.getLogger("goldspan.web")
CODES = {400: "unreadable", 404: "unknown", 405: "method", 413: "too-large", 415: "type"}
WORDS = {
    400: "The request cannot be read.",
    404: "This page does not exist.",
    405: "This method is not allowed here.",
    413: "The request is too large.",
}
TITLES = {401: "Please sign in", 403: "Not allowed", 404: "Not found", 429: "Too many requests"}


def tell(path: str, refused: Refused, headers: dict[str, str] | None = None) -> Response:
    """Return the answer to a request that is refused."""
    more = {**(headers or {}), **({"Retry-After": str(refused.retry)} if refused.retry else {})}
    if path.startswith("/api/"):
        body = {"error": {"code": refused.code, "message": refused.message}}
        return JSONResponse(body, refused.status, more)
    from goldspan.web.pages import message_page

    title = TITLES.get(refused.status, "That did not work")
    page = message_page(title, refused.message, refused.status)
    page.headers.update(more)
    return page


def refusal_of(error: Exception, path: str) -> tuple[Refused, dict[str, str]]:
    """Say an error in words for who made the request, and which headers belong to it."""
    if isinstance(error, Refused):
        return error, {}
    if isinstance(error, HTTPException):
        code = CODES.get(error.status_code, "refused")
        words = WORDS.get(error.status_code, "The request was refused.")
        return Refused(code, words, error.status_code), dict(error.headers or {})
    if isinstance(error, RequestValidationError):
        return Refused("invalid", _places(error), 422), {}
    if isinstance(error, ForgottenError):
        return Refused("session", "Open your personal link again to go on.", 401), {}
    if isinstance(error, InputError):
        # The requester is told what is wrong; to a worker it is the inside of a campaign.
        words = str(error) if path.startswith("/api/desk/") else "The campaign cannot take this."
        return Refused("invalid", words, 422), {}
    return unavailable(lost=isinstance(error, LostError)), {}


def unavailable(*, lost: bool) -> Refused:
    """Return the refusal of a server whose database is silent, or whose campaign it lost."""
    code, words = ("replaced", REPLACED) if lost else ("unavailable", UNSURE)
    return Refused(code, words, 503, retry=10)


async def on_refusal(request: Request, error: Exception) -> Response:
    """Answer an error that says what was wrong (a handler of FastAPI)."""
    refused, headers = refusal_of(error, request.url.path)
    if route_of(request.scope) == ANSWERS:
        request.app.state.context.metrics.refused_answers.labels(refused.code).inc()
    is_told = isinstance(error, GoldspanError) and not isinstance(error, Refused | LostError)
    # A database that is gone fails every request alike, some hundred in a second.
    if is_told and (not isinstance(error, StoreError) or _is_news(request, str(error))):
        log_fault(request.scope, error)
    return tell(request.url.path, refused, headers)


def _is_news(request: Request, message: str) -> bool:
    """Whether the log may have one more line of what the store says."""
    state, now = request.app.state, time.monotonic()
    if not hasattr(state, "told"):
        state.told = {}
    told: dict[str, float] = state.told
    if now - told.get(message, -QUIET) < QUIET:
        return False
    if len(told) >= MESSAGES:
        told.clear()
    told[message] = now
    return True


def log_fault(scope: Any, error: BaseException) -> None:
    """Log what failed and where.

    Messages may hold what people wrote and are left out; those of the store name a database.
    """
    told = str(error) if isinstance(error, StoreError) else "a request failed"
    fields = {"method": scope["method"], "route": route_of(scope), **fields_of(error)}
    log.error("%s", told, extra={"fields": fields})


def route_of(scope: Any) -> str:
    """Return the pattern of the route, which holds no token as the path may."""
    return str(getattr(scope.get("route"), "path", "(no route)"))


def _places(error: RequestValidationError) -> str:
    """Return where a body is wrong, without what stood there."""
    told = [
        f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors()[:5]
    ]
    return "; ".join(told)
