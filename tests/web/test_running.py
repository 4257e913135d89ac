"""A server in a process of its own lets requests end, and closes what is open."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from contextlib import contextmanager, suppress

import pytest

from goldspan.errors import InputError
from goldspan.web import running
from goldspan.web.running import check_exposure, listen
from goldspan.web.security.connections import BoundedProtocol
from web.loops import run_loop

SERVER = """
import asyncio, sys
from goldspan.web import running
from goldspan.web.running import listen, serve

if len(sys.argv) > 1:
    running.MOST_CONNECTIONS = int(sys.argv[1])

async def app(scope, receive, send):
    await asyncio.sleep(1 if scope["path"] == "/slow" else 0)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": scope["client"][0].encode()})

with listen("127.0.0.1", 0) as listening:
    print(listening.getsockname()[1], flush=True)
    try:
        serve(app, listening)
    except KeyboardInterrupt:
        print("interrupted")
    finally:
        print("closed")
"""


TORTURE = int(os.environ.get("GOLDSPAN_TORTURE") or "0")
FLOODS = [(2_000, 2_300), (2_000, 6_000)] if TORTURE else [(20, 60)]
"""Places of a server, and connections that ask at once."""


LONG = b"GET / HTTP/1.1\r\nHost: x\r\nCookie: a=" + b"a" * 100_000 + b"\r\n\r\n"


def reply_to(words, url):
    """Send a request as it is, and give the beginning of the answer; none if it is cut off."""
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as caller:
        try:
            caller.sendall(words)
            return caller.recv(12)
        except OSError:
            return b""


def test_where_httptools_is_missing_uvicorn_chooses_what_reads_requests(monkeypatch):
    assert running._protocol() is BoundedProtocol
    monkeypatch.setattr(running, "find_spec", lambda _: None)
    assert running._protocol() == "auto"


def test_a_reply_is_sent_without_waiting_for_its_end():
    with listen("127.0.0.1", 0) as listening:
        caller = socket.create_connection(listening.getsockname())
        accepted, _ = listening.accept()
        with caller, accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_what_is_going_on_when_it_is_told_to_stop(number):
    words = [sys.executable, "-c", SERVER]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        url = f"http://127.0.0.1:{int(process.stdout.readline())}"
        asked = urllib.request.Request(url, headers={"X-Forwarded-For": "203.0.113.9"})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            assert answer.read() == b"203.0.113.9"
            assert "server" not in {name.lower() for name in answer.headers}
        assert reply_to(LONG, url) in {b"HTTP/1.1 431", b""}
        slow = []
        ask = threading.Thread(
            target=lambda: slow.append(urllib.request.urlopen(f"{url}/slow", timeout=30).read())
        )
        ask.start()
        threading.Event().wait(0.5)
        process.send_signal(number)
        ask.join()
        said, log = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert slow == [b"127.0.0.1"]
    assert said == "interrupted\nclosed\n"
    assert log == ""


@contextmanager
def served(n_places):
    """Run a server with so many places; give its port."""
    words = [sys.executable, "-c", SERVER, str(n_places)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def _files():
    """Let this process open as many files as it may."""
    there = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (there[1], there[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, there)


async def flood(port, n_callers, *, at_once):
    """Return what became of callers who all ask at the same time, some of whom send a body."""
    go = asyncio.Event()

    async def call(n):
        if at_once:
            await go.wait()
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await go.wait()
            if n % 2:
                writer.write(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
            else:
                writer.write(b"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
                await asyncio.sleep(0.01)
                writer.write(b"123456789")
            said = await reader.readuntil(b"\r\n\r\n")
            writer.close()
        except (OSError, asyncio.IncompleteReadError) as error:
            return type(error).__name__
        return said.split()[1].decode() + " retry" * (b"\r\nretry-after: " in said.lower())

    calls = [asyncio.create_task(call(n)) for n in range(n_callers)]
    if not at_once:
        await asyncio.sleep(0.5)
    go.set()
    async with asyncio.timeout(300):
        return Counter(await asyncio.gather(*calls))


@pytest.mark.torture(
    "more connections than there are places ask at once",
    "each gets its answer, or 503 with Retry-After",
)
@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize("at_once", [True, False], ids=["as they come", "when all are there"])
@pytest.mark.parametrize(("n_places", "n_callers"), FLOODS)
def test_everybody_who_asks_is_answered_or_told_503(n_places, n_callers, at_once, tortured):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < n_callers + 4 * n_places:
        pytest.skip(f"this system allows {hard} open files")
    with served(n_places) as port:
        told = run_loop(lambda: flood(port, n_callers, at_once=at_once))
        tortured(n_callers)
        assert set(told) <= {"200", "503 retry"}
        assert told["200"] >= n_places
        again = run_loop(lambda: flood(port, 3, at_once=True))
        assert again == {"200": 3}


@pytest.mark.torture(
    "connections stay silent, or send their request byte by byte",
    "they keep nobody out",
)
@pytest.mark.usefixtures("_files")
def test_slow_callers_keep_nobody_out(tortured):
    n_places = 2_000 if TORTURE else 20

    async def hold(port):
        """Hold more connections than there are places, and drip bytes on them; then ask."""
        slow = []
        for n in range(n_places + n_places // 2):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            slow.append(writer)
            if n % 2:
                writer.write(b"GET / HTTP/1.1\r\nX: ")
        told = Counter()
        for _ in range(5):
            for writer in slow[1::2]:
                with suppress(OSError):
                    writer.write(b"a")
            told += await flood(port, 10, at_once=True)
        for writer in slow:
            writer.close()
        tortured(len(slow))
        return told

    with served(n_places) as port:
        assert run_loop(hold, port) == {"200": 50}


@pytest.mark.parametrize(
    ("soft", "hard", "places", "raised"),
    [
        (1_024, 1_000_000, 2_000, 8_200),
        (1_024, 4_200, 1_000, 4_200),
        (100_000, 100_000, 2_000, None),
        (256, 256, 14, None),
        (1_024, resource.RLIM_INFINITY, 2_000, 8_200),
    ],
)
def test_there_are_as_many_places_as_files_may_be_open(monkeypatch, soft, hard, places, raised):
    limits = {"now": (soft, hard)}
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits["now"])
    monkeypatch.setattr(resource, "setrlimit", lambda _, wanted: limits.update(now=wanted))
    assert running.make_places() == places
    assert limits["now"] == (raised or soft, hard)


@pytest.mark.parametrize(
    ("host", "url", "fine"),
    [
        ("127.0.0.1", "http://127.0.0.1:8080", True),
        ("127.0.0.1", "http://localhost:8080", True),
        ("::1", "http://[::1]:8080", True),
        ("127.0.0.1", "https://labels.example.org", True),
        ("0.0.0.0", "https://labels.example.org", True),
        ("127.0.0.1", "http://labels.example.org", False),
        ("0.0.0.0", "http://127.0.0.1:8080", False),
        ("192.0.2.1", "http://192.0.2.1:8080", False),
    ],
)
def test_other_machines_come_by_https_alone(host, url, fine):
    if fine:
        check_exposure(host, url)
    else:
        with pytest.raises(InputError, match="a proxy with TLS"):
            check_exposure(host, url)


@pytest.mark.parametrize(("host", "port"), [("192.0.2.1", 0), ("no.such.invalid", 0), ("::x", 0)])
def test_an_address_that_is_not_this_machines_is_refused(host, port):
    with pytest.raises(InputError, match="cannot listen"):
        listen(host, port)
