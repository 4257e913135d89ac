"""Limited-memory BFGS, written for weights by the million: every vector is touched few times.

The two-loop recursion (Nocedal 1980) with a line search for the strong Wolfe conditions; nearly
every iteration takes one evaluation. SciPy's L-BFGS-B spends several times as long on its vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import InputError
from goldspan.tagger.kernels.vectors import add_and_dot, add_multiple, dot

Floats = NDArray[np.float64]
Function = Callable[[Floats], tuple[float, Floats]]
DECREASE, CURVATURE = 1e-4, 0.9
MAX_TRIALS = 20
EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where the search stopped.

    Attributes:
        x: float64, the best point.
        trace: The objective before the first step and after every step.
        converged: Whether it came to its end.
        stop_reason: "tol", "max_iter", "line search" (no better point was found, though the slope
            promised one), or what `callback` said.
        n_evaluations: How often the objective was computed.
    """

    x: Floats
    trace: tuple[float, ...]
    converged: bool
    stop_reason: str
    n_evaluations: int


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during the search, after its first step.

    Attributes:
        found: Where it was; its `stop_reason` is "interrupted".
    """

    def __init__(self, found: Minimum) -> None:
        super().__init__()
        self.found = found


def minimise(
    objective: Function,
    start: Floats,
    *,
    max_iter: int = 200,
    tol: float = 1e-5,
    memory: int = 6,
    callback: Callable[[int, float, Floats], str | None] | None = None,
) -> Minimum:
    """Minimise a smooth function.

    Args:
        objective: Gives value and gradient; the gradient may be reused by the next call.
        start: float64 [n], where to begin.
        max_iter: Most steps.
        tol: It has converged when the relative decrease over ten steps falls below this, or when no
            better point was found and the slope promised no larger decrease.
        memory: Pairs of steps and changes that are remembered.
        callback: Called with step, value and point; a string stops the search and is the reason.

    Raises:
        InputError: Value or gradient are not finite at the start.
        Interrupted: Ctrl-C, after the first step.
    """
    search = _Search(objective, start, memory)
    reason, converged = "max_iter", False
    try:
        for iteration in range(1, max_iter + 1):
            stuck = search.step(tol)
            if stuck:
                reason, converged = stuck, stuck == "tol"
                break
            said = callback(iteration, search.trace[-1], search.x) if callback else None
            if said:
                reason = said
                break
            if search.is_still(tol):
                reason, converged = "tol", True
                break
    except KeyboardInterrupt:
        if len(search.trace) == 1:
            raise
        raise Interrupted(search.minimum("interrupted", converged=False)) from None
    return search.minimum(reason, converged=converged)


class _Search:
    """Where the search is, and what it remembers."""

    def __init__(self, objective: Function, start: Floats, memory: int) -> None:
        self._objective, self._memory = objective, memory
        self.x = start.copy()
        value, gradient = objective(self.x)
        self.trace, self._n_evaluations = [value], 1
        self._gradient = gradient.copy()
        self._direction, self._at = np.empty_like(start), np.empty_like(start)
        if not np.isfinite([value, dot(gradient, gradient)]).all():
            raise InputError(
                "training: the objective is not finite at the start: values of features, weights "
                "of items or the weights to begin with are too large"
            )
        self._past: list[tuple[Floats, Floats, float]] = []
        self._spare = np.empty_like(start), np.empty_like(start)

    def step(self, tol: float) -> str | None:
        """Take a step, or say why there is none."""
        slope = _direction(self._gradient, self._past, self._direction)
        if not slope < 0:  # the memory is of no use any more
            self._past.clear()
            slope = _direction(self._gradient, self._past, self._direction)
            if slope == 0:
                return "tol"
        first = 1.0 if self._past else min(1.0, 1.0 / np.sqrt(-slope))
        found = _line_search(
            self._objective, self.x, self.trace[-1], slope, self._direction, first, self._at
        )
        self._n_evaluations += found.n_evaluations
        if found.length == 0:  # at the optimum only the last digits move
            promised = -slope * first / max(1.0, abs(self.trace[-1]))
            return "tol" if promised <= max(tol, EPSILON) else "line search"
        self._go(found)
        return None

    def _go(self, found: _Found) -> None:
        step, change = self._spare
        np.multiply(self._direction, found.length, out=step)
        np.subtract(found.gradient, self._gradient, out=change)
        curvature = dot(step, change)
        self.x += step
        self.trace.append(found.value)
        self._gradient[:] = found.gradient
        if curvature > 1e-300:
            self._past.append((step, change, curvature))
            if len(self._past) > self._memory:
                self._spare = self._past.pop(0)[:2]
            else:
                self._spare = np.empty_like(step), np.empty_like(step)

    def is_still(self, tol: float) -> bool:
        """Say whether the last ten steps moved the objective little."""
        value, long_ago = self.trace[-1], self.trace[-11:][0]
        return len(self.trace) > 10 and long_ago - value <= tol * max(1.0, abs(value))

    def minimum(self, reason: str, *, converged: bool) -> Minimum:
        """Give the result."""
        return Minimum(self.x, tuple(self.trace), converged, reason, self._n_evaluations)


def _direction(
    gradient: Floats, past: Sequence[tuple[Floats, Floats, float]], out: Floats
) -> float:
    """Set `out` to minus the approximate inverse Hessian times the gradient; give the slope there.

    Every addition goes together with the inner product that comes next, so that `out` is read once
    for both.
    """
    np.negative(gradient, out=out)
    if not past:
        return float(dot(out, gradient))
    alphas = []
    product = dot(past[-1][0], out)
    for n in range(len(past) - 1, -1, -1):
        _, change, curvature = past[n]
        alphas.append(product / curvature)
        if n:
            product = add_and_dot(out, -alphas[-1], change, past[n - 1][0])
        else:
            add_multiple(out, -alphas[-1], change)
    _, change, curvature = past[-1]
    out *= curvature / dot(change, change)
    product = dot(past[0][1], out)
    for n, (step, _, curvature) in enumerate(past):
        after = past[n + 1][1] if n + 1 < len(past) else gradient
        product = add_and_dot(out, alphas.pop() - product / curvature, step, after)
    return float(product)


@dataclass(frozen=True, eq=False)
class _Found:
    length: float
    value: float
    gradient: Floats
    n_evaluations: int


def _line_search(
    objective: Function,
    x: Floats,
    value: float,
    slope: float,
    direction: Floats,
    length: float,
    at: Floats,
) -> _Found:
    """Find a step that decreases enough and flattens enough, by bracketing and cubic steps.

    `at` is room for the points that are tried.
    """
    low, low_value, low_slope = 0.0, value, slope
    high: float = np.inf
    best: Any = _Found(0.0, value, direction, 0)
    for trial in range(1, MAX_TRIALS + 1):
        np.multiply(direction, length, out=at)
        np.add(x, at, out=at)
        new, gradient = objective(at)
        steep = dot(gradient, direction) if np.isfinite(new) else np.inf
        enough = np.isfinite(new) and new <= value + DECREASE * length * slope
        if enough and abs(steep) <= -CURVATURE * slope:
            return _Found(length, new, gradient, trial)
        if enough and new < best.value:
            best = _Found(length, new, gradient.copy(), trial)
        if not enough or new >= low_value:
            high = length
        elif steep >= 0:
            high, low, low_value, low_slope = low, length, new, steep
        else:
            low, low_value, low_slope = length, new, steep
        if np.isinf(high):
            length *= 2.0
            continue
        guess = _parabola(low, low_value, low_slope, length, new) if length != low else np.nan
        width = high - low
        inner, outer = sorted((low + 0.1 * width, low + 0.9 * width))
        length = float(guess) if inner <= guess <= outer else (low + high) / 2
    return _Found(best.length, best.value, best.gradient, MAX_TRIALS)


def _parabola(low: float, low_value: float, low_slope: float, at: float, value: float) -> float:
    """Give the minimum of the parabola through a point with its slope and another point."""
    width = at - low
    bend = value - low_value - low_slope * width
    return low - low_slope * width**2 / (2 * bend) if bend > 0 else float("nan")
