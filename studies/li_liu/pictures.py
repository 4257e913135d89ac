"""The pictures of Li and Liu 2015: accuracy, and the size of the team, by what is varied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

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
from studies.li_liu.panels import Curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT, COLUMNS = 4.0, 2.7, 2
"""Inches of a panel, with its legend."""
GREEN, PINK, SKY, AMBER = "#009e73", "#cc79a7", "#56b4e9", "#e69f00"
"""With `POINT` and `WRONG` colours that are told apart under every colour blindness."""
LOOK = {
    "votes, top K": (MUTED, ":"),
    "WMV-lin top K": (INK, "-"),
    "WMV-lin random K": (MUTED, "--"),
    "WMV-lin selected": (POINT, "-"),
    "WMV-lin plug-in": (SKY, "-"),
    "WMV-log selected": (POINT, "--"),
    "WMV-lin posterior (ours)": (WRONG, "-"),
    "WMV-lin posterior, negative": (PINK, "-"),
    "EM one-coin top K": (AMBER, "-"),
    "EM one-coin random K": (AMBER, ":"),
    "EM one-coin selected": (AMBER, "--"),
    "EM full top K": (GREEN, "-"),
    "EM full random K": (GREEN, ":"),
    "EM full selected": (GREEN, "--"),
}


def panel_figure(found: Sequence[Curves]) -> Figure:
    """Draw every panel: accuracy on the left, the size of the teams on the right.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    height = HEIGHT * len(found) + 0.9
    figure = new_figure(WIDTH * COLUMNS + 0.4, height)
    with default_style():
        axes = figure.subplots(len(found), COLUMNS, squeeze=False)
        figure.subplots_adjust(
            left=0.07, right=0.98, top=1 - 0.3 / height, bottom=1.3 / height, hspace=0.42
        )
        for curves, (left, right) in zip(found, axes, strict=True):
            _accuracies(left, curves)
            _sizes(right, curves)
        longest = max(found, key=lambda curves: len(curves.panel.entries))
        lines = axes[found.index(longest)][0].get_lines()
        figure.legend(
            lines, [str(line.get_label()) for line in lines], loc="lower center", ncols=4,
            frameon=False, prop={"family": FONT, "size": 7.5}, labelcolor=INK,
        )  # fmt: skip
    return figure


def _accuracies(ax: Axes, curves: Curves) -> None:
    for line, entry in enumerate(curves.panel.entries):
        colour, style = LOOK[entry.label]
        ax.plot(
            curves.panel.places, 100 * curves.mean[line], color=colour, linestyle=style,
            linewidth=1.4, label=entry.label,
        )  # fmt: skip
    _frame(ax, curves, f"{curves.panel.title}: accuracy, %")


def _sizes(ax: Axes, curves: Curves) -> None:
    seen = {"random K"}  # as many as of the top K
    for line, entry in enumerate(curves.panel.entries):
        if entry.way.name not in seen:
            colour, style = LOOK[entry.label]
            size = curves.size[:, line].mean(axis=0)
            ax.plot(curves.panel.places, size, color=colour, linestyle=style, linewidth=1.4)
            seen.add(entry.way.name)
    ax.set_ylim(bottom=0)
    _frame(ax, curves, "workers in the team")


def _frame(ax: Axes, curves: Curves, title: str) -> None:
    bare(ax)
    ax.grid(visible=True, color=GRID, linewidth=0.7, linestyle="-")
    ax.set_axisbelow(True)
    ax.set_xlabel(curves.panel.axis, fontfamily=FONT, fontsize=8.5, color=MUTED, labelpad=2)
    write(ax, 0, 1.03, title, weight="bold", size=8.5)
