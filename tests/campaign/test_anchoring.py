"""How far annotators follow suggestions: estimated from who was shown one at random."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan.campaign.suggestions import measure_anchoring
from goldspan.errors import InputError


def drawn(rate, seed, n=200, n_workers=8):
    """Answers of workers who disagree to their own degrees, and follow what they see at a rate."""
    rng = np.random.default_rng(seed)
    worker = rng.integers(0, n_workers, n)
    own = rng.uniform(0.1, 0.6, n_workers)[worker]
    shown = rng.random(n) < 0.5
    follows = shown & (rng.random(n) < rate)
    return worker, shown, ((rng.random(n) < own) & ~follows).astype(np.float64)


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.6, 0.9])
def test_the_interval_holds_the_rate_that_was_drawn_19_times_in_20(rate):
    found = [measure_anchoring(*drawn(rate, seed)) for seed in range(200)]
    held = np.mean([one.low <= rate <= one.high for one in found])
    assert 0.91 <= held <= 0.985
    assert abs(np.mean([one.rate for one in found]) - rate) < 0.04


def test_what_is_not_known_is_taken_to_be_followed():
    nobody = measure_anchoring(np.array([]), np.array([], bool), np.array([]))
    assert (nobody.workers, nobody.agree_assisted) == (0, None)
    assert nobody.rho > 0.8
    assert nobody.low < -1 < 0.9 < nobody.high
    rhos = [
        np.mean([measure_anchoring(*drawn(0.0, seed, n)).rho for seed in range(20)])
        for n in (5, 50, 500, 5_000)
    ]
    assert rhos == sorted(rhos, reverse=True)
    assert rhos[0] > 0.7
    assert rhos[-1] < 0.1


def test_annotators_differ_and_are_compared_with_themselves():
    # Who disagrees often saw more suggestions: taken together they would seem to drive people away.
    worker = np.repeat([0, 1], 200)
    shown = np.concatenate([np.arange(200) < 160, np.arange(200) < 40])
    disagreement = np.where(worker == 0, 0.5, 0.05)
    found = measure_anchoring(worker, shown, disagreement)
    assert abs(found.rate) < 0.02
    assert found.agree_assisted < found.agree_blind - 0.2
    alone = measure_anchoring(np.array([0, 1]), np.array([True, False]), np.array([0.0, 1.0]))
    assert (alone.workers, alone.rate) == (0, 0.0)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.floats(0, 1)), max_size=60),
    st.permutations(range(5)),
)
def test_order_and_names_do_not_matter_and_rho_is_a_correlation(rows, names):
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    worker, shown, far = (
        np.array(columns[0], int), np.array(columns[1], bool), np.array(columns[2], float),
    )  # fmt: skip
    found = measure_anchoring(worker, shown, far)
    assert 0 <= found.rho <= 1
    assert found.low <= found.rate <= found.high <= 1
    renamed = np.array([names[one] for one in worker], int)
    again = measure_anchoring(renamed[::-1], shown[::-1], far[::-1])
    assert again.rate == pytest.approx(found.rate)
    assert again.rho == pytest.approx(found.rho)
    more = np.where(shown, np.minimum(1, far + 0.1), far)
    assert measure_anchoring(worker, shown, more).rate <= found.rate + 1e-12


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InputError, match="one value per answer"):
        measure_anchoring(np.array([1]), np.array([True, False]), np.array([0.0]))
    with pytest.raises(InputError, match="from 0 to 1"):
        measure_anchoring(np.array([1]), np.array([True]), np.array([np.nan]))
