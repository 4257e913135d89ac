"""Replies of servers that mean harm: bounded in memory, and shown without our keys."""

from __future__ import annotations

import base64
import gzip
import io
import tracemalloc
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
