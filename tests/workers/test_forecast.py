from itertools import product

import numpy as np
import pytest

from goldspan.errors import InputError
from goldspan.workers import Reliability, forecast_accuracy, select_workers
from goldspan.workers.difficulty import Difficulty
from goldspan.workers.forecast import draw_labels, prefix_accuracy, read_sizes, vote_weights


def _certain(chances, n_labels=2):
    """Return workers whose chances are known for sure, or as good as."""
    return Reliability.from_counts(np.array(chances) * 1e7, 1e7, n_labels=n_labels, prior=(1, 1))


def _exact(chances, weights):
    """Add up the probabilities of all answers to a question of two labels."""
    total = 0.0
    for answers in product([True, False], repeat=len(chances)):
        chance = np.prod([p if one else 1 - p for p, one in zip(chances, answers, strict=True)])
        gap = sum(w if one else -w for w, one in zip(weights, answers, strict=True))
        total += chance * (0.5 if abs(gap) < 1e-9 else gap > 0)
    return total


@pytest.mark.parametrize("vote", ["linear", "log", "majority"])
def test_the_forecast_of_known_workers_is_the_enumerated_accuracy(vote):
    chances = [0.9, 0.75, 0.7, 0.6, 0.6]
    tested = _certain(chances)
    weights = vote_weights(tested, vote)
    found = forecast_accuracy(tested, vote=vote)
    exact = [_exact(chances[:k], weights[:k]) for k in range(1, 6)]
    assert found.accuracy == pytest.approx(exact, abs=0.006)
    # Chances that are known leave nothing to be unsure of but the draws themselves.
    assert (found.high - found.low).max() < 0.03


@pytest.mark.parametrize(
    ("n_labels", "n", "a", "b"), [(2, 10, 4, 2), (2, 20, 6, 2), (4, 10, 4, 3), (4, 20, 3, 4)]
)
def test_forecasts_are_calibrated_on_crowds_of_independent_workers(n_labels, n, a, b):
    rng, missed, held = np.random.default_rng(0), [], []
    sizes = np.array([1, 3, 7, 15])
    for seed in range(8):
        chances = rng.beta(a, b, 60)
        pool = Reliability.from_counts(rng.binomial(n, chances), n, n_labels=n_labels)
        team = select_workers(pool, budget=15, strategy="top", random_state=seed)
        found = forecast_accuracy(team.tested, sizes=sizes, draws=60)
        labels = draw_labels(_certain(chances[team.index], n_labels), None, 0, 4000, rng)
        truth = np.zeros(4000, np.int64)
        weights = vote_weights(team.tested, "linear")
        had = prefix_accuracy(labels, truth, weights, n_labels, sizes)[0] / 4000
        missed.append(found.accuracy - had)
        held.append((found.low - 0.01 <= had) & (had <= found.high + 0.01))
    assert abs(np.mean(missed)) < 0.02
    assert np.mean(held) > 0.85


def test_the_plugin_would_promise_the_best_of_many_lucky_workers_too_much():
    rng, missed = np.random.default_rng(3), []
    for _ in range(10):
        chances = rng.beta(6, 5, 300)
        pool = Reliability.from_counts(rng.binomial(10, chances), 10)
        team = select_workers(pool, budget=5)
        plugin = _certain(team.tested.share.clip(0.001, 0.999))
        cases = (plugin, team.tested, _certain(chances[team.index]))
        promised, found, has = (forecast_accuracy(c, sizes=5, draws=80).accuracy[0] for c in cases)
        missed.append((promised - has, found - has))
    assert np.mean(missed, axis=0)[0] > 0.06
    assert np.mean(missed, axis=0)[1] == pytest.approx(0, abs=0.02)


def test_wrong_labels_that_agree_make_a_vote_worse_than_those_that_scatter():
    tested, found = _certain([0.55] * 9, n_labels=4), []
    for alpha in (np.inf, 1000.0, 0.1):
        log_odds = np.full((50, 9, 4), np.log(0.55 / 0.45))
        shares = np.full((50, 4), 0.25)
        one = Difficulty(
            tested.worker_ids, log_odds, np.zeros(50), shares, np.full(50, alpha), np.zeros(50), 9
        )
        found.append(forecast_accuracy(tested, difficulty=one).accuracy[-1])
    assert found[0] == pytest.approx(found[1], abs=0.01)
    assert found[2] < found[0] - 0.1


def test_difficult_items_bound_what_more_workers_can_reach():
    tested = _certain([0.8] * 30)
    log_odds, shares = np.full((50, 30, 2), 2.0), np.full((50, 2), 0.5)
    hard = Difficulty(
        tested.worker_ids, log_odds, np.full(50, 2.0), shares, np.full(50, np.inf), np.zeros(50), 9
    )
    shared = forecast_accuracy(tested, difficulty=hard)
    assert forecast_accuracy(tested).accuracy[-1] > 0.99
    # Where an item's difficulty exceeds the ability of all, most of them are wrong: P(N(0,1) > 1).
    assert shared.accuracy[-1] == pytest.approx(0.84, abs=0.03)
    assert "items differ in difficulty" in shared.label


@pytest.mark.parametrize("n_labels", [2, 4])
def test_nobody_is_right_about_items_that_mislead(n_labels):
    tested, ones = _certain([0.8] * 15, n_labels), np.ones(50)
    log_odds, shares = np.full((50, 15, n_labels), 2.0), np.full((50, n_labels), 1 / n_labels)
    one = Difficulty(tested.worker_ids, log_odds, 0 * ones, shares, np.inf * ones, 0.3 * ones, 9)
    assert forecast_accuracy(tested, difficulty=one).accuracy[-1] == pytest.approx(0.7, abs=0.02)


def test_who_does_not_answer_does_not_vote():
    tested = _certain([0.7, 0.95])
    only_first = np.array([[True, False]])
    assert forecast_accuracy(tested, answering=only_first).accuracy == pytest.approx(0.7, abs=0.01)


def test_the_cost_of_a_target_is_that_of_the_smallest_team_that_reaches_it():
    tested = _certain([0.8] * 9)
    found = forecast_accuracy(tested, prices=["0.05"] * 9)
    reach = found.cost_to(0.9)
    assert (reach.size, reach.cost) == (5, 250_000)
    assert found.accuracy[3] < 0.9 <= found.accuracy[4]
    assert forecast_accuracy(tested).cost_to(0.9).cost == 5


def test_a_target_out_of_reach_says_what_is_in_reach():
    found = forecast_accuracy(Reliability.from_counts([6, 6], 10, prior=(1, 1)))
    reach = found.cost_to(0.95)
    assert reach.size is None
    assert reach.reason.startswith("not reachable: the best is 0.")


def test_to_reach_a_target_surely_takes_more_than_to_be_expected_to():
    found = forecast_accuracy(Reliability.from_counts([16] * 15, 20, prior=(8, 2)))
    assert found.cost_to(0.9, surely=True).size > found.cost_to(0.9).size


def test_it_is_labelled_as_model_based_wherever_it_is_shown():
    found = forecast_accuracy(_certain([0.8]))
    assert found.to_dict()["model_based"] is True
    assert str(found).startswith("model-based: a forecast of the linear vote if workers err indep")


def test_the_same_seed_gives_the_same_forecast():
    tested = Reliability.from_counts([8, 7, 9], 10)
    one, same, other = (forecast_accuracy(tested, random_state=seed).accuracy for seed in (0, 0, 1))
    assert one.tolist() == same.tolist()
    assert one.tolist() != other.tolist()


def test_large_teams_are_forecast_at_some_sizes():
    sizes = read_sizes(None, 100_000)
    assert len(sizes) <= 40
    assert (sizes[0], sizes[-1]) == (1, 500)
    assert read_sizes(None, 30).tolist() == list(range(1, 31))


@pytest.mark.parametrize("sizes", [[0], [4], [1.5], [], "all"])
def test_sizes_outside_of_the_ranking_are_refused(sizes):
    with pytest.raises(InputError, match="sizes must be whole numbers"):
        forecast_accuracy(_certain([0.8] * 3), sizes=sizes)


def test_an_empty_team_has_no_forecast():
    with pytest.raises(InputError, match="the selection is empty"):
        forecast_accuracy(Reliability.from_counts([], []))


@pytest.mark.parametrize("target", [0, 1.01, 95])
def test_a_target_is_an_accuracy(target):
    with pytest.raises(InputError, match="between 0 and 1"):
        forecast_accuracy(_certain([0.8])).cost_to(target)


def test_a_level_of_percent_is_refused():
    with pytest.raises(InputError, match="not 95"):
        forecast_accuracy(_certain([0.8]), level=95)


def test_a_difficulty_of_other_labels_is_refused():
    tested = _certain([0.8])
    ones = np.ones(1)
    other = Difficulty(
        tested.worker_ids, np.zeros((1, 1, 3)), ones, np.ones((1, 3)) / 3, ones, ones, 9
    )
    with pytest.raises(InputError, match="of 3 labels and the reliability of 2"):
        forecast_accuracy(tested, difficulty=other)


@pytest.mark.parametrize("options", [{"draws": 0}, {"n_items": 0}])
def test_a_forecast_without_draws_is_refused(options):
    with pytest.raises(InputError, match="must be at least 1"):
        forecast_accuracy(Reliability.from_counts([3, 4], 5), **options)
