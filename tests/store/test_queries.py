"""Looking while a campaign runs."""

from __future__ import annotations

import pytest


@pytest.fixture
def open_ledger(ledger):
    ledger.open_batch("b", ["i2", "i0"], k=2, now=1)
    return ledger


def test_held_leases_are_those_of_the_worker_that_hold(open_ledger):
    open_ledger.lease("w", 2, 9)
    assert [lease.item for lease in open_ledger.held("w", 3)] == [
        lease.item for lease in open_ledger.lease("w", 3, 9)
    ]
    assert open_ledger.held("w", 2 + 9_000) == []
    assert open_ledger.held("other", 3) == []


def test_answers_are_rows_and_drafts_are_among_them(open_ledger):
    (lease,) = open_ledger.lease("w", 2, 9)
    open_ledger.submit("a", "w", lease.item, ["yes"], 3)
    open_ledger.submit("b", "w", lease.item, ["no"], 4)
    first, second = open_ledger.given()
    assert (first.status, first.counts, first.started, first.submitted) == ("accepted", True, 2, 3)
    assert (second.status, second.counts, second.cost) == ("duplicate", False, 0)
    assert first.labels is None
    assert [row.labels for row in open_ledger.given(lease.item)] == [["yes"], ["no"]]
    assert open_ledger.given("i3") == []


def test_skips_are_told_with_their_reason(open_ledger):
    (lease,) = open_ledger.lease("w", 2, 9)
    open_ledger.release("w", lease.item, 3, skip="too hard")
    assert [tuple(row) for row in open_ledger.skipped()] == [(lease.item, "w", "too hard", 3)]
    assert len(open_ledger.skipped(lease.item)) == 1


def test_who_is_barred_and_whether_it_pauses_can_be_seen(open_ledger):
    open_ledger.lease("w", 2, 9)
    open_ledger.bar("v", 3)
    open_ledger.pause(4)
    assert open_ledger.standing() == {"w": False, "v": True}
    assert [open_ledger.is_barred(name) for name in ("w", "v", "nobody")] == [False, True, False]
    assert open_ledger.is_paused
    open_ledger.pause(5, paused=False)
    assert not open_ledger.is_paused
