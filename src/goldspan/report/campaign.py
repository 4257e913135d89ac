"""The report of a campaign: learning curve, money, people, items, what is planned, the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from goldspan.aggregation import Consensus
from goldspan.aggregation.layered import Joint
from goldspan.campaign.outlook import too_few
from goldspan.crowd import agreement
from goldspan.crowd.atomic import write_text
from goldspan.money import MICRO, to_micro
from goldspan.report import sections
from goldspan.report.drawing import (
    BOX,
    DOTS,
    FONT,
    INK,
    MUTED,
    POINT,
    WRONG,
    count_ticks,
    fill_template,
    legend,
    percent_ticks,
    plot,
)
from goldspan.report.methods import lead, methods_text
from goldspan.report.sections import Fact, picture
from goldspan.report.wording import CALLED, count, currency_of, interval, percent, with_unit
from goldspan.report.workers import worker_table
from goldspan.spans import score
from goldspan.spans.notebook import counted
from goldspan.spans.scoring import Score

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from goldspan.campaign import CampaignRecord


# --------------------------------------------------------------------------------------------------
# The learning curve: how good the model is after every round, and where that leads.


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
    """Return the learning curve with its text alternative; None before the second score."""
    known = [one for one in record.rounds if one["score"] is not None or one["truth"] is not None]
    if len(known) < 2:
        return None
    # Draw the scores by the items they were learned from, and the forecast with its band
    name = record.measure
    title = f"{name[0].upper()}{name[1:]} after every round, %"
    sides = 0.085, 0.975, 0.785, 0.14
    with plot((4.7, 3.1), sides, title, "items labelled", shift=0.36, room=0.42) as (figure, ax):
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
    name, parts = record.measure, []
    for key, what in (("score", "the model as measured"), ("control", "on random items")):
        known = [one for one in record.rounds if one[key] is not None]
        if known:
            first, last = known[0], known[-1]
            parts.append(
                f"{name} of {what}: {percent(first[key]['value'])} with "
                f"{counted(first['items'], 'item')}, {percent(last[key]['value'])} with "
                f"{counted(last['items'], 'item')}."
            )
    return " ".join([*parts, "The numbers are in the table of rounds."])


def outlook(record: CampaignRecord) -> list[tuple[str, str]]:
    """Return what more labels would bring, beside more answers about those that there are."""
    if not record.rounds:
        return []
    facts = list(record.forecasts.values())[-1] if record.forecasts else {}
    rows = []
    if facts.get("curve") is None:
        rows.append(("Forecast", too_few(record.plan["select"]["by"], record.rounds)))
    else:
        rows += _forecast_rows(record, facts)
    again = facts.get("ask_again")
    if again is not None and again["answers"]:
        gain = f"{100 * again['right_tokens']:.2f}"
        what = "labels" if record.measure == "accuracy" else "tokens"
        words = f"expected to set right {gain}\u00a0% of the {what} there are"
        rows.append((f"{again['answers']} more answers on uncertain items", words))
    return rows


def _forecast_rows(record: CampaignRecord, facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    ahead = facts["next"]
    takes = counted(ahead["answers"], "answer")  # where nobody is paid
    takes = takes if record.money is None else with_unit(record, ahead["cost"])
    gain = f"a gain of {100 * ahead['gain']:.2f} points for {takes}"
    more = f"{percent(ahead['score'])} ({interval(ahead)}), {gain}"
    rows = [(f"{ahead['items']} more items", more)]
    if end := facts.get("end"):
        target = 100 * record.plan["stop"]["target"]
        rows.append((f"Until the target, {target:g}\u00a0%", end["text"]))
    return rows


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
    title = f"Money spent, {currency}" if currency else "Money spent"
    sides = 0.13, 0.965, 0.8, 0.165
    with plot((4.4, 2.6), sides, title, f"{unit} since the beginning", shift=0.5) as (figure, ax):
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
        f"{with_unit(record, last['spent'])} for {counted(last['answers'], 'answer')} after "
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
    k = counted(record.plan["redundancy"]["max"], "answer")
    if money["fixed"]:
        fixed = f"{with_unit(record, money['fixed'])} for the labelled items with {k} each"
        rows.append(("Fixed redundancy", fixed))
    if done := money.get("checks"):
        took = done["seconds"]
        each = "" if took is None else f", {took:,.0f} seconds each in the median"
        words = f"{with_unit(record, done['cost'])} for {counted(done['n'], 'check')}{each}"
        rows.append(("Audit", words))
    everything = f"{with_unit(record, money['everything'])} for the whole pool with {k} each"
    return [*rows, ("Everything", everything), *_worth_rows(record, money)]


def _worth_rows(record: CampaignRecord, money: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the parts of what a campaign costs, where a mistake has a price."""
    if "mistakes" not in money:
        return
    parts = [money[key] for key in ("spent", "waiting", "mistakes")]
    last = [one for one in record.rounds if "mistakes" in one][-1]
    paid, waited, wrong = (with_unit(record, part) for part in parts)
    yield "Waiting", f"{waited} for {last['hours']:,.1f} hours"
    yield "Mistakes", f"{wrong} for {last['mistakes']:,.1f} labels that are expected to be wrong"
    yield "Together", f"{with_unit(record, sum(parts))}, of which {paid} are paid"
    checks = last.get("checks")
    if checks and checks["items"]:
        cost, saved = (with_unit(record, checks[key]) for key in ("cost", "saves"))
        words = f"{counted(checks['items'], 'item')} for {cost}, which would save {saved}"
        yield "Checks that are worth it", words
    if saves := money["saves"]:
        unit = f"The next {currency_of(record) or 'unit of money'}"
        yield unit, f"would save {saves['money']:,.2f} in mistakes, whatever the wait"
        price = to_micro(record.plan["prices"].get("hour", 0))
        hour = f"would save {saves['hour']:,.2f} in mistakes beyond the price of the answers"
        yield "The next hour", f"{hour}, and costs {with_unit(record, price)}"


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
        f"{counted(n, 'item')} ({percent(n / total)}) took {counted(k, 'answer')}"
        for k, n in enumerate(items)
        if n and k
    ]
    # Draw how many items took how many answers
    sides = 0.1, 0.965, 0.8, 0.165
    with plot(
        (4.4, 2.6), sides, "Items by the answers they took", "answers per item", "y", shift=0.38
    ) as (figure, ax):
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
        f"{counted(last['items'], 'item')} cover {percent(last['covered'])} of "
        f"{counted(record.coverage['pairs'], 'pair')} of attribute and value that at least two "
        f"items of the pool have; as many items at random would cover {percent(last['random'])}."
    )
    # Draw the share of the attribute–value pairs covered by what was picked, and at random
    rounds = [{"items": 0, "covered": 0.0, "random": 0.0}, *record.coverage["rounds"]]
    items = np.array([one["items"] for one in rounds])
    sides = 0.085, 0.975, 0.8, 0.165
    with plot(
        (4.4, 2.6), sides, "Attribute values of the pool covered, %", "items picked", shift=0.32
    ) as (figure, ax):
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


# --------------------------------------------------------------------------------------------------
# People and models side by side.


MAX_ROWS = 60
"""Workers of the table; the kinds have all of them."""


def workforce(record: CampaignRecord) -> dict[str, Any] | None:
    """Put the table of kinds and workers together; None where there is one kind alone."""
    probes = list(_probes(record))
    if not record.kinds and not probes:
        return None
    # Name, what it is, its numbers, whether it is a kind
    rows: list[tuple[str, str, Mapping[str, Any], bool]] = []
    n_listed = n_all = 0
    for kind, one in sorted(record.kinds.items(), key=lambda pair: -pair[1]["answers"]):
        own = {w: row for w, row in record.workers.items() if row["kind"] == kind}
        own = {w: row for w, row in own.items() if row["answers"]}
        rows.append((CALLED.get(kind, kind), counted(len(own), "worker"), one, True))
        order = sorted(own, key=lambda w: (-own[w]["answers"], w))
        n_all += len(order)
        for worker in order[: max(0, MAX_ROWS - n_listed)]:
            n_listed += 1
            rows.append((worker, what_it_is(own[worker]), own[worker], False))
    return {"rows": rows, "n_left_out": n_all - n_listed, "probes": probes}


def what_it_is(worker: Mapping[str, Any]) -> str:
    """Name a worker's model, or its kind if it is not one of people, and its family."""
    kind = worker.get("kind", "people")
    called = "" if kind == "people" else CALLED.get(kind, kind).removesuffix("s")
    family = f"errs together with others of {worker['family']}" if worker.get("family") else ""
    return ", ".join(part for part in (called, str(worker.get("model") or ""), family) if part)


def _probes(record: CampaignRecord) -> Iterator[str]:
    """Say what models labelled silently, and who repeats their mistakes."""
    for one in record.probes:
        price = f" for {with_unit(record, one['cost'])}" if one["cost"] else ""
        model = f", {one['model']}" if one["model"] else ""
        found = [
            f"{worker} {flag['evidence']}"
            for worker, row in record.workers.items()
            for flag in row.get("flags", ())
            if flag.get("other") == one["probe"]
        ]
        said = (
            f"Who repeats its mistakes: {'; '.join(found)}"
            if found
            else "Nobody repeats its mistakes more often than the others' answers explain"
        )
        yield (
            f"{one['probe']} ({one['kind']}{model}) labelled {counted(one['items'], 'item')} "
            f"silently{price}; its answers count for nothing. {said}."
        )


# --------------------------------------------------------------------------------------------------
# The workers of a campaign: how reliable they are, what was decided, what they do.


MAX_WORKERS = 200
ORDER = ("drop", "look at", "test more", "keep", "")


def people(record: CampaignRecord) -> list[tuple[str, str, Mapping[str, Any]]]:
    """List the workers and what they are, who is asked no more first, then the least reliable."""

    def rank(pair: tuple[str, Mapping[str, Any]]) -> tuple[object, ...]:
        name, one = pair
        return not one["barred"], ORDER.index(one.get("verdict", "")), one.get("mean", 1.0), name

    shown = sorted(record.workers.items(), key=rank)[:MAX_WORKERS]
    return [(name, what_it_is(one), one) for name, one in shown]


def people_lead(record: CampaignRecord) -> str:
    """Return how many workers there are and how many were dropped."""
    barred = [name for name, one in record.workers.items() if one["barred"]]
    text = f"{counted(len(record.workers), 'worker')}."
    if not barred:
        return f"{text} Nobody was told to stop."
    verb = "is" if len(barred) == 1 else "are"
    return f"{text} {count(len(barred))} of them {verb} asked no more."


# --------------------------------------------------------------------------------------------------
# The plan as a table, and the versions.


PLANNED_ORDER = (
    "task", "pool", "crowd", "redundancy", "control", "judging", "prices", "budget", "select",
    "aggregate", "model", "evaluate", "stop",
)  # fmt: skip
"""Sections as they are read; others follow."""
_OPEN: tuple[Any, ...] = (None, [], {}, (), "")


def _changes(record: CampaignRecord) -> list[tuple[str, list[str]]]:
    """Return the sections that changed, with a line per change."""
    lines: dict[str, list[str]] = {}
    for line in record.changes:
        path, _, what = line.partition(" ")
        section, _, key = path.partition(".")
        lines.setdefault(section, []).append(f"{key} {what}".strip())
    return list(lines.items())


def _lines(value: Any) -> list[str]:
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    if isinstance(value, Mapping):
        return [f"{key} = {each}" for key, each in value.items()]
    if isinstance(value, list | tuple):
        words = [str(each) for each in value]
        return [", ".join(words)] if max(map(len, words), default=0) < 16 else words
    return [str(value)]


def _layer_lines(layers: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"{one['name']} ({one['kind']}): {', '.join(one['types'] or one['labels'])}"
        for one in layers
    ]


# --------------------------------------------------------------------------------------------------
# The rules that can stop a campaign: their limits, and how near they are.


def limits(record: CampaignRecord) -> Iterator[tuple[str, str, str]]:
    """Yield every rule, when it stops the campaign, and how far it is: of the plan and `[stop]`."""
    plan, money, counts = record.plan, record.money, record.counts
    hours = plan["budget"]["hours"]
    last = record.rounds[-1] if record.rounds else None
    if money is not None:
        cap = f"{with_unit(record, money['cap'])} at most"
        yield "money", cap, with_unit(record, money["spent"])
    picked = sum(sum(one.values()) for one in record.picks.values())
    own = counts["pool"] - counts["control_items"]
    yield "pool", f"{counted(own, 'item')} to label", f"{count(picked)} picked"
    if hours is not None:
        now = "\u2013" if last is None else f"{last['hours']:,.1f} hours"
        yield "time", f"{hours:g} hours at most", now
    for row in record.limits:
        yield row["rule"], row["limit"], row["now"]


# --------------------------------------------------------------------------------------------------
# The numbers on top: what there is, what it cost, how good it is, what stopped it.


def status(record: CampaignRecord) -> tuple[str, str]:
    """Return how far a campaign is, and why."""
    done = counted(len(record.rounds), "round")
    if record.stop is not None:
        return "stopped", f"after {done}: {record.stop['why']}"
    awaited = record.counts["awaited"]
    more = f", {counted(awaited, 'answer')} awaited" if awaited else ""
    return "open", f"in round {len(record.rounds) + 1}{more}"


def _quality(
    record: CampaignRecord, result: Consensus | None, score: Score | None, against: str
) -> Iterator[Fact]:
    name, audited = record.measure, record.certificate
    if audited is not None:
        shown = "–" if audited["value"] is None else percent(audited["value"])
        goal = f"{audited['goal']}{audited['cost']}"
        about = "; ".join(
            filter(None, [audited["text"], audited["design"], goal, *audited["notes"]])
        )
        yield Fact(f"{name} of the labels, by audit", shown, about)
    if score is not None:
        value = score.accuracy if name == "accuracy" else score.f1
        bounds = "" if score.interval is None else _bounds(score.interval)
        yield Fact(f"{name} of the labels", percent(value), f"against {against}{bounds}")
    elif result is not None and (mean := result.mean_confidence) is not None:
        what = "mean of the labels" if name == "accuracy" else "mean of the spans"
        what = "mean of the items, in all layers" if isinstance(result, Joint) else what
        yield Fact("confidence", percent(mean), what)
    last = next((one for one in reversed(record.rounds) if one["score"] is not None), None)
    if last is not None:
        measured = last["score"]
        words = f"as measured: {interval(measured)} on {counted(measured['n'], 'item')}"
        yield Fact(f"{name} of the model", percent(measured["value"]), words)


def _bounds(found: tuple[float, float]) -> str:
    return f": {interval({'low': found[0], 'high': found[1]})}"


def _work(record: CampaignRecord) -> Iterator[Fact]:
    counts, money = record.counts, record.money
    whole = f"of {count(counts['pool'])} in the pool"
    yield Fact("items labelled", count(counts["items"]), whole, counts["items"] / counts["pool"])
    regular = counts["answers"] - counts["control_answers"]
    each = f"{regular / counts['items']:.1f} per item" if counts["items"] else ""
    control = f"{count(counts['control_answers'])} to gold questions"
    more = control if counts["control_answers"] else ""
    detail = "; ".join(part for part in (each, more) if part)
    name = "answers" if money is None else "answers bought"
    yield Fact(name, count(counts["answers"]), detail)
    if money is None:
        return
    share = money["spent"] / money["cap"] if money["cap"] else None
    of = f"of {with_unit(record, money['cap'])}" + (f", {percent(share)}" if share else "")
    yield Fact("spent", with_unit(record, money["spent"]), of, share)
    if money["fixed"]:
        k = record.plan["redundancy"]["max"]
        fixed, all_ = (with_unit(record, money[key]) for key in ("fixed", "everything"))
        words = f"of {fixed} for these items with {counted(k, 'answer')} each; everything: {all_}"
        yield Fact("saved", f"{100 * money['saving']:.0f}\u00a0%", words)


# --------------------------------------------------------------------------------------------------
# The page: everything about a campaign in one HTML file that stands alone.


RESAMPLES = 200
"""Of items, for the interval of the labels' score."""


def write_campaign_report(
    record: CampaignRecord,  # The numbers, a `goldspan.campaign.CampaignRecord`
    path: str | Path,  # Where to; what stands there is replaced when the report is complete
    *,
    result: Consensus | None = None,
    tested: Consensus | None = None,
    against: str = "",  # What that gold is, in words such as "the hidden gold"
) -> None:
    """Write the report of a campaign as one HTML file."""
    # The file needs no network and no script
    write_text(path, [render(record, result=result, tested=tested, against=against)])


def render(
    record: CampaignRecord,
    *,
    result: Consensus | None = None,
    tested: Consensus | None = None,
    against: str = "",
) -> str:
    """Return the report as a string; the arguments are those of `write_campaign_report`."""
    scored = _score(tested, record.plan["seed"])
    picks = [one for one in record.picks.values() if one]
    # The plan in force by section; what was left open is left out, defaults are told
    plain = [(k, _lines(v)) for k, v in record.plan.items() if not isinstance(v, Mapping)]
    found = [("campaign", [*plain, ("id", [record.id])])]
    for name in [*PLANNED_ORDER, *(key for key in record.plan if key not in PLANNED_ORDER)]:
        section = record.plan.get(name)
        if isinstance(section, Mapping) and not (name == "prices" and record.money is None):
            rows = [
                (key, _layer_lines(value) if key == "layers" else _lines(value))
                for key, value in section.items()
                if value not in _OPEN
            ]
            if rows:
                found.append((name, rows))
    if record.changes:
        found.append(("changed since", _changes(record)))
    return fill_template(
        "campaign.html.j2",
        title=record.plan["name"],
        plain=record.measure == "accuracy",
        measure=record.measure,
        status=status(record),
        lead=lead(record),
        warnings=record.warnings,
        facts=[*_quality(record, result, scored, against), *_work(record)],
        score_title=f"How good the labels are, against {against}",
        learning=learning_picture(record),
        rounds=record.rounds,
        outlook=outlook(record),
        currency=currency_of(record),
        paid=record.money is not None,
        spending=spending_picture(record),
        redundancy=redundancy_picture(record),
        bill=bill_rows(record),
        coverage=coverage_picture(record),
        picks=picks,
        rules=list(dict.fromkeys(rule for one in picks for rule in sorted(one))),
        **_labels(None if isinstance(result, Joint) else result, tested, scored, against),
        layers=list(_layers(result)) if isinstance(result, Joint) else [],
        people=people(record),
        people_lead=people_lead(record),
        n_people=len(record.workers),
        workforce=workforce(record),
        suggestions=record.suggestions,
        stop=record.stop,
        limits=list(limits(record)),
        quote=() if result is None else methods_text(result, record=record),
        plan=found,
        versions=dict(record.versions),
    )


def _labels(
    result: Consensus | None, tested: Consensus | None, scored: Score | None, against: str
) -> dict[str, Any]:
    """Return what the sections on labels say; nothing where there is no answer."""
    if result is None:
        empty = dict.fromkeys(sections.ON_LABELS.split(), ())
        return empty | {"score": scored, "calibration": None, "method": []}
    # The same labels with gold beside them, if it is not that of labels made for the test alone.
    shown = tested if tested is not None and tested.codes is result.codes else result
    workers, agreed = worker_table(result, None), agreement(result.crowd)
    found = sections.on_labels(result, workers, agreed, scored, shown)
    return found | {
        "calibration": tested and sections.calibration_picture(tested, against),
        "places": [replace(place, group="") for place in found["places"]],
        "method": _method(result),
    }


def _layers(result: Joint) -> Iterator[tuple[str, str]]:
    """Yield the name of every layer, and what is said of its labels."""
    for number, (name, one) in enumerate(result.layers.items(), 1):
        facts = _labels(one, None, None, "")
        facts |= {"plain": one.tagset.rules.is_plain, "level": 3, "at": f"-{number}"}
        yield name, fill_template("layer.html.j2", layer=name, **facts)


def _method(result: Consensus) -> list[tuple[str, list[str]]]:
    """Return how the labels were made; how long it took differs."""
    rows = [row for row in sections.method(result) if row[0] != "Time"]
    return [(name, [", ".join(lines)] if name == "Parameters" else lines) for name, lines in rows]


def _score(tested: Consensus | None, seed: int) -> Score | None:
    if tested is None or tested.crowd.gold is None or not (tested.crowd.gold >= 0).any():
        return None
    return score(tested.crowd, tested, bootstrap=RESAMPLES, random_state=seed)
