"""The test that stops as soon as it knows enough."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from goldspan.errors import InputError
from goldspan.workers import plan_qualification
from goldspan.workers.qualification import plan_sequential_test


def by_all_courses(test, w):
    """Chance to pass and expected questions, over every course of answers."""
    passed = questions = 0.0
    for course in product((0, 1), repeat=test.n_max):
        chance = np.prod([w if right else 1 - w for right in course])
        for asked in range(1, test.n_max + 1):
            said = test.decide(sum(course[:asked]), asked)
            if said != "go on":
                passed += chance * (said == "pass")
                questions += chance * asked
                break
        else:
            raise AssertionError(course)
    return passed, questions


@pytest.mark.parametrize(
    "rates", [(0.25, 0.8, 0.05, 0.1), (0.5, 0.9, 0.1, 0.1), (0.3, 0.7, 0.2, 0.1)]
)
def test_rates_and_lengths_are_those_of_all_courses(rates):
    test = plan_qualification(*rates).sequential
    assert test.n_max <= 11
    for w in (0.0, 0.25, 0.6, 0.9, 1.0):
        passed, questions = by_all_courses(test, w)
        assert test.passes(w)[0] == pytest.approx(passed, abs=1e-9)
        assert test.expected(w)[0] == pytest.approx(questions, abs=1e-9)


@pytest.mark.parametrize("w_bad", [0.0, 0.1, 0.35, 0.5, 0.7])
@pytest.mark.parametrize("gap", [0.12, 0.2, 0.3])
@pytest.mark.parametrize("errors", [(0.05, 0.1), (0.01, 0.2), (0.3, 0.3)])
def test_the_exact_rates_hold_whatever_is_asked_for(w_bad, gap, errors):
    plan = plan_qualification(w_bad, w_bad + gap, *errors)
    test = plan.sequential
    assert test.p_bad_passes <= errors[0] + 1e-12
    assert test.p_good_fails <= errors[1] + 1e-12
    assert test.n_max <= max(plan.n * 1.25, plan.n)
    assert test.worst[1] <= test.n_max


def test_it_needs_22_to_28_questions_where_the_fixed_test_needs_45():
    test = plan_qualification(0.6, 0.8).sequential
    bad, good = test.expected([0.6, 0.8])
    assert 21 < bad < 23
    assert 27 < good < 29
    w, longest = test.worst
    assert 0.6 < w < 0.8
    assert max(bad, good) < longest < 45


def test_the_limits_never_cross_and_meet_at_the_end():
    test = plan_qualification(0.6, 0.8).sequential
    assert (test.pass_at > test.fail_at).all()
    assert (np.diff(test.pass_at) >= 0).all()
    assert (np.diff(test.fail_at) >= 0).all()
    assert test.pass_at[-1] == test.fail_at[-1] + 1
    rows = test.table().to_pylist()
    assert rows[0] == {"asked": 1, "pass_at": None, "fail_at": None}
    assert len(rows) == test.n_max


def test_without_room_it_is_no_longer_than_the_fixed_test():
    plan = plan_qualification(0.6, 0.8, longest=1)
    assert plan.sequential.n_max == plan.n
    assert plan.sequential.p_bad_passes <= 0.05
    assert plan.sequential.expected([0.6, 0.8]).max() < plan.n


def test_nothing_is_decided_before_the_first_question():
    assert plan_sequential_test(0.0, 1.0, 0.05, 0.1, 1).decide(0, 0) == "go on"


@pytest.mark.parametrize(("right", "asked"), [(3, 2), (-1, 4), (1, 99)])
def test_impossible_counts_are_refused(right, asked):
    with pytest.raises(InputError, match="must hold"):
        plan_qualification(0.6, 0.8).sequential.decide(right, asked)


def test_chances_outside_0_to_1_are_refused():
    with pytest.raises(InputError, match=r"chances in 0 … 1"):
        plan_qualification(0.6, 0.8).sequential.passes([0.5, 1.5])
