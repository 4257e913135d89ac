"""Coverage: how much of the pool's attribute values the rounds have seen, and who picked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from goldspan.report.axes import count_ticks, ground, legend, percent_ticks
from goldspan.report.campaign.numbers import Numbers, bare_percent
from goldspan.report.canvas import MUTED, POINT, new_figure, own_settings
from goldspan.report.pictures import picture
from goldspan.report.wording import count, percent, plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def coverage_figure(record: Numbers) -> Figure:
    """Draw the share of the attribute–value pairs covered by what was picked, and at random.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    assert record.coverage is not None
    rounds = [{"items": 0, "covered": 0.0, "random": 0.0}, *record.coverage["rounds"]]
    items = np.array([one["items"] for one in rounds])
    figure = new_figure(4.4, 2.6)
    with own_settings():
        ax = figure.subplots()
        figure.subplots_adjust(left=0.085, right=0.975, top=0.8, bottom=0.165)
        ground(ax, "Attribute values of the pool covered, %", "items picked", shift=0.32)
        by_chance: dict[str, Any] = {"color": MUTED, "linewidth": 1.2, "linestyle": (0, (4, 2))}
        ax.plot(items, [one["random"] for one in rounds], label="items at random", **by_chance)
        look: dict[str, Any] = {"color": POINT, "linewidth": 1.6, "marker": "o", "markersize": 4.5}
        ax.plot(items, [one["covered"] for one in rounds], label="this campaign", **look)
        legend(ax, 0.4)
        percent_ticks(ax.yaxis)
        ax.set_ylim(0, 1.03)
        count_ticks(ax.xaxis)
        ax.set_xlim(0, None)
    return figure


def coverage_picture(record: Numbers) -> dict[str, Any] | None:
    """Give the coverage with its text alternative; None where it is not known."""
    if record.coverage is None or not record.coverage["rounds"]:
        return None
    last = record.coverage["rounds"][-1]
    words = (
        f"{plural(last['items'], 'item')} cover {percent(last['covered'])} of "
        f"{plural(record.coverage['pairs'], 'pair')} of attribute and value that at least two "
        f"items of the pool have; as many items at random would cover {percent(last['random'])}."
    )
    return {**picture(coverage_figure(record), "Coverage of the pool", words), "words": words}


def pick_rows(record: Numbers) -> dict[str, Any]:
    """Say which rule picked how many items in every round, and what they cover.

    Returns:
        `rules`, their names in the order in which they first picked, and `rows`.
    """
    picks = [one for one in record.picks.values() if one]
    rules = list(dict.fromkeys(rule for one in picks for rule in sorted(one)))
    covered = [] if record.coverage is None else record.coverage["rounds"]
    rows = [
        {
            "round": n,
            "picked": [count(one[rule]) if rule in one else "\u2013" for rule in rules],
            "total": count(sum(one.values())),
            "covered": bare_percent(covered[n - 1]["covered"] if covered else None),
            "random": bare_percent(covered[n - 1]["random"] if covered else None),
        }
        for n, one in enumerate(picks, 1)
    ]
    return {"rules": rules, "rows": rows}
