"""The shortest test that tells good workers from bad ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from goldspan.errors import InputError
from goldspan.workers import plan_qualification


def at_least(n, w, mark):
    """P(Bin(n, w) ≥ mark), term by term."""
    return sum(math.comb(n, k) * w**k * (1 - w) ** (n - k) for k in range(mark, n + 1))


def shortest(w_bad, w_good, alpha, beta):
    """Try every length and every mark."""
    for n in range(1, 200):
        for mark in range(n + 1):
            if at_least(n, w_bad, mark) <= alpha and 1 - at_least(n, w_good, mark) <= beta:
                return n, mark
    raise AssertionError


@pytest.mark.parametrize(
    "rates",
    [(0.6, 0.8, 0.05, 0.1), (0.25, 0.8, 0.05, 0.1), (0.5, 0.9, 0.01, 0.3), (0.1, 0.4, 0.2, 0.05)],
)
def test_no_shorter_test_holds_the_rates(rates):
    plan = plan_qualification(*rates)
    assert (plan.n, plan.pass_mark) == shortest(*rates)


@pytest.mark.parametrize(
    ("w_bad", "alpha", "n"), [(0.2, 0.04, 2), (0.1, 0.001, 3), (0.2, 0.008, 3), (0.5, 0.0625, 4)]
)
def test_a_rate_that_is_just_kept_counts_as_kept(w_bad, alpha, n):
    plan = plan_qualification(w_bad, 1.0, alpha, 0.1)
    assert (plan.n, plan.pass_mark) == (n, n)
    assert plan.p_bad_passes == pytest.approx(alpha, rel=1e-12)
    assert plan.sequential.n_max == n


@pytest.mark.parametrize(("w_good", "beta", "n"), [(0.7, 0.09, 2), (0.6, 0.16, 2), (0.6, 0.064, 3)])
def test_that_holds_for_good_workers_too(w_good, beta, n):
    plan = plan_qualification(0.0, w_good, 0.05, beta)
    assert (plan.n, plan.pass_mark, plan.sequential.n_max) == (n, 1, n)


def test_the_real_error_rates_are_the_binomial_sums():
    plan = plan_qualification(0.55, 0.8, 0.1, 0.05)
    assert plan.p_bad_passes == pytest.approx(at_least(plan.n, 0.55, plan.pass_mark), abs=1e-9)
    assert plan.p_good_fails == pytest.approx(1 - at_least(plan.n, 0.8, plan.pass_mark), abs=1e-9)


def test_the_curve_holds_the_chance_of_everybody_to_pass():
    plan = plan_qualification(0.62, 0.8, 0.1, 0.2)
    curve = plan.curve()
    w = curve.column("w").to_pylist()
    assert {0.0, 0.62, 0.8, 1.0} <= set(w)
    assert len(w) == 22
    for chance, passes in zip(w, curve.column("passes").to_pylist(), strict=True):
        assert passes == pytest.approx(at_least(plan.n, chance, plan.pass_mark), abs=1e-9)


@pytest.mark.parametrize(("w_bad", "w_good", "n"), [(0, 1, 1), (0, 0.5, 4), (0.5, 1, 5)])
def test_workers_who_are_never_or_always_right_can_be_planned_for(w_bad, w_good, n):
    plan = plan_qualification(w_bad, w_good)
    assert plan.n == n
    assert plan.sequential.p_bad_passes <= 0.05
    assert plan.sequential.p_good_fails <= 0.1


def test_who_passes_is_the_posterior_of_the_pool():
    plan = plan_qualification(0.6, 0.8)
    passed = plan.after_passing((3, 2))
    w = (np.arange(20_000) + 0.5) / 20_000
    weight = w**2 * (1 - w) * 12 / 20_000
    passing = weight * plan.passes(w)
    assert passed.share == pytest.approx(passing.sum(), abs=1e-6)
    assert passed.mean == pytest.approx((w * passing).sum() / passing.sum(), abs=1e-6)
    assert passed.good == pytest.approx(passing[w >= 0.8].sum() / passing.sum(), abs=1e-4)
    assert passed.bad == pytest.approx(passing[w <= 0.6].sum() / passing.sum(), abs=1e-4)
    assert "of the candidates pass" in str(passed)


def test_the_cost_is_questions_times_price_times_candidates():
    assert plan_qualification(0.6, 0.8).cost("0.05", 100) == 225_000_000
    assert plan_qualification(0.6, 0.8).cost("0.05", 0) == 0


def test_the_plan_says_itself_in_words_and_as_plain_values():
    plan = plan_qualification(0.625, 0.8)
    assert f"{plan.n} questions, pass with {plan.pass_mark} or more" in str(plan)
    assert "right 62.5 % of the time" in str(plan)
    facts = plan.to_dict()
    assert facts["pass_mark"] == plan.pass_mark
    assert facts["sequential"]["n_max"] == plan.sequential.n_max
    assert facts["curve"][0]["w"] == 0


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ({"w_bad": -0.1}, "w_bad must be a chance in 0 … 1"),
        ({"w_good": 1.2}, "w_good must be a chance in 0 … 1"),
        ({"w_good": math.nan}, "w_good must be a chance"),
        ({"w_bad": 0.8}, "0.8 is not below 0.8"),
        ({"alpha": 0}, "alpha must lie between 0 and 1"),
        ({"beta": 1}, "beta must lie between 0 and 1"),
        ({"alpha": 0.6, "beta": 0.4}, "a coin without any question"),
        ({"w_good": 0.61}, "about 20,475 questions, and at most 1,000"),
        ({"most": 0}, "most must be a whole number"),
        ({"longest": 0.5}, "longest must lie in 1"),
    ],
)
def test_what_no_test_can_do_is_refused(words, match):
    with pytest.raises(InputError, match=match):
        plan_qualification(**{"w_bad": 0.6, "w_good": 0.8, **words})


def test_a_cost_of_fewer_than_no_candidates_is_refused():
    plan = plan_qualification(0.6, 0.8)
    for candidates in (-1, 2.5, True):
        with pytest.raises(InputError, match="candidates must be a whole number"):
            plan.cost("0.05", candidates)
    with pytest.raises(InputError, match="the price of a question must lie in 0"):
        plan.cost(-1)


def test_a_prior_that_is_none_is_refused():
    with pytest.raises(InputError, match="prior must be"):
        plan_qualification(0.6, 0.8).after_passing((0, 1))
