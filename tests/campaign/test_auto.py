"""Campaigns aggregate by `auto` unless the plan names a method or they began by another default."""

from __future__ import annotations

import numpy as np
import pytest

from campaign.tiny import SPANS, campaign_of, inputs_of, ledger_of, write_files, write_spans
from goldspan.aggregation import get_aggregator
from goldspan.campaign import Campaign, CampaignRecord, write_exports
from goldspan.campaign.judging import CHOICE, Aggregating, method_of
from goldspan.campaign.results import ReportData

AUTO = {
    "aggregate": None,
    "model": {"name": "none"},
    "crowd": {"workers": ["flip(0.2) x5"]},
    "redundancy": {"max": 3},
}


@pytest.fixture
def folder(tmp_path):
    write_files(tmp_path, 12)
    return tmp_path


def begun_by(method, folder, **sections):
    """Begin a campaign whose plan names no method when the default was another one."""
    inputs = inputs_of(folder, **sections)
    ledger = ledger_of(inputs, folder / "campaign.sqlite")
    record = ledger.record

    def with_method(kind, name, body, now):
        record(kind, name, {**body, "method": method} if kind == "plan" else body, now)

    ledger.record = with_method
    Campaign(inputs, ledger).begin()
    ledger.record = record
    return inputs, ledger


def test_auto_is_the_default_and_what_it_chose_is_kept(folder):
    campaign = campaign_of(folder, **AUTO)
    campaign.run()
    kept = campaign.ledger.records(CHOICE)
    assert "r001.1" in kept
    assert campaign.progress.result.method == "auto"
    last = list(kept.values())[-1]
    assert last["n_answers"] * 1.25 >= len(campaign.progress.crowd.latest)
    names = [one["name"] for one in last["candidates"]]
    assert [one.name for one in campaign.progress.result.candidates] == names


def test_labels_of_spans_are_by_the_last_choice_wherever_they_are_made(tmp_path):
    write_spans(tmp_path, 10)
    sections = {
        **SPANS,
        "aggregate": {"method": None, "params": {"text": "none"}},
        "model": {"name": "none"},
    }
    campaign = campaign_of(tmp_path, **sections, redundancy={"max": 2})
    campaign.run()
    result = campaign.progress.result
    assert result.method == "auto"
    again = Aggregating(campaign.inputs.plan, campaign.ledger).labels(campaign.ledger.crowd())
    assert np.array_equal(again.token_probs, result.token_probs)
    found = ReportData.of(campaign.ledger)
    assert np.array_equal(found.result.token_probs, result.token_probs)


def test_a_choice_is_made_again_only_when_the_answers_have_grown_by_a_quarter(folder, monkeypatch):
    judged = []
    choose = Aggregating.choose

    def counted(self, crowd):
        made = choose(self, crowd)
        judged.append((len(crowd.latest), made is not None))
        return made

    monkeypatch.setattr(Aggregating, "choose", counted)
    campaign_of(folder, **AUTO, select={"batch": 4}).run()
    last = 0
    for n_answers, is_new in judged:
        assert is_new == (n_answers > 1.25 * last)
        last = n_answers if is_new else last
    assert not all(is_new for _, is_new in judged)


class Break(Exception):  # noqa: N818 - it is no error
    """Ends the work."""


def test_broken_off_when_a_choice_is_kept_it_ends_with_the_same_bytes(folder, tmp_path):
    def exports(campaign, out):
        return {path.name: path.read_bytes() for path in write_exports(campaign, out)}

    whole = campaign_of(folder, **AUTO)
    whole.run()
    inputs = inputs_of(folder, **AUTO)
    ledger = ledger_of(inputs, tmp_path / "broken.sqlite")
    record, breaks = ledger.record, iter([True, False, True, False] + [False] * 1000)

    def breaking(kind, name, body, now):
        is_choice = kind == CHOICE
        if is_choice and next(breaks):
            raise Break
        record(kind, name, body, now)
        if is_choice and next(breaks):
            raise Break

    ledger.record = breaking
    for _ in range(9):
        try:
            broken = Campaign(inputs, ledger)
            broken.run()
            break
        except Break:
            continue
    assert exports(broken, folder / "out") == exports(whole, folder / "again")


def test_the_last_choice_has_seen_every_answer(folder):
    campaign = campaign_of(folder, **AUTO, select={"batch": 4})
    campaign.run()
    kept, crowd = campaign.ledger.records(CHOICE), campaign.ledger.crowd()
    name, last = list(kept.items())[-1]
    assert ".end." in name
    assert last["n_answers"] == len(crowd.latest)
    assert last["last_answer"] == campaign.ledger.last_answer
    assert sum(".end." in one for one in kept) == 1
    # The labels, their confidences and those of the report are those of a judge who saw all.
    fresh = campaign.progress.result
    again = get_aggregator("auto").fit(crowd.with_gold(None)).result_
    assert [one.name for one in fresh.candidates] == [one.name for one in again.candidates]
    assert np.abs(fresh.token_probs - again.token_probs).max() < 1e-6
    found = ReportData.of(campaign.ledger).result
    assert np.array_equal(found.token_probs, fresh.token_probs)
    # It is judged once: who runs a campaign that has ended changes nothing.
    events = campaign.ledger.n_events
    Campaign(campaign.inputs, campaign.ledger).run()
    assert campaign.ledger.n_events == events


def test_it_is_not_judged_again_where_the_last_wave_saw_everything(folder, monkeypatch):
    judged = []
    chosen = Aggregating._chosen

    def counted(self, crowd):
        judged.append(len(crowd.latest))
        return chosen(self, crowd)

    monkeypatch.setattr(Aggregating, "_chosen", counted)
    campaign = campaign_of(folder, **AUTO, select={"batch": 12})
    campaign.run()
    assert len(judged) == len(set(judged)) == len(campaign.ledger.records(CHOICE))
    assert judged[-1] == len(campaign.ledger.crowd().latest)


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_the_last_choice_it_ends_with_the_same_bytes(folder, tmp_path, when):
    def exports(campaign, out):
        return {path.name: path.read_bytes() for path in write_exports(campaign, out)}

    sections = {**AUTO, "select": {"batch": 4}}
    whole = campaign_of(folder, **sections)
    whole.run()
    inputs = inputs_of(folder, **sections)
    ledger = ledger_of(inputs, tmp_path / "broken.sqlite")
    record, killed = ledger.record, []

    def breaking(kind, name, body, now):
        is_last = kind == CHOICE and ".end." in name and not killed
        killed.extend([name] if is_last else [])
        if is_last and when == "before":
            raise Break
        record(kind, name, body, now)
        if is_last:
            raise Break

    ledger.record = breaking
    with pytest.raises(Break):
        Campaign(inputs, ledger).run()
    again = Campaign(inputs, ledger)
    again.run()
    assert exports(again, folder / "out") == exports(whole, folder / "again")
    assert list(ledger.records(CHOICE)) == list(whole.ledger.records(CHOICE))


@pytest.mark.parametrize("spans", [False, True])
def test_a_campaign_that_began_by_another_default_keeps_it(tmp_path, spans):
    (write_spans if spans else write_files)(tmp_path, 12)
    sections = {**(SPANS if spans else {}), **AUTO}
    if spans:
        sections["crowd"] = {**sections["crowd"], "truth": "gold.conll"}
    before = "bsc-seq" if spans else "ds"
    inputs, ledger = begun_by(before, tmp_path, **sections)
    assert inputs.plan.method == "auto"
    assert method_of(inputs.plan, ledger) == before
    campaign = Campaign(inputs, ledger)
    campaign.run()
    assert campaign.progress.result.method == before
    assert not ledger.records(CHOICE)
    assert ReportData.of(ledger).result.method == before


def test_a_plan_that_names_a_method_keeps_no_choice(folder):
    campaign = campaign_of(folder)
    campaign.run()
    assert campaign.progress.result.method == "one-coin"
    assert not campaign.ledger.records(CHOICE)
    assert CampaignRecord.of(campaign.ledger).plan["aggregate"]["method"] == "one-coin"
