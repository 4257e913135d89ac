"""Suggestions on the labelling page: who sees what, what is kept of it, and what rests on it."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from campaign.tiny import plan_of, write_files
from goldspan.campaign import read_inputs, read_plan
from goldspan.campaign.results import ReportData
from goldspan.campaign.suggestions import SUGGESTED, is_drawn
from goldspan.cli.campaign import write_findings
from goldspan.store.verify import faults_of
from goldspan.web.models import NextAnswer
from goldspan.web.service import open_service
from web.serving import KEYS, WEB, Clock, key, open_round

RULES = {"id": "rules", "kind": "python", "call": "campaign.rules:weather"}
PEOPLE = {"id": "people", "kind": "people"}
SECTIONS = {
    **WEB,
    "control": {"n": 4, "gold": "truth.csv", "share": 0.2},
    "page": {"suggest": "rules"},
    "redundancy": {"min": 3, "max": 3},
    "select": {"by": "random", "batch": 30},
    "prices": None,
    "budget": None,
}


def service_of(folder, place=None, **sections):
    write_files(folder, 40)
    team = {"source": "mixed", "workers": [RULES, PEOPLE], "truth": None}
    plan = read_plan(plan_of({**SECTIONS, "crowd": team, **sections}))
    inputs = read_inputs(plan, folder, allow_code=["campaign.rules"])
    return open_service(inputs, folder / "out", KEYS, place, clock=Clock())


@pytest.fixture
def service(tmp_path):
    """Forty items, a function that answers all that are picked, and people."""
    made = service_of(tmp_path)
    open_round(made)
    yield made
    made.close()


def work(service, worker, follow=lambda _: False, most=100):
    """Answer all that there is; gives what was suggested by item, None where nothing was."""
    seen = {}
    for _ in range(most):
        got = service.work.next(worker)
        if got["state"] != "task":
            break
        item = service.work.tasks.item(worker, got["task"]["id"])
        shown = seen[item] = got["task"].get("suggestion")
        again = service.work.next(worker)["task"]
        assert again.get("suggestion") == shown
        label = shown["label"] if shown and follow(item) else "rain"
        service.work.submit(worker, got["task"]["id"], key(), label)
    return seen


def test_a_share_is_shown_with_a_suggestion_and_gold_questions_never_are(service):
    seen = work(service, "ann-lee")
    control = set(service.inputs.control)
    assert control & set(seen)
    assert all(seen[item] is None for item in control & set(seen))
    plan, rest = service.inputs.plan, set(seen) - control
    assert {item for item in rest if seen[item]} == {
        i for i in rest if is_drawn(plan, i, "ann-lee")
    }
    assert 5 <= sum(seen[item] is not None for item in rest) <= 25
    rules = {row.item for row in service.ledger.given() if row.worker == "rules"}
    assert rest <= rules
    assert NextAnswer.model_validate(service.work.next("bob")).task is not None


def test_what_was_shown_is_kept_with_the_answer_and_blind_ones_too(service):
    seen = work(service, "ann-lee")
    kept = service.ledger.records(SUGGESTED)
    assert service.ledger.is_private
    log = "".join(json.dumps(event.body) for event in service.ledger.events())
    assert "ann-lee" not in log
    assert {row["worker"] for row in kept.values()} == {"ann-lee"}
    shown = {row["item"]: row["labels"] for row in kept.values() if row["shown"]}
    assert shown == {item: [one["label"]] for item, one in seen.items() if one}
    assert Counter(row["by"] for row in kept.values()) == {"rules": len(kept)}
    assert {row["item"] for row in kept.values()} == set(seen) - set(service.inputs.control)
    assert all(row["labels"] is not None for row in kept.values())
    service.ledger.verify()
    assert faults_of(service.ledger.database) == []


def test_who_was_not_shown_anything_at_first_is_not_later(tmp_path):
    service = service_of(tmp_path, page={"suggest": "consensus", "suggest_share": 0.9})
    open_round(service)
    first = service.work.next("ann")["task"]
    item = service.work.tasks.item("ann", first["id"])
    before = first.get("suggestion")
    for worker in ("bob", "cat"):
        service.ledger.lease(worker, service.clock(), 60, 1, [item])
        service.ledger.submit(key(), worker, item, ["sun"], service.clock())
    assert service.work.next("ann")["task"].get("suggestion") == before
    service.close()


def test_a_killed_server_shows_the_same_and_leaves_the_same_blind(new_place, tmp_path):
    """A copy of the store as a kill leaves it: served again, each text is as it was."""
    place = new_place()
    first = service_of(tmp_path, place)
    open_round(first)
    before = work(first, "ann-lee", most=12)
    got = first.work.next("ann-lee")["task"]  # opened, and not answered when the server dies
    item, shown = first.work.tasks.item("ann-lee", got["id"]), got.get("suggestion")
    kept = first.ledger.records(SUGGESTED)
    first.close()
    second = service_of(tmp_path, place)
    assert second.ledger.records(SUGGESTED) == kept
    again = second.work.next("ann-lee")["task"]
    assert second.work.tasks.item("ann-lee", again["id"]) == item
    assert again.get("suggestion") == shown
    rest = {**before, **work(second, "ann-lee")}
    control = set(second.inputs.control)
    blind = {name for name, one in rest.items() if one is None and name not in control}
    every = set(rest) - control
    assert blind == {name for name in every if not is_drawn(second.inputs.plan, name, "ann-lee")}
    second.ledger.verify()
    second.close()


def test_the_desk_exports_what_was_suggested_and_the_report_tells_it(service):
    for worker in ("ann-lee", "bob-lee"):
        work(service, worker, follow=lambda _: True)
    open_round(service)
    service.engine.look()
    names = [one.name for one in service.desk.exports()]
    assert "suggestions.jsonl" in names
    made = service.desk.export("suggestions.jsonl").content
    rows = [json.loads(line) for line in made.splitlines()]
    assert {row["shown"] for row in rows} == {True, False}
    assert not {"ann-lee", "bob-lee"} & {row["worker"] for row in rows}
    assert all(row["kept"] == 1 for row in rows if row["shown"])
    record = json.loads(service.desk.export("record.json").content)
    (one,) = record["suggestions"]
    assert one["by"] == "rules"
    assert one["rate"] > 0
    path = service.inputs.folder / "report.html"
    write_findings(ReportData.of(service.ledger, service.engine.live.result), path)
    page = path.read_text()
    assert "What suggestions did" in page
    assert "Counts as" in page
