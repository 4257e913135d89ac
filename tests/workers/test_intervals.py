import numpy as np
import pytest

from goldspan.workers import Reliability
from goldspan.workers import teams as intervals
from goldspan.workers.teams import score_interval

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
    held = 0
    for _ in range(times):
        chances = rng.beta(a, b, len(n))
        right = rng.binomial(n, chances)
        tested = Reliability.from_counts(right, n, n_labels=labels, prior=(a, b))
        low, high = score_interval(tested, draws=300)
        held += low <= _true_value(chances, labels) <= high
    assert 0.91 <= held / times <= 0.99


def test_large_teams_are_added_up_as_small_ones_are(monkeypatch):
    rng = np.random.default_rng(0)
    tested = Reliability.from_counts(rng.binomial(20, 0.8, 600), 20)
    one_by_one = score_interval(tested)
    monkeypatch.setattr(intervals, "MANY", 7)
    assert score_interval(tested) == pytest.approx(one_by_one, rel=0.02)


def test_the_same_team_has_the_same_interval():
    tested = Reliability.from_counts([9, 7], 10)
    assert score_interval(tested) == score_interval(tested)


def test_all_right_is_no_reason_to_be_sure():
    low, high = score_interval(Reliability.from_counts([10, 10, 10], 10))
    assert low < 1.4
    assert high <= 3**0.5


def test_a_team_of_nobody_has_the_value_zero():
    assert score_interval(Reliability.from_counts([], [])) == (0, 0)
