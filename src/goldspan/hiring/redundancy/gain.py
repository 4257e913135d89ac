"""What another answer is worth: how much surer it is expected to make an item's labels.

A worker labels c where the truth is j with chance pi(j, c). With the posterior p of a token, his
label is c with chance q_c = sum_j p_j pi(j, c), and the posterior is then p_j pi(j, c) / q_c. The
gain is the expected rise of G(p) = sum_j p_j^2, the chance that a label drawn from the posterior is
right (the fall of Gini's impurity), summed over the tokens of the item:

    gain = sum_c (1 / q_c) sum_j (p_j pi(j, c))^2 - sum_j p_j^2.

The rise of max_j p_j, the expected number of right labels, would be nearer to the goal, but is 0
wherever no single answer can turn the label over: asking by it stalls on items that need two more.
The fall of entropy does not stall either; it orders items as well, and finds worse workers while
few answers are there (docs/redundancy.md has the trial).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregate.consensus import Consensus
from goldspan.crowd import Crowd

STRENGTH = 10.0
"""So many answers of the mean worker are added to every row of a worker's own."""
SAMPLE = 50
"""Tokens by which workers are ranked before every item looks at the best of them."""
_SMOOTH = 0.5
"""Pseudo-count of every label in the mean worker's rows; the right one has one more."""
_BLOCK = 1 << 20
"""Numbers that are in memory at once."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Habits:
    """What workers answer to every truth.

    Attributes:
        tables: float64 [n_workers, J, J]: chance of label c where the truth is j.
        mean: float64 [J, J], the mean worker: what is expected of one who is not known.
        shares: float64 [J], how frequent every label is: the posterior where nobody answered.
    """

    tables: Floats
    mean: Floats
    shares: Floats


def learn_habits(result: Consensus, *, strength: float = STRENGTH) -> Habits:
    r"""Learn from a result what its workers answer to every truth.

    Args:
        result: Its probabilities stand for the truth.
        strength: Answers of the mean worker that are added to every row.

    Returns:
        A table per worker of the result's crowd.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"task,worker,label\n1,a,x\n1,b,x\n2,a,y\n2,b,y\n2,c,x\n")
    >>> habits = learn_habits(goldspan.aggregate(crowd, "one-coin"))
    >>> bool(habits.tables[0, 0, 0] > habits.tables[2, 1, 1])  # a is better than c
    True
    """
    crowd, probs = result.crowd, result.token_probs
    n_labels = probs.shape[1]
    counts = _confusions(crowd, probs)
    mean = counts.sum(axis=0) + _SMOOTH + np.eye(n_labels)
    mean /= mean.sum(axis=1, keepdims=True)
    tables = counts + strength * mean
    tables /= tables.sum(axis=2, keepdims=True)
    shares = probs.sum(axis=0, dtype=np.float64) + 1.0
    return Habits(tables, mean, shares / shares.sum())


def one_coin(right: float, n_labels: int) -> Floats:
    """Give the table of a worker who is right with one chance, float64 [J, J].

    >>> one_coin(0.8, 3).round(3).tolist()[0]
    [0.8, 0.1, 0.1]
    """
    if n_labels == 1:
        return np.ones((1, 1))
    wrong = (1 - right) / (n_labels - 1)
    return np.full((n_labels, n_labels), wrong) + np.eye(n_labels) * (right - wrong)


def posterior_of(result: Consensus, habits: Habits) -> Floats:
    """Give the labels' probabilities, float64 [n_tokens, J]; shares where nobody answered."""
    probs = result.token_probs.astype(np.float64)
    total = probs.sum(axis=1, keepdims=True)
    known = total[:, 0] > 0
    probs[known] /= total[known]
    probs[~known] = habits.shares
    return probs


def token_gain(probs: Floats, tables: Floats) -> Floats:
    """Give the expected gain of one answer.

    Args:
        probs: float64 [n, J], posteriors.
        tables: float64 [n, J, J] or [J, J]: chance of label c (last axis) where the truth is j.

    Returns:
        float64 [n], at least 0; 0 for a worker who answers without looking.

    >>> even = np.array([[0.5, 0.5]])
    >>> token_gain(even, one_coin(0.8, 2)).round(3), token_gain(even, one_coin(0.5, 2))
    (array([0.18]), array([0.]))
    """
    joint = probs[:, :, None] * tables
    said = joint.sum(axis=1)
    hits = np.square(joint).sum(axis=1)
    after = np.divide(hits, said, out=np.zeros_like(said), where=said > 0).sum(axis=1)
    return np.asarray(np.maximum(after - np.square(probs).sum(axis=1), 0.0))


def item_gain(probs: Floats, offsets: NDArray[np.int64], table: Floats) -> Floats:
    """Give the expected gain of one worker's answer to every item, float64 [n_items].

    Args:
        probs: float64 [n_tokens, J].
        offsets: int64 [n_items + 1].
        table: float64 [J, J] of the worker.
    """
    step = max(1, _BLOCK // probs.shape[1] ** 2)
    gains = [token_gain(probs[at : at + step], table) for at in range(0, len(probs), step)]
    sums = np.concatenate([[0.0], np.cumsum(np.concatenate([*gains, np.zeros(0)]))])
    return np.asarray(sums[offsets[1:]] - sums[offsets[:-1]])


def pair_gain(
    probs: Floats, offsets: NDArray[np.int64], tables: Floats,
    item: NDArray[np.int64], worker: NDArray[np.int64],
) -> Floats:  # fmt: skip
    """Give the expected gain of single pairs of item and worker, float64 [n_pairs].

    Args:
        probs: float64 [n_tokens, J].
        offsets: int64 [n_items + 1].
        tables: float64 [n_workers, J, J].
        item: int64 [n_pairs].
        worker: int64 [n_pairs].
    """
    found = np.zeros(len(item))
    lengths = offsets[item + 1] - offsets[item]
    ends = np.cumsum(lengths)
    width = max(1, _BLOCK // probs.shape[1] ** 2)
    start = 0
    while start < len(item):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + width, side="right")))
        size = lengths[start:stop]
        pair = np.repeat(np.arange(start, stop), size)
        within = np.arange(len(pair)) - np.repeat(np.cumsum(size) - size, size)
        gains = token_gain(probs[offsets[item[pair]] + within], tables[worker[pair]])
        found[start:stop] = np.bincount(pair - start, gains, stop - start)
        start = stop
    return found


def worth(habits: Habits, probs: Floats) -> Floats:
    """Rank workers for items alike: the gain of every worker on the mean of given posteriors.

    Args:
        habits: Of the workers.
        probs: float64 [n, J], posteriors of the tokens that are asked about.

    Returns:
        float64 [n_workers].
    """
    sample = probs[:: max(1, len(probs) // SAMPLE)][:SAMPLE]
    found = np.zeros(len(habits.tables))
    for one in sample:
        found += token_gain(np.broadcast_to(one, (len(found), len(one))), habits.tables)
    return found / max(1, len(sample))


def _confusions(crowd: Crowd, probs: NDArray[np.float32]) -> Floats:
    """Give the expected confusions of all workers, float64 [n_workers, J, J]."""
    n_labels, codes = probs.shape[1], crowd.latest.codes
    kept = codes >= 0
    cell = crowd.worker_of[kept].astype(np.int64) * n_labels + codes[kept]
    token, size = crowd.token_of[kept], crowd.n_workers * n_labels
    rows = [np.bincount(cell, probs[token, j], size) for j in range(n_labels)]
    return np.stack([row.reshape(-1, n_labels) for row in rows], axis=1)
