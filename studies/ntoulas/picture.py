"""The learning curves: F by the number of labels, a panel per classifier."""

from __future__ import annotations

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
from studies.ntoulas.scores import mean_and_error
from studies.ntoulas.tables import Found

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 4
WIDTH, HEIGHT = 2.7, 2.3
"""Inches of a panel."""
LOOKS = ((MUTED, "--", "o"), (POINT, "-", "s"), (WRONG, "-", "^"))
"""Of the rules, in order."""
TICKS = (100, 300, 1000)
_LEAST = 5.0
"""Per cent that a panel spans at least, so that nothing looks like something."""


def draw(found: Found) -> Figure:
    """Draw a panel per classifier; bands are standard errors, the thin line is all labels.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    n = len(found.classifiers)
    n_rows = -(-n // COLUMNS)
    height = HEIGHT * n_rows + 0.6
    figure = new_figure(WIDTH * min(n, COLUMNS), height)
    with default_style():
        for place, classifier in enumerate(found.classifiers):
            axes = figure.add_subplot(n_rows, min(n, COLUMNS), place + 1)
            _panel(axes, found, classifier)
            look = {"fontfamily": FONT, "fontsize": 8.5, "color": MUTED}
            if place % COLUMNS == 0:
                axes.set_ylabel("F, %", **look)  # type: ignore[arg-type]
            if place + COLUMNS >= n:  # nothing stands below
                axes.set_xlabel("labels", labelpad=2, **look)  # type: ignore[arg-type]
        lines, names = figure.axes[0].get_legend_handles_labels()
        font = {"family": FONT, "size": 8.5}
        figure.legend(
            lines, names, loc="lower center", ncols=4, frameon=False, prop=font, labelcolor=INK
        )
        figure.subplots_adjust(
            left=0.06, right=0.985, bottom=0.8 / height, top=1 - 0.3 / height,
            hspace=0.42, wspace=0.24,
        )  # fmt: skip
    return figure


def _panel(axes: Axes, found: Found, classifier: str) -> None:
    bare(axes)
    axes.grid(visible=True, color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    everything = found.trainings[0]
    mean, _ = mean_and_error(found.values(classifier, everything))
    axes.axhline(mean, color=INK, linewidth=0.9, linestyle=":", label=everything.name)
    for rule, (colour, style, marker) in zip(found.curves, LOOKS, strict=False):
        points = found.curve(classifier, rule)
        x, y, error = ([point[k] for point in points] for k in range(3))
        low = [value - e for value, e in zip(y, error, strict=True)]
        high = [value + e for value, e in zip(y, error, strict=True)]
        axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(
            x, y, color=colour, linestyle=style, marker=marker, markersize=3, linewidth=1.3,
            label=rule.name,
        )  # fmt: skip
    low_end, high_end = axes.get_ylim()
    room = max(0.0, _LEAST - (high_end - low_end)) / 2
    axes.set_ylim(low_end - room, high_end + room)
    axes.set_xscale("log")
    axes.set_xticks(TICKS, [f"{tick:,}" for tick in TICKS])
    axes.set_xticks([], minor=True)
    axes.set_xlim(0.8 * min(found.points), 1.25 * max(found.points))
    write(axes, 0, 1.04, classifier, weight="bold", size=8.5)
