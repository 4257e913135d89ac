"""Known labels and facts under names."""

from __future__ import annotations

import pytest

from goldspan.errors import FaultsError, InputError
from goldspan.spans import Codec


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


def test_a_version_of_the_guideline_marks_the_answers_that_come_after_it(ledger):
    ledger.open_batch("b", ["i0", "i1", "i2"], k=1, now=1)
    ledger.submit("a", "w", "i0", ["yes"], 1)
    assert ledger.crowd().answers.guideline is None
    assert ledger.begin_version({"hash": "a"}, ledger.tagset, 2) == 1
    ledger.submit("b", "w", "i1", ["no"], 3)
    more = Codec.from_types(["no", "unsure", "yes"], "PLAIN")
    assert ledger.begin_version({"hash": "b"}, more, 4) == 2
    n_events = ledger.n_events
    assert ledger.begin_version({"hash": "b"}, more, 5) == 2
    assert ledger.n_events == n_events
    ledger.submit("c", "w", "i2", ["unsure"], 6)
    for crowd in (ledger.crowd(), ledger.crowd("batch")):
        assert crowd.answers.guideline.tolist() == [1, 1, 2]
    found = ledger.records("version")
    assert {name: (row["hash"], row["after"]) for name, row in found.items()} == {
        "1": ("a", 0), "2": ("b", 2),
    }  # fmt: skip
    assert ledger.verify() == ledger.n_events


@pytest.mark.parametrize("types", [["no", "unsure"], ["yes"]])
def test_a_version_cannot_take_labels_away(ledger, types):
    n_events = ledger.n_events
    with pytest.raises(InputError, match="labels can only be added"):
        ledger.begin_version({"hash": "a"}, Codec.from_types(types, "PLAIN"), 1)
    with pytest.raises(InputError, match="labels can only be added"):
        ledger.begin_version({"hash": "a"}, Codec.from_types(["no", "yes"], "BIO"), 1)
    assert (ledger.n_events, ledger.tagset.types) == (n_events, ("no", "yes"))
