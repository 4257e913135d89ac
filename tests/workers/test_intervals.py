import numpy as np
import pytest

from goldspan.errors import InputError, UnknownNameError
from goldspan.workers import Reliability
from goldspan.workers import teams as intervals
from goldspan.workers.teams import INTERVALS, hoeffding_width, score_interval

POOLS = [
    (2, [10] * 5, 4, 2),
    (4, [20] * 8, 6, 3),
    (2, [2, 5, 20, 60] * 3, 6, 3),
    (3, [10] * 3, 30, 2),
]


def _true_value(chances, labels):
    return ((labels * chances - 1) ** 2).sum() / np.sqrt(len(chances))


@pytest.mark.parametrize(("labels", "n", "a", "b"), POOLS)
def test_the_intervals_hold_for_a_fixed_team_as_often_as_they_say(labels, n, a, b):
    rng, times = np.random.default_rng(0), 160
    held = dict.fromkeys(INTERVALS, 0)
    for _ in range(times):
        chances = rng.beta(a, b, len(n))
        right = rng.binomial(n, chances)
        tested = Reliability.from_counts(right, n, n_labels=labels, prior=(a, b))
        for kind in INTERVALS:
            low, high = score_interval(tested, kind=kind, draws=300)
            held[kind] += low <= _true_value(chances, labels) <= high
    assert held["hoeffding"] == times
    assert 0.91 <= held["bootstrap"] / times <= 0.99
    assert 0.91 <= held["posterior"] / times <= 0.99


def test_hoeffdings_width_for_tests_of_one_length_is_the_papers():
    n, labels = 10, 4
    reach = (labels - 1) ** 2 - 1 + (2 * n - 2 + labels) ** 2 / (4 * n * (n - 1))
    tested = Reliability.from_counts([9, 8, 7], n, n_labels=labels)
    assert hoeffding_width(tested) == pytest.approx(reach * np.sqrt(np.log(40) / 2), abs=1e-12)


def test_longer_tests_make_hoeffdings_interval_narrower():
    short = Reliability.from_counts([4, 4], [5, 5])
    mixed = Reliability.from_counts([4, 40], [5, 50])
    assert hoeffding_width(mixed) < hoeffding_width(short)


@pytest.mark.parametrize("kind", ["bootstrap", "posterior"])
def test_large_teams_are_added_up_as_small_ones_are(monkeypatch, kind):
    rng = np.random.default_rng(0)
    tested = Reliability.from_counts(rng.binomial(20, 0.8, 600), 20)
    one_by_one = score_interval(tested, kind=kind)
    monkeypatch.setattr(intervals, "MANY", 7)
    assert score_interval(tested, kind=kind) == pytest.approx(one_by_one, rel=0.02)


@pytest.mark.parametrize("kind", INTERVALS)
def test_the_same_seed_gives_the_same_interval(kind):
    tested = Reliability.from_counts([9, 7], 10)
    assert score_interval(tested, kind=kind) == score_interval(tested, kind=kind)


def test_all_right_is_no_reason_to_be_sure():
    low, high = score_interval(Reliability.from_counts([10, 10, 10], 10))
    assert low < 1.4
    assert high > 3**0.5


def test_a_worker_of_one_question_leaves_the_posterior_interval_only():
    tested = Reliability.from_counts([9, 1], [10, 1])
    known = {kind: np.isfinite(score_interval(tested, kind=kind)).all() for kind in INTERVALS}
    assert known == {"hoeffding": False, "bootstrap": False, "posterior": True}


def test_a_team_of_nobody_has_the_value_zero():
    assert score_interval(Reliability.from_counts([], [])) == (0, 0)


def test_intervals_and_levels_that_there_are_not_are_refused():
    tested = Reliability.from_counts([9], 10)
    with pytest.raises(UnknownNameError, match="choose from hoeffding"):
        score_interval(tested, kind="exact")
    with pytest.raises(InputError, match="between 0 and 1, not 95"):
        score_interval(tested, level=95)
