"""Dawid and Skene's family against dense NumPy, against BSC on single labels, and a peer."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import digamma

import goldspan
from aggregation.bsc import oracle
from goldspan.spans import Codec, validate

J = 4
CODEC = Codec.from_types([f"l{j}" for j in range(J)], "PLAIN")


def simulated(seed=0, *, n_items=60, n_workers=6, absent=0.3, right=0.7):
    """Draw labels [N, K], -1 where a worker gave none; and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(J, size=n_items)
    tables = rng.dirichlet(np.ones(J), size=(n_workers, J)) * (1 - right) + right * np.eye(J)
    labels = np.array([[rng.choice(J, p=tables[k, j]) for k in range(n_workers)] for j in truth])
    labels[rng.random(labels.shape) < absent] = -1
    labels[np.arange(n_items), rng.integers(n_workers, size=n_items)] = truth
    return labels, truth


def crowd_of(labels):
    items = [{k: [int(c)] for k, c in enumerate(row) if c >= 0} for row in labels]
    return oracle.crowd_of(CODEC, items, workers=labels.shape[1])


def dense_em(labels, *, off, bonus, prior, n_steps, bayes, pooled=False):
    """Dawid-Skene, one-coin and IBCC on a table with every cell; gives P(truth) and its steps."""
    given = (labels[..., None] == np.arange(J)).astype(float)  # [N, K, label]
    r = given.sum(axis=1)
    r /= r.sum(axis=1, keepdims=True)
    history = []
    for _ in range(n_steps):
        counts = np.einsum("nj,nki->kji", r, given)
        shares = prior + r.sum(axis=0)
        if pooled:
            hits = np.trace(counts, axis1=1, axis2=2)
            good = off + bonus + hits
            bad = (J - 1) * off + counts.sum(axis=(1, 2)) - hits
            p = good / (good + bad)
            table = np.tile(((1 - p) / (J - 1))[:, None, None], (1, J, J))
            table[:, np.arange(J), np.arange(J)] = p[:, None]
            logs = np.log(table)
        else:
            alpha = off + bonus * np.eye(J) + counts
            total = alpha.sum(axis=2, keepdims=True)
            logs = digamma(alpha) - digamma(total) if bayes else np.log(alpha / total)
        log_p = digamma(shares) - digamma(shares.sum()) if bayes else np.log(shares / shares.sum())
        scores = log_p + np.einsum("kji,nki->nj", logs, given)
        scores -= scores.max(axis=1, keepdims=True)
        r = np.exp(scores)
        r /= r.sum(axis=1, keepdims=True)
        history.append(r)
    return history


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("off", "bonus", "prior"), [(1.0, 1.0, 1.0), (0.1, 0.0, 0.5), (2.0, 9.0, 3.0)]
)
@pytest.mark.parametrize("method", ["ds", "ibcc", "one-coin"])
def test_the_engine_equals_a_direct_dense_em(method, seed, off, bonus, prior):
    labels, _ = simulated(seed)
    steps = dense_em(
        labels, off=off, bonus=bonus, prior=prior, n_steps=12, bayes=method == "ibcc",
        pooled=method == "one-coin",
    )  # fmt: skip
    for n in (1, 2, 12):
        result = goldspan.aggregate(
            crowd_of(labels), method, alpha0=off, epsilon0=bonus, truth_prior=prior, tol=0,
            max_iter=n,
        )  # fmt: skip
        assert len(result.trace) == n or result.converged  # to the last bit
        np.testing.assert_allclose(result.token_probs, steps[n - 1], rtol=0, atol=1e-7)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("chained", "alone"), [("bsc-cm", "ibcc"), ("bsc-mace", "mace")])
def test_on_items_of_one_token_the_chain_changes_nothing(chained, alone, seed):
    crowd = crowd_of(simulated(seed)[0])
    options = {"alpha0": 1.0, "epsilon0": 2.0, "max_iter": 5, "tol": 0, "n_starts": 1}
    options["truth_prior"] = 1.0
    one = goldspan.aggregate(crowd, chained, **options)
    two = goldspan.aggregate(crowd, alone, **options)
    np.testing.assert_allclose(one.trace, two.trace, rtol=0, atol=1e-8)
    np.testing.assert_allclose(one.token_probs, two.token_probs, rtol=0, atol=1e-7)
    a, b = one.memory.sums.counts, two.memory.sums.counts
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-8)


def test_dawid_and_skene_of_crowd_kit_agree_on_dense_answers():
    """They smooth nothing, we do: on a table without gaps little is left of the difference."""
    peer = pytest.importorskip("crowdkit.aggregation")
    pd = pytest.importorskip("pandas")
    labels, truth = simulated(1, n_items=400, n_workers=7, absent=0, right=0.6)
    frame = pd.DataFrame(
        [(n, f"w{k}", CODEC.tags[c]) for n, row in enumerate(labels) for k, c in enumerate(row)],
        columns=["task", "worker", "label"],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pandas, about the peer
        theirs = peer.DawidSkene(n_iter=200, tol=1e-9).fit(frame)
    ours = goldspan.aggregate(
        crowd_of(labels), "ds", alpha0=0.1, epsilon0=0.0, truth_prior=0.001, tol=1e-10,
        max_iter=500,
    )  # fmt: skip
    probs = theirs.probas_.loc[range(400), list(CODEC.tags)].to_numpy()
    np.testing.assert_allclose(ours.token_probs, probs, atol=0.05)
    assert np.abs(ours.token_probs - probs).mean() < 0.002
    assert (ours.codes == probs.argmax(axis=1)).mean() > 0.99
    assert (ours.codes == truth).mean() > 0.9


def test_smoothing_keeps_sparse_workers_above_their_majority():
    labels, truth = simulated(2, n_items=500, n_workers=60, absent=0.94, right=0.55)
    ds = goldspan.aggregate(crowd_of(labels), "ds")
    vote = goldspan.aggregate(crowd_of(labels), "mv-token")
    assert (ds.codes == truth).mean() >= (vote.codes == truth).mean() - 0.01


@pytest.mark.parametrize("method", ["ds", "ibcc", "one-coin", "mace"])
def test_on_tagged_tokens_every_token_is_alone_and_the_labels_are_legal(method):
    codec = Codec.from_types(["X"], "BIO")
    rng = np.random.default_rng(0)
    items = oracle.random_items(rng, codec, n_items=20, n_workers=4, longest=5)
    result = goldspan.aggregate(oracle.crowd_of(codec, items, workers=4), method)
    assert not any(validate(tags, "BIO") for tags in result.tags)
    assert result.token_probs[result.crowd.offsets[:-1], codec.tags.index("I-X")].max() > 0
