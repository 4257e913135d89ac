"""The picture of study redundancy: accuracy against answers per item, one panel per crowd."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from goldspan.report.drawing import FONT, GRID, INK, MUTED, POINT, WRONG, bare, new_figure, write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Points = list[tuple[float, float]]
_COLUMNS = 4
_LEAST = 3.0
"""Per cent that a panel spans at least, so that nothing looks like something."""


class Curve(NamedTuple):
    """What one panel shows: pairs of answers per item and accuracy in per cent."""

    name: str
    fixed: Points
    confident: Points
    majority: Points


def draw(curves: Sequence[Curve]) -> Figure:
    """Draw a panel per crowd.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    n_rows = -(-len(curves) // _COLUMNS)
    height = 2.3 * n_rows + 0.75
    figure = new_figure(2.6 * _COLUMNS, height)
    look: dict[str, Any] = {"fontfamily": FONT, "fontsize": 8.5, "color": MUTED}
    for n, curve in enumerate(curves):
        axes = figure.add_subplot(n_rows, _COLUMNS, n + 1)
        _panel(axes, curve)
        if n % _COLUMNS == 0:
            axes.set_ylabel("items right, %", **look)
        if n + _COLUMNS >= len(curves):  # nothing stands below
            axes.set_xlabel("answers per item", **look)
    handles, names = figure.axes[-1].get_legend_handles_labels()
    font = {"family": FONT, "size": 9}
    figure.legend(handles, names, loc="lower center", ncols=3, frameon=False, prop=font)
    figure.subplots_adjust(0.06, 0.85 / height, 0.99, 0.94, hspace=0.45, wspace=0.25)
    return figure


def _panel(axes: Axes, curve: Curve) -> None:
    bare(axes)
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    for points, name, colour, marker in (
        (curve.fixed, "fixed answers per item", MUTED, "o"),
        (curve.confident, "stop at a confidence of .8, .9, .95, .99", POINT, "s"),
        (curve.majority, "stop at a lead of two votes", WRONG, "^"),
    ):
        x, y = [point[0] for point in sorted(points)], [point[1] for point in sorted(points)]
        axes.plot(x, y, label=name, color=colour, marker=marker, markersize=3.5, linewidth=1.2)
    low, high = axes.get_ylim()
    top = min(high, 100.5)
    axes.set_ylim(min(low, top - _LEAST), top)
    write(axes, 0.0, 1.04, curve.name, color=INK, size=9)
