"""Limited-memory BFGS, written for weights by the million: every vector is touched few times.

The two-loop recursion (Nocedal 1980) with a line search for the strong Wolfe conditions; nearly
every iteration takes one evaluation. SciPy's L-BFGS-B spends several times as long on its vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from karat.tagger.kernels.vectors import add_multiple, dot

Floats = NDArray[np.float64]
DECREASE, CURVATURE = 1e-4, 0.9
MAX_TRIALS = 20


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where the search stopped.

    Attributes:
        x: float64, the best point.
        trace: The objective before the first step and after every step.
        converged: Whether it came to its end.
        stop_reason: "tol", "max_iter", "line search" (no better point was found; at the
            optimum the last digits do that), or what `callback` said.
        n_evaluations: How often the objective was computed.
    """

    x: Floats
    trace: tuple[float, ...]
    converged: bool
    stop_reason: str
    n_evaluations: int


def minimise(
    objective: Callable[[Floats], tuple[float, Floats]],
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
        tol: It has converged when the relative decrease over ten steps falls below this.
        memory: Pairs of steps and changes that are remembered.
        callback: Called with step, value and point; a string stops the search and is the reason.
    """
    x = start.copy()
    value, gradient = objective(x)
    gradient = gradient.copy()
    trace, n_evaluations = [value], 1
    past: list[tuple[Floats, Floats, float]] = []
    reason, converged = "max_iter", False
    direction = np.empty_like(x)
    for iteration in range(1, max_iter + 1):
        _direction(gradient, past, direction)
        slope = dot(direction, gradient)
        if not slope < 0:  # the memory is of no use any more
            past.clear()
            np.negative(gradient, out=direction)
            slope = -dot(gradient, gradient)
            if slope == 0:
                reason, converged = "tol", True
                break
        first = 1.0 if past else min(1.0, 1.0 / np.sqrt(-slope))
        found = _line_search(objective, x, value, slope, direction, first)
        n_evaluations += found.n_evaluations
        if found.length == 0:
            reason = "line search"
            break
        step = direction * found.length
        change = found.gradient - gradient
        curvature = dot(step, change)
        if curvature > 1e-300:
            if len(past) == memory:
                past.pop(0)
            past.append((step, change, curvature))
        x += step
        value = found.value
        gradient[:] = found.gradient
        trace.append(value)
        said = callback(iteration, value, x) if callback else None
        if said:
            reason = said
            break
        back = min(10, len(trace) - 1)
        if back == 10 and trace[-1 - back] - value <= tol * max(1.0, abs(value)):
            reason, converged = "tol", True
            break
    return Minimum(x, tuple(trace), converged, reason, n_evaluations)


def _direction(gradient: Floats, past: list[tuple[Floats, Floats, float]], out: Floats) -> None:
    """Set `out` to minus the approximate inverse Hessian times the gradient."""
    np.negative(gradient, out=out)
    alphas = []
    for step, change, curvature in reversed(past):
        alpha = dot(step, out) / curvature
        alphas.append(alpha)
        add_multiple(out, -alpha, change)
    if past:
        _, change, curvature = past[-1]
        out *= curvature / dot(change, change)
    for (step, change, curvature), alpha in zip(past, reversed(alphas), strict=True):
        beta = dot(change, out) / curvature
        add_multiple(out, alpha - beta, step)


@dataclass(frozen=True, eq=False)
class _Found:
    length: float
    value: float
    gradient: Floats
    n_evaluations: int


def _line_search(
    objective: Callable[[Floats], tuple[float, Floats]],
    x: Floats,
    value: float,
    slope: float,
    direction: Floats,
    length: float,
) -> _Found:
    """Find a step that decreases enough and flattens enough, by bracketing and cubic steps."""
    low, low_value, low_slope = 0.0, value, slope
    high: float = np.inf
    best: Any = _Found(0.0, value, direction, 0)
    for trial in range(1, MAX_TRIALS + 1):
        new, gradient = objective(x + length * direction)
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
