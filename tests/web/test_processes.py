"""Several processes over one store: each decides about workers like one that does all."""

from __future__ import annotations

import threading
from collections import Counter
from itertools import cycle

import pytest

from goldspan.money import to_micro
from goldspan.web.errors import Refused
from goldspan.web.service import open_service
from web.serving import KEYS, Clock, key, plan_file, right_answer

TRAINING, FIRST = 2, 2
PLAN = {
    "page": {"training": TRAINING},
    "control": {"n": 8, "first": FIRST, "least": 0.5, "share": 0.25},
    "select": {"batch": 12},
    "redundancy": {"min": 3, "max": 3},
}


@pytest.fixture
def opened(new_place, tmp_path):
    """Opens services, each of which remembers for itself, over one store per folder."""
    clock, made, places = Clock(), [], {}

    def make(name="one"):
        folder = tmp_path / name
        if name not in places:
            folder.mkdir()
            places[name] = plan_file(folder, **PLAN), new_place()
        plan, place = places[name]
        made.append(open_service(plan, folder / "out", KEYS, place, clock=clock))
        return made[-1]

    yield make
    for service in made:
        service.close()


def do_next(asked, told, worker, *, wrong=False):
    """Ask one service for a task and tell another the answer; return all that was decided."""
    got = asked.work.next(worker)
    if got["state"] != "task":
        return got["state"], got["message"], got["me"]
    task = got["task"]
    item = asked.work.tasks.item(worker, task["id"])
    said = right_answer(asked, item)
    if wrong:
        said = {"rain": "sun", "sun": "rain"}[said]
    reply = told.work.submit(worker, task["id"], key(), said)
    return item, task["training"], got["me"], reply


def test_two_in_turn_decide_what_one_decides(opened):
    alone, first = opened("alone"), opened()
    alone.campaign.run()
    first.campaign.run()
    second = opened()
    turn = cycle([(first, second), (second, second), (second, first), (first, first)])
    for n in range(14):
        for worker in ("ann", "bob", "eve"):
            wrong = worker == "eve" or n % 5 == 1
            one = do_next(alone, alone, worker, wrong=wrong)
            assert do_next(*next(turn), worker, wrong=wrong) == one
    assert first.work.next("eve")["state"] == second.work.next("eve")["state"] == "done"
    assert [event.kind for event in first.ledger.events()].count("bar") == 1


def test_what_is_passed_on_in_one_is_passed_on_in_the_other(opened):
    first = opened()
    first.campaign.run()
    services = cycle([first, opened()])
    seen = []
    for _ in first.inputs.control:
        one, other = next(services), next(services)
        task = one.work.next("ann")["task"]["id"]
        seen.append(one.work.tasks.item("ann", task))
        other.work.skip("ann", task, "too hard")
        next(services)
    assert sorted(seen) == sorted(first.inputs.control)
    assert next(services).work.next("ann")["state"] == "done"
    assert next(services).work.next("ann")["state"] == "done"


def test_a_change_in_one_is_paid_once_in_both(opened):
    first = opened()
    first.campaign.run()
    second = opened()
    for _ in range(TRAINING):
        do_next(first, first, "ann")
    task = first.work.next("ann")["task"]["id"]
    first.work.submit("ann", task, key(), "rain")
    second.work.change("ann", task, key(), "sun", 0)
    third = opened()
    paid = first.ledger.totals().spent
    for service in (first, second, third):
        assert to_micro(service.work.me("ann")["earned"]) == paid


class Crowd:
    """Workers who each label in several processes at once, and what they were shown and paid."""

    def __init__(self, services, names):
        self.pairs = [(service, worker) for worker in names for service in services]
        self.shown, self.solved, self.paid, self.faults = [], set(), Counter(), []
        self.turn, self.begin = threading.Lock(), threading.Barrier(len(self.pairs))

    def run(self):
        threads = [threading.Thread(target=self._safely, args=pair) for pair in self.pairs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not self.faults

    def _safely(self, service, worker):
        try:
            self.begin.wait()
            while self._do_one(service, worker):
                pass
        except Exception as error:  # noqa: BLE001 - the test tells it
            self.faults.append(error)
            self.begin.abort()

    def _do_one(self, service, worker):
        got = service.work.next(worker)
        if got["state"] != "task":
            return False
        task = got["task"]
        item = service.work.tasks.item(worker, task["id"])
        reply = service.work.submit(worker, task["id"], key(), right_answer(service, item))
        with self.turn:
            self.shown.append((worker, item, task["training"]))
            self.paid[worker] += to_micro(reply["paid"])
            self.solved |= {(worker, item)} if reply["feedback"] else set()
        return True


def test_at_once_no_solution_is_seen_before_its_question_and_all_is_paid_once(opened):
    first = opened()
    first.campaign.run()
    services, names = [first, opened()], ("ann", "bob", "cid")
    crowd = Crowd(services, names)
    crowd.run()
    assert {(w, item) for w, item, training in crowd.shown if training} == crowd.solved
    assert not {(w, item) for w, item, training in crowd.shown if not training} & crowd.solved
    for worker in names:
        mine = [row for row in first.ledger.given() if row.worker == worker]
        asked = dict.fromkeys(row.item for row in mine if row.item in first.inputs.control)
        assert {item for w, item in crowd.solved if w == worker} == set(list(asked)[:TRAINING])
        assert sum(row.cost for row in mine) == crowd.paid[worker]
        for service in (*services, opened()):
            assert to_micro(service.work.me(worker)["earned"]) == crowd.paid[worker]


def test_a_test_that_is_failed_is_failed_with_the_answer_that_fails_it(opened, monkeypatch):
    """The answer and what follows from it are kept together or not at all."""
    service = opened()
    service.campaign.run()
    for _ in range(TRAINING + FIRST - 1):
        do_next(service, service, "eve", wrong=True)
    task = service.work.next("eve")["task"]["id"]
    item = service.work.tasks.item("eve", task)
    said = {"rain": "sun", "sun": "rain"}[right_answer(service, item)]

    def fail(*_, **__):
        raise Refused("broken", "the power went", 500)

    with monkeypatch.context() as patch:
        patch.setattr("goldspan.store.assignments.bar", fail)
        with pytest.raises(Refused, match="the power went"):
            service.work.submit("eve", task, key(), said)
    assert len(service.ledger.given()) == TRAINING + FIRST - 1
    assert service.work.me("eve")["done"] == TRAINING + FIRST - 1
    assert service.work.submit("eve", task, key(), said)["status"] == "accepted"
    assert service.people.why_barred("eve") == f"0 of {FIRST} right in the test"
    assert opened().work.next("eve")["state"] == "done"
