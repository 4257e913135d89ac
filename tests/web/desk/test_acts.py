"""What the requester decides: it is kept, it acts, and no rule undoes it."""

from __future__ import annotations

import pytest

from goldspan.campaign import Campaign, Decision
from goldspan.web.errors import Refused
from goldspan.web.people import BAR
from web.serving import answer


def test_what_was_decided_is_gold_and_no_doubt_any_more(fresh):
    first = fresh.desk.doubts(1)[0]
    other = {"rain": "sun", "sun": "rain"}[first["found"]["label"]]
    assert fresh.desk.adjudicate(first["item"], other) == {"item": first["item"], "gold": other}
    assert fresh.desk.item(first["item"])["gold"] == other
    assert first["item"] not in [row["item"] for row in fresh.desk.doubts()]
    assert [row["item"] for row in fresh.desk.items(state="gold")["items"]] == [first["item"]]
    fresh.engine.look()
    assert fresh.desk.item(first["item"])["found"]["label"] == other


def test_the_last_decision_counts(fresh):
    item = fresh.desk.doubts(1)[0]["item"]
    for label in ("rain", "sun", "rain"):
        fresh.desk.adjudicate(item, label)
    assert fresh.desk.item(item)["gold"] == "rain"


def test_spans_are_decided_too(tmp_path):
    from goldspan.spans import Span
    from web.desk.conftest import worked

    service = worked(tmp_path, spans=True)
    item = service.desk.doubts(1)[0]["item"]
    found = service.desk.adjudicate(item, [Span("LOC", 0, 1)])["gold"]
    assert found == [{"start": 0, "end": 1, "type": "LOC"}]
    with pytest.raises(Refused, match="none of LOC"):
        service.desk.adjudicate(item, [Span("PER", 0, 1)])
    service.close()


@pytest.mark.parametrize(
    ("item", "label", "status"),
    [("nothing", "rain", 404), ("control", "rain", 422), ("", "x", 422)],
)
def test_a_decision_that_does_not_fit_is_refused(fresh, item, label, status):
    names = {"control": next(iter(fresh.inputs.control)), "": fresh.desk.doubts(1)[0]["item"]}
    with pytest.raises(Refused) as caught:
        fresh.desk.adjudicate(names.get(item, item), label)
    assert caught.value.status == status


def test_a_dropped_worker_is_asked_nothing_more_and_can_come_back(fresh):
    assert fresh.desk.judge("cat.k", "drop")["verdict"] == "drop"
    assert answer(fresh, "cat.k") is None
    row = next(row for row in fresh.desk.workers() if row["worker"] == "cat.k")
    assert (row["barred"], row["decided"], row["standing"]) == (True, "drop", "dropped")
    fresh.desk.judge("cat.k", "keep")
    assert answer(fresh, "cat.k") is not None


def test_no_rule_undoes_that_a_worker_is_kept(fresh):
    fresh.ledger.record(BAR, "cat.k", {"why": "a rule"}, fresh.clock())
    Campaign(fresh.inputs, fresh.ledger, fresh.campaign.steps).run()  # as after a restart
    assert fresh.ledger.standing()["cat.k"]
    fresh.desk.judge("cat.k", "keep")
    Campaign(fresh.inputs, fresh.ledger, fresh.campaign.steps).run()
    assert not fresh.ledger.standing()["cat.k"]


def test_testing_more_asks_control_questions(fresh):
    before = len(fresh.people["ann.k"].control)
    assert fresh.desk.judge("ann.k", "test")["questions"] > 0
    while len(fresh.people["ann.k"].control) < len(fresh.inputs.control):
        item, _ = answer(fresh, "ann.k")
        assert item in fresh.inputs.control
    assert len(fresh.people["ann.k"].control) > before


@pytest.mark.parametrize(
    ("worker", "verdict", "status"), [("nobody", "keep", 404), ("ann.k", "fire", 422)]
)
def test_other_verdicts_and_strangers_are_refused(fresh, worker, verdict, status):
    with pytest.raises(Refused) as caught:
        fresh.desk.judge(worker, verdict)
    assert caught.value.status == status


def test_a_pause_hands_out_nothing_and_takes_answers(fresh):
    task = fresh.work.next("ann.k")["task"]["id"]
    fresh.desk.pause()
    assert fresh.desk.overview()["state"] == "paused"
    assert fresh.work.next("dan")["state"] == "paused"
    assert fresh.work.submit("ann.k", task, "key-of-ann", "rain")["status"] == "accepted"
    fresh.desk.pause(paused=False)
    assert fresh.work.next("dan")["state"] == "task"


@pytest.mark.parametrize("paused", [False, True])
def test_after_a_stop_nobody_gets_a_task_and_the_loop_ends_all_the_same(fresh, paused):
    fresh.desk.pause(paused=paused)
    fresh.desk.stop()
    assert fresh.desk.overview()["state"] == "ending"
    assert fresh.work.next("dan")["state"] != "task"
    assert isinstance(fresh.campaign.run(), Decision)
    assert fresh.work.next("dan")["state"] != "task"


@pytest.mark.parametrize("act", ["pause", "resume", "stop"])
def test_a_campaign_that_has_ended_is_neither_paused_nor_stopped_again(fresh, act):
    fresh.desk.stop()
    fresh.campaign.run()
    events = fresh.ledger.n_events
    acts = {"pause": fresh.desk.pause, "stop": fresh.desk.stop,
            "resume": lambda: fresh.desk.pause(paused=False)}  # fmt: skip
    with pytest.raises(Refused, match=r"has ended \(the requester ended it\)") as caught:
        acts[act]()
    assert (caught.value.code, caught.value.status) == ("gone", 410)
    assert fresh.ledger.n_events == events


def test_a_campaign_that_is_ending_is_not_resumed_and_a_second_stop_changes_nothing(fresh):
    fresh.desk.stop()
    with pytest.raises(Refused, match="is ending"):
        fresh.desk.pause(paused=False)
    assert fresh.desk.stop() == {"ended": True}
    assert fresh.work.next("dan")["state"] != "task"


def test_a_stop_ends_the_campaign_at_the_next_look(fresh):
    fresh.desk.stop()
    assert fresh.desk.overview()["state"] == "ending"
    assert fresh.campaign.run().rule == "requester"
    assert fresh.desk.overview()["state"] == "ended"
    assert fresh.desk.overview()["why"] == "the requester ended it"
