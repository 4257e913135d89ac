"""People in a browser beside annotators that answer at once, each at a price of their own."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from campaign.tiny import plan_of, write_files
from goldspan.campaign import read_inputs, read_plan
from goldspan.cli import app
from goldspan.store.verify import faults_of
from goldspan.web.desk.downloads import people_of
from goldspan.web.service import open_service
from web.serving import KEYS, WEB, Clock, answer, open_round

RULES = {
    "id": "rules", "kind": "python", "call": "campaign.rules:weather",
    "prices": {"per_answer": "0.001"},
}  # fmt: skip
EXPERT = {"id": "house", "kind": "people", "names": ["eve"], "prices": {"per_answer": "0.2"}}
OTHERS = {"id": "others", "kind": "people", "limit": 3}


@pytest.fixture
def service(tmp_path):
    """Twenty items with two places each: a function, an expert and others."""
    write_files(tmp_path)
    sections = {**WEB, "control": None, "page": {}, "redundancy": {"min": 2, "max": 2}}
    team = {"source": "mixed", "workers": [RULES, EXPERT, OTHERS], "truth": None}
    plan = read_plan(plan_of(sections, crowd=team))
    inputs = read_inputs(plan, tmp_path, allow_code=["campaign.rules"])
    made = open_service(inputs, tmp_path / "out", KEYS, clock=Clock())
    yield made
    made.close()


def test_people_take_what_is_left_at_their_own_prices_and_limits(service):
    open_round(service)
    assert service.ledger.is_private
    rows = service.ledger.slots().to_pylist()
    assert {(row["wanted"], row["filled"]) for row in rows} == {(2, 1)}
    first, got = answer(service, "eve")
    assert got["status"] == "accepted"
    done = [answer(service, "fay") for _ in range(4)]
    assert [one is None for one in done] == [False, False, False, True]
    assert service.work.next("fay")["state"] == "done"  # at the limit, at once
    assert first not in {one[0] for one in done[:3]}
    paid = {row.worker: row.cost for row in service.ledger.given()}
    assert paid == {"rules": 1_000, "eve": 200_000, "fay": 50_000}
    assert answer(service, "eve") is not None  # the fifth item
    open_round(service)
    totals = service.ledger.totals()
    assert totals.spent == 5 * 1_000 + 2 * 200_000 + 3 * 50_000 + 5 * 1_000
    assert totals.reserved == 0
    service.ledger.verify()
    assert faults_of(service.ledger.database) == []


def test_a_report_names_models_and_people_by_a_table(service, tmp_path):
    open_round(service)
    answer(service, "eve")
    (pseudonym,) = people_of(service.ledger).values()
    names = tmp_path / "annotators.csv"
    names.write_text("id,name\neve,Eve Adams\n", encoding="utf-8")
    words = ["report", str(tmp_path / "out"), "--json"]

    def shown(*more):
        found = CliRunner().invoke(app, [*words, *more])
        return set(json.loads(found.stdout)["workers"])

    assert shown() == {"rules", pseudonym}
    assert shown("--names") == {"rules", "eve"}
    assert shown("--annotators", str(names)) == {"rules", "Eve Adams"}
