"""Calls to an endpoint of the OpenAI protocol: what is waited for, asked again, and given up.

A call ends in one of four ways: a reply; it was not served, and so not paid (429, 5xx, no
connection), after bounded repetitions; it may have been paid and nothing came of it (time over, a
connection that broke, half a reply); or the endpoint does not take it (4xx).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from threading import Event, Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from goldspan.annotators.replies import StoppedError
from goldspan.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    import httpx2

LONGEST_WAIT = 300.0
"""Seconds: who is told to wait longer comes back another time."""
LONGEST_PAUSE = 60.0
"""Seconds to which the pauses between tries grow."""
LARGEST = 20_000_000
"""Bytes of a reply."""
_SHOWN = 200
_PATH = "/chat/completions"


class NotServedError(Exception):
    """A call was not served, and is not paid."""

    def __init__(self, why: str, *, is_final: bool = False) -> None:
        super().__init__(why)
        self.is_final = is_final


class MaybePaidError(Exception):
    """No whole reply came to a call, which may have been paid."""


class NotTakenError(Exception):
    """The endpoint does not take a call."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(f"the endpoint answered {status}: {why}")
        self.status = status


class Endpoint:
    """An endpoint."""

    def __init__(
        self,
        base_url: str,
        key: str | None,
        *,
        seconds: float,
        tries: int,
        client: httpx2.Client | None = None,
        first_wait: float = 1.0,
    ) -> None:
        self.url = f"{base_url.rstrip('/').removesuffix(_PATH)}{_PATH}"
        self._key, self._seconds, self._tries = key, seconds, tries
        self._first_wait, self._client = first_wait, client or _client(base_url, seconds)
        self._turn, self._pause = Lock(), 0.0

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def ask(self, body: Mapping[str, Any], name: str, stop: Event) -> dict[str, Any]:
        """Send a call and return the reply."""
        why, not_before = "", 0.0
        for n in range(self._tries):
            self._wait(not_before, stop)
            status, headers, content = self._once(body, name)
            if 200 <= status < 300:
                return _object(content)
            why = f"{status}: {self._told(content)}" if status else self._told(content)
            if 300 <= status < 400:
                raise NotTakenError(status, self._redirected(headers.get("location", "")))
            if status == 404:
                raise NotTakenError(status, f"{self._told(content)} (asked at {self.url})")
            if status and status not in _LATER and status < 500:
                raise NotTakenError(status, self._told(content))
            if b"insufficient_quota" in content:
                raise NotServedError(why, is_final=True)
            told = _retry_after(headers.get("retry-after", ""))
            wait = min(self._first_wait * 2.0**n, LONGEST_PAUSE) if told is None else told
            if wait > LONGEST_WAIT:
                raise NotServedError(f"it asks to wait {wait:.0f} seconds", is_final=True)
            not_before = time.monotonic() + wait
            if status == 429:  # all threads are too many, not this one
                with self._turn:
                    self._pause = max(self._pause, not_before)
        raise NotServedError(f"not served in {self._tries} tries; the last time: {why}")

    def _wait(self, not_before: float, stop: Event) -> None:
        """Wait until a call may be sent."""
        while True:
            with self._turn:
                left = max(self._pause, not_before) - time.monotonic()
            if stop.wait(max(0.0, left)):
                raise StoppedError
            if left <= 0:
                return

    def _once(self, body: Mapping[str, Any], name: str) -> tuple[int, Mapping[str, str], bytes]:
        """Send a call once: status, headers and content; status 0 where it did not arrive."""
        import httpx2

        # Escaped, because a text may hold half a surrogate, which is no UTF-8.
        content = json.dumps(body, ensure_ascii=True).encode("ascii")
        headers = {"Content-Type": "application/json", "Idempotency-Key": name}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        end = time.monotonic() + self._seconds
        try:
            with self._client.stream("POST", self.url, content=content, headers=headers) as answer:
                found = bytearray()
                for chunk in answer.iter_bytes():
                    found += chunk
                    if time.monotonic() > end:
                        raise MaybePaidError(f"no whole reply within {self._seconds:g} seconds")
                    if len(found) > LARGEST:
                        raise MaybePaidError(f"the reply is larger than {LARGEST:,} bytes")
                return answer.status_code, answer.headers, bytes(found)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            return 0, {}, f"no connection ({type(error).__name__}: {error})".encode()
        except (httpx2.ProxyError, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError) as error:
            return 0, {}, f"it could not be sent ({type(error).__name__})".encode()
        except httpx2.TimeoutException:
            raise MaybePaidError(f"no reply within {self._seconds:g} seconds") from None
        except (httpx2.RequestError, httpx2.StreamError) as error:
            raise MaybePaidError(f"the connection broke ({type(error).__name__})") from None

    def _redirected(self, location: str) -> str:
        """Say where a redirection leads, without the query, which may hold a secret."""
        parts = urlsplit(self._told(location.encode("utf-8", "replace"))) if location else None
        where = f" to {parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts else ""
        return f"it redirects{where}, which is not followed: name the place itself as base_url"

    def _told(self, content: bytes) -> str:
        """Return what an endpoint says of an error, in one line, without the key."""
        text = content.decode("utf-8", "replace")
        try:
            found = json.loads(text)["error"]
            text = str(found["message"] if isinstance(found, Mapping) else found)
        except (ValueError, KeyError, TypeError, RecursionError):
            pass
        if self._key:
            text = text.replace(self._key, "***")
        line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return line[:_SHOWN] + ("…" if len(line) > _SHOWN else "") or "no reason given"


_LATER = frozenset({408, 409, 425, 429})
"""Statuses after which a call is sent again, beside those of the server's own faults."""


def _object(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise MaybePaidError("the reply ended in its middle, or is not JSON") from None
    if not isinstance(found, dict):
        raise MaybePaidError("the reply is not a JSON object")
    return found


def _retry_after(told: str) -> float | None:
    """Return the seconds that an endpoint asks to wait: it gives them, or a date."""
    told = told.strip()
    if told.isascii() and told.replace(".", "", 1).isdigit():
        return float(told)
    try:
        date = parsedate_to_datetime(told)
    except ValueError:
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())


def _client(base_url: str, seconds: float) -> httpx2.Client:
    try:
        import httpx2
    except ImportError:  # pragma: no cover - the extra is installed where the tests run
        raise MissingExtraError("httpx2", "llm", "a language model") from None
    timeout = httpx2.Timeout(seconds, connect=min(seconds, 10.0))
    # A redirection would carry texts and the key to somebody who is not named in the plan, and a
    # proxy would carry what is for this machine elsewhere.
    return httpx2.Client(timeout=timeout, follow_redirects=False, trust_env=not is_local(base_url))


def check_address(base_url: str) -> None:
    """Reject an address that is none, or that holds a key."""
    try:
        parts = urlsplit(base_url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    is_word = base_url.isprintable() and " " not in base_url
    if parts.scheme not in {"http", "https"} or not host or not is_word:
        shown = "" if "@" in base_url else f", not {base_url!r}"  # which may be a password
        raise InputError(f"base_url must be an address such as {_EXAMPLE}{shown}")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InputError(
            "base_url must hold no name, password, key or query: the key belongs into an "
            "environment variable, which key_variable names"
        )


_EXAMPLE = "http://localhost:11434/v1 or https://api.example.org/v1"


def is_local(base_url: str) -> bool:
    """Whether an endpoint is on this machine.

    >>> is_local("http://localhost:11434/v1"), is_local("https://api.example.org/v1")
    (True, False)
    """
    host = urlsplit(base_url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
