"""A server in a process of its own lets requests end, and closes what is open."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import urllib.request

import pytest

from goldspan.errors import InputError
from goldspan.server import running
from goldspan.server.running import check_exposure, listen
from goldspan.server.security.connections import BoundedProtocol

SERVER = """
import asyncio
from goldspan.server.running import listen, serve

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
