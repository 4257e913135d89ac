"""Rounds: who hears of them, and how they end."""

from __future__ import annotations

import pytest

from goldspan.aggregation.weighted import run_rounds


def halving(n):
    """Return an objective that halves, the last at 1/8."""
    return 0.5**n, n == 3


def test_rounds_end_with_the_one_that_says_so():
    heard = []
    rounds = run_rounds(halving, 10, lambda *told: heard.append(told[:3]))
    assert rounds.trace == (1, 0.5, 0.25, 0.125)
    assert (rounds.converged, rounds.stop_reason) == (True, "tol")
    assert heard == [(n + 1, 10, 0.5**n) for n in range(4)]


def test_rounds_end_with_the_last_that_is_allowed():
    rounds = run_rounds(halving, 2, None)
    assert (rounds.trace, rounds.converged, rounds.stop_reason) == ((1, 0.5), False, "max_iter")


@pytest.mark.parametrize("at", [0, 2])
def test_an_interrupt_keeps_what_is_done_if_anything_is(at):
    def step(n):
        if n == at:
            raise KeyboardInterrupt
        return halving(n)

    if at == 0:
        with pytest.raises(KeyboardInterrupt):
            run_rounds(step, 10, None)
        return
    rounds = run_rounds(step, 10, None)
    assert (rounds.trace, rounds.stop_reason) == ((1, 0.5), "interrupted")
