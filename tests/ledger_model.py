"""What a campaign's store should keep, in plain Python: the rules of assignments and of money.

The state machines of the store and of the server compare with it after any order of calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from goldspan.store.answers import BARRED, BROKE, FULL, OFTEN, PASSED


@dataclass
class Slot:
    """An item that is asked: who holds it until when, who has answered, who was sent away."""

    wanted: int
    held: dict[str, int] = field(default_factory=dict)
    counts: set[str] = field(default_factory=set)
    drafts: set[str] = field(default_factory=set)
    skips: set[str] = field(default_factory=set)

    @property
    def free(self) -> bool:
        return len(self.held) + len(self.counts) < self.wanted

    def had(self, worker: str) -> bool:
        return worker in {*self.held, *self.counts, *self.drafts, *self.skips}


class Model:
    """Who may get what, what an answer brings, and what is left of the money."""

    def __init__(self, slots: dict[str, Slot], cap: int, costs: Mapping[str, int]) -> None:
        self.slots, self.cap, self.costs, self.paused = slots, cap, costs, False
        self.barred: set[str] = set()
        self.charges: dict[str, int] = {}

    @property
    def reserved(self) -> int:
        return sum(self.costs[item] * len(slot.held) for item, slot in self.slots.items())

    @property
    def spent(self) -> int:
        answers = sum(self.costs[item] * len(slot.counts) for item, slot in self.slots.items())
        return answers + sum(self.charges.values())

    @property
    def left(self) -> int:
        return self.cap - self.spent - self.reserved

    def expire(self, now: int) -> int:
        due = [(s, w) for s in self.slots.values() for w, end in s.held.items() if end <= now]
        for slot, worker in due:
            del slot.held[worker]
        return len(due)

    def may_get(self, worker: str, item: str) -> bool:
        slot, asked = self.slots[item], worker not in self.barred and not self.paused
        return asked and slot.free and not slot.had(worker) and self.costs[item] <= self.left

    def judge(self, worker: str, item: str) -> tuple[str, str]:
        """Return what an answer is now, and why it does not count."""
        slot = self.slots[item]
        if worker in slot.counts:
            return "duplicate", OFTEN
        if worker in slot.held:
            return "accepted", ""
        if worker in self.barred:
            return "draft", BARRED
        if worker in slot.skips:
            return "draft", PASSED
        if not slot.free:
            return "draft", FULL
        return ("draft", BROKE) if self.costs[item] > self.left else ("late", "")

    def answer(self, worker: str, item: str) -> tuple[str, str, bool]:
        """Take an answer; the third value says whether it is kept: of drafts one is, the first."""
        slot, (status, why) = self.slots[item], self.judge(worker, item)
        is_kept = not why or worker not in slot.drafts
        if why:
            slot.drafts.add(worker)
        else:
            slot.held.pop(worker, None)
            slot.counts.add(worker)
        return status, why, is_kept

    def bar(self, worker: str, *, barred: bool) -> None:
        if barred and worker not in self.barred:
            for slot in self.slots.values():
                slot.held.pop(worker, None)
        (self.barred.add if barred else self.barred.discard)(worker)


def run_machine(machine, tortured, n, **places):
    """Run a state machine in `n` orders of calls, in more where there is time, and count them."""
    long = settings.default.max_examples > 1000
    # Making a failure small takes minutes: only where there is time.
    phases = settings.default.phases if long else (Phase.generate,)
    n = settings.default.max_examples // 50 if long else n
    run_state_machine_as_test(
        type("Machine", (machine,), places),
        settings=settings(max_examples=n, stateful_step_count=30, phases=phases),
    )
    tortured(n)
