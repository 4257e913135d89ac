"""The loop: what a campaign does from the first question to the last, whenever it is broken off."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import goldspan
from campaign.tiny import (
    SPANS,
    Break,
    Breaking,
    campaign_of,
    inputs_of,
    ledger_of,
    telling,
    write_files,
    write_spans,
)
from goldspan.campaign import Campaign, CampaignRecord, Decision, Steps, write_exports
from goldspan.campaign.plan import Redundancy
from goldspan.errors import InputError


@pytest.fixture
def folder(tmp_path):
    write_files(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """A campaign that ran through; nothing here changes it."""
    folder = tmp_path_factory.mktemp("ended")
    write_files(folder)
    campaign = campaign_of(folder)
    return campaign, campaign.run()


def exports(campaign, out):
    return {path.name: path.read_bytes() for path in write_exports(campaign, out)}


def test_a_campaign_labels_its_pool_pays_every_answer_and_says_why_it_stopped(ended):
    campaign, found = ended
    assert (found.stop, found.rule) == (True, "pool")
    slots = campaign.ledger.slots().to_pylist()
    assert len(slots) == 20
    assert all(2 <= row["filled"] == row["wanted"] <= 4 for row in slots)
    totals = campaign.ledger.totals()
    assert totals.reserved == 0
    assert totals.spent == 50_000 * sum(row["filled"] for row in slots)
    record = CampaignRecord.of(campaign.ledger)
    assert [one["items"] for one in record.rounds] == [10, 20]
    assert record.rounds[-1]["truth"]["labels"] > 0.85


def test_items_whose_workers_disagree_are_asked_about_again(ended):
    campaign, _ = ended
    crowd = campaign.progress.crowd
    answers = [crowd.answers_of(item) for item in range(crowd.n_items)]
    few = [labels for labels in answers if len(labels) == 2]
    assert few
    assert len(few) < len(answers)
    assert all(len({one[0] for one in labels.values()}) == 1 for labels in few)


def test_what_later_answers_made_doubtful_is_asked_again_when_the_pool_is_out(folder):
    crowd = {"workers": ["flip(0.1) x2", "flip(0.4) x4"]}
    campaign = campaign_of(folder, crowd=crowd, select={"batch": 5}, model={"name": "none"})
    campaign.run()
    records, found = campaign.ledger.records, campaign.progress
    last = [picks["more"] for picks in records("picks").values() if not picks["items"]]
    assert last[0]
    assert not last[-1]
    assert all(row["filled"] <= 4 for row in campaign.ledger.slots().to_pylist())
    closed = {item for wave in records("wave").values() for item in wave["closed"]}
    open_ = campaign.steps.aggregate.open_items(found.crowd, found.result, found.picked)
    assert {*open_} <= closed


def test_the_bill_is_what_the_ledger_spent(folder):
    campaign = campaign_of(folder, prices={"per_answer": "0.05", "per_token": "0.003"})
    campaign.run()
    lines = exports(campaign, folder / "out")["bill.csv"].decode().splitlines()[1:]
    paid = sum(round(1e6 * float(line.split(",")[-1])) for line in lines)
    assert paid == campaign.ledger.totals().spent


def test_spans_are_labelled_and_a_tagger_is_kept(tmp_path):
    write_spans(tmp_path)
    campaign = campaign_of(tmp_path, **SPANS)
    campaign.run()
    out = exports(campaign, tmp_path / "out")
    assert set(out) == {
        "gold.conll", "spans.jsonl", "tagger.goldspan", "bill.csv", "rounds.jsonl", "record.json"
    }  # fmt: skip
    from goldspan.tagger import load_tagger

    tagger = load_tagger(tmp_path / "out" / "tagger.goldspan")
    assert tagger.predict([["Ann", "left", "Rome", "."]]) == [["O", "O", "B-LOC", "O"]]


SMALL = {
    "redundancy": {"max": 3},
    "crowd": {"workers": ["flip(0.2) x4", "spammer(constant)"]},
    "control": {"n": 6, "gold": "truth.csv", "share": 0.2, "first": 2, "least": 0.4},
    "judging": {"answers": 4, "sure": 0.8},
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A campaign that ran through: its exports, how many calls it took, its files."""
    folder = tmp_path_factory.mktemp("whole")
    write_files(folder, 20)
    inputs = inputs_of(folder, **SMALL)
    ledger = Breaking(ledger_of(inputs, folder / "campaign.sqlite"), 10**9, after=True)
    campaign = Campaign(inputs, ledger)
    campaign.run()
    assert ledger.records("bar")
    return exports(campaign, folder / "out"), 10**9 - ledger.left, inputs


@pytest.mark.parametrize(("step", "after"), [(7, False), (17, True)])
def test_broken_off_at_any_call_it_ends_with_the_same_bytes(whole, tmp_path, step, after):
    # Both steps grow by a prime number, so that they break at different calls.
    expected, n_calls, inputs = whole
    ledger = ledger_of(inputs, tmp_path / "campaign.sqlite")
    for _ in range(n_calls):
        try:
            campaign = Campaign(inputs, Breaking(ledger, step, after=after))
            campaign.run()
        except Break:
            step += 31
            continue
        break
    assert exports(campaign, tmp_path / "out") == expected


def test_a_finished_campaign_run_again_changes_nothing(ended, tmp_path):
    campaign, _ = ended
    before, n = exports(campaign, tmp_path / "out"), campaign.ledger.verify()
    again = Campaign(campaign.inputs, campaign.ledger)
    again.run()
    assert exports(again, tmp_path / "again") == before
    assert again.ledger.verify() == n


@settings(max_examples=max(3, settings.default.max_examples // 50), phases=[Phase.generate])
@given(
    price=st.integers(1, 90), per_token=st.integers(0, 9), money=st.integers(200, 3000),
    least=st.integers(1, 2),
)  # fmt: skip
def test_no_more_than_the_cap_is_ever_reserved_or_spent(tmp_path_factory, **drawn):
    folder = tmp_path_factory.mktemp("money")
    write_spans(folder, 12)
    price, each = f"0.{drawn['price']:04d}", f"0.{drawn['per_token']:04d}"
    prices = {"per_answer": price, "per_token": each}
    campaign = campaign_of(
        folder,
        **{**SPANS, "model": {"name": "none"}},
        prices=prices,
        budget={"money": f"0.{drawn['money']:04d}"},
        redundancy={"min": drawn["least"]},
    )
    campaign.run()
    spent = 0
    cap = drawn["money"] * 100
    for event in campaign.ledger.events():
        spent += event.body["cost"] if event.kind == "submit" else 0
        assert spent <= cap
    totals = campaign.ledger.totals()
    assert (totals.spent, totals.reserved) == (spent, 0)
    cheapest = min(campaign.inputs.costs)
    rows = campaign.ledger.slots().to_pylist()
    assert len(rows) == 12 or totals.left < drawn["least"] * max(campaign.inputs.costs)
    assert cheapest > 0


def test_when_the_money_is_short_the_round_ends_with_what_there_is(folder):
    campaign = campaign_of(folder, budget={"money": "1.00"})
    found = campaign.run()
    assert found.rule == "money"
    rows = campaign.ledger.slots().to_pylist()
    assert sum(row["filled"] for row in rows) == 20
    assert all(row["places"] == row["filled"] for row in rows)


def test_a_worker_who_fails_the_test_is_asked_nothing_more(folder):
    campaign = campaign_of(
        folder,
        crowd={"workers": ["good = flip(0.05) x4", "bad = flip(1)"]},
        control={"n": 6, "gold": "truth.csv", "first": 4, "least": 0.75},
    )
    campaign.run()
    record = CampaignRecord.of(campaign.ledger)
    assert record.workers["bad"]["answers"] == 4
    assert record.workers["bad"]["barred"] == "0 of 4 right in the test"
    assert all(record.workers[f"good{n}"]["answers"] > 4 for n in range(1, 5))


def test_control_questions_are_a_share_of_everybodys_answers_and_are_not_labelled(folder):
    campaign = campaign_of(folder, control={"n": 6, "gold": "truth.csv", "share": 0.25})
    campaign.run()
    crowd = campaign.progress.crowd
    control = set(campaign.inputs.control)
    names = crowd.item_ids.to_pylist()
    for worker in range(crowd.n_workers):
        items = crowd.latest.item[crowd.by_worker[worker]].tolist()
        n = sum(names[item] in control for item in items)
        assert n == min(6, (len(items) - n) // 4) or n == min(6, (len(items) - n - 1) // 4)
    ids = campaign.inputs.ids
    assert not control & {ids[n] for n in campaign.progress.labelled.items.tolist()}


def test_the_ledger_of_another_plan_is_refused(ended):
    campaign, _ = ended
    other = inputs_of(campaign.inputs.folder, select={"batch": 12})
    with pytest.raises(InputError, match=r"another plan: select.batch was 10 and is 12"):
        Campaign(other, campaign.ledger).run()


def test_a_step_can_be_replaced_by_an_object(folder):
    class Once:
        def decide(self, rounds):
            return Decision(stop=True, rule="once", why=f"{len(rounds)} round is enough")

    inputs = inputs_of(folder)
    ledger = ledger_of(inputs, folder / "campaign.sqlite")
    campaign = Campaign(inputs, ledger, Steps.of(inputs, ledger, stop=Once()))
    assert campaign.run().why == "1 round is enough"
    assert len(ledger.slots()) == 10


def test_an_item_that_nobody_is_left_for_is_closed(folder):
    inputs = inputs_of(folder, crowd={"workers": ["flip(0.4) x2"]}, redundancy={"max": 2})
    asking = inputs.plan.model_copy(update={"redundancy": Redundancy(min=2, max=5)})
    inputs = replace(inputs, plan=asking)
    campaign = Campaign(inputs, ledger_of(inputs, folder / "two.sqlite"))
    assert campaign.run().rule == "pool"
    rows = campaign.ledger.slots().to_pylist()
    assert {(row["wanted"], row["filled"]) for row in rows} == {(2, 2)}


def test_a_model_that_cannot_learn_costs_no_label_and_no_bill(folder):
    # Tried on all of the pool, it has neighbours enough; a round of five items has too few.
    model = {"name": "neighbours", "params": {"n_neighbors": 6}}
    inputs = inputs_of(folder, model=model, select={"batch": 5})
    told = []
    ledger = ledger_of(inputs, folder / "few.sqlite")
    campaign = Campaign(inputs, ledger, on_event=telling(told))
    assert campaign.run().rule == "pool"
    rounds = list(ledger.records("round").values())
    assert "neighbours cannot learn from the items: Expected n_neighbors" in told[2]
    assert rounds[0]["score"] is rounds[0]["model"] is None
    assert rounds[-1]["model"] == "neighbours"
    assert rounds[-1]["note"] == ""
    assert {"gold.csv", "bill.csv"} <= {one.name for one in write_exports(campaign, folder)}


def test_the_record_is_plain_and_tells_it_all(folder):
    campaign = campaign_of(folder, select={"by": "random, then margin, 30% random", "batch": 5})
    campaign.run()
    record = CampaignRecord.of(campaign.ledger)
    assert json.loads(json.dumps(record.to_dict()))["rounds"] == list(record.rounds)
    assert record.picks["r002"] == {"random": 2, "margin": 3}
    assert sum(one["answers"] for one in record.workers.values()) == record.counts["answers"]
    assert record.money["everything"] == 20 * 4 * 50_000
    assert record.stop["rule"] == "pool"
    assert record.versions["goldspan"] == goldspan.__version__
    assert set(record.forecasts) == {"r001", "r002", "r003", "r004"}
    assert record.rounds[0]["stable"] is None
    assert -1 <= record.rounds[1]["stable"] <= 1
    assert record.rounds[-1]["control"]["n"] == sum(
        one.get("random", 0) for one in record.picks.values()
    )


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_campaign_that_ended_labels_what_is_added_to_its_pool(folder, monkeypatch, is_killed):
    free = {"prices": None, "budget": None}
    campaign = campaign_of(folder, **free)
    assert campaign.run().rule == "pool"
    write_files(folder, 30)
    inputs, ledger = inputs_of(folder, **free), campaign.ledger
    if is_killed:  # after the items were added, before that is kept

        def die(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr("goldspan.campaign.changes._keep", die)
            Campaign(inputs, ledger).run()
    told = []
    assert Campaign(inputs, ledger, on_event=telling(told)).run().rule == "pool"
    assert "changed: 10 items were added to the pool" in told
    record = CampaignRecord.of(ledger)
    assert [one["items"] for one in record.rounds] == [10, 20, 30]
    assert "10 items were added to the pool" in record.changes
    before = ledger.n_events
    Campaign(inputs, ledger).run()
    assert ledger.n_events == before
