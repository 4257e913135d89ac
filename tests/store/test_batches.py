"""Batches: exactly k places per item, more or fewer later."""

from __future__ import annotations

import pytest

from goldspan.errors import FaultsError, InputError


def places(ledger):
    rows = ledger.slots().to_pylist()
    return {row["item"]: (row["wanted"], row["places"]) for row in rows}


def test_every_item_of_a_batch_has_k_places(ledger):
    assert ledger.open_batch("b", ["i1", "i0"], k=3, now=1) == 1
    assert ledger.open_batch("c", ["i2"], k=1, now=1) == 2
    assert places(ledger) == {"i1": (3, 3), "i0": (3, 3), "i2": (1, 1)}
    assert ledger.slots()["batch"].to_pylist() == ["b", "b", "c"]


def test_the_same_batch_again_stays_and_another_under_its_name_is_refused(ledger):
    ledger.open_batch("b", ["i1", "i0"], k=3, now=1)
    n_events = ledger.verify()
    assert ledger.open_batch("b", ["i1", "i0"], k=3, now=2) == 1
    assert ledger.verify() == n_events
    for items, k in ((["i0", "i1"], 3), (["i1", "i0"], 2)):
        with pytest.raises(InputError, match="batch 'b' is open with other items"):
            ledger.open_batch("b", items, k, now=3)


@pytest.mark.parametrize(
    ("items", "k", "message"),
    [
        (["i0", "i9"], 1, "item i9: is not in the pool"),
        (["i0", "i0"], 1, "names 1 items twice"),
        (["i3"], 1, "item i3: is in a batch already"),
        ([], 1, "a batch needs items"),
        (["i0"], 0, "a batch needs items"),
        (["i0"], True, "k must be a whole number"),
    ],
)
def test_a_batch_that_cannot_be_is_refused_whole(ledger, items, k, message):
    ledger.open_batch("old", ["i3"], k=1, now=1)
    with pytest.raises(InputError, match=message):
        ledger.open_batch("b", items, k, now=2)
    assert list(places(ledger)) == ["i3"]


def test_what_cannot_be_adjusted_is_named(ledger):
    with pytest.raises(FaultsError, match="item i0: is in no batch"):
        ledger.adjust({"i0": 2}, now=3)
    with pytest.raises(InputError, match="k of i0 must be a whole number"):
        ledger.adjust({"i0": -1}, now=3)
