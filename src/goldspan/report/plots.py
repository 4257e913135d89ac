"""The picture of a crowd: three box plots of how much the workers did and how well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd import Agreement, Crowd
from goldspan.report.canvas import (
    BOX,
    GRID,
    INK,
    MUTED,
    POINT,
    bare,
    new_figure,
    own_settings,
    write,
)
from goldspan.report.distributions import Distribution, distributions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WHISKER = 1.5
"""Box heights that a whisker may be long."""
MAX_POINTS = 200
"""Points drawn per box; of more values every n-th in their order is drawn, both ends included."""


def agreement_figure(crowd: Crowd, agreement: Agreement) -> Figure:
    """Draw three box plots side by side, as in paper 000, figure 2.

    Answers per worker, answers per item (per document where workers answered whole documents),
    and the workers' span F1: against gold if there is some, else against the others; for single
    labels their accuracy. The box is the middle half, its line the median; whiskers reach to the
    last value within 1.5 box heights.

    Args:
        crowd: The crowd.
        agreement: Its agreement, from `goldspan.agreement`.

    Returns:
        The figure, 4.4 by 3 inches: its smallest print can be read on a phone.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    figure = new_figure(4.4, 3.0)
    with own_settings():
        axes = figure.subplots(1, 3)
        figure.subplots_adjust(left=0.085, right=0.885, top=0.84, bottom=0.04, wspace=1.05)
        for letter, ax, shown in zip("abc", axes, distributions(crowd, agreement), strict=True):
            _draw(ax, shown, letter)
    return figure


def _draw(ax: Axes, shown: Distribution, letter: str) -> None:
    title = f"({letter}) {shown.what}" + (", %" if shown.is_rate else "")
    write(ax, -0.4, 1.14, title, weight="bold")
    write(ax, -0.4, 1.065, shown.per, color=MUTED)
    bare(ax)
    ax.set_xticks([])
    ax.set_xlim(-0.4, 0.4)
    _scale(ax, shown)
    ax.grid(visible=True, axis="y", color=GRID, linewidth=0.7, linestyle="-")
    ax.set_axisbelow(True)
    if not len(shown.values):
        write(ax, 0.1, 0.5, "no values", color=MUTED)
        return
    _box(ax, shown.values)
    _scatter(ax, _thinned(shown.values))
    _label_quartiles(ax, shown)


def _scatter(ax: Axes, points: NDArray[np.float64]) -> None:
    few = len(points) <= 50
    jitter = np.random.default_rng(0).uniform(-0.22, 0.22, len(points))
    size, alpha = (13, 0.75) if few else (8, 0.4)
    look: dict[str, Any] = {"s": size, "alpha": alpha, "color": POINT, "linewidths": 0}
    ax.scatter(jitter, points, zorder=3, clip_on=False, **look)


def _scale(ax: Axes, shown: Distribution) -> None:
    """Set limits and ticks: shares from 0 (or 0.5) to 1, counts from 0, logarithmic if skew."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

    values = shown.values if len(shown.values) else np.zeros(1)
    if shown.is_rate:
        ax.set_ylim(0.5 if values.min() > 0.55 else 0.0, 1.0)
        ax.yaxis.set_major_locator(MaxNLocator(5))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f}"))
        return
    top = float(max(values.max(), 1.0))
    if top > 30 * max(float(np.percentile(values, 75)), 1.0):
        ax.set_yscale("symlog", linthresh=1.0)
        ax.set_yticks([0.0, *(10.0**power for power in range(int(np.log10(top)) + 1))])
        ax.yaxis.set_minor_locator(NullLocator())
    else:
        ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.set_ylim(0.0, 1.04 * top)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _short_count(value)))


def _short_count(value: float) -> str:
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"


def _box(ax: Axes, values: NDArray[np.float64]) -> None:
    """Draw box, median and whiskers by hand: `Axes.boxplot` loads pyplot and chooses a backend."""
    from matplotlib.patches import Rectangle

    first, median, third = np.percentile(values, [25, 50, 75])
    reach = WHISKER * (third - first)
    low = min(values[values >= first - reach].min(), first)
    high = max(values[values <= third + reach].max(), third)
    line: dict[str, Any] = {"color": INK, "linewidth": 0.9, "zorder": 2}
    for inner, outer in ((first, low), (third, high)):
        ax.plot([0, 0], [inner, outer], **line)
        ax.plot([-0.12, 0.12], [outer, outer], **line)
    look: dict[str, Any] = {"facecolor": BOX, "edgecolor": INK, "linewidth": 0.9, "zorder": 2.1}
    ax.add_patch(Rectangle((-0.31, first), 0.62, third - first, **look))
    ax.plot([-0.31, 0.31], [median, median], **line | {"linewidth": 2.0, "zorder": 2.2})


def _thinned(values: NDArray[np.float64]) -> NDArray[np.float64]:
    ordered = np.sort(values)
    if len(ordered) <= MAX_POINTS:
        return ordered
    return np.asarray(ordered[np.linspace(0, len(ordered) - 1, MAX_POINTS).round().astype(int)])


def _label_quartiles(ax: Axes, shown: Distribution) -> None:
    """Write the quartiles beside the box, moved apart where they would touch."""
    _, first, median, third, _, _ = shown.quartiles
    to_axes = ax.transData + ax.transAxes.inverted()
    low, middle, high = (float(to_axes.transform((0, v))[1]) for v in (first, median, third))
    gap = 0.07
    low, high = min(low, middle - gap), max(high, middle + gap)
    labels = [(middle, median, INK, "bold")]
    labels += [(y, value, MUTED, "normal") for y, value in ((low, first), (high, third))]
    seen = set()
    for y, value, colour, weight in labels:
        words = shown.show(value)
        if words not in seen:
            look = {"color": colour, "weight": weight, "size": 9, "va": "center_baseline"}
            write(ax, 1.04, y, words, **look)
        seen.add(words)
