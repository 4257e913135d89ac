"""Replies of other people's servers: bounded in bytes, also unpacked, shown without our keys."""

from __future__ import annotations

import socket
import time
import zlib
from base64 import a85encode, b16encode, b32encode, b32hexencode, b64encode, b85encode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from html import unescape
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, BinaryIO
from unicodedata import normalize
from urllib.parse import unquote

if TYPE_CHECKING:
    import httpx2

MOST_OF_FILE = 8 << 30
"""Bytes of a file."""
LONGEST_DOWNLOAD = 3600.0
"""Seconds."""
HIDDEN = "its words are not shown, as they quote the key"
MOST_WORDS = 10_000
"""Characters of what a server says that are looked at."""
LEAST = 8
"""Letters and digits in a row of a key by which it is recognised."""


def ask(
    client: httpx2.Client, method: str, url: str, most: int, seconds: float,
    file: BinaryIO | None = None, **more: Any,
) -> httpx2.Response:  # fmt: skip
    """Send a request and read the reply: `most` bytes, and `seconds` in all.

    A download that succeeds goes into `file`, if there is one, in wider bounds. A reply that is
    larger or packed otherwise than asked raises `httpx2.DecodingError`, one that takes longer
    `httpx2.ReadTimeout`.
    """
    import httpx2

    # One connection for each request: of one that is used again nobody tells which it is.
    headers = {**more.pop("headers", {}), "Accept-Encoding": "gzip", "Connection": "close"}
    deadline = _Deadline(seconds)
    more |= {"headers": headers, "extensions": {"trace": deadline.trace}}
    try:
        with client.stream(method, url, **more) as answer:
            content = b""
            if file and answer.is_success and is_download(answer):
                deadline.until += LONGEST_DOWNLOAD - seconds
                file.seek(0)
                file.truncate()
                file.writelines(_read(answer, MOST_OF_FILE))
            else:
                content = b"".join(_read(answer, most))
    except (httpx2.ReadError, httpx2.RemoteProtocolError, httpx2.DecodingError):
        deadline.check()  # whether it was cut
        raise
    finally:
        deadline.ended.set()
    deadline.check()  # what was cut may look whole
    of_the_way = {"content-encoding", "content-length", "transfer-encoding"}
    kept = {k: v for k, v in answer.headers.items() if k not in of_the_way}
    return httpx2.Response(answer.status_code, headers=kept, content=content)


class _Deadline:
    """Cuts the connections of a request that takes too long, whatever part of it is slow."""

    def __init__(self, seconds: float) -> None:
        self.until, self.ended = time.monotonic() + seconds, Event()
        self._sockets: list[socket.socket] = []
        Thread(target=self._watch, daemon=True).start()

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Keep a connection; httpx2 tells every step of a request."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._sockets.append(info["return_value"].get_extra_info("socket"))

    def _watch(self) -> None:
        while not self.ended.wait(max(0.1, self.until - time.monotonic())):
            for one in self._sockets if time.monotonic() >= self.until else ():
                with suppress(OSError):  # it is closed; SSL's own would change what is read now
                    socket.socket.shutdown(one, socket.SHUT_RDWR)

    def check(self) -> None:
        import httpx2

        if time.monotonic() >= self.until:
            raise httpx2.ReadTimeout("no whole reply in time") from None


def is_download(answer: httpx2.Response) -> bool:
    """Whether a reply is a file, and not a page of a proxy, say."""
    return "attachment" in answer.headers.get("Content-Disposition", "")


def _read(answer: httpx2.Response, most: int) -> Iterator[bytes]:
    """Yield the parts of a reply, unpacked within the bounds."""
    import httpx2

    packed, left = answer.headers.get("Content-Encoding", "identity"), most
    if packed not in {"gzip", "identity"}:
        raise httpx2.DecodingError("the reply is packed in a way that was not asked for")
    unpack = zlib.decompressobj(31) if packed == "gzip" else None
    for raw in answer.stream:  # type: ignore[union-attr]  # the bytes as they come
        try:
            part = unpack.decompress(raw, left + 1) if unpack else raw
        except zlib.error as error:
            raise httpx2.DecodingError(f"the reply cannot be unpacked: {error}") from None
        if unpack and unpack.unused_data:
            raise httpx2.DecodingError("the reply goes on after its end")
        left -= len(part)
        if left < 0:
            raise httpx2.DecodingError(f"the reply is larger than {most:,} bytes")
        yield part
    if unpack and not unpack.eof:
        raise httpx2.DecodingError("the reply ends in its middle")


def without_secret(text: str, secret: str | None) -> str:
    """Return what a server said, its beginning, without a secret of ours: also split or encoded.

    >>> without_secret("no key sk-Abcdefgh", "sk-Abcdefgh"), without_secret("no key", "sk-Abcdefgh")
    ('no key ***', 'no key')
    >>> without_secret("no key SK%2dABCD EFGH", "sk-Abcdefgh") == HIDDEN
    True
    """
    text = text[:MOST_WORDS]
    if not secret:
        return text
    text, raw = text.replace(secret, "***"), secret.encode()
    codes = (b16encode, b32encode, b32hexencode, b64encode, b85encode, a85encode)
    packed = [code(bytes(n) + raw)[n:].decode() for code in codes for n in range(5)]
    words = list(map(_plain, (secret, secret[::-1], *packed)))
    if len(words[0]) < LEAST:
        return text
    parts = {one[n : n + LEAST] for one in words for n in range(len(one) - LEAST + 1)}
    said = [text]
    for _ in range(3):  # encoded in several ways
        text_now = unquote(said[-1].replace("\\u00", "%").replace("\\x", "%"))
        said.append(normalize("NFKD", unescape(text_now)))
    shown = " ".join(map(_plain, said))
    return HIDDEN if any(part in shown for part in parts) else text


def _plain(text: str) -> str:
    return "".join(mark for mark in text.casefold() if mark.isalnum())
