"""BSC with a CRF inside: the words speak for themselves (MATH section 6; our own).

    q(t) ~ p_theta(t | x)^power prod_k exp{w_t E ln A^k(t, c^k_{tau-1}, c^k_tau)}

The CRF takes the place of the Dirichlet transitions. It is fitted to the soft labels q, and so
would only repeat them: it is therefore cross-fitted – documents are dealt into folds, and the
scores of a fold come from a CRF that never saw it (the weights of steps, some dozens of numbers,
are the folds' mean). A CRF that is fitted to soft labels is less sure than it might be; hence its
power. Workers miss the same names, where the model takes them to be independent, and would outvote
the text: n labels of a token count as n / (1 + (n - 1) dependence), hence w. Workers, CRFs and
labels are updated in turn. There is no bound that cannot fall: it stops when the labels stand
still, or after some rounds.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregate.base import Given
from goldspan.aggregate.bsc.engine import Fit, e_step
from goldspan.aggregate.bsc.evidence import Evidence
from goldspan.aggregate.bsc.folds import Floats, Folds, Scores, Settings
from goldspan.aggregate.bsc.patterns import discounted
from goldspan.aggregate.bsc.posterior import Posterior
from goldspan.aggregate.bsc.prepared import Prepared
from goldspan.aggregate.bsc.tables import Sums, Tables
from goldspan.aggregate.text import text_of
from goldspan.tagger.crf import CRF
from goldspan.tagger.training import Masks
from goldspan.tagger.weights import Weights

FIRST_STEPS, NEXT_STEPS = 30, 12
"""Steps of L-BFGS in the first round and in later ones."""
INNER = 3
"""Updates of the workers for every update of the CRFs."""
STILL = 0.002
"""Mean change of a token's labels below which nothing moves any more."""


@dataclass(frozen=True, eq=False)
class Refined:
    """What comes out.

    Attributes:
        shards: The evidence with the CRFs' scores.
        fit: The last parameters.
        tagger: A CRF trained on all items.
    """

    shards: Sequence[Evidence]
    fit: Fit
    tagger: CRF


@dataclass(frozen=True, eq=False)
class _Round:
    """Where a round ended."""

    weights: Sequence[Weights | None]
    shards: Sequence[Evidence]
    sums: Sums
    posterior: Any
    tables: Tables
    probs: NDArray[np.float32]


def refine(ready: Prepared, fit: Fit, settings: Settings, given: Given) -> Refined:
    """Go on from a fit without text; Ctrl-C after the first round gives what there is.

    Raises:
        InputError: There is only one item.
    """
    active = np.concatenate([shard.active for shard in ready.shards])
    folds = Folds(ready.crowd, active, settings)
    probs = _probs(ready, ready.shards, fit.tables, given)
    none = [None] * len(folds.parts)
    last = _Round(none, _discounted(ready), fit.sums, fit.posterior, fit.tables, probs)
    trace: list[float] = []
    reason, begin = "rounds", time.perf_counter()
    try:
        while len(trace) < settings.rounds and reason == "rounds":
            new = _round(ready, folds, last, given, FIRST_STEPS if not trace else NEXT_STEPS)
            moved = float(np.abs(new.probs - last.probs).sum(axis=1).mean() / 2)
            last = new
            trace.append(new.sums.log_z)
            if given.progress:
                left = (settings.rounds / len(trace) - 1) * (time.perf_counter() - begin)
                given.progress(len(trace), settings.rounds, trace[-1], left)
            reason = "labels stand still" if moved < STILL else "rounds"
        tagger = folds.tagger(last.probs, _known(last.weights), given.runner)
    except KeyboardInterrupt:
        if not trace:
            raise
        reason, tagger = "interrupted", folds.untrained(_known(last.weights))
    converged = reason == "labels stand still"
    found = Fit(last.sums, last.posterior, last.tables, tuple(trace), converged, reason)
    return Refined(last.shards, found, tagger)


def _round(ready: Prepared, folds: Folds, last: _Round, given: Given, steps: int) -> _Round:
    """Update the CRFs, then the workers and the labels some times."""
    weights = folds.train(last.probs, last.weights, steps, given.runner)
    scores = folds.scores(weights)
    shards = _with_unary(last.shards, scores.unary)
    sums, posterior, tables = last.sums, last.posterior, last.tables
    for _ in range(INNER):
        posterior, made, _ = ready.model.update(sums, posterior)
        tables = _with_text(made, scores)
        sums = given.runner.map_reduce(e_step, shards, tables, Sums.add)
    return _Round(weights, shards, sums, posterior, tables, _probs(ready, shards, tables, given))


def with_tagger(
    ready: Prepared, tables: Tables, tagger: CRF, power: float
) -> tuple[list[Evidence], Tables]:
    """Let a trained CRF speak for new items, which it never saw."""
    masks = Masks.of(ready.crowd.tagset, hard=True)
    unary = tagger.log_potentials(text_of(ready.crowd)).unary
    scores = Scores.of(unary, tagger.weights_, masks, power)
    return _with_unary(_discounted(ready), scores.unary), _with_text(tables, scores)


def _probs(
    ready: Prepared, shards: Sequence[Evidence], tables: Tables, given: Given
) -> NDArray[np.float32]:
    return Posterior(shards, tables, ready.crowd.tagset, given.runner).marginals(np.inf).probs


def _discounted(ready: Prepared) -> list[Evidence]:
    n_rows = len(ready.model.rows)
    return [discounted(shard, n_rows, ready.dependence) for shard in ready.shards]


def _with_unary(shards: Sequence[Evidence], unary: Floats) -> list[Evidence]:
    """Add the words' scores; they also speak for items that nobody answered."""
    found, token = [], 0
    for shard in shards:
        own = unary[token : token + shard.n_tokens]
        found.append(replace(shard, unary=own, active=np.ones_like(shard.active)))
        token += shard.n_tokens
    return found


def _with_text(tables: Tables, scores: Scores) -> Tables:
    return replace(tables, truth=scores.truth, end=scores.end)


def _known(weights: Sequence[Weights | None]) -> list[Weights]:
    return [one for one in weights if one is not None]
