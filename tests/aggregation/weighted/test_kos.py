"""KOS against loops over messages, and where its weights end."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from aggregation.weighted import dense
from goldspan.aggregation import get_aggregator
from goldspan.aggregation.weighted import Ballots


def slow_scores(labels, label, start, n_rounds, known=None, extra=None):
    """Run the messages of one label against the rest by loops; shares of weight [N]."""
    edges = [(n, k) for n, row in enumerate(labels) for k in np.flatnonzero(row >= 0)]
    sign = {(n, k): 1 if labels[n, k] == label else -1 for n, k in edges}
    y = dict(start)
    for _ in range(n_rounds):
        x = {
            (n, k): sum(sign[m, j] * y[m, j] for m, j in edges if m == n and j != k)
            for n, k in edges
        }
        size = np.sqrt(np.mean([v**2 for v in x.values()]))
        x = {e: v / size for e, v in x.items()}
        if known is not None:
            x |= {(n, k): 1 if known[n] == label else -1 for n, k in edges if known[n] >= 0}
        y = {
            (n, k): sum(sign[m, j] * x[m, j] for m, j in edges if j == k and m != n)
            + (0 if extra is None else extra[k])
            for n, k in edges
        }
        size = np.sqrt(np.mean([v**2 for v in y.values()]))
        y = {e: v / size for e, v in y.items()}
    total = np.zeros(len(labels))
    whole = np.zeros(len(labels))
    for n, k in edges:
        total[n] += sign[n, k] * y[n, k]
        whole[n] += abs(y[n, k])
    return total / whole


def first_messages(crowd, seed=0):
    ballots = Ballots.of(crowd)
    drawn = np.random.default_rng(seed).normal(1, 1, len(ballots))
    edges = zip(ballots.token.tolist(), ballots.worker.tolist(), strict=True)
    return dict(zip(edges, drawn.tolist(), strict=True))


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("seed", range(2))
def test_messages_equal_those_of_loops(n_labels, seed):
    labels, _ = dense.draw(seed, n_items=12, n_workers=5, n_labels=n_labels)
    crowd = dense.crowd_of(labels, n_labels)
    start = first_messages(crowd)
    result = goldspan.aggregate(crowd, "kos", max_iter=4, tol=0)
    scores = np.stack([slow_scores(labels, j, start, 4) for j in range(n_labels)], axis=1)
    share = (1 + scores) / 2
    share[share.sum(axis=1) < 1e-12] = 1  # all weight against every label
    np.testing.assert_allclose(result.token_probs, share / share.sum(1, keepdims=True), atol=1e-6)
    np.testing.assert_array_equal(result.codes, scores.argmax(axis=1))


def test_known_items_send_their_label_and_judged_labels_count_as_known_items():
    labels, truth = dense.draw(3, n_items=24, n_workers=5, n_labels=2)
    old, crowd = dense.crowd_of(labels[:12], 2), dense.crowd_of(labels[12:], 2)
    past = get_aggregator("mv-token").fit(old, dense.gold_of(old, truth[:12], range(12))).result_
    given = labels[:12] >= 0
    right = ((labels[:12] == truth[:12, None]) & given).sum(axis=0)
    known = np.where(np.arange(12) < 6, truth[12:], -1)
    gold = dense.gold_of(crowd, truth[12:], range(6))
    found = get_aggregator("kos", max_iter=3, tol=0, history=past).fit(crowd, gold).result_
    extra = 2 * right - given.sum(axis=0)
    scores = slow_scores(labels[12:], 0, first_messages(crowd), 3, known, extra)
    np.testing.assert_allclose(found.token_probs[6:, 0], (1 + scores[6:]) / 2, atol=1e-6)


def test_a_thousand_rounds_overflow_nothing():
    crowd = dense.crowd_of(dense.draw(0, n_items=200, n_workers=30, n_labels=2)[0], 2)
    result = goldspan.aggregate(crowd, "kos", max_iter=1000, tol=0)
    assert np.isfinite(result.token_probs).all()
    assert np.isfinite(result.workers.column("weight").to_numpy()).all()


def test_workers_with_one_answer_each_are_counted_as_votes():
    crowd = goldspan.read_crowd(b"task,worker,label\n1,a,x\n1,b,x\n1,c,y\n2,d,y\n")
    assert goldspan.aggregate(crowd, "kos").labels == ["x", "y"]


def test_adversaries_have_negative_weights_and_their_votes_are_turned_round():
    labels, truth = dense.draw(1, n_items=300, n_workers=9, n_labels=2, right=(0.85, 0.95))
    labels[:, 7:] = np.where(labels[:, 7:] >= 0, 1 - labels[:, 7:], -1)
    result = goldspan.aggregate(dense.crowd_of(labels, 2), "kos")
    weight = result.workers.column("weight").to_numpy()
    assert weight[7:].max() < 0 < weight[:7].min()
    assert (result.codes == truth).mean() > 0.97
    assert result.converged


def test_a_seed_gives_the_same_messages():
    crowd = dense.crowd_of(dense.draw(0, n_items=20, n_labels=2)[0], 2)
    one, two, other = (
        goldspan.aggregate(crowd, "kos", random_state=s, max_iter=2).token_probs for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, two)
    assert np.abs(one - other).max() > 1e-3
