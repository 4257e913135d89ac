"""The picture: F1 by tokens on both test sets, and how long the picked sentences are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from goldspan.report.drawing import (
    FONT,
    GRID,
    INK,
    MUTED,
    POINT,
    WRONG,
    bare,
    default_style,
    new_figure,
    write,
)
from studies.selection_ner.journal import Runs
from studies.selection_ner.lines import RANDOM, RULES, SCHEDULE, Extent
from studies.selection_ner.tables import error_of, f1_of, tests_of, values_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GREEN, AMBER = "#009e73", "#e69f00"
"""With `POINT` and `WRONG` colours that are told apart under every colour blindness."""
LOOK: dict[str, dict[str, Any]] = {
    RANDOM: {"color": MUTED, "linestyle": "--", "marker": "o"},
    "coverage-paper": {"color": WRONG, "linestyle": ":", "marker": "v"},
    "coverage": {"color": AMBER, "linestyle": "-", "marker": "^"},
    "mnlp": {"color": GREEN, "linestyle": "-", "marker": "D"},
    SCHEDULE: {"color": POINT, "linestyle": "-", "marker": "s"},
}
WIDTH, HEIGHT = 3.7, 3.6
"""Inches of a panel, and of the picture."""


def curve_figure(runs: Runs, extent: Extent) -> Figure:
    """Draw a panel per test set, and one of lengths; bars are standard errors over the seeds.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    tests = tests_of(runs)
    figure = new_figure(WIDTH * (len(tests) + 1), HEIGHT)
    with default_style():
        axes = figure.subplots(1, len(tests) + 1, squeeze=False)[0]
        figure.subplots_adjust(left=0.035, right=0.99, top=0.91, bottom=0.23, wspace=0.13)
        for ax, test in zip(axes, tests, strict=False):
            _scores(ax, runs, extent, test)
            _frame(ax, extent, f"{test}: span F1, %")
        _lengths(axes[-1], runs, extent)
        _frame(axes[-1], extent, "tokens per picked sentence, so far")
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(
            handles, names, loc="lower center", ncols=len(names), frameon=False,
            prop={"family": FONT, "size": 8.5}, labelcolor=INK,
        )  # fmt: skip
    return figure


def _scores(ax: Axes, runs: Runs, extent: Extent, test: str) -> None:
    for label in RULES:
        f1 = f1_of(runs, label, test, extent.budgets)
        error = np.nan_to_num(error_of(f1))
        look = {**LOOK[label], "markersize": 3.5, "linewidth": 1.3, "elinewidth": 0.9}
        ax.errorbar(extent.budgets, f1.mean(axis=0), yerr=error, label=label, **look)
    goal = float(f1_of(runs, RANDOM, test, extent.budgets[-1:]).mean())
    ax.axhline(goal, color=MUTED, linewidth=0.9, linestyle=(0, (2, 2)))
    ax.annotate(
        f"random, {extent.budgets[-1]:,} tokens: {goal:.1f}", (extent.budgets[0], goal), (-2, 4),
        textcoords="offset points", size=7.5, color=MUTED, family=FONT,
    )  # fmt: skip


def _lengths(ax: Axes, runs: Runs, extent: Extent) -> None:
    for label in RULES:
        length = values_of(runs, label, extent.budgets, lambda stop: stop.tokens / stop.items)
        look = {**LOOK[label], "markersize": 3.5, "linewidth": 1.3}
        ax.plot(extent.budgets, length.mean(axis=0), **look)
    ax.set_ylim(bottom=0)


def _frame(ax: Axes, extent: Extent, title: str) -> None:
    bare(ax)
    ax.grid(visible=True, color=GRID, linewidth=0.7, linestyle="-")
    ax.set_axisbelow(True)
    ax.set_xscale("log")
    ax.set_xticks(extent.budgets, [f"{budget / 1000:g}k" for budget in extent.budgets])
    ax.minorticks_off()
    ax.set_xlabel("tokens labelled", fontfamily=FONT, fontsize=8.5, color=MUTED, labelpad=2)
    write(ax, 0, 1.03, title, weight="bold", size=8.5)
