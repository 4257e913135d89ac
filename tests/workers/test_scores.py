import numpy as np
import pytest
from scipy.stats import binom

from goldspan.errors import UnknownNameError
from goldspan.workers import Reliability
from goldspan.workers.teams import worker_scores


def _all_results(n, labels, **options):
    return Reliability.from_counts(np.arange(n + 1), n, n_labels=labels, prior=(1, 1), **options)


@pytest.mark.parametrize("labels", [2, 3, 7])
@pytest.mark.parametrize("n", [2, 3, 10, 40])
@pytest.mark.parametrize("chance", [0.0, 0.2, 0.5, 0.93, 1.0])
def test_the_mean_of_the_unbiased_score_over_all_results_is_the_true_one(labels, n, chance):
    weight = binom.pmf(np.arange(n + 1), n, chance)
    found = weight @ worker_scores(_all_results(n, labels), "unbiased")
    assert found == pytest.approx((labels * chance - 1) ** 2, abs=1e-9)


@pytest.mark.parametrize("labels", [2, 4])
def test_the_plugin_score_is_too_high_by_the_variance(labels):
    n, chance = 6, 0.7
    found = binom.pmf(np.arange(n + 1), n, chance) @ worker_scores(
        _all_results(n, labels), "plugin"
    )
    bias = labels**2 * chance * (1 - chance) / n
    assert found == pytest.approx((labels * chance - 1) ** 2 + bias, abs=1e-9)


def test_the_posterior_score_takes_the_untested_for_guessers_whatever_the_pools_prior():
    tested = Reliability.from_counts([2, 55, 0], [2, 60, 3], n_labels=4, prior=(3, 1))
    means = np.array([3 / 6, 56 / 64, 1 / 7])
    assert worker_scores(tested, "posterior") == pytest.approx((4 * means - 1) ** 2, abs=1e-12)


@pytest.mark.parametrize(
    ("score", "known"),
    [
        ("posterior", [False, True, True]),
        ("unbiased", [False, False, True]),
        ("plugin", [False, True, True]),
    ],
)
def test_workers_without_enough_answers_have_no_score(score, known):
    tested = Reliability.from_counts([0, 1, 2], [0, 1, 2])
    assert np.isfinite(worker_scores(tested, score)).tolist() == known


def test_an_unknown_score_is_refused():
    with pytest.raises(UnknownNameError, match="choose from posterior, unbiased, plugin"):
        worker_scores(Reliability.from_counts([1], 2), "posteriour")
