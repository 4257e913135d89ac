"""Runs of the engine: prepared, from several starts, interrupted, and what is noted about them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation.bsc.engine import Fit, Model, RunContext, Stopping, run
from goldspan.aggregation.bsc.evidence import Evidence, Sums
from goldspan.crowd import Crowd

# --------------------------------------------------------------------------------------------------
# A crowd prepared for the engine, and the name of a run on it.


@dataclass(frozen=True, eq=False)
class EngineInputs:
    """A crowd prepared for the engine.

    Attributes:
        crowd: The crowd.
        shards: Its evidence.
        model: What stays fixed.
        plain_bonus: epsilon0 of workers who are not trusted.
        sums: The statistics to begin with.
        notes: What to tell.
        dependence: How much workers share their mistakes, for methods with +crf.
    """

    crowd: Crowd
    shards: Sequence[Evidence]
    model: Model
    plain_bonus: float
    sums: Sums
    notes: tuple[str, ...]
    dependence: float = 0.0

    def fingerprint(self, method: str, params: Mapping[str, Any], *, is_warm: bool) -> str:
        """Name a run by its answers, tags and parameters, and by what it begins with.

        Args:
            method: Name of the method.
            params: Its parameters, all with a lasting `repr`; a history counts by its numbers.
            is_warm: Whether it goes on from an earlier result, whose statistics then count.
        """
        codec = self.crowd.tagset
        named = (method, sorted(params.items()), codec.encoding, codec.tags)
        digest = hashlib.blake2b(repr(named).encode(), digest_size=16)
        parts: list[Any] = [getattr(s, field.name) for s in self.shards for field in fields(s)]
        rows, prior = self.model.rows, self.model.prior
        parts += [rows.worker, rows.previous, rows.label, prior.bonus]
        parts += [] if prior.history is None else [prior.history]
        parts += [self.sums.counts, self.sums.truth] if is_warm else []
        for part in parts:
            array = np.ascontiguousarray(part)
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(array.tobytes())
        return digest.hexdigest()


# --------------------------------------------------------------------------------------------------
# Several runs of the engine, one after the other, of which one counts; Ctrl-C ends them all.


INTERRUPTED = "interrupted"
"""The engine's `stop_reason` after Ctrl-C."""


def is_interrupted(fit: Fit) -> bool:
    """Return whether Ctrl-C ended a run, so that no other may begin."""
    return fit.stop_reason == INTERRUPTED


def interrupted(fit: Fit) -> Fit:
    """Return a fit as what is left after Ctrl-C: more was to come."""
    return replace(fit, converged=False, stop_reason=INTERRUPTED)


def attempt(
    best: Fit | None,
    model: Model,
    shards: Sequence[Evidence],
    sums: Sums,
    stopping: Stopping,
    context: RunContext,
) -> Fit:
    """Run after an earlier run, which is what is left if Ctrl-C comes before the first step.

    Args:
        best: The best of the earlier runs, or None.
        model: As for `run`, like the rest.
        shards: The evidence.
        sums: The statistics to begin with.
        stopping: When to stop.
        context: Runner, progress, checkpoint.
    """
    try:
        return run(model, shards, sums, stopping, context)
    except KeyboardInterrupt:
        if best is None:
            raise
        return interrupted(best)


def best_start(
    model: Model,
    shards: Sequence[Evidence],
    sums: Sums,
    stopping: Stopping,
    context: RunContext,
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
        context: Runner; and progress and checkpoint, which are for the first run only.
        n_starts: Number of runs.
        random_state: Seed of the starts beyond the first.

    Returns:
        The fit with the largest objective.
    """
    best = run(model, shards, sums, stopping, context)
    rng = np.random.default_rng(random_state)
    for _ in range(1, n_starts):
        if is_interrupted(best):
            break
        # Every row of every worker is weighted anew: the starts really differ.
        n, counts = len(model.rows), sums.counts.copy()
        counts[:n] *= rng.gamma(0.3, 1 / 0.3, size=(n, 1))
        other = Sums(counts, sums.truth)
        fit = attempt(best, model, shards, other, stopping, RunContext(context.runner))
        if fit.trace[-1] > best.trace[-1]:
            best = fit
        if is_interrupted(fit):
            best = interrupted(best)
    return best


# --------------------------------------------------------------------------------------------------
# What to tell of a result: items without answers, and crowds in which nobody can be compared.


MANY = 0.5
"""Share of tokens with a single label from which workers cannot be compared."""


def notes_on(inputs: EngineInputs, *, is_learned: bool) -> list[str]:
    """Return the notes, those of the preparation first.

    Args:
        inputs: The crowd and its evidence.
        is_learned: Whether anything was learned of workers from these answers.
    """
    crowd = inputs.crowd
    asked = np.bincount(crowd.token_of[crowd.latest.codes >= 0], minlength=crowd.n_tokens)
    alone = _alone(inputs, asked) if is_learned else []
    return [*inputs.notes, *_unanswered(inputs, asked > 0), *alone]


def _unanswered(inputs: EngineInputs, asked: NDArray[Any]) -> list[str]:
    active = np.concatenate([shard.active for shard in inputs.shards])
    n_left = int(np.count_nonzero(~active))
    if n_left:
        return [f"{n_left} items without answers are left open"]
    if not any(len(shard.unary) for shard in inputs.shards):
        return []
    lengths = np.diff(inputs.crowd.offsets)
    item = np.repeat(np.arange(len(lengths)), lengths)
    n_alone = int(np.count_nonzero(lengths)) - len(np.unique(item[asked]))
    return [f"{n_alone} items without answers are labelled by their words alone"] if n_alone else []


def _alone(inputs: EngineInputs, asked: NDArray[Any]) -> list[str]:
    """Warn where most tokens have one label: there is nothing to learn of workers from."""
    has_truth = any((shard.gold >= 0).any() for shard in inputs.shards)
    n_asked = int(np.count_nonzero(asked))
    n_single = int(np.count_nonzero(asked == 1))
    if has_truth or not n_asked or n_single < MANY * n_asked:
        return []
    percent = 100 * n_single / n_asked
    seen = f"{percent:.0f} % of the labelled tokens have a single label"
    return [f"{seen}: workers can hardly be compared; use votes or crf-ma, or ask more workers"]
