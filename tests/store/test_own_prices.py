"""Workers with prices of their own: the upper bound is reserved, what was used is paid, once."""

from __future__ import annotations

import pytest

from goldspan.errors import InputError
from goldspan.protocols import Price
from goldspan.store import assignments
from goldspan.store.assignments import Family
from goldspan.store.verify import faults_of, verify

NAMES = ["i0", "i1", "i2"]


@pytest.fixture
def opened(new_ledger):
    """Three items of 10 millionths with three places each; the cap is 1000."""
    ledger = new_ledger(3)
    ledger.open_batch("b", NAMES, k=3, now=1)
    return ledger


def money(ledger):
    totals = ledger.totals()
    return totals.reserved, totals.spent


def whole(ledger):
    ledger.verify()
    return faults_of(ledger.database) == []


def test_the_bound_is_reserved_and_the_use_is_paid(opened):
    (held,) = opened.lease("gpt", 2, 60, 1, ["i1"], price=Price(700))
    assert (held.item, held.cost, money(opened)) == ("i1", 700, (700, 0))
    receipt = opened.submit("k", "gpt", "i1", ["yes"], 3, cost=31)
    assert (receipt.status, receipt.cost, money(opened)) == ("accepted", 31, (0, 31))
    again = opened.submit("k", "gpt", "i1", ["yes"], 4, cost=31)
    assert (again.repeated, again.cost, money(opened)) == (True, 31, (0, 31))
    assert whole(opened)


def test_what_is_taken_up_again_keeps_what_was_reserved(opened):
    opened.lease("gpt", 2, 60, 1, ["i1"], price=Price(700))
    opened.lease("gpt", 3, 60, 1, ["i1"], price=Price(700))
    assert money(opened) == (700, 0)


def test_a_bound_that_the_money_does_not_reach_is_not_leased(opened):
    assert opened.lease("gpt", 2, 60, 1, ["i1"], price=Price(1001)) == []
    opened.lease("gpt", 2, 60, 1, ["i1"], price=Price(995))
    assert opened.lease("ann", 2, 60, 1) == []
    opened.submit("k", "gpt", "i1", ["yes"], 3, cost=10)
    assert len(opened.lease("ann", 4, 60, 1)) == 1


@pytest.mark.parametrize(("reserved", "used", "paid"), [(400, 900, 900), (400, 1200, 1000)])
def test_what_is_above_the_bound_is_paid_as_far_as_the_cap_allows(opened, reserved, used, paid):
    opened.lease("gpt", 2, 60, 1, ["i1"], price=Price(reserved))
    assert opened.submit("k", "gpt", "i1", ["yes"], 3, cost=used).cost == paid
    assert money(opened) == (0, paid)
    assert whole(opened)


def test_a_price_per_token_and_the_next_item(opened):
    (held,) = opened.lease("expert", 2, 60, 1, price=Price(200, 50))
    assert held.cost == 250
    (other,) = opened.lease("ann", 2, 60, 1)
    assert other.cost == 10
    assert opened.submit("k", "expert", held.item, ["yes"], 3).cost == 250
    assert money(opened) == (10, 250)


def test_a_family_finds_what_its_price_allows(opened):
    opened.lease("a", 2, 60, 1)

    def lease(entry):
        return assignments.lease(entry, "b", 60, 1, None, Family(("a",)), Price(700))

    (held,) = opened.transact(3, lease)
    assert (held.item, held.cost, money(opened)) == ("i1", 700, (710, 0))


def test_an_answer_without_a_lease_costs_what_its_worker_does(opened):
    assert opened.submit("k", "expert", "i0", ["yes"], 2, cost=300).cost == 300
    assert opened.submit("l", "expert", "i1", ["yes"], 2, cost=701).reason
    assert money(opened) == (0, 300)
    assert whole(opened)


def test_no_answer_frees_the_place_and_is_paid_once(opened):
    opened.lease("gpt", 2, 60, 1, ["i1"], price=Price(700))
    assert opened.release("gpt", "i1", 3, skip="cut", cost=40)
    assert money(opened) == (0, 40)
    assert not opened.release("gpt", "i1", 4, skip="cut", cost=40)
    assert opened.lease("gpt", 5, 60, 1, ["i1"], price=Price(700)) == []
    assert (money(opened), opened.skipped_by("gpt"), opened.skipped_by("ann")) == (
        (0, 40),
        {"i1"},
        set(),
    )
    assert whole(opened)


def test_no_answer_costs_no_more_than_the_cap_allows(opened):
    opened.lease("gpt", 2, 60, 1, ["i1"], price=Price(700))
    opened.lease("gpt", 2, 60, 1, ["i2"], price=Price(200))
    opened.release("gpt", "i1", 3, skip="cut", cost=5000)
    assert money(opened) == (200, 800)


@pytest.mark.parametrize("wrong", [-1, 0.5, True])
def test_prices_are_whole_and_not_negative(opened, wrong):
    with pytest.raises(InputError, match="must be whole millionths"):
        opened.lease("gpt", 2, 60, 1, ["i1"], price=Price(wrong))
    with pytest.raises(InputError, match="must be whole millionths"):
        opened.submit("k", "gpt", "i1", ["yes"], 2, cost=wrong)
    with pytest.raises(InputError, match="must be whole millionths"):
        opened.release("gpt", "i1", 2, cost=wrong)


def test_the_log_brings_back_the_same_money(opened):
    opened.lease("gpt", 2, 60, 1, ["i1"], price=Price(700))
    opened.submit("k", "gpt", "i1", ["yes"], 3, cost=31)
    opened.lease("gpt", 4, 60, 1, ["i2"], price=Price(500))
    opened.release("gpt", "i2", 5, skip="cut", cost=7)
    opened.lease("gpt", 6, 60, 1, ["i0"], price=Price(300))
    assert verify(opened.database).is_whole
    assert money(opened) == (300, 38)
