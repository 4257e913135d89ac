"""What models replied, on the disk: every call is written down before it is sent.

A folder holds `replies.sqlite`. A call is known by the item, the address, the model and the prompt
(one key), by the number of the sample and of the attempt. It is "sent" before it is sent, and
"done" with its reply, in one transaction each; a process that is killed in between leaves it
"sent", and who finds it so, under the lock of its key, knows that nobody waits for its reply any
more. So nothing that was answered is ever asked again, also by two processes at once. The texts
that were sent are not kept; the replies quote words of them.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock
from typing import Any

from goldspan.errors import InputError

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
            if self._locks is None:
                yield
                return
            handle = os.open(self._locks / f"{shard:02x}", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                while not _is_locked(handle):
                    if stop.wait(0.05):
                        raise StoppedError
                yield
            finally:
                os.close(handle)  # which ends the lock, as the end of the process does
        finally:
            self._threads[shard].release()

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

    def models(self, prompt: str, before: str) -> list[tuple[str, str, int]]:
        """Return the models that replied to a prompt: id, fingerprint, number of replies."""
        return self._read(
            "SELECT model, fingerprint, count(*) FROM calls "
            "WHERE prompt IN (?, ?) AND state = 'done' "
            "GROUP BY model, fingerprint ORDER BY count(*) DESC, model, fingerprint",
            (prompt, before),
        )

    def unsettled(self, prompt: str, before: str) -> int:
        """Count the calls that were cut off by the end of a process: they may have been paid."""
        sql = "SELECT coalesce(sum(cut), 0) FROM calls WHERE prompt IN (?, ?)"
        ((n,),) = self._read(sql, (prompt, before))
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
