"""The learning curve: how good the model is after every round, and where that leads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from goldspan.report.axes import DOTS, count_ticks, ground, legend, percent_ticks
from goldspan.report.campaign.numbers import Numbers, bare_percent, interval, measure_of, with_unit
from goldspan.report.canvas import BOX, INK, POINT, WRONG, new_figure, own_settings
from goldspan.report.pictures import picture
from goldspan.report.wording import count, percent, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEAST_POINTS = 4
"""Rounds with a score on random items that a forecast takes."""
RAISED = str.maketrans("0123456789-.", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⋅")
FAR = 0.5
"""From this lowest score on the axis does not begin at 0."""


def learning_figure(record: Numbers) -> Figure:
    """Draw the scores by the items they were learned from, and the forecast with its band.

    Points are the model as measured, diamonds the same on items drawn at random, each with its
    95 % interval; the line is the power law through the diamonds, dashed where it is forecast.
    Squares are the labels against the truth of a simulation.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    name = measure_of(record)
    figure = new_figure(4.7, 3.1)
    with own_settings():
        ax = figure.subplots()
        figure.subplots_adjust(left=0.085, right=0.975, top=0.785, bottom=0.14)
        title = f"{name[0].upper()}{name[1:]} after every round, %"
        ground(ax, title, "items labelled", shift=0.36, room=0.42)
        if record.curve is not None:
            _forecast(ax, record.curve, float(record.rounds[-1]["items"]))
        _points(ax, record.rounds)
        target = record.plan["stop"]["target"]
        if target is not None:
            ax.axhline(target, label="target", **DOTS)
        legend(ax, 0.4, 3)
        bottom = _bottom(record)
        percent_ticks(ax.yaxis, bottom)
        ax.set_ylim(bottom, 1.0 + 0.02 * (1 - bottom))
        count_ticks(ax.xaxis)
        ax.set_xlim(0, None)
    return figure


def _bottom(record: Numbers) -> float:
    """Give where the axis begins: at 0, unless everything lies far above."""
    found = [one[key]["low"] for one in record.rounds for key in ("score", "control") if one[key]]
    found += [one["truth"]["labels"] for one in record.rounds if one["truth"]]
    lowest = min(found, default=0.0)
    return 0.0 if lowest < FAR else min(0.9, float(np.floor(10 * lowest) / 10))


def _forecast(ax: Axes, curve: Mapping[str, Any], now: float) -> None:
    items, score = np.array(curve["items"]), np.array(curve["score"])
    low, high = (np.clip(curve[side], 0, 1) for side in ("low", "high"))
    ax.fill_between(items, low, high, color=BOX, linewidth=0, zorder=1)
    known = items <= now
    line: dict[str, Any] = {"color": WRONG, "linewidth": 1.3, "zorder": 2}
    ax.plot(items[known], score[known], **line)
    later = ~known
    later[max(0, int(known.sum()) - 1)] = True
    ax.plot(items[later], score[later], linestyle=(0, (4, 2)), label="forecast", **line)


def _points(ax: Axes, rounds: Sequence[Mapping[str, Any]]) -> None:
    _measured(ax, rounds, "score", POINT, "o", "model")
    _measured(ax, rounds, "control", WRONG, "D", "on random items")
    truth = [one for one in rounds if one["truth"] is not None]
    if truth:
        at, value = _columns(truth, lambda one: one["truth"]["labels"])
        look: dict[str, Any] = {"marker": "s", "markersize": 4, "linewidth": 1.0, "color": INK}
        ax.plot(at, value, label="labels, true", **look)


def _measured(
    ax: Axes, rounds: Sequence[Mapping[str, Any]], key: str, colour: str, mark: str, label: str
) -> None:
    known = [one for one in rounds if one[key] is not None]
    if not known:
        return
    at, value = _columns(known, lambda one: one[key]["value"])
    low, high = (np.array([one[key][side] for one in known]) for side in ("low", "high"))
    gap = [np.maximum(value - low, 0), np.maximum(high - value, 0)]
    look: dict[str, Any] = {"color": colour, "fmt": mark, "markersize": 4.5, "elinewidth": 1.1}
    look["clip_on"] = False
    # Aside, so that the intervals of the two do not lie upon each other.
    aside = 0.006 * max(one["items"] for one in rounds) * (1 if key == "control" else -1)
    ax.errorbar(at + aside, value, yerr=gap, label=label, zorder=3, **look)


def _columns(rounds: Sequence[Mapping[str, Any]], value: Any) -> tuple[Any, Any]:
    at = np.array([one["items"] for one in rounds], np.float64)
    return at, np.array([value(one) for one in rounds], np.float64)


def learning_picture(record: Numbers) -> dict[str, Any] | None:
    """Give the learning curve with its text alternative; None before the first score."""
    known = [one for one in record.rounds if one["score"] is not None or one["truth"] is not None]
    if not known:
        return None
    return picture(learning_figure(record), "Learning curve", _describe(record))


def _describe(record: Numbers) -> str:
    name, parts = measure_of(record), []
    for key, what in (("score", "the model as measured"), ("control", "on random items")):
        known = [one for one in record.rounds if one[key] is not None]
        if known:
            first, last = known[0], known[-1]
            parts.append(
                f"{name} of {what}: {percent(first[key]['value'])} with "
                f"{plural(first['items'], 'item')}, {percent(last[key]['value'])} with "
                f"{plural(last['items'], 'item')}."
            )
    return " ".join([*parts, "The numbers stand in the table of rounds."])


def round_rows(record: Numbers) -> list[dict[str, str]]:
    """Give the rounds as rows of a table."""
    return [
        {
            "round": count(one["round"]),
            "items": count(one["items"]),
            "answers": count(one["answers"]),
            "spent": with_unit(record, one["spent"]).split("\u00a0")[0],
            "hours": f"{one['hours']:,.2f}" if one["hours"] < 10 else f"{one['hours']:,.0f}",
            **_score_cells(one, "score"),
            **_score_cells(one, "control"),
            "labels": bare_percent(None if one["truth"] is None else one["truth"]["labels"]),
            "rest": bare_percent(None if one["truth"] is None else one["truth"]["model"]),
            "stable": "\u2013" if one["stable"] is None else f"{one['stable']:.3f}",
        }
        for one in record.rounds
    ]


def _score_cells(one: Mapping[str, Any], key: str) -> dict[str, str]:
    found = one[key]
    return {
        key: bare_percent(None if found is None else found["value"]),
        f"{key}_bounds": "" if found is None else interval(found),
    }


def outlook(record: Numbers) -> list[tuple[str, str]]:
    """Say what more labels would bring, beside more answers about those that there are."""
    if not record.rounds:
        return []
    facts = list(record.forecasts.values())[-1] if record.forecasts else {}
    rows = []
    if facts.get("curve") is None:
        n = sum(one["control"] is not None for one in record.rounds)
        rows.append(("Forecast", _too_few(record, n)))
    else:
        rows += _forecast_rows(record, facts)
    again = facts.get("ask_again")
    if again is not None:
        gain = f"{100 * again['right_tokens']:.2f}"
        what = "labels" if measure_of(record) == "accuracy" else "tokens"
        words = f"expected to set right {gain}\u00a0% of the {what} there are"
        rows.append((f"{again['answers']} more answers on doubtful items", words))
    return rows


def _too_few(record: Numbers, n: int) -> str:
    if not any(one["score"] for one in record.rounds):
        return "none, as no model could be measured"
    return (
        f"none: it takes {LEAST_POINTS} rounds with a score on items drawn at random (at least 8 "
        f"of them), and there {'is' if n == 1 else 'are'} {count(n)}"
    )


def _forecast_rows(record: Numbers, facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    ahead, curve = facts["next"], facts["curve"]
    minus = "\u2212"
    law = f"{100 * curve['a']:.1f} {minus} {100 * curve['b']:.4g} \u00b7 n{_raised(-curve['c'])}"
    gain = f"a gain of {100 * ahead['gain']:.2f} points for {_takes(record, ahead)}"
    more = f"{percent(ahead['score'])} ({interval(ahead)}), {gain}"
    rows = [
        ("Learning curve", f"{measure_of(record)} in per cent = {law}, for n items"),
        (f"{ahead['items']} more items", more),
    ]
    goal = facts["to_target"]
    if goal is not None:
        rows.append((f"Target {100 * record.plan['stop']['target']:g}\u00a0%", _goal(record, goal)))
    return rows


def _raised(power: float) -> str:
    """Write an exponent.

    >>> _raised(-0.5)
    '⁻⁰⋅⁵⁰'
    """
    return f"{power:.2f}".translate(RAISED)


def _goal(record: Numbers, goal: Mapping[str, Any]) -> str:
    chance = f"{100 * goal['chance']:.0f}\u00a0% of the curves that fit as well ever reach it"
    if not goal["reachable"]:
        return f"not reachable by the learning curve ({chance})"
    if goal["cost"] is None:
        return f"reachable with more items than anybody could label ({chance})"
    items = plural(round(goal["items"]), "more item")
    return f"{items} for {_takes(record, goal)} ({chance})"


def _takes(record: Numbers, facts: Mapping[str, Any]) -> str:
    """Say what more labels take: money, or answers where nobody is paid."""
    if record.money is not None:
        return with_unit(record, facts["cost"])
    return plural(facts["answers"], "answer")
