"""Families in what workers get next: of two items the one that none of the family has answered."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from goldspan.store import assignments, open_ledger
from goldspan.store.assignments import HOUR, Family
from goldspan.store.verify import faults_of

KIN = {"a": "abc", "b": "abc", "c": "abc"}


def lease(ledger, worker, now=5, n=1, most=None, family=None):
    """Hold items for a worker, whose family are those of `KIN` by default."""
    if family is None:
        family = Family(tuple(one for one in KIN.get(worker, "") if one != worker), most)
    held = ledger.transact(now, lambda entry: assignments.lease(entry, worker, 60, n, None, family))
    return [one.item for one in held]


def answer(ledger, worker, now=5, **more):
    """Hold and answer the next item; None if there is none."""
    for item in lease(ledger, worker, now, **more):
        key = f"{worker}-{item}"
        assert ledger.submit(key, worker, item, ["yes"], now=now + 1).status == "accepted"
        return item
    return None


@pytest.fixture
def opened(new_ledger):
    """Six items with three places each."""
    ledger = new_ledger(6)
    ledger.open_batch("b", [f"i{n}" for n in range(6)], k=3, now=1)
    return ledger


def test_an_item_that_a_member_has_answered_or_holds_comes_last(opened):
    assert [answer(opened, "a") for _ in range(2)] == ["i0", "i1"]
    assert lease(opened, "b") == ["i2"]  # b holds it
    assert answer(opened, "c") == "i3"
    assert answer(opened, "a") == "i4"
    assert answer(opened, "c") == "i5"
    assert answer(opened, "d") == "i0"  # who errs alone is asked in the order of the batch
    # Nothing is left that nobody of the family has answered: the first that a has not had.
    assert answer(opened, "a") == "i2"
    assert faults_of(opened.database) == []
    opened.verify()


def test_several_items_at_once_are_of_the_same_rule(opened):
    assert lease(opened, "a", n=2) == ["i0", "i1"]
    assert lease(opened, "b", n=4) == ["i2", "i3", "i4", "i5"]
    assert lease(opened, "c", n=2) == ["i0", "i1"]


def test_an_item_takes_no_more_of_a_family_while_others_can_answer_it(opened):
    assert [answer(opened, "a", most=1) for _ in range(6)] == [f"i{n}" for n in range(6)]
    assert answer(opened, "d") == "i0"  # d is at work, and has not had the others
    assert answer(opened, "b", most=1) == "i0"  # no use waiting for d
    assert answer(opened, "b", most=1) is None
    assert answer(opened, "c", most=2) == "i1"  # one of the family has answered it
    # An hour after d's last answer nobody waits for him any more.
    assert answer(opened, "b", now=5 + HOUR, most=1) is None
    assert answer(opened, "b", now=7 + HOUR, most=1) == "i1"


def test_who_is_barred_or_holds_nothing_is_not_waited_for(opened):
    for _ in range(6):
        answer(opened, "a", most=1)
    assert lease(opened, "d") == ["i0"]  # at work, though without an answer
    assert answer(opened, "b", most=1) == "i0"
    assert answer(opened, "b", most=1) is None
    opened.bar("d", 9)
    assert answer(opened, "b", now=9, most=1) == "i1"


def test_two_of_three_may_answer_and_fewer_first(opened):
    for _ in range(6):
        answer(opened, "a", most=2)
    assert answer(opened, "d") == "i0"
    assert [answer(opened, "b", most=2) for _ in range(2)] == ["i0", "i1"]
    assert answer(opened, "c", most=2) == "i2"
    for _ in range(5):
        answer(opened, "b", most=2)
    assert [answer(opened, "c", most=2) for _ in range(2)] == [None, None]


def test_gold_questions_and_items_by_name_are_for_the_whole_family(opened):
    answer(opened, "a")
    family = Family(("a", "c"), 1)
    held = opened.transact(5, lambda entry: assignments.lease(entry, "b", 60, 1, ["i0"], family))
    assert [one.item for one in held] == ["i0"]


def test_members_who_never_came_and_the_worker_himself_change_nothing(opened):
    assert answer(opened, "a", family=Family(("never", "a"), 1)) == "i0"
    assert answer(opened, "a", family=Family(("never", "a"), 1)) == "i1"


def test_an_item_that_is_too_dear_is_passed(new_ledger):
    ledger = new_ledger(3, cap=25)
    ledger.open_batch("b", ["i0", "i1", "i2"], k=2, now=1)
    assert answer(ledger, "a") == "i0"
    assert lease(ledger, "b", n=3) == ["i1"]


def test_a_hint_moves_on_and_begins_again_at_the_end(new_ledger, monkeypatch):
    monkeypatch.setattr(assignments, "AHEAD", (2, 4))
    ledger = new_ledger(12, cap=10_000)
    ledger.open_batch("b", [f"i{n}" for n in range(12)], k=3, now=1)
    mine, its = Family(("b",)), Family(("a",))
    # In turns: neither gets what the other has answered, and all of it is answered once.
    got = [answer(ledger, "ab"[n % 2], family=(mine, its)[n % 2]) for n in range(12)]
    assert sorted(got, key=lambda item: int(item[1:])) == [f"i{n}" for n in range(12)]


def test_what_comes_free_again_behind_the_hint_is_found(opened):
    family = Family(("b",))
    assert lease(opened, "b", n=3) == ["i0", "i1", "i2"]
    assert [answer(opened, "a", family=family) for _ in range(2)] == ["i3", "i4"]
    opened.release("b", "i1", 8)
    assert answer(opened, "a", now=8, family=family) == "i5"
    assert answer(opened, "a", now=8, family=family) == "i1"
    assert answer(opened, "a", now=8, family=family) == "i0"  # nothing else is left


def test_the_members_of_a_private_campaign_are_found_by_their_ids(new_place):
    from goldspan.protocols import PoolItem
    from goldspan.store import create_ledger
    from store.conftest import TAGS

    ledger = create_ledger(
        new_place(), name="c", cap=1000, currency="EUR", tagset=TAGS, now=0, private=True
    )
    ledger.add_items([PoolItem(f"i{n}", ("t",), cost=1) for n in range(3)], now=0)
    ledger.open_batch("b", ["i0", "i1", "i2"], k=2, now=1)
    assert [answer(ledger, "a"), answer(ledger, "b"), answer(ledger, "c")] == ["i0", "i1", "i2"]
    ledger.close()


def test_eight_threads_of_two_families_give_no_item_twice_within_one(new_place, new_ledger):
    place = new_place()
    first = new_ledger(40, cap=10_000, place=place)
    first.open_batch("b", [f"i{n}" for n in range(40)], k=2, now=1)
    families = {worker: "stuv" if worker in "stuv" else "wxyz" for worker in "stuvwxyz"}

    def work(ledger, worker):
        family = Family(tuple(one for one in families[worker] if one != worker), 1)
        done = [early[worker]] if worker in early else []
        while item := answer(ledger, worker, family=family):
            done.append(item)
        return done

    early = {worker: answer(first, worker) for worker in "sw"}  # somebody of both is at work
    with open_ledger(place) as second, ThreadPoolExecutor(8) as pool:
        done = list(pool.map(work, [first, second] * 4, families))
    for members in (done[:4], done[4:]):
        counts = Counter(item for items in members for item in items)
        assert max(counts.values()) == 1
    assert faults_of(first.database) == []
    first.verify()
