"""Pages of the items that are in a batch, and their order."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from goldspan.errors import UnknownNameError
from goldspan.store import open_ledger


@pytest.fixture
def open_ledger_of_five(new_ledger):
    """Two batches in an order of their own; i3 has what it wants, i0 has one of two answers."""
    ledger = new_ledger(6)
    ledger.open_batch("a", ["i3", "i1"], k=1, now=1)
    ledger.open_batch("b", ["i5", "i0", "i2"], k=2, now=1)
    for key, (worker, item) in enumerate([("v", "i3"), ("v", "i0")]):
        ledger.submit(f"k{key}", worker, item, ["yes"], 2)
    return ledger


def names(rows):
    return [row.item for row in rows]


def test_a_page_says_what_the_table_of_slots_says(open_ledger_of_five):
    table = open_ledger_of_five.slots()
    rows = open_ledger_of_five.page()
    assert names(rows) == ["i3", "i1", "i5", "i0", "i2"] == table["item"].to_pylist()
    for name in ("batch", "wanted", "leased", "filled"):
        assert [getattr(row, name) for row in rows] == table[name].to_pylist()
    assert open_ledger_of_five.n_slots == 5


def test_pages_follow_each_other(open_ledger_of_five):
    first = open_ledger_of_five.page(limit=2)
    second = open_ledger_of_five.page(first[-1].position, limit=2)
    assert names(first + second) == ["i3", "i1", "i5", "i0"]
    assert names(open_ledger_of_five.page(second[-1].position, limit=2)) == ["i2"]
    assert open_ledger_of_five.position("i1") == first[-1].position
    assert open_ledger_of_five.position("i4") is None


def test_a_page_holds_only_the_items_asked_for(open_ledger_of_five):
    page = open_ledger_of_five.page
    assert names(page(state="done")) == ["i3"]
    assert names(page(state="open", limit=2)) == ["i1", "i5"]
    assert names(page(numbers=[1, 4, 5])) == ["i3", "i0"]
    assert names(page(numbers=[1, 4], state="open")) == ["i0"]
    assert page(numbers=[]) == []
    with pytest.raises(UnknownNameError, match="all, open, done"):
        page(state="lost")


def test_an_adjusted_item_changes_its_state_and_stays_in_its_place(open_ledger_of_five):
    open_ledger_of_five.adjust({"i3": 2, "i5": 0}, 3)
    assert names(open_ledger_of_five.page(state="open")) == ["i3", "i1", "i0", "i2"]
    assert open_ledger_of_five.slots()["wanted"].to_pylist() == [2, 1, 0, 2, 2]


def test_the_table_of_slots_grows_and_counts_anew(new_place, new_ledger):
    place = new_place()
    ledger = new_ledger(4, place=place)
    assert ledger.slots().num_rows == len(ledger.asked()) == 0
    with open_ledger(place) as other:
        for n, item in enumerate(["i2", "i0", "i3"]):
            other.open_batch(f"b{n}", [item], k=2, now=1)
            (lease,) = ledger.lease(f"w{n}", 2, 9, items=[item])
            ledger.submit(f"k{n}", f"w{n}", lease.item, ["no"], 2)
            expected = other.slots()
            assert ledger.slots().equals(expected)
            assert expected["filled"].to_pylist() == [1] * (n + 1)
            assert expected["places"].to_pylist() == [2] * (n + 1)
    asked = ledger.asked()
    assert asked.item.to_pylist() == ["i2", "i0", "i3"]
    assert (asked.number.tolist(), asked.batch.to_pylist()) == ([3, 1, 4], ["b0", "b1", "b2"])


def test_threads_that_look_while_batches_are_opened_see_whole_tables(new_ledger):
    ledger = new_ledger(12)
    with ThreadPoolExecutor(4) as pool:
        opened = pool.submit(
            lambda: [ledger.open_batch(f"b{n}", [f"i{n}"], k=1, now=1) for n in range(12)]
        )
        tables = list(pool.map(lambda _: ledger.slots(), range(30)))
        opened.result()
    final = ledger.slots()
    assert final["item"].to_pylist() == [f"i{n}" for n in range(12)]
    assert all(table.equals(final.slice(0, table.num_rows)) for table in tables)
