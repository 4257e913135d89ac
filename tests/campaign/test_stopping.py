"""When to stop, and where the learning curve leads."""

from __future__ import annotations

import numpy as np
import pytest

from campaign.tiny import plan_of
from goldspan.campaign import read_plan
from goldspan.campaign.outlook import CampaignStopping, kappa, measured, outlook
from goldspan.campaign.stopping import RULES, StopSection, curve_of, fit_curve, pool_gain
from goldspan.errors import InputError


def rounds_of(values, **more):
    """Return rounds of 50 items each, with scores on random items and the like."""
    return [
        {
            "items": 50 * n, "answers": 150 * n, "spent": 5_000_000 * n, "hours": n,
            "ask_again": None, "stable": None, "pool": 1000, "cap": 100_000_000,
            "score": {"value": value, "low": value - 0.02, "high": value + 0.02, "n": 50},
            "control": {"value": value, "low": value - 0.02, "high": value + 0.02, "n": 50},
            **{key: each[n - 1] for key, each in more.items()},
        }
        for n, value in enumerate(values, start=1)
    ]  # fmt: skip


def decide(rounds, stop=None, **budget):
    plan = read_plan(plan_of(stop=stop or {}, budget=budget))
    return CampaignStopping(plan).decide(rounds)


def test_without_a_rule_it_goes_on():
    assert not decide(rounds_of([0.9] * 9)).stop


def test_the_target_must_be_reached_by_the_lower_bound_for_some_rounds_in_a_row():
    stop = {"target": 0.8, "rounds": 2}
    assert not decide(rounds_of([0.81, 0.83, 0.81, 0.83]), stop).stop
    found = decide(rounds_of([0.7, 0.83, 0.85]), stop)
    assert (found.stop, found.rule) == (True, "target")
    assert "at least 0.830" in found.why


def test_time_and_the_number_of_rounds_stop_at_once():
    assert decide(rounds_of([0.5] * 3), hours=3.0).rule == "time"
    assert not decide(rounds_of([0.5] * 3), hours=3.5).stop
    assert decide(rounds_of([0.5] * 3), {"most_rounds": 3}).rule == "rounds"


def test_gains_that_are_too_dear_stop_it():
    flat, steep = [0.8, 0.85, 0.86, 0.86, 0.86, 0.86], [0.2, 0.4, 0.5, 0.6, 0.68, 0.75]
    stop = {"least_gain": 0.002}
    assert decide(rounds_of(flat), stop).rule == "gain"
    assert not decide(rounds_of(steep), stop).stop
    assert not decide(rounds_of(flat[:3]), stop).stop


def test_predictions_that_stay_the_same_stop_it():
    stop = {"stable": 0.95}
    assert decide(rounds_of([0.5] * 3, stable=[None, 0.96, 0.97]), stop).rule == "stable"
    assert not decide(rounds_of([0.5] * 3, stable=[None, 0.97, 0.94]), stop).stop


def test_every_key_of_the_section_but_rounds_is_a_rule_that_tells_itself():
    keys = [rule.key for rule in RULES]
    assert sorted([*keys, "rounds"]) == sorted(StopSection.model_fields)
    stop = StopSection(certified={"f1": 0.9}, target=0.8, least_gain=0.1, stable=0.9, most_rounds=1)
    assert [rule.key for rule in stop.rules] == keys
    assert all(rule.planned for rule in stop.rules)
    empty = stop.shown([])
    assert [row["rule"] for row in empty] == ["rounds", "certified", "target", "gain", "stable"]
    assert [row["now"] for row in empty] == ["0", "no item is drawn yet", "–", "–", "–"]
    assert empty[0]["limit"] == "1 round at most"
    assert "in a row" not in empty[1]["limit"]
    assert all(row["limit"].endswith(", 2 rounds in a row") for row in empty[2:])
    rounds = rounds_of([0.5, 0.6, 0.65, 0.68], stable=[None, 0.1, 0.2, 0.25])
    gain = curve_of(rounds).gain(100) / 10  # 100 items cost 10 here
    shown = stop.shown(rounds)
    now = ["4", "no item is drawn yet", "66.0\u00a0%", f"{100 * gain:.2g} points", "0.250"]
    assert [row["now"] for row in shown] == now


def test_where_a_certificate_is_wanted_no_target_is_forecast():
    rounds = rounds_of([0.5, 0.6, 0.65, 0.68])
    found = [outlook(read_plan(plan_of(stop={"target": 0.8, **more})), rounds)["end"]
             for more in ({}, {"certified": {"accuracy": 0.9}})]  # fmt: skip
    assert found[0]["high"] > 0
    assert found[1] is None


def test_a_curve_without_noise_is_found_again():
    n = np.array([20, 40, 80, 160, 320])
    for a, b, c in ((0.9, 2.0, 0.7), (1.0, 1.5, 0.3), (0.6, 5.0, 1.2)):
        curve = fit_curve(n, a - b * n**-c, np.full(5, 1e-3))
        assert curve.at(1000) == pytest.approx(a - b * 1000**-c, abs=0.01)


def test_the_interval_holds_what_comes_about_as_often_as_it_says():
    rng, n = np.random.default_rng(1), np.array([25, 50, 75, 100, 150, 200, 300])
    truth = 0.85 - 2 * n**-0.6
    after = 0.85 - 2 * 400**-0.6
    hits = 0
    for seed in range(40):
        y = truth + 0.02 * rng.standard_normal(len(n))
        low, high = fit_curve(n, y, np.full(len(n), 0.02), seed).interval(400)
        hits += low <= after <= high
    assert hits >= 32


def law(n):
    return 0.9 - 2 * (50.0 * n) ** -0.7


def measured_by_law(n):
    """Return a round with the score of a law, on ever more random items."""
    one = rounds_of([law(n)] * n)[-1]
    half = 0.02 / np.sqrt(n)
    one["control"] = {"value": law(n), "low": law(n) - half, "high": law(n) + half, "n": 10 * n}
    return one


def test_the_end_by_the_target_is_where_the_rule_then_holds():
    """A case without noise: the campaign goes on by the law, and the rule ends it."""
    plan = read_plan(plan_of(stop={"target": 0.87}, select={"batch": 50}))
    rounds = [measured_by_law(n) for n in range(1, 20)]
    stopping = CampaignStopping(plan)
    last = next(n for n in range(1, 20) if stopping.decide(rounds[:n]).stop)
    for n in range(8, last):
        end = outlook(plan, rounds[:n])["end"]
        assert end["low"] <= rounds[last - 1]["spent"] - rounds[n - 1]["spent"] <= end["high"]
        assert end == outlook(plan, rounds[:n])["end"]
    assert last > 10
    assert stopping.decide(rounds[:last]).facts["end"] is None
    assert end["high"] - end["low"] < 50_000_000
    low, high = (f"{end[side] / 1e6:.2f}" for side in ("low", "high"))
    assert end["text"] == f"with 95\u00a0% between {low} and {high} more"


@pytest.mark.parametrize("seed", range(8))
def test_no_interval_is_without_an_end(seed):
    rng = np.random.default_rng(seed)
    rounds = rounds_of(np.sort(rng.uniform(0.2, 0.9, 6)))
    for target in (0.3, 0.6, 0.8, 0.95):
        end = outlook(read_plan(plan_of(stop={"target": target})), rounds)["end"]
        assert 0 <= end["low"] <= end["high"] <= 70_000_000  # of 100 units 30 are spent
        if end["short"] > 0.025:
            assert end["high"] == pytest.approx(70_000_000)
            assert ("this is all" in end["text"]) == (end["short"] <= 0.975)


def test_what_the_curve_does_not_reach_is_said_in_one_line():
    rounds = [measured_by_law(n) for n in range(1, 9)]
    end = outlook(read_plan(plan_of(stop={"target": 0.99})), rounds)["end"]
    assert end["text"] == "out of reach: all that is left, 60.00, is not enough"


def test_where_nothing_is_drawn_at_random_it_says_what_to_draw():
    rounds = rounds_of([0.5, 0.6, 0.65, 0.68], control=[None] * 4)
    by = {"stop": {"target": 0.8}, "select": {"by": "coverage, then mnlp"}}
    end = outlook(read_plan(plan_of(**by)), rounds)["end"]
    assert end == {"text": 'none, as nothing is drawn at random: add "10% random" to select.by'}
    by["select"]["by"] += ", 10% random"
    assert "takes 4 rounds" in outlook(read_plan(plan_of(**by)), rounds)["end"]["text"]


def test_scores_that_fall_give_a_flat_curve_and_none_ends_above_one():
    falling = fit_curve([10, 20, 40, 80], [0.7, 0.6, 0.5, 0.4], [0.1] * 4)
    assert falling.gain(100) == 0
    rising = fit_curve([10, 20, 40, 80], [0.1, 0.4, 0.7, 0.99], [0.1] * 4)
    assert rising.a <= 1


def test_too_few_points_give_no_curve_and_bad_ones_are_refused():
    assert fit_curve([10, 20, 40], [0.1, 0.2, 0.3], [0.1] * 3) is None
    assert fit_curve([10, 10, 20, 40], [0.1, 0.1, 0.2, 0.3], [0.1] * 4) is None
    with pytest.raises(InputError, match="positive numbers of items"):
        fit_curve([0, 1], [0.1, 0.2], [0.1] * 2)


def test_the_outlook_says_what_the_next_hundred_items_bring():
    n = np.arange(1, 7) * 50
    values = 0.9 - 2 * n**-0.7
    found = outlook(read_plan(plan_of()), rounds_of(values))
    assert found["next"]["cost"] == 10_000_000
    gain = 2 * (300**-0.7 - 400**-0.7)
    assert found["next"]["gain"] == pytest.approx(gain, abs=0.01)


def test_the_gain_of_a_pool_is_that_of_counting_its_right_labels_before_and_after():
    n = np.array([20, 40, 80, 160, 320])
    curve = fit_curve(n, 0.8 - 2 * n**-0.9, np.full(5, 0.002))

    def right(labelled):
        return 0.95 * labelled + curve.at(labelled) * (1000 - labelled)

    for labelled, more in ((100, 100), (320, 250), (960, 40)):
        expected = (right(labelled + more) - right(labelled)) / 1000
        # Those that were labelled before keep their labels: only the rest gets a better model.
        assert pool_gain(curve, 1000, labelled, 0.95, more) == pytest.approx(expected, abs=1e-12)
    assert pool_gain(curve, 1000, 950, 0.95, 400) == pool_gain(curve, 1000, 950, 0.95, 50)
    assert pool_gain(curve, 1000, 1000, 0.95, 100) == 0


def test_new_items_and_more_answers_are_compared_in_one_unit():
    values = 0.9 - 2 * (np.arange(1, 7) * 50.0) ** -0.7
    rounds = rounds_of(values)
    assert outlook(read_plan(plan_of()), rounds)["per_money"] is None
    again = {"answers": 100, "cost": 4_000_000, "right": 6.0, "right_tokens": 0.02}
    rounds[-1] |= {"ask_again": again, "pool": 1000, "right": 0.97}
    found = outlook(read_plan(plan_of()), rounds)["per_money"]
    assert found["ask_again"] == pytest.approx(6 / 1000 / 4)
    now, then = (0.9 - 2 * n**-0.7 for n in (300, 400))
    gain = (100 * (0.97 - now) + 600 * (then - now)) / 1000
    assert found["next"] == pytest.approx(gain / 10, rel=0.05)


def test_measures_agree_with_counting_by_hand():
    assert kappa(list("aabb"), list("abbb")) == pytest.approx((0.75 - 0.5) / 0.5)
    found = measured([["a"]] * 8 + [["b"]] * 2, [["a"]] * 10, "PLAIN")
    assert (found.value, found.n) == (0.8, 10)
    # The roots of |p - 0.8| = z sqrt(p (1 - p) / 10).
    for p in (found.low, found.high):
        assert abs(p - 0.8) == pytest.approx(1.959963984540054 * np.sqrt(p * (1 - p) / 10))
    spans = measured([["B-X", "O"]], [["B-X", "B-X"]], "BIO")
    assert spans.value == pytest.approx(2 / 3)
