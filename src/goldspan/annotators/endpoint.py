"""Calls to an endpoint of the OpenAI protocol: what is waited for, asked again, and given up.

A call ends in one of four ways: a reply; it was not served, and so not paid (429, 5xx, no
connection), after bounded repetitions; it may have been paid and nothing came of it (time over, a
connection that broke, half a reply); or the endpoint does not take it (4xx).
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from goldspan.errors import InputError, MissingExtraError
from goldspan.http import ask, without_secret

if TYPE_CHECKING:
    import httpx2

LONGEST_WAIT = 300.0
"""Seconds: who is told to wait longer comes back another time."""
LONGEST_PAUSE = 60.0
"""Seconds to which the pauses between tries grow."""
LARGEST = 20_000_000
"""Bytes of a reply."""
_SHOWN = 200


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
        path: str,
        *,
        seconds: float,
        tries: int,
        client: httpx2.Client | None = None,
        first_wait: float = 1.0,
    ) -> None:
        base = base_url.rstrip("/").removesuffix("/chat/completions").removesuffix("/completions")
        self.url = f"{base}{path}"
        self._key, self._seconds, self._tries = key, seconds, tries
        self._first_wait, self._client = first_wait, client or _client(base_url, seconds)
        self._turn, self._pause = Lock(), 0.0

    def shown(self, text: str) -> str:
        """Return words of the endpoint without the key."""
        return without_secret(text, self._key)

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
            why = f"{status}: {self._error_text(content)}" if status else self._error_text(content)
            if 300 <= status < 400:
                raise NotTakenError(status, self._redirected(headers.get("location", "")))
            if status == 404:
                raise NotTakenError(status, f"{self._error_text(content)} (asked at {self.url})")
            if status and status not in _LATER and status < 500:
                raise NotTakenError(status, self._error_text(content))
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
        where = self._client, "POST", self.url
        try:
            answer = ask(*where, LARGEST, self._seconds, content=content, headers=headers)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            return 0, {}, f"no connection ({type(error).__name__}: {error})".encode()
        except (httpx2.ProxyError, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError) as error:
            return 0, {}, f"it could not be sent ({type(error).__name__})".encode()
        except httpx2.TimeoutException:
            raise MaybePaidError(f"no whole reply within {self._seconds:g} seconds") from None
        except httpx2.DecodingError as error:
            raise MaybePaidError(str(error)) from None
        except (httpx2.RequestError, httpx2.StreamError) as error:
            raise MaybePaidError(f"the connection broke ({type(error).__name__})") from None
        return answer.status_code, answer.headers, answer.content

    def _redirected(self, location: str) -> str:
        """Say where a redirection leads, without the query, which may hold a secret."""
        parts = urlsplit(self._error_text(location.encode("utf-8", "replace")))
        where = f" to {parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else ""
        return f"it redirects{where}, which is not followed: name the place itself as base_url"

    def _error_text(self, content: bytes) -> str:
        """Return what an endpoint says of an error, in one line, without the key."""
        text = content.decode("utf-8", "replace")
        try:
            found = json.loads(text)["error"]
            text = str(found["message"] if isinstance(found, Mapping) else found)
        except (ValueError, KeyError, TypeError, RecursionError):
            pass
        text = without_secret(text, self._key)
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


# --------------------------------------------------------------------------------------------------
# Calls and replies on the disk: every call is written down before it is sent.
#
# A folder holds `replies.sqlite`. A call is known by the item, the address, the model and the
# prompt (one key), by the number of the sample and of the attempt. It is "sent" before it is sent,
# and "done" with its reply, in one transaction each; a process that is killed in between leaves it
# "sent", and who finds it so, under the lock of its key, knows that nobody waits for its reply any
# more. So nothing that was answered is ever asked again, also by two processes at once. The texts
# that were sent are not kept; the replies quote words of them.


SENT, DONE, LOST, OLD = "sent", "done", "lost", "old"
"""A call was sent; its reply is there; no reply came, and it may be paid; it counts no more."""
VERSION = 1
SHARDS = 256
"""Locks: two keys share one by chance, and then wait for each other."""
_TABLES = """
CREATE TABLE IF NOT EXISTS calls (
    key TEXT NOT NULL, sample INTEGER NOT NULL, attempt INTEGER NOT NULL, prompt TEXT NOT NULL,
    state TEXT NOT NULL, cut INTEGER NOT NULL DEFAULT 0, model TEXT NOT NULL DEFAULT '',
    fingerprint TEXT NOT NULL DEFAULT '', reply TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (key, sample, attempt)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS calls_by_prompt ON calls (prompt);
CREATE TABLE IF NOT EXISTS prompts (hash TEXT PRIMARY KEY, prompt TEXT NOT NULL);
"""


class StoppedError(Exception):
    """Somebody asked to stop while something was waited for."""


@dataclass(frozen=True)
class Call:
    """A call and what became of it."""

    attempt: int  # Its number, from 0
    state: str  # "sent", "done", "lost" or "old"
    reply: Mapping[str, Any]  # What the model replied; empty if nothing came


class Replies:
    """The calls of models and their replies."""

    def __init__(self, folder: Path | None) -> None:
        self._turn, self._threads = Lock(), [Lock() for _ in range(SHARDS)]
        self._locks = None if folder is None else folder / "locks"
        self._file = ":memory:" if folder is None else str(folder / "replies.sqlite")
        try:
            if folder is not None and self._locks is not None:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._locks.mkdir(mode=0o700, exist_ok=True)
            self._base = sqlite3.connect(
                self._file, timeout=60, isolation_level=None, check_same_thread=False
            )
            with self._held("set-up", Event()):  # SQLite does not wait while another sets it up
                self._set_up()
        except OSError as error:
            raise InputError(f"cannot keep replies in {folder}: {error.strerror}") from None
        except sqlite3.Error as error:
            raise self._damaged(error) from None

    def _set_up(self) -> None:
        if self._locks is not None:
            Path(self._file).chmod(0o600)
        (version,) = self._base.execute("PRAGMA user_version").fetchone()
        if version not in {0, VERSION}:
            raise InputError(
                f"{self._file} is of version {version}, not {VERSION}: update goldspan"
            )
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA synchronous = FULL")
        self._base.executescript(_TABLES)
        self._base.execute(f"PRAGMA user_version = {VERSION}")

    def close(self) -> None:
        """Close the file."""
        with self._turn:
            self._base.close()

    @contextmanager
    def lock(self, key: str, stop: Event) -> Iterator[None]:
        """Hold the lock of a key, against other threads and other processes."""
        shard = int(key[:8], 16) % SHARDS
        while not self._threads[shard].acquire(timeout=0.1):
            if stop.is_set():
                raise StoppedError
        try:
            with self._held(f"{shard:02x}", stop):
                yield
        finally:
            self._threads[shard].release()

    @contextmanager
    def _held(self, name: str, stop: Event) -> Iterator[None]:
        """Hold a lock against other processes."""
        if self._locks is None:
            yield
            return
        handle = os.open(self._locks / name, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            while not _is_locked(handle):
                if stop.wait(0.05):
                    raise StoppedError
            yield
        finally:
            os.close(handle)  # which ends the lock, as the end of the process does

    def calls(self, key: str, sample: int) -> list[Call]:
        """Return the calls about a sample, in the order of the attempts."""
        rows = self._read(
            "SELECT attempt, state, reply FROM calls WHERE key = ? AND sample = ? ORDER BY attempt",
            (key, sample),
        )
        try:
            return [Call(n, state, json.loads(reply) if reply else {}) for n, state, reply in rows]
        except ValueError as error:
            raise self._damaged(error) from None

    def begin(self, key: str, sample: int, attempt: int, prompt: str) -> None:
        """Write down a call before it is sent; one that was cut off before is counted."""
        self._write(
            "INSERT INTO calls (key, sample, attempt, prompt, state) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET cut = cut + 1",
            (key, sample, attempt, prompt, SENT),
        )

    def end(
        self, key: str, sample: int, attempt: int, state: str, reply: Mapping[str, Any]
    ) -> None:
        """Write down what became of a call."""
        text = json.dumps(reply, ensure_ascii=True, sort_keys=True)
        names = (str(reply.get("model") or ""), str(reply.get("fingerprint") or ""))
        self._write(
            "UPDATE calls SET state = ?, reply = ?, model = ?, fingerprint = ? "
            "WHERE key = ? AND sample = ? AND attempt = ?",
            (state, text, *names, key, sample, attempt),
        )

    def drop(self, key: str, sample: int, attempt: int) -> None:
        """Forget a call that was not served, and so not paid; if it was cut off before it stays."""
        place = (key, sample, attempt)
        self._write(
            "DELETE FROM calls WHERE key = ? AND sample = ? AND attempt = ? AND cut = 0", place
        )
        # Where a call was cut off before, the next one who finds it sent will count that one.
        self._write(
            "UPDATE calls SET cut = cut - 1 WHERE key = ? AND sample = ? AND attempt = ?", place
        )

    def forget(self, key: str) -> None:
        """Let the calls about an item count no more, so that others are made."""
        self._write("UPDATE calls SET state = ? WHERE key = ? AND state <> ?", (OLD, key, SENT))

    def remember(self, prompt: str, content: str) -> None:
        """Keep the words of a prompt under its hash."""
        self._write("INSERT OR IGNORE INTO prompts VALUES (?, ?)", (prompt, content))

    def models(self, prompt: str) -> list[tuple[str, str, int]]:
        """Return the models that replied to a prompt: id, fingerprint, number of replies."""
        return self._read(
            "SELECT model, fingerprint, count(*) FROM calls "
            "WHERE prompt = ? AND state = 'done' "
            "GROUP BY model, fingerprint ORDER BY count(*) DESC, model, fingerprint",
            (prompt,),
        )

    def unsettled(self, prompt: str) -> int:
        """Count the calls that were cut off by the end of a process: they may have been paid."""
        sql = "SELECT coalesce(sum(cut), 0) FROM calls WHERE prompt = ?"
        ((n,),) = self._read(sql, (prompt,))
        return int(n)

    def _read(self, sql: str, values: tuple[Any, ...]) -> list[Any]:
        try:
            with self._turn:
                return self._base.execute(sql, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from None

    def _write(self, sql: str, values: tuple[Any, ...]) -> None:
        try:
            with self._turn:
                self._base.execute(sql, values)
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> InputError:
        return InputError(
            f"{self._file} cannot be used ({error}): is the disk full, or is it another file? "
            "Where it is removed, what was paid for is asked and paid again"
        )


def _is_locked(handle: int) -> bool:
    """Take the lock of a file if it is free, and say whether that was so."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
