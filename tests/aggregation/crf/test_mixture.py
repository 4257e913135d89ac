"""The formulas of CRF-MA, against the products of Rodrigues et al. 2013 written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import dirichlet

from goldspan.aggregation.crf.rounds import (
    Totals,
    expectation,
    from_gamma,
    from_measure,
    log_likelihood,
    log_prior,
    responsibilities,
)

C = 5
ANSWERS = {  # item: probability of every worker's answer to it, and the item's length
    0: ({0: 0.4, 1: 0.02}, 2),
    1: ({0: 0.1, 1: 0.3, 2: 0.2}, 1),
    2: ({1: 0.004}, 3),
}
PI = np.array([0.5, 0.3, 0.2])


def totals():
    log_prob, n_given = np.zeros(3), np.zeros(3, np.int64)
    for probs, length in ANSWERS.values():
        for r, p in probs.items():
            log_prob[r] += np.log(p)
            n_given[r] += length
    return Totals(log_prob, n_given, C)


def products():
    """Write eq. 9 and 12 out: worker r's answers by the CRF, all others at random."""
    found = []
    for r in range(3):
        product = PI[r]
        for probs, length in ANSWERS.values():
            for k, p in probs.items():
                product *= p if k == r else C ** -float(length)
        found.append(product)
    return np.array(found)


def at_random():
    """ln of the probability that all answers are random."""
    return -np.log(C) * sum(length * len(probs) for probs, length in ANSWERS.values())


def test_the_ratio_is_eq_12_and_the_likelihood_eq_9():
    every = products()
    gamma = responsibilities(PI, totals(), "ratio")
    np.testing.assert_allclose(gamma, every / every.sum(), atol=1e-12)
    assert log_likelihood(PI, totals()) + at_random() == pytest.approx(np.log(every.sum()))


def test_none_is_eq_15_and_favours_whoever_labelled_least():
    bare = [PI[r] * np.prod([p[r] for p, _ in ANSWERS.values() if r in p]) for r in range(3)]
    gamma = responsibilities(PI, totals(), "none")
    np.testing.assert_allclose(gamma, np.array(bare) / np.sum(bare), atol=1e-12)
    assert gamma.argmax() == 2


def test_where_everybody_labels_everything_none_and_ratio_are_the_same():
    same = Totals(np.array([-10.0, -12.0, -11.0]), np.full(3, 9), C)
    np.testing.assert_allclose(
        responsibilities(PI, same, "none"), responsibilities(PI, same, "ratio"), atol=1e-12
    )


def test_token_is_the_mean_log_probability_with_a_sharpness():
    every = totals()
    for tau in (0.0, 1.0, 3.0):
        expected = PI * np.exp(tau * every.log_prob / every.n_given)
        found = responsibilities(PI, every, "token", tau)
        np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-12)


def test_millions_of_labels_overflow_nothing():
    every = Totals(np.array([-1e7, -2e7, -1e7]), np.array([10**6, 10**7, 10**6]), C)
    for normalise in ("token", "ratio", "none"):
        gamma = responsibilities(PI, every, normalise)
        assert np.isfinite(gamma).all()
        assert gamma.sum() == pytest.approx(1)


def test_the_expectation_is_eq_14():
    gamma = np.array([0.2, 0.7, 0.1])
    every = np.log(products())
    assert expectation(gamma, PI, totals()) + at_random() == pytest.approx(gamma @ every)


def test_the_likelihood_is_the_expectation_plus_the_entropy_at_its_own_gamma():
    gamma = responsibilities(PI, totals(), "ratio")
    entropy = -(gamma * np.log(gamma)).sum()
    found = expectation(gamma, PI, totals()) + entropy
    assert found == pytest.approx(log_likelihood(PI, totals()))


def test_a_worker_who_is_left_out_has_no_part_in_anything():
    every = Totals(np.array([-3.0, 0.0, -4.0]), np.array([4, 0, 4]), C)
    assert responsibilities(PI, every, "token")[1] == 0
    two = Totals(np.array([-3.0, -4.0]), np.array([4, 4]), C)
    kept = PI[[0, 2]]
    assert log_likelihood(PI, every) == pytest.approx(log_likelihood(kept, two))
    gamma = np.array([0.6, 0.0, 0.4])
    assert expectation(gamma, PI, every) == pytest.approx(expectation(gamma[[0, 2]], kept, two))


def test_no_reliability_of_zero_makes_the_expectation_infinite():
    gamma = np.array([0.2, 0.7, 0.1])
    assert np.isfinite(expectation(gamma, np.array([0.0, 1.0, 0.0]), totals()))


EVERYBODY = np.ones(3, np.bool_)
FLAT = np.ones(3)


@pytest.mark.parametrize("alpha", [(1.0001,) * 3, (2.0,) * 3, (1e6,) * 3, (1.0, 1.5, 40.0)])
@pytest.mark.parametrize("power", [1, 2])
def test_alpha_gives_the_most_probable_reliabilities_found_on_a_grid(alpha, power):
    """Section 3.5: the maximum of sum share ln pi + ln Dirichlet(pi; alpha) on the simplex."""
    f1, alpha = np.array([0.8, 0.4, 0.1]), np.array(alpha)
    found = from_measure(f1, power, alpha, EVERYBODY)
    share, n = f1**power / (f1**power).sum(), 400
    one, two = np.meshgrid(np.arange(1, n), np.arange(1, n))
    grid = np.stack([one, two, n - one - two], axis=-1).reshape(-1, 3)
    grid = grid[grid[:, 2] > 0] / n
    value = np.log(grid) @ (share + alpha - 1)
    assert np.abs(grid[value.argmax()] - found).max() <= 1 / n
    assert np.log(found) @ (share + alpha - 1) >= value.max()


def test_an_even_alpha_levels_the_more_the_larger_it_is_and_nothing_jumps_at_1():
    f1 = np.array([0.8, 0.4, 0.1])
    alphas = [1, 1 + 1e-9, 1.0001, 1.1, 2, 10, 1e6]
    found = [from_measure(f1, 2, np.full(3, float(a)), EVERYBODY) for a in alphas]
    apart = [np.abs(pi - 1 / 3).max() for pi in found]
    assert apart == sorted(apart, reverse=True)
    np.testing.assert_allclose(found[1], found[0], atol=1e-8)  # no jump at 1
    np.testing.assert_allclose(found[2], found[0], atol=1e-3)
    np.testing.assert_allclose(found[-1], 1 / 3, atol=1e-6)
    assert apart[0] > 0.4


def test_a_measure_that_says_nothing_counts_as_the_mean():
    f1 = np.array([0.8, np.nan, 0.4])
    found = from_measure(f1, 1, FLAT, EVERYBODY)
    np.testing.assert_allclose(found, np.array([4, 3, 2]) / 9)


def test_where_nobody_is_right_all_are_alike_but_those_left_out():
    kept = np.array([True, False, True])
    np.testing.assert_allclose(from_measure(np.zeros(3), 1, FLAT, kept), [0.5, 0, 0.5])
    nothing = np.full(3, np.nan)
    np.testing.assert_allclose(from_measure(nothing, 1, FLAT, kept), [0.5, 0, 0.5])


@pytest.mark.parametrize("size", [1e-300, 1e-4, 1.0, 1e300])
@pytest.mark.parametrize("power", [0, 0.5, 100])
def test_powers_of_measures_of_any_size_keep_their_ratio(size, power):
    found = from_measure(np.array([0.9, 0.6, np.nan]) * size, power, FLAT, EVERYBODY)
    powers = (np.array([0.9, 0.6, 0.75]) / 0.9) ** power
    np.testing.assert_allclose(found, powers / powers.sum(), rtol=1e-12)


@pytest.mark.parametrize("power", [0, 1, 2.5, 30])
@pytest.mark.parametrize("size", [1e-200, 0.1, 1.0, 3.0, 1e200])
def test_pseudo_counts_stand_beside_shares_of_measures_of_any_size(power, size):
    f1, alpha = np.array([0.8, 0.4, 0.0]), np.array([1.0, 1.5, 2.0])
    counts = f1**power / (f1**power).sum() + alpha - 1
    found = from_measure(f1 * size, power, alpha, EVERYBODY)
    np.testing.assert_allclose(found, counts / counts.sum(), rtol=1e-12)


def test_the_log_prior_is_that_of_the_dirichlet_less_its_value_at_the_mode():
    alpha, rng = np.array([2.0, 1.0, 3.5]), np.random.default_rng(1)
    mode = np.array([1.0, 0.0, 2.5]) / 3.5
    assert log_prior(mode, alpha, EVERYBODY) == 0
    one, two = rng.dirichlet([3, 3, 3], 2)
    apart = dirichlet.logpdf(one, alpha) - dirichlet.logpdf(two, alpha)
    found = log_prior(one, alpha, EVERYBODY) - log_prior(two, alpha, EVERYBODY)
    assert found == pytest.approx(apart)
    assert log_prior(one, FLAT, EVERYBODY) == 0
    assert log_prior(one, alpha, np.array([False, True, True])) == pytest.approx(
        2.5 * np.log(one[2])
    )


def test_the_exact_step_maximises_expectation_and_prior():
    gamma, alpha = np.array([0.5, 0.3, 0.2]), np.array([2.0, 1.0, 1.5])
    best = from_gamma(gamma, alpha, EVERYBODY)
    at_best = expectation(gamma, best, totals()) + log_prior(best, alpha, EVERYBODY)
    rng = np.random.default_rng(0)
    for _ in range(50):
        other = rng.dirichlet([3, 3, 3])
        value = expectation(gamma, other, totals()) + log_prior(other, alpha, EVERYBODY)
        assert value < at_best
