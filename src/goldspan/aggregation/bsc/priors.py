"""Parameters and priors: by hand, by the evidence bound, from the population, from history."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan.aggregation.bsc.engine import (
    Fit,
    Model,
    RunContext,
    Stopping,
    attempt,
    interrupted,
    is_interrupted,
    run,
)
from goldspan.aggregation.bsc.evidence import Evidence, Sums, previous_mask
from goldspan.aggregation.families import Families
from goldspan.aggregation.workermodels import Floats, Prior, Rows
from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.params import OneOf
from goldspan.protocols import Runner
from goldspan.spans import Codec

# --------------------------------------------------------------------------------------------------
# Where the workers' prior comes from: two numbers and some trust, a grid, or the population.


PRIORS = ("given", "auto", "population", "votes")
POPULATION = {"population", "votes"}
"""Priors that centre every worker on the average one."""
DECODERS = ("mbr", "viterbi")
Decoder = Annotated[str, OneOf(DECODERS)]
"""Spans with the largest expected F1, or the likeliest path."""
GRID = tuple((off, bonus) for off in (0.1, 0.3, 1.25, 3.0) for bonus in (1.0, 5.0, 18.75, 50.0))
"""alpha0 and epsilon0 that `prior="auto"` tries."""
TRUST = 100.0
"""More right answers that a trusted worker is believed to have given."""
LEAST_COUNT = 0.1
"""Least pseudo-count of a habit of the population."""


def trusted_ids(trusted: Collection[str]) -> tuple[str, ...]:
    """Read ids of workers, given one by one or separated by commas (on the command line).

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
    crowd: Crowd,  # Its workers and tags
    n_previous: int,  # Number of previous labels, 1 without memory
    *,
    off: float,
    bonus: float,
    forbidden: float,  # Pseudo-count of what the encoding forbids after the previous label
    trusted: Sequence[str] = (),  # Ids of workers whose bonus is larger by `TRUST`
    history: Floats | None = None,  # [n_rows, J], counts from earlier work, or None
) -> Prior:
    """Make the prior of two numbers."""
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
    """What the grid found."""

    model: Model  # The model with the chosen prior
    fit: Fit  # Its short run; of the earlier ones if Ctrl-C ended the search
    off: float
    bonus: float  # epsilon0, of workers who are not trusted


def best_of_grid(
    model: Model,  # The model; of its prior all but the two numbers is kept
    shards: Sequence[Evidence],
    sums: Sums,  # The statistics to begin with
    stopping: Stopping,  # When to stop at the end; the runs here are shorter
    runner: Runner,
    bonus: float,  # epsilon0 of the model's prior for workers who are not trusted
) -> Best:
    """Try the grid, each pair from where the last stopped, and keep the largest evidence bound."""
    best: Best | None = None
    extra = np.asarray(model.prior.bonus) - bonus
    quick = Stopping(max(stopping.tol, 1e-4), min(stopping.max_iter, 20))
    for off, right in GRID:
        tried = replace(model, prior=replace(model.prior, off=off, bonus=right + extra))
        again = partial(run, tried, shards, sums, quick, RunContext(runner))
        fit = attempt(best.fit if best else None, again)
        sums = fit.sums
        if best is None or fit.trace[-1] > best.fit.trace[-1]:
            best = Best(tried, fit, off, right)
        if is_interrupted(fit):
            return best._replace(fit=interrupted(best.fit))
    assert best is not None  # the grid is not empty
    return best


def population_prior(model: Model, sums: Sums) -> Prior:
    """Put the mean worker's habits in place of the flat prior."""
    rows, old = model.rows, model.prior
    base = np.zeros((rows.n_previous, rows.n_labels, rows.n_labels))
    by_label = base.transpose(0, 2, 1)  # a view: previous, given, truth
    np.add.at(by_label, (rows.previous, rows.label), sums.counts[: len(rows)])
    base += LEAST_COUNT
    base *= np.mean(old.bonus) / base.sum(axis=2, keepdims=True)
    return replace(old, base=np.maximum(base, LEAST_COUNT))


# --------------------------------------------------------------------------------------------------
# What an earlier fit knew, carried over to another crowd: by worker id, tag and word.


@dataclass(frozen=True, eq=False)
class Memory:
    """The statistics of a fit, with the names that they belong to."""

    model: Model  # What was fitted
    sums: Sums  # The statistics that made its parameters
    posterior: Any
    worker_ids: pa.Array  # Arrow string array [n_workers]
    codec: Codec
    plain_bonus: float  # epsilon0 of workers who are not trusted, also of unknown ones
    dependence: float = 0.0  # How much workers share their mistakes, for methods with +crf
    families: Families | None = None  # Workers who err together; None: everybody errs alone

    def check(self, crowd: Crowd, model: str) -> None:
        """Check that it fits a crowd, already in its tags, and a worker model."""
        if (self.codec.tags, self.codec.encoding) != (crowd.tagset.tags, crowd.tagset.encoding):
            raise InputError(
                f"the earlier result has the tags {' '.join(self.codec.tags)}, this crowd "
                f"{' '.join(crowd.tagset.tags)}: it must not have others"
            )
        if self.model.workers.name != model:
            raise InputError(
                f"the earlier result has worker model {self.model.workers.name!r}, this one "
                f"{model!r}: they must be the same"
            )

    def join(self, evidence: Evidence, rows: Rows, crowd: Crowd) -> tuple[Evidence, Rows]:
        """Add the remembered rows of the crowd's workers to the crowd's own, numbered anew."""
        if self.model.rows.n_previous != rows.n_previous:
            raise InputError(
                "the earlier result treats previous labels in another way (at_start, after_skip)"
            )
        remembered, _ = self._keys(crowd)
        own = rows.keys()
        every = np.union1d(own, remembered)
        words = np.arange(len(rows), max(len(rows), int(evidence.row.max(initial=-1)) + 1))
        moved = np.append(np.searchsorted(every, own), words + len(every) - len(rows))
        joined = Rows.of_keys(every, rows.n_workers, rows.n_previous, rows.n_labels)
        return replace(evidence, row=moved.astype(np.int32)[evidence.row]), joined

    def counts(self, rows: Rows, crowd: Crowd) -> Floats:
        """Return the remembered counts of rows, float64 [n_rows, J]; 0 for what is new."""
        remembered, kept = self._keys(crowd)
        counts = np.zeros((len(rows), rows.n_labels))
        place = np.searchsorted(rows.keys(), remembered)
        counts[place] = self.sums.counts[: len(self.model.rows)][kept]
        return counts

    def prior(self, crowd: Crowd, history: Floats | None) -> Prior:
        """Return the prior of the fit for the workers of another crowd."""
        # history float64 [n_rows, J]
        old = self.model.prior
        bonus = old.bonus
        if np.ndim(bonus):
            here = self._places(crowd)
            kept, bonus = here >= 0, np.full(crowd.n_workers, self.plain_bonus)
            bonus[here[kept]] = old.right_bonus(len(here))[kept]
        return replace(old, bonus=bonus, history=history)

    def carried(self, rows: Rows, crowd: Crowd, prior: Prior) -> Any:
        """Return the workers' posterior on other rows, None where the counts say it."""
        workers = self.model.workers
        places = self._places(crowd)
        return workers.carry(self.posterior, self.model.rows, rows, places, prior)

    def _places(self, crowd: Crowd) -> NDArray[np.int64]:
        """Return every remembered worker's index in a crowd, -1 where it has no such."""
        place = pc.fill_null(pc.index_in(self.worker_ids, value_set=crowd.worker_ids), -1)
        return np.asarray(place.to_numpy(zero_copy_only=False), np.int64)

    def _keys(self, crowd: Crowd) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the keys of the rows whose workers the crowd has, and which rows these are."""
        old = self.model.rows
        worker = self._places(crowd)[old.worker]
        kept = np.flatnonzero(worker >= 0)
        return old.keys(worker)[kept], kept

    def words(self, model: Model) -> Floats:
        """Return the remembered counts of a model's words, float64 [n_words, J]."""
        if model.words is None:
            return np.zeros((0, model.rows.n_labels))
        counts = np.zeros((len(model.words), model.rows.n_labels))
        if self.model.words is not None:
            place = pc.index_in(self.model.words.words, value_set=model.words.words)
            to = pc.fill_null(place, len(model.words) - 1).to_numpy(zero_copy_only=False)
            remembered = self.sums.counts[len(self.model.rows) :]
            np.add.at(counts, to, remembered[:-1])
            counts[-1] += remembered[-1]
        return counts
