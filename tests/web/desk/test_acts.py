"""What the requester decides: it is kept, it acts, and no rule undoes it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from goldspan.campaign import Campaign
from goldspan.campaign.judging import DECISION
from goldspan.store.journal import Database
from goldspan.web.errors import Refused
from goldspan.web.people import BAR
from web.desks import as_json
from web.serving import answer


def test_what_was_decided_is_gold_and_no_doubt_any_more(fresh):
    first = as_json(fresh.desk.uncertain(1))[0]
    other = {"rain": "sun", "sun": "rain"}[first["found"]["label"]]
    assert as_json(fresh.desk.adjudicate(first["item"], other)) == {
        "item": first["item"],
        "gold": other,
    }
    assert as_json(fresh.desk.item(first["item"]))["gold"] == other
    assert first["item"] not in [row["item"] for row in as_json(fresh.desk.uncertain())]
    assert [row["item"] for row in as_json(fresh.desk.items(state="gold"))["items"]] == [
        first["item"]
    ]
    fresh.engine.look()
    assert as_json(fresh.desk.item(first["item"]))["found"]["label"] == other


def test_a_decision_is_taken_back_as_if_it_had_not_been(fresh):
    before, item = fresh.ledger.crowd(), fresh.desk.uncertain(1)[0].item
    for left in (["rain", None], [None]):  # sent again, what was taken back does not hold
        fresh.desk.adjudicate(item, "rain", key="a-request-of-ours")
        fresh.desk.adjudicate(item, "sun")
        for gold in left:
            assert as_json(fresh.desk.retract(item)) == {"item": item, "gold": gold}
            assert fresh.desk.item(item).gold == gold
        fresh.engine.look()
        assert fresh.desk.item(item).gold is None
        assert fresh.desk.items(state="gold").items == []
        assert item in [row.item for row in fresh.desk.uncertain()]
        gold = fresh.ledger.crowd().gold
        assert gold is before.gold is None or np.array_equal(gold, before.gold)
        for name in (item, "nothing", next(iter(fresh.inputs.control))):
            with pytest.raises(Refused, match="no decision about") as caught:
                fresh.desk.retract(name)
            assert caught.value.status == 404
    fresh.ledger.verify()


def test_taken_back_at_once_a_decision_leaves_no_gold(fresh, monkeypatch):
    before, item = fresh.ledger.crowd(), fresh.desk.uncertain(1)[0].item
    transact, later = fresh.ledger.transact, [fresh.desk.retract]

    def and_take_back(*args):
        done = transact(*args)
        while later:
            later.pop()(item)
        return done

    monkeypatch.setattr(fresh.ledger, "transact", and_take_back)
    fresh.desk.adjudicate(item, "rain")
    assert fresh.desk.gold_labels() == {}
    gold = fresh.ledger.crowd().gold
    assert gold is before.gold is None or np.array_equal(gold, before.gold)


def test_a_decision_that_does_not_fit_is_refused(fresh):
    control, item = next(iter(fresh.inputs.control)), fresh.desk.uncertain(1)[0].item
    for name, label, status in (("nothing", "rain", 404), (control, "rain", 422), (item, "x", 422)):
        with pytest.raises(Refused) as caught:
            fresh.desk.adjudicate(name, label)
        assert caught.value.status == status


def test_a_dropped_worker_is_asked_nothing_more_and_can_come_back(fresh):
    assert as_json(fresh.desk.judge("cat.k", "drop"))["verdict"] == "drop"
    assert answer(fresh, "cat.k") is None
    row = next(row for row in as_json(fresh.desk.workers()) if row["worker"] == "cat.k")
    assert (row["barred"], row["decided"], row["standing"]) == (True, "drop", "dropped")
    fresh.desk.judge("cat.k", "keep")
    assert answer(fresh, "cat.k") is not None


@pytest.mark.parametrize("nth", [1, 2])
def test_of_two_who_judge_a_worker_at_once_the_last_decision_acts(fresh, monkeypatch, nth):
    write, n_writes = Database.write, itertools.count(1)

    def after_hers(*args, **kwargs):
        if next(n_writes) == nth:
            fresh.desk.judge("cat.k", "keep", key="a-request-of-hers")
        return write(*args, **kwargs)

    monkeypatch.setattr(Database, "write", after_hers)
    fresh.desk.judge("cat.k", "drop", key="a-request-of-ours")
    monkeypatch.undo()
    *_, last = fresh.ledger.records(DECISION).values()
    assert fresh.ledger.is_barred("cat.k") == (last["verdict"] == "drop")
    fresh.desk.judge("cat.k", "keep")
    fresh.desk.judge("cat.k", "drop", key="a-request-of-ours")  # sent again
    assert not fresh.ledger.is_barred("cat.k")


def test_no_rule_undoes_that_a_worker_is_kept(fresh):
    fresh.ledger.record(BAR, "cat.k", {"why": "a rule"}, fresh.clock())
    Campaign(fresh.inputs, fresh.ledger, fresh.campaign.steps).run()  # as after a restart
    assert fresh.ledger.standing()["cat.k"]
    fresh.desk.judge("cat.k", "keep")
    Campaign(fresh.inputs, fresh.ledger, fresh.campaign.steps).run()
    assert not fresh.ledger.standing()["cat.k"]


def test_testing_more_asks_control_questions(fresh):
    before = len(fresh.people["ann.k"].control)
    assert as_json(fresh.desk.judge("ann.k", "test"))["questions"] > 0
    while len(fresh.people["ann.k"].control) < len(fresh.inputs.control):
        item, _ = answer(fresh, "ann.k")
        assert item in fresh.inputs.control
    assert len(fresh.people["ann.k"].control) > before


def test_a_pause_hands_out_nothing_and_takes_answers(fresh):
    task = fresh.work.next("ann.k")["task"]["id"]
    fresh.desk.pause()
    assert as_json(fresh.desk.overview())["state"] == "paused"
    assert fresh.work.next("dan")["state"] == "paused"
    assert fresh.work.submit("ann.k", task, "key-of-ann", "rain")["status"] == "accepted"
    fresh.desk.pause(paused=False)
    assert fresh.work.next("dan")["state"] == "task"


@pytest.mark.parametrize("paused", [False, True])
def test_a_campaign_that_is_stopped_ends_at_the_next_look_paused_or_not(fresh, paused):
    fresh.desk.pause(paused=paused)
    fresh.desk.stop()
    assert as_json(fresh.desk.overview())["state"] == "ending"
    with pytest.raises(Refused, match="is ending"):
        fresh.desk.pause(paused=False)
    assert as_json(fresh.desk.stop()) == {"ended": True}
    assert fresh.work.next("dan")["state"] != "task"
    assert fresh.campaign.run().rule == "requester"
    now, events = as_json(fresh.desk.overview()), fresh.ledger.n_events
    assert (now["state"], now["why"]) == ("ended", "the requester ended it")
    assert fresh.work.next("dan")["state"] != "task"
    for act in (fresh.desk.pause, fresh.desk.stop, lambda: fresh.desk.pause(paused=False)):
        with pytest.raises(Refused, match=r"has ended \(the requester ended it\)") as caught:
            act()
        assert (caught.value.code, caught.value.status) == ("gone", 410)
    assert fresh.ledger.n_events == events
