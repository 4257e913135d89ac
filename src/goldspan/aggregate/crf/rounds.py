"""Rounds: what is believed of the answers, then the CRF, in turn, until nothing moves.

The state between two rounds is the CRF's weights and some arrays; it is all that is kept in a
checkpoint, and what is left when Ctrl-C comes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from goldspan.aggregate.crf.lessons import Floats
from goldspan.errors import InputError
from goldspan.protocols import Checkpoint, Progress
from goldspan.tagger.weights import Weights

INTERRUPTED = "interrupted"


@dataclass(frozen=True, eq=False)
class State:
    """Where a run is.

    Attributes:
        weights: Of the CRF, None before there is one.
        trace: The objective after every round.
        arrays: What else a method remembers.
    """

    weights: Weights | None = None
    trace: tuple[float, ...] = ()
    arrays: Mapping[str, Floats] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Outcome:
    """Where a run stopped, and why."""

    state: State
    converged: bool
    reason: str


@dataclass(frozen=True, eq=False)
class Surroundings:
    """Who is told, and where the state is kept under which name."""

    progress: Progress | None = None
    checkpoint: Checkpoint | None = None
    fingerprint: str = ""


def run(
    state: State,
    one_round: Callable[[State], State],
    reason_to_stop: Callable[[State], str],
    max_iter: int,
    around: Surroundings,
) -> Outcome:
    """Do rounds.

    Args:
        state: Where to begin.
        one_round: Gives the next state, whose trace is longer by one.
        reason_to_stop: Says why a state is the last; empty goes on.
        max_iter: Most rounds.
        around: Progress and checkpoint.

    Raises:
        InputError: The objective is not finite after a round.
        KeyboardInterrupt: Ctrl-C before the first round was done; later the last round counts.
    """
    kept = around.checkpoint.load(around.fingerprint) if around.checkpoint else None
    state = state if kept is None else _restored(kept, state)
    begin, done = time.perf_counter(), len(state.trace)
    try:
        while len(state.trace) < max_iter:
            state = one_round(state)
            now = len(state.trace)
            check_finite(state.trace)
            if around.progress:
                pace = (time.perf_counter() - begin) / (now - done)
                around.progress(now, max_iter, state.trace[-1], pace * (max_iter - now))
            reason = reason_to_stop(state)
            if reason:
                return Outcome(state, converged=True, reason=reason)
            if around.checkpoint and now < max_iter:  # a resumed run does one round at least
                around.checkpoint.save(around.fingerprint, _kept(state))
    except KeyboardInterrupt:
        if not state.trace:  # no round is done; weights may be there from a warm start
            raise
        return Outcome(state, converged=False, reason=INTERRUPTED)
    return Outcome(state, converged=False, reason="max_iter")


def check_finite(trace: tuple[float, ...]) -> None:
    """Refuse to go on from an objective that is none.

    Raises:
        InputError: The last one is not finite.
    """
    if not np.isfinite(trace[-1]):
        raise InputError(
            f"the objective is {trace[-1]} after round {len(trace)}: the CRF finds some answers "
            "impossible, or its weights are too large; a larger c2 or fewer steps keep them small"
        )


def moved(trace: tuple[float, ...]) -> float:
    """Give the relative change of the objective in the last round, inf after the first."""
    if len(trace) < 2:
        return np.inf
    return abs(trace[-1] - trace[-2]) / max(1.0, abs(trace[-2]))


def _kept(state: State) -> dict[str, Floats]:
    assert state.weights is not None
    shape = np.array(state.weights.state.shape)
    parts = {"trace": np.array(state.trace), "shape": shape, "weights": state.weights.vector}
    return parts | dict(state.arrays)


def _restored(kept: Mapping[str, Floats], state: State) -> State:
    n_features, n_labels = kept["shape"].tolist()
    weights = Weights.of_vector(np.array(kept["weights"]), n_features, n_labels)
    arrays = {name: np.array(kept[name]) for name in kept if name not in {"trace", "shape"}}
    del arrays["weights"]
    return replace(state, weights=weights, trace=tuple(kept["trace"].tolist()), arrays=arrays)
