"""The picture of calibration: confidence against the share that is right, and how much there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregate import Consensus
from goldspan.aggregate.reliability import Reliability, span_reliability, token_reliability
from goldspan.report.canvas import (
    BOX,
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
from goldspan.report.wording import plural, share

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


NOUNS = {"Tokens": "token", "Spans": "span", "Labels": "label"}


def reliability_figure(consensus: Consensus, gold: NDArray[np.int16] | None = None) -> Figure:
    r"""Draw reliability diagrams of the tokens' and of the spans' confidence.

    Above, every bin of confidence is a point: its mean confidence, and the share of it that is
    right, with the 95 % credible interval; on the dotted line confidence is exactly as high as it
    should be, below it is too sure. Beneath, how much falls into each bin, on a logarithmic axis.
    The legend has the expected calibration error (ECE), the mean gap between points and line.

    Args:
        consensus: The result.
        gold: int16 [n_tokens], -1 where unknown; by default that of the crowd.

    Raises:
        InputError: There is no gold.
        MissingExtraError: Matplotlib is not installed.

    >>> import goldspan
    >>> votes = b"task,worker,label,gold\nq1,a,yes,yes\nq1,b,no,yes\nq2,a,no,no\nq2,b,no,no\n"
    >>> len(reliability_figure(goldspan.aggregate(votes)).axes)  # the diagram and its histogram
    2
    """
    panels = reliabilities(consensus, gold)
    figure = new_figure(2.75 * len(panels), 4.3)
    with own_settings():
        axes = figure.subplots(
            2, len(panels), squeeze=False, sharex="col", gridspec_kw={"height_ratios": [3, 1]}
        )
        side = 0.5 / (2.75 * len(panels))
        figure.subplots_adjust(
            left=side, right=1 - side / 3, top=0.765, bottom=0.105, wspace=0.3, hspace=0.14
        )
        for (name, shown), (above, beneath) in zip(panels.items(), axes.T, strict=True):
            write(above, -0.2, 1.34, f"{name}: share right, %", weight="bold")
            _diagram(above, shown, name)
            _histogram(beneath, shown)
    return figure


def reliabilities(
    consensus: Consensus, gold: NDArray[np.int16] | None = None
) -> dict[str, Reliability]:
    """Collect what is compared by its name: tokens and spans, or labels alone."""
    tokens = token_reliability(consensus, gold)
    if consensus.tagset.rules.is_plain:
        return {"Labels": tokens}
    return {"Tokens": tokens, "Spans": span_reliability(consensus, gold)}


def _diagram(ax: Axes, shown: Reliability, name: str) -> None:
    bare(ax)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_yticks(np.linspace(0, 1, 6), [f"{n}" for n in range(0, 101, 20)])
    ax.grid(visible=True, color=GRID, linewidth=0.7, linestyle="-")
    ax.set_axisbelow(True)
    ax.tick_params(axis="x", labelbottom=False)
    dots: dict[str, Any] = {"linestyle": (0, (2, 2)), "label": "as it should be"}
    ax.plot([0, 1], [0, 1], color=MUTED, linewidth=1.2, **dots)
    filled = shown.counts > 0
    x, y = shown.confidence[filled], shown.right[filled]
    gap = [np.maximum(y - shown.low[filled], 0), np.maximum(shown.high[filled] - y, 0)]
    bars: dict[str, Any] = {"color": POINT, "elinewidth": 1.1, "clip_on": False, "zorder": 3}
    label = f"{plural(shown.n, NOUNS[name])}, 95\u00a0% interval"
    marks: dict[str, Any] = {"fmt": "o", "markersize": 4.5, "label": label}
    ax.errorbar(x, y, yerr=gap, **bars, **marks)
    legend = ax.legend(
        title=f"ECE {share(shown.ece)}",
        loc="lower left",
        bbox_to_anchor=(-0.21, 1.0),
        frameon=False,
        prop={"family": FONT, "size": 8.5},
        labelcolor=INK,
        handlelength=1.6,
        handletextpad=0.5,
        borderpad=0.2,
        borderaxespad=0.2,
        alignment="left",
    )
    legend.get_title().set(fontfamily=FONT, fontsize=9, color=INK)


def _histogram(ax: Axes, shown: Reliability) -> None:
    bare(ax)
    ax.set_xlim(0, 1)
    top = max(10.0, float(shown.counts.max()))
    ax.set_yscale("symlog", linthresh=1.0)
    powers = 10.0 ** np.arange(0, np.floor(np.log10(top)) + 1)
    kept = [0.0, *powers[:: max(1, -(-len(powers) // 3))]]
    ax.set_yticks(kept, ["", *map(_short, kept[1:])], minor=False)
    ax.minorticks_off()
    ax.set_ylim(0, 1.6 * top)
    ax.grid(visible=True, axis="y", color=GRID, linewidth=0.7, linestyle="-")
    ax.set_axisbelow(True)
    width = np.diff(shown.edges)
    look: dict[str, Any] = {"color": BOX, "edgecolor": INK, "linewidth": 0.8}
    ax.bar(shown.edges[:-1], shown.counts, width, align="edge", **look)
    ax.set_xticks(np.linspace(0, 1, 6), [f"{n}" for n in range(0, 101, 20)])
    words = "confidence, %   (bars: how many)"
    ax.set_xlabel(words, fontfamily=FONT, fontsize=8.5, color=MUTED, labelpad=3)


def _short(value: float) -> str:
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"
