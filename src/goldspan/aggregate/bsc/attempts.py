"""Several runs of the engine, one after the other, of which one counts; Ctrl-C ends them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from goldspan.aggregate.bsc.engine import Fit, Model, Stopping, Surroundings, run
from goldspan.aggregate.bsc.evidence import Evidence
from goldspan.aggregate.bsc.tables import Sums

INTERRUPTED = "interrupted"
"""The engine's `stop_reason` after Ctrl-C."""


def is_interrupted(fit: Fit) -> bool:
    """Say whether Ctrl-C ended a run, so that no other may begin."""
    return fit.stop_reason == INTERRUPTED


def interrupted(fit: Fit) -> Fit:
    """Give a fit as what is left after Ctrl-C: more was to come."""
    return replace(fit, converged=False, stop_reason=INTERRUPTED)


def attempt(
    best: Fit | None,
    model: Model,
    shards: Sequence[Evidence],
    sums: Sums,
    stopping: Stopping,
    around: Surroundings,
) -> Fit:
    """Run after an earlier run, which is what is left if Ctrl-C comes before the first step.

    Args:
        best: The best of the earlier runs, or None.
        model: As for `run`, like the rest.
        shards: The evidence.
        sums: The statistics to begin with.
        stopping: When to stop.
        around: Runner, progress, checkpoint.
    """
    try:
        return run(model, shards, sums, stopping, around)
    except KeyboardInterrupt:
        if best is None:
            raise
        return interrupted(best)


def best_start(
    model: Model,
    shards: Sequence[Evidence],
    sums: Sums,
    stopping: Stopping,
    around: Surroundings,
    *,
    n_starts: int,
    random_state: int | None,
) -> Fit:
    """Run from some statistics, and from as many other points as asked for.

    Args:
        model: As for `run`, like the rest.
        shards: The evidence.
        sums: The statistics to begin with.
        stopping: When to stop.
        around: Runner; and progress and checkpoint, which are for the first run only.
        n_starts: Number of runs.
        random_state: Seed of the starts beyond the first.

    Returns:
        The fit with the largest objective.
    """
    best = run(model, shards, sums, stopping, around)
    rng = np.random.default_rng(random_state)
    for _ in range(1, n_starts):
        if is_interrupted(best):
            break
        other = sums.copy()
        # Every row of every worker is believed or doubted anew: the starts really differ.
        n = len(model.rows)
        other.counts[:n] *= rng.gamma(0.3, 1 / 0.3, size=(n, 1))
        fit = attempt(best, model, shards, other, stopping, Surroundings(around.runner))
        if fit.trace[-1] > best.trace[-1]:
            best = fit
        if is_interrupted(fit):
            best = interrupted(best)
    return best
