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
def begun(tmp_path, clock):
    """Opens the campaign with a round; what was open before is closed."""
    made = []

    def begin(**sections):
        for one in made:
            one.close()
        made[:] = [serve(tmp_path, clock=clock, **sections)]
        open_round(made[0])
        return made[0]

    yield begin
    for one in made:
        one.close()


@pytest.fixture
def service(begun):
    return begun()


@pytest.fixture
def spans(begun):
    return begun(spans=True)


def task_of(service, worker):
    return service.work.next(worker)["task"]


def test_before_the_first_round_is_open_one_waits(tmp_path):
    service = serve(tmp_path, redundancy={"min": 2, "max": 2})
    assert service.work.next("ann")["state"] == "wait"
    assert service.work.me("ann")["total"] is None
    service.close()


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


def test_who_fails_the_test_is_asked_no_more_and_told_why_and_what_is_paid(service):
    for _ in range(3):
        answer(service, "eve", wrong=True)
    got = service.work.next("eve")
    assert got["state"] == "done"
    assert "were right, so there are no more tasks" in got["message"]
    assert got["message"].endswith("For 3 answers that count you get 0.15.")
    assert service.people.why_barred("eve") == "0 of 2 right in the test"
    assert service.work.next("ann")["state"] == "task"


def test_who_is_right_just_often_enough_passes_the_test(service):
    # The first is practice, and does not count; of the test, half must be right.
    for worker, wrong in (("bob", (False, True, False)), ("cid", (True, False, False))):
        for one in wrong:
            answer(service, worker, wrong=one)
        assert service.work.next(worker)["state"] == "task"


def test_a_control_question_that_is_passed_on_is_followed_by_another(service):
    n_first = 1 + 2  # practice and test
    for _ in range(len(service.inputs.control) - n_first):
        task = task_of(service, "ann")["id"]
        assert service.work.tasks.item("ann", task) in service.inputs.control
        service.work.skip("ann", task, "too hard")
    for _ in range(n_first):
        assert answer(service, "ann")[0] in service.inputs.control
    assert answer(service, "ann")[0] not in service.inputs.control


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


def test_control_questions_keep_their_share(begun):
    control = {"n": 8, "share": 0.25, "first": 0, "least": 0}
    service = begun(control=control, page={"training": 0}, select={"batch": 12})
    asked = [answer(service, "ann")[0] in service.inputs.control for _ in range(12)]
    assert [sum(asked[n : n + 4]) for n in (0, 4, 8)] == [1, 1, 1]


def test_the_place_of_a_control_question_differs_among_workers(service):
    drawn = {
        tuple(service.work.asking._due(name, n) for n in range(12))
        for name in ("ann", "bob", "cid", "dan", "eve")
    }
    assert len(drawn) > 1


def test_two_workers_may_use_the_same_key(service):
    sent = key()
    for worker in ("ann", "bob"):
        assert service.work.submit(worker, task_of(service, worker)["id"], sent, "rain")["paid"]
        assert service.work.me(worker)["done"] == 1


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


def test_what_workers_did_is_known_again_after_a_restart(begun):
    service = begun()
    for _ in range(5):
        answer(service, "ann", wrong=True)
    before, me = service.people["ann"], service.work.me("ann")
    again = begun()
    assert again.people["ann"] == before
    assert again.work.me("ann") == me


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
    item, _ = answer(service, "ann", wrong=True)
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
    assert service.work.change("ann", task, name, right, 0) == got
    assert service.ledger.totals().spent == spent
    assert service.ledger.crowd().answers_of(item) == {"ann": [right]}
    assert service.work.recall("ann", task, 0)["label"] == right
    # The loop's next look is of the new version, though there are as many answers as before.
    again = service.engine.look()
    assert again.n_answers == live.n_answers
    assert again.crowd.answers_of(item) == {"ann": [right]}


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


def test_progress_is_known_where_every_item_gets_as_many_answers(begun):
    service = begun(redundancy={"min": 2, "max": 2}, select={"batch": 50})
    totals, seen = [service.work.me("ann")["total"]], []
    while (done := answer(service, "ann")) is not None:
        seen.append(done[0] in service.inputs.control)
        totals.append(service.work.me("ann")["total"])
    assert {True, False} == set(seen[3:])
    assert set(totals) == {len(seen)}  # it never changes, and so tells of no control question


def test_who_has_nothing_to_do_has_done_all_that_there_was_for_them(begun):
    service = begun(redundancy={"min": 2, "max": 2}, select={"batch": 50})
    assert answer(service, "ann")
    before = service.work.me("ann")["total"]
    for worker in ("bob", "cid"):  # they are faster, and no minute goes by
        while answer(service, worker):
            pass
    while answer(service, "ann"):
        pass
    me = service.work.me("ann")
    assert me["total"] == me["done"] < before


def test_progress_is_unknown_where_more_may_be_asked(service):
    assert service.work.me("ann")["total"] is None


FAMILIES = {"control": None, "page": {"training": 0}, "redundancy": {"min": 2, "max": 2}}


def test_two_of_a_family_of_the_plan_get_different_items(tmp_path, begun):
    (tmp_path / "kin.csv").write_text("worker,family\nann,one\nbob,one\ncy,one\n")
    service = begun(aggregate={"method": "ds", "families": "kin.csv"}, **FAMILIES)
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
        assert len(given & {"ann", "bob", "cy"}) <= 1 or "eve" in given
    assert service.work.next("cy")["state"] == "wait"


def test_families_that_a_round_found_count_from_then_on(begun, clock):
    service = begun(**FAMILIES)
    first = answer(service, "ann")[0]
    assert answer(service, "bob")[0] == first
    rows = {name: {"verdict": "keep", "why": "", "family": "one"} for name in ("ann", "bob")}
    service.ledger.record("verdicts", "1", {"workers": rows, "drop": []}, clock())
    second = answer(service, "ann")[0]
    assert answer(service, "bob")[0] != second


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
