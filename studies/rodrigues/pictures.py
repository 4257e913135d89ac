"""The pictures of studies 2 to 6: F1 by method, and workers as they are and are judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from goldspan.report.drawing import (
    FONT,
    GRID,
    INK,
    MUTED,
    POINT,
    bare,
    default_style,
    new_figure,
    write,
)
from studies.rodrigues.methods import OWN, Reliability
from studies.rodrigues.tables import Runs, columns_of, rates_of, reliability_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, ROW, LETTER = 2.3, 0.21, 0.07
"""Inches of a panel, of a method's row and of a letter of its name."""


def score_figure(runs: Runs, first: str, scattered: str | None = None) -> Figure:
    """Draw F1 by method, one panel for every set of items; bars are standard deviations.

    Args:
        runs: All runs of a study.
        first: The method that is drawn in colour.
        scattered: A method whose estimates of the workers are drawn in one more panel.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    methods = columns_of(runs)
    names = list(next(iter(runs.values())).scores)
    n_panels = len(names) + (scattered in methods)
    height = max(0.75 + ROW * len(methods), 3.0 if scattered in methods else 0.0)
    margin = max(1.2, 0.15 + LETTER * max(map(len, methods)))
    figure = new_figure(margin + WIDTH * n_panels, height)
    with default_style():
        axes = figure.subplots(1, n_panels, squeeze=False)[0]
        side = margin / figure.get_figwidth()
        figure.subplots_adjust(left=side, right=0.98, top=1 - 0.35 / height, bottom=0.42 / height)
        for ax, items in zip(axes, names, strict=False):
            values = {label: rates_of(own, items)[:, 2] for label, own in methods.items()}
            _points(ax, values, first)
            title = "labelled items" if items == OWN else items
            write(ax, 0, 1.02, f"{title}: F1, %", weight="bold")
            ax.tick_params(axis="y", labelleft=ax is axes[0])
        if scattered in methods:
            pairs = [one for run in methods[scattered] for one in run.workers]
            _scatter(axes[-1], pairs, f"{scattered}: workers' F1, %")
            figure.subplots_adjust(wspace=0.22)
    return figure


def _points(ax: Axes, values: dict[str, NDArray[np.float64]], first: str) -> None:
    bare(ax)
    place = np.arange(len(values))[::-1]
    mean = [float(found.mean()) for found in values.values()]
    spread = [float(found.std(ddof=1)) if len(found) > 1 else 0.0 for found in values.values()]
    colours = [POINT if label == first else INK for label in values]
    for y, x, error, colour in zip(place, mean, spread, colours, strict=True):
        ax.errorbar(x, y, xerr=error, fmt="o", markersize=4.5, color=colour, elinewidth=1.2)
        ax.annotate(
            f"{x:.1f}", (x, y), (0, 4), textcoords="offset points", ha="center", size=6.5,
            color=colour, family=FONT,
        )  # fmt: skip
    ax.set_yticks(place, list(values))
    ax.set_ylim(-0.7, len(values) - 0.3)
    ax.grid(visible=True, axis="x", color=GRID, linewidth=0.7, linestyle="-")
    ax.set_axisbelow(True)
    ax.margins(x=0.12)


def _scatter(ax: Axes, pairs: list[Reliability], title: str) -> None:
    bare(ax)
    true = [100 * one.true for one in pairs]
    estimated = [100 * one.estimated for one in pairs]
    ax.plot([0, 100], [0, 100], color=MUTED, linewidth=1.2, linestyle=(0, (2, 2)))
    ax.scatter(true, estimated, s=13, alpha=0.75, color=POINT, linewidths=0, zorder=3)
    ax.set_xlim(0, 100)
    ax.set_ylim(0, 100)
    ax.grid(visible=True, color=GRID, linewidth=0.7, linestyle="-")
    ax.set_axisbelow(True)
    look: dict[str, Any] = {"fontfamily": FONT, "fontsize": 8.5, "color": MUTED, "labelpad": 2}
    ax.set_xlabel(f"true (up: estimated; RMSE {reliability_error(tuple(pairs)):.1f})", **look)
    write(ax, 0, 1.02, title, weight="bold")
