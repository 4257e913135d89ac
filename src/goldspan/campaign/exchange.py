"""The source "files": tasks go out in files, answers come back in files.

Tasks are `tasks-NAME.jsonl` in the folder `crowd.out`, one item per line with the campaign's id and
how many answers it needs. Answers are any `.jsonl` files in the folder `crowd.back`:

    {"campaign": "…", "worker": "ann", "item": "i1", "labels": ["B-PER", "O"]}

in any order, of any number of workers, complete or not, once or several times: the same answer
again changes nothing. An answer that finds no place now is not sent to the ledger at all, but read
again with its file at the next collection: it counts when a place opens. So what counts depends on
the ledger and the files alone, whenever the campaign was killed. A file with a fault is refused
whole, before any of it is taken (`arrived.py`). Where a test comes first it is `test.jsonl`; who
has not taken all of it waits, and who failed it is asked no more (`admission.py`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

from goldspan.campaign.admission import Admission
from goldspan.campaign.arrived import Arrived, campaign_in
from goldspan.campaign.awaiting import awaited, missing_answers
from goldspan.campaign.clock import CampaignClock, open_clock
from goldspan.campaign.judging import kept
from goldspan.campaign.places import BARRED, FULL, MONEY, Places
from goldspan.campaign.protocols import Waiting
from goldspan.campaign.setting import Setting
from goldspan.crowd.atomic import write_text
from goldspan.errors import InputError
from goldspan.protocols import Ledger

TEST = "test"
"""The batch of a test that comes first."""
_WHY = {
    "conflict": "by workers who had answered the item otherwise before",
    FULL: "to items that have enough: they count if a place opens",
    MONEY: "that the money does not reach",
    BARRED: "by workers who are asked no more",
}


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
        self.admission, self._told = Admission(setting, ledger), Counter[str]()
        self._read: dict[str, list[dict[str, Any]]] = {}
        self.out = setting.folder / setting.plan.crowd.out
        self.back = setting.folder / setting.plan.crowd.back
        for folder in (self.out, self.back):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"cannot make {folder}: {error.strerror}") from None

    def now(self) -> int:
        """Return the campaign's time."""
        return self._clock()

    def collect(self, name: str, items: Sequence[str]) -> Waiting | None:
        """Read what has come back, write the tasks that are left, say what is missing."""
        path = self.out / f"tasks-{name}.jsonl"
        if self.admission.items:
            self._write(self.out / f"{TEST}.jsonl", TEST, dict.fromkeys(self.admission.items, 1))
        is_there = self._is_there(path)
        self._take_all()
        missing = missing_answers(self.ledger, items)
        if missing and not is_there:
            self._write(path, name, self._needed(missing))
        where = f"tasks are in {path}; put answers into {self.back}{self._test()}"
        where += self._not_counted()
        return awaited(self.setting, self.ledger, missing, self.now(), where)

    def _write(self, path: Path, name: str, needed: Mapping[str, int]) -> None:
        """Write tasks, unless they are there."""
        if self._is_there(path):
            return
        try:
            write_text(path, list(self._tasks(name, needed)))
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror}") from None

    def _is_there(self, path: Path) -> bool:
        """Whether tasks are written.

        Raises:
            InputError: What is there are no tasks of this campaign.
        """
        try:
            with path.open("rb") as file:
                line = file.readline()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from None
        seen = campaign_in(line)
        if seen != self._id:
            whose = "no tasks" if seen is None else f"tasks of the campaign {seen!r}"
            raise InputError(
                f"{path} holds {whose}, and this is {self._id!r}: move what is in {self.out} and "
                f"{self.back} elsewhere; campaigns side by side need folders of their own, by "
                "crowd.out and crowd.back of their plans"
            )
        return True

    def _needed(self, missing: Mapping[str, int]) -> dict[str, int]:
        """Give the items of a batch and the control questions among them, with their answers."""
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
            facts = {"tokens": pool.words(n), "text": pool.given[n]}
            return {**facts, "token_start": pool.starts_of(n)}
        single: dict[str, Any] = {"labels": list(self.setting.codec.tags)}
        if pool.text is None:
            return single | {"attributes": self.setting.cells(n)}
        return single | {"text": pool.given[n]}

    def _take_all(self) -> None:
        """Take what has come back: answers to the test first, then those of who has taken it."""
        self._told.clear()
        self.admission.judge(self.now())
        test = set(self.admission.items)
        rows = self._rows()
        self._take([row for row in rows if row["item"] in test])
        self.admission.judge(self.now())
        self._take([row for row in rows if row["item"] not in test])

    def _take(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Take the answers that find a place, in their order; count those that do not."""
        places, barred = Places(self.setting, self.ledger), self._barred()
        for row in rows:
            item, worker, labels = row["item"], row["worker"], row["labels"]
            before = places.given(item, worker)
            if before is not None:
                self._told["conflict"] += before != labels
            elif worker in barred:
                self._told[BARRED] += 1
            elif self.admission.waits(worker, item):
                self._told["waiting"] += 1
            else:
                self._told[places.take(item, worker, labels, self.now())] += 1

    def _barred(self) -> set[str]:
        return set(self.ledger.records("bar")) - kept(self.ledger)

    def _rows(self) -> list[dict[str, Any]]:
        """Give the answers of all files, by their names, each once."""
        read = [self._open(path) for path in sorted(self.back.glob("*.jsonl"))]
        unique = {_whole(row): row for rows in read for row in rows}
        return list(unique.values())

    def _open(self, path: Path) -> list[dict[str, Any]]:
        """Give the answers of a file.

        Raises:
            FaultsError: It holds faults.
            InputError: It cannot be read.
        """
        try:
            data = path.read_bytes()
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from None
        digest = blake2b(data, digest_size=12).hexdigest()
        if digest not in self._read:
            asked = self.ledger.slots()["item"].to_pylist()
            lengths = {item: len(self.setting.words[self._place[item]]) for item in asked}
            self._read[digest] = Arrived(self._id, self.setting.codec, lengths).read(path, data)
        return self._read[digest]

    def _test(self) -> str:
        """Say where the test is, and how many answers wait for it."""
        if not self.admission.items:
            return ""
        n = self._told["waiting"]
        wait = f", and {n} answers wait for it" if n else ""
        return f"; every worker takes the test first: {self.out / TEST}.jsonl{wait}"

    def _not_counted(self) -> str:
        """Say how many answers came that do not count, and why."""
        told = [f"{self._told[why]} {words}" for why, words in _WHY.items() if self._told[why]]
        return f" (not counted: {', '.join(told)})" if told else ""

    @cached_property
    def _clock(self) -> CampaignClock:
        """The campaign's clock: days between two runs count, as nobody holds a lease."""
        return open_clock(self.ledger, downtime=None)

    @cached_property
    def _id(self) -> str:
        """The id that the campaign began with: some of a plan may change, the id does not."""
        return str(self.ledger.records("plan")["plan"]["id"])

    @property
    def _place(self) -> Mapping[str, int]:
        return self.setting.pool.place


def _whole(row: Mapping[str, Any]) -> str:
    """Give what makes two answers the same."""
    return json.dumps([row["item"], row["worker"], row["labels"]])
