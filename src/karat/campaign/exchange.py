"""The source "files": tasks go out in files, answers come back in files.

Tasks are `tasks-NAME.jsonl` in the folder `crowd.out`, one item per line with the campaign's id and
how many answers it needs. Answers are any `.jsonl` files in the folder `crowd.back`:

    {"campaign": "…", "worker": "ann", "item": "i1", "labels": ["B-PER", "O"]}

in any order, of any number of workers, complete or not, once or several times: an answer's key is
its item and worker, and the same answer again changes nothing. A file with a fault is refused
whole, before any of it is taken.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

from karat.campaign.protocols import Waiting
from karat.campaign.setting import Setting
from karat.crowd.atomic import write_text
from karat.errors import Fault, FaultsError, InputError
from karat.protocols import Ledger

HOUR = 3_600_000
"""Milliseconds."""


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
        self.out = setting.folder / setting.plan.crowd.out
        self.back = setting.folder / setting.plan.crowd.back
        for folder in (self.out, self.back):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"cannot make {folder}: {error.strerror}") from None

    def now(self) -> int:
        """Give the time of the clock."""
        return time.time_ns() // 1_000_000

    def collect(self, name: str, items: Sequence[str]) -> Waiting | None:
        """Write the tasks if they are not there, read what has come back, say what is missing."""
        path = self.out / f"tasks-{name}.jsonl"
        if not path.exists():
            write_text(path, list(self._tasks(name, items)))
        for file in sorted(self.back.glob("*.jsonl")):
            self._take(file)
        missing = self._missing(items)
        left = self.ledger.totals().left
        payable = [item for item in missing if self._cost[item] <= left]
        if not payable or self._is_over():
            return None
        n = sum(missing[item] for item in payable)
        return Waiting(n, len(payable), f"tasks are in {path}; put answers into {self.back}")

    def _tasks(self, name: str, items: Sequence[str]) -> Iterator[str]:
        missing = self._missing(items)
        control = list(self.setting.control)
        share = 0.0 if self.setting.plan.control is None else self.setting.plan.control.share
        n = min(len(control), -(-round(1000 * share * len(missing)) // 1000))
        # Batches take turns, so that a worker of several batches sees different questions.
        turn = len(list(self.out.glob("tasks-*.jsonl")))
        mixed = [control[(turn * n + i) % len(control)] for i in range(n)]
        rows = sorted([*missing, *mixed], key=lambda item: self._place[item])
        for item in rows:
            needed = missing.get(item, max(missing.values(), default=1))
            task = {"campaign": self.setting.key, "batch": name, "item": item, "answers": needed}
            yield json.dumps({**task, **self._content(item)}, ensure_ascii=False) + "\n"

    def _content(self, item: str) -> dict[str, Any]:
        n, pool = self._place[item], self.setting.pool
        if not self.setting.plan.is_single:
            return {"tokens": pool.words(n)}
        facts: dict[str, Any] = {"labels": list(self.setting.codec.tags)}
        return facts | ({} if pool.text is None else {"text": pool.given[n]})

    def _missing(self, items: Sequence[str]) -> dict[str, int]:
        asked = set(items)
        rows = [row for row in self.ledger.slots().to_pylist() if row["item"] in asked]
        found = {row["item"]: row["wanted"] - row["filled"] for row in rows}
        return {item: n for item, n in found.items() if n > 0}

    def _take(self, file: Path) -> None:
        """Take the answers of a file, unless it was read before."""
        try:
            data = file.read_bytes()
        except OSError as error:
            raise InputError(f"cannot read {file}: {error.strerror}") from None
        digest = blake2b(data, digest_size=12).hexdigest()
        if digest in self.ledger.records("file"):
            return
        counts: dict[str, int] = {}
        for row in self._read(file, data):
            key = f"{row['item']}:{row['worker']}:1"
            status = self.ledger.submit(
                key, row["worker"], row["item"], row["labels"], self.now()
            ).status
            counts[status] = counts.get(status, 0) + 1
        self.ledger.record("file", digest, {"name": file.name, "answers": counts}, self.now())

    def _read(self, file: Path, data: bytes) -> list[dict[str, Any]]:
        rows, faults = [], []
        known = set(self.ledger.slots()["item"].to_pylist())
        for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                message = self._fault(row, known)
            except ValueError as error:
                row, message = {}, f"it is no JSON: {error}"
            rows.append(row)
            if message:
                faults.append(Fault(message, str(file), number))
        if faults:
            raise FaultsError(faults, "the answers are refused; nothing of the file was taken")
        return rows

    def _fault(self, row: Any, known: set[str]) -> str:
        """Say what is wrong with an answer, "" if nothing is."""
        if not isinstance(row, Mapping) or not {"campaign", "worker", "item", "labels"} <= set(row):
            return "an answer has campaign, worker, item and labels"
        if row["campaign"] != self.setting.key:
            return f"of the campaign {row['campaign']!r}, and this is {self.setting.key!r}"
        if not isinstance(row["worker"], str) or not row["worker"]:
            return f"a worker is text, not {row['worker']!r}"
        if row["item"] not in known:
            return f"item {row['item']!r} was not asked about"
        n = len(self.setting.words[self._place[row["item"]]])
        labels = row["labels"]
        if not isinstance(labels, list) or len(labels) != n:
            return f"item {row['item']}: needs a list of {n} labels, not {labels!r}"
        wrong = [one for one in labels if one is not None and one not in self.setting.codec.tags]
        tags = ", ".join(self.setting.codec.tags)
        return f"item {row['item']}: label {wrong[0]!r} is not in {tags}" if wrong else ""

    def _is_over(self) -> bool:
        hours = self.setting.plan.budget.hours
        if hours is None:
            return False
        begin = next(iter(self.ledger.events())).time
        return self.now() - begin >= hours * HOUR

    @property
    def _place(self) -> Mapping[str, int]:
        return self.setting.pool.place

    @cached_property
    def _cost(self) -> Mapping[str, int]:
        return dict(zip(self.setting.ids, self.setting.costs.tolist(), strict=True))
