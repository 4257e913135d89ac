"""Families of workers in campaigns: the plan's key, who is asked, when an item has enough."""

from __future__ import annotations

import pytest

from campaign.tiny import campaign_of, plan_of, toml, write_files
from goldspan.campaign import Campaign, CampaignRecord, read_inputs, read_plan
from goldspan.campaign.judging import families_of, judge
from goldspan.campaign.summary import describe_plan
from goldspan.errors import FaultsError, FormatError, InputError

TEAM = {"source": "simulated", "truth": "truth.csv", "workers": ["flip(0.1) x4", "eve=flip(0.2)"]}


@pytest.fixture
def folder(tmp_path):
    write_files(tmp_path)
    return tmp_path


def answered_by(crowd) -> list[set[str]]:
    return [set(crowd.answers_of(n)) for n in range(crowd.n_items)]


def test_two_of_a_family_are_asked_only_where_nobody_else_is_left(folder):
    kin = {"w1": "one", "w2": "one", "w3": "two", "w4": "two"}
    campaign = campaign_of(
        folder, crowd=TEAM, redundancy={"min": 3, "max": 3},
        aggregate={"method": "one-coin", "families": kin},
    )  # fmt: skip
    campaign.run()
    crowd = campaign.progress.crowd
    for who in answered_by(crowd):
        assert len({kin.get(worker, worker) for worker in who}) == 3
    campaign = campaign_of(
        folder, folder / "more.sqlite", crowd=TEAM, redundancy={"min": 4, "max": 4},
        aggregate={"method": "one-coin", "families": kin},
    )  # fmt: skip
    campaign.run()
    assert all(len(who) == 4 for who in answered_by(campaign.progress.crowd))
    workers = campaign.progress.result.workers.to_pylist()
    assert {row["worker"]: row["family"] for row in workers}["w3"] == "two"


def test_verdicts_and_the_plan_in_words_name_families(folder):
    kin = {"w1": "one", "w2": "one"}
    campaign = campaign_of(
        folder, crowd=TEAM, aggregate={"method": "ds", "families": kin}, name="kin"
    )
    campaign.run()
    rounds = CampaignRecord.of(campaign.ledger)
    assert rounds.plan["aggregate"]["families"] == kin
    plan = campaign.inputs.plan
    rows = judge(plan, campaign.progress.crowd, campaign.progress.result, set(), 5)["workers"]
    assert rows["w1"]["family"] == "one"
    assert "family" not in rows["eve"]
    assert "2 workers in 1 family" in "\n".join(describe_plan(campaign.inputs))
    assert plan.aggregate.family_of("w1") == "one"


def test_an_empty_table_of_families_is_kept():
    # An empty table says that nobody errs with anybody: without it they would be looked for.
    none = read_plan(plan_of(aggregate={"method": "auto", "families": {}}))
    assert none.model_dump(mode="json")["aggregate"]["families"] == {}
    assert read_plan(none.model_dump(mode="json")).aggregate.families == {}


def test_families_of_a_plan_may_be_in_a_file_beside_it(folder):
    (folder / "kin.csv").write_text("worker,family\nw1,one\nw2,one\n")
    made = plan_of(crowd=TEAM, aggregate={"method": "ds", "families": "kin.csv"})
    (folder / "plan.toml").write_text(toml(made))
    plan = read_plan(folder / "plan.toml")
    assert plan.aggregate.families == {"w1": "one", "w2": "one"}
    (folder / "kin.csv").write_text("worker\nw1\n")
    with pytest.raises(FormatError, match="columns worker and family"):
        read_plan(folder / "plan.toml")


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"method": "ds", "families": {"nobody": "x"}}, "no worker 'nobody' in the crowd"),
        ({"method": "ds", "families": {"w1": ""}}, "text that is not empty"),
        ({"method": "wawa", "families": "auto", "params": {"families": "none"}}, "leave one out"),
        ({"method": "ds", "families": 3}, "families"),
    ],
)
def test_families_that_fit_nothing_are_refused(section, message):
    with pytest.raises(FaultsError, match=message):
        read_plan(plan_of(crowd=TEAM, aggregate=section))


def test_a_recorded_crowd_knows_its_workers(folder):
    rows = [f"d{i},{w},rain" for i in range(20) for w in ("ann", "bob")]
    (folder / "answers.csv").write_text("\n".join(["task,worker,label", *rows]) + "\n")
    crowd = {"source": "replay", "answers": "answers.csv", "workers": [], "truth": "truth.csv"}
    with pytest.raises(InputError, match="no worker 'eve' in the recorded crowd"):
        campaign_of(folder, crowd=crowd, aggregate={"method": "ds", "families": {"eve": "x"}}).run()


def test_families_that_were_found_and_judged_are_heeded_where_the_plan_names_none():
    plan = read_plan(plan_of(crowd=TEAM))
    rows = {"w1": {"family": "w1+w2"}, "w2": {"family": "w1+w2"}, "w3": {}}
    judged = {"1": {"workers": {"w3": {"family": "old"}}}, "2": {"workers": rows}}
    assert families_of(plan, judged) == {"w1": "w1+w2", "w2": "w1+w2"}
    assert families_of(plan, {}) == {}
    named = read_plan(plan_of(crowd=TEAM, aggregate={"method": "ds", "families": {"w1": "one"}}))
    assert families_of(named, judged) == {"w1": "one"}


def test_simulated_copies_that_a_round_found_are_asked_about_other_items(folder, monkeypatch):
    found = {"w1": "copies", "w2": "copies"}
    campaign = campaign_of(
        folder, crowd=TEAM, redundancy={"min": 2, "max": 2}, stop={"most_rounds": 2}
    )
    verdicts = campaign._verdicts

    def judged(barred):
        said = verdicts(barred)
        for worker, name in found.items():
            said["workers"].get(worker, {})["family"] = name
        return said

    monkeypatch.setattr(campaign, "_verdicts", judged)
    campaign.run()
    picks = campaign.ledger.records("picks")
    crowd = campaign.progress.crowd
    later = list(picks.values())[1]["items"]
    assert later
    assert not any(set(found) <= set(crowd.answers_of(item)) for item in later)


def test_a_plan_says_how_many_of_a_family_an_item_takes():
    plan = read_plan(plan_of(redundancy={"min": 2, "max": 3, "per_family": 2}))
    assert plan.redundancy.per_family == 2
    assert plan.model_dump(mode="json")["redundancy"]["per_family"] == 2
    assert "per_family" not in read_plan(plan_of()).model_dump(mode="json")["redundancy"]
    with pytest.raises(FaultsError, match="per_family"):
        read_plan(plan_of(redundancy={"per_family": 0}))


def test_families_may_change_while_a_campaign_runs(folder):
    first = campaign_of(folder, crowd=TEAM, stop={"most_rounds": 1})
    first.run()
    kin = {"w1": "one", "w2": "one"}
    again = plan_of(
        crowd=TEAM, aggregate={"method": "one-coin", "families": kin}, redundancy={"per_family": 1}
    )
    campaign = Campaign(read_inputs(read_plan(again), folder), first.ledger)
    campaign.run()
    record = CampaignRecord.of(campaign.ledger)
    assert record.plan["aggregate"]["families"] == kin
