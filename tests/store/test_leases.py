"""Leases: the next free places in order, the money behind them, and how they end."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from goldspan.errors import FaultsError, InputError
from goldspan.protocols import PoolItem
from goldspan.store import assignments
from goldspan.store.verify import faults_of


def items_of(leases):
    return [lease.item for lease in leases]


@pytest.fixture
def open_ledger(ledger):
    ledger.open_batch("b", ["i2", "i0", "i1"], k=2, now=1)
    ledger.open_batch("c", ["i3"], k=1, now=1)
    return ledger


def test_only_items_that_are_named_are_given_in_the_order_of_their_names(open_ledger):
    got = open_ledger.lease("w", 2, 9, n=1, items=["i1", "i2"])
    assert items_of(got) == ["i1"]
    with pytest.raises(FaultsError, match="item i9: is not in the pool"):
        open_ledger.lease("w", 2, 9, items=["i9"])


def test_too_many_names_are_refused(open_ledger):
    with pytest.raises(InputError, match="10001 items are too many"):
        open_ledger.lease("w", 2, 9, items=["i0"] * 10_001)


def test_a_cheaper_item_is_given_where_the_first_is_too_dear(new_ledger):
    ledger = new_ledger(0, cap=10)
    ledger.add_items([PoolItem("dear", ("t",), 11), PoolItem("cheap", ("t",), 9)], 0)
    ledger.open_batch("b", ["dear", "cheap"], k=1, now=1)
    assert items_of(ledger.lease("w", 2, 9)) == ["cheap"]
    ledger.set_cap(20, 3)
    assert items_of(ledger.lease("w", 4, 9, n=2)) == ["dear", "cheap"]


def test_a_search_among_dear_items_is_given_up(new_ledger, monkeypatch):
    monkeypatch.setattr(assignments, "MOST_PASSED", 2)
    monkeypatch.setattr(assignments, "WINDOW", 2)
    ledger = new_ledger(0, cap=10)
    pool = [PoolItem(f"dear{k}", ("t",), 11) for k in range(3)]
    ledger.add_items([*pool, PoolItem("cheap", ("t",), 9)], 0)
    ledger.open_batch("b", [item.id for item in pool] + ["cheap"], k=1, now=1)
    assert ledger.lease("w", 2, 9) == []


@pytest.mark.parametrize(
    ("seconds", "n"), [(0, 1), (-1, 1), (float("nan"), 1), (1, 0), (1, True), (1, 1001)]
)
def test_a_lease_of_no_time_or_no_number_is_refused(open_ledger, seconds, n):
    with pytest.raises(InputError, match="must be"):
        open_ledger.lease("w", 2, seconds, n)


@pytest.mark.parametrize("new_place", ["sqlite"], indirect=True)
def test_the_queue_is_read_through_its_index(open_ledger):
    with open_ledger.database.read() as connection:
        query = str(assignments._WINDOW)
        for name in ("who", "start", "size"):
            query = query.replace(f":{name}", "1")
        plan = connection.execute(text(f"EXPLAIN QUERY PLAN {query}")).all()
    assert any("INDEX slots_free" in row[-1] for row in plan)
    assert not any("USE TEMP B-TREE" in row[-1] for row in plan)


def test_control_questions_are_given_only_by_name(open_ledger):
    open_ledger.set_gold({"i2": ["yes"]}, 2, control=True)
    got = [lease.item for lease in open_ledger.lease("w", 3, 9, n=4)]
    assert "i2" not in got
    assert len(got) == 3
    assert [lease.item for lease in open_ledger.lease("w", 4, 9, items=["i2"])] == ["i2"]


def test_polling_without_work_writes_nothing(open_ledger):
    open_ledger.lease("w", 2, 9, n=4)
    for item in ("i2", "i0", "i1", "i3"):
        open_ledger.submit(item, "w", item, ["yes"], 3)
    open_ledger.lease("w", 4, 9)
    n_events = open_ledger.verify()
    assert open_ledger.lease("w", 5, 9) == []
    assert open_ledger.verify() == n_events
    assert faults_of(open_ledger.database) == []


@pytest.mark.parametrize("ahead", [3_600_000, 31_536_000_000])
def test_an_event_of_a_process_whose_clock_is_ahead_ends_no_lease(open_ledger, ahead):
    begin = 1_000_000
    open_ledger.lease("ann", begin, 60)
    open_ledger.record("note", "of another process", {}, begin + ahead)
    open_ledger.pause(begin + ahead)
    assert open_ledger.expire(begin + 59_999) == 0
    assert len(open_ledger.held("ann", begin + 59_999)) == 1
    assert open_ledger.expire(begin + 60_000) == 1
    times = [event.time for event in open_ledger.events()]
    assert times == sorted(times)
