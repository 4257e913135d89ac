"""What every request passes before a route sees it: plain ASGI, one small class per rule.

From the outside: the log, the headers, faults, the host and the origin, the rate of an address, the
size of the body.
"""

from __future__ import annotations

import asyncio
import logging
import time

from starlette.datastructures import Headers as Got
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from karat.server.answers import log_fault, route_of, tell
from karat.server.errors import Refused
from karat.server.house import House
from karat.server.security.csrf import SAFE
from karat.server.security.limits import address_name

log = logging.getLogger("karat.server.requests")
security = logging.getLogger("karat.server.security")


class Log:
    """Writes a line per request: method, the route's pattern, status, milliseconds.

    Neither the address nor the query, no cookie and no body: they hold tokens and answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, then write."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin, status = time.perf_counter(), 0

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        await self._app(scope, receive, watch)
        took = 1000 * (time.perf_counter() - begin)
        log.info("%s %s %d %.0f ms", scope["method"], route_of(scope), status, took)


class Faults:
    """Answers 500 where something broke, and says nothing of it but in the log."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

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
            log_fault(f"{scope['method']} {route_of(scope)}", error)
            if begun:
                raise
            broken = Refused("fault", "Something broke here. It was written down.", 500)
            await tell(scope["path"], broken)(scope, receive, send)


class Gate:
    """Refuses another host's name, requests of foreign pages, too many requests, large bodies.

    Args:
        app: What answers.
        house: Its settings and buckets.
    """

    def __init__(self, app: ASGIApp, *, house: House) -> None:
        self._app, self._house = app, house

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
        if scope["type"] == "websocket":  # there is none
            await send({"type": "websocket.close", "code": 1008, "reason": ""})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            self._check(scope, Got(scope=scope))
            body = await self._body(scope, receive)
        except Refused as refused:
            await tell(scope["path"], refused)(scope, receive, send)
            return
        if body is not None:
            await self._app(scope, _Replay(body, receive), send)

    def _check(self, scope: Scope, headers: Got) -> None:
        host = headers.getlist("host")
        if len(host) != 1 or host[0].lower() not in self._house.settings.hosts:
            raise Refused("host", "This server has another name: use its own address.", 400)
        address = address_name(scope["client"][0] if scope.get("client") else None)
        self._house.buckets["address"].take(address)
        if scope["method"] in SAFE:
            return
        origin = headers.get("origin")
        foreign = origin is not None and origin.lower() not in self._house.settings.origins
        if foreign or headers.get("sec-fetch-site") in {"cross-site", "same-site"}:
            security.warning("refused: a change from a foreign page, by %s", address)
            raise Refused("origin", "This came from another site.", 403)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Read the body whole; None if the client went away."""
        settings = self._house.settings
        most = settings.desk_body if scope["path"].startswith("/api/desk/") else settings.body
        too_large = Refused("too-large", f"A request has {most} bytes at most.", 413)
        length = Got(scope=scope).get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length[:20]) > most:
            raise too_large
        found = bytearray()
        try:
            async with asyncio.timeout(settings.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    found += message.get("body", b"")
                    if len(found) > most:
                        raise too_large
                    if not message.get("more_body", False):
                        return bytes(found)
        except TimeoutError:
            raise Refused("slow", "The request took too long to come.", 408) from None


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
