"""What a result says about its workers: how often they are right, with an interval, and on what.

All of it follows from the labels' probabilities, so that every aggregator has it: the expected
number of right labels is the sum of P(truth = label given) over what a worker gave.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import betaincinv

from goldspan._kernel import kernel
from goldspan.crowd import Crowd
from goldspan.crowd.measures import share, worker_rates

LEVEL = 0.95
"""Of the credible intervals."""
OCCUPIED = 0.5
"""Expected labels from which a cell counts as occupied."""
JEFFREYS = 0.5
"""Pseudo-count of right and of wrong in them."""


def worker_table(crowd: Crowd, codes: NDArray[np.int16], probs: NDArray[np.float32]) -> pa.Table:
    """Put together the table of a result's workers, one row per worker.

    Args:
        crowd: Who gave what.
        codes: int16 [n_tokens], the result's labels, -1 open.
        probs: float32 [n_tokens, J], their probabilities.

    Returns:
        worker, answers, labels; accuracy: expected share of right labels, with the 95 % credible
        interval low … high (Beta with Jeffreys' prior, the truth's uncertainty averaged);
        information: bits that one label of the worker tells about the truth, less what
        chance alone seems to tell (Miller and Madow 1955) – near 0 for
        spammers; span_agreement: F1 against the result's spans (tagged tokens only).
    """
    answers, view = crowd.latest, crowd.by_worker
    right, bits = np.zeros(crowd.n_workers), np.zeros(crowd.n_workers)
    total = np.zeros(crowd.n_workers, np.int64)
    arrays = (answers.item, answers.offset, answers.codes, crowd.offsets, probs)
    _sum_up(view.order, view.bounds, *arrays, right, total, bits)
    low, high = interval(right, total)
    columns = {
        "worker": crowd.worker_ids,
        "answers": pa.array(np.diff(view.bounds)),
        "labels": pa.array(total),
        "accuracy": pa.array(share(right, total)),
        "low": pa.array(low),
        "high": pa.array(high),
        "information": pa.array(np.where(total > 0, bits, np.nan)),
    }
    if not crowd.tagset.rules.is_plain:
        rates = worker_rates(crowd, codes)
        columns["span_agreement"] = pa.array(
            [r.f1 if r.n_true + r.n_predicted else float("nan") for r in rates]
        )
    return pa.table(columns)


def confusion_counts(crowd: Crowd, probs: NDArray[np.float32], worker: int) -> NDArray[np.float64]:
    """Give the expected confusions of a worker, float64 [J, J]: truth, label given.

    Element [j, i] is the sum of P(truth = j) over the tokens that the worker labelled i.
    """
    answers, n_labels = crowd.latest, probs.shape[1]
    own = crowd.by_worker[worker]
    counts = np.zeros((n_labels, n_labels))
    lengths = answers.lengths[own]
    if not lengths.sum():
        return counts
    ends = np.cumsum(lengths)
    within = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
    codes = answers.codes[np.repeat(answers.offset[own], lengths) + within]
    tokens = np.repeat(crowd.offsets[answers.item[own]], lengths) + within
    kept = codes >= 0
    np.add.at(counts.T, codes[kept], probs[tokens[kept]].astype(np.float64))
    return counts


def interval(
    right: NDArray[np.float64], total: NDArray[np.int64], level: float = LEVEL
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give the credible interval of being right, NaN for workers without labels."""
    hits = np.minimum(right, total) + JEFFREYS
    misses = np.maximum(total - right, 0) + JEFFREYS
    tail = (1 - level) / 2
    low, high = betaincinv(hits, misses, tail), betaincinv(hits, misses, 1 - tail)
    return np.where(total > 0, low, np.nan), np.where(total > 0, high, np.nan)


@kernel
def _sum_up(
    order: NDArray[np.int64], bounds: NDArray[np.int64], item: NDArray[np.int32],
    offset: NDArray[np.int64], codes: NDArray[np.int16], tokens: NDArray[np.int64],
    probs: NDArray[np.float32], right: NDArray[np.float64], total: NDArray[np.int64],
    bits: NDArray[np.float64],
) -> None:  # fmt: skip
    """Sum up right labels, labels, and the mutual information of truth and label in bits."""
    n_labels = probs.shape[1]
    joint = np.zeros((n_labels, n_labels))
    for worker in range(len(bounds) - 1):
        joint[:] = 0.0
        for at in range(bounds[worker], bounds[worker + 1]):
            answer = order[at]
            shift = tokens[item[answer]] - offset[answer]
            for place in range(offset[answer], offset[answer + 1]):
                code = codes[place]
                if code >= 0:
                    total[worker] += 1
                    right[worker] += probs[place + shift, code]
                    for j in range(n_labels):
                        joint[j, code] += probs[place + shift, j]
        whole = joint.sum()
        for j in range(n_labels):
            row = joint[j].sum()
            for i in range(n_labels):
                if joint[j, i] > 0.0:
                    column = joint[:, i].sum()
                    share = joint[j, i] / whole
                    bits[worker] += share * np.log2(joint[j, i] * whole / (row * column))
        if whole > 0.0:
            bits[worker] -= _by_chance(joint) / (2.0 * np.log(2.0) * whole)
        bits[worker] = max(bits[worker], 0.0)


@kernel
def _by_chance(joint: NDArray[np.float64]) -> float:
    """Count occupied cells, less rows and columns: what counts share by chance alone."""
    n_labels = len(joint)
    found = 1.0
    for j in range(n_labels):
        row, column = 0.0, 0.0
        for i in range(n_labels):
            row += joint[j, i]
            column += joint[i, j]
            found += joint[j, i] >= OCCUPIED
        found -= row >= OCCUPIED
        found -= column >= OCCUPIED
    return found
