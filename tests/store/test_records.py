"""Known labels and facts under names."""

from __future__ import annotations

import pytest

from goldspan.errors import FaultsError, InputError


def test_gold_is_kept_and_new_gold_takes_its_place(ledger):
    ledger.set_gold({"i1": ["yes"], "i0": [None]}, 1, control=True)
    ledger.set_gold({"i1": ["no"]}, 2)
    n_events = ledger.verify()
    ledger.set_gold({"i1": ["no"]}, 3)
    assert ledger.verify() == n_events
    assert ledger.crowd("pool").tagged_by_id() == {
        **{name: [None] for name in ("i0", "i2", "i3")},
        "i1": ["no"],
    }


def test_gold_that_does_not_fit_is_refused(ledger):
    with pytest.raises(FaultsError, match="item i0: needs a list of 1 labels"):
        ledger.set_gold({"i0": ["yes", "no"]}, 1)
    with pytest.raises(FaultsError, match="item i9: is not in the pool"):
        ledger.set_gold({"i9": ["yes"]}, 1)


def test_records_come_back_by_kind_in_order(ledger):
    ledger.record("model", "v2", {"sha256": "ab", "f1": 0.1}, 1)
    ledger.record("note", "n", {}, 2)
    ledger.record("model", "v1", {"words": ["é", None, True]}, 3)
    found = ledger.records("model")
    assert list(found) == ["v2", "v1"]
    assert found == {"v2": {"sha256": "ab", "f1": 0.1}, "v1": {"words": ["é", None, True]}}


def test_one_record_is_found_and_those_of_a_kind_are_counted(ledger):
    ledger.record("note", "n", {"a": [1]}, 1)
    ledger.record("model", "n", {}, 2)
    assert ledger.fact("note", "n") == {"a": [1]}
    assert ledger.fact("note", "m") is None
    assert [ledger.count(kind) for kind in ("note", "model", "other")] == [1, 1, 0]


def test_a_record_stands_and_another_under_its_name_is_refused(ledger):
    ledger.record("note", "n", {"a": 1}, 1)
    n_events = ledger.verify()
    ledger.record("note", "n", {"a": 1}, 2)
    assert ledger.verify() == n_events
    with pytest.raises(InputError, match="the note 'n' is kept with other content"):
        ledger.record("note", "n", {"a": 2}, 3)


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, "\ud800"])
def test_what_json_cannot_hold_is_refused(ledger, value):
    with pytest.raises(InputError, match="what JSON can hold"):
        ledger.record("note", "n", {"a": value}, 1)
