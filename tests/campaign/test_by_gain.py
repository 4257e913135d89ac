"""Rounds that buy what promises most for its price: `redundancy.by = "gain"`."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from campaign.tiny import SPANS, campaign_of, inputs_of, plan_of, write_files, write_spans
from goldspan.campaign import CampaignRecord, read_plan, write_exports
from goldspan.campaign.judging import AskingByGain, Gains
from goldspan.campaign.protocols import SOMEBODY, Offers
from goldspan.campaign.summary import describe_plan
from goldspan.errors import FaultsError
from goldspan.workers.stopping import learn_habits, posterior_of, sequence_gain

GAIN = {"by": "gain", "min": 2, "max": 4}
REPLAY = {"source": "replay", "answers": "answers.csv", "truth": "truth.csv", "workers": []}
FEW = {"first": 6, "batch": 5}


@pytest.fixture
def folder(tmp_path):
    """Twenty items; Ann and Cid are good, Bob errs at times, Dot answers without looking."""
    write_files(tmp_path)
    rows = ["task,worker,label"]
    for i in range(20):
        truth, other = ("rain", "sun") if i % 3 else ("sun", "rain")
        rows += [f"d{i},ann,{truth}", f"d{i},bob,{other if i % 4 == 0 else truth}"]
        rows += [f"d{i},cid,{truth}", f"d{i},dot,{'rain' if i % 2 else 'sun'}"]
    (tmp_path / "answers.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


def by_gain(folder, place=None, **sections):
    sections = {"crowd": REPLAY, "redundancy": GAIN, "select": FEW, **sections}
    return campaign_of(folder, place, **sections)


# --------------------------------------------------------------------------------------------------
# What is chosen.


class Listed:
    """A step that offers what it is told to."""

    def __init__(self, *offers, room=(), models=()):
        self.given, self.room, self.models = offers, dict(room), set(models)

    def offers(self, items):
        found = Offers(room=self.room, models=self.models)
        for item, worker, price in self.given:
            if item in items:
                found.add(item, worker, price)
        return found


def brute_gain(result, item, worker):
    """The expected rise of the chance that a label drawn from the posterior is right."""
    habits = learn_habits(result)
    probs = posterior_of(result, habits)[result.crowd.item_ids.to_pylist().index(item)]
    known = result.crowd.worker_ids.to_pylist()
    table = habits.tables[known.index(worker)] if worker in known else habits.mean
    after = 0.0
    for said in range(len(probs)):
        joint = [probs[truth] * table[truth, said] for truth in range(len(probs))]
        after += sum(p * p for p in joint) / sum(joint)
    return after - sum(p * p for p in probs)


@pytest.fixture
def begun(folder):
    """A campaign after its first round; what it knows."""
    campaign = by_gain(folder)
    campaign.begin()
    campaign._round(1, "r001")
    return campaign


def asked(campaign, *offers, left=10**9, room=(), models=()):
    crowd, result = campaign.progress.crowd, campaign.progress.result
    asking = AskingByGain(campaign.inputs, campaign.ledger)
    return asking.ask(crowd, result, Listed(*offers, room=room, models=models), left)


def test_the_pairs_of_largest_gain_per_price_are_asked_one_of_an_item(begun):
    result = begun.progress.result
    items, workers = result.crowd.item_ids.to_pylist(), ["ann", "bob", "cid", "dot", "eve"]
    price = {"ann": 50_000, "bob": 20_000, "cid": 70_000, "dot": 10_000, "eve": 30_000}
    offers = [(i, w, price[w]) for i, w in itertools.product(items, workers)]
    value = {(i, w): brute_gain(result, i, w) / p for i, w, p in offers}
    best = {i: max(workers, key=lambda w, i=i: value[i, w]) for i in items}
    order = sorted(items, key=lambda i: -value[i, best[i]])
    picks = asked(begun, *offers)
    assert len(picks.whom) == 5
    least = value[order[4], best[order[4]]]
    for item, worker in picks.whom.items():
        assert value[item, worker] == pytest.approx(value[item, best[item]])
        assert value[item, worker] >= least - 1e-12
    assert {*picks.items} | {*picks.more} == {*picks.whom}


def test_what_is_free_comes_first_and_the_better_of_two_that_are_free(begun):
    result = begun.progress.result
    item = max(result.crowd.item_ids.to_pylist(), key=lambda i: brute_gain(result, i, "eve"))
    free = {"bob": brute_gain(result, item, "bob"), "eve": brute_gain(result, item, "eve")}
    picks = asked(begun, (item, "ann", 10), (item, "bob", 0), (item, "eve", 0))
    assert picks.whom == {item: max(free, key=free.get)}


def test_money_and_limits_end_it(begun):
    crowd = begun.progress.crowd
    told = np.diff(crowd.by_item.bounds)
    unasked = [name for n, name in enumerate(crowd.item_ids.to_pylist()) if not told[n]]
    offers = [(i, "ann", 50_000) for i in unasked]
    assert len(asked(begun, *offers, left=120_000).whom) == 2
    assert len(asked(begun, *offers, room={"ann": 3}).whom) == 3
    assert asked(begun, *offers, left=10).stopped == "money"
    assert asked(begun).stopped == "gain"


def unasked(campaign):
    crowd = campaign.progress.crowd
    told = np.diff(crowd.by_item.bounds)
    return [name for n, name in enumerate(crowd.item_ids.to_pylist()) if not told[n]]


def test_answers_of_models_are_not_counted_and_keep_nobody_from_an_item(begun):
    items = unasked(begun)
    offers = [(i, "bot", 1) for i in items[:4]] + [(i, "ann", 50_000) for i in items]
    picks = asked(begun, *offers, models=["bot"])
    assert picks.models == dict.fromkeys(items[:4], "bot")
    assert len(picks.whom) == 5
    assert {*picks.items} == {*picks.whom} | {*picks.models}
    both = {*picks.whom} & {*picks.models}
    assert dict(picks.more) == dict.fromkeys(both, 2)
    alone = asked(begun, *offers[:4], (items[0], "ann", 50_000), models=["bot"])
    assert dict(alone.more) == {items[0]: 2}


def test_where_models_have_more_to_say_than_a_round_asks_people_they_come_first(begun):
    items = unasked(begun)
    offers = [(i, "bot", 1) for i in items[:5]] + [(i, "ann", 50_000) for i in items]
    picks = asked(begun, *offers, models=["bot"])
    assert (len(picks.models), dict(picks.whom), picks.stopped) == (5, {}, "")


def test_a_dear_model_is_not_asked_what_people_tell_for_less(begun):
    items = unasked(begun)
    offers = [(i, "bot", 90_000) for i in items] + [(i, "ann", 1) for i in items]
    picks = asked(begun, *offers, models=["bot"])
    assert (len(picks.whom), picks.models) == (5, {})


def test_a_model_and_a_person_are_no_more_than_the_most_answers_of_an_item(begun):
    counts = np.diff(begun.progress.crowd.by_item.bounds)
    item = begun.progress.crowd.item_ids.to_pylist()[int(counts.argmax())]
    begun.inputs = inputs_of(begun.inputs.folder, crowd=REPLAY, select=FEW,
                             redundancy={**GAIN, "max": int(counts.max()) + 1})  # fmt: skip
    picks = asked(begun, (item, "bot", 0), (item, "eve", 0), models=["bot"])
    assert len(picks.whom) + len(picks.models) == 1


# --------------------------------------------------------------------------------------------------
# Campaigns.


def test_rounds_buy_recorded_answers_until_nothing_promises_anything(folder):
    campaign = by_gain(folder)
    decision = campaign.run()
    assert decision.rule in {"gain", "pool"}
    picks = campaign.ledger.records("picks")
    assert len(picks["r001"]["items"]) == 6
    for name, one in list(picks.items())[1:-1]:
        assert len(one["whom"]) <= 5, name
        assert {*one["items"]} | {*one["more"]} == {*one["whom"]}
    crowd = campaign.ledger.crowd()
    for name, one in list(picks.items())[1:-1]:
        for item, worker in one["whom"].items():
            assert worker in crowd.answers_of(item), name
    assert all(len(crowd.answers_of(i)) <= 4 for i in crowd.item_ids.to_pylist())


def test_the_gold_file_has_the_whole_pool_but_what_nobody_answered_stays_open(folder, tmp_path):
    campaign = by_gain(folder, budget={"money": "0.8"})  # sixteen answers
    campaign.run()
    write_exports(campaign, tmp_path / "out")
    rows = (tmp_path / "out" / "gold.csv").read_text().splitlines()[1:]
    assert len(rows) == 20
    record = CampaignRecord.of(campaign.ledger)
    assert record.counts["answers"] == 16
    assert record.rounds[-1]["items"] == record.counts["items"] < 20


def test_a_campaign_that_is_taken_up_again_buys_the_same(folder):
    whole = by_gain(folder, folder / "whole.sqlite")
    whole.run()
    expected = whole.ledger.records("picks")
    for stop in (3, 26):
        place = folder / f"broken{stop}.sqlite"
        broken = by_gain(folder, place)
        submit, n = broken.ledger.submit, itertools.count(1)

        def breaking(*args, cost, submit=submit, n=n, stop=stop):
            if next(n) == stop:
                raise KeyboardInterrupt
            return submit(*args, cost=cost)

        broken.ledger.submit = breaking
        with pytest.raises(KeyboardInterrupt):
            broken.run()
        broken.ledger.close()
        again = by_gain(folder, place)
        again.run()
        assert again.ledger.records("picks") == expected
        one, other = again.ledger.crowd(), whole.ledger.crowd()
        for item in other.item_ids.to_pylist():
            assert one.answers_of(item) == other.answers_of(item)
        again.ledger.close()


def test_gold_questions_are_never_chosen_and_simulated_workers_are_asked_as_chosen(folder):
    campaign = by_gain(
        folder, crowd={"source": "simulated", "truth": "truth.csv",
               "workers": ["flip(0.1) x3", "spammer(random)"]},
        redundancy={**GAIN, "max": 3}, control={"n": 4, "gold": "truth.csv"},
    )  # fmt: skip
    campaign.run()
    chosen = [item for one in campaign.ledger.records("picks").values() for item in one["items"]]
    again = [i for one in campaign.ledger.records("picks").values() for i in one.get("more", ())]
    assert not {*chosen, *again} & {*campaign.inputs.control}
    assert again
    crowd = campaign.ledger.crowd()
    for one in list(campaign.ledger.records("picks").values())[1:-1]:
        for item, worker in one["whom"].items():
            assert worker in crowd.answers_of(item)


def test_a_cheap_function_labels_the_whole_pool_before_people_are_asked_where_they_promise_more(
    folder,
):
    entries = [
        {"id": "rules", "kind": "python", "call": "campaign.rules:weather",
         "prices": {"per_answer": "0.001"}},
        {"id": "ann", "kind": "simulated", "worker": "flip(0.02)"},
        {"id": "ben", "kind": "simulated", "worker": "flip(0.02)"},
    ]  # fmt: skip
    campaign = by_gain(
        folder, crowd={"source": "mixed", "truth": "truth.csv", "workers": entries},
        redundancy={"by": "gain", "min": 2, "max": 3}, select={"first": 10, "batch": 5},
    )  # fmt: skip
    campaign.run()
    crowd = campaign.ledger.crowd()
    assert all("rules" in crowd.answers_of(i) for i in crowd.item_ids.to_pylist())
    second, *later = list(campaign.ledger.records("picks").values())[1:-1]
    assert (len(second["models"]), second["whom"]) == (10, {})
    assert any(one["whom"] for one in later)
    assert {w for one in later for w in one["whom"].values()} <= {"ann", "ben"}


def test_where_nobody_is_paid_by_the_general_prices_the_campaign_runs(tmp_path):
    write_spans(tmp_path)
    own = {"per_answer": "0.05"}
    entries = [{"id": f"w{n}", "kind": "simulated", "worker": "misses(0.1)", "prices": own}
               for n in range(3)]  # fmt: skip
    crowd = {"source": "mixed", "workers": entries, "truth": "gold.conll"}
    limits = {"by": "gain", "min": 2, "max": 3}
    own = {"crowd": crowd, "redundancy": limits, "prices": {"per_answer": "0"}, "select": FEW}
    campaign = campaign_of(tmp_path, **{**SPANS, **own})
    campaign.run()
    assert campaign.ledger.totals().spent == 50_000 * len(campaign.ledger.crowd().latest) > 0


def test_answers_about_spans_gain_by_the_chain_also_those_of_newcomers(tmp_path):
    write_spans(tmp_path)
    campaign = campaign_of(tmp_path, **SPANS, select=FEW)
    campaign.run()
    crowd, result = campaign.progress.crowd, campaign.progress.result
    habits = learn_habits(result, memory=True)
    tables = np.concatenate([habits.tables, habits.mean[None]])
    item, worker = np.array([3, 0, 3]), np.array([0, 1, -1])
    gain = sequence_gain(result, result.token_probs, tables, item, worker, 7)
    names = [*crowd.worker_ids.take(worker[:2]).to_pylist(), "new"]
    assert Gains.of(result, crowd, 2.0, 7).of_offers(item, names) == pytest.approx(2 * gain)
    assert (gain > 0).any()


def test_people_in_a_browser_get_places_of_the_items_that_promise_most(folder):
    people = {"source": "web", "workers": [], "truth": None, "annotators": ["ann", "bob", "cy"]}
    campaign = by_gain(folder, crowd=people, redundancy={"by": "gain", "min": 1, "max": 3})
    waiting = campaign.run()
    assert waiting.answers == 6
    ledger = campaign.ledger
    for item in ledger.records("picks")["r001"]["items"]:
        ledger.submit(f"{item}:ann", "ann", item, ["rain"], campaign.steps.label.now())
    waiting = campaign.run()
    assert waiting.answers == 5
    chosen = ledger.records("picks")["r002"]["whom"]
    assert set(chosen.values()) == {SOMEBODY}
    assert {row["item"] for row in ledger.slots().to_pylist() if row["wanted"] > row["filled"]} == {
        *chosen
    }


# --------------------------------------------------------------------------------------------------
# The plan.


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"redundancy": {"by": "price"}}, "redundancy.by"),
        ({"redundancy": {"by": "gain", "stop": "fixed(3)"}}, "redundancy.stop"),
        ({"redundancy": GAIN, "aggregate": {"method": "mv"}}, "probabilities"),
        ({"redundancy": GAIN, "select": {"by": "coverage", "errors": True}}, "select.errors"),
    ],
)
def test_what_does_not_go_together_is_refused(sections, message):
    with pytest.raises(FaultsError, match=message):
        read_plan(plan_of(**sections))


def test_the_check_of_a_plan_tells_what_gain_does(folder):
    lines = [*describe_plan(inputs_of(folder, crowd=REPLAY, redundancy=GAIN, select=FEW))]
    assert "rounds: 6 items by 'random', later 5 answers by gain per price" in lines
    assert "answers: 2 per item of the first round; at most 4 per item" in lines
    assert any("no answer promises anything" in line for line in lines)
