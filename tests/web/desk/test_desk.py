"""What the requester sees: numbers that add up, doubts in their order, items by page."""

from __future__ import annotations

from decimal import Decimal

import pytest

from goldspan.web.desk import desk
from goldspan.web.engine import Live
from goldspan.web.work import FLAG
from goldspan.workers import choose_gold_questions
from web.desks import as_json
from web.serving import answer, open_round, serve


def test_money_that_is_spent_reserved_and_left_is_the_cap(service):
    money = as_json(service.desk.overview())["money"]
    parts = [Decimal(money[name]) for name in ("spent", "reserved", "left")]
    assert sum(parts) == Decimal(money["cap"]) == 8
    assert parts[0] == Decimal("0.05") * as_json(service.desk.overview())["answers"]["counting"]


def test_what_was_spent_is_split_into_labels_and_control_answers(service):
    now = as_json(service.desk.overview())
    money = {name: Decimal(amount) for name, amount in now["money"].items() if name != "currency"}
    n_control = now["answers"]["control"]
    assert n_control > 0
    assert money["control"] == Decimal("0.05") * n_control
    assert money["labels"] + money["control"] == money["spent"]


def test_a_bonus_is_spent_on_neither_labels_nor_control(fresh):
    before = as_json(fresh.desk.overview())["money"]
    assert fresh.ledger.charge("a bonus", 1_000_000, fresh.clock())
    after = as_json(fresh.desk.overview())["money"]
    assert Decimal(after["spent"]) == Decimal(before["spent"]) + 1
    assert [after["labels"], after["control"]] == [before["labels"], before["control"]]


def test_items_are_counted_alike_with_a_loop_and_without(fresh):
    looked = as_json(fresh.desk.overview())["items"]
    assert looked["answered"] > 0
    fresh.engine.live = Live()
    assert as_json(fresh.desk.overview())["items"] == looked


def test_the_overview_counts_answers_items_and_workers(service):
    now = as_json(service.desk.overview())
    rows = service.ledger.given()
    assert now["answers"]["counting"] == sum(row.counts for row in rows) == 18
    assert now["answers"]["control"] == sum(row.item in service.inputs.control for row in rows)
    assert now["answers"]["workers"] == 3
    labelled = {row.item for row in rows} - set(service.inputs.control)
    pool = service.inputs.pool.n_items - len(service.inputs.control)
    assert now["items"] == {"pool": pool, "picked": 5, "answered": len(labelled)}
    assert now["hours"] == {"used": round(54 / 3600, 3), "left": None}


def test_workers_are_told_with_money_control_verdict_and_seconds(service):
    rows = {row["worker"]: row for row in as_json(service.desk.workers())}
    assert set(rows) == {"ann.k", "bob.k", "cat.k"}
    assert rows["ann.k"]["earned"] == "0.30"
    assert rows["ann.k"]["control"]["right"] == rows["ann.k"]["control"]["total"] > 0
    unit = "texts" if service.inputs.plan.is_single else "marked words"
    assert rows["ann.k"]["control"]["unit"] == unit
    verdict = rows["ann.k"]["verdict"]
    assert 0 <= verdict["low"] <= verdict["mean"] <= verdict["high"] <= 1
    assert rows["cat.k"]["verdict"]["mean"] < rows["ann.k"]["verdict"]["mean"]
    assert rows["ann.k"]["seconds"] == 0  # asked and answered at one moment of the clock


@pytest.mark.parametrize("service", [True], indirect=True, ids=["spans"])
def test_all_that_overlaps_an_uncertain_span_is_named_with_it(service, monkeypatch):
    monkeypatch.setattr(desk, "LIKELY", 1)
    others = 0
    for row in as_json(service.desk.uncertain()):
        every = service.engine.live.result.alternatives(row["item"])
        least = min(every, key=lambda one: abs(one.confidence - 0.5), default=None)
        near = [a[:3] for a in every if a.start < least.end and least.start < a.end]
        named = row["found"]["alternatives"]
        assert [(one["start"], one["end"], one["type"]) for one in named] == near
        others += len(near) > 1
    assert others


def test_the_least_certain_items_come_first_and_control_questions_never(service):
    rows = as_json(service.desk.uncertain())
    sure = [row["found"]["confidence"] for row in rows]
    assert sure == sorted(sure)
    assert not {row["item"] for row in rows} & set(service.inputs.control)
    assert as_json(service.desk.uncertain(2)) == rows[:2]
    teaching, result = service.desk.uncertain(200, "information"), service.engine.live.result
    chosen = choose_gold_questions(
        result.crowd.with_gold(None), result.crowd.n_items, by="information", result=result
    ).item_ids
    assert [row.item for row in teaching] == [i for i in chosen if i not in service.inputs.control]
    assert all(len(row["found"]["tokens"]) == max(1, len(row["tokens"])) for row in rows)


def test_an_item_in_which_nothing_is_marked_is_shown(tmp_path):
    service = serve(tmp_path, spans=True)
    open_round(service)
    for turn in range(7):
        for worker in ("ann.k", "bob.k"):
            answer(service, worker, wrong=turn > 2)
    service.engine.look()
    empty = [row["found"]["spans"] for row in as_json(service.desk.uncertain())]
    service.close()
    assert [] in empty


def test_an_item_shows_every_answer_and_what_they_say(service):
    item = as_json(service.desk.uncertain(1))[0]["item"]
    one = as_json(service.desk.item(item))
    given = service.ledger.given(item)
    assert [row["worker"] for row in one["answers"]] == [row.worker for row in given]
    assert one["found"] == as_json(service.desk.uncertain(1))[0]["found"]
    assert (one["gold"], one["known"], one["skipped"], one["flags"]) == (None, None, [], [])
    control = next(iter(service.inputs.control))
    assert as_json(service.desk.item(control))["known"] is not None


def test_a_report_is_shown_with_its_words(fresh):
    task = fresh.work.next("dan")["task"]["id"]
    item = fresh.work.tasks.item("dan", task)
    fresh.work.flag("dan", task, "key-of-dan", "garbled", "ends here")
    assert as_json(fresh.desk.overview())["flags"] == len(fresh.ledger.records(FLAG)) == 1
    flags = [{"worker": "dan", "reason": "garbled", "note": "ends here"}]
    assert as_json(fresh.desk.item(item))["flags"] == flags
    assert as_json(fresh.desk.item(item))["skipped"] == [{"worker": "dan", "reason": "garbled"}]
    assert [row["item"] for row in as_json(fresh.desk.items(state="flagged"))["items"]] == [item]


def test_agreement_is_computed_once_for_every_state(service, monkeypatch):
    first = service.desk.agreement()
    assert first.n_answers == 18
    assert first.measures["alpha"] < 1
    monkeypatch.setattr(desk, "_measure", lambda _: pytest.fail("computed again"))
    assert service.desk.agreement() == first


def test_the_mark_changes_with_every_change(fresh):
    before = fresh.desk.mark()
    assert fresh.desk.mark() == before
    fresh.desk.pause()
    assert fresh.desk.mark() != before
