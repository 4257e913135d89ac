"""The rounds of a campaign in pictures and tables: learning curve, money, redundancy, coverage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from goldspan.money import MICRO
from goldspan.report.drawing import (
    BOX,
    DOTS,
    FONT,
    INK,
    MUTED,
    POINT,
    WRONG,
    count_ticks,
    default_style,
    ground,
    legend,
    new_figure,
    percent_ticks,
)
from goldspan.report.sections import picture
from goldspan.report.wording import (
    count,
    currency_of,
    interval,
    measure_of,
    percent,
    plural,
    with_unit,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from goldspan.campaign import CampaignRecord

# --------------------------------------------------------------------------------------------------
# The learning curve: how good the model is after every round, and where that leads.


LEAST_POINTS = 4
"""Rounds with a score on random items that a forecast takes."""
RAISED = str.maketrans("0123456789-.", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⋅")
FAR = 0.5
"""From this lowest score on the axis does not begin at 0."""


def _bottom(record: CampaignRecord) -> float:
    """Return where the axis begins: at 0, unless everything lies far above."""
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


def learning_picture(record: CampaignRecord) -> dict[str, Any] | None:
    """Return the learning curve with its text alternative; None before the first score."""
    known = [one for one in record.rounds if one["score"] is not None or one["truth"] is not None]
    if not known:
        return None
    # Draw the scores by the items they were learned from, and the forecast with its band
    name = measure_of(record)
    figure = new_figure(4.7, 3.1)
    with default_style():
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
    return picture(figure, "Learning curve", _describe(record))


def _describe(record: CampaignRecord) -> str:
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
    return " ".join([*parts, "The numbers are in the table of rounds."])


def outlook(record: CampaignRecord) -> list[tuple[str, str]]:
    """Return what more labels would bring, beside more answers about those that there are."""
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
        rows.append((f"{again['answers']} more answers on uncertain items", words))
    return rows


def _too_few(record: CampaignRecord, n: int) -> str:
    if not any(one["score"] for one in record.rounds):
        return "none, as no model could be measured"
    return (
        f"none: it takes {LEAST_POINTS} rounds with a score on items drawn at random (at least 8 "
        f"of them), and there {'is' if n == 1 else 'are'} {count(n)}"
    )


def _forecast_rows(record: CampaignRecord, facts: Mapping[str, Any]) -> list[tuple[str, str]]:
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


def _goal(record: CampaignRecord, goal: Mapping[str, Any]) -> str:
    chance = f"{100 * goal['chance']:.0f}\u00a0% of the curves that fit as well ever reach it"
    if not goal["reachable"]:
        return f"not reachable by the learning curve ({chance})"
    if goal["cost"] is None:
        return f"reachable with more items than anybody could label ({chance})"
    items = plural(round(goal["items"]), "more item")
    return f"{items} for {_takes(record, goal)} ({chance}){_end(record, goal.get('end'))}"


def _end(record: CampaignRecord, end: Mapping[str, Any] | None) -> str:
    """Say when the rule of the target is expected to end the campaign."""
    if end is None:
        return ""
    is_paid, none = record.money is not None, "with the items that there are"
    low, high = (
        None
        if x is None
        else with_unit(record, round(x))
        if is_paid
        else plural(round(x), "answer")
        for x in (end["low"], end["high"])
    )
    if low is None:
        return f"; its lower bound is not expected to get there {none}"
    if high is None:
        return f"; its lower bound is there after {low} more or later, perhaps not {none}"
    return f"; its lower bound is there after {low} to {high} more, in 9 cases of 10"


def _takes(record: CampaignRecord, facts: Mapping[str, Any]) -> str:
    """Return what more labels take: money, or answers where nobody is paid."""
    if record.money is not None:
        return with_unit(record, facts["cost"])
    return plural(facts["answers"], "answer")


# --------------------------------------------------------------------------------------------------
# The money over time, and how many answers the items took.


MINUTES, DAYS = 2.0, 72.0
"""Hours below which time is told in minutes, and above which in days."""
MAX_TICKS = 16
"""With more answers per item not every number stands beneath its bar."""


def spending_figure(record: CampaignRecord) -> Figure:
    """Draw the money spent over time; points are the ends of rounds, the dotted line is the cap."""
    assert record.money is not None
    unit, scale = _time_unit(record)
    currency = currency_of(record)
    figure = new_figure(4.4, 2.6)
    with default_style():
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


def _time_unit(record: CampaignRecord) -> tuple[str, float]:
    hours = record.spending[-1]["hours"]
    if hours < MINUTES:
        return "minutes", 60.0
    return ("days", 1 / 24) if hours > DAYS else ("hours", 1.0)


def spending_picture(record: CampaignRecord) -> dict[str, Any] | None:
    """Return the course of the money with its text alternative; None before the first answer."""
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


def bill_rows(record: CampaignRecord) -> list[tuple[str, str]]:
    """Return the money in words: cap, spent, what an item came to, and what fixed answers cost."""
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


def redundancy_picture(record: CampaignRecord) -> dict[str, Any] | None:
    """Return the answers per item with their text alternative; None before the first answer."""
    items = record.redundancy
    if not any(items[1:]):
        return None
    total = sum(items[1:])
    parts = [
        f"{plural(n, 'item')} ({percent(n / total)}) took {plural(k, 'answer')}"
        for k, n in enumerate(items)
        if n and k
    ]
    # Draw how many items took how many answers
    figure = new_figure(4.4, 2.6)
    with default_style():
        ax = figure.subplots()
        figure.subplots_adjust(left=0.1, right=0.965, top=0.8, bottom=0.165)
        ground(ax, "Items by the answers they took", "answers per item", "y", shift=0.38)
        _bars(ax, list(record.redundancy[1:]))
    return picture(figure, "Answers per item", f"{'; '.join(parts)}.")


# --------------------------------------------------------------------------------------------------
# Coverage: how much of the pool's attribute values the rounds have seen, and who picked.


def coverage_picture(record: CampaignRecord) -> dict[str, Any] | None:
    """Return the coverage with its text alternative; None where it is not known."""
    if record.coverage is None or not record.coverage["rounds"]:
        return None
    last = record.coverage["rounds"][-1]
    words = (
        f"{plural(last['items'], 'item')} cover {percent(last['covered'])} of "
        f"{plural(record.coverage['pairs'], 'pair')} of attribute and value that at least two "
        f"items of the pool have; as many items at random would cover {percent(last['random'])}."
    )
    # Draw the share of the attribute–value pairs covered by what was picked, and at random
    rounds = [{"items": 0, "covered": 0.0, "random": 0.0}, *record.coverage["rounds"]]
    items = np.array([one["items"] for one in rounds])
    figure = new_figure(4.4, 2.6)
    with default_style():
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
    found = picture(figure, "Coverage of the pool", words)
    return {**found, "words": words, "rounds": record.coverage["rounds"]}
