"""The money over time, and how many answers the items took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from goldspan.money import MICRO
from goldspan.report.axes import DOTS, count_ticks, ground, legend
from goldspan.report.campaign.numbers import Numbers, currency_of, with_unit
from goldspan.report.canvas import BOX, FONT, INK, POINT, new_figure, own_settings
from goldspan.report.pictures import picture
from goldspan.report.wording import count, percent, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MINUTES, DAYS = 2.0, 72.0
"""Hours below which time is told in minutes, and above which in days."""
MAX_TICKS = 16
"""With more answers per item not every number stands beneath its bar."""


def spending_figure(record: Numbers) -> Figure:
    """Draw the money spent over time; points are the ends of rounds, the dotted line is the cap.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    assert record.money is not None
    unit, scale = _time_unit(record)
    currency = currency_of(record)
    figure = new_figure(4.4, 2.6)
    with own_settings():
        ax = figure.subplots()
        figure.subplots_adjust(left=0.13, right=0.965, top=0.8, bottom=0.165)
        title = f"Money spent, {currency}" if currency else "Money spent"
        ground(ax, title, f"{unit} since the beginning", shift=0.5)
        hours = np.array([one["hours"] for one in record.spending]) * scale
        spent = np.array([one["spent"] for one in record.spending]) / MICRO
        ax.fill_between(hours, spent, color=BOX, linewidth=0, step="post")
        ax.plot(hours, spent, color=POINT, linewidth=1.6, drawstyle="steps-post", label="spent")
        ends = [(one["hours"] * scale, one["spent"] / MICRO) for one in record.rounds]
        if ends:
            look: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 4.5}
            ax.plot(*zip(*ends, strict=True), color=INK, label="end of a round", zorder=3, **look)
        ax.axhline(record.money["cap"] / MICRO, label="cap", **DOTS)
        legend(ax, 0.4)
        ax.set_xlim(0, None)
        ax.set_ylim(0, 1.06 * record.money["cap"] / MICRO)
    return figure


def _time_unit(record: Numbers) -> tuple[str, float]:
    hours = record.spending[-1]["hours"]
    if hours < MINUTES:
        return "minutes", 60.0
    return ("days", 1 / 24) if hours > DAYS else ("hours", 1.0)


def spending_picture(record: Numbers) -> dict[str, Any] | None:
    """Give the course of the money with its text alternative; None before the first answer."""
    if not record.spending or record.money is None:
        return None
    unit, scale = _time_unit(record)
    last = record.spending[-1]
    words = (
        f"{with_unit(record, last['spent'])} for {plural(last['answers'], 'answer')} after "
        f"{last['hours'] * scale:,.1f} {unit}, of a cap of "
        f"{with_unit(record, record.money['cap'])}. Round by round in the table of rounds."
    )
    return picture(spending_figure(record), "Money over time", words)


def bill_rows(record: Numbers) -> list[tuple[str, str]]:
    """Give the money in words: cap, spent, what an item came to, and what fixed answers cost."""
    money, counts = record.money, record.counts
    if money is None:
        return []
    rows = [("Cap", with_unit(record, money["cap"])), ("Spent", with_unit(record, money["spent"]))]
    if money["reserved"]:
        rows.append(("Reserved", with_unit(record, money["reserved"])))
    if counts["items"]:
        each = with_unit(record, round(money["spent"] / counts["items"]))
        rows.append(("Per labelled item", each))
    k = plural(record.plan["redundancy"]["max"], "answer")
    if money["fixed"]:
        fixed = f"{with_unit(record, money['fixed'])} for the labelled items with {k} each"
        rows.append(("Fixed redundancy", fixed))
    everything = f"{with_unit(record, money['everything'])} for the whole pool with {k} each"
    return [*rows, ("Everything", everything)]


def redundancy_figure(record: Numbers) -> Figure:
    """Draw how many items took how many answers.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    figure = new_figure(4.4, 2.6)
    with own_settings():
        ax = figure.subplots()
        figure.subplots_adjust(left=0.1, right=0.965, top=0.8, bottom=0.165)
        ground(ax, "Items by the answers they took", "answers per item", "y", shift=0.38)
        _bars(ax, list(record.redundancy[1:]))
    return figure


def _bars(ax: Axes, items: Sequence[int]) -> None:
    at = np.arange(1, len(items) + 1)
    ax.bar(at, items, 0.72, color=POINT, linewidth=0)
    for x, n in zip(at.tolist(), items, strict=True):
        look: dict[str, Any] = {"family": FONT, "size": 8.5, "color": INK, "ha": "center"}
        ax.annotate(count(n), (x, n), (0, 3), textcoords="offset points", **look)
    if len(at) <= MAX_TICKS:
        ax.set_xticks(at)
    ax.set_ylim(0, 1.12 * max(1, *items))
    count_ticks(ax.yaxis)


def redundancy_picture(record: Numbers) -> dict[str, Any] | None:
    """Give the answers per item with their text alternative; None before the first answer."""
    items = record.redundancy
    if not any(items[1:]):
        return None
    total = sum(items[1:])
    parts = [
        f"{plural(n, 'item')} ({percent(n / total)}) took {plural(k, 'answer')}"
        for k, n in enumerate(items)
        if n and k
    ]
    return picture(redundancy_figure(record), "Answers per item", f"{'; '.join(parts)}.")
