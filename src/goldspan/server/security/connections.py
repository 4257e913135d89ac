"""What a connection may send before a request is known: so many bytes, for so long.

The server keeps the head of a request – its first line and headers – until it is whole, and only
then is anybody asked anything. uvicorn bounds it where it reads requests with h11, and not where it
does with httptools, which is faster: so it is bounded here.
"""

from __future__ import annotations

import math
from asyncio import TimerHandle, Transport
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST = 64 * 1024
"""Bytes of a head, and of what stands between and behind the parts of a body."""
SECONDS = 10.0
"""How long a head may take to come, from its first byte or the opening of the connection."""
AHEAD = 16
"""Requests that may be sent before the first is answered."""
SLICE = 16 * 1024
"""Bytes that are read at once: by so many a head may be longer than it should."""
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\ncache-control: no-store\r\nconnection: close\r\n\r\n"
)


class BoundedProtocol(HttpToolsProtocol):
    """Reads requests as uvicorn does, and closes connections that send too much or nothing."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._unread = 0
        """Bytes since something was last made of them."""
        self._patience: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Wait for the first head."""
        super().connection_made(transport)
        self._make_room()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read what came, bit by bit, until it is too much."""
        for start in range(0, len(data), SLICE):
            part = data[start : start + SLICE]
            self._unread += len(part)
            super().data_received(part)
            if self.transport.is_closing():
                return
            if self._unread > MOST or len(self.pipeline) > AHEAD:
                self._refuse()
                return
        if self._patience is None and self.is_quiet():  # the next head, or its beginning
            self._wait()

    def on_message_begin(self) -> None:
        """Count anew."""
        self._unread = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Count anew; the head was in time."""
        self._unread = 0
        self._stop_waiting()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Count anew: bodies are bounded where it is known who sends them."""
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Count anew."""
        self._unread = 0
        super().on_message_complete()

    def _make_room(self) -> None:
        """Close a connection on which nothing is asked, if this one is the last that may be open.

        Else whoever opens many and is silent would keep everybody out.
        """
        if len(self.connections) >= (self.limit_concurrency or math.inf):
            there = (one for one in self.connections if isinstance(one, BoundedProtocol))
            idle = next((one for one in there if one is not self and one.is_quiet()), None)
            if idle is not None:
                self.connections.discard(idle)
                idle.transport.close()

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
