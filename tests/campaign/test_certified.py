"""The audit of a campaign, and `[stop] certified`: simulated campaigns whose truth is known."""

from __future__ import annotations

import pytest

from campaign.tiny import campaign_of, ends_with_the_same_log, inputs_of, write_files
from goldspan.campaign import Campaign, CampaignRecord
from goldspan.campaign.auditing import CHECK, DRAW, draw, last_draw, open_items
from goldspan.campaign.protocols import Decision, Waiting
from goldspan.money import from_micro

N = 200
SECTIONS = {
    "budget": {"money": "50"},
    "select": {"batch": 50},
    "redundancy": {"min": 1, "max": 1},
    "model": {"name": "none"},
}
TRUTH = {f"d{i}": ["rain" if i % 3 else "sun"] for i in range(N)}


@pytest.fixture
def folder(tmp_path):
    write_files(tmp_path, N)
    return tmp_path


def check(campaign, n, wrong=(), **more):
    """Check the next n items that are open, as somebody who knows the truth."""
    ledger, now = campaign.ledger, campaign.steps.label.now()
    for item in open_items(ledger, last_draw(ledger))[:n]:
        labels = [{"rain": "sun", "sun": "rain"}[TRUTH[item][0]]] if item in wrong else TRUTH[item]
        body = {"item": item, "labels": labels, "by": "", "time": now, **more}
        ledger.record(CHECK, f"{item} {len(ledger.records(CHECK))}", body, now)


def begin_to_check(campaign):
    """Let somebody check an item while the second round is open."""

    def hear(event):
        if type(event).__name__ == "AskedAgain" and campaign.ledger.count(DRAW):
            check(campaign, 1)

    campaign.on_event = hear


def run(campaign, n):
    """Run it; somebody checks n items whenever it waits for them."""
    begin_to_check(campaign)
    for _ in range(1_000):
        found = campaign.run()
        if isinstance(found, Decision):
            return found
        check(campaign, n)
    raise AssertionError("it hangs")


def true_share(campaign):
    given = campaign.progress.result.tagged_by_id()
    return sum(TRUTH[item] == labels for item, labels in given.items()) / len(given)


def test_it_stops_when_checks_make_the_target_certain(folder):
    campaign = campaign_of(
        folder, stop={"certified": {"accuracy": 0.85}}, crowd={"workers": ["flip(0.01) x5"]},
        **SECTIONS,
    )  # fmt: skip
    found = run(campaign, 4)
    assert (found.rule, len(campaign.ledger.records("round"))) == ("certified", 2)
    made = campaign.certificate()
    assert made["low"] >= 0.85
    assert (made["certified"], made["new"], made["missing"]) == (True, 0, 0)
    assert true_share(campaign) >= 0.85
    assert made["text"] in found.why
    record = CampaignRecord.of(campaign.ledger, campaign.progress.result)
    assert record.certificate == record.rounds[-1]["certificate"] == made
    assert next(row for row in record.limits if row["rule"] == "certified")["now"] == made["text"]


@pytest.mark.parametrize("seed", range(4))
def test_labels_below_the_target_are_never_certified(folder, seed):
    campaign = campaign_of(
        folder, seed=seed, stop={"certified": {"accuracy": 0.8}},
        crowd={"workers": ["flip(0.4) x5"]}, **SECTIONS,
    )  # fmt: skip
    found = run(campaign, 4)
    assert true_share(campaign) < 0.8
    assert found.rule == "pool"
    assert "more answers are needed" in found.why


def test_labels_that_seem_good_enough_buy_no_answers_and_it_ends_when_nobody_checks(folder):
    prices, crowd = {"per_check": "0.30"}, {"workers": ["flip(0.001) x5"]}
    wanted = {"certified": {"accuracy": 0.93}}
    campaign = campaign_of(folder, stop=wanted, **SECTIONS, prices=prices, crowd=crowd)
    begin_to_check(campaign)
    assert isinstance(campaign.run(), Waiting)
    check(campaign, 20)
    waiting, made = campaign.run(), campaign.certificate()
    assert waiting.items == made["missing"] > 20
    end = made["end"]
    assert end["low"] <= made["missing"] <= end["high"] <= N
    ends = [from_micro(300_000 * round(end[side])) for side in ("low", "high")]
    few = f"{100 * end['unpaid']:.0f}\u00a0%"
    assert made["cost"] == (
        f" ({ends[0]} to {ends[1]}; the money is not enough with a chance of {few})"
    )
    assert waiting.where == made["goal"] + made["cost"]
    n = campaign.ledger.n_answers
    assert len(open_items(campaign.ledger, last_draw(campaign.ledger))) >= made["missing"]
    found = campaign.run()
    assert (found.rule, found.why) == ("checks", made["goal"])
    assert "more checks, not answers" in found.why
    assert n == campaign.ledger.n_answers < N
    again = Campaign(campaign.inputs, campaign.ledger)
    assert again.run() == found
    check(again, made["missing"] + 20)
    assert again.certificate()["certified"]
    without = inputs_of(folder, **SECTIONS, prices=prices, crowd=crowd)
    assert Campaign(without, campaign.ledger).run().rule == "pool"


def test_without_anybody_who_checks_it_ends_as_without_the_rule(folder):
    plain = campaign_of(folder, folder / "plain.sqlite", **SECTIONS)
    wants = campaign_of(folder, stop={"certified": {"accuracy": 0.5}}, **SECTIONS)
    ends = [one.run() for one in (plain, wants)]
    assert [one.rule for one in ends] == ["pool"] * 2
    assert ends[1].why.startswith(f"{ends[0].why}; accuracy of the labels at least 50")
    assert "too few drawn items are checked" in ends[1].why
    answers = [one.ledger.crowd() for one in (plain, wants)]
    assert answers[0].latest.codes.tolist() == answers[1].latest.codes.tolist()


def test_checks_teach_nobody_and_are_nobodys_answers(folder):
    campaign = campaign_of(folder, **SECTIONS)
    campaign.run()

    def known():
        campaign.progress.forget()
        result = campaign.progress.result
        record = CampaignRecord.of(campaign.ledger, result).to_dict()
        del record["certificate"]
        record["money"].pop("checks", None)
        crowd = campaign.ledger.crowd()
        return result.labels, result.confidence.tolist(), crowd.worker_ids.to_pylist(), record

    now = campaign.steps.label.now()
    campaign.ledger.record(DRAW, "1", draw(campaign.progress.result, (), 30, 3, now), now)
    before = known()
    check(campaign, 30, wrong=set(TRUTH))
    assert known() == before
    made = campaign.certificate()
    assert made["checked"] == 30
    assert made["high"] < true_share(campaign)
    campaign.ledger.verify()


def test_what_was_passed_or_is_disputed_widens_the_interval_and_what_is_open_ends_it(folder):
    campaign = campaign_of(folder, crowd={"workers": ["flip(0.01) x5"]}, **SECTIONS)
    campaign.run()
    now = campaign.steps.label.now()
    campaign.ledger.record(DRAW, "1", draw(campaign.progress.result, (), 30, 3, now), now)
    drawn = last_draw(campaign.ledger)["items"]
    check(campaign, 20)
    sure = campaign.certificate()
    passed = {"item": drawn[22], "labels": None, "by": "", "time": now}
    campaign.ledger.record(CHECK, "passed", passed, now)
    assert campaign.certificate() == sure  # an item before it is open
    check(campaign, 10)
    late = campaign.certificate()
    assert late["checked"] == 29
    assert any("not checked although later ones were" in one for one in late["notes"])
    wrong = ["sun" if TRUTH[drawn[0]] == ["rain"] else "rain"]
    for n, labels in enumerate([wrong, TRUTH[drawn[0]]]):  # changed, and back: nobody differs
        own = {**passed, "item": drawn[0], "labels": labels}
        campaign.ledger.record(CHECK, f"own {n}", own, now)
        changed = campaign.certificate()
        assert changed["checked"] == 29
        assert (changed["value"] < late["value"]) == (labels == wrong)
    assert changed == late
    other = {**passed, "item": drawn[0], "labels": wrong, "by": "rita"}
    campaign.ledger.record(CHECK, "other", other, now)
    disputed = campaign.certificate()
    assert disputed["high"] - disputed["low"] > late["high"] - late["low"]
    assert f"checkers differ on {drawn[0]}" in disputed["notes"]


def test_broken_off_at_any_call_it_ends_with_the_same_log(folder):
    write_files(folder, 20)
    inputs = inputs_of(folder, stop={"certified": {"accuracy": 0.9}})
    ends_with_the_same_log(folder, inputs, 13)
