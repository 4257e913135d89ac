"""The source "replay": a campaign on answers that were recorded."""

from __future__ import annotations

import json

import pytest

from campaign.tiny import campaign_of, inputs_of, plan_of, write_files
from goldspan.campaign import Campaign, CampaignRecord, read_plan
from goldspan.campaign.crowds import read_record
from goldspan.errors import FaultsError, InputError

REPLAY = {"source": "replay", "answers": "answers.csv", "truth": "truth.csv", "workers": []}


@pytest.fixture
def folder(tmp_path):
    """Twenty items; Ann, Bob and Cid answered all, Dot every second one; Bob errs at times."""
    write_files(tmp_path)
    rows = ["task,worker,label"]
    for i in range(20):
        truth, other = ("rain", "sun") if i % 3 else ("sun", "rain")
        rows += [f"d{i},ann,{truth}", f"d{i},bob,{other if i % 5 == 0 else truth}"]
        rows += [f"d{i},cid,{truth}"] + ([f"d{i},dot,{truth}"] if i % 2 else [])
    (tmp_path / "answers.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


def recorded(folder):
    lines = (folder / "answers.csv").read_text().splitlines()[1:]
    return {(item, worker): label for item, worker, label in (line.split(",") for line in lines)}


def bought(crowd):
    """Return the answers of a crowd by item and worker."""
    every = {name: crowd.answers_of(name) for name in crowd.item_ids.to_pylist()}
    return {(item, who): tags[0] for item, by in every.items() for who, tags in by.items()}


def test_every_answer_that_is_bought_was_recorded_and_the_truth_says_how_good_labels_are(folder):
    campaign = campaign_of(folder, crowd=REPLAY)
    decision = campaign.run()
    assert decision.rule == "pool"
    found, known = bought(campaign.ledger.crowd()), recorded(folder)
    assert len(found) >= 40
    assert {key: known[key] for key in found} == found
    assert CampaignRecord.of(campaign.ledger).rounds[-1]["truth"]["labels"] >= 0.9


def test_an_item_that_too_few_answered_ends_with_those(folder):
    lines = (folder / "answers.csv").read_text().splitlines()
    kept = [line for line in lines if not line.startswith(("d3,bob", "d3,cid", "d3,dot"))]
    (folder / "answers.csv").write_text("\n".join(kept) + "\n")
    campaign = campaign_of(folder, crowd=REPLAY)
    campaign.run()
    found = bought(campaign.ledger.crowd())
    assert [who for item, who in found if item == "d3"] == ["ann"]


def test_a_campaign_that_is_taken_up_again_buys_the_same(folder):
    whole = campaign_of(folder, folder / "whole.sqlite", crowd=REPLAY)
    whole.run()
    broken = campaign_of(folder, folder / "broken.sqlite", crowd=REPLAY)
    n, submit = 0, broken.ledger.submit

    def breaking(*args, cost):
        nonlocal n
        n += 1
        if n == 13:
            raise KeyboardInterrupt
        return submit(*args, cost=cost)

    broken.ledger.submit = breaking
    with pytest.raises(KeyboardInterrupt):
        broken.run()
    del broken.ledger.submit
    Campaign(broken.inputs, broken.ledger).run()
    assert bought(broken.ledger.crowd()) == bought(whole.ledger.crowd())
    times = [
        [event.time for event in campaign.ledger.events() if event.kind == "submit"]
        for campaign in (whole, broken)
    ]
    assert times[0] == times[1]
    answers = broken.ledger.crowd().latest
    assert set((answers.submitted - answers.started).tolist()) == {30_000}


def test_who_was_dropped_is_asked_no_more(folder):
    campaign = campaign_of(folder, crowd=REPLAY)
    campaign.ledger.record("bar", "bob", {"why": "a test"}, campaign.steps.label.now())
    campaign.run()
    assert "bob" not in {who for _, who in bought(campaign.ledger.crowd())}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,worker,label\nd1,ann,snow\n", "labels that the task has not: snow"),
        ("task,worker,label\nx1,ann,rain\nx1,bob,sun\n", "do the ids agree"),
    ],
)
def test_a_record_that_does_not_fit_is_refused(folder, text, message):
    (folder / "answers.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        read_record(inputs_of(folder, crowd=REPLAY))


def test_other_tokens_than_in_the_pool_are_refused(folder):
    (folder / "pool.jsonl").write_text(json.dumps({"id": "1-1", "text": "We saw Rome ."}) + "\n")
    (folder / "crowd.tsv").write_text("doc\tsent\ttoken\ta\n1\t1\tWe\tO\n1\t1\tsaw\tO\n")
    spans = {"types": ["LOC"], "labels": []}
    inputs = inputs_of(
        folder, task=spans, crowd={**REPLAY, "answers": "crowd.tsv", "truth": None},
        aggregate={"method": "ibcc"}, model={"name": "hmm"},
    )  # fmt: skip
    with pytest.raises(InputError, match="2 tokens, and 4 in the pool"):
        read_record(inputs)


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"crowd": {**REPLAY, "answers": None}}, "crowd.answers: belongs to"),
        ({"crowd": {"answers": "answers.csv"}}, "crowd.answers: belongs to"),
        ({"crowd": {**REPLAY, "workers": ["flip(0.1)"]}}, "a recorded crowd has its own"),
        ({"crowd": REPLAY, "control": {"n": 2, "gold": "truth.csv"}}, "control: a recorded crowd"),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused(sections, message):
    made = plan_of(**sections)
    made["crowd"] = {key: value for key, value in made["crowd"].items() if value is not None}
    with pytest.raises(FaultsError, match=message):
        read_plan(made)
