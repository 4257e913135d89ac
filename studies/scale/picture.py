"""The picture of study scale: time and memory per label against the number of labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from goldspan.report.drawing import FONT, GRID, INK, MUTED, POINT, WRONG, bare, new_figure, write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOOKS: tuple[dict[str, Any], ...] = (
    {"color": POINT, "marker": "o"},
    {"color": WRONG, "marker": "s"},
    {"color": POINT, "marker": "^", "linestyle": ":"},
    {"color": WRONG, "marker": "v", "linestyle": ":"},
    {"color": INK, "marker": "D"},
    {"color": INK, "marker": "P", "linestyle": ":"},
)
PANELS = ("CPU ns per label and step", "bytes per label beside parameters and result")


def draw(curves: Mapping[str, Sequence[tuple[float, float, float]]]) -> Figure:
    """Draw time and memory.

    Args:
        curves: By series, points of labels, ns per label and step, bytes per label.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    figure = new_figure(10.4, 3.9)
    font: dict[str, Any] = {"fontfamily": FONT, "fontsize": 8.5, "color": MUTED}
    for column, title in enumerate(PANELS, start=1):
        axes = figure.add_subplot(1, 2, column)
        bare(axes)
        axes.grid(color=GRID, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.set_xscale("log")
        for (name, points), look in zip(curves.items(), LOOKS, strict=True):
            x, y = [point[0] for point in points], [point[column] for point in points]
            axes.plot(x, y, label=name, markersize=4, linewidth=1.2, **look)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("labels", **font)
        write(axes, 0.0, 1.04, title, color=INK, size=9)
    handles, names = figure.axes[0].get_legend_handles_labels()
    small = {"family": FONT, "size": 8}
    figure.legend(handles, names, loc="lower center", ncols=3, frameon=False, prop=small)
    figure.subplots_adjust(0.06, 0.29, 0.99, 0.91, wspace=0.16)
    return figure
