"""What a connection may send before a request is known, and how many connections there may be.

The server keeps the head of a request – its first line and headers – until it is whole, and only
then is anybody asked anything. uvicorn bounds it where it reads requests with h11, and not where it
does with httptools, which is faster: so it is bounded here.

So many connections have a place. When all places are taken, the connection that has been silent for
longest makes room for the next one: whoever opens many and asks nothing keeps nobody out. When none
is silent, the next one is told 503 as soon as its request is there. Whoever has to go is told so,
with `Retry-After`, and has a moment to read it before the connection is closed: a connection on
which something unread has arrived is otherwise reset, and the reply is lost.
"""

from __future__ import annotations

import json
import selectors
from asyncio import TimerHandle, Transport
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

MOST = 64 * 1024
"""Bytes of a head, and of what stands between and behind the parts of a body."""
SECONDS = 10.0
"""How long a head may take to come, from its first byte or the opening of the connection."""
AHEAD = 16
"""Requests that may be sent before the first is answered."""
SLICE = 16 * 1024
"""Bytes that are read at once: by so many a head may be longer than it should."""
RETRY = 5
"""Seconds after which one should try again who found no place."""
LINGER = 3.0
"""Seconds for which a connection that was sent away stays open, so that the reply is read."""
OUTSIDE = 2
"""Connections without a place, as many times as there are places: they are waited for until their
head is here, or the reply read."""
LOOKS = 16
"""Connections that are looked at in search of a silent one."""
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\ncache-control: no-store\r\nconnection: close\r\n\r\n"
)


_HEAD = (
    "HTTP/1.1 503 Service Unavailable\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n"
    "retry-after: {retry}\r\ncache-control: no-store\r\nx-content-type-options: nosniff\r\n"
    "x-frame-options: DENY\r\nreferrer-policy: no-referrer\r\n"
    "content-security-policy: default-src 'none'\r\nconnection: close\r\n\r\n"
)
_PAGE = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">{refresh}<title>Busy</title></head>'
    "<body><h1>Busy</h1><p>{words}</p></body></html>"
)


class Places:
    """Which connections of a server have a place, and which wait outside."""

    def __init__(self) -> None:
        self.quiet: dict[BoundedProtocol, None] = {}
        self.outside: dict[BoundedProtocol, None] = {}

    def silent(self) -> BoundedProtocol | None:
        """Return the connection that has been silent for longest, None if there is none.

        One whose request has arrived and was not read yet is not silent: when many ask at once,
        the server accepts all of them before it reads anything.
        """
        for one in list(islice(self.quiet, LOOKS)):
            if not one.has_unread():
                return one
            del self.quiet[one]
            self.quiet[one] = None
        return None


_PLACES: WeakKeyDictionary[ServerState, Places] = WeakKeyDictionary()


class BoundedProtocol(HttpToolsProtocol):
    """Reads requests as uvicorn does, and closes connections that send too much or nothing."""

    def __init__(self, config: Config, server_state: ServerState, *args: Any, **more: Any) -> None:
        super().__init__(config, server_state, *args, **more)
        self._unread = 0
        """Bytes since something was last made of them."""
        self._patience: TimerHandle | None = None
        # uvicorn would count all connections, and tell 503 without Retry-After.
        self._most, self.limit_concurrency = self.limit_concurrency, None
        self._places = _PLACES.setdefault(server_state, Places())
        self.is_gone = False
        """Whether it was told that there is no place: what comes is not read any more."""

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Take a place, if need be that of a silent connection, and wait for the first head."""
        super().connection_made(transport)
        if self._is_full():
            silent = self._places.silent()
            if silent is not None:
                silent.send_away()
        if self._is_full():
            self._step_outside()
        else:
            self._places.quiet[self] = None
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        self._places.quiet.pop(self, None)
        self._places.outside.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read what came, bit by bit, until it is too much; nothing of who has no place."""
        if self.is_gone:
            return
        for start in range(0, len(data), SLICE):
            part = data[start : start + SLICE]
            self._unread += len(part)
            super().data_received(part)
            if self.is_gone or self.transport.is_closing():
                return
            if self._unread > MOST or len(self.pipeline) > AHEAD:
                self._refuse()
                return
        if self._patience is None and self.is_quiet():  # the next head, or its beginning
            self._wait()

    def on_message_begin(self) -> None:
        """Count anew."""
        self._unread = 0
        if not self.is_gone:
            super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Count anew; the head was in time, and is answered if there is a place."""
        self._unread = 0
        if self.is_gone:
            return
        self._stop_waiting()
        if self in self._places.outside:
            if self._is_full(1):
                self.send_away(self.parser.get_method().decode("ascii"))
                return
            del self._places.outside[self]
            self.connections.add(self)
        self._places.quiet.pop(self, None)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Count anew: bodies are bounded where it is known who sends them."""
        self._unread = 0
        if not self.is_gone:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Count anew."""
        self._unread = 0
        if not self.is_gone:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Be silent again, unless the next request is here already."""
        super().on_response_complete()
        if self.is_quiet() and not self.is_gone:
            self._places.quiet[self] = None

    def has_unread(self) -> bool:
        """Whether something has arrived that was not read yet."""
        connection = self.transport.get_extra_info("socket")
        if connection is None:
            return False
        with selectors.DefaultSelector() as ready:
            try:
                ready.register(connection, selectors.EVENT_READ)
            except (KeyError, OSError, ValueError):  # it was closed
                return False
            return bool(ready.select(0))

    def send_away(self, method: str = "GET") -> None:
        """Tell that there is no place, and close when that was read, or after a moment."""
        self.is_gone = True
        self._stop_waiting()
        self._unset_keepalive_if_required()
        self._places.quiet.pop(self, None)
        self._step_outside()
        if self.transport.is_closing():
            return
        self.transport.write(_busy(getattr(self, "url", b""), method))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self._patience = self.loop.call_later(LINGER, self.transport.close)

    def _is_full(self, more: int = 0) -> bool:
        return self._most is not None and len(self.connections) + more > self._most

    def _step_outside(self) -> None:
        """Have no place; where too many have none, one is closed, if need be without a reply."""
        self.connections.discard(self)
        outside = self._places.outside
        outside[self] = None
        if len(outside) > OUTSIDE * (self._most or 0):
            first = list(islice(outside, LOOKS))
            closed = next((one for one in first if one.is_gone), first[0])
            del outside[closed]
            closed.transport.close()

    def is_quiet(self) -> bool:
        """Whether no request is being read or answered: what comes is a head."""
        return self.cycle is None or self.cycle.response_complete

    def _wait(self) -> None:
        self._patience = self.loop.call_later(SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _refuse(self) -> None:
        """Close; to whom nothing is being answered, say why."""
        if self.is_quiet():
            self.transport.write(_TOO_LARGE)
        self.transport.close()


def _busy(url: bytes, method: str) -> bytes:
    """Return the reply to whoever has no place: JSON to programs, a page to people."""
    words = f"The server has no place left at the moment: try again in {RETRY} seconds."
    if url.startswith(b"/api/"):
        kind = "application/json"
        body = json.dumps({"error": {"code": "busy", "message": words}})
    elif method in {"GET", "HEAD"}:
        kind = "text/html; charset=utf-8"
        refresh = f'<meta http-equiv="refresh" content="{RETRY}">'
        body = _PAGE.format(refresh=refresh, words=f"{words} This page does so by itself.")
    else:
        kind = "text/html; charset=utf-8"
        body = _PAGE.format(refresh="", words=f"{words} Go back, and send it again.")
    head = _HEAD.format(kind=kind, length=len(body), retry=RETRY)
    return (head + ("" if method == "HEAD" else body)).encode("ascii")
