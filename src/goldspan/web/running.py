"""Running an application in this process until Ctrl-C, on a socket that is opened first."""

from __future__ import annotations

import errno
import gc
import logging
import signal
import socket
import sys
import threading
from asyncio import CancelledError
from collections.abc import Sequence
from ipaddress import ip_network
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from anyio.to_thread import current_default_thread_limiter

from goldspan.errors import InputError
from goldspan.web.settings import LOOPBACK

LEAVING = 5
"""Seconds that requests get to end after Ctrl-C."""
MOST_CONNECTIONS = 2_000
"""Connections beside which no other is served: the next request is answered with 503."""
OTHER_FILES = 200
"""Files that the rest of the server may have open."""
THREADS = 16
"""Threads in which routes run. A request takes some milliseconds, and whoever writes waits for its
turn in the store: more threads would only wait there, each with a heap and a connection's cache."""
HERE = ("127.0.0.1", "::1")
"""A proxy on this machine, which is believed without being named."""
WAITING = 2_048
"""Connections that wait to be accepted."""


def listen(host: str, port: int) -> socket.socket:
    """Open the socket of a server; port 0 is any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=WAITING)
    except (OSError, OverflowError) as error:
        number = getattr(error, "errno", None)
        if number == errno.EADDRINUSE:
            told = f"port {port} is taken, perhaps by another goldspan: choose one with --port"
        elif number == errno.EACCES:
            told = f"port {port} may not be used by this user: choose one above 1023 with --port"
        else:
            told = f"cannot listen on {host}, port {port}: {error}"
        raise InputError(told) from None
    # Connections inherit it. Head and body of a reply are two writes, and without it the second
    # waits 40 ms until the browser has acknowledged the first: asyncio sets it only on sockets
    # that name their protocol, which those of `create_server` do not.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def check_exposure(host: str, public_url: str) -> None:
    """Reject to be seen by other machines without HTTPS."""
    url = urlsplit(public_url)
    alone = host in LOOPBACK and url.hostname in LOOPBACK
    if not alone and url.scheme != "https":
        raise InputError(
            f"{host} with {public_url} sends passwords, cookies and answers over the "
            "network for all to read: put a proxy with TLS before goldspan and give its address, "
            "--public-url https://…; in a network that you trust alone, add --insecure"
        )


def read_proxies(given: str | None) -> tuple[str, ...]:
    """Return the addresses and networks of proxies that are trusted; by default this machine."""
    if given is None:
        return HERE
    found = []
    for word in (one.strip() for one in given.split(",")):
        try:
            found.append(str(ip_network(word)))
        except ValueError as error:
            raise InputError(
                f"--trusted-proxies: {word!r} is not the address of a proxy ({error}): give "
                "addresses or networks such as 10.0.0.7 or 172.30.0.0/24, separated by commas"
            ) from None
    return tuple(found)


def serve(app: Any, listening: socket.socket, proxies: Sequence[str] = HERE) -> None:
    """Serve until the process is told to stop (SIGINT or SIGTERM), then end what is going on.

    Then KeyboardInterrupt is raised; it returns when another server has taken over the campaign.
    `proxies` are addresses or networks that are believed in X-Forwarded-For.
    """
    # What is there now – modules, the pool – stays: looking through it for garbage stops all
    # threads for a tenth of a second and more.
    gc.collect()
    gc.freeze()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # what is open is closed too
    logging.getLogger("uvicorn.error").addFilter(is_failure)
    # h11 reads heads of 64 KiB at most; httptools, which is faster, has no such limit.
    config = uvicorn.Config(
        app, http="h11", log_config=None, access_log=False, server_header=False, date_header=True,
        ws="none", lifespan="off", timeout_graceful_shutdown=LEAVING, timeout_keep_alive=30,
        limit_concurrency=most_connections(), backlog=WAITING, proxy_headers=True,
        forwarded_allow_ips=list(proxies),
    )  # fmt: skip
    server = _Server(config)
    server.run(sockets=[listening])
    if server.should_exit:  # uvicorn does not raise where it cut off requests
        raise KeyboardInterrupt


def is_failure(record: logging.LogRecord) -> bool:
    """Return whether a line is about more than requests that the end of the server cut off."""
    kind = record.exc_info[0] if record.exc_info else None
    return not (kind and issubclass(kind, CancelledError)) and "running task" not in str(record.msg)


def most_connections() -> int:
    """Return how many connections are served, after raising the limit of open files for them.

    The limit that a shell begins with is often 1,024. Connections that are told 503 need open files
    too: a server that accepts more than it may open can no longer open its store.
    """
    if sys.platform == "win32":  # pragma: no cover - the tests run elsewhere
        return MOST_CONNECTIONS
    import resource

    wanted = 4 * MOST_CONNECTIONS + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    there = resource.RLIM_INFINITY
    if soft != there and soft < wanted:
        soft = wanted if hard == there else min(wanted, hard)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        except (OSError, ValueError):  # the system allows fewer than it says
            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == there or soft >= wanted:
        return MOST_CONNECTIONS
    return max((soft - OTHER_FILES) // 4, 10)


class _Server(uvicorn.Server):
    """Tells the application that it stops: an open desk's stream would keep it waiting.

    It also stops when another server has taken over the campaign.
    """

    @property
    def _context(self) -> Any:
        return getattr(getattr(self.config.app, "state", None), "context", None)

    async def on_tick(self, counter: int) -> bool:
        """Return whether to stop; called ten times a second."""
        context = self._context
        is_lost = context is not None and context.held.lost is not None
        return is_lost or await super().on_tick(counter)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Bound the threads of routes, then begin."""
        current_default_thread_limiter().total_tokens = THREADS
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Tell, then let requests end."""
        if self._context is not None:
            self._context.leaving.set()
        await super().shutdown(sockets)
