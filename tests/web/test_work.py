"""What workers do."""

from __future__ import annotations

import pytest

from goldspan.spans import Span
from goldspan.web.engine import end
from goldspan.web.errors import Refused
from web.serving import Clock, answer, key, open_round, right_answer, serve


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def service(tmp_path, clock):
    made = serve(tmp_path, clock=clock)
    open_round(made)
    yield made
    made.close()


@pytest.fixture
def spans(tmp_path, clock):
    made = serve(tmp_path, clock=clock, spans=True)
    open_round(made)
    yield made
    made.close()


def task_of(service, worker):
    return service.work.next(worker)["task"]


def test_before_the_first_round_is_open_one_waits(tmp_path):
    service = serve(tmp_path)
    assert service.work.next("ann")["state"] == "wait"
    service.close()


def test_the_same_task_comes_again_while_it_is_held(service):
    assert task_of(service, "ann") == task_of(service, "ann")


def test_a_task_shows_nothing_but_what_is_to_be_labelled(service):
    task = task_of(service, "ann")
    item = service.work.tasks.item("ann", task["id"])
    assert item not in str(
        {**task, "id": ""}
    )  # the id is a random word, which may hold any two signs
    assert task["kind"] == "single"
    assert task["text"] == service.inputs.pool.given[service.inputs.pool.place[item]]
    assert task["tokens"] == []


def test_a_control_question_looks_like_every_other_task(service):
    forms = {}
    for _ in range(6):
        task = task_of(service, "ann")
        item = service.work.tasks.item("ann", task["id"])
        forms.setdefault(item in service.inputs.control, set()).add(tuple(task))
        answer(service, "ann")
    assert len(forms) == 2
    assert forms[True] == forms[False]


def test_practice_comes_first_and_shows_the_right_answer(service):
    item, first = answer(service, "ann", wrong=True)
    assert item in service.inputs.control
    assert first["feedback"] == {"right": False, "label": right_answer(service, item)}
    assert answer(service, "ann")[1]["feedback"] is None


def test_who_fails_the_test_is_asked_no_more_and_told_so(service):
    for _ in range(3):
        answer(service, "eve", wrong=True)
    got = service.work.next("eve")
    assert got["state"] == "done"
    assert got["message"]
    assert service.people.why_barred("eve") == "0 of 2 right in the test"
    assert service.work.next("ann")["state"] == "task"


def test_who_is_right_just_often_enough_passes_the_test(service):
    for wrong in (False, True, False):  # the first is practice; of the test, half must be right
        answer(service, "bob", wrong=wrong)
    assert service.work.next("bob")["state"] == "task"


def test_who_fails_the_test_is_told_why_and_what_is_paid(service):
    for _ in range(3):
        answer(service, "eve", wrong=True)
    said = service.work.next("eve")["message"]
    assert "were right, so there are no more tasks" in said
    assert said.endswith("For 3 answers that count you get 0.15.")


def test_a_control_question_that_is_passed_on_is_followed_by_another(service):
    n_first = 1 + 2  # practice and test
    for _ in range(len(service.inputs.control) - n_first):
        task = task_of(service, "ann")["id"]
        assert service.work.tasks.item("ann", task) in service.inputs.control
        service.work.skip("ann", task, key(), "too hard")
    for _ in range(n_first):
        assert answer(service, "ann")[0] in service.inputs.control
    assert answer(service, "ann")[0] not in service.inputs.control


def test_who_passes_on_the_whole_test_gets_nothing_else(tmp_path, clock):
    service = serve(tmp_path, clock=clock)
    open_round(service)
    for _ in service.inputs.control:
        service.work.skip("eve", task_of(service, "eve")["id"], key(), "too hard")
    assert service.work.next("eve")["state"] == "done"
    service.close()
    again = serve(tmp_path, clock=clock)  # the skips are read from the ledger
    assert again.work.next("eve")["state"] == "done"
    assert again.work.next("ann")["state"] == "task"
    again.close()


def test_a_task_that_was_passed_on_is_not_paid_any_more(service):
    task = task_of(service, "ann")["id"]
    service.work.skip("ann", task, key(), "too hard")
    got = service.work.submit("ann", task, key(), "rain")
    assert (got["status"], got["paid"]) == ("draft", "0.00")
    assert "passed this item on" in got["message"]


def test_the_id_of_a_task_does_not_tell_where_the_item_stands_in_the_pool(service):
    seal = service.work.tasks._seal
    shown = {}
    for worker in ("ann", "bob", "cid"):
        task = task_of(service, worker)["id"]
        place = service.inputs.pool.place[service.work.tasks.item(worker, task)]
        shown[worker] = seal.read(task)["n"] ^ place
    assert len(set(shown.values())) == 3
    assert 0 not in shown.values()


def test_after_the_requester_has_ended_it_nothing_is_handed_out(service):
    end(service.ledger, service.clock())
    service.ledger.pause(service.clock())
    got = service.work.next("ann")
    assert (got["state"], got["message"]) == (
        "done",
        f"The campaign has ended. {service.inputs.plan.page.finished}",
    )


def test_mistakes_in_practice_do_not_count_in_the_test(service):
    answer(service, "bob", wrong=True)
    answer(service, "bob")
    answer(service, "bob")
    assert service.work.next("bob")["state"] == "task"


def test_a_worker_never_sees_an_item_twice(service):
    seen = []
    while (got := answer(service, "ann")) is not None:
        seen.append(got[0])
    assert len(seen) == len(set(seen)) > 5


def test_control_questions_keep_their_share(tmp_path):
    control = {"n": 8, "share": 0.25, "first": 0, "least": 0}
    service = serve(tmp_path, control=control, page={"training": 0}, select={"batch": 12})
    open_round(service)
    asked = [answer(service, "ann")[0] in service.inputs.control for _ in range(12)]
    assert [sum(asked[n : n + 4]) for n in (0, 4, 8)] == [1, 1, 1]
    service.close()


def test_the_place_of_a_control_question_differs_among_workers(service):
    drawn = {
        tuple(service.work.asking._mixed(name, n) for n in range(12))
        for name in ("ann", "bob", "cid", "dan", "eve")
    }
    assert len(drawn) > 1


def test_the_same_answer_again_gets_the_same_reply_and_counts_once(service):
    task, sent = task_of(service, "ann")["id"], key()
    said = right_answer(service, service.work.tasks.item("ann", task))
    first = service.work.submit("ann", task, sent, said)
    assert service.work.submit("ann", task, sent, said) == first
    assert service.work.me("ann")["done"] == 1


def test_another_answer_under_the_same_key_is_a_conflict(service):
    task, sent = task_of(service, "ann")["id"], key()
    service.work.submit("ann", task, sent, "rain")
    with pytest.raises(Refused) as refused:
        service.work.submit("ann", task, sent, "sun")
    assert refused.value.status == 409


def test_two_workers_may_use_the_same_key(service):
    sent = key()
    for worker in ("ann", "bob"):
        assert service.work.submit(worker, task_of(service, worker)["id"], sent, "rain")["paid"]
        assert service.work.me(worker)["done"] == 1


def test_a_task_of_somebody_else_is_refused(service):
    task = task_of(service, "ann")["id"]
    with pytest.raises(Refused) as refused:
        service.work.submit("bob", task, key(), "rain")
    assert refused.value.code == "invalid"


@pytest.mark.parametrize("answer_sent", ["snow", "", [Span("LOC", 0, 1)]], ids=repr)
def test_an_answer_that_is_no_label_is_refused(service, answer_sent):
    with pytest.raises(Refused, match="rain, sun"):
        service.work.submit("ann", task_of(service, "ann")["id"], key(), answer_sent)


@pytest.mark.parametrize(
    "wrong",
    [
        [Span("PER", 0, 1)],
        [Span("LOC", 0, 99)],
        [Span("LOC", 1, 1)],
        [Span("LOC", 0, 2), Span("LOC", 1, 3)],
        [Span("LOC", -1, 1)],
        "LOC",
    ],
    ids=["type", "range", "empty", "overlap", "negative", "label"],
)
def test_spans_that_do_not_fit_are_refused(spans, wrong):
    with pytest.raises(Refused) as refused:
        spans.work.submit("ann", task_of(spans, "ann")["id"], key(), wrong)
    assert refused.value.status == 422


def test_spans_become_labels_and_nothing_here_is_an_answer(spans):
    item, got = answer(spans, "ann")
    assert got["feedback"]["right"]
    assert got["feedback"]["spans"][0]["type"] == "LOC"
    task = task_of(spans, "ann")["id"]
    assert spans.work.submit("ann", task, key(), [])["status"] == "accepted"
    other = spans.work.tasks.item("ann", task)
    assert set(spans.ledger.given(other)[0].labels) == {"O"}
    assert item != other


def test_a_late_answer_counts_where_a_place_is_free(service, clock):
    task = task_of(service, "ann")["id"]
    clock.pass_seconds(301)
    got = service.work.submit("ann", task, key(), "rain")
    assert got["status"] == "late"
    assert "counts" in got["message"]


def test_a_late_answer_without_a_place_is_kept_as_a_draft(service, clock):
    for worker in ("ann", "bob", "cid"):
        for _ in range(3):
            answer(service, worker)
    task = task_of(service, "dan")["id"]
    item = service.work.tasks.item("dan", task)
    service.ledger.release("dan", item, clock())
    service.ledger.adjust({item: 0}, clock())
    got = service.work.submit("dan", task, key(), "rain")
    assert (got["status"], got["paid"]) == ("draft", "0.00")
    assert "kept" in got["message"]
    assert service.work.me("dan")["drafts"] == 1


def test_a_skipped_item_does_not_come_back(service):
    task = task_of(service, "ann")["id"]
    assert service.work.skip("ann", task, key(), "too hard")["status"] == "skipped"
    assert task_of(service, "ann")["id"] != task
    assert [row.reason for row in service.ledger.skipped()] == ["too hard"]


def test_an_item_can_be_skipped_after_its_time(service, clock):
    task = task_of(service, "ann")["id"]
    clock.pass_seconds(400)
    service.work.skip("ann", task, key(), "")
    assert task_of(service, "ann")["id"] != task


def test_a_flag_is_kept_with_its_note(service):
    task, sent = task_of(service, "ann")["id"], key()
    for _ in range(2):
        got = service.work.flag("ann", task, sent, "broken", "half a sentence")
    assert got["status"] == "flagged"
    (flag,) = service.ledger.records("flag").values()
    assert flag["note"] == "half a sentence"
    with pytest.raises(Refused, match="Something else was sent under this key"):
        service.work.flag("ann", task, sent, "other", "half a sentence")


def test_a_task_given_back_is_free_for_others(service):
    task = task_of(service, "ann")["id"]
    service.work.release("ann", task)
    assert service.ledger.held("ann", service.clock()) == []


def test_in_a_pause_one_is_told_so(service, clock):
    service.ledger.pause(clock())
    assert service.work.next("ann")["state"] == "paused"


def test_what_was_earned_is_the_sum_of_what_was_paid(service):
    paid = sum(float(answer(service, "ann")[1]["paid"]) for _ in range(4))
    assert float(service.work.me("ann")["earned"]) == pytest.approx(paid, abs=1e-9)
    assert service.ledger.totals().spent == round(1e6 * paid)


def test_a_bad_key_is_refused(service):
    with pytest.raises(Refused, match="key"):
        service.work.submit("ann", task_of(service, "ann")["id"], "a b", "rain")


def test_what_workers_did_is_known_again_after_a_restart(tmp_path, clock):
    service = serve(tmp_path, clock=clock)
    open_round(service)
    for _ in range(5):
        answer(service, "ann", wrong=True)
    before, me = service.people["ann"], service.work.me("ann")
    service.close()
    again = serve(tmp_path, clock=clock)
    assert again.people["ann"] == before
    assert again.work.me("ann") == me
    again.close()


def test_the_requester_can_ask_for_more_control_questions(service, clock):
    for _ in range(4):
        answer(service, "ann")
    before = len(service.people["ann"].control)
    service.ledger.record(
        "decision", "ann-1", {"worker": "ann", "verdict": "test", "questions": 2}, clock()
    )
    for _ in range(2):
        assert answer(service, "ann")[0] in service.inputs.control
    assert len(service.people["ann"].control) == before + 2


def given(service, worker, since=0):
    """The worker's answers as the page hears of them, with their items."""
    rows = service.work.given(worker, since)["answers"]
    return [(service.work.tasks.item(worker, row["task"]), row["open"]) for row in rows]


def task_id(service, worker, item):
    """The id of a task that was answered."""
    rows = service.work.given(worker, 0)["answers"]
    return next(r["task"] for r in rows if service.work.tasks.item(worker, r["task"]) == item)


def test_an_answer_is_changed_the_last_version_counts_and_is_paid_once(service, monkeypatch):
    for name in ("LEAST", "REST"):  # a look follows the other at once
        monkeypatch.setattr(f"goldspan.web.engine.{name}", 0.0)
    for _ in range(3):
        answer(service, "ann")
    item, first = answer(service, "ann", wrong=True)
    live = service.engine.look()
    task = task_id(service, "ann", item)
    back = service.work.recall("ann", task, 0)
    right = right_answer(service, item)
    assert (back["open"], back["why"], back["label"]) == (
        True, "", {"rain": "sun", "sun": "rain"}[right],
    )  # fmt: skip
    assert back["task"]["text"] == service.work.tasks.text(item)
    name, spent = key(), service.ledger.totals().spent
    got = service.work.change("ann", task, name, right, 0)
    assert got["status"] == "changed"
    assert got["me"] == first["me"]
    assert service.work.change("ann", task, name, right, 0) == got
    assert service.ledger.totals().spent == spent
    assert service.ledger.crowd().answers_of(item) == {"ann": [right]}
    assert service.work.recall("ann", task, 0)["label"] == right
    # The loop's next look is of the new version, though there are as many answers as before.
    again = service.engine.look()
    assert again.n_answers == live.n_answers
    assert again.crowd.answers_of(item) == {"ann": [right]}


def test_a_change_does_not_count_twice_after_a_restart(tmp_path, clock):
    service = serve(tmp_path, clock=clock)
    open_round(service)
    for _ in range(5):
        item, _ = answer(service, "ann")
        if given(service, "ann")[0][1]:
            service.work.change("ann", task_id(service, "ann", item), key(), "sun", 0)
    before, asked = service.work.me("ann"), service.people["ann"]
    service.close()
    again = serve(tmp_path, clock=clock)
    assert again.work.me("ann") == before
    assert again.people["ann"] == asked
    assert again.people["ann"].drafts == 0
    again.close()


def test_every_answer_but_practice_can_be_changed_and_none_tells_what_it_is(service):
    items = [answer(service, "ann")[0] for _ in range(8)]
    assert {item in service.inputs.control for item in items[1:]} == {True, False}
    assert given(service, "ann") == [(item, True) for item in items[:0:-1]] + [(items[0], False)]
    forms = {
        item in service.inputs.control: tuple(
            service.work.recall("ann", task_id(service, "ann", item), 0)
        )
        for item in items
    }
    assert forms[True] == forms[False]
    with pytest.raises(Refused, match="practice") as refused:
        service.work.change("ann", task_id(service, "ann", items[0]), key(), "sun", 0)
    assert (refused.value.code, refused.value.status) == ("closed", 409)


def test_a_test_is_decided_by_the_first_answers(service):
    answer(service, "ann")
    for _ in range(2):
        item, _ = answer(service, "ann")
    wrong = {"rain": "sun", "sun": "rain"}[right_answer(service, item)]
    service.work.change("ann", task_id(service, "ann", item), key(), wrong, 0)
    answer(service, "ann")
    assert service.people.why_barred("ann") is None
    assert sum(one.right for one in service.people["ann"].right) == 3
    assert service.ledger.crowd().answers_of(item) == {"ann": [wrong]}


def test_answers_of_before_the_session_are_not_listed_and_stay(service, clock):
    old = answer(service, "ann")[0], answer(service, "ann")[0]
    clock.pass_seconds(60)
    new = answer(service, "ann")[0]
    assert given(service, "ann", clock.time) == [(new, True)]
    task = task_id(service, "ann", old[1])
    assert "before you opened your link" in service.work.recall("ann", task, clock.time)["why"]
    with pytest.raises(Refused, match="stays as you gave it"):
        service.work.change("ann", task, key(), "sun", clock.time)


def test_when_its_round_is_closed_an_answer_stays(service, clock):
    for worker in ("ann", "bob", "cy"):
        while answer(service, worker):
            pass
    clock.pass_seconds(1)
    open_round(service)  # closes the first round and opens the next
    names = service.ledger.records("round")
    assert list(names) == ["r001"]
    item, is_open = given(service, "ann")[0]
    assert not is_open
    task = task_id(service, "ann", item)
    assert "all the answers" in service.work.recall("ann", task, 0)["why"]
    with pytest.raises(Refused, match="all the answers"):
        service.work.change("ann", task, key(), "sun", 0)


def test_a_change_that_was_taken_is_acknowledged_whatever_has_closed_since(service):
    answer(service, "ann")
    item, _ = answer(service, "ann")
    task, name = task_id(service, "ann", item), key()
    got = service.work.change("ann", task, name, "sun", 0)
    end(service.ledger, service.clock())
    assert service.work.change("ann", task, name, "sun", 0)["status"] == got["status"]
    with pytest.raises(Refused, match="has ended"):
        service.work.change("ann", task, key(), "sun", 0)
    with pytest.raises(Refused, match="under this key"):
        service.work.change("ann", task, name, "rain", 0)


def test_answers_and_changes_cannot_share_a_key(service):
    answer(service, "ann")
    task, first, then = task_of(service, "ann")["id"], key(), key()
    service.work.submit("ann", task, first, "rain")
    with pytest.raises(Refused, match="under this key") as refused:
        service.work.change("ann", task, first, "rain", 0)
    assert refused.value.status == 409
    service.work.change("ann", task, then, "sun", 0)
    with pytest.raises(Refused, match="under this key") as refused:
        service.work.submit("ann", task, then, "sun")
    assert refused.value.status == 409
    assert service.work.submit("ann", task, first, "rain")["status"] == "accepted"


def test_what_the_requester_decided_is_closed(service):
    for _ in range(3):
        answer(service, "ann")
    item, _ = answer(service, "ann")
    service.desk.adjudicate(item, right_answer(service, item))
    assert "decided" in service.work.recall("ann", task_id(service, "ann", item), 0)["why"]


def test_only_what_was_answered_can_be_seen_again(service):
    task = task_of(service, "ann")["id"]
    for act in (
        lambda: service.work.recall("ann", task, 0),
        lambda: service.work.change("ann", task, key(), "sun", 0),
    ):
        with pytest.raises(Refused) as refused:
            act()
        assert refused.value.status == 404
    with pytest.raises(Refused, match="not one of yours"):
        service.work.recall("bob", task, 0)


def test_spans_that_were_sent_come_back(spans):
    for _ in range(4):
        item, _ = answer(spans, "ann")
    back = spans.work.recall("ann", task_id(spans, "ann", item), 0)
    right = [{"start": s.start, "end": s.end, "type": s.type} for s in right_answer(spans, item)]
    assert back["spans"] == right
    assert back["task"]["tokens"] == list(spans.inputs.words[spans.inputs.pool.place[item]])


def test_progress_is_known_where_every_item_gets_as_many_answers(tmp_path, clock):
    service = serve(tmp_path, clock=clock, redundancy={"min": 2, "max": 2}, select={"batch": 50})
    assert service.work.me("ann")["total"] is None
    open_round(service)
    totals, seen = [service.work.me("ann")["total"]], []
    while (done := answer(service, "ann")) is not None:
        seen.append(done[0] in service.inputs.control)
        totals.append(service.work.me("ann")["total"])
    assert {True, False} == set(seen[3:])
    assert set(totals) == {len(seen)}  # it never changes, and so tells of no control question
    service.close()


def test_who_has_nothing_to_do_has_done_all_that_there_was_for_them(tmp_path, clock):
    service = serve(tmp_path, clock=clock, redundancy={"min": 2, "max": 2}, select={"batch": 50})
    open_round(service)
    assert answer(service, "ann")
    before = service.work.me("ann")["total"]
    for worker in ("bob", "cid"):  # they are faster, and no minute goes by
        while answer(service, worker):
            pass
    while answer(service, "ann"):
        pass
    me = service.work.me("ann")
    assert me["total"] == me["done"] < before
    service.close()


def test_progress_is_unknown_where_more_may_be_asked(service):
    assert service.work.me("ann")["total"] is None


KIN = {"ann": "one", "bob": "one", "cy": "one"}


def _with_families(folder, clock, **sections):
    sections = {"control": None, "page": {"training": 0}, **sections}
    service = serve(folder, clock=clock, **sections)
    open_round(service)
    return service


def test_two_of_a_family_of_the_plan_get_different_items(tmp_path, clock):
    rows = [f"{worker},{name}" for worker, name in KIN.items()]
    (tmp_path / "kin.csv").write_text("\n".join(["worker,family", *rows]) + "\n")
    families = {"method": "ds", "families": "kin.csv"}
    service = _with_families(tmp_path, clock, aggregate=families, redundancy={"min": 2, "max": 2})
    turns = [answer(service, worker)[0] for worker in ("ann", "bob") * 2]
    assert len(set(turns)) == 4
    # Somebody else begins with the first item, which one of the family has answered.
    assert answer(service, "eve")[0] == turns[0]
    # While he is at work they get no more than one place of an item, however long they ask.
    while answer(service, "bob"):
        pass
    while answer(service, "cy"):
        pass
    crowd = service.ledger.crowd()
    for item in crowd.item_ids.to_pylist():
        given = set(crowd.answers_of(item))
        assert len(given & {*KIN}) <= 1 or "eve" in given
    assert service.work.next("cy")["state"] == "wait"
    service.close()


def test_families_that_a_round_found_count_from_then_on(tmp_path, clock):
    service = _with_families(tmp_path, clock, redundancy={"min": 2, "max": 2})
    first = answer(service, "ann")[0]
    assert answer(service, "bob")[0] == first
    rows = {name: {"verdict": "keep", "why": "", "family": "one"} for name in ("ann", "bob")}
    service.ledger.record("verdicts", "1", {"workers": rows, "drop": []}, clock())
    second = answer(service, "ann")[0]
    assert answer(service, "bob")[0] != second
    service.close()


def test_an_answer_is_not_changed_once_its_round_has_closed_meanwhile(service, monkeypatch):
    for _ in range(20):
        item, _ = answer(service, "ann")
        if item not in service.inputs.control:
            break
    task = service.work._shown("ann", item)["id"]
    transact, ledger = service.ledger.transact, service.ledger

    def late(now, work, bound=None):  # the loop closes the round just before
        ledger.record("round", ledger.last_batch()[0], {"round": 1}, now)
        return transact(now, work, bound)

    before = ledger.own("ann", [item])[0].labels
    monkeypatch.setattr(ledger, "transact", late)
    other = {"rain": "sun", "sun": "rain"}[before[0]]
    with pytest.raises(Refused, match="has all the answers that it needs"):
        service.work.change("ann", task, key(), other, 0)
    assert ledger.own("ann", [item])[0].labels == before
