"""The source "files": tasks go out in files, answers come back in files.

Tasks are `tasks-NAME.jsonl` in the folder `crowd.out`, one item per line with the campaign's id and
how many answers it needs. Answers are any `.jsonl` files in the folder `crowd.back`:

    {"campaign": "…", "worker": "ann", "item": "i1", "labels": ["B-PER", "O"]}

in any order, of any number of workers, complete or not, once or several times: an answer's key is
its item and worker, and the same answer again changes nothing. A file with a fault is refused
whole, before any of it is taken (`arrived.py`). Where a test comes first it is `test.jsonl`; who
has not taken all of it waits, and who failed it is asked no more (`admission.py`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

from karat.campaign.admission import Admission
from karat.campaign.arrived import Arrived
from karat.campaign.awaiting import awaited, missing_answers, wall_clock
from karat.campaign.keys import key_of
from karat.campaign.protocols import Waiting
from karat.campaign.setting import Setting
from karat.crowd.atomic import write_text
from karat.errors import InputError
from karat.protocols import Ledger

TEST = "test"
"""The batch of a test that comes first."""
_WHY = {
    "conflict": "by workers who had answered the item otherwise before",
    "draft": "to items that had enough, or that the money did not reach, or by workers who are "
    "asked no more",
}


@dataclass(frozen=True)
class Back:
    """A file of answers that is not done with.

    Attributes:
        path: Where it is.
        digest: A hash of its content.
        rows: Its answers.
        counts: How many of them were taken, by status.
    """

    path: Path
    digest: str
    rows: list[dict[str, Any]]
    counts: dict[str, int] = field(default_factory=dict)


class Files:
    """Workers who are reached through files.

    Args:
        setting: The campaign.
        ledger: Where it is kept.

    Raises:
        InputError: The folders cannot be made.
    """

    def __init__(self, setting: Setting, ledger: Ledger) -> None:
        self.setting, self.ledger = setting, ledger
        self.admission, self._waiting = Admission(setting, ledger), 0
        self.out = setting.folder / setting.plan.crowd.out
        self.back = setting.folder / setting.plan.crowd.back
        for folder in (self.out, self.back):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"cannot make {folder}: {error.strerror}") from None

    def now(self) -> int:
        """Give the time of the clock."""
        return wall_clock()

    def collect(self, name: str, items: Sequence[str]) -> Waiting | None:
        """Write the tasks if they are not there, read what has come back, say what is missing."""
        path = self.out / f"tasks-{name}.jsonl"
        if self.admission.items:
            self._write(self.out / f"{TEST}.jsonl", TEST, dict.fromkeys(self.admission.items, 1))
        self._write(path, name, self._needed(items))
        self._take_all()
        where = f"tasks are in {path}; put answers into {self.back}{self._test()}"
        where += self._not_counted()
        missing = missing_answers(self.ledger, items)
        return awaited(self.setting, self.ledger, missing, self.now(), where)

    def _write(self, path: Path, name: str, needed: Mapping[str, int]) -> None:
        """Write tasks, unless they are there."""
        if path.exists():
            return
        try:
            write_text(path, list(self._tasks(name, needed)))
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror}") from None

    def _needed(self, items: Sequence[str]) -> dict[str, int]:
        """Give the items of a batch and the control questions among them, with their answers."""
        missing = missing_answers(self.ledger, items)
        control = list(self.setting.control)[len(self.admission.items) :]
        share = 0.0 if self.setting.plan.control is None else self.setting.plan.control.share
        n = min(len(control), -(-round(1000 * share * len(missing)) // 1000))
        # Batches take turns, so that a worker of several batches sees different questions.
        turn = len(list(self.out.glob("tasks-*.jsonl")))
        mixed = [control[(turn * n + i) % len(control)] for i in range(n)]
        return {**dict.fromkeys(mixed, max(missing.values(), default=1)), **missing}

    def _tasks(self, name: str, needed: Mapping[str, int]) -> Iterator[str]:
        for item in sorted(needed, key=lambda item: self._place[item]):
            task = {"campaign": self._id, "batch": name, "item": item, "answers": needed[item]}
            yield json.dumps({**task, **self._content(item)}, ensure_ascii=False) + "\n"

    def _content(self, item: str) -> dict[str, Any]:
        n, pool = self._place[item], self.setting.pool
        if not self.setting.plan.is_single:
            return {"tokens": pool.words(n)}
        facts: dict[str, Any] = {"labels": list(self.setting.codec.tags)}
        if pool.text is None:
            return facts | {"attributes": self.setting.cells(n)}
        return facts | {"text": pool.given[n]}

    def _take_all(self) -> None:
        """Take what has come back: answers to the test first, then those of who has taken it."""
        self._waiting = 0
        self.admission.judge(self.now())
        known = self.ledger.records("file")
        found = [self._open(path, known) for path in sorted(self.back.glob("*.jsonl"))]
        # Copies of a file are one.
        new = {file.digest: file for file in found if file is not None}
        for file in new.values():
            for row in file.rows:
                if row["item"] in self.admission.items:
                    self._submit(file, row)
        self.admission.judge(self.now())
        for file in new.values():
            self._take(file)

    def _take(self, file: Back) -> None:
        """Take the answers of a file; it is read again if some must wait."""
        before = self._waiting
        for row in file.rows:
            if self.admission.waits(row["worker"], row["item"]):
                self._waiting += 1
            elif row["item"] not in self.admission.items:
                self._submit(file, row)
        if self._waiting == before:
            facts = {"name": file.path.name, "answers": file.counts}
            self.ledger.record("file", file.digest, facts, self.now())

    def _submit(self, file: Back, row: Mapping[str, Any]) -> None:
        item, worker = row["item"], row["worker"]
        key = key_of(item, worker)
        status = self.ledger.submit(key, worker, item, row["labels"], self.now()).status
        file.counts[status] = file.counts.get(status, 0) + 1

    def _open(self, path: Path, known: Collection[str]) -> Back | None:
        """Read a file; None if that was done before.

        Raises:
            FaultsError: It holds faults.
            InputError: It cannot be read.
        """
        try:
            data = path.read_bytes()
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from None
        digest = blake2b(data, digest_size=12).hexdigest()
        if digest in known:
            return None
        asked = self.ledger.slots()["item"].to_pylist()
        lengths = {item: len(self.setting.words[self._place[item]]) for item in asked}
        arrived = Arrived(self._id, self.setting.codec, lengths)
        return Back(path, digest, arrived.read(path, data))

    def _test(self) -> str:
        """Say where the test is, and how many answers wait for it."""
        if not self.admission.items:
            return ""
        wait = f", and {self._waiting} answers wait for it" if self._waiting else ""
        return f"; every worker takes the test first: {self.out / TEST}.jsonl{wait}"

    def _not_counted(self) -> str:
        """Say how many answers came that do not count, and why."""
        files = [one["answers"] for one in self.ledger.records("file").values()]
        found = {status: sum(one.get(status, 0) for one in files) for status in _WHY}
        told = [f"{n} {_WHY[status]}" for status, n in found.items() if n]
        return f" (not counted: {', '.join(told)})" if told else ""

    @cached_property
    def _id(self) -> str:
        """The id that the campaign began with: some of a plan may change, the id does not."""
        return str(self.ledger.records("plan")["plan"]["id"])

    @property
    def _place(self) -> Mapping[str, int]:
        return self.setting.pool.place
