"""A server in a process of its own lets requests end, and closes what is open."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from asyncio import CancelledError
from collections import Counter
from contextlib import contextmanager

import pytest

from goldspan.errors import InputError
from goldspan.web import running
from goldspan.web.running import check_exposure, is_failure, listen
from web.loops import run_loop

SERVER = """
import asyncio, sys
from goldspan.web import running
from goldspan.web.running import listen, read_proxies, serve

options = dict(word.split("=") for word in sys.argv[1:])
running.MOST_CONNECTIONS = int(options.get("most", running.MOST_CONNECTIONS))

async def app(scope, receive, send):
    await asyncio.sleep(1 if scope["path"] == "/slow" else 0)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": scope["client"][0].encode()})

with listen("127.0.0.1", 0) as listening:
    print(listening.getsockname()[1], flush=True)
    try:
        serve(app, listening, read_proxies(options.get("trusted")))
    except KeyboardInterrupt:
        print("interrupted")
    finally:
        print("closed")
"""


TORTURE = bool(os.environ.get("GOLDSPAN_TORTURE"))


LONG = b"GET / HTTP/1.1\r\nHost: x\r\nCookie: a=" + b"a" * 1_000_000 + b"\r\n\r\n"


def reply_to(words, url):
    """Send a request as it is, and give the beginning of the answer; none if it is cut off."""
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as caller:
        try:
            caller.sendall(words)
            return caller.recv(12)
        except OSError:
            return b""


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
        assert reply_to(LONG, url) in {b"HTTP/1.1 400", b""}
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
    assert log == "Invalid HTTP request received.\n"  # of uvicorn, about the long head


@contextmanager
def served(*options):
    """Run a server with options such as "most=20"; give its port."""
    words = [sys.executable, "-c", SERVER, *options]
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


async def ask(port, n_callers):
    """Return what became of callers who all ask at the same time, some of whom send a body."""

    async def call(n):
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            if n % 2:
                writer.write(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
            else:
                head = b"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"
                writer.write(head + b"123456789")
            said = await reader.readuntil(b"\r\n\r\n")
            writer.close()
        except (OSError, asyncio.IncompleteReadError) as error:
            return type(error).__name__
        return said.split()[1].decode()

    async with asyncio.timeout(300):
        return Counter(await asyncio.gather(*map(call, range(n_callers))))


@pytest.mark.torture(
    "more connections than are served ask at once",
    "each gets its answer or 503, and afterwards all are answered again",
)
@pytest.mark.usefixtures("_files")
def test_more_callers_than_are_served_are_told_503(tortured):
    most, n_callers = (2_000, 4_000) if TORTURE else (20, 60)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < n_callers + 4 * most:
        pytest.skip(f"this system allows {hard} open files")
    with served(f"most={most}") as port:
        told = run_loop(ask, port, n_callers)
        tortured(n_callers)
        assert told["503"]
        assert told["200"] + told["503"] == n_callers
        assert run_loop(ask, port, 3) == {"200": 3}


@pytest.mark.torture(
    "connections stay silent, or send their request byte by byte", "others are answered meanwhile"
)
@pytest.mark.usefixtures("_files")
def test_a_hundred_slow_heads_keep_nobody_out(tortured):
    n_slow = 1_500 if TORTURE else 100

    async def hold(port):
        """Hold connections and drip bytes on every second one; others ask meanwhile."""
        slow = []
        for n in range(n_slow):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            slow.append(writer)
            if n % 2:
                writer.write(b"GET / HTTP/1.1\r\nX: ")
        told = Counter()
        for _ in range(5):
            for writer in slow[1::2]:
                writer.write(b"a")
            told += await ask(port, 10)
        for writer in slow:
            writer.close()
        tortured(len(slow))
        return told

    with served("most=2000") as port:
        assert run_loop(hold, port) == {"200": 50}


@pytest.mark.parametrize(
    ("soft", "hard", "most", "raised"),
    [
        (1_024, 1_000_000, 2_000, 8_200),
        (1_024, 4_200, 1_000, 4_200),
        (100_000, 100_000, 2_000, None),
        (256, 256, 14, None),
        (1_024, resource.RLIM_INFINITY, 2_000, 8_200),
    ],
)
def test_as_many_connections_are_served_as_files_may_be_open(monkeypatch, soft, hard, most, raised):
    limits = {"now": (soft, hard)}
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits["now"])
    monkeypatch.setattr(resource, "setrlimit", lambda _, wanted: limits.update(now=wanted))
    assert running.most_connections() == most
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


def test_a_request_that_the_end_cuts_off_leaves_no_error_in_the_log():
    def record(error):
        return logging.LogRecord("x", 40, "", 1, "Exception in ASGI application", (), error)

    assert not is_failure(record((CancelledError, CancelledError(), None)))
    assert is_failure(record((ValueError, ValueError(), None)))
    assert is_failure(record(None))
