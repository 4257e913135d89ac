"""The picture of a fit: its objective after every iteration, and why it stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from goldspan.aggregate import Consensus
from goldspan.report.canvas import (
    FONT,
    GRID,
    INK,
    MUTED,
    POINT,
    bare,
    new_figure,
    own_settings,
    write,
)
from goldspan.report.wording import plural, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_MARKED = 60
"""Of more steps than this the points are not marked, only the line is drawn."""


def trace_figure(consensus: Consensus) -> Figure:
    r"""Draw the objective per iteration, with the reason why it stopped.

    Args:
        consensus: The result of a method that iterates; without a trace the axes are empty.

    Raises:
        MissingExtraError: Matplotlib is not installed.

    >>> import goldspan
    >>> answers = b"task,worker,label\nq1,a,yes\nq1,b,yes\nq1,c,no\nq2,a,no\nq2,b,no\n"
    >>> figure = trace_figure(goldspan.aggregate(answers, "ds"))
    >>> figure.axes[0].get_xlabel()
    'iteration'
    """
    figure = new_figure(4.4, 2.6)
    trace = np.asarray(consensus.trace, np.float64)
    with own_settings():
        ax = figure.subplots()
        figure.subplots_adjust(left=0.175, right=0.96, top=0.8, bottom=0.19)
        bare(ax)
        write(ax, -0.19, 1.17, "Objective per iteration, nats", weight="bold")
        write(ax, -0.19, 1.065, shorten(stop_words(consensus), 62), color=MUTED, size=8.5)
        ax.set_xlabel("iteration", fontfamily=FONT, fontsize=8.5, color=MUTED, labelpad=3)
        _draw(ax, trace)
    return figure


def stop_words(consensus: Consensus) -> str:
    """Say how many iterations there were and why they ended."""
    if not consensus.trace:
        return "nothing iterates"
    reason = STOPS.get(consensus.stop_reason, consensus.stop_reason or "finished")
    ended = "converged" if consensus.converged else "not converged"
    return f"{plural(len(consensus.trace), 'iteration')}, {ended}: {reason}"


STOPS = {
    "tol": "its change fell below the tolerance",
    "max_iter": "the allowed number of iterations was used up",
}


def _draw(ax: Axes, trace: Any) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    ax.grid(visible=True, axis="y", color=GRID, linewidth=0.7, linestyle="-")
    ax.set_axisbelow(True)
    steps = np.arange(1, len(trace) + 1)
    known = np.isfinite(trace)
    if not known.any():
        ax.set_xticks([])
        ax.set_yticks([])
        write(ax, 0.5, 0.5, "no values", color=MUTED, ha="center")
        return
    few = len(trace) <= MAX_MARKED
    marker: dict[str, Any] = {"marker": "o", "markersize": 4} if few else {}
    ax.plot(steps[known], trace[known], color=POINT, linewidth=1.5, clip_on=False, **marker)
    low, high = float(trace[known].min()), float(trace[known].max())
    room = 0.06 * (high - low) or max(abs(high) * 0.01, 0.5)
    ax.set_ylim(low - room, high + room)
    ax.set_xlim(0.5, max(len(trace), 2) + 0.5)
    ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(5))
    digits = max(0, int(np.ceil(-np.log10(high - low))) + 1) if high > low else 2
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _number(value, min(digits, 6))))
    last = trace[known][-1]
    words = f"{_number(last, 1)}"
    below = last > low + 0.25 * (high - low)
    where = (steps[known][-1], last)
    ax.annotate(
        words,
        where,
        xytext=(0, -11 if below else 7),
        textcoords="offset points",
        ha="right",
        family=FONT,
        size=9,
        weight="bold",
        color=INK,
    )


def _number(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}".replace("-", "\u2212")
