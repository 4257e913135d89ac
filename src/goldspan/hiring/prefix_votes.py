"""How often the weighted vote of the first 1, 2, … workers of a ranking is right."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import UnknownNameError
from goldspan.hiring.beta import Reliability

VOTES = ("linear", "log", "majority")


def vote_weights(tested: Reliability, vote: str) -> NDArray[np.float64]:
    """Give what answers count, float64 [n_workers], by the posterior means m.

    "linear": L m - 1; "log": ln((L - 1) m / (1 - m)); "majority": 1.

    Raises:
        UnknownNameError: There is no such vote.
    """
    if vote not in VOTES:
        raise UnknownNameError("vote", vote, VOTES)
    mean, labels = tested.mean, tested.n_labels
    if vote == "majority":
        return np.ones(len(mean))
    if vote == "linear":
        return np.asarray(labels * mean - 1)
    return np.asarray(np.log((labels - 1) * mean / (1 - mean)))


def prefix_accuracy(
    labels: NDArray[np.int64],
    truth: NDArray[np.int64],
    weights: NDArray[np.float64],
    n_labels: int,
    sizes: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Count items that the votes of the first workers get right.

    Args:
        labels: int64 [n_items, n_workers], -1 where a worker gave none.
        truth: int64 [n_items].
        weights: float64 [n_workers].
        n_labels: Number of labels.
        sizes: int64 [n_sizes], how many of the first workers vote.

    Returns:
        The items that are right, float64 [n_sizes] (of n equal labels each counts 1 / n), and the
        items that anybody answered, int64 [n_sizes].

    >>> labels = np.array([[0, 1, 1], [1, 1, -1]])
    >>> sizes = np.array([1, 3])
    >>> right, n = prefix_accuracy(labels, np.array([0, 1]), np.array([2.0, 1.5, 1.0]), 2, sizes)
    >>> right.tolist(), n.tolist()
    ([2.0, 1.0], [2, 2])
    """
    last = sizes - 1
    best = np.full((len(labels), len(sizes)), -np.inf)
    of_truth, n_best = np.zeros_like(best), np.zeros_like(best)
    for label in range(n_labels):
        sums = np.cumsum(np.where(labels == label, weights, 0.0), axis=1)[:, last]
        # Sums of equal weights in another order may differ in their last bits.
        above, equal = sums > best + 1e-9, np.abs(sums - best) <= 1e-9
        n_best = np.where(above, 1, n_best + equal)
        best = np.where(above, sums, best)
        of_truth = np.where((truth == label)[:, None], sums, of_truth)
    answered = np.cumsum(labels >= 0, axis=1)[:, last] > 0
    right = answered & (of_truth >= best - 1e-9)
    return (right / n_best).sum(axis=0), answered.sum(axis=0)
