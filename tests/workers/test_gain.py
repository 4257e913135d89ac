"""Selection by expected posterior gain, against enumeration."""

from itertools import combinations, product

import numpy as np
import pytest

import goldspan
from goldspan.aggregation import aggregate
from goldspan.errors import InputError, UnknownNameError
from goldspan.simulation import draw_truth, simulate_crowd
from goldspan.workers import review_workers, select_by_gain
from goldspan.workers.gain import Answered, grow, mean_confusions
from goldspan.workers.teams import Grouping

ALONE = np.ones(9, np.int64)


def draw_means(rng: np.random.Generator, n_workers: int, n_labels: int) -> np.ndarray:
    rows = rng.dirichlet(np.full(n_labels, 0.8), (n_workers, n_labels))
    return 0.6 * rows + 0.4 * np.eye(n_labels)


def every_pattern(means: np.ndarray, prior: np.ndarray) -> Answered:
    """List all answers to a token; their joint probability with the truth is the target."""
    n_workers, n_labels, _ = means.shape
    patterns = np.array(list(product(range(n_labels), repeat=n_workers)))
    joint = np.tile(prior, (len(patterns), 1))
    for worker in range(n_workers):
        joint = joint * means[worker][:, patterns[:, worker]].T
    token = np.repeat(np.arange(len(patterns)), n_workers)
    worker = np.tile(np.arange(n_workers), len(patterns))
    return Answered(token, worker, patterns.ravel(), joint * len(patterns), prior, n_workers)


def expected(means: np.ndarray, prior: np.ndarray, team: tuple[int, ...]) -> float:
    """Return the expected posterior of the truth by its definition."""
    total = 0.0
    for answers in product(range(len(prior)), repeat=len(team)):
        joint = prior.copy()
        for worker, answer in zip(team, answers, strict=True):
            joint = joint * means[worker][:, answer]
        total += float((joint * joint / joint.sum()).sum())
    return total


@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_value_is_the_expected_posterior_of_the_truth(n_labels):
    rng = np.random.default_rng(n_labels)
    means, prior = draw_means(rng, 4, n_labels), rng.dirichlet(np.full(n_labels, 3.0))
    answered = every_pattern(means, prior)
    for size in (0, 1, 2, 4):
        for team in combinations(range(4), size):
            members = np.array(team, np.int64)
            found = grow(answered, means, members, ALONE[:4], size).gains.sum()
            assert found == pytest.approx(expected(means, prior, team) - float((prior**2).sum()))


@pytest.mark.parametrize("seed", range(12))
def test_adding_the_best_comes_near_the_best_of_all_teams(seed):
    rng = np.random.default_rng(seed)
    n_labels = 2 + seed % 2
    means, prior = draw_means(rng, 6, n_labels), np.full(n_labels, 1 / n_labels)
    answered, nobody = every_pattern(means, prior), float((prior**2).sum())
    for limit in (1, 2, 3):
        found = grow(answered, means, np.arange(6), ALONE[:6], limit)
        best = max(expected(means, prior, team) for team in combinations(range(6), limit))
        got = expected(means, prior, tuple(found.order.tolist()))
        assert found.gains.sum() == pytest.approx(got - nobody)
        assert got - nobody >= 0.9 * (best - nobody)
        assert limit > 1 or got == pytest.approx(best)


def value_by_definition(
    answered: Answered, means: np.ndarray, team: list[int], grouping: Grouping
) -> float:
    total = 0.0
    for token in range(len(answered.target)):
        own = [
            (int(w), int(c))
            for t, w, c in zip(answered.token, answered.worker, answered.code, strict=True)
            if t == token and w in team
        ]
        state = np.log(answered.prior)
        for worker, code in own:
            n = sum(grouping.number[w] == grouping.number[worker] for w, _ in own)
            share = 1 / (1 + (n - 1) * grouping.rho[grouping.number[worker]])
            state = state + share * np.log(means[worker][:, code])
        total += float(answered.target[token] @ (np.exp(state) / np.exp(state).sum()))
    return total / len(answered.target)


@pytest.mark.parametrize("seed", range(8))
def test_gains_beside_families_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    means = draw_means(rng, 6, 3)
    grouping = Grouping(rng.integers(0, 3, 6), rng.choice([0.0, 0.4, 1.0], 3))
    given = np.flatnonzero(rng.random(30 * 6) < 0.6)
    target = rng.dirichlet(np.ones(3), 30)
    answered = Answered(
        given // 6, given % 6, rng.integers(0, 3, len(given)), target, target.mean(axis=0), 6
    )
    found = grow(answered, means, np.arange(6), ALONE[:6], 6, grouping)
    values = [
        value_by_definition(answered, means, found.order[:n].tolist(), grouping) for n in range(7)
    ]
    assert found.gains == pytest.approx(np.diff(values))
    outside = [
        value_by_definition(answered, means, [int(found.order[0]), w], grouping)
        for w in set(range(6)) - {int(found.order[0])}
    ]
    assert values[2] == pytest.approx(max(outside))


def test_matrices_are_shrunk_to_what_all_workers_do():
    rng = np.random.default_rng(1)
    truth = np.array([[0.9, 0.1], [0.4, 0.6]])
    counts = np.stack([[rng.multinomial(20, row) for row in truth] for _ in range(40)]).astype(
        float
    )
    found = mean_confusions(counts)
    assert found.sum(axis=2) == pytest.approx(np.ones((40, 2)))
    share = counts / counts.sum(axis=2, keepdims=True)
    assert np.abs(found - truth).mean() < 0.6 * np.abs(share - truth).mean()
    unknown = mean_confusions(np.concatenate([counts, np.zeros((1, 2, 2))]))[-1]
    assert np.abs(unknown - truth).max() < 0.05


def crowd_of(workers: list[str], n: int = 120, seed: int = 0) -> goldspan.crowd.Crowd:
    return simulate_crowd(draw_truth(n, seed=seed), workers, seed=seed)


def known(crowd: goldspan.crowd.Crowd, n: int) -> dict[str, str]:
    tags, ids = crowd.tagset.tags, crowd.item_ids.to_pylist()
    return {ids[i]: tags[crowd.gold[i]] for i in range(n)}


@pytest.mark.parametrize("with_result", [False, True])
def test_gold_beyond_the_gold_questions_is_not_looked_at(with_result):
    crowd = crowd_of(["flip(0.2) x4", "flip(0.45) x4"])
    gold = known(crowd, 20)
    questions = crowd.with_gold(np.where(np.arange(120) < 20, crowd.gold, -1).astype(np.int16))
    result = aggregate(crowd.with_gold(None), "ds", gold=questions) if with_result else None
    codes = crowd.gold.copy()
    codes[20:] = 1 - codes[20:]
    first, second = (
        select_by_gain(one, gold, result=result, budget=8)
        for one in (crowd.with_gold(None), crowd.with_gold(codes))
    )
    assert first.to_dict() == second.to_dict()
    assert first.evidence == ("answers" if with_result else "tests")


@pytest.mark.parametrize("with_result", [False, True])
def test_of_copies_one_is_chosen_before_all_others(with_result):
    crowd = crowd_of(["a=flip(0.1)", "b=copier(a)", "c=flip(0.25)", "d=flip(0.25)"])
    result = aggregate(crowd.with_gold(None), "ds", families={"a": "f", "b": "f"})
    team = select_by_gain(
        crowd, result=result if with_result else None, budget=4, strategy="top",
        families={"a": "f", "b": "f"},
    )  # fmt: skip
    ids = team.worker_ids.to_pylist()
    assert len(set(ids[:3]) & {"a", "b"}) == 1
    assert team.scores[3] == pytest.approx(0, abs=0.01)
    assert team.effective == pytest.approx(3)


def test_workers_who_leave_less_open_come_first():
    truth = draw_truth(200, seed=3)
    full = simulate_crowd(truth, ["a=flip(0.05)", "b=flip(0.05)", "c=flip(0.15)"], seed=3)
    tags = full.tagset.tags
    ids = full.item_ids.to_pylist()
    answers = full.latest
    rows = [
        {"item": ids[i], "worker": "abc"[w], "label": tags[c]}
        for i, w, c in zip(answers.item, answers.worker, answers.codes, strict=True)
        if (w < 2 and i < 100) or (w == 2 and i >= 60)
    ]
    crowd = goldspan.read_crowd(rows)
    gold = {ids[i]: tags[full.gold[i]] for i in range(60, 100)}
    team = select_by_gain(crowd, gold, budget=2, strategy="top")
    assert "c" in team.worker_ids.to_pylist()


def test_a_result_that_tells_the_gold_badly_is_left_aside():
    crowd = crowd_of(["flip(0.05) x3", "flip(0.75) x8"])
    gold = known(crowd, 30)
    result = aggregate(crowd.with_gold(None), "ds", families="none")
    team = select_by_gain(crowd, gold, result=result, budget=3)
    assert team.evidence == "tests"
    assert "tell the gold better" in team.notes[0]
    assert {"w1", "w2", "w3"} & set(team.worker_ids.to_pylist())


def test_money_is_not_overspent():
    crowd = crowd_of(["flip(0.1) x3", "flip(0.3) x6"])
    prices = ["0.30"] * 3 + ["0.05"] * 6
    team = select_by_gain(crowd, budget="0.45", prices=prices)
    assert 0 < team.price <= 450_000
    assert team.ratio is None
    assert not len(select_by_gain(crowd, budget="0.01", prices=prices))


def test_a_selected_team_is_the_beginning_of_the_top_one():
    crowd = crowd_of(["flip(0.1) x6", "flip(0.4) x6"])
    top = select_by_gain(crowd, budget=12, strategy="top")
    team = select_by_gain(crowd, budget=12)
    assert (
        team.index.tolist() == top.index[: len(team)].tolist() == team.ranked[: len(team)].tolist()
    )
    assert team.accuracy >= 0.99 * team.curve.max()


def test_nobody_is_chosen_where_all_guess():
    crowd = crowd_of(["flip(0.5) x5"], seed=2)
    team = select_by_gain(crowd, known(crowd, 8), budget=3)
    assert not len(team)
    assert str(team).startswith("Nobody was chosen:")
    assert team.to_dict()["accuracy"] is None
    assert select_by_gain(crowd, budget=0).why_nobody == "the budget is 0"


def test_what_cannot_be_is_refused():
    crowd = crowd_of(["flip(0.1) x3"])
    with pytest.raises(InputError, match="nothing to judge"):
        select_by_gain(crowd.with_gold(None), budget=2)
    with pytest.raises(UnknownNameError, match="strategy"):
        select_by_gain(crowd, budget=2, strategy="best")
    with pytest.raises(InputError, match="whole number of workers"):
        select_by_gain(crowd, budget=1.5)


@pytest.mark.parametrize("source", ["gold", "crowd", "both"])
def test_a_review_chooses_by_gain(source):
    crowd = crowd_of(["flip(0.1) x3", "eve=flip(0.5)"])
    found = review_workers(crowd, budget=3, score="gain", source=source)
    assert "eve" not in found.team.worker_ids.to_pylist()
    assert found.to_dict()["team"]["score"] == "gain"
    assert len(review_workers(crowd, score="gain", source=source, prices="0.05").team) >= 2


def test_tagged_text_has_teams_too():
    crowd = goldspan.read_crowd("examples/crowd.tsv")
    result = aggregate(crowd.with_gold(None), "ds")
    team = select_by_gain(crowd.with_gold(None), result=result, budget=3)
    assert "ana" in team.worker_ids.to_pylist()
    assert "gus" not in team.worker_ids.to_pylist()


def shuffled(crowd: goldspan.crowd.Crowd, seed: int) -> goldspan.crowd.Crowd:
    """Return the crowd with items and workers in another order."""
    rng = np.random.default_rng(seed)
    items, workers = rng.permutation(crowd.n_items), rng.permutation(crowd.n_workers)
    return crowd.select_items(items).select_workers(workers)


@pytest.mark.parametrize("with_result", [False, True])
@pytest.mark.parametrize("strategy", ["top", "selected"])
@pytest.mark.parametrize("families", [None, {"w1": "f", "w2": "f", "w5": "g", "w6": "g"}])
def test_the_order_of_rows_does_not_matter(with_result, strategy, families, monkeypatch):
    monkeypatch.setattr("goldspan.workers.gain.MOST_TOKENS", 80)  # so that tokens are drawn
    crowd = crowd_of(["flip(0.2) x4", "flip(0.3) x3", "copier(w1) x2"])
    gold = known(crowd, 15)
    teams = []
    for one in (crowd, shuffled(crowd, 1), shuffled(crowd, 2)):
        bare = one.with_gold(None)
        result = aggregate(bare, "ds", gold=one) if with_result else None
        for seed in (0, 1):
            team = select_by_gain(
                bare, gold, result=result, budget=6, strategy=strategy, families=families,
                random_state=seed,
            )  # fmt: skip
            teams.append((team.worker_ids.to_pylist(), team.scores, team.evidence))
    for n, (team, scores, evidence) in enumerate(teams):
        first = teams[n % 2]
        assert (team, evidence) == (first[0], first[2])
        assert scores == pytest.approx(first[1], abs=1e-6)


def test_the_order_of_rows_of_tagged_text_does_not_matter():
    crowd = goldspan.read_crowd("examples/crowd.tsv")
    orders = []
    for one in (crowd, shuffled(crowd, 3)):
        team = select_by_gain(one, budget=one.n_workers, strategy="top")
        orders.append(team.worker_ids.to_pylist())
    assert orders[0] == orders[1]


def test_of_equal_gains_the_id_decides():
    """Two who answer alike add the same: the one drawn by id joins first, wherever it stands."""
    rows = [
        {"item": f"i{n}", "worker": name, "label": "ab"[n % 2]}
        for n in range(20)
        for name in ("x", "y", "z")
    ]
    gold = {f"i{n}": "ab"[n % 2] for n in range(20)}
    orders = [
        select_by_gain(goldspan.read_crowd(own), gold, budget=3, strategy="top").worker_ids
        for own in (rows, rows[::-1])
    ]
    assert orders[0].to_pylist() == orders[1].to_pylist()
