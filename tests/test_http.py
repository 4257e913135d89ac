"""Replies of servers that mean harm: bounded in memory, and shown without our keys."""

from __future__ import annotations

import base64
import gzip
import io
import socket
import time
import tracemalloc
from contextlib import suppress
from threading import Thread
from urllib.parse import quote

import httpx2
import pytest

from goldspan.http import HIDDEN, ask, without_secret

SECRET = "sk-Proj/4f9Kz+Qw81TyLm"
ALTERED = {
    "as it is": SECRET,
    "in capitals": SECRET.upper(),
    "split": " ".join(SECRET),
    "in two lines": f"{SECRET[:11]}\n{SECRET[11:]}",
    "a part": SECRET[5:16],
    "in a URL": quote(SECRET, safe=""),
    "in a URL, all of it": "".join(f"%{ord(mark):02x}" for mark in SECRET),
    "twice in a URL": quote(quote(SECRET, safe="")),
    "in HTML": "".join(f"&#{ord(mark)};" for mark in SECRET),
    "in Base64": base64.b64encode(SECRET.encode()).decode(),
    "in Base64 after something": base64.b64encode(f"Bearer: {SECRET} ".encode()).decode(),
    "in Base64 for URLs": base64.urlsafe_b64encode(f"me:{SECRET}".encode()).decode(),
    "in hexadecimal": SECRET.encode().hex(":"),
    "backwards": SECRET[::-1],
    "in Base32": base64.b32encode(f"me:{SECRET}".encode()).decode(),
    "in Base32 of hexadecimal order": base64.b32hexencode(SECRET.encode()).decode(),
    "in Base85": base64.b85encode(f"me:{SECRET}".encode()).decode(),
    "in Ascii85": base64.a85encode(SECRET.encode(), adobe=True).decode(),
    "in full-width letters": "".join(chr(ord(mark) + 0xFEE0) for mark in SECRET),
    "with accents": "\u0301".join(SECRET),
    "in a URL of full-width letters": quote("".join(chr(ord(mark) + 0xFEE0) for mark in SECRET)),
    "escaped as in JSON": "".join(f"\\u{ord(mark):04x}" for mark in SECRET),
    "escaped as in Python": "".join(f"\\x{ord(mark):02x}" for mark in SECRET),
}


@pytest.mark.parametrize("how", ALTERED)
def test_a_secret_that_comes_back_is_not_shown(how):
    shown = without_secret(f"Incorrect key {ALTERED[how]} given.", SECRET)
    assert shown == ("Incorrect key *** given." if how == "as it is" else HIDDEN)


@pytest.mark.parametrize("text", ["Incorrect key sk-Pr***TyLm given.", "no such model: proj-4", ""])
def test_other_words_are_shown(text):
    assert without_secret(text, SECRET) == without_secret(text, "EMPTY") == text
    assert without_secret(text, None) == text


def reply(content, packed):
    headers = {"Content-Encoding": packed}
    stream = httpx2.ByteStream(content)
    return httpx2.MockTransport(lambda _: httpx2.Response(200, headers=headers, stream=stream))


BIG = gzip.compress(bytes(50_000_000), 1)


@pytest.mark.parametrize(
    ("content", "packed", "words"),
    [
        (BIG, "gzip", "larger than 1,000,000"),
        (gzip.compress(BIG), "gzip, gzip", "not asked for"),
        (BIG, "br", "not asked for"),
        (bytes(1_000_001), "identity", "larger than 1,000,000"),
        (gzip.compress(b"whole", mtime=0)[:-9], "gzip", "ends in its middle"),
        (b"none", "gzip", "cannot be unpacked"),
        (gzip.compress(b"whole", mtime=0) + b"more", "gzip", "goes on after its end"),
    ],
)
def test_a_reply_takes_no_more_memory_than_it_may(content, packed, words):
    with httpx2.Client(transport=reply(content, packed)) as client:
        tracemalloc.start()
        with pytest.raises(httpx2.DecodingError, match=words):
            ask(client, "GET", "http://a", 1_000_000, 9)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 10_000_000


def test_a_packed_reply_is_read_and_a_slow_one_given_up():
    with httpx2.Client(transport=reply(gzip.compress(b"{}"), "gzip")) as client:
        answer = ask(client, "GET", "http://a", 2, 9)
        assert (answer.content, answer.json(), answer.status_code) == (b"{}", {}, 200)
        with pytest.raises(httpx2.ReadTimeout):
            ask(client, "GET", "http://a", 2, -1)


def test_a_download_that_does_not_end_is_given_up(monkeypatch):
    monkeypatch.setattr("goldspan.http.LONGEST_DOWNLOAD", -1.0)
    headers = {"Content-Disposition": "attachment"}
    answer = httpx2.Response(200, headers=headers, stream=httpx2.ByteStream(b"a"))
    transport = httpx2.MockTransport(lambda _: answer)
    with httpx2.Client(transport=transport) as client, pytest.raises(httpx2.ReadTimeout):
        ask(client, "GET", "http://a", 2, 9, io.BytesIO())


OK = b"HTTP/1.1 200 OK\r\n"
SLOW = {
    "a header": (OK + b"X-Long: ", b"a"),
    "headers": (OK, b"X-Many: a\r\n"),
    "hints before the reply": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "parts": (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n"),
    "the size of a part": (OK + b"Transfer-Encoding: chunked\r\n\r\n1;", b"a"),
    "what follows the last part": (OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: a\r\n"),
    "a reply whose end is that of the connection": (OK + b"\r\n", b"a"),
}


def drip(server, first, more):
    """Answer a request in pieces that follow each other soon, until the client has enough."""
    connection, _ = server.accept()
    end = time.monotonic() + 30  # of a client that waits as long as bytes come
    with connection, suppress(OSError):
        connection.recv(10_000)
        connection.sendall(first)
        while time.monotonic() < end:
            connection.sendall(more)
            time.sleep(0.01)


@pytest.mark.parametrize("slow", SLOW)
def test_a_reply_that_comes_in_drops_is_given_up_whatever_part_of_it_is_slow(slow):
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = Thread(target=drip, args=(server, *SLOW[slow]), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        with (
            httpx2.Client(timeout=60, trust_env=False) as client,  # a minute for each byte
            pytest.raises(httpx2.ReadTimeout, match="no whole reply in time"),
        ):
            ask(client, "GET", url, 1_000_000, 0.3)
        thread.join(60)
    assert not thread.is_alive()
    with httpx2.Client() as client, pytest.raises(httpx2.ConnectError):  # nothing was sent
        ask(client, "GET", url, 9, -1)
