"""A test that comes first, for workers who answer when they like: who has not taken it waits."""

from __future__ import annotations

from goldspan.campaign.control import failure
from goldspan.campaign.setting import Setting
from goldspan.protocols import Ledger


class Admission:
    """Who has taken the test, and who failed it; where there is none, everybody is admitted.

    Args:
        setting: The campaign; the test is its first control questions.
        ledger: Where it is kept.
    """

    def __init__(self, setting: Setting, ledger: Ledger) -> None:
        self.setting, self.ledger = setting, ledger
        self.control = setting.plan.control
        self.items = list(setting.control)[: 0 if self.control is None else self.control.first]
        self._taken: set[str] = set()

    def judge(self, now: int) -> None:
        """See who has answered the whole test, and bar who failed it."""
        if not self.items or self.control is None:
            return
        crowd = self.ledger.crowd()
        there = set(crowd.item_ids.to_pylist())
        given = {item: crowd.answers_of(item) if item in there else {} for item in self.items}
        self._taken = set.intersection(*(set(answers) for answers in given.values()))
        truth = [self.setting.control[item] for item in self.items]
        for worker in sorted(self._taken - set(self.ledger.records("bar"))):
            why = failure(truth, [given[item][worker] for item in self.items], self.control.least)
            if why:
                self.ledger.record("bar", worker, {"why": why}, now)
                self.ledger.bar(worker, now)

    def waits(self, worker: str, item: str) -> bool:
        """Whether an answer is not taken yet: the test must come first."""
        return bool(self.items) and item not in self.items and worker not in self._taken
