"""Rounds of an iterative vote: the objective after each, progress, and when to stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from goldspan.protocols import Progress


@dataclass(frozen=True)
class Course:
    """How the rounds went.

    Attributes:
        trace: The objective after every round.
        converged: Whether it came to its end.
        stop_reason: "tol", "max_iter" or "interrupted".
    """

    trace: tuple[float, ...]
    converged: bool
    stop_reason: str


AT_ONCE = Course((), converged=True, stop_reason="weighted votes need no iteration")
"""Of methods without rounds."""


def run_rounds(
    step: Callable[[int], tuple[float, bool]], max_iter: int, progress: Progress | None
) -> Course:
    """Do rounds until one says that it is the last, or there are enough of them.

    Ctrl-C ends them as well, but for the first.

    Args:
        step: Does a round, numbered from 0; gives the objective and whether it has converged.
        max_iter: Most rounds.
        progress: Who is told of every round, or None.
    """
    trace: list[float] = []
    begin = time.perf_counter()
    try:
        while len(trace) < max_iter:
            objective, is_last = step(len(trace))
            trace.append(objective)
            if progress:
                pace = (time.perf_counter() - begin) / len(trace)
                progress(len(trace), max_iter, objective, pace * (max_iter - len(trace)))
            if is_last:
                return Course(tuple(trace), converged=True, stop_reason="tol")
    except KeyboardInterrupt:
        if not trace:
            raise
        return Course(tuple(trace), converged=False, stop_reason="interrupted")
    return Course(tuple(trace), converged=False, stop_reason="max_iter")
