"""Crowds of single labels as dense tables, for tests that compute everything a second time."""

from __future__ import annotations

import numpy as np

from aggregation.bsc import oracle
from goldspan.spans import Codec


def codec_of(n_labels):
    return Codec.from_types([f"l{j}" for j in range(n_labels)], "PLAIN")


def draw(seed=0, *, n_items=40, n_workers=7, n_labels=3, absent=0.3, right=(0.4, 0.95)):
    """Draw labels [N, K], -1 where a worker gave none, every item with at least one; the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_labels, size=n_items)
    skill = rng.uniform(*right, size=n_workers)
    wrong = (truth[:, None] + rng.integers(1, n_labels, size=(n_items, n_workers))) % n_labels
    labels = np.where(rng.random(wrong.shape) < skill, truth[:, None], wrong)
    labels[rng.random(labels.shape) < absent] = -1
    empty = np.flatnonzero((labels < 0).all(axis=1))
    labels[empty, 0] = truth[empty]
    return labels, truth


def crowd_of(labels, n_labels=3):
    items = [{k: [int(c)] for k, c in enumerate(row) if c >= 0} for row in labels]
    return oracle.crowd_of(codec_of(n_labels), items, workers=labels.shape[1])


def gold_of(crowd, truth, items):
    """Return the crowd with gold at some items only."""
    known = np.full(crowd.n_items, -1, np.int16)
    known[items] = truth[items]
    return crowd.with_gold(known)


def weighted_sums(labels, weight, n_labels=3):
    """Sum the workers' weights [K] per item and label, [N, L]."""
    found = np.zeros((len(labels), n_labels))
    for n, row in enumerate(labels):
        for k, label in enumerate(row):
            if label >= 0:
                found[n, label] += weight[k]
    return found
