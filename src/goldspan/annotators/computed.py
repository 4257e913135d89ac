"""What functions and taggers answered, kept on the disk a batch at a time.

`Batched` annotators work on batches of items. Where the task names a folder (`answers`), as in
campaigns, a batch is kept in `answers.sqlite` in one transaction before its first answer is used:
after a break nothing that was computed is computed again, even if the function draws at random or
pays for what it does. An answer is known by the annotator's kind, options and version (the source
of a function, the bytes of a model), by the labels of the task and by the item.
"""

from __future__ import annotations

import json
import sqlite3
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

from goldspan.annotators.base import Annotator, ItemAnswer, SoftSpan, priced
from goldspan.annotators.placing import with_text
from goldspan.errors import InputError
from goldspan.protocols import PoolItem

FILE = "answers.sqlite"
_TABLE = "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT) WITHOUT ROWID"


class Batched(Annotator):
    """An annotator that works on this machine, on batches of items; its options have `batch`."""

    @abstractmethod
    def work(self, batch: Sequence[PoolItem]) -> list[ItemAnswer]:
        """Return an answer for each of some items that have texts, without their costs."""

    @abstractmethod
    def version(self) -> str:
        """Return what changes when the same items may be answered otherwise."""

    @property
    def batch(self) -> int:
        """Items that it works on at once."""
        return int(self.options.batch)

    def label(self, items: Sequence[PoolItem]) -> Iterator[ItemAnswer]:
        """Yield the answers, a batch at a time; those that are kept are not computed again."""
        waiting = iter(items)
        while batch := [with_text(item) for item in islice(waiting, self.batch)]:
            for item, answer in zip(batch, self._answers_to(batch), strict=True):
                yield priced(self, item, answer)

    def _answers_to(self, batch: Sequence[PoolItem]) -> list[ItemAnswer]:
        """Return the answers that are kept; where one is missing, work on the whole batch."""
        if self._kept is None:
            return self.work(batch)
        keys = [self._key(item) for item in batch]
        found = self._kept.read(keys)
        if any(answer is None for answer in found):
            self._kept.add(keys, self.work(batch))
            found = self._kept.read(keys)
        return [answer for answer in found if answer is not None]

    @cached_property
    def _kept(self) -> _Answers | None:
        return None if self.task.answers is None else _Answers(self.task.answers)

    @cached_property
    def _head(self) -> list[Any]:
        """What all answers of this annotator have in common."""
        codec = self.task.codec
        return [self.entry.kind, asdict(self.options), self.version(), codec.encoding, *codec.tags]

    def _key(self, item: PoolItem) -> str:
        words = [self._head, item.id, item.text, [*item.tokens], item.group]
        return blake2b(json.dumps(words, default=str).encode(), digest_size=16).hexdigest()

    def close(self) -> None:
        """Close the file of answers."""
        if "_kept" in vars(self) and self._kept is not None:
            self._kept.close()


class _Answers:
    """Answers by their keys, in a file."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Whichever thread is the last to know it closes it.
            self._base = sqlite3.connect(
                self._file, timeout=60, isolation_level=None, check_same_thread=False
            )
            self._file.chmod(0o600)
            self._base.execute("PRAGMA journal_mode = WAL")
            self._base.execute("PRAGMA synchronous = FULL")
            self._base.execute(_TABLE)
        except OSError as error:
            raise InputError(f"cannot keep answers in {folder}: {error.strerror}") from None
        except sqlite3.Error as error:
            raise self._damaged(error) from None

    def read(self, keys: Sequence[str]) -> list[ItemAnswer | None]:
        """Return the answers of some keys, None where there is none."""
        query = "SELECT answer FROM answers WHERE key = ?"
        try:
            rows = [self._base.execute(query, (key,)).fetchone() for key in keys]
            return [None if row is None else _read(json.loads(row[0])) for row in rows]
        except (sqlite3.Error, ValueError, KeyError, TypeError) as error:
            raise self._damaged(error) from None

    def add(self, keys: Sequence[str], answers: Sequence[ItemAnswer]) -> None:
        """Keep answers, all or none; those that are there stay."""
        rows = [(k, json.dumps(_plain(one))) for k, one in zip(keys, answers, strict=True)]
        try:
            self._base.execute("BEGIN IMMEDIATE")
            self._base.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?)", rows)
            self._base.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._damaged(error) from None

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def _damaged(self, error: Exception) -> InputError:
        return InputError(
            f"{self._file} cannot be used ({error}): is the disk full, or is it another file? "
            "Where it is removed, what was under way is computed again"
        )


def _plain(answer: ItemAnswer) -> dict[str, Any]:
    """Return an answer as JSON holds it."""
    return {
        "item": answer.item,
        "spans": answer.spans,
        "classes": None if answer.classes is None else dict(answer.classes),
        "tags": answer.tags,
        "missing": answer.missing,
        "unplaced": answer.unplaced,
    }


def _read(found: dict[str, Any]) -> ItemAnswer:
    spans, tags = found["spans"], found["tags"]
    return ItemAnswer(
        found["item"],
        None if spans is None else tuple(SoftSpan(*span) for span in spans),
        found["classes"],
        None if tags is None else tuple(tags),
        found["missing"],
        unplaced=tuple(found["unplaced"]),
        repeated=True,
    )


def digest_of(path: Path) -> str:
    """Return a hash of a file, or of all files of a folder with their names."""
    found = blake2b(digest_size=16)
    files = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
    for file in files:
        found.update(f"{file.relative_to(path)}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as source:
            while block := source.read(1 << 20):
                found.update(block)
    return found.hexdigest()
