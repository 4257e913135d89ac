"""Rounds: what Ctrl-C leaves, and what is no objective."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from goldspan.aggregation import aggregate
from goldspan.aggregation.bsc.engine import RunContext
from goldspan.aggregation.crf.rounds import State, run
from goldspan.errors import InputError
from goldspan.protocols import Serial
from goldspan.tagger.kernels import Weights

WARM = State(weights=Weights.zeros(2, 3))
QUICK = {"templates": ("lower", "suffix3"), "max_iter": 2, "steps": 5}


def rounds_with(*values):
    """Return rounds with these objectives; None is Ctrl-C."""

    def one_round(state):
        value = values[len(state.trace)]
        if value is None:
            raise KeyboardInterrupt
        return replace(WARM, trace=(*state.trace, value))

    return one_round


def go(state, *values):
    return run(state, rounds_with(*values), lambda _: "", len(values), RunContext())


@pytest.mark.parametrize("begin", [State(), WARM], ids=["cold", "warm"])
def test_ctrl_c_in_the_first_round_is_passed_on(begin):
    with pytest.raises(KeyboardInterrupt):
        go(begin, None, 1.0)


@pytest.mark.parametrize("begin", [State(), WARM], ids=["cold", "warm"])
def test_ctrl_c_in_a_later_round_leaves_the_last_one(begin):
    outcome = go(begin, 1.0, 2.0, None, 3.0)
    assert (outcome.reason, outcome.state.trace) == ("interrupted", (1.0, 2.0))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_an_objective_that_is_not_finite_is_refused(value):
    assert go(State(), 1.0, 2.0).reason == "max_iter"
    with pytest.raises(InputError, match=r"^the objective is .* after round 2: .* c2"):
        go(State(), 1.0, value, 2.0)


@pytest.mark.parametrize("method", ["crf-conc", "crf-ma", "multicrf", "multicrf-max"])
def test_ctrl_c_in_the_first_round_of_a_warm_start_leaves_nothing(crowd, method):
    earlier = aggregate(crowd, "crf-conc", **QUICK)

    class Interrupted(Serial):
        def map(self, fn, shards, params):
            if fn.__name__ == "expect":  # training has begun
                raise KeyboardInterrupt
            return super().map(fn, shards, params)

    with pytest.raises(KeyboardInterrupt):
        aggregate(crowd, method, **QUICK, start=earlier, runner=Interrupted())
