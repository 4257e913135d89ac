"""The picture of the study: span F1 against the money, a line per way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from studies.campaign_ner.tables import MARGIN, Mean, fixed_line
from studies.campaign_ner.ways import ADAPTIVE, FULL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOOK = {
    ADAPTIVE: (POINT, "-", "o"),
    "fixed redundancy": (MUTED, "-", "D"),
    "at random": (WRONG, ":", "v"),
}


def draw(found: dict[str, list[Mean]]) -> Figure:
    """Draw F1 against answers on the left and against money on the right.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    figure = new_figure(9.0, 4.4)
    lines = {name: found[name] for name in LOOK if name in found}
    random = [stages[0] for name, stages in found.items() if name.endswith("% at random")]
    lines |= {"fixed redundancy": fixed_line(found), "at random": random}
    target = found[FULL][0].f1 - MARGIN
    with default_style():
        left, right = figure.subplots(1, 2, sharey=True)
        for ax, of, title in (
            (left, "answers", "% of all answers"),
            (right, "money", "% of the money"),
        ):
            _panel(ax, lines, of, target)
            ax.set_xlabel(title, fontfamily=FONT, fontsize=9, color=MUTED)
        write(left, 0.0, 1.04, "Span F1 of all sentences, %")
        handles, names = left.get_legend_handles_labels()
        figure.legend(
            handles, names, loc="lower center", ncols=3, frameon=False,
            prop={"family": FONT, "size": 8.5}, labelcolor=INK,
        )  # fmt: skip
        figure.subplots_adjust(left=0.06, right=0.98, top=0.91, bottom=0.22, wspace=0.08)
    return figure


def _panel(ax: Axes, lines: Mapping[str, Sequence[Mean]], of: str, target: float) -> None:
    bare(ax)
    ax.grid(color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    for name, stages in lines.items():
        colour, style, marker = LOOK[name]
        places = [100 * getattr(mean, of) for mean in stages]
        ax.plot(
            places, [100 * mean.f1 for mean in stages], label=name, color=colour, linestyle=style,
            marker=marker, markersize=4, linewidth=1.4,
        )  # fmt: skip
    ax.axhline(100 * target, color=INK, linewidth=0.8, linestyle="--")
    ax.annotate(
        "all answers less 1 point", (0.99, 100 * target), xycoords=("axes fraction", "data"),
        xytext=(0, -5), textcoords="offset points", ha="right", va="top", fontfamily=FONT,
        fontsize=8, color=INK,
    )  # fmt: skip
