"""Families of workers in selection, adaptive redundancy, verdicts and reviews."""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import goldspan
from goldspan.aggregation.families import Families, given_families
from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.money import MICRO
from goldspan.simulation import draw_truth, simulate_crowd
from goldspan.workers import (
    Reliability,
    judge_workers,
    next_answers,
    replay,
    review_workers,
    select_by_gain,
    select_workers,
)
from goldspan.workers.redundancy import BY_RULE, NOBODY_LEFT, OPEN
from goldspan.workers.teams import (
    IDLE,
    Grouping,
    discounted,
    greedy_team,
    rank_with_families,
    score_interval,
    team_values,
)

RNG = np.random.default_rng


def value(scores: np.ndarray, grouping: Grouping, team: tuple[int, ...]) -> float:
    """F by its definition."""
    gain = size = 0.0
    for family in set(grouping.number[list(team)].tolist()):
        own = [w for w in team if grouping.number[w] == family]
        share = 1 / (1 + (len(own) - 1) * grouping.rho[family])
        gain += share * sum(scores[own])
        size += share * len(own)
    return gain / np.sqrt(size)


def best(scores: np.ndarray, costs: np.ndarray, limit: int, grouping: Grouping) -> float:
    """Try all teams that can be paid."""
    every = range(len(scores))
    teams = [team for n in range(1, len(scores) + 1) for team in combinations(every, n)]
    paid = [team for team in teams if costs[list(team)].sum() <= limit]
    return max((value(scores, grouping, team) for team in paid), default=0.0)


@st.composite
def pools(draw, *, money: bool) -> tuple[np.ndarray, np.ndarray, int, Grouping]:
    n = draw(st.integers(2, 8))
    scores = np.array(
        draw(st.lists(st.sampled_from([0.1, 0.3, 0.5, 0.9, 1.0]), min_size=n, max_size=n))
    )
    number = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), np.int64)
    rho = np.array(draw(st.lists(st.sampled_from([0.0, 0.3, 0.7, 1.0]), min_size=4, max_size=4)))
    costs = np.array(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)), np.int64)
    return (
        scores,
        costs if money else np.ones(n, np.int64),
        draw(st.integers(1, 8)),
        Grouping(number, rho),
    )


@pytest.mark.parametrize("money", [False, True])
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_teams_with_families_are_near_the_best_and_their_bound_holds(money, data):
    scores, costs, limit, grouping = data.draw(pools(money=money))
    found = greedy_team(scores, costs if money else None, limit, grouping, RNG(0))
    got = value(scores, grouping, tuple(found.chosen.tolist())) if len(found.chosen) else 0.0
    most = best(scores, costs, limit, grouping)
    assert costs[found.chosen].sum() <= limit
    assert found.ratio * most <= got + 1e-9 <= most + 2e-9
    assert got >= 0.7 * most
    if most:
        assert np.nanmax(found.curve) == pytest.approx(got)


def test_values_of_prefixes_are_those_of_the_definition():
    rng = RNG(1)
    scores, grouping = rng.random(12), Grouping(rng.integers(0, 4, 12), rng.random(4))
    team = tuple(range(12))
    by_definition = [value(scores, grouping, team[:n]) for n in range(1, 13)]
    np.testing.assert_allclose(team_values(scores, grouping), by_definition)
    np.testing.assert_allclose(
        (grouping.shares() * scores).sum() / np.sqrt(grouping.shares().sum()), by_definition[-1]
    )
    alone = Grouping(np.arange(12), np.zeros(12))
    np.testing.assert_allclose(team_values(scores, alone), team_values(scores))


@pytest.mark.parametrize("copies", [2, 3, 5])
@pytest.mark.parametrize("strategy", ["selected", "top"])
def test_a_copied_worker_is_not_chosen_twice(copies, strategy):
    names = ["best", *(f"copy{n}" for n in range(copies - 1)), "b", "c", "d"]
    right = [20] * copies + [17, 16, 16]
    tested = Reliability.from_counts(right, 20, worker_ids=names)
    number = np.array([0] * copies + [1, 2, 3])
    grouping = Families(number, np.array([1.0, 0, 0, 0]), pa.array(names))
    for budget in (2, 3, 5, 8):
        team = select_workers(tested, budget=budget, strategy=strategy, families=grouping)
        chosen = team.worker_ids.to_pylist()
        assert sum(name.startswith(("best", "copy")) for name in chosen) == 1
        assert team.effective == len(team)
        without = select_workers(
            tested.take(np.arange(copies - 1, copies + 3)), budget=budget, strategy=strategy
        )
        assert team.value == pytest.approx(without.value)
        assert team.expected == pytest.approx(without.expected)
        assert any("err" in note for note in team.notes)
    # For money the cheapest of the copies is taken.
    prices = {name: 3 - 0.1 * n for n, name in enumerate(names[:copies])} | dict.fromkeys("bcd", 1)
    team = select_workers(tested, budget=20, prices=prices, families=grouping)
    assert names[copies - 1] in team.worker_ids.to_pylist()
    assert team.price is not None
    assert team.price < 20 * MICRO


def test_members_that_err_together_a_little_are_chosen_as_far_as_they_add_something():
    names = list("abcd")
    tested = Reliability.from_counts([19, 19, 19, 15], 20, worker_ids=names)

    def chosen(rho: float) -> set[str]:
        grouping = Families(np.array([0, 0, 0, 1]), np.array([rho, 0.0]), pa.array(names))
        return set(select_workers(tested, budget=3, families=grouping).worker_ids.to_pylist())

    assert chosen(0.0) == set("abc")
    assert chosen(0.1) == set("abc")
    assert len(chosen(1.0) & set("abc")) == 1
    unknown = Families(np.array([0, 0]), np.array([1.0]), pa.array(["x", "y"]))
    assert select_workers(tested, budget=3, families=unknown).share is None


def test_a_large_pool_takes_an_order():
    rng = RNG(0)
    scores, costs = rng.random(3000), rng.integers(1, 100, 3000)
    grouping = Grouping(rng.integers(0, 20, 3000), np.full(20, 0.9))
    found = greedy_team(scores, costs, 500, grouping, rng)
    assert 0.3 < found.ratio < 1  # the bound knows nothing of families
    assert costs[found.chosen].sum() <= 500
    got = value(scores, grouping, tuple(found.chosen.tolist()))
    assert got == pytest.approx(np.nanmax(found.curve))
    assert np.bincount(grouping.number[found.chosen]).max() <= 3
    order = rank_with_families(scores, 100, grouping, rng)
    added = discounted(scores, grouping)
    assert (added[order] >= IDLE * scores[order]).all()
    assert (np.diff(added[order]) <= 0).all()


def test_intervals_of_teams_count_families_once():
    two = Reliability.from_counts([18, 18], 20, prior=(1, 1))
    share = np.array([0.5, 0.5])
    low, high = score_interval(two, share)
    assert 0 <= low < high < score_interval(two)[1]
    assert score_interval(two, share=np.ones(2)) == score_interval(two)


# --------------------------------------------------------------------------------------------------
# Adaptive redundancy.


def rows_of(crowd: Crowd) -> list[dict[str, str]]:
    table = crowd.to_arrow().select(["item", "worker", "label"])
    return [dict(row) for row in table.to_pylist()]


def with_copies(rows: list[dict[str, str]], worker: str, n: int) -> list[dict[str, str]]:
    own = [row for row in rows if row["worker"] == worker]
    return rows + [row | {"worker": f"copy{k}"} for k in range(n) for row in own]


@pytest.fixture(name="rows", scope="module")
def _rows() -> list[dict[str, str]]:
    truth = draw_truth(150, ["a", "b", "c"], seed=4)
    team = ["flip(0.15) x5", "flip(0.3) x3"]
    return rows_of(simulate_crowd(truth, team, per_item=4, seed=4).with_gold(None))


@pytest.mark.parametrize("copies", [1, 2, 4])
@pytest.mark.parametrize("rule", ["confident(0.95)", "clear_majority(2, least=3)", "fixed(4)"])
def test_copies_change_no_stopping(rows, copies, rule):
    worker = rows[0]["worker"]
    more = with_copies(rows, worker, copies)
    grouping = dict.fromkeys(
        {row["worker"] for row in more if row["worker"].startswith("copy")}, "one"
    )
    grouping[worker] = "one"
    status = []
    for some, families in ((rows, {}), (more, grouping)):
        crowd = goldspan.read_crowd(some)
        number = given_families(crowd, families).number
        one = Families(number, np.ones(crowd.n_workers), crowd.worker_ids)
        result = goldspan.aggregate(crowd, "ds", families=one)
        found = next_answers(crowd, result, rule=rule, max_answers=6)
        status.append(dict(zip(crowd.item_ids.to_pylist(), found.status.tolist(), strict=True)))
    assert status[0] == status[1]
    assert {OPEN, BY_RULE} & set(status[0].values())


def test_copies_found_by_the_answers_change_no_stopping_of_items(rows):
    worker = rows[0]["worker"]
    alone, more = goldspan.read_crowd(rows), goldspan.read_crowd(with_copies(rows, worker, 3))
    states = []
    for crowd in (alone, more):
        result = goldspan.aggregate(crowd, "ds", families="auto")
        states.append(next_answers(crowd, result).status)
    assert np.mean(states[0] != states[1]) < 0.03
    without = goldspan.aggregate(more, "ds", families="none")
    assert np.mean(states[0] != next_answers(more, without).status) > 0.05


def test_no_two_of_a_family_are_asked_where_somebody_else_is_there():
    table = "task,worker,label\n"
    table += "".join(f"q{i},{w},{'yn'[i % 2]}\n" for i in range(12) for w in ("a", "b", "c"))
    crowd = goldspan.read_crowd((table + "x,a,y\nx,c,n\nz,a,y\n").encode())
    grouping = Families(np.array([0, 0, 1]), np.array([1.0, 0.0]), pa.array(["a", "b", "c"]))
    result = goldspan.aggregate(crowd, "one-coin", families=grouping)
    found = next_answers(crowd, result, confidence=0.999, workers=["a", "b", "c", "d"])
    asked = dict(
        zip(
            found.to_arrow().column("item").to_pylist(),
            found.to_arrow().column("worker").to_pylist(),
            strict=True,
        )
    )
    assert asked["x"] == "d"  # b, as good as a, errs together with him
    assert asked["z"] in {"c", "d"}
    # Where the family alone is left, nobody is.
    last = next_answers(crowd, result, confidence=0.999, workers=["a", "b"])
    place = crowd.item_index("x")
    assert last.status[place] == NOBODY_LEFT
    assert "x" not in last.to_arrow().column("item").to_pylist()
    # One who shares half of the mistakes adds a third of an answer, and is asked if nobody else is.
    half = Families(grouping.number, np.array([0.5, 0.0]), grouping.worker_ids)
    result = goldspan.aggregate(crowd, "one-coin", families=half)
    last = next_answers(crowd, result, confidence=0.999, workers=["a", "b"])
    assert last.status[place] == OPEN
    rows = last.to_arrow().to_pylist()
    gain = {row["item"]: row["gain"] for row in rows}["x"]
    alone = goldspan.aggregate(crowd, "one-coin")
    assert 0 < gain < next_answers(crowd, alone, confidence=0.999, workers=["b"]).gain.max()


def test_a_large_family_at_the_top_of_the_ranking_hides_nobody():
    names = [f"m{n:02d}" for n in range(30)]
    table = "task,worker,label\n"
    table += "".join(f"q{i},{w},{'yn'[i % 2]}\n" for i in range(9) for w in (*names, "out"))
    crowd = goldspan.read_crowd((table + "x,m00,y\n").encode())
    grouping = Families(np.array([0] * 30 + [1]), np.array([1.0, 0.0]), pa.array([*names, "out"]))
    result = goldspan.aggregate(crowd, "one-coin", families=grouping)
    found = next_answers(crowd, result, confidence=0.9999, max_answers=40)
    rows = found.to_arrow().to_pylist()
    assert {row["worker"] for row in rows if row["item"] == "x"} == {"out"}


def test_a_replay_pays_no_copy_for_certainty(rows):
    worker = rows[0]["worker"]
    more = goldspan.read_crowd(with_copies(rows, worker, 3))
    grouping = dict.fromkeys([worker, "copy0", "copy1", "copy2"], "one")
    common = {"method": "ds", "rule": "fixed(3)", "max_answers": 7, "with_fixed": False}
    found = replay(more, families=grouping, **common)
    assert found.n_answers > replay(more, families="none", **common).n_answers
    by_gain = replay(more, families=grouping, choose="gain", **common)
    assert by_gain.n_answers < found.n_answers


# --------------------------------------------------------------------------------------------------
# Verdicts and the review of a crowd.


def test_a_copied_worker_is_judged_and_selected_once():
    truth = draw_truth(300, ["a", "b", "c"], seed=1)
    made = simulate_crowd(truth, ["flip(0.25) x7", "bad=flip(0.4)"], per_item=6, seed=2)
    rows = with_copies(rows_of(made), "bad", 4)
    crowd = goldspan.read_crowd(rows)
    found = review_workers(crowd, budget=4)
    names = {"bad", "copy0", "copy1", "copy2", "copy3"}
    assert found.families is not None
    assert set(found.families.names()) == names
    chosen = set(found.team.worker_ids.to_pylist())
    assert len(chosen & names) <= 1
    means = {v.worker: v.mean for v in found.verdicts}
    assert max(means[name] for name in names) < min(means[n] for n in set(means) - names)
    table = {row["worker"]: row for row in found.to_arrow().to_pylist()}
    assert table["bad"]["family"] == table["copy0"]["family"]
    assert table["bad"]["effective"] == pytest.approx(1, abs=0.1)
    assert table["w1"]["family"] is None
    assert "errs together with 4 others" in table["bad"]["why"]
    blind = review_workers(crowd, budget=4, families="none")
    assert blind.families is None
    assert len(set(blind.team.worker_ids.to_pylist()) & names) > 1
    by_gold = review_workers(goldspan.read_crowd(rows, gold=truth), budget=8)
    assert len(set(by_gold.team.worker_ids.to_pylist()) & names) <= 1
    given = review_workers(crowd, families=dict.fromkeys(names, "team"))
    assert given.verdicts[0].family in {None, "team"}


def test_verdicts_name_families():
    tested = Reliability.from_counts([19, 19], 20, worker_ids=["a", "b"])
    grouping = Families(np.array([0, 0]), np.array([1.0]), pa.array(["a", "b"]), {0: "twins"})
    first = judge_workers(tested, families=grouping)[0]
    assert (first.family, first.effective) == ("twins", 1.0)
    assert first.why.endswith("errs together with another of twins, who count as 1.0 of 2 workers")
    assert first.to_dict()["family"] == "twins"


@pytest.mark.parametrize("families", ["auto", "none", 5])
def test_families_that_are_neither_named_nor_found_are_refused(families):
    crowd = simulate_crowd(draw_truth(20, seed=1), ["flip(0.1) x3"], seed=1)
    tested = Reliability.from_counts([8, 7, 9], [10, 10, 10], n_labels=2)
    for choose in (
        lambda: select_workers(tested, budget=2, families=families),
        lambda: select_by_gain(crowd, budget=2, families=families),
    ):
        with pytest.raises(InputError, match="a mapping from worker ids to names of families"):
            choose()
