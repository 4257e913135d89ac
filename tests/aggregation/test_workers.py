"""What a result says about its workers, counted again by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import goldspan
from aggregation.bsc import oracle
from goldspan.aggregation.workers import confusion_counts, interval, worker_table
from goldspan.spans import Codec

CODEC = Codec.from_types(["X"], "BIO")


def made(seed=0):
    rng = np.random.default_rng(seed)
    items = oracle.random_items(rng, CODEC, n_items=15, n_workers=4, longest=5)
    crowd = oracle.crowd_of(CODEC, items, workers=5)
    probs = rng.dirichlet(np.ones(3), size=crowd.n_tokens).astype(np.float32)
    return items, crowd, probs


def joint_of(items, crowd, probs, worker):
    joint = np.zeros((3, 3))
    for n, item in enumerate(items):
        for t, code in enumerate(item.get(worker, [])):
            if code >= 0:
                joint[:, code] += probs[crowd.offsets[n] + t]
    return joint


@pytest.mark.parametrize("seed", range(4))
def test_the_table_of_workers_equals_a_count_by_hand(seed):
    items, crowd, probs = made(seed)
    codes = probs.argmax(axis=1).astype(np.int16)
    table = worker_table(crowd, codes, probs).to_pydict()
    for k in range(5):
        joint = joint_of(items, crowd, probs, k)
        total = joint.sum()
        np.testing.assert_allclose(confusion_counts(crowd, probs, k), joint, atol=1e-5)
        assert table["worker"][k] == f"w{k}"
        assert table["answers"][k] == sum(k in item for item in items)
        assert table["labels"][k] == round(total)
        if not total:
            assert all(np.isnan(table[c][k]) for c in ("accuracy", "low", "high", "information"))
            continue
        assert table["accuracy"][k] == pytest.approx(np.trace(joint) / total, abs=1e-6)
        p = joint / total
        outer = p.sum(axis=1, keepdims=True) * p.sum(axis=0, keepdims=True)
        bits = (p[p > 0] * np.log2(p[p > 0] / outer[p > 0])).sum()
        occupied = joint >= 0.5  # Miller and Madow: entropies are taken for too small
        sides = (joint.sum(axis=1) >= 0.5).sum() + (joint.sum(axis=0) >= 0.5).sum()
        bits += (sides - occupied.sum() - 1) / (2 * np.log(2) * total)
        assert table["information"][k] == pytest.approx(max(bits, 0), abs=1e-5)
        beta = stats.beta(np.trace(joint) + 0.5, total - np.trace(joint) + 0.5)
        assert table["low"][k] == pytest.approx(beta.ppf(0.025), abs=1e-5)
        assert table["high"][k] == pytest.approx(beta.ppf(0.975), abs=1e-5)
        assert table["low"][k] < table["accuracy"][k] < table["high"][k]


def test_the_interval_of_nobody_is_open_and_rounding_errors_do_no_harm():
    low, high = interval(np.array([0.0, 5.0000001, -1e-9]), np.array([0, 5, 5]))
    assert np.isnan(low[0])
    assert np.isnan(high[0])
    assert (low[1:] >= 0).all()
    assert (high[1:] <= 1).all()


def test_a_constant_worker_tells_nothing_and_a_perfect_one_tells_all():
    items = [{0: [n % 3 % 2], 1: [n % 3 % 2], 2: [0]} for n in range(60)]
    crowd = oracle.crowd_of(Codec.from_types(["a", "b"], "PLAIN"), items)
    truth = np.array([n % 3 % 2 for n in range(60)])
    probs = np.eye(2, dtype=np.float32)[truth]
    bits = worker_table(crowd, truth.astype(np.int16), probs)["information"].to_pylist()
    share = truth.mean()
    entropy = -share * np.log2(share) - (1 - share) * np.log2(1 - share)
    entropy += 1 / (2 * np.log(2) * 60)  # Miller and Madow
    assert bits == pytest.approx([entropy, entropy, 0], abs=1e-9)


@pytest.mark.parametrize("method", ["ds", "mace", "bsc-seq"])
def test_the_better_worker_stands_higher(method):
    rng = np.random.default_rng(1)
    codec = Codec.from_types(["a", "b", "c"], "PLAIN")
    truth = rng.integers(3, size=200)
    rates = [0.9, 0.75, 0.6, 0.34]
    items = [
        {
            k: [int(j if rng.random() < p else (j + rng.integers(1, 3)) % 3)]
            for k, p in enumerate(rates)
        }
        for j in truth
    ]
    table = goldspan.aggregate(oracle.crowd_of(codec, items), method).workers.to_pydict()
    assert table["accuracy"] == sorted(table["accuracy"], reverse=True)
    assert table["information"] == sorted(table["information"], reverse=True)
    assert "span_agreement" not in table
