"""The record and the findings: what a report is made of, from the ledger alone."""

from __future__ import annotations

import csv
import dataclasses
import json

import numpy as np
import pytest

import goldspan
from campaign.tiny import campaign_of, inputs_of, write_files
from goldspan.campaign import Campaign, CampaignRecord, write_exports
from goldspan.campaign.judging import gold_free_warnings
from goldspan.campaign.results import CONTROL, HIDDEN, REVIEWED, ReportData
from goldspan.campaign.stopping import curve_of

CONTROLS = {"n": 4, "gold": "truth.csv", "share": 0.2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("record")
    write_files(found, n=54)
    return found


@pytest.fixture(scope="module")
def campaign(folder):
    made = campaign_of(
        folder,
        control=CONTROLS,
        budget={"money": "17"},
        aggregate={"method": "ds"},
        crowd={"workers": ["flip(0.15) x5"]},
    )
    made.run()
    write_exports(made, folder / "out")
    yield made
    made.ledger.close()


@pytest.fixture(scope="module")
def record(campaign):
    return CampaignRecord.of(campaign.ledger)


def test_the_warnings_of_the_last_round_are_in_record_and_rounds(folder, monkeypatch):
    said = iter([["first"], ["second"], ["third"], ["fourth"], ["fifth"], ["sixth"]])
    monkeypatch.setattr("goldspan.campaign.loop.gold_free_warnings", lambda *_: next(said))
    made = campaign_of(folder, folder / "warned.sqlite", stop={"most_rounds": 2})
    made.run()
    found = CampaignRecord.of(made.ledger)
    write_exports(made, folder / "warned")
    made.ledger.close()
    assert [one["warnings"] for one in found.rounds] == [["first"], ["second"]]
    assert found.warnings == ("second",)
    kept = json.loads((folder / "warned" / "record.json").read_text())
    assert kept["warnings"] == ["second"]
    assert kept["limits"] == [{"rule": "rounds", "limit": "2 rounds at most", "now": "2"}]


def test_known_labels_may_overrule_the_answers_without_a_warning():
    rows = "".join(f"{i},{w},x\n" for i in range(20) for w in "abc") + "99,a,y\n"
    crowd = goldspan.read_crowd(f"item,worker,label\n{rows}".encode())
    result = goldspan.aggregate(crowd, "mv-token")
    x, y = (crowd.tagset.index[label] for label in "xy")
    gold = np.full(crowd.n_tokens, -1, np.int16)
    gold[0] = y
    changed = np.where(gold >= 0, gold, result.codes).astype(np.int16)
    overruled = dataclasses.replace(result, codes=changed)
    assert result.codes[0] == x
    assert len(gold_free_warnings(overruled, None)) == 1
    assert gold_free_warnings(overruled, gold) == []


def test_the_spending_ends_with_all_answers_and_all_their_money(record):
    last = record.spending[-1]
    assert (last["answers"], last["spent"]) == (record.counts["answers"], record.money["spent"])
    hours = [one["hours"] for one in record.spending]
    assert hours == sorted(hours)


def test_the_redundancy_adds_up_to_the_answers_that_are_no_control(record):
    own = record.counts["answers"] - record.counts["control_answers"]
    assert sum(k * n for k, n in enumerate(record.redundancy)) == own
    assert sum(record.redundancy[1:]) == record.counts["items"]
    assert record.counts["awaited"] == 0


def test_the_saving_is_against_fixed_answers_about_the_items_that_were_labelled(folder):
    part = campaign_of(folder, folder / "part.sqlite", control=CONTROLS, stop={"most_rounds": 1})
    part.run()
    record = CampaignRecord.of(part.ledger)
    assert record.counts["items"] == 10
    assert record.counts["control_answers"] > 0
    assert record.money["fixed"] == 10 * 4 * 50_000
    assert record.money["saving"] == 1 - record.counts["answers"] * 50_000 / (10 * 4 * 50_000)
    assert record.money["everything"] == 54 * 4 * 50_000
    part.ledger.close()


def test_a_changed_plan_is_told_as_it_is_in_force_with_its_changes(folder):
    first = campaign_of(folder, folder / "changed.sqlite", stop={"most_rounds": 1})
    first.run()
    assert CampaignRecord.of(first.ledger).changes == ()
    later = inputs_of(folder, stop={"most_rounds": 2}, budget={"money": "9"})
    Campaign(later, first.ledger).run()
    record = CampaignRecord.of(first.ledger)
    assert record.changes == ("budget.money was '8' and is '9'", "stop.most_rounds was 1 and is 2")
    assert record.plan == later.plan.model_dump(mode="json")
    assert (record.money["cap"], len(record.rounds)) == (9_000_000, 2)
    first.ledger.close()


def test_a_simulated_answer_takes_its_seconds(campaign, folder):
    answers = campaign.ledger.crowd().latest
    assert set((answers.submitted - answers.started).tolist()) == {30_000}
    rows = list(csv.DictReader((folder / "out" / "bill.csv").read_text().splitlines()))
    assert sum(float(row["minutes"]) for row in rows) == len(answers) / 2
    assert all(row["timed"] == row["answers"] for row in rows)


def test_the_curve_that_is_drawn_is_the_one_that_is_forecast(record, campaign):
    curve = curve_of(record.rounds, campaign.inputs.plan.seed)
    assert record.curve["score"] == pytest.approx([curve.at(n) for n in record.curve["items"]])
    low, high = np.array(record.curve["low"]), np.array(record.curve["high"])
    assert (low <= high).all()
    assert record.curve["items"][-1] == curve.last + 100


def test_the_labels_are_compared_with_the_hidden_gold_and_not_with_control_questions(
    campaign, record
):
    found = ReportData.of(campaign.ledger)
    assert found.against == HIDDEN
    known = (found.tested.crowd.gold >= 0).sum()
    assert known == record.counts["items"]
    right = goldspan.score(found.tested.crowd, found.tested).accuracy
    assert right == pytest.approx(record.rounds[-1]["truth"]["labels"])


def test_without_hidden_gold_control_questions_test_labels_that_did_not_know_them(
    campaign, monkeypatch
):
    ledger, records = campaign.ledger, campaign.ledger.records
    monkeypatch.setattr(ledger, "records", lambda kind: {} if kind == "hidden" else records(kind))
    found = ReportData.of(ledger)
    assert found.against == CONTROL
    assert (found.tested.crowd.gold >= 0).sum() == record_of_control(ledger)
    blind = goldspan.aggregate(ledger.crowd().with_gold(None), "ds")
    np.testing.assert_array_equal(found.tested.codes, blind.codes)


def test_what_the_requester_decided_is_named_as_what_it_is(folder):
    campaign = campaign_of(folder, folder / "reviewed.sqlite", name="reviewed", control=None)
    campaign.run()
    ledger, clock = campaign.ledger, campaign.steps.label.now()
    ledger.set_gold({"d3": ["rain"], "d4": ["sun"]}, clock)
    found = ReportData.of(ledger)
    assert found.against == REVIEWED
    assert (found.tested.crowd.gold >= 0).sum() == 2
    ledger.close()


def test_control_questions_alone_are_compared_where_there_are_some(campaign, monkeypatch):
    ledger, records = campaign.ledger, campaign.ledger.records
    monkeypatch.setattr(ledger, "records", lambda kind: {} if kind == "hidden" else records(kind))
    crowd, n = ledger.crowd(), record_of_control(ledger)
    everything = crowd.with_gold(np.where(crowd.gold < 0, np.int16(0), crowd.gold))
    monkeypatch.setattr(ledger, "crowd", lambda *_: everything)
    assert (ReportData.of(ledger).tested.crowd.gold >= 0).sum() == n


def record_of_control(ledger):
    return CampaignRecord.of(ledger).counts["control_items"]


def test_exporting_again_changes_nothing_in_the_ledger(campaign, folder):
    n = len(list(campaign.ledger.events()))
    write_exports(campaign, folder / "again")
    assert len(list(campaign.ledger.events())) == n
    assert (folder / "again" / "record.json").read_bytes() == (
        folder / "out" / "record.json"
    ).read_bytes()


def test_the_record_is_plain_json(record):
    text = json.dumps(record.to_dict(), allow_nan=False)
    assert json.loads(text)["version"] == 3


def test_a_campaign_that_has_only_begun_has_a_record(folder):
    begun = campaign_of(folder, folder / "begun.sqlite", name="begun")
    begun._begin()
    record = CampaignRecord.of(begun.ledger)
    assert (record.curve, record.spending, record.redundancy) == (None, (), ())
    assert ReportData.of(begun.ledger).result is None
    begun.ledger.close()
