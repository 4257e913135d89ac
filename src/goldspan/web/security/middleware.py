"""Middleware: plain ASGI, one small class per rule.

From the outside in: path, request log, headers, faults, then host, origin, rate limit and size of
the body.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers as Got
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from goldspan.errors import GoldspanError, InputError
from goldspan.store.engine import LostError, StoreError
from goldspan.store.people import ForgottenError
from goldspan.web.dependencies import ServerContext
from goldspan.web.errors import Refused
from goldspan.web.logs import fields_of, request_id
from goldspan.web.metrics import Metrics
from goldspan.web.pages import MOUNT, message_page
from goldspan.web.security.access import SAFE
from goldspan.web.security.account import address_name
from goldspan.web.security.sessions import DESK, WORKER

log = logging.getLogger("goldspan.web.requests")
security = logging.getLogger("goldspan.web.security")
faults = logging.getLogger("goldspan.web")
HEALTH = "/healthz"
"""Asked from within a container, by another name than the server's own."""
REFUSED = 400
"""Statuses from here on say that a request was refused, or that something broke."""
PAUSE = 0.5
"""Seconds until somebody is told to try again later: some try again at once, whatever they are
told, and a server that refuses as fast as it can has no time for the others."""


class Mounted:
    """Takes the path of the campaign off the path of a request."""

    def __init__(self, app: ASGIApp, *, prefix: str) -> None:
        self._app, self._prefix = app, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        if scope["type"] != "http" or not self._prefix:
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        if path != self._prefix and not path.startswith(f"{self._prefix}/"):
            nothing = Refused("unknown", "There is nothing here.", 404)
            await tell(path, nothing)(scope, receive, send)
            return
        MOUNT.set(self._prefix)
        rest = path.removeprefix(self._prefix) or "/"
        raw = scope.get("raw_path") or b""
        raw = raw.removeprefix(self._prefix.encode()) or b"/"
        await self._app({**scope, "path": rest, "raw_path": raw}, receive, send)


class RequestLog:
    """Gives a request its id, and logs and counts it: method, route template, status, duration.

    Requests that succeed are logged at the level DEBUG: there are so many of them that nobody would
    see the others. Path, query, cookies and body are not logged: they hold tokens and answers.
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        number = secrets.token_hex(8)
        request_id.set(number)
        begin, status, has_length = time.perf_counter(), 0, False

        async def watch(message: Message) -> None:
            nonlocal status, has_length
            if message["type"] == "http.response.start":
                status = message["status"]
                has_length = any(name == b"content-length" for name, _ in message["headers"])
                message["headers"] = [*message["headers"], (b"x-request-id", number.encode())]
                took = time.perf_counter() - begin
                self._metrics.count_request(route_of(scope), scope["method"], status, took)
            await send(message)

        await self._app(scope, receive, watch)
        took = time.perf_counter() - begin
        if has_length:  # a stream lasts as long as somebody listens
            self._metrics.count_reply(route_of(scope), took)
        fields = {
            "method": scope["method"],
            "route": route_of(scope),
            "status": status,
            "ms": round(1000 * took, 1),
        }
        level = logging.INFO if status >= REFUSED else logging.DEBUG
        log.log(level, "request", extra={"fields": fields})


class Faults:
    """Answers 500 where something broke; only the log has the details."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def watch(message: Message) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watch)
        except Exception as error:
            log_fault(scope, error)
            self._metrics.faults.inc()
            if begun:
                raise
            words = f"Something went wrong on the server. Its log names it: {request_id.get()}."
            broken = Refused("fault", words, 500)
            await tell(scope["path"], broken)(scope, receive, send)


class RequestGuard:
    """Refuses another host's name, requests of foreign pages, too many requests, large bodies.

    A server that was replaced by another one, or cannot know that it was not, refuses all.
    """

    def __init__(self, app: ASGIApp, *, context: ServerContext) -> None:
        self._app, self._context = app, context
        self._held = 0
        """Bytes of bodies, of all requests that are being read or answered."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        if scope["type"] == "websocket":  # there is none
            await send({"type": "websocket.close", "code": 1008, "reason": ""})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = bytearray()
        try:
            self._check(scope, Got(scope=scope))
            whole = await self._read(scope, receive, body)
        except Refused as refused:
            self._let_go(body)
            await asyncio.sleep(PAUSE if refused.retry else 0)
            await tell(scope["path"], refused)(scope, receive, send)
            return
        try:
            if whole:
                await self._app(scope, _Replay(bytes(body), receive), send)
        finally:
            self._let_go(body)

    def _let_go(self, body: bytearray) -> None:
        self._held -= len(body)
        body.clear()

    def _check(self, scope: Scope, headers: Got) -> None:
        host = headers.getlist("host")
        named = len(host) == 1 and host[0].lower() in self._context.settings.hosts
        if not named and scope["path"] != HEALTH:
            raise Refused("host", "This server has another name: use its own address.", 400)
        if not self._context.held.is_sure:
            raise unavailable(lost=self._context.held.lost is not None)
        address = address_name(scope["client"][0] if scope.get("client") else None)
        self._context.buckets["address"].take(address)
        if scope["method"] in SAFE:
            return
        origin = headers.get("origin")
        foreign = origin is not None and origin.lower() not in self._context.settings.origins
        if foreign or headers.get("sec-fetch-site") in {"cross-site", "same-site"}:
            security.warning("refused: a change from a foreign page, by %s", address)
            raise Refused("origin", "This came from another site.", 403)

    async def _read(self, scope: Scope, receive: Receive, body: bytearray) -> bool:
        """Read a body whole; False if the client went away."""
        settings = self._context.settings
        known = self._knows(scope)
        large = DESK in known and scope["path"].startswith("/api/desk/")
        most = settings.desk_body if large else settings.body
        room = settings.held if known else settings.held // 2
        length = Got(scope=scope).get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length[:20]) > most:
            raise _too_large(most)
        try:
            async with asyncio.timeout(settings.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return False
                    self._add(body, message.get("body", b""), most, room)
                    if not message.get("more_body", False):
                        return True
        except TimeoutError:
            raise Refused("slow", "The request took too long to come.", 408) from None

    def _add(self, body: bytearray, part: bytes, most: int, room: int) -> None:
        """Take a part of a body, if there is room for it."""
        if len(body) + len(part) > most:
            raise _too_large(most)
        if self._held + len(part) > room:
            raise Refused("busy", "Too much is being sent at once: try again.", 503, retry=5)
        body += part
        self._held += len(part)

    def _knows(self, scope: Scope) -> set[str]:
        """Return the roles of which a cookie is sent that this server has made."""
        cookies, sessions = HTTPConnection(scope).cookies, self._context.auth.sessions
        cookie = self._context.cookie_of
        return {role for role in (DESK, WORKER) if sessions.open(role, cookie(cookies, role))}


def _too_large(most: int) -> Refused:
    return Refused("too-large", f"A request has {most} bytes at most.", 413)


class _Replay:
    """Gives a body that was read once more, then listens on."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


# --------------------------------------------------------------------------------------------------
# Headers of every response


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; object-src 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""Nothing but this server's own files: no script in a page, nothing of third parties."""
UNUSED = (
    "accelerometer", "camera", "display-capture", "geolocation", "gyroscope", "magnetometer",
    "microphone", "midi", "payment", "usb",
)  # fmt: skip
ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": ", ".join(f"{name}=()" for name in UNUSED),
}
DEFAULT = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store"}
"""What a route may say otherwise: files that never change, a report that holds its own styles."""
YEAR = 31_536_000


class Headers:
    """Sets the headers."""

    def __init__(self, app: ASGIApp, *, secure: bool) -> None:
        self._app = app
        strict = (
            {"Strict-Transport-Security": f"max-age={YEAR}; includeSubDomains"} if secure else {}
        )
        self._always = {**ALWAYS, **strict}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def add(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(self._always)
                for name, value in DEFAULT.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, add)


# --------------------------------------------------------------------------------------------------
# Error handlers: JSON for programs, a page for people; error messages reveal no internals


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
    await asyncio.sleep(PAUSE if refused.retry else 0)
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
    faults.error("%s", told, extra={"fields": fields})


def route_of(scope: Any) -> str:
    """Return the pattern of the route, which holds no token as the path may."""
    return str(getattr(scope.get("route"), "path", "(no route)"))


def _places(error: RequestValidationError) -> str:
    """Return where a body is wrong, without what stood there."""
    told = [
        f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors()[:5]
    ]
    return "; ".join(told)
