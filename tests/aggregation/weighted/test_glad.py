"""GLAD: its objective against enumeration, its slopes, and parameters that are found again."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import expit, softmax
from scipy.stats import norm, spearmanr

import goldspan
from aggregation.weighted import dense
from goldspan.aggregation import get_aggregator, glad
from goldspan.aggregation.base import FitContext
from goldspan.aggregation.weighted import Judged, TokenLabels, VoteInputs


def model_of(labels, n_labels, known=None, past=None):
    crowd = dense.crowd_of(labels, n_labels)
    past = past or Judged.nothing(labels.shape[1])
    return glad._Model(VoteInputs(crowd, TokenLabels.of(crowd), known, past, FitContext()))


def brute_objective(labels, n_labels, alpha, ease, known, past):
    """Sum over every truth of every item: ln P(labels, alpha, ln beta), without constants."""
    total = norm.logpdf(np.concatenate([alpha, ease]), 1, 1).sum()
    total += (len(alpha) + len(ease)) * np.log(2 * np.pi) / 2
    for n, row in enumerate(labels):
        mass = 0.0
        for truth in range(n_labels) if known[n] < 0 else [known[n]]:
            p = 1.0
            for k in np.flatnonzero(row >= 0):
                hit = expit(alpha[k] * np.exp(ease[n]))
                p *= hit if row[k] == truth else (1 - hit) / (n_labels - 1)
            mass += p
        total += np.log(mass)
    usual = expit(alpha * np.e)
    wrong = past.total - past.right
    return total + (past.right * np.log(usual) + wrong * np.log(1 - usual)).sum()


@pytest.mark.parametrize("n_labels", [2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_the_objective_is_the_sum_over_every_truth(n_labels, seed):
    labels, truth = dense.draw(seed, n_items=6, n_workers=4, n_labels=n_labels)
    rng = np.random.default_rng(seed)
    alpha, ease = rng.normal(size=4), rng.normal(size=6)
    known = np.where(np.arange(6) < 2, truth, -1).astype(np.int16)
    past = Judged(np.array([3.0, 0, 1.5, 0]), np.array([4.0, 0, 2, 3]))
    found = model_of(labels, n_labels, known, past).expect(alpha, ease)[2]
    wanted = brute_objective(labels, n_labels, alpha, ease, known, past)
    assert found == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_slopes_are_finite_differences(seed):
    rng = np.random.default_rng(seed)
    right, power, by = rng.random(5), rng.normal(size=5), rng.normal(size=5)
    _, slope, bend = glad._likelihood(right, power, by)
    h = 1e-6
    up, down = (glad._likelihood(right, power + d * by, by)[0] for d in (h, -h))
    np.testing.assert_allclose(slope, (up - down) / (2 * h), rtol=0, atol=1e-8)
    assert (bend > 0).all()
    model = model_of(
        *(dense.draw(seed, n_items=3, n_workers=4)[0], 3),
        past=Judged(np.array([3.0, 0, 1, 2]), np.array([4.0, 0, 2, 2])),
    )
    alpha = rng.normal(size=4)
    up, down = (model._past(alpha + d)[0] for d in (h, -h))
    np.testing.assert_allclose(model._past(alpha)[1], (up - down) / (2 * h), rtol=0, atol=1e-7)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("absent", [0.0, 0.6])
def test_the_objective_never_falls_and_ends_at_a_maximum(seed, absent):
    labels, _ = dense.draw(seed, absent=absent)
    result = goldspan.aggregate(dense.crowd_of(labels), "glad", tol=1e-12, max_iter=500)
    assert (np.diff(result.trace) >= -1e-9).all()
    assert result.converged
    alpha = result.workers.column("weight").to_numpy()
    ease = -np.log(result.item_columns["difficulty"])
    known, past = np.full(len(labels), -1), Judged.nothing(labels.shape[1])
    top = brute_objective(labels, 3, alpha, ease, known, past)
    assert top == pytest.approx(result.trace[-1], abs=1e-6)
    for at in itertools.chain(range(3)):
        for step in (-0.05, 0.05):
            aside = alpha.copy()
            aside[at] += step
            assert brute_objective(labels, 3, aside, ease, known, past) < top


def test_abilities_and_difficulties_are_found_again():
    rng = np.random.default_rng(0)
    n_items, n_workers, n_labels = 300, 40, 3
    alpha, ease = rng.normal(1, 1, n_workers), rng.normal(0, 1, n_items)
    truth = rng.integers(n_labels, size=n_items)
    wrong = (truth[:, None] + rng.integers(1, n_labels, size=(n_items, n_workers))) % n_labels
    hit = rng.random(wrong.shape) < expit(alpha * np.exp(ease)[:, None])
    labels = np.where(hit, truth[:, None], wrong)
    result = goldspan.aggregate(dense.crowd_of(labels), "glad")
    assert spearmanr(result.workers.column("weight").to_numpy(), alpha).statistic > 0.95
    assert spearmanr(-np.log(result.item_columns["difficulty"]), ease).statistic > 0.6
    assert (result.codes == truth).mean() > 0.9


def test_scores_give_the_posterior():
    labels, _ = dense.draw(4, n_items=5, n_workers=4)
    rng = np.random.default_rng(1)
    alpha, ease = rng.normal(size=4), rng.normal(size=5)
    scores, probs, _ = model_of(labels, 3).expect(alpha, ease)
    np.testing.assert_allclose(probs, softmax(scores, axis=1), rtol=0, atol=1e-12)
    power = np.exp(ease)[:, None] * alpha + np.log(2)
    for n, row in enumerate(labels):
        wanted = [power[n][row == j].sum() for j in range(3)]
        np.testing.assert_allclose(scores[n], wanted, rtol=0, atol=1e-9)


def test_difficulty_is_written_with_the_labels(tmp_path):
    crowd = dense.crowd_of(dense.draw(0, n_items=4)[0])
    result = get_aggregator("glad").fit(crowd).result_
    result.write(tmp_path / "gold.csv")
    header, *rows = (tmp_path / "gold.csv").read_text().splitlines()
    assert header == "item,label,confidence,difficulty,text"
    found = [float(row.split(",")[3]) for row in rows]
    assert found == pytest.approx(result.item_columns["difficulty"].tolist())
    assert result.to_arrow().column("difficulty").to_pylist() == pytest.approx(found)
