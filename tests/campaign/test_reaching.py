"""What it takes until a campaign ends by its target: the interval, and what it rests on."""

from __future__ import annotations

import numpy as np
import pytest

from campaign.tiny import plan_of
from goldspan.campaign import read_plan
from goldspan.campaign.outlook import outlook, way_to_target
from goldspan.campaign.stopping import StopSection

POOL, BATCH, PRICE = 4_000, 50, 1_000
TARGET = 0.6


def rounds_of(rng, *, shared):
    """Rounds of a campaign whose noise is drawn as items that rounds share make it."""
    n = np.arange(1, POOL // BATCH + 1)
    a, c = rng.uniform(0.68, 0.9), rng.uniform(0.3, 0.8)
    true = a - (a - rng.uniform(0.2, 0.3)) * n**-c
    variance = 0.6 / (BATCH * n)
    cov = shared * np.minimum(variance[:, None], variance) + (1 - shared) * np.diag(variance)
    score = true + np.linalg.cholesky(cov) @ rng.standard_normal(len(n))
    half = 1.96 * np.sqrt(variance)
    return [
        {
            "items": BATCH * k, "pool": POOL, "spent": PRICE * k, "answers": 3 * BATCH * k,
            "control": {"value": y, "low": y - h, "high": y + h, "n": BATCH * k}, "score": None,
        }
        for k, y, h in zip(n.tolist(), score.tolist(), half.tolist(), strict=True)
    ]  # fmt: skip


def end_of(rounds, in_a_row=2):
    """Return after which round the rule ends the campaign, None if it does not."""
    (rule,) = StopSection(target=TARGET).rules
    for n in range(in_a_row, len(rounds) + 1):
        if all(rule.holds(rounds[:k]) for k in range(n + 1 - in_a_row, n + 1)):
            return n
    return None


@pytest.mark.parametrize("shared", [0.0, 0.9])
def test_the_interval_holds_the_truth_as_often_as_it_says(shared):
    rng, held, n = np.random.default_rng(round(100 * shared)), 0, 0
    while n < 30:
        rounds = rounds_of(rng, shared=shared)
        end = end_of(rounds)
        if end is None or end < 8:
            continue
        n += 1
        at = end // 2
        found = way_to_target(rounds[:at], TARGET, in_a_row=2, seed=n)
        low, high = found.low, np.inf if found.high is None else found.high
        held += low <= PRICE * (end - at) <= high
    assert held >= 24  # of 30, 27 expected; the interval ends at whole rounds, so more is right


def test_what_is_measured_well_is_forecast_narrowly():
    n = np.arange(1, 21)
    true = 0.8 - 0.55 * n**-0.5
    widths = []
    for half in (0.05, 0.002):
        rounds = [
            {"items": BATCH * k, "pool": POOL, "spent": PRICE * k, "answers": 3 * BATCH * k,
             "control": {"value": y, "low": y - half, "high": y + half, "n": 1_000}}
            for k, y in zip(n.tolist(), true.tolist(), strict=True)
        ]  # fmt: skip
        found = way_to_target(rounds[:12], true[-1] - half)
        assert found.low <= 8 * PRICE <= (np.inf if found.high is None else found.high)
        widths.append((np.inf if found.high is None else found.high) - found.low)
    assert widths[1] < min(widths[0], 4 * PRICE)


def test_a_rule_that_holds_takes_nothing_more_and_one_out_of_reach_has_no_end():
    rounds = rounds_of(np.random.default_rng(5), shared=0.5)
    end = end_of(rounds)
    reached = way_to_target(rounds[:end], TARGET, in_a_row=2)
    assert (reached.low, reached.middle, reached.high, reached.chance) == (0, 0, 0, 1)
    never = way_to_target(rounds[:20], 0.99)
    assert (never.low, never.high) == (None, None)
    assert never.chance < 0.05


def test_before_four_scores_on_random_items_nothing_is_forecast():
    rounds = rounds_of(np.random.default_rng(5), shared=0.5)
    assert way_to_target(rounds[:3], TARGET) is None
    assert way_to_target([*rounds[:6], rounds[6] | {"control": None}], TARGET) is None


def test_the_outlook_has_it_in_money_and_in_answers_where_nobody_is_paid():
    rounds = rounds_of(np.random.default_rng(8), shared=0.5)[:10]
    more = {"ask_again": None, "right": None}
    rounds = [one | more for one in rounds]
    paid = outlook(read_plan(plan_of(stop={"target": TARGET})), rounds)["to_target"]["end"]
    unpaid = read_plan(plan_of(stop={"target": TARGET}, budget=None, prices=None))
    free = outlook(unpaid, rounds)["to_target"]["end"]
    assert paid["low"] / PRICE == pytest.approx(free["low"] / (3 * BATCH))
    assert paid["low"] <= paid["middle"] <= paid["high"]
