"""A connection that sends too much before it asks anything, or nothing at all, is closed."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest
import uvicorn
from uvicorn.server import ServerState

from goldspan.web.security import connections
from goldspan.web.security.connections import AHEAD, MOST, SLICE, BoundedProtocol
from web.loops import run_loop

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
        self.said, self.closed, self.ended = b"", False, False

    def write(self, data):
        self.said += data

    def close(self):
        self.closed = True

    def is_closing(self):
        return self.closed

    def can_write_eof(self):
        return True

    def write_eof(self):
        self.ended = True

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass


def talk(*parts, seconds=0.0):
    """Return what a server says to parts that come one after the other, and whether it closes."""

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


class Door:
    """A server with few places, and those who come to it.

    Attributes:
        wires: What each connection was told.
        comers: What reads each connection.
    """

    def __init__(self, n_places):
        self.config = uvicorn.Config(
            app, lifespan="off", log_config=None, ws="none", limit_concurrency=n_places
        )
        self.state, self.wires, self.comers = ServerState(), [], []

    def come(self, *parts):
        """Open a connection, and send something on it."""
        self.wires.append(Wire())
        self.comers.append(BoundedProtocol(self.config, self.state, {}))
        self.comers[-1].connection_made(self.wires[-1])
        for part in parts:
            self.comers[-1].data_received(part)

    def leave(self):
        """Close all connections."""
        for comer in self.comers:
            comer.connection_lost(None)

    def told(self):
        """Return the status that each connection was told, 0 for none."""
        return [int(wire.said.split()[1]) if wire.said else 0 for wire in self.wires]


def at_door(n_places, act):
    """Return what a coroutine makes of a door."""

    async def run():
        door = Door(n_places)
        try:
            return await act(door)
        finally:
            door.leave()

    return run_loop(run)


def test_silent_connections_keep_nobody_out():
    async def act(door):
        door.come(CHUNKED)  # it asks, and is answered while the others are silent
        for part in [b""] * 5 + [ASK, b"GET /w", b"\r\n", ASK, b"G"]:
            door.come(part)
        door.come(ASK + b"\r\n")
        await asyncio.sleep(0.05)
        door.comers[0].data_received(b"0\r\n\r\n")
        await asyncio.sleep(0.05)
        return door.told()

    assert at_door(4, act) == [200, *[503] * 8, 0, 0, 200]


def test_of_silent_connections_the_one_that_was_silent_for_longest_makes_room():
    async def act(door):
        for _ in range(3):
            door.come()
        door.comers[0].data_received(ASK + b"\r\n")
        await asyncio.sleep(0.05)  # it was answered, and is silent again
        door.come()
        return door.told()

    assert at_door(3, act) == [200, 503, 0, 0]


def test_who_comes_when_all_places_ask_something_is_told_503_as_soon_as_it_asks():
    async def act(door):
        for _ in range(2):
            door.come(CHUNKED)
        door.come(b"GET /api/work/next HTTP/1.1\r\n")
        before = door.told()
        door.comers[2].data_received(b"Host: x\r\n\r\n")
        door.come(b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", b"123456789")
        door.come(b"GET /label HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
        for comer in door.comers[:2]:
            comer.data_received(b"0\r\n\r\n")
        await asyncio.sleep(0.05)
        return before, door.told(), [wire.said.partition(b"\r\n\r\n") for wire in door.wires[2:]]

    before, told, (api, form, page) = at_door(2, act)
    assert before == [0, 0, 0]
    assert told == [200, 200, 503, 503, 503]
    for head, _, body in (api, form, page):
        lines = dict(line.split(": ") for line in head.decode().split("\r\n")[1:])
        assert lines["retry-after"] == "5"
        assert lines["connection"] == "close"
        assert lines["cache-control"] == "no-store"
        assert int(lines["content-length"]) == len(body)
    assert json.loads(api[2])["error"]["code"] == "busy"
    assert b"Go back" in form[2]
    assert b'http-equiv="refresh" content="5"' in page[2]
    assert b"refresh" not in form[2]


def test_who_waits_outside_takes_a_place_that_has_become_free():
    async def act(door):
        door.come(CHUNKED)
        door.come(b"POST / HTTP/1.1\r\n")
        door.comers[0].connection_lost(None)
        door.comers[1].data_received(b"Host: x\r\n\r\n")
        await asyncio.sleep(0.05)
        first = door.told()
        door.comers[1].data_received(ASK + b"\r\n")
        await asyncio.sleep(0.05)
        return first, door.wires[1].said.count(b"200 OK")

    assert at_door(1, act) == ([0, 200], 2)


def test_who_was_told_503_has_a_moment_to_read_it(monkeypatch):
    monkeypatch.setattr(connections, "LINGER", 0.05)

    async def act(door):
        door.come(CHUNKED)
        door.come(ASK + b"\r\n")
        at_once = door.wires[1].ended, door.wires[1].closed
        await asyncio.sleep(0.2)
        return at_once, door.wires[1].closed

    assert at_door(1, act) == ((True, False), True)


def test_so_many_wait_outside_and_no_more():
    async def act(door):
        door.come(CHUNKED)
        for _ in range(9):
            door.come(b"GET /")
        closed = [wire.closed for wire in door.wires]
        for comer in door.comers[1:3]:
            comer.connection_lost(None)
        return closed, len(door.state.connections)

    assert at_door(1, act) == ([False, *[True] * 7, False, False], 1)


def test_a_connection_whose_request_was_not_read_yet_is_not_silent():
    """Many ask at once: all are accepted before anything is read."""

    async def run():
        go = asyncio.Event()

        async def slow(scope, receive, send):
            await go.wait()
            await app(scope, receive, send)

        config = uvicorn.Config(
            slow, lifespan="off", log_config=None, ws="none", limit_concurrency=2
        )
        config.load()
        state, loop = ServerState(), asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: BoundedProtocol(config, state, {}), "127.0.0.1", 0
        )
        comers = [socket.create_connection(server.sockets[0].getsockname()) for _ in range(4)]
        for comer in comers:
            comer.sendall(ASK + b"\r\n")
        told = [asyncio.create_task(asyncio.to_thread(comer.recv, 12)) for comer in comers]
        while sum(one.done() for one in told) < 2:
            await asyncio.wait(
                [one for one in told if not one.done()], return_when="FIRST_COMPLETED"
            )
        go.set()
        found = [(await one)[9:] for one in told]
        for comer in comers:
            comer.close()
        server.close()
        return found

    assert sorted(run_loop(run)) == [b"200", b"200", b"503", b"503"]
