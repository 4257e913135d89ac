"""What an answer about a sequence gains: against sums over all labels and all answers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import goldspan
from goldspan.workers import stopping
from goldspan.workers.stopping import learn_habits, sequence_gain, token_gain

SIZE, WORKERS = 4, 2
ROWS = (("O", "B-X", "I-X", "O"), ("O", "O", "B-X", "I-X"), ("B-X", "O", "O", "O"))


@pytest.fixture
def result():
    """Three sentences of four tokens; Ann marks spans, Bob one of them."""
    marks = {"ann": ROWS, "bob": (ROWS[1], ROWS[1], ("O",) * SIZE)}
    lines = ["doc\tsent\ttoken\tann\tbob"]
    for n in range(len(ROWS)):
        rows = zip(marks["ann"][n], marks["bob"][n], strict=True)
        lines += [f"d\t{n}\tw{t}\t{a}\t{b}" for t, (a, b) in enumerate(rows)] + [""]
    crowd = goldspan.read_crowd("\n".join(lines).encode())
    return goldspan.aggregate(crowd, "bsc-seq")


def case(result, seed):
    """Return a chain's chance of all labels of every item, and tables with memory."""
    rng, n_labels = np.random.default_rng(seed), len(result.tagset.tags)
    every = np.array(list(itertools.product(range(n_labels), repeat=SIZE)))
    evidence = rng.uniform(0.2, 1, (len(ROWS), SIZE, n_labels))
    steps = stopping._steps(result)[every[:, :-1], every[:, 1:]].prod(axis=1)
    paths = evidence[:, np.arange(SIZE), every].prod(axis=2) * steps
    tables = rng.dirichlet(np.ones(n_labels), (WORKERS, 2, n_labels))
    return every, paths / paths.sum(axis=1, keepdims=True), tables


def squares(every, paths):
    """Return the sum of p^2 over tokens and labels, of every row of chances of paths."""
    shares = np.stack([paths @ (every == j) for j in range(every.max() + 1)])
    return (shares**2).sum(axis=(0, 2))


def brute_gain(result, every, paths, table):
    """Return the gain of one worker about one item from the definition."""
    found = -squares(every, paths[None])[0]
    for answer in every:
        inside = np.concatenate([[0], answer[:-1] != result.tagset.outside]).astype(int)
        joint = paths * table[inside, every, answer].prod(axis=1)
        found += joint.sum() * squares(every, joint[None] / joint.sum())[0]
    return found


def probs_of(every, paths):
    shares = [(paths @ (every == j)).reshape(-1) for j in range(every.max() + 1)]
    return np.stack(shares, axis=1)


@pytest.mark.parametrize("seed", range(3))
def test_many_answers_come_close_to_the_sum_over_all_labels_and_answers(monkeypatch, result, seed):
    every, paths, tables = case(result, seed)
    pairs = np.array(list(itertools.product(range(len(ROWS)), range(WORKERS))))
    expected = [brute_gain(result, every, paths[i], tables[w]) for i, w in pairs]
    probs = probs_of(every, paths)
    few = [sequence_gain(result, probs, tables, *pairs.T, n) for n in range(400)]
    assert np.mean(few, axis=0) == pytest.approx(expected, abs=0.03)
    monkeypatch.setattr(stopping, "PATHS", 300_000)
    found = sequence_gain(result, probs, tables, *pairs.T, seed)
    assert found == pytest.approx(expected, abs=0.004)


def test_a_token_alone_gains_as_a_single_label_does(monkeypatch, result):
    every, paths, tables = case(result, 0)
    probs = probs_of(every, paths)
    probs[:] = np.eye(len(probs.T))[result.tagset.outside]
    probs[SIZE] = [0.5, 0.3, 0.2]
    monkeypatch.setattr(stopping, "PATHS", 20_000)
    found = sequence_gain(result, probs, tables, np.array([1, 0]), np.array([0, 0]), 0)
    assert found == pytest.approx([token_gain(probs[[SIZE]], tables[0, 0])[0], 0], abs=0.005)


def test_gains_are_of_seed_item_and_worker_whatever_the_other_pairs(result):
    every, paths, tables = case(result, 1)
    probs, pairs = probs_of(every, paths), np.array([[2, 1], [0, 0], [2, 0], [0, 1]])
    whole = sequence_gain(result, probs, tables, *pairs.T, 7)
    some = sequence_gain(result, probs, tables, *pairs[[2, 0]].T, 7)
    assert some.tolist() == whole[[2, 0]].tolist()
    assert (sequence_gain(result, probs, tables, *pairs.T, 8) != whole).all()


def test_habits_with_memory_know_where_the_last_own_label_was(result):
    habits = learn_habits(result, memory=True)
    tags = result.tagset.index
    begin, inside, outside = tags["B-X"], tags["I-X"], tags["O"]
    assert habits.tables.shape == (2, 2, 3, 3)
    # Nobody goes on with a span that they did not begin
    assert habits.mean[0, inside, inside] < habits.mean[1, inside, inside]
    plain = learn_habits(result)
    counts = habits.tables[0] / habits.tables[0].sum(axis=-1, keepdims=True)
    assert counts == pytest.approx(habits.tables[0])
    assert plain.tables[0, begin, begin] > plain.tables[1, begin, begin]
    assert habits.tables[0, 0, outside, outside] > 0.5
