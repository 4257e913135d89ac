"""Any order of what workers and the requester do, against a model in plain Python.

The service is called without HTTP. What a worker is asked is the service's choice: the model checks
that it may be, and says what every answer, skip, verdict and end of a lease must bring.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from goldspan.campaign.crowds import missing_answers
from goldspan.money import from_micro
from goldspan.store.verify import faults_of
from goldspan.web.errors import Refused
from goldspan.web.service import open_service
from ledger_model import Model, Slot, run_machine
from web.serving import KEYS, Clock, key, plan_file

COST, CAP, K, N_CONTROL = 50_000, 500_000, 2, 3
LEASE = 300_000
PLAN = {
    "control": {"n": N_CONTROL, "gold": "truth.csv", "share": 0.3, "first": 0, "least": 0},
    "page": {"training": 0, "lease_minutes": LEASE // 60_000},
    "redundancy": {"min": K, "max": K},
    "select": {"by": "random", "batch": 5},
    "budget": {"money": "0.5"},
}
NAMES = ("ann", "bob", "cid")
WORKERS, LABELS, NUMBER = (
    st.sampled_from(NAMES),
    st.sampled_from(("rain", "sun")),
    st.integers(0, 9),
)


class ServiceModel(Model):
    """What the service should keep."""

    def __init__(self, slots: dict[str, Slot]) -> None:
        super().__init__(slots, CAP, dict.fromkeys(slots, COST))
        self.known: set[str] = set()
        self.gold: dict[str, str] = {}

    def has(self, worker: str, now: int) -> list[str]:
        """Return the items that a worker holds."""
        return [item for item, slot in self.slots.items() if slot.held.get(worker, -1) > now]

    def submit(self, worker: str, item: str, now: int) -> tuple[str, str]:
        self.expire(now)
        self.known.add(worker)
        return self.answer(worker, item)[:2]

    def skip(self, worker: str, item: str, now: int) -> None:
        """Take the item from the worker for good, also if its time is over and a place is free."""
        slot = self.slots[item]
        if worker in slot.held:
            del slot.held[worker]
            slot.skips.add(worker)
            return
        self.expire(now)
        self.known.add(worker)
        if self.may_get(worker, item):
            slot.skips.add(worker)

    def me(self, worker: str) -> dict[str, object]:
        done = sum(worker in slot.counts for slot in self.slots.values())
        drafts = sum(worker in slot.drafts for slot in self.slots.values())
        return {"done": done, "earned": from_micro(COST * done), "drafts": drafts}


class Machine(RuleBasedStateMachine):
    """Does the same to a service and to the model."""

    plan: Path
    new_place: Callable[[], str]

    def __init__(self):
        super().__init__()
        self.clock, self.place = Clock(), self.new_place()
        self.open()
        self.service.campaign.run()
        control = self.service.inputs.control
        missing = missing_answers(self.service.ledger, self.service.inputs.ids)
        self.model = ServiceModel({item: Slot(n) for item, n in missing.items()})
        assert {item for item, n in missing.items() if n != K} == set(control)
        self.seen: list[tuple[str, str, str]] = []
        self.flagged: set[tuple[str, str]] = set()
        self.sent: dict[str, tuple[str, str, str, str]] = {}
        self.replies: dict[str, dict] = {}

    def open(self):
        out = self.plan.parent / "out"
        self.service = open_service(self.plan, out, KEYS, self.place, clock=self.clock)

    @rule(worker=WORKERS)
    def next(self, worker):
        got, held = self.service.work.next(worker), self.model.has(worker, self.clock())
        if not held:
            self.model.expire(self.clock())
            self.model.known.add(worker)
        if got["state"] != "task":
            assert not held
            self.nothing_is_kept_from(worker, got["state"])
            return
        task = got["task"]
        item = self.service.work.tasks.item(worker, task["id"])
        if not held:
            assert self.model.may_get(worker, item)
            self.model.slots[item].held[worker] = self.clock() + LEASE
        assert self.model.has(worker, self.clock()) == [item]
        assert task["expires"] == self.model.slots[item].held[worker]
        if (worker, item, task["id"]) not in self.seen:
            self.seen.append((worker, item, task["id"]))

    def nothing_is_kept_from(self, worker, state):
        if worker in self.model.barred:
            assert state == "done"
        elif self.model.paused:
            assert state == "paused"
        else:
            assert state == "wait"
            others = self.model.slots.keys() - self.service.inputs.control.keys()
            assert not any(self.model.may_get(worker, item) for item in others)

    @precondition(lambda self: self.seen)
    @rule(n=NUMBER, label=LABELS)
    def submit(self, n, label):
        worker, item, task = self.seen[-1 - n % len(self.seen)]
        drafts = self.model.slots[item].drafts
        has_one = worker in drafts
        status, why = self.model.submit(worker, item, self.clock())
        name = key()
        got = self.service.work.submit(worker, task, name, label)
        assert (got["status"], got["paid"]) == (status, from_micro(0 if why else COST))
        assert why in got["message"]
        if why and has_one:
            assert "not kept" in got["message"]
            return
        self.sent[name], self.replies[name] = (worker, item, task, label), got

    @precondition(lambda self: self.sent)
    @rule(n=NUMBER)
    def submit_again(self, n):
        name = list(self.sent)[-1 - n % len(self.sent)]
        worker, _, task, label = self.sent[name]
        got = self.service.work.submit(worker, task, name, label)
        assert got == self.replies[name]

    @precondition(lambda self: self.sent)
    @rule(n=NUMBER)
    def submit_another_under_a_key(self, n):
        name = list(self.sent)[-1 - n % len(self.sent)]
        worker, item, task, label = self.sent[name]
        others = [(i, t) for who, i, t in self.seen if who == worker and i != item]
        body = (
            (others[0][1], label)
            if others and n % 2
            else (task, {"rain": "sun"}.get(label, "rain"))
        )
        with pytest.raises(Refused) as refused:
            self.service.work.submit(worker, body[0], name, body[1])
        assert refused.value.status == 409

    @precondition(lambda self: self.seen)
    @rule(n=NUMBER, act=st.sampled_from(["skip", "flag", "release"]))
    def give_back(self, n, act):
        worker, item, task = self.seen[-1 - n % len(self.seen)]
        work = self.service.work
        if act == "release":
            self.model.slots[item].held.pop(worker, None)
            assert work.release(worker, task)["status"] == "released"
            return
        self.model.skip(worker, item, self.clock())
        if act == "skip":
            work.skip(worker, task, "too hard")
        else:
            name = key()
            work.flag(worker, task, name, "broken", "see")
            if (worker, item) in self.flagged:  # one report is kept, the first: others are nothing
                return
            self.flagged.add((worker, item))
            with pytest.raises(Refused, match="Something else"):
                work.flag(worker, task, name, "broken", "other")

    @rule(seconds=st.sampled_from([1, 150, 300, 301]), told=st.booleans())
    def wait(self, seconds, told):
        self.clock.pass_seconds(seconds)
        if told:
            self.model.expire(self.clock())
            self.service.ledger.expire(self.clock())

    @rule(n=NUMBER, label=LABELS)
    def adjudicate(self, n, label):
        items = sorted(self.model.slots.keys() - self.service.inputs.control.keys())
        item = items[n % len(items)]
        self.service.desk.adjudicate(item, label)
        self.model.gold[item] = label

    @rule(paused=st.booleans())
    def pause(self, paused):
        self.service.desk.pause(paused=paused)
        self.model.paused = paused

    @rule(worker=WORKERS, verdict=st.sampled_from(["drop", "keep", "test"]))
    def judge(self, worker, verdict):
        if worker not in self.model.known:
            with pytest.raises(Refused, match="no worker"):
                self.service.desk.judge(worker, verdict)
            return
        self.service.desk.judge(worker, verdict)
        self.model.bar(worker, barred=verdict == "drop")

    @rule()
    def restart(self):
        self.service.close()
        self.open()

    @invariant()
    def everybody_has_what_is_theirs(self):
        totals, model = self.service.ledger.totals(), self.model
        assert totals.cap - totals.left == CAP - model.left <= totals.cap
        for worker in NAMES:
            mine = self.service.work.me(worker)
            mine.pop("currency")
            assert mine.pop("total") is None  # the money may end before the items do
            assert mine == model.me(worker)

    def teardown(self):
        try:
            self.finish()
        finally:
            self.service.close()

    def finish(self):
        ledger = self.service.ledger
        assert faults_of(ledger.database) == []
        ledger.verify()
        given = [(row.worker, row.item) for row in ledger.given() if row.counts]
        slots = self.model.slots
        assert set(given) == {(worker, item) for item, s in slots.items() for worker in s.counts}
        assert len(given) == len(set(given))
        assert len(ledger.given()) == len(self.sent)
        assert {
            item: labels[0] for item, labels in self.service.desk.gold_labels().items()
        } == self.model.gold


@pytest.mark.torture("calls come in any order", "the store and the model agree after each of them")
def test_the_service_does_what_the_model_does_whatever_the_order(new_place, tmp_path, tortured):
    places = {"new_place": staticmethod(new_place), "plan": plan_file(tmp_path, **PLAN)}
    run_machine(Machine, tortured, 2 if "postgresql" in new_place() else 8, **places)
