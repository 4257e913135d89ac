"""Any order of calls against a model of the ledger in plain Python."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from goldspan.errors import FaultsError, InputError
from goldspan.protocols import PoolItem, Receipt, Totals
from goldspan.spans import Codec
from goldspan.store import assignments, create_ledger, open_ledger
from goldspan.store.answers import OTHER
from goldspan.store.verify import faults_of, verify
from ledger_model import Model, Slot, run_machine

TAGS = Codec.from_types(["no", "yes"], "PLAIN")
COSTS = {"a": 3, "b": 0, "c": 7, "d": 3, "e": 5}
ITEMS, WORKERS, LABELS = st.sampled_from(sorted(COSTS)), st.sampled_from("uvw"), ["no", "yes", None]


class LedgerModel(Model):
    """What the ledger should do, without a database."""

    def __init__(self, cap: int) -> None:
        super().__init__({}, cap, COSTS)
        self.replies: dict[str, tuple[tuple[str, str, str | None], Receipt]] = {}

    def lease(self, worker, now, seconds, n, only):
        self.expire(now)
        asked = [item for item in self.slots if only is None or item in only]
        order = asked if only is None else [item for item in only if item in self.slots]
        held = [item for item in asked if worker in self.slots[item].held]
        for item in order:
            if len(held) < n and self.may_get(worker, item):
                self.slots[item].held[worker] = now + 1000 * seconds
                held.append(item)
        return [(item, self.slots[item].held[worker]) for item in asked if item in held][:n]

    def submit(self, key, worker, item, label, now):
        body = (worker, item, label)
        if key in self.replies:
            before, receipt = self.replies[key]
            return receipt if before == body else Receipt(key, "conflict", reason=OTHER)
        self.expire(now)
        status, reason, is_kept = self.answer(worker, item)
        receipt = Receipt(key, status, 0 if reason else COSTS[item], reason)
        if is_kept:
            self.replies[key] = (body, receipt)
        return receipt


class Machine(RuleBasedStateMachine):
    """Does the same to the ledger and to the model, and compares the replies."""

    new_place: Callable[[], str]

    def __init__(self):
        super().__init__()
        self.place, self.now, self.model = self.new_place(), 0, LedgerModel(cap=20)
        self.ledger = create_ledger(self.place, name="m", cap=20, currency="", tagset=TAGS, now=0)
        self.ledger.add_items([PoolItem(i, ("t",), cost) for i, cost in COSTS.items()], 0)

    @initialize(k=st.lists(st.integers(1, 2), min_size=3, max_size=3))
    def open_some(self, k):
        for item, each in zip("bda", k, strict=True):
            self.open(item, each)

    @rule(seconds=st.integers(1, 3))
    def wait(self, seconds):
        self.now += 1000 * seconds

    @precondition(lambda self: len(self.model.slots) < len(COSTS))
    @rule(k=st.integers(1, 2))
    def open_another(self, k):
        self.open(min(COSTS.keys() - self.model.slots.keys()), k)

    def open(self, item, k):
        self.ledger.open_batch(item, [item], k, self.now)
        self.model.slots[item] = Slot(k)

    @rule(
        worker=WORKERS,
        seconds=st.integers(1, 4),
        n=st.integers(1, 3),
        only=st.none() | st.lists(ITEMS, unique=True, max_size=3),
    )
    def lease(self, worker, seconds, n, only):
        got = self.ledger.lease(worker, self.now, seconds, n, only)
        expected = self.model.lease(worker, self.now, seconds, n, only)
        assert [(lease.item, lease.expires) for lease in got] == expected

    @rule(key=st.sampled_from("12345678"), worker=WORKERS, item=ITEMS, n=st.integers(0, 2))
    def submit(self, key, worker, item, n):
        if item not in self.model.slots:
            return
        got = self.ledger.submit(key, worker, item, [LABELS[n]], self.now)
        assert got == self.model.submit(key, worker, item, LABELS[n], self.now)

    @rule(worker=WORKERS, n=st.integers(0, 99))
    def submit_what_is_held(self, worker, n):
        held = [item for item, slot in self.model.slots.items() if worker in slot.held]
        if held:
            item = held[n % len(held)]
            got = self.ledger.submit(f"{worker} {item} {n}", worker, item, ["no"], self.now)
            expected = self.model.submit(f"{worker} {item} {n}", worker, item, "no", self.now)
            assert got == expected

    @rule(key=st.sampled_from("12345678"), worker=WORKERS, item=ITEMS, n=st.integers(0, 2))
    def change(self, key, worker, item, n):
        slot = self.model.slots.get(item)
        if key not in self.model.replies and (slot is None or worker not in slot.counts):
            with pytest.raises(FaultsError, match="no answer of this worker"):
                self.ledger.change(key, worker, item, [LABELS[n]], self.now)
            return
        before, earlier = self.model.replies.get(key, (None, None))
        body = (worker, item, LABELS[n])
        expected = earlier or Receipt(key, "changed")
        if earlier is not None and before != body:
            expected = Receipt(key, "conflict", reason=OTHER)
        elif earlier is None:
            self.model.replies[key] = (body, expected)
        assert self.ledger.change(key, worker, item, [LABELS[n]], self.now) == expected

    @rule(worker=WORKERS, item=ITEMS, skip=st.sampled_from(["", "too hard"]))
    def release(self, worker, item, skip):
        slot = self.model.slots.get(item)
        held = slot is not None and slot.held.pop(worker, None) is not None
        if held and skip:
            slot.skips.add(worker)
        assert self.ledger.release(worker, item, self.now, skip) == held

    @rule(item=ITEMS, k=st.integers(0, 3))
    def adjust(self, item, k):
        if item in self.model.slots:
            changed = self.model.slots[item].wanted != k
            assert self.ledger.adjust({item: k}, self.now) == changed
            self.model.slots[item].wanted = k

    @rule(
        act=st.sampled_from(["bar", "pause", "cap", "charge", "reopen", "expire"]), data=st.data()
    )
    def manage(self, act, data):
        if act == "bar":
            self.bar(data.draw(WORKERS), data.draw(st.booleans()))
        elif act == "pause":
            self.pause(data.draw(st.booleans()))
        elif act == "cap":
            self.set_cap(data.draw(st.integers(0, 40)))
        elif act == "charge":
            self.charge(data.draw(st.sampled_from("xy")), 6)
        elif act == "expire":
            assert self.ledger.expire(self.now) == self.model.expire(self.now)
        else:
            self.reopen()

    def bar(self, worker, barred):
        self.ledger.bar(worker, self.now, barred=barred)
        self.model.bar(worker, barred=barred)

    def pause(self, paused):
        self.ledger.pause(self.now, paused=paused)
        self.model.paused = paused

    def set_cap(self, cap):
        if cap < self.model.spent + self.model.reserved:
            with pytest.raises(InputError, match="are reserved or spent"):
                self.ledger.set_cap(cap, self.now)
        else:
            self.ledger.set_cap(cap, self.now)
            self.model.cap = cap

    def charge(self, name, amount):
        paid = name in self.model.charges
        fits = amount <= self.model.left
        assert self.ledger.charge(name, amount, self.now) == (paid or fits)
        if fits and not paid:
            self.model.charges[name] = amount

    def reopen(self):
        self.ledger.close()
        self.ledger = open_ledger(self.place)

    @invariant()
    def the_money_is_the_same(self):
        model = self.model
        assert self.ledger.totals() == Totals("", model.cap, model.reserved, model.spent)

    def teardown(self):
        try:
            self.finish()
        finally:
            self.ledger.close()

    def finish(self):
        assert faults_of(self.ledger.database) == []
        self.ledger.verify()
        rows = self.ledger.slots().to_pylist()
        found = [(row["item"], row["wanted"], row["leased"], row["filled"]) for row in rows]
        assert found == [
            (item, slot.wanted, len(slot.held), len(slot.counts))
            for item, slot in self.model.slots.items()
        ]
        assert verify(self.ledger.database).is_whole


@pytest.mark.torture("calls come in any order", "the store and the model agree after each of them")
def test_the_ledger_does_what_the_model_does_whatever_the_order_of_calls(
    new_place, monkeypatch, tortured
):
    monkeypatch.setattr(assignments, "WINDOW", 2)
    n = 6 if "postgresql" in new_place() else 18
    run_machine(Machine, tortured, n, new_place=staticmethod(new_place))
