"""Answers: each key once, one per worker and item, never more than places, none lost."""

from __future__ import annotations

import numpy as np
import pytest
from sqlalchemy import func, select

from goldspan.errors import FaultsError, InputError
from goldspan.store.schema import answers
from goldspan.store.verify import faults_of


def kept(ledger):
    with ledger.database.read() as connection:
        return connection.execute(select(func.count()).select_from(answers)).scalar_one()


@pytest.fixture
def open_ledger(ledger):
    ledger.open_batch("b", ["i0", "i1", "i2", "i3"], k=2, now=1)
    return ledger


def test_the_same_key_again_gives_one_answer_and_the_same_reply(open_ledger):
    open_ledger.lease("w", now=2, seconds=1)
    first = open_ledger.submit("key", "w", "i0", ["yes"], now=3)
    n_events = open_ledger.verify()
    again = open_ledger.submit("key", "w", "i0", ["yes"], now=99_999)
    assert again == first
    assert again.repeated
    assert not first.repeated
    assert (kept(open_ledger), open_ledger.verify()) == (1, n_events)


@pytest.mark.parametrize("labels", [[], ["yes", "no"], ["maybe"], "yes", [["yes"]], [1]])
def test_labels_that_do_not_fit_are_refused_and_the_lease_stays(open_ledger, labels):
    held = open_ledger.lease("w", now=2, seconds=9)
    with pytest.raises(FaultsError, match="item i0"):
        open_ledger.submit("key", "w", "i0", labels, now=3)
    assert open_ledger.lease("w", now=4, seconds=9) == held


def test_an_answer_to_an_item_in_no_batch_is_refused(ledger):
    with pytest.raises(FaultsError, match="item i0: is in no batch"):
        ledger.submit("key", "w", "i0", ["yes"], now=3)


@pytest.mark.parametrize("key", ["", "a\0b", "\ud800", 7, "x" * 1001])
def test_a_key_that_no_database_can_hold_is_refused(open_ledger, key):
    with pytest.raises(InputError, match="the key of an answer"):
        open_ledger.submit(key, "w", "i0", ["yes"], now=3)


def test_the_crowd_has_the_answers_that_count_with_times_and_cost(open_ledger):
    open_ledger.lease("w", now=2, seconds=1)
    open_ledger.submit("a", "w", "i0", ["yes"], now=5)
    open_ledger.submit("b", "v", "i2", [None], now=6)
    open_ledger.set_gold({"i2": ["no"]}, now=7)
    crowd = open_ledger.crowd()
    assert crowd.item_ids.to_pylist() == ["i0", "i2"]
    assert crowd.answers_of("i2") == {"v": [None]}
    assert crowd.answers.started.tolist() == [2, -1]
    assert crowd.answers.submitted.tolist() == [5, 6]
    assert crowd.answers.cost.tolist() == [10, 10]
    assert crowd.tagged_by_id() == {"i0": [None], "i2": ["no"]}
    assert open_ledger.crowd("pool").n_items == 4


def test_a_changed_answer_counts_in_place_of_the_first_and_is_paid_once(open_ledger):
    open_ledger.lease("w", now=2, seconds=9)
    first = open_ledger.submit("key", "w", "i0", ["yes"], now=1002)
    before = open_ledger.last_answer
    receipt = open_ledger.change("other", "w", "i0", ["no"], now=60_000)
    assert (receipt.status, receipt.cost, receipt.counts) == ("changed", 0, True)
    assert open_ledger.crowd().answers_of("i0") == {"w": ["no"]}
    assert (open_ledger.totals().spent, open_ledger.n_answers) == (10, 1)
    assert open_ledger.last_answer > before
    assert [(row.labels, row.counts, row.cost, row.is_replaced)
            for row in open_ledger.given("i0")] == [
        (["yes"], False, 0, True), (["no"], True, 10, False),
    ]  # fmt: skip
    # What was sent before is told the same, whatever came after it.
    assert open_ledger.submit("key", "w", "i0", ["yes"], now=60_001) == first
    assert open_ledger.change("other", "w", "i0", ["no"], now=60_002) == receipt
    assert open_ledger.change("other", "w", "i0", ["yes"], now=60_002).status == "conflict"
    assert faults_of(open_ledger.database) == []


def test_the_seconds_of_a_changed_answer_stay_those_of_the_first(open_ledger):
    open_ledger.lease("w", now=1000, seconds=60)
    open_ledger.submit("a", "w", "i0", ["yes"], now=8000)
    open_ledger.change("b", "w", "i0", ["no"], now=500_000)
    row = open_ledger.given("i0")[-1]
    assert row.submitted - row.started == 7000
    open_ledger.submit("c", "v", "i0", ["yes"], now=500_001)  # without a lease
    open_ledger.change("d", "v", "i0", ["no"], now=500_002)
    assert open_ledger.given("i0")[-1].started == -1


def test_an_answer_can_be_changed_again_and_keeps_its_place_among_the_own(open_ledger):
    open_ledger.submit("a", "w", "i0", ["yes"], now=3)
    open_ledger.submit("b", "w", "i1", ["yes"], now=4)
    for n, label in enumerate(["no", None, "no"]):
        open_ledger.change(f"c{n}", "w", "i0", [label], now=10 + n)
    found = open_ledger.own("w", ["i1", "i0", "i2"])
    assert [(one.item, one.labels, one.first) for one in found] == [
        ("i0", ["no"], 3), ("i1", ["yes"], 4),
    ]  # fmt: skip
    assert open_ledger.totals().spent == 20
    assert open_ledger.own("v", ["i0"]) == []


def test_only_an_answer_that_counts_can_be_changed(open_ledger):
    open_ledger.adjust({"i0": 0}, now=2)
    open_ledger.submit("a", "w", "i0", ["yes"], now=3)  # a draft
    n_events = open_ledger.verify()
    for item in ("i0", "i1", "nowhere"):
        with pytest.raises(FaultsError, match="no answer of this worker"):
            open_ledger.change("b", "w", item, ["no"], now=4)
    open_ledger.submit("c", "w", "i1", ["yes"], now=5)
    with pytest.raises(FaultsError, match="not in the tag set"):
        open_ledger.change("d", "w", "i1", ["maybe"], now=6)
    assert open_ledger.verify() == n_events + 1
    assert open_ledger.crowd().answers_of("i1") == {"w": ["yes"]}


def test_what_is_left_for_a_worker_is_counted(open_ledger):
    def coming(worker, most=10, n_items=4, *, endless=False):
        return open_ledger.n_coming(worker, 5, most, n_items, endless=endless)

    open_ledger.set_gold({"i3": ["no"]}, 1, control=True)
    assert coming("new") == 3
    open_ledger.submit("a", "w", "i0", ["yes"], now=3)
    open_ledger.lease("w", now=4, seconds=9)
    assert coming("w") == 1 + 1  # one is held
    assert coming("new", most=2) == 2
    assert coming("w", n_items=9) == 2 + 5  # items that are not in a batch yet
    assert coming("w", n_items=9, endless=True) == 10
    assert open_ledger.last_batch() == ("b", 1)


def test_what_is_left_is_what_a_worker_can_still_get(new_ledger):
    rng, workers = np.random.default_rng(4), ["u", "v", "w"]
    ledger, names = new_ledger(40), [f"i{n}" for n in range(40)]
    ledger.open_batch("b", names, 2, now=1)
    ledger.set_gold({name: ["no"] for name in names[::7]}, 1, control=True)
    for n in range(60):
        worker, now = str(rng.choice(workers)), 10 + n
        for lease in ledger.lease(worker, now=now, seconds=0.002 if n % 5 == 0 else 9):
            if n % 4 == 1:
                ledger.release(worker, lease.item, now=now, skip="dull" if n % 8 == 1 else "")
            elif n % 4 > 1:
                ledger.submit(f"k{n}", worker, lease.item, ["yes"], now=now)
    ledger.expire(100)
    left = {w: ledger.n_coming(w, 100, 50, 40, endless=False) for w in workers}
    held = {worker: len(ledger.held(worker, 100)) for worker in workers}
    left = {worker: n - held[worker] for worker, n in left.items()}
    assert min(left.values()) > 0
    assert len(set(left.values())) > 1
    for worker in workers:
        n_held = held[worker]
        few = ledger.n_coming(worker, 100, 3, 40, endless=False)
        assert few == n_held + min(3, left[worker])
        got = ledger.lease(worker, now=101, seconds=9, n=50)
        assert len(got) - n_held == left[worker]
        for lease in got[n_held:]:
            ledger.release(worker, lease.item, now=101)
