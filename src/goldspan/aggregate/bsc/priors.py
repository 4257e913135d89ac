"""Where the workers' prior comes from: two numbers and some trust, a grid, or the population.

    given        alpha0 for every label, epsilon0 more for the right one, more yet for the trusted
    auto         the pair of `GRID` with the largest evidence bound
    population   the mean worker's habits, from a first run

What is found here stays the fit's prior: predictions use it too (`Memory.prior`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from goldspan.aggregate.bsc.attempts import attempt, interrupted, is_interrupted
from goldspan.aggregate.bsc.engine import Fit, Model, Stopping, Surroundings
from goldspan.aggregate.bsc.evidence import Evidence, previous_mask
from goldspan.aggregate.bsc.tables import Sums
from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.protocols import Runner
from goldspan.workermodels import Prior
from goldspan.workermodels.rows import Floats

PRIORS = ("given", "auto", "population")
GRID = tuple((off, bonus) for off in (0.1, 0.3, 1.25, 3.0) for bonus in (1.0, 5.0, 18.75, 50.0))
"""alpha0 and epsilon0 that `prior="auto"` tries."""
TRUST = 100.0
"""More right answers that a trusted worker is believed to have given."""
LEAST_HABIT = 0.1
"""Least pseudo-count of a habit of the population."""


def trusted_ids(trusted: Collection[str]) -> tuple[str, ...]:
    """Read ids of workers, given one by one or separated by commas (on the command line).

    Raises:
        InputError: It is neither.

    >>> trusted_ids("ana, ben"), trusted_ids(["ana"]), trusted_ids("")
    (('ana', 'ben'), ('ana',), ())
    """
    if isinstance(trusted, str):
        return tuple(name.strip() for name in trusted.split(",") if name.strip())
    if not isinstance(trusted, Collection) or not all(isinstance(name, str) for name in trusted):
        raise InputError(
            "trusted must be ids of workers as strings, or one string of ids separated by commas "
            f"(one id that is a number needs a comma too: '12,'), not {trusted!r}"
        )
    return tuple(trusted)


def given_prior(
    crowd: Crowd,
    n_previous: int,
    *,
    off: float,
    bonus: float,
    forbidden: float,
    trusted: Sequence[str] = (),
    history: Floats | None = None,
) -> Prior:
    """Make the prior of two numbers.

    Args:
        crowd: Its workers and tags.
        n_previous: Number of previous labels, 1 without memory.
        off: alpha0.
        bonus: epsilon0.
        forbidden: Pseudo-count of what the encoding forbids after the previous label.
        trusted: Ids of workers whose bonus is larger by `TRUST`.
        history: float64 [n_rows, J], counts from earlier work, or None.

    Raises:
        InputError: The crowd has no such worker.
    """
    mask = None
    if n_previous > 1 and not crowd.tagset.rules.is_plain:
        mask = previous_mask(crowd, n_previous)
    own: float | Floats = bonus
    if trusted:
        own = np.full(crowd.n_workers, float(bonus))
        for name in trusted:
            own[crowd.worker_index(name)] += TRUST
    return Prior(off, own, mask, forbidden, None, history)


class Best(NamedTuple):
    """What the grid found.

    Attributes:
        model: The model with the chosen prior.
        fit: Its short run; of the earlier ones if Ctrl-C ended the search.
        off: alpha0.
        bonus: epsilon0, of workers who are not trusted.
    """

    model: Model
    fit: Fit
    off: float
    bonus: float

    @property
    def note(self) -> str:
        """What to tell."""
        return f"prior chosen by the evidence bound: alpha0={self.off}, epsilon0={self.bonus}"


def best_of_grid(
    model: Model,
    shards: Sequence[Evidence],
    sums: Sums,
    stopping: Stopping,
    runner: Runner,
    bonus: float,
) -> Best:
    """Try the grid, each pair from where the last stopped, and keep the largest evidence bound.

    Args:
        model: The model; of its prior all but the two numbers is kept.
        shards: The evidence.
        sums: The statistics to begin with.
        stopping: When to stop at the end; the runs here are shorter.
        runner: Where to work.
        bonus: epsilon0 of the model's prior for workers who are not trusted.
    """
    best: Best | None = None
    extra = np.asarray(model.prior.bonus) - bonus
    quick = Stopping(max(stopping.tol, 1e-4), min(stopping.max_iter, 20))
    for off, right in GRID:
        tried = replace(model, prior=replace(model.prior, off=off, bonus=right + extra))
        kept = best.fit if best else None
        fit = attempt(kept, tried, shards, sums, quick, Surroundings(runner))
        sums = fit.sums
        if best is None or fit.trace[-1] > best.fit.trace[-1]:
            best = Best(tried, fit, off, right)
        if is_interrupted(fit):
            return best._replace(fit=interrupted(best.fit))
    assert best is not None  # the grid is not empty
    return best


def population_prior(model: Model, sums: Sums) -> Prior:
    """Put the mean worker's habits in place of the flat prior.

    Args:
        model: The model of a first run.
        sums: Its statistics.
    """
    rows, old = model.rows, model.prior
    base = np.zeros((rows.n_previous, rows.n_labels, rows.n_labels))
    by_label = base.transpose(0, 2, 1)  # a view: previous, given, truth
    np.add.at(by_label, (rows.previous, rows.label), sums.counts[: len(rows)])
    base += LEAST_HABIT
    base *= np.mean(old.bonus) / base.sum(axis=2, keepdims=True)
    return replace(old, base=np.maximum(base, LEAST_HABIT))
