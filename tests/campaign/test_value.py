"""One currency: what a wrong label and an hour cost decides what rounds buy."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from campaign.test_by_gain import Listed, begun, folder  # noqa: F401 - fixtures
from campaign.test_workforce import ANN, BEN, RULES, crowd
from campaign.tiny import campaign_of, ends_with_the_same_log, ledger_of, plan_of
from cli.test_cli import goldspan_run
from goldspan.campaign import Campaign, CampaignRecord, read_inputs, read_plan
from goldspan.campaign.judging import AskingByGain, Gains, expected_mistakes
from goldspan.errors import FaultsError
from goldspan.workers.stopping import learn_habits, posterior_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "value.toml"
GAIN = {"by": "gain", "min": 2, "max": 4, "stop": None}
SLOW = [{**ANN, "seconds": 10.0}, {**BEN, "seconds": 100.0}, {**ANN, "id": "cid"}]
WORTH = {"value": {"mistake": "3"}, "select": {"by": "random", "first": 6, "batch": None}}


def valued(changes):
    """Return the tiny plan; a key that is None is left out."""
    plan = plan_of({"redundancy": GAIN, **WORTH, **changes})
    return {
        name: {k: v for k, v in one.items() if v is not None} if isinstance(one, dict) else one
        for name, one in plan.items()
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"redundancy": {"by": "rule"}}, 'redundancy.by = "gain"'),
        ({"select": {"batch": 5}}, "leave batch out"),
        ({"value": {"mistake": "0"}, "prices": {"hour": "2"}}, "belongs to value.mistake"),
        ({"prices": None, "budget": None}, "budget.money"),
        ({"value": {"mistake": "-1"}}, "mistake"),
        ({"prices": {"hour": "soon"}}, "hour"),
    ],
)
def test_what_makes_no_sense_is_refused(changes, message):
    with pytest.raises(FaultsError, match="refused") as error:
        read_plan(valued(changes))
    assert message in str(error.value)


def test_an_answer_saves_the_share_of_the_mistakes_that_it_takes_of_the_doubt(begun):  # noqa: F811
    result, everybody = begun.progress.result, begun.progress.crowd
    habits = learn_habits(result)
    probs, table = posterior_of(result, habits), habits.mean
    gains = Gains.of(result, everybody, 2.0, in_mistakes=True)
    for item, before in enumerate(probs):
        joint = before[:, None] * table
        after = (joint**2).sum() and ((joint**2).sum(axis=0) / joint.sum(axis=0)).sum()
        doubt = 1 - (before**2).sum()
        expected = 2 * (1 - before.max()) * (after - (before**2).sum()) / doubt
        assert gains.promised[item] == pytest.approx(expected, abs=1e-12)


class Timed(Listed):
    """Offers of workers who take their time."""

    def __init__(self, seconds, *offers):
        super().__init__(*offers)
        self.seconds = seconds

    def now(self):
        return 2_000_000_000_000

    def offers(self, items):
        found = super().offers(items)
        found.seconds.update(self.seconds)
        return found


def priced(begun, hour, *, seconds=60.0, mistake="0.2", price=20_000):  # noqa: F811
    """Return what Eve is asked, what her answers would save, less their price, and all there is."""
    inputs = begun.inputs
    value = valued({"prices": {"hour": hour}, "value": {"mistake": mistake}})
    object.__setattr__(inputs, "plan", read_plan(value))
    names, result = begun.progress.crowd.item_ids.to_pylist(), begun.progress.result
    step = Timed({"eve": seconds}, *((name, "eve", price) for name in names))
    asking = AskingByGain(inputs, begun.ledger)
    picks = asking.ask(begun.progress.crowd, result, step, 10**9)
    gains = Gains.of(result, begun.progress.crowd, 1.0, in_mistakes=True)
    saved = gains.of_offers(np.arange(len(names)), ["eve"] * len(names))
    net = dict(zip(names, 1e6 * float(mistake) * saved - price, strict=True))
    return picks, net


@pytest.mark.parametrize("hour", ["0", "1", "2", "3", "100"])
def test_a_round_of_one_worker_is_the_best_of_all_sets_of_answers(begun, hour):  # noqa: F811
    picks, net = priced(begun, hour)
    n_before = len(begun.progress.crowd.latest)
    each = sorted((one for one in net.values()), reverse=True)[:n_before]
    waits = 1e6 * float(hour) / 60  # of one answer
    values = [sum(each[:n]) - n * waits for n in range(len(each) + 1)]
    reached = sum(net[item] for item in picks.whom) - len(picks.whom) * waits
    tried = {len(each)}  # lengths of rounds that are tried: shorter by a square root of 2 each
    while min(tried) > 1:
        tried.add(int(min(tried) / 2**0.5))
    best = max([0.0, *(values[n] for n in tried if n < len(values))])
    assert reached == pytest.approx(best)
    assert reached >= 0.9 * max(values)
    assert picks.stopped == ("" if picks.whom else "value")


def test_what_is_fast_and_dear_is_bought_where_an_hour_is(begun):  # noqa: F811
    names = begun.progress.crowd.item_ids.to_pylist()
    offers = [*((n, "eve", 40_000) for n in names), *((n, "kim", 10_000) for n in names)]
    step, asked = Timed({"eve": 1.0, "kim": 600.0}, *offers), {}
    for hour in ("0", "50"):
        value = valued({"prices": {"hour": hour}})
        object.__setattr__(begun.inputs, "plan", read_plan(value))
        asking = AskingByGain(begun.inputs, begun.ledger)
        picks = asking.ask(begun.progress.crowd, begun.progress.result, step, 10**9)
        asked[hour] = {*picks.whom.values()}
        assert picks.saves["money"] > 0
    assert asked == {"0": {"kim"}, "50": {"eve"}}


def test_checks_are_worth_it_where_they_save_more_than_they_cost(begun):  # noqa: F811
    changes = {"prices": {"per_check": "0.1"}, "value": {"mistake": "2"}}
    plan, result = read_plan(valued(changes)), begun.progress.result
    probs = posterior_of(result, learn_habits(result))
    each = 1 - probs.max(axis=1)
    found = expected_mistakes(plan, result)
    assert found["mistakes"] == pytest.approx(each.sum())
    worth = each[2 * each > 0.1]
    assert 0 < len(worth) < len(each)
    saves = pytest.approx(2_000_000 * worth.sum(), abs=5_000)
    assert found["checks"] == {"items": len(worth), "cost": 100_000 * len(worth), "saves": saves}


def test_nobody_can_be_asked_any_more_is_another_end_than_too_dear(begun):  # noqa: F811
    picks, _ = priced(begun, "0", mistake="100000", price=2 * 10**9)
    assert picks.stopped == "money"  # worth it, and beyond what is left
    step, asking = Timed({}), AskingByGain(begun.inputs, begun.ledger)
    picks = asking.ask(begun.progress.crowd, begun.progress.result, step, 10**9)
    assert (picks.stopped, picks.saves) == ("gain", None)


def test_a_round_ends_before_the_hours_of_the_budget_are_over(begun):  # noqa: F811
    names, result = begun.progress.crowd.item_ids.to_pylist(), begun.progress.result
    step = Timed({"eve": 60.0}, *((name, "eve", 1) for name in names))
    passed = (step.now() - next(iter(begun.ledger.events())).time) / 3_600_000
    asked = {}
    for more in (3.5, 60):
        value = valued({"budget": {"hours": passed + more / 60}})
        object.__setattr__(begun.inputs, "plan", read_plan(value))
        asking = AskingByGain(begun.inputs, begun.ledger)
        asked[more] = len(asking.ask(begun.progress.crowd, result, step, 10**9).whom)
    assert asked[3.5] == 3 < asked[60]


def test_the_next_unit_of_money_and_the_next_hour_are_sums_of_answers(begun):  # noqa: F811
    picks, net = priced(begun, "100", price=400_000)
    best = sorted(net.values(), reverse=True)
    assert picks.saves["money"] == pytest.approx((sum(best[:2]) + 2 * 400_000) / 1e6)
    picks, net = priced(begun, "1", seconds=1200.0)
    best = sorted((one for one in net.values() if one > 0), reverse=True)
    assert picks.saves["hour"] == pytest.approx(sum(best[:3]) / 1e6)


def test_value_can_be_added_and_taken_away_while_it_runs(folder):  # noqa: F811
    changes = {"crowd": crowd(*SLOW), "model": {"name": "none"}}
    redundancy = {**GAIN, "max": 3}
    plan = {**valued({**changes, "redundancy": redundancy}), "stop": {"most_rounds": 2}}
    ledger, told = None, []
    for value in (None, {"mistake": "3"}, None, None):
        own = {key: one for key, one in plan.items() if key != "value" or value}
        inputs = read_inputs(read_plan(own), folder)
        ledger = ledger or ledger_of(inputs, folder / "campaign.sqlite")
        campaign = Campaign(inputs, ledger)
        campaign.run()
        record = CampaignRecord.of(ledger)
        told.append((len(record.changes), record.plan.get("value")))
        assert "mistakes" not in record.money  # no round has ended since
    assert told == [(0, None), (1, {"mistake": "3"}), (2, {}), (2, {})]
    assert record.changes[1] == "value.mistake was '3' and is not set"


def test_functions_answer_at_once_beside_workers_with_a_speed(folder):  # noqa: F811
    campaign = campaign_of(
        folder, crowd=crowd(*SLOW, RULES), redundancy={"min": 4, "max": 4},
        select={"batch": 20}, model={"name": "none"}, judging={"drop": False},
    )  # fmt: skip
    offers = campaign.steps.label.offers([])
    assert offers.seconds == {"ann": 10.0, "ben": 100.0, "cid": 30.0, "rules": 0.0}


def test_workers_with_a_speed_of_their_own_work_side_by_side(folder):  # noqa: F811
    campaign = campaign_of(
        folder, crowd=crowd(*SLOW), redundancy={"min": 3, "max": 3}, judging={"drop": False},
        select={"batch": 20}, model={"name": "none"},
    )  # fmt: skip
    campaign.run()
    record = CampaignRecord.of(campaign.ledger)
    assert record.rounds[-1]["hours"] == pytest.approx(20 * 100 / 3600)  # Ben is the slowest
    assert record.counts["answers"] == 60


def test_broken_off_at_any_call_it_ends_with_the_same_log(folder):  # noqa: F811
    changes = {"crowd": crowd(*SLOW), "model": {"name": "none"}, "prices": {"hour": "1"}}
    plan = valued({**changes, "redundancy": {**GAIN, "max": 3}})
    inputs = read_inputs(read_plan(plan), folder)
    ends_with_the_same_log(folder, inputs, 47)


def test_the_example_ends_by_itself_and_tells_the_three_parts(tmp_path):
    out = tmp_path / "out"
    done = goldspan_run("run", str(EXAMPLE), "--out", str(out))
    assert done.returncode == 0, done.stderr
    record = json.loads((out / "record.json").read_text())
    money, last = record["money"], record["rounds"][-1]
    assert record["stop"]["rule"] == "value"
    assert money["waiting"] == pytest.approx(4_000_000 * last["hours"], abs=5_000)
    assert money["mistakes"] == pytest.approx(500_000 * last["mistakes"], abs=5_000)
    assert "together: " in done.stderr + done.stdout
    page = (out / "report.html").read_text()
    assert all(word in page for word in ("Waiting", "Mistakes", "The next EUR", "The next hour"))
    assert 0 < money["saves"]["hour"] < 4  # else another round had been worth it
    hours = [one["hours"] for one in record["rounds"]]
    assert all(a < b for a, b in itertools.pairwise(hours))
