import numpy as np
import pytest

from goldspan.errors import UnknownNameError
from goldspan.workers import Reliability
from goldspan.workers.forecast import prefix_accuracy, vote_weights


def _slow(labels, truth, weights, n_labels, size):
    """Count right items one by one."""
    right, answered = 0.0, 0
    for row, true in zip(labels.tolist(), truth.tolist(), strict=True):
        sums = [0.0] * n_labels
        for label, weight in zip(row[:size], weights.tolist(), strict=False):
            if label >= 0:
                sums[label] += weight
        if any(label >= 0 for label in row[:size]):
            answered += 1
            best = [label for label, total in enumerate(sums) if abs(total - max(sums)) < 1e-9]
            right += (true in best) / len(best)
    return right, answered


@pytest.mark.parametrize("n_labels", [2, 3, 5])
def test_the_votes_of_all_prefixes_are_those_counted_one_by_one(n_labels):
    rng = np.random.default_rng(n_labels)
    labels = rng.integers(-1, n_labels, (60, 7))
    truth = rng.integers(0, n_labels, 60)
    weights = rng.choice([-0.5, 0.25, 0.5, 1.0], 7)
    sizes = np.array([1, 2, 5, 7])
    right, answered = prefix_accuracy(labels, truth, weights, n_labels, sizes)
    slow = [_slow(labels, truth, weights, n_labels, size) for size in sizes.tolist()]
    assert right == pytest.approx([one for one, _ in slow], abs=1e-9)
    assert answered.tolist() == [n for _, n in slow]


def test_the_weights_are_the_papers_with_the_posterior_mean():
    tested = Reliability.from_counts([7, 2], 8, n_labels=3, prior=(1, 1))
    mean = np.array([0.8, 0.3])
    assert vote_weights(tested, "linear") == pytest.approx(3 * mean - 1)
    assert vote_weights(tested, "log") == pytest.approx(np.log(2 * mean / (1 - mean)))
    assert vote_weights(tested, "majority").tolist() == [1, 1]


def test_a_vote_that_there_is_not_is_refused():
    with pytest.raises(UnknownNameError, match="choose from linear, log, majority"):
        vote_weights(Reliability.from_counts([1], 2), "plurality")
