"""What another answer is worth, against sums over everything that can happen."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from goldspan.workers.stopping import (
    STRENGTH,
    item_gain,
    learn_habits,
    one_coin,
    pair_gain,
    posterior_of,
    token_gain,
    worth,
)


def slow_gain(p, table):
    """Enumerate the labels that may be given: how much likelier a draw from p becomes right."""
    rise = -sum(p[j] ** 2 for j in range(len(p)))
    for c in range(len(p)):
        said = sum(p[j] * table[j, c] for j in range(len(p)))
        if said > 0:
            after = [p[j] * table[j, c] / said for j in range(len(p))]
            rise += said * sum(x**2 for x in after)
    return rise


def drawn(seed, n, n_labels):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(n_labels, 0.4), n)
    tables = rng.dirichlet(np.full(n_labels, 0.7), (n, n_labels))
    return probs, tables


@pytest.mark.parametrize("n_labels", [1, 2, 3, 7])
def test_the_gain_is_that_of_enumerating_the_answers(n_labels):
    probs, tables = drawn(n_labels, 40, n_labels)
    found = token_gain(probs, tables)
    slow = [slow_gain(p, t) for p, t in zip(probs, tables, strict=True)]
    assert found == pytest.approx(slow, abs=1e-9)


def test_who_answers_without_looking_tells_nothing():
    probs, _ = drawn(0, 20, 3)
    same = np.tile([0.7, 0.2, 0.1], (3, 1))
    assert token_gain(probs, same) == pytest.approx(np.zeros(20), abs=1e-12)


def test_a_sure_item_has_nothing_to_gain():
    assert token_gain(np.array([[1.0, 0.0]]), one_coin(0.8, 2)).tolist() == [0.0]


def test_an_answer_that_cannot_turn_the_label_over_is_still_worth_something():
    p = np.array([0.95, 0.05])
    table = one_coin(0.8, 2)
    joint = p[:, None] * table
    assert joint.max(axis=0).sum() == pytest.approx(p.max())  # no more right labels after one
    assert token_gain(p[None], table)[0] > 0.005


def test_the_gain_of_an_item_is_the_sum_over_its_tokens():
    probs, tables = drawn(5, 9, 3)
    offsets = np.array([0, 2, 2, 9])
    slow = [slow_gain(p, tables[0]) for p in probs]
    assert item_gain(probs, offsets, tables[0]) == pytest.approx(
        [sum(slow[:2]), 0, sum(slow[2:])], abs=1e-9
    )


@pytest.mark.parametrize("block", [1, 30, 1 << 20])
def test_the_gain_of_pairs_does_not_depend_on_the_size_of_blocks(monkeypatch, block):
    monkeypatch.setattr("goldspan.workers.stopping._BLOCK", block)
    probs, tables = drawn(6, 12, 3)
    offsets = np.array([0, 4, 4, 5, 12])
    item, worker = np.array([3, 0, 1, 2, 0, 3]), np.array([0, 1, 2, 3, 1, 2])
    slow = [
        sum(slow_gain(p, tables[k]) for p in probs[offsets[i] : offsets[i + 1]])
        for i, k in zip(item, worker, strict=True)
    ]
    assert pair_gain(probs, offsets, tables, item, worker) == pytest.approx(slow, abs=1e-9)
    assert item_gain(probs, offsets, tables[0])[3] == pytest.approx(slow[0], abs=1e-9)


@pytest.fixture(scope="module")
def crowd():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, 120)
    right = {"good": 0.95, "fair": 0.7, "spam": None, "more": 0.8}
    lines = ["task,worker,label"]
    for name, chance in right.items():
        for i, t in enumerate(truth):
            hit = chance is not None and rng.random() < chance
            label = t if hit else 0 if chance is None else (t + rng.integers(1, 3)) % 3
            lines.append(f"q{i},{name},{label}")
    return goldspan.read_crowd("\n".join(lines).encode())


def test_habits_are_the_results_confusions_with_some_of_the_mean_worker(crowd):
    result = goldspan.aggregate(crowd, "ds")
    habits = learn_habits(result)
    counts = np.stack([result.confusion(k) for k in range(crowd.n_workers)])
    mean = counts.sum(axis=0) + 0.5 + np.eye(3)
    mean /= mean.sum(axis=1, keepdims=True)
    expected = counts + STRENGTH * mean
    expected /= expected.sum(axis=2, keepdims=True)
    assert habits.mean == pytest.approx(mean, abs=1e-9)
    assert habits.tables == pytest.approx(expected, abs=1e-6)


def test_workers_are_ranked_by_what_they_tell(crowd):
    result = goldspan.aggregate(crowd, "ds")
    habits = learn_habits(result)
    found = worth(habits, np.full((1, 3), 1 / 3))
    names = np.array(crowd.worker_ids.to_pylist())
    assert names[np.argsort(-found)].tolist() == ["good", "more", "fair", "spam"]
    assert found[names == "spam"] < 0.1 * found.max()


def test_where_nobody_answered_the_labels_shares_are_the_posterior(crowd):
    from dataclasses import replace

    part = replace(crowd, answers=crowd.answers.take(crowd.answers.item > 0))
    result = goldspan.aggregate(part, "ds")
    habits = learn_habits(result)
    probs = posterior_of(result, habits)
    assert probs[0] == pytest.approx(habits.shares)
    assert probs.sum(axis=1) == pytest.approx(np.ones(120))


def test_a_single_label_makes_a_table_of_ones():
    assert one_coin(0.8, 1).tolist() == [[1.0]]
    assert one_coin(0.7, 4).sum(axis=1) == pytest.approx(np.ones(4))
