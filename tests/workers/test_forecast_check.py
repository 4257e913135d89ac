from dataclasses import replace

import numpy as np
import pytest

import goldspan
from goldspan.errors import InputError
from goldspan.simulation import draw_truth, simulate_crowd
from goldspan.workers import check_forecast, fit_difficulty, measure_reliability, select_workers


def _halves(workers, *, items=300, labels=2, per_item=None):
    truth = draw_truth(items, labels=labels, seed=1)
    crowd = simulate_crowd(truth, workers, per_item=per_item, seed=1)
    return crowd.select_items(np.arange(40)), crowd.select_items(np.arange(40, items))


def test_what_the_votes_had_is_what_the_weighted_vote_has():
    test, rest = _halves([f"flip({n / 40})" for n in range(2, 16)], labels=3)
    team = select_workers(measure_reliability(test), budget=5, strategy="top").tested
    # No two sums are equal: ties, which we share among the labels, go to one of them there.
    less = np.array([0.1 / (1 + np.arange(len(team))) ** 0.5, np.zeros(len(team))])
    ranked = replace(team, posterior=team.posterior - less)
    found = check_forecast(ranked, rest)
    ids = ranked.worker_ids.to_pylist()
    for size, had in zip(found.forecast.sizes, found.had, strict=True):
        vote = goldspan.aggregate(rest, "wmv-linear", reliability=ranked, only=ids[:size])
        assert had == pytest.approx((vote.codes == rest.gold).mean(), abs=1e-9)


def test_a_forecast_holds_on_items_that_nobody_was_tested_on():
    test, rest = _halves([f"flip({n / 60})" for n in range(2, 25)], per_item=9)
    team = select_workers(measure_reliability(test), budget=20, strategy="top")
    alone = check_forecast(team.tested, rest)
    shared = check_forecast(team.tested, rest, difficulty=fit_difficulty(test))
    assert abs(alone.bias) < 0.02
    assert alone.coverage > 0.8
    assert alone.mean_error >= abs(alone.bias)
    # Forty questions do not prove that no item is difficult: the forecast stays careful.
    assert -0.04 < shared.bias < alone.bias
    assert "had" in str(shared)


def test_the_interval_is_wider_than_that_of_very_many_items():
    test, rest = _halves(["flip(0.2) x5"], items=60)
    found = check_forecast(measure_reliability(test), rest)
    assert (found.high - found.low > found.forecast.high - found.forecast.low).all()
    assert found.n_items.tolist() == [20] * 5


def test_items_without_gold_have_nothing_to_check_by():
    test, rest = _halves(["flip(0.2) x5"])
    with pytest.raises(InputError, match="nothing to judge"):
        check_forecast(measure_reliability(test), rest.with_gold(None))


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("name", "questions", "budget", "repeats"), [("bluebirds", 20, 39, 2), ("dog", 80, 40, 1)]
)
def test_difficulty_takes_most_of_the_error_out_of_forecasts_for_real_crowds(
    data, name, questions, budget, repeats
):
    folder, errors = data / "classification" / name, {"independent": [], "shared": []}
    crowd = goldspan.read_crowd(str(folder / "labels.csv"), gold=str(folder / "truth.csv"))
    rng = np.random.default_rng(0)
    for _ in range(repeats):
        order = rng.permutation(crowd.n_items)
        test, rest = crowd.select_items(order[:questions]), crowd.select_items(order[questions:])
        team = select_workers(measure_reliability(test), budget=budget, strategy="top")
        sizes = [len(team)]
        learnt = fit_difficulty(test, workers=team.worker_ids)
        alone = check_forecast(team.tested, rest, sizes=sizes)
        shared = check_forecast(team.tested, rest, sizes=sizes, difficulty=learnt)
        errors["independent"].append(alone.bias)
        errors["shared"].append(shared.bias)
    assert np.mean(errors["independent"]) > 0.1
    assert abs(np.mean(errors["shared"])) < 0.07
