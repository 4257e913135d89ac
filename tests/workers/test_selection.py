from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from goldspan.errors import InputError, UnknownNameError
from goldspan.workers import Reliability, select_workers
from goldspan.workers.teams import best_prefix, rank, worker_scores

POOL = Reliability.from_counts([19, 18, 17, 11, 10, 3], 20, prior=(2, 1))


def _value(scores):
    return scores.sum() / np.sqrt(len(scores))


def _best_of_all_subsets(scores, budget):
    sizes = range(1, min(budget, len(scores)) + 1)
    return max(_value(scores[list(s)]) for k in sizes for s in combinations(range(len(scores)), k))


def test_algorithm_1_finds_the_best_of_all_subsets_of_2000_small_pools():
    rng = np.random.default_rng(0)
    for _ in range(2000):
        scores, budget = rng.normal(rng.normal(), 1, rng.integers(1, 8)), int(rng.integers(1, 9))
        choice = best_prefix(scores, min(budget, len(scores)), rng)
        best = _best_of_all_subsets(scores, budget)
        assert _value(scores[choice.chosen]) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("score", ["posterior", "unbiased", "plugin"])
@pytest.mark.parametrize("below", ["drop", "negative"])
def test_the_team_is_the_best_of_all_sets_of_candidates(score, below):
    rng = np.random.default_rng(1)
    for _ in range(25):
        n = rng.choice([2, 5, 20, 60], 7)
        right = rng.binomial(n, rng.beta(4, 2, 7))
        pool = Reliability.from_counts(right, n, n_labels=3, prior=(4, 2))
        scores = worker_scores(pool, score)
        share = pool.mean if score == "posterior" else pool.share
        scores = scores if below == "negative" else scores[share >= 1 / 3]
        team = select_workers(pool, budget=4, score=score, below=below)
        assert team.value == pytest.approx(_best_of_all_subsets(scores, 4), abs=1e-9)
        assert team.value == pytest.approx(team.curve.max())


def test_all_prefixes_are_looked_at_though_the_curve_has_two_peaks():
    scores = np.array([10.0, 4.0] + [3.9] * 30)
    choice = best_prefix(scores, 32, np.random.default_rng(0))
    assert choice.curve[1] < choice.curve[0]
    assert len(choice.chosen) == 32


def test_of_equally_good_sizes_the_smallest_is_taken():
    assert len(best_prefix(np.zeros(5), 5, np.random.default_rng(0)).chosen) == 1


def test_ranking_part_of_a_pool_gives_what_ranking_all_of_it_gives():
    scores = np.random.default_rng(0).integers(0, 20, 500).astype(float)
    for most in (0, 1, 30, 499, 500):
        part = rank(scores, most, np.random.default_rng(3))
        assert part.tolist() == rank(scores, 500, np.random.default_rng(3))[:most].tolist()
        assert sorted(scores)[::-1][:most] == scores[part].tolist()


def test_the_seed_decides_among_equals_and_nothing_else_does():
    pool = Reliability.from_counts([9] * 50, 10)
    teams = [select_workers(pool, budget=5, random_state=seed) for seed in (0, 0, 1)]
    assert teams[0].index.tolist() == teams[1].index.tolist()
    assert teams[0].index.tolist() != teams[2].index.tolist()


def test_workers_below_chance_are_dropped_or_count_negatively():
    pool = Reliability.from_counts([19, 0], 20, prior=(1, 1))
    kept = select_workers(pool, budget=2, below="negative")
    assert select_workers(pool, budget=2).worker_ids.to_pylist() == ["0"]
    assert kept.worker_ids.to_pylist() == ["1", "0"]
    assert (kept.weights < 0).tolist() == [True, False]


def test_a_worker_of_two_lucky_answers_is_first_by_the_raw_scores_only():
    pool = Reliability.from_counts([2, 57, 12, 14, 40], [2, 60, 20, 20, 60])
    first = {score: select_workers(pool, budget=3, score=score).index[0] for score in
             ("posterior", "unbiased", "plugin")}  # fmt: skip
    assert first == {"posterior": 1, "unbiased": 0, "plugin": 0}


def test_the_posterior_score_beats_the_unbiased_one_when_tests_differ_in_length():
    rng = np.random.default_rng(5)
    had = {"posterior": [], "unbiased": []}
    for _ in range(20):
        n, chances = rng.choice([2, 5, 20, 60], 200), rng.beta(4, 3, 200)
        pool = Reliability.from_counts(rng.binomial(n, chances), n)
        for score, found in had.items():
            # `below` as in the paper, so that both choose among the same workers.
            team = select_workers(pool, budget=15, score=score, below="negative")
            answers = rng.random((2000, len(team))) < chances[team.index]
            gap = (np.where(answers, 1, -1) * team.weights).sum(axis=1)
            found.append((gap > 0).mean() + (gap == 0).mean() / 2)
    assert np.mean(had["posterior"]) >= 0.985
    assert np.mean(had["unbiased"]) < np.mean(had["posterior"]) - 0.02


@pytest.mark.parametrize(
    ("pool", "budget", "why"),
    [
        (Reliability.from_counts([], []), 3, "the pool is empty"),
        (POOL, 0, "the budget is 0"),
        (Reliability.from_counts([0, 0], [0, 0]), 3, "enough judged answers"),
        (Reliability.from_counts([1, 0], [20, 20], prior=(1, 1)), 3, "below chance"),
        (
            Reliability.from_counts([10, 11, 9], 20, prior=(1, 1)),
            3,
            "is better than guessing with probability",
        ),
    ],
)
def test_nobody_is_chosen_where_nobody_is_worth_it_and_it_says_why(pool, budget, why):
    team = select_workers(pool, budget=budget)
    assert len(team) == 0
    assert team.value == 0
    assert why in team.why_nobody
    assert str(team).startswith("Nobody was chosen: ")
    assert team.to_dict()["workers"] == []


def test_nobody_is_chosen_by_unbiased_scores_when_all_answer_as_guessers_do():
    team = select_workers(Reliability.from_counts([10, 11, 9], 20), budget=3, score="unbiased")
    assert "nobody's score is above 0" in team.why_nobody


def test_a_pool_of_guessers_is_refused():
    rng = np.random.default_rng(2)
    refused = [
        not len(select_workers(Reliability.from_counts(rng.binomial(20, 0.5, 300), 20), budget=9))
        for _ in range(20)
    ]
    assert np.mean(refused) >= 0.9


def test_many_short_tests_show_together_what_none_shows_alone():
    every = Reliability.from_counts(np.full(30, 2), 2, prior=(1.0, 1.0))
    assert every.p_above(0.5).max() < 0.9
    assert len(select_workers(every, budget=15)) == 15
    assert not len(select_workers(every.take(np.arange(1)), budget=15))


def test_who_cannot_be_scored_is_never_chosen_and_counted():
    pool = Reliability.from_counts([1, 0, 18, 17], [1, 0, 20, 20])
    team = select_workers(pool, budget=9, score="unbiased")
    assert sorted(team.worker_ids.to_pylist()) == ["2", "3"]
    assert any("2 of 4 workers cannot be scored" in note for note in team.notes)


def test_a_budget_beyond_the_pool_takes_all_candidates_and_says_so():
    team = select_workers(POOL, budget=100)
    assert len(team.curve) == 5
    assert "The budget of 100 covers all 5 candidates." in team.notes


def test_the_best_and_random_workers_can_be_taken_instead():
    top = select_workers(POOL, budget=4, strategy="top")
    drawn = select_workers(POOL, budget=4, strategy="random", random_state=3)
    again = select_workers(POOL, budget=4, strategy="random", random_state=3)
    assert top.worker_ids.to_pylist() == ["0", "1", "2", "3"]
    assert len(set(drawn.index.tolist())) == 4
    assert drawn.index.tolist() == again.index.tolist()
    assert top.guarantee.startswith("none")
    assert drawn.guarantee.startswith("none")


def test_random_teams_are_drawn_from_the_whole_pool_evenly():
    times = np.zeros(6)
    for seed in range(600):
        times[select_workers(POOL, budget=2, strategy="random", random_state=seed).index] += 1
    assert times == pytest.approx(200, abs=50)


def test_a_drawn_team_with_a_worker_who_cannot_be_scored_has_no_known_value():
    team = select_workers(
        Reliability.from_counts([9, 0, 2], [10, 0, 10]), budget=3, strategy="random"
    )
    assert len(team) == 3
    assert np.isnan(team.value)
    assert team.notes == ("1 of 3 workers cannot be scored: no judged answer.",)


@pytest.mark.parametrize("budget", [-1, 2.5, "3", True, None])
def test_a_budget_is_a_whole_number_of_workers(budget):
    with pytest.raises(InputError, match="the budget is a whole number of workers"):
        select_workers(POOL, budget=budget)


@pytest.mark.parametrize("option", ["score", "below", "strategy"])
def test_unknown_names_are_refused(option):
    with pytest.raises(UnknownNameError, match="choose from"):
        select_workers(POOL, budget=2, **{option: "best"})


@pytest.mark.parametrize(
    ("prices", "message"),
    [
        ([1, 2], "2 prices for 6 workers"),
        ({"0": 1}, "no price for 5 workers .'1', '2', '3', '4', '5'."),
        ([-1, 1, 1, 1, 1, 1], "the price of 0 must lie in 0"),
        ([float("nan"), 1, 1, 1, 1, 1], "the price of 0 must be a number"),
    ],
)
def test_prices_that_make_no_sense_are_refused(prices, message):
    with pytest.raises(InputError, match=message):
        select_workers(POOL, budget=1, prices=prices)


def test_prices_are_summed_exactly_and_stay_within_the_budget():
    team = select_workers(POOL, budget="0.30", prices=["0.1"] * 6)
    assert team.price == 300_000
    assert len(team) == 3


def test_equal_prices_choose_as_no_prices_do():
    by_name = dict.fromkeys(POOL.worker_ids.to_pylist(), "0.05")
    team = select_workers(POOL, budget="0.20", prices=by_name)
    assert team.index.tolist() == select_workers(POOL, budget=4).index.tolist()


def test_free_workers_are_hired_without_any_money():
    team = select_workers(POOL, budget=0, prices=[1, 0, 0, 1, 1, 1])
    assert team.worker_ids.to_pylist() == ["1", "2"]
    assert team.price == 0


def test_a_budget_below_the_cheapest_price_is_told():
    team = select_workers(POOL, budget="0.01", prices=np.full(6, 0.05))
    assert team.why_nobody == "the budget is 0.01 and the cheapest candidate costs 0.05"


@pytest.mark.parametrize("strategy", ["top", "random"])
def test_the_other_strategies_keep_to_the_money(strategy):
    prices = [0.05, 0.02, 0.03, 0.01, 0.01, 0.01]
    team = select_workers(POOL, budget=0.08, prices=prices, strategy=strategy)
    assert 0 < team.price <= 80_000


def test_the_result_has_everything_for_machines_and_for_people():
    team = select_workers(POOL, budget=3, prices=[0.01] * 6)
    found = team.to_dict()
    assert [row["worker"] for row in found["workers"]] == team.worker_ids.to_pylist()
    assert found["price"] == "0.03"
    assert found["interval"] == list(team.interval)
    assert "Team of 3 workers, 0.03 per item: 0, 1, 2\n" in str(team)
    assert pa.types.is_string(team.worker_ids.type)


def test_a_lucky_beginner_does_not_make_a_proven_worker_unsure():
    pool = Reliability.from_counts(
        [94, 2, 1, 2, 2, 127, 9, 4, 61], [200, 3, 5, 2, 5, 200, 20, 5, 200]
    )
    assert pool.p_above(0.5).max() > 0.99
    assert len(select_workers(pool, budget=9))


def test_the_expected_f_lies_within_its_interval():
    team = select_workers(Reliability.from_counts([8, 5, 7, 7, 6, 6, 6, 8], 10), budget=3)
    low, high = team.interval
    assert low < team.expected < high
    assert f"that of {team.expected**2:.1f} workers who are always right" in str(team)


def test_more_money_than_can_be_counted_is_refused():
    pool = Reliability.from_counts([19] * 20, 20)
    with pytest.raises(InputError, match="more money than can be counted"):
        select_workers(pool, budget=10**12, prices=[10**12] * 20)


def test_one_price_is_that_of_everybody():
    pool = Reliability.from_counts([19, 17, 16], 20)
    team = select_workers(pool, budget="0.10", prices="0.05")
    assert len(team) == 2
    assert team.price == 100_000
