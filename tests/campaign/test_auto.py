"""Campaigns aggregate by `auto` unless the plan names a method or they began by another default."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import numpy as np
import pytest

from campaign.tiny import SPANS, campaign_of, inputs_of, ledger_of, write_files, write_spans
from goldspan.aggregation import get_aggregator
from goldspan.campaign import Campaign, write_exports
from goldspan.campaign.judging import CHOICE, Aggregating, method_of
from goldspan.campaign.results import ReportData

AUTO = {
    "aggregate": None,
    "model": {"name": "none"},
    "crowd": {"workers": ["flip(0.2) x5"]},
    "redundancy": {"max": 3},
}
FOURS = {**AUTO, "select": {"batch": 4}}


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


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A campaign in small rounds that ran through, and when its candidates were judged."""
    folder, judged = tmp_path_factory.mktemp("whole"), []
    write_files(folder, 12)
    choose = Aggregating.choose

    def counted(self, crowd):
        made = choose(self, crowd)
        judged.append((len(crowd.latest), made is not None))
        return made

    campaign = campaign_of(folder, **FOURS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Aggregating, "choose", counted)
        campaign.run()
    return campaign, judged


def exports(campaign, out):
    return {path.name: path.read_bytes() for path in write_exports(campaign, out)}


def test_auto_is_the_default_and_what_it_chose_is_kept(whole):
    campaign, _ = whole
    kept = campaign.ledger.records(CHOICE)
    assert "r001.1" in kept
    assert campaign.progress.result.method == "auto"
    names = [one["name"] for one in list(kept.values())[-1]["candidates"]]
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


def test_a_choice_is_made_again_only_when_the_answers_have_grown_by_a_quarter(whole):
    _, judged = whole
    last = 0
    for n_answers, is_new in judged:
        assert is_new == (n_answers > 1.25 * last)
        last = n_answers if is_new else last
    assert not all(is_new for _, is_new in judged)


class Break(Exception):  # noqa: N818 - it is no error
    """Ends the work."""


def test_broken_off_when_a_choice_is_kept_it_ends_with_the_same_bytes(whole, tmp_path):
    # At the first choice, and at the last one; each before and after it is kept
    campaign, _ = whole
    inputs = campaign.inputs
    ledger = ledger_of(inputs, tmp_path / "broken.sqlite")
    record, seen = ledger.record, Counter()

    def breaking(kind, name, body, now):
        if kind != CHOICE or not (name == "r001.1" or ".end." in name):
            return record(kind, name, body, now)
        seen[name] += 1
        if seen[name] == 1:
            raise Break
        record(kind, name, body, now)
        raise Break

    ledger.record = breaking
    for _ in range(5):
        broken = Campaign(inputs, ledger)
        with suppress(Break):
            broken.run()
    assert sorted(seen.values()) == [2, 2]
    assert exports(broken, tmp_path / "out") == exports(campaign, tmp_path / "again")
    assert list(ledger.records(CHOICE)) == list(campaign.ledger.records(CHOICE))


def test_the_last_choice_has_seen_every_answer(whole):
    campaign, _ = whole
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
    chosen = Aggregating.chosen

    def counted(self, crowd):
        judged.append(len(crowd.latest))
        return chosen(self, crowd)

    monkeypatch.setattr(Aggregating, "chosen", counted)
    campaign = campaign_of(folder, **AUTO, select={"batch": 12})
    campaign.run()
    assert len(judged) == len(set(judged)) == len(campaign.ledger.records(CHOICE))
    assert judged[-1] == len(campaign.ledger.crowd().latest)


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
