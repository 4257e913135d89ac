"""Middleware: plain ASGI, one small class per rule.

From the outside in: path, request log, headers, faults, then host, origin, rate limit and size of
the body.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time

from starlette.datastructures import Headers as Got
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from goldspan.web.dependencies import ServerContext
from goldspan.web.error_handlers import log_fault, route_of, tell, unavailable
from goldspan.web.errors import Refused
from goldspan.web.logs import request_id
from goldspan.web.metrics import Metrics
from goldspan.web.pages import MOUNT
from goldspan.web.security.account import address_name
from goldspan.web.security.auth import SAFE
from goldspan.web.security.sessions import DESK, WORKER

log = logging.getLogger("goldspan.web.requests")
security = logging.getLogger("goldspan.web.security")
HEALTH = "/healthz"
"""Asked from within a container, by another name than the server's own."""
REFUSED = 400
"""Statuses from here on say that a request was refused, or that something broke."""


class Mounted:
    """Takes the path of the campaign off the path of a request."""

    def __init__(self, app: ASGIApp, *, prefix: str) -> None:
        self._app, self._prefix = app, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, if the request is for this campaign."""
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
        """Answer, then log and count."""
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
        self._app, self._house = app, context
        self._held = 0
        """Bytes of bodies, of all requests that are being read or answered."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
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
        named = len(host) == 1 and host[0].lower() in self._house.settings.hosts
        if not named and scope["path"] != HEALTH:
            raise Refused("host", "This server has another name: use its own address.", 400)
        if not self._house.held.is_sure:
            raise unavailable(lost=self._house.held.lost is not None)
        address = address_name(scope["client"][0] if scope.get("client") else None)
        self._house.buckets["address"].take(address)
        if scope["method"] in SAFE:
            return
        origin = headers.get("origin")
        foreign = origin is not None and origin.lower() not in self._house.settings.origins
        if foreign or headers.get("sec-fetch-site") in {"cross-site", "same-site"}:
            security.warning("refused: a change from a foreign page, by %s", address)
            raise Refused("origin", "This came from another site.", 403)

    async def _read(self, scope: Scope, receive: Receive, body: bytearray) -> bool:
        """Read a body whole; False if the client went away."""
        settings = self._house.settings
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
        cookies, sessions = HTTPConnection(scope).cookies, self._house.auth.sessions
        cookie = self._house.cookie_of
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
