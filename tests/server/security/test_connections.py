"""A connection that sends too much before it asks anything, or nothing at all, is closed."""

from __future__ import annotations

import asyncio

import pytest
import uvicorn
from uvicorn.server import ServerState

from goldspan.server.security import connections
from goldspan.server.security.connections import AHEAD, MOST, SLICE, BoundedProtocol
from server.loops import run_loop

ASK = b"POST / HTTP/1.1\r\nHost: x\r\n"
LINE = b"X: " + b"a" * 1_000 + b"\r\n"
CHUNKED = ASK + b"Transfer-Encoding: chunked\r\n\r\n"


async def app(scope, receive, send):
    """Answer how long the body and the headers were."""
    n_bytes, more = 0, True
    while more:
        message = await receive()
        n_bytes, more = n_bytes + len(message.get("body", b"")), message.get("more_body", False)
    n_headers = sum(len(name) + len(value) for name, value in scope["headers"])
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": f"{n_bytes} {n_headers}".encode()})


class Wire(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self):
        super().__init__()
        self.said, self.closed = b"", False

    def write(self, data):
        self.said += data

    def close(self):
        self.closed = True

    def is_closing(self):
        return self.closed

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass


def talk(*parts, seconds=0.0):
    """Give what a server says to parts that come one after the other, and whether it closes."""

    async def run():
        config = uvicorn.Config(app, lifespan="off", log_config=None, ws="none")
        wire, protocol = Wire(), BoundedProtocol(config, ServerState(), {})
        protocol.connection_made(wire)
        for part in parts:
            if not wire.closed:
                protocol.data_received(part)
                await asyncio.sleep(0)
        for _ in range(9):
            await asyncio.sleep(seconds / 9)
        found = wire.said, wire.closed
        protocol.connection_lost(None)
        return found

    return run_loop(run)


def refused(found):
    said, closed = found
    return closed and said.startswith(b"HTTP/1.1 431 ") and said.count(b"HTTP/1.1") == 1


def test_a_head_and_a_body_of_every_size_that_is_allowed_are_read():
    head, body = ASK + b"Content-Length: 300000\r\n" + LINE * 60 + b"\r\n", b"a" * 300_000
    for parts in ([head + body], [head, body], [*head.splitlines(keepends=True), body]):
        said, closed = talk(*parts)
        assert said.startswith(b"HTTP/1.1 200 "), said
        assert b"300000 " in said
        assert not closed


@pytest.mark.parametrize("size", [1_000, 50_000, 10_000_000])
@pytest.mark.parametrize("begin", [ASK + b"X: ", b"GET /", ASK])
def test_a_head_that_is_too_long_or_never_ends_is_refused(begin, size):
    line = LINE if begin == ASK else b"a" * size
    parts = [begin, *[line] * (2 * MOST // len(line) + 1)]
    assert refused(talk(*parts))
    assert refused(talk(b"".join(parts)))


def test_so_is_a_cookie_of_a_megabyte_in_a_head_that_is_whole():
    assert refused(talk(ASK + b"Cookie: a=" + b"a" * 1_000_000 + b"\r\n\r\n"))


def test_lines_before_a_head_are_bounded_too():
    assert refused(talk(*[b"\r\n" * 4_000] * 20))


@pytest.mark.parametrize("begin", [b"0\r\nX: ", b"1;x="], ids=["a trailer", "words of a part"])
def test_what_stands_around_the_parts_of_a_body_is_bounded(begin):
    said, closed = talk(CHUNKED, begin, *[b"a" * SLICE] * 6)
    assert closed
    assert b"200" not in said


def test_a_body_in_many_small_parts_is_read():
    said, closed = talk(CHUNKED, *[b"5\r\naaaaa\r\n"] * 20_000, b"0\r\n\r\n")
    assert b"100000 " in said
    assert not closed


def test_many_requests_at_once_are_bounded():
    assert talk(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * (AHEAD + 2))[1]
    said, closed = talk(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 5, seconds=0.02)
    assert said.count(b"200 OK") == 5
    assert not closed


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [b"\r\n"],
        [ASK],
        [ASK + b"\r\n", b"\r\n"],
        [ASK + b"\r\n", ASK],
        [ASK + b"Content-Length: 0\r\n\r\n", b"\r\n"],
    ],
    ids=str,
)
def test_a_connection_on_which_no_head_comes_is_closed(monkeypatch, parts):
    monkeypatch.setattr(connections, "SECONDS", 0.02)
    said, closed = talk(*parts, seconds=0.1)
    assert closed
    assert said.count(b"200 OK") == (len(parts) == 2)


def test_a_connection_on_which_requests_come_and_go_is_not(monkeypatch):
    monkeypatch.setattr(connections, "SECONDS", 0.02)
    assert not talk(ASK + b"\r\n", seconds=0.1)[1]
    assert not talk(ASK + b"Content-Length: 9\r\n\r\n", seconds=0.1)[1]


def test_silent_connections_keep_nobody_out():
    async def run():
        config = uvicorn.Config(
            app, lifespan="off", log_config=None, ws="none", limit_concurrency=4
        )
        state, wires, found = ServerState(), [], []
        for n in range(12):
            wires.append(Wire())
            protocol = BoundedProtocol(config, state, {})
            found.append(protocol)
            protocol.connection_made(wires[-1])
            if n in {0, 11}:  # who asks, and is answered while the others are silent
                protocol.data_received(ASK + b"\r\n" if n else CHUNKED)
        await asyncio.sleep(0.05)
        found[0].data_received(b"0\r\n\r\n")
        await asyncio.sleep(0.05)
        closed = [wire.closed for wire in wires]
        for protocol in found:
            protocol.connection_lost(None)
        return wires[0].said, wires[11].said, closed

    first, last, closed = run_loop(run)
    assert first.startswith(b"HTTP/1.1 200 ")
    assert last.startswith(b"HTTP/1.1 200 ")
    assert sum(closed) == 9
