"""The source "simulated": workers of `goldspan.simulate` answer at once, on a clock of their own.

Who is asked next about an item is a seeded hash of the two; what a worker answers depends on the
seed, the worker and the item. So the same ledger is always continued in the same way. The clock is
the number of answers times what one takes, as one comes after the other: an answer is begun when
the one before is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from goldspan.campaign.control import failure
from goldspan.campaign.keys import key_of
from goldspan.campaign.protocols import Waiting
from goldspan.campaign.setting import Setting
from goldspan.crowd import Crowd
from goldspan.protocols import Ledger
from goldspan.simulate import read_team, simulate_crowd
from goldspan.simulate.crowd import BEGIN
from goldspan.tagger.features import hash64

LEASE_SECONDS = 1e8
"""Longer than any campaign: what a kill leaves reserved is taken up again."""


def time_after(setting: Setting, n_answers: int) -> int:
    """Give the time in milliseconds since 1970 when so many answers are given."""
    return BEGIN + round(1000 * setting.plan.crowd.seconds * n_answers)


class Simulated:
    """Simulated workers.

    Args:
        setting: The campaign.
        ledger: Where it is kept.
    """

    def __init__(self, setting: Setting, ledger: Ledger) -> None:
        self.setting, self.ledger = setting, ledger
        self.workers = list(read_team(list(setting.plan.crowd.workers)))
        self._n_answers = ledger.n_answers
        self._asked: dict[str, set[str]] = {}

    def now(self) -> int:
        """Give the time that the answers took so far."""
        return time_after(self.setting, self._n_answers)

    def collect(self, name: str, items: Sequence[str]) -> Waiting | None:
        """Ask for every open place, item by item."""
        del name
        self._read()
        rows = self.ledger.slots().to_pylist()
        missing = {row["item"]: row["wanted"] - row["filled"] for row in rows}
        for item in items:
            self._fill(item, missing[item])
        return None

    def _fill(self, item: str, n: int) -> None:
        for worker in self._order(item):
            if n <= 0:
                return
            if worker in self._barred or item in self._asked[worker]:
                continue
            self._control(worker)
            if worker not in self._barred:
                n -= self._ask(worker, item)

    def _ask(self, worker: str, item: str) -> bool:
        """Get one answer; False where there is no place or no money for it."""
        if not self.ledger.lease(worker, self.now(), LEASE_SECONDS, 1, [item]):
            return False
        key, given = key_of(item, worker), time_after(self.setting, self._n_answers + 1)
        receipt = self.ledger.submit(key, worker, item, self._answer(worker, item), given)
        self._asked[worker].add(item)
        self._n_answers += not receipt.repeated
        return receipt.counts

    def _control(self, worker: str) -> None:
        """Ask the control questions that are due, and send away who fails the first ones."""
        control = self.setting.plan.control
        if control is None:
            return
        order = self._order_control(worker)
        while True:
            done = [item for item in order if item in self._asked[worker]]
            regular = len(self._asked[worker]) - len(done)
            if control.first and len(done) >= control.first:
                self._qualify(worker, done[: control.first])
            due = control.first + int(control.share * regular)
            rest = [item for item in order if item not in self._asked[worker]]
            if worker in self._barred or len(done) >= due or not rest:
                return
            if not self._ask(worker, rest[0]):
                return

    def _qualify(self, worker: str, items: Sequence[str]) -> None:
        """Bar a worker who failed the test; asked again, it changes nothing."""
        control, answers = self.setting.control, [self._answer(worker, item) for item in items]
        least = 0.0 if self.setting.plan.control is None else self.setting.plan.control.least
        why = failure([control[item] for item in items], answers, least)
        if not why:
            return
        self.ledger.record("bar", worker, {"why": why}, self.now())
        self.ledger.bar(worker, self.now())
        self._barred.add(worker)

    def _read(self) -> None:
        """Read from the ledger who has answered what, and who is asked nothing more."""
        crowd = self.ledger.crowd()
        names, people = crowd.item_ids.to_pylist(), crowd.worker_ids.to_pylist()
        self._asked = {worker: set() for worker in self.workers}
        answers = crowd.latest
        for item, worker in zip(answers.item.tolist(), answers.worker.tolist(), strict=True):
            self._asked[people[worker]].add(names[item])
        self._n_answers = len(answers)
        self._barred = set(self.ledger.records("bar"))

    def _order(self, item: str) -> list[str]:
        seed = self.setting.plan.seed
        return sorted(self.workers, key=lambda worker: hash64(f"{seed}\0{item}\0{worker}"))

    def _order_control(self, worker: str) -> list[str]:
        seed = self.setting.plan.seed
        return sorted(self.setting.control, key=lambda item: hash64(f"{seed}\0{item}\0{worker}"))

    def _answer(self, worker: str, item: str) -> list[str | None]:
        place = self._place[item] * len(self.workers) + self._number[worker]
        answers = self._crowd.answers
        codes = answers.codes[answers.offset[place] : answers.offset[place + 1]]
        tags = [*self._crowd.tagset.tags, None]
        return [tags[code] for code in codes.tolist()]

    @cached_property
    def _crowd(self) -> Crowd:
        """What everybody would answer to everything, by item and then by worker."""
        assert self.setting.truth is not None  # the plan was checked
        team = read_team(list(self.setting.plan.crowd.workers))
        made = simulate_crowd(self.setting.truth, team, seed=self.setting.plan.seed)
        assert np.array_equal(made.answers.worker[: len(self.workers)], range(len(self.workers)))
        return made

    @cached_property
    def _place(self) -> Mapping[str, int]:
        return {name: n for n, name in enumerate(self.setting.ids)}

    @cached_property
    def _number(self) -> Mapping[str, int]:
        return {name: n for n, name in enumerate(self.workers)}
