"""What pictures with two axes share: ground and title, legend, ticks in per cent and in counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from goldspan.report.canvas import FONT, GRID, INK, MUTED, bare, write

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DOTS: dict[str, Any] = {"linestyle": (0, (2, 2)), "color": MUTED, "linewidth": 1.2}
"""The look of limits and targets."""


def ground(
    ax: Axes,
    title: str,
    label: str,
    grid: Literal["x", "y", "both"] = "both",
    shift: float = 0.0,
    room: float = 0.3,
) -> None:
    """Set title, grid and the words beneath; above the axes there is room for the legend.

    Args:
        ax: The axes.
        title: Above them.
        label: Beneath them.
        grid: Which lines are drawn.
        shift: Inches that the title begins to the left of the axes.
        room: Inches for the legend.
    """
    bare(ax)
    above = 1 + room / (ax.bbox.height / ax.figure.dpi)
    left = -shift / (ax.bbox.width / ax.figure.dpi)
    write(ax, left, above, title, weight="bold", va="bottom", size=9)
    ax.grid(visible=True, axis=grid, color=GRID, linewidth=0.7, linestyle="-")
    ax.set_axisbelow(True)
    ax.set_xlabel(label, fontfamily=FONT, fontsize=8.5, color=MUTED, labelpad=3)


def legend(ax: Axes, apart: float = 0.1, columns: int = 4) -> None:
    """Set the legend between title and axes; marks and words are so many ems apart."""
    look: dict[str, Any] = {"prop": {"family": FONT, "size": 8}, "labelcolor": INK}
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (-0.02, 1.0), "ncols": columns}
    tight: dict[str, Any] = {
        "handletextpad": apart,
        "columnspacing": 0.8,
        "borderaxespad": 0.1,
        "borderpad": 0.1,
    }
    ax.legend(frameon=False, **look, **place, **tight)


def percent_ticks(axis: Any, bottom: float = 0.0) -> None:
    """Write shares in per cent, at fewer places where the axis does not begin at 0."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(5 if bottom < 0.5 else 4))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f}"))


def count_ticks(axis: Any) -> None:
    """Write whole numbers, thousands set apart."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(6, integer=True))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
