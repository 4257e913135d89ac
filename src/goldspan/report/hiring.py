"""The pictures of hiring: how good every worker is, and what accuracy a team costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import InputError
from goldspan.hiring import Review, Verdict
from goldspan.hiring.verdicts import best_first
from goldspan.money import MICRO
from goldspan.report.axes import DOTS, ground, legend, percent_ticks
from goldspan.report.canvas import (
    BOX,
    INK,
    MUTED,
    POINT,
    RIGHT,
    WRONG,
    new_figure,
    own_settings,
)
from goldspan.report.wording import plural, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_WORKERS = 40
"""Intervals that are drawn: those of the first workers in the table."""
COLOURS = {"keep": RIGHT, "look at": INK, "test more": MUTED, "drop": WRONG}
MEASURES = {
    "accuracy": ("how often right", "right"),
    "token_accuracy": ("tokens right", "tokens right"),
    "span_f1": ("span F1", "span F1"),
}
"""How a measure is called in the title and on its axis."""
MARKS = {"keep": "o", "look at": "s", "test more": "D", "drop": "X"}


@dataclass(frozen=True, eq=False)
class CostCurve:
    """What accuracy teams of growing size promise, and what they cost.

    Attributes:
        cost: float64 [n_sizes], per item: workers, or money.
        accuracy: float64 [n_sizes], expected.
        low: float64 [n_sizes], lower end of its 95 % interval.
        high: float64 [n_sizes], upper end.
        unit: What cost counts.
        title: What is drawn, and where it is from.
        chosen: Cost and accuracy of the team that was chosen, None for nobody.
        target: Accuracy that is asked for, or None.
    """

    cost: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    unit: str = "workers per item"
    title: str = "Accuracy of a team, % (model)"
    chosen: tuple[float, float] | None = None
    target: float | None = None


def cost_curve(review: Review, target: float | None = None) -> CostCurve | None:
    """Take the curve out of a review of the workers; None where nobody can be hired."""
    forecast, team = review.forecast, review.team_forecast
    if forecast is None:
        return None
    unit = MICRO if forecast.in_money else 1
    what, how = forecast.quantity, "model" if forecast.model_based else "held-out gold"
    return CostCurve(
        cost=forecast.cost / unit,
        accuracy=forecast.accuracy,
        low=forecast.low,
        high=forecast.high,
        unit="money per item" if forecast.in_money else "workers per item",
        title=f"{what[0].upper()}{what[1:]} of a team, % ({how})",
        chosen=None if team is None else (float(team.cost[0]) / unit, float(team.accuracy[0])),
        target=target,
    )


def hiring_figure(
    verdicts: Sequence[Verdict], threshold: float, curve: CostCurve | None = None
) -> Figure:
    """Draw the workers' intervals and, beside them, the cost curve.

    Left, the posterior mean and 95 % credible interval of the first 40 workers of the table, whom
    to keep on top; mark and colour are the verdict, the dotted line is its threshold. Right, what
    the votes of the best teams of growing cost are worth, with a 95 % interval; the ring is the
    team that was chosen, the dotted line the target.

    Args:
        verdicts: From `goldspan.hiring.judge_workers`.
        threshold: That they were judged by.
        curve: The cost curve; without one there is one panel.

    Raises:
        InputError: There is no worker.
        MissingExtraError: Matplotlib is not installed.

    >>> from goldspan.hiring import Reliability, judge_workers
    >>> verdicts = judge_workers(Reliability.from_counts([19, 8, 3], [20, 10, 20]))
    >>> len(hiring_figure(verdicts, 0.75).axes)
    1
    """
    if not verdicts:
        raise InputError("there is no worker to draw")
    shown = ranked(verdicts)
    wide = 3.4 if curve is None else 6.8
    height = 1.25 + 0.16 * max(10, len(shown))
    figure = new_figure(wide, height)
    with own_settings():
        axes = figure.subplots(1, 1 if curve is None else 2, squeeze=False)[0]
        top, bottom = 1 - 0.62 / height, 0.42 / height
        sides = {"left": 1.0 / wide, "right": 1 - 0.15 / wide}
        figure.subplots_adjust(top=top, bottom=bottom, wspace=0.32, **sides)
        _workers(axes[0], shown, len(verdicts), threshold)
        if curve is not None:
            _curve(axes[1], curve)
    return figure


def ranked(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Give the workers that are drawn, in the order of the table: keep before drop, best first."""
    return best_first(verdicts)[:MAX_WORKERS]


def _workers(ax: Axes, shown: list[Verdict], n_workers: int, threshold: float) -> None:
    some = f"first {len(shown)} of " if len(shown) < n_workers else ""
    title, unit = MEASURES.get(shown[0].measure, MEASURES["accuracy"])
    title = f"{some}{plural(n_workers, 'worker')}: {title}, %"
    ground(ax, title, f"{unit}, %   (bars: 95\u00a0% interval)", "x")
    place = np.arange(len(shown))[::-1]
    ax.set_ylim(-0.7, len(shown) - 0.3)
    ax.set_yticks(place, [shorten(v.worker, 14) for v in shown])
    for label in ax.get_yticklabels():
        label.set_parse_math(False)
    ax.axvline(threshold, **DOTS)
    for kind, colour in COLOURS.items():
        own = [(y, v) for y, v in zip(place, shown, strict=True) if v.verdict == kind]
        if own:
            y, x = [y for y, _ in own], np.array([v.mean for _, v in own])
            gap = [x - [v.low for _, v in own], np.array([v.high for _, v in own]) - x]
            look: dict[str, Any] = {"fmt": MARKS[kind], "color": colour, "markersize": 4}
            ax.errorbar(x, y, xerr=gap, elinewidth=1.1, label=kind, zorder=3, **look)
    legend(ax)
    percent_ticks(ax.xaxis, 0.0)
    ax.set_xlim(0, 1)


def _curve(ax: Axes, curve: CostCurve) -> None:
    ground(ax, curve.title, f"{curve.unit}   (band: 95\u00a0%)")
    ax.fill_between(curve.cost, curve.low, curve.high, color=BOX, linewidth=0)
    ax.plot(curve.cost, curve.accuracy, color=POINT, linewidth=1.6, marker="o", markersize=3)
    if curve.target is not None:
        ax.axhline(curve.target, label="target", **DOTS)
    if curve.chosen is not None:
        ring: dict[str, Any] = {"marker": "o", "markersize": 9, "markerfacecolor": "none"}
        line: dict[str, Any] = {"linestyle": "none", "color": INK, "label": "chosen team"}
        ax.plot(*curve.chosen, **ring, **line)
    if curve.target is not None or curve.chosen is not None:
        legend(ax)
    bottom = np.floor(10 * float(np.nanmin(curve.low, initial=0.9))) / 10
    percent_ticks(ax.yaxis, bottom)
    ax.set_ylim(bottom, 1.002)
