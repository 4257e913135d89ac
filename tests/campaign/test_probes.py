"""Probes: models that label silently; who pastes their answers is shown with evidence."""

from __future__ import annotations

import json

import pytest

import goldspan
from campaign.test_workforce import ANN, BEN, RULES, crowd
from campaign.tiny import campaign_of, ends_with_the_same_log, inputs_of, plan_of, write_files
from goldspan.campaign import Campaign, read_plan
from goldspan.campaign.results import CampaignRecord, ReportData, write_exports
from goldspan.campaign.summary import describe_plan
from goldspan.campaign.workforce import PROBED, probes_of
from goldspan.crowd import write_crowd
from goldspan.errors import FaultsError
from goldspan.report.campaign import render
from goldspan.simulation import simulate_crowd
from goldspan.store.verify import faults_of

PROBE = {**RULES, "id": "silent", "probe": True}
TEAM = {
    **dict.fromkeys(("ann", "ben", "cat", "dan"), "flip(0.1)"),
    "gpt": "flip(0.25)",
    "eve": "flip(0.1) + copier(gpt, 0.95)",
}


@pytest.fixture
def folder(tmp_path):
    write_files(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def pasted(tmp_path_factory):
    """A campaign among whose people eve pastes the answers of a probe."""
    folder = tmp_path_factory.mktemp("pasted")
    write_files(folder, 150)
    truth = goldspan.read_crowd(folder / "truth.csv", gold=folder / "truth.csv")
    write_crowd(simulate_crowd(truth, TEAM, seed=2).with_gold(None), folder / "recorded.csv")
    people = [{"id": name, "kind": "replay"} for name in TEAM if name != "gpt"]
    probe = {"id": "gpt", "kind": "replay", "probe": True, "prices": {"per_answer": "0.001"}}
    campaign = campaign_of(
        folder, crowd=crowd(*people, probe, truth=None, answers="recorded.csv"),
        redundancy={"min": 3, "max": 3}, budget={"money": 50}, aggregate={"method": "ds"},
        select={"by": "random", "batch": 75}, stop={"most_rounds": 2},
    )  # fmt: skip
    campaign.run()
    yield campaign, folder
    campaign.ledger.close()


def test_what_a_probe_says_counts_for_nothing_and_is_paid(folder):
    campaign = campaign_of(folder, crowd=crowd(ANN, BEN, PROBE), redundancy={"max": 2})
    campaign.run()
    ledger = campaign.ledger
    assert ledger.crowd().worker_ids.to_pylist() == ["ann", "ben"]
    assert ledger.totals().spent == 40 * 50_000 + 20 * 1_000
    assert ledger.totals().reserved == 0
    silent = probes_of(ledger, ledger.crowd())
    assert (silent.worker_ids.to_pylist(), len(silent.latest)) == (["silent"], 20)
    assert [one["probe"] for one in ledger.records(PROBED).values()] == ["silent", "silent"]
    ledger.verify()
    assert faults_of(ledger.database) == []
    before = ledger.n_events
    assert Campaign(campaign.inputs, ledger).run().stop
    assert ledger.n_events == before
    without = campaign_of(
        folder, folder / "without.sqlite", crowd=crowd(ANN, BEN), redundancy={"max": 2}
    )
    without.run()
    labels = campaign.progress.result.tagged_by_id()
    assert without.progress.result.tagged_by_id() == labels


def test_gold_questions_come_first_and_a_limit_holds(folder):
    probe = {**PROBE, "limit": 7}
    control = {"n": 4, "gold": "truth.csv", "share": 0.2}
    campaign = campaign_of(
        folder, crowd=crowd(ANN, BEN, probe), redundancy={"max": 2}, control=control
    )
    campaign.run()
    asked = [item for one in campaign.ledger.records(PROBED).values() for item in one["labels"]]
    assert len(asked) == 7
    assert set(campaign.inputs.control) < set(asked)


def test_what_it_cannot_say_is_asked_once(folder):
    shy = {**PROBE, "call": "campaign.rules:every_second"}
    campaign = campaign_of(folder, crowd=crowd(ANN, BEN, shy), redundancy={"max": 2})
    campaign.run()
    answers = [one["labels"] for one in campaign.ledger.records(PROBED).values()]
    given = [labels for one in answers for labels in one.values()]
    assert (len(given), given.count(None)) == (20, 10)
    assert campaign.ledger.totals().spent == 40 * 50_000 + 10 * 1_000


def test_the_cap_holds(folder):
    dear = {**PROBE, "prices": {"per_answer": "0.3"}}
    campaign = campaign_of(
        folder, crowd=crowd(ANN, BEN, dear), redundancy={"max": 2}, budget={"money": "1"}
    )
    campaign.run()
    totals = campaign.ledger.totals()
    assert totals.spent <= totals.cap
    campaign.ledger.verify()


def test_broken_off_at_any_call_it_ends_with_the_same_log(folder):
    sections = {
        "crowd": crowd(ANN, BEN, PROBE), "redundancy": {"max": 2}, "model": {"name": "none"},
        "select": {"by": "random", "batch": 4, "first": 3}, "stop": {"most_rounds": 2},
    }  # fmt: skip
    ends_with_the_same_log(folder, inputs_of(folder, **sections), 7)


def test_who_pastes_is_shown_with_evidence(pasted):
    campaign, folder = pasted
    rows = list(campaign.ledger.records("verdicts").values())[-1]["workers"]
    assert [name for name, one in rows.items() if "flags" in one] == ["eve"]
    (flag,) = rows["eve"]["flags"]
    assert (flag["kind"], flag["other"]) == ("copies a model", "gpt")
    assert rows["eve"]["opinion"] == "look at"
    assert flag["evidence"].startswith("Did eve use gpt? They gave ")
    assert flag["evidence"] in rows["eve"]["said"]
    write_exports(campaign, folder / "out")
    kept = json.loads((folder / "out" / "record.json").read_text())
    assert kept["workers"]["eve"]["flags"] == [flag]
    found = ReportData.of(campaign.ledger)
    page = render(found.record, result=found.result, tested=found.tested, against=found.against)
    assert f"Who repeats its mistakes: eve {flag['evidence']}." in page
    assert "gpt (replay) labelled 150 items silently for 0.15" in page.replace("\u00a0", " ")


def test_the_record_has_the_kinds_of_workers_and_the_probes(pasted):
    campaign, _ = pasted
    found = CampaignRecord.of(campaign.ledger)
    assert found.probes == ({"probe": "gpt", "kind": "replay", "model": None, "items": 150,
                            "cost": 150_000},)  # fmt: skip
    (kind,) = found.kinds.values()
    assert list(found.kinds) == ["replay"]
    workers = found.workers.values()
    assert kind["workers"] == 5
    assert kind["answers"] == sum(one["answers"] for one in workers) == 450
    assert kind["cost"] == sum(one["cost"] for one in workers) == 450 * 50_000
    assert min(one["mean"] for one in workers) < kind["mean"] < max(one["mean"] for one in workers)
    assert kind["low"] < kind["mean"] < kind["high"]
    assert json.dumps(found.to_dict())


def test_a_plan_says_what_a_probe_is(folder):
    inputs = inputs_of(folder, crowd=crowd(ANN, BEN, PROBE), redundancy={"max": 2})
    lines = describe_plan(inputs)
    assert "crowd: ann (simulated), ben (simulated), silent (python, a probe)" in lines
    assert "worker silent (python, a probe): up to 20 answers, for 0.02" in lines


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([ANN, BEN, {"id": "x", "kind": "people", "probe": True}], "a probe labels silently"),
        ([ANN, BEN, {**RULES, "probe": "yes"}], "probe must be true or false, not 'yes'"),
        ([ANN, PROBE], "there are 1: set overlap = 1 or less"),
    ],
)
def test_what_makes_no_sense_is_refused(entries, message):
    with pytest.raises(FaultsError) as caught:
        read_plan(plan_of(crowd=crowd(*entries), redundancy={"max": 2}))
    assert message in str(caught.value)


def test_a_probe_makes_no_family():
    kin = [{**ANN, "family": "gpt"}, BEN, {**PROBE, "family": "gpt"}]
    assert read_plan(plan_of(crowd=crowd(*kin), redundancy={"max": 2})).aggregate.families is None
