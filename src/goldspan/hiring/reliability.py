"""How often every worker is right, from control questions, from the crowd alone, or from both.

Tokens of a text are no independent questions: who misses a name misses it in every sentence of the
article. What was counted is therefore divided by the design effect (Kish 1965, Survey Sampling),
1 + (m - 1) rho with m tokens (or spans) in a cluster and their correlation rho within clusters,
which all workers together tell. Clusters are documents where the crowd has them, else items.
The share stays, the interval becomes as wide as it should be.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregate import Consensus
from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.hiring.beta import Reliability
from goldspan.hiring.judged import Judged, choose_measure, judge_answers
from goldspan.hiring.truth import Truth, find_truth


def measure_reliability(
    crowd: Crowd,
    gold: Any = None,
    result: Consensus | None = None,
    *,
    measure: str = "auto",
    prior: str | tuple[float, float] = "pool",
    several: str = "refuse",
    policy: str = "conlleval",
) -> Reliability:
    r"""Measure how often every worker is right.

    By gold an answer is right or wrong. By a result it is right with the probability that the
    result gives to it: expected right answers are the sum of P(truth = label given). The worker's
    own answer is part of that result, so that workers with few colleagues per item look better than
    they are, under votes most of all: prefer `ds` or a `bsc` method, and gold to either. With both,
    gold judges the items that have it and the result all others.

    Args:
        crowd: The crowd; the answers that count are used.
        gold: Known labels: a file or DataFrame with columns item and label, a file with tags, a
            `Crowd` with gold, or a mapping from item id to label (or to the item's tags). By
            default the crowd's own gold.
        result: A result of `goldspan.aggregate` of this crowd.
        measure: "accuracy" (single labels), "token_accuracy", or "span_f1": right are TP, judged
            are TP + (FP + FN) / 2 (Goutte and Gaussier 2005, whose F1 is Beta(TP, (FP + FN) / 2)
            but for a smaller variance). "auto" is accuracy for single labels, span_f1 for tags,
            token_accuracy for PLAIN tags of tokens.
        prior: Beta(a, b) as a pair, or "pool": see `Reliability`.
        several: An item with several different truths is refused ("refuse"), or each of them is
            right ("any", single labels only).
        policy: How malformed tags are read as spans.

    Returns:
        Counts of all workers in the order of `crowd.worker_ids`. Of tags they are effective
        numbers: divided by the design effect. Workers without a judged answer have 0 of 0.

    Raises:
        InputError: There is neither gold nor a result; no worker answered an item with gold; or
            the measure, the gold or the result does not suit the crowd.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"task,worker,label\n1,ann,x\n1,bob,y\n2,ann,y\n2,bob,y\n")
    >>> found = measure_reliability(crowd, {"1": "x", "2": "y"}, prior=(1, 1))
    >>> found.to_arrow().column("mean").to_pylist()
    [0.75, 0.5]
    """
    truth = find_truth(crowd, gold, result, several)
    chosen = choose_measure(truth.crowd, measure)
    judged = judge_answers(truth, chosen, policy)
    if not judged.total.any() and result is None:
        raise InputError("no worker answered an item with gold: there is nothing to judge")
    right, total = _per_worker(truth.crowd, judged)
    if not truth.crowd.is_classification:
        effect = design_effect(truth.crowd, judged)
        right, total = right / effect, total / effect
    return Reliability.from_counts(
        np.minimum(right, total),  # sums of float32 may exceed the whole by a little
        total,
        n_labels=_n_labels(truth.crowd, chosen),
        worker_ids=crowd.worker_ids,
        prior=prior,
        measure=chosen,
        source=truth.source,
    )


def design_effect(crowd: Crowd, judged: Judged) -> NDArray[np.float64]:
    """Say by how much fewer independent questions would tell the same, float64 [n_workers], >= 1.

    The variance of a ratio of sums over clusters (Kish 1965) is put beside that of independent
    answers, over all workers with two clusters or more; that gives rho.

    Args:
        crowd: The crowd.
        judged: Right and total per answer.
    """
    right, total, worker = _per_cluster(crowd, judged)
    n = crowd.n_workers
    whole = np.bincount(worker, total, n)
    share = np.bincount(worker, right, n) / np.maximum(whole, 1e-300)
    size = np.bincount(worker, total**2, n) / np.maximum(whole, 1e-300)
    clusters = np.bincount(worker, minlength=n)
    spread = np.bincount(worker, (right - share[worker] * total) ** 2, n)
    used = clusters > 1
    correction = clusters[used] / (clusters[used] - 1)
    alone = (whole * share * (1 - share))[used]
    excess, room = (spread[used] * correction - alone).sum(), (alone * (size[used] - 1)).sum()
    rho = float(np.clip(excess / room, 0, 1)) if room > 0 else 0.0
    return np.asarray(1 + np.maximum(size - 1, 0) * rho)


def _per_cluster(
    crowd: Crowd, judged: Judged
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Sum up by worker and document: right, total, worker of every such cluster."""
    worker, group = crowd.latest.worker.astype(np.int64), group_of(crowd)[crowd.latest.item]
    kept = judged.total > 0
    key = worker[kept] * 2 * crowd.n_items + group[kept]
    keys, cluster = np.unique(key, return_inverse=True)
    right = np.bincount(cluster, judged.right[kept], len(keys)).astype(np.float64)
    total = np.bincount(cluster, judged.total[kept], len(keys)).astype(np.float64)
    return right, total, keys // max(1, 2 * crowd.n_items)


def group_of(crowd: Crowd) -> NDArray[np.int64]:
    """Give the document of every item, int64 [n_items], below 2 n_items.

    An item without a document is one of its own.
    """
    own = np.arange(crowd.n_items)
    if crowd.groups is None:
        return own
    index = crowd.groups.dictionary_encode().indices.fill_null(-1).to_numpy().astype(np.int64)
    return np.where(index >= 0, index, crowd.n_items + own)


def _per_worker(crowd: Crowd, judged: Judged) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    worker, n = crowd.latest.worker, crowd.n_workers
    return (
        np.bincount(worker, judged.right, n).astype(np.float64),
        np.bincount(worker, judged.total, n).astype(np.float64),
    )


def _n_labels(crowd: Crowd, measure: str) -> int:
    n = len(crowd.tagset.types) + 1 if measure == "span_f1" else len(crowd.tagset.tags)
    return max(2, n)


def base_rates(crowd: Crowd) -> NDArray[np.float64]:
    r"""Give the share of every label among what a worker gave, float64 [n_workers, n_labels].

    Labels stand in the order of `crowd.tagset.tags`; NaN for workers without labels.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"task,worker,label\n1,ann,x\n1,bob,y\n2,ann,y\n2,bob,y\n")
    >>> base_rates(crowd).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    codes, width = crowd.latest.codes, len(crowd.tagset.tags)
    cell = crowd.worker_of.astype(np.int64) * width + codes
    if (codes < 0).any():
        cell = cell[codes >= 0]
    counts = np.bincount(cell, minlength=crowd.n_workers * width).reshape(-1, width)
    total = counts.sum(axis=1, keepdims=True)
    return np.asarray(counts / np.where(total > 0, total, np.nan))


class Confusion(NamedTuple):
    """What a worker made of every true label.

    Attributes:
        tags: The labels, in the order of both axes.
        counts: int64 [n_tags, n_tags]: truth, label given.
    """

    tags: tuple[str, ...]
    counts: NDArray[np.int64]


def confusion(crowd: Crowd, worker: str, gold: Any = None) -> Confusion:
    r"""Count what a worker made of every true label, by gold.

    Args:
        crowd: The crowd.
        worker: Id of the worker.
        gold: As for `measure_reliability`.

    Raises:
        InputError: There is no such worker, or no gold.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"task,worker,label\n1,ann,x\n2,ann,x\n")
    >>> confusion(crowd, "ann", {"1": "x", "2": "y"}).counts.tolist()
    [[1, 0], [1, 0]]
    """
    truth: Truth = find_truth(crowd, gold, None)
    found, own = truth.crowd, crowd.by_worker[crowd.worker_index(worker)]
    answers, width = found.latest.take(own), len(found.tagset.tags)
    shift = np.repeat(found.offsets[answers.item] - answers.offset[:-1], answers.lengths)
    true = truth.gold[0][shift + np.arange(len(answers.codes))]
    both = (true >= 0) & (answers.codes >= 0)
    cell = true[both].astype(np.int64) * width + answers.codes[both]
    counts = np.bincount(cell, minlength=width**2).astype(np.int64).reshape(width, width)
    return Confusion(tuple(found.tagset.tags), counts)
