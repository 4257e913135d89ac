"""The report of a campaign: learning curve, money, people, items, what is planned, the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from goldspan.aggregation import Consensus
from goldspan.crowd import agreement
from goldspan.crowd.atomic import write_text
from goldspan.report import sections
from goldspan.report.drawing import fill_template
from goldspan.report.rounds import (
    bill_rows,
    coverage_picture,
    learning_picture,
    outlook,
    redundancy_picture,
    spending_picture,
)
from goldspan.report.sections import Fact
from goldspan.report.uncertain import uncertain_places
from goldspan.report.wording import (
    count,
    currency_of,
    interval,
    measure_of,
    percent,
    plural,
    with_unit,
)
from goldspan.report.workers import worker_habits, worker_table
from goldspan.spans import score
from goldspan.spans.scoring import Score

if TYPE_CHECKING:
    from goldspan.campaign import CampaignRecord

# --------------------------------------------------------------------------------------------------
# People and models side by side.


MAX_ROWS = 60
"""Workers of the table; the kinds have all of them."""
CALLED = {
    "people": "people",
    "llm": "language models",
    "python": "functions",
    "tagger": "taggers",
    "simulated": "simulated workers",
    "replay": "recorded workers",
}
"""What workers of a kind are called together."""


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
        rows.append((CALLED.get(kind, kind), plural(len(own), "worker"), one, True))
        order = sorted(own, key=lambda w: (-own[w]["answers"], w))
        n_all += len(order)
        for worker in order[: max(0, MAX_ROWS - n_listed)]:
            n_listed += 1
            about = ", ".join(part for part in (kind, str(own[worker].get("family") or "")) if part)
            rows.append((worker, about, own[worker], False))
    return {"rows": rows, "n_left_out": n_all - n_listed, "probes": probes}


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
            f"{one['probe']} ({one['kind']}{model}) labelled {plural(one['items'], 'item')} "
            f"silently{price}; its answers count for nothing. {said}."
        )


# --------------------------------------------------------------------------------------------------
# The workers of a campaign: how reliable they are, what was decided, what they do.


MAX_WORKERS = 200
ORDER = ("drop", "look at", "test more", "keep", "")


def people(record: CampaignRecord) -> list[tuple[str, Mapping[str, Any]]]:
    """List the workers, those who are asked no more first, then the least reliable."""

    def rank(pair: tuple[str, Mapping[str, Any]]) -> tuple[object, ...]:
        name, one = pair
        return not one["barred"], ORDER.index(one.get("verdict", "")), one.get("mean", 1.0), name

    return sorted(record.workers.items(), key=rank)[:MAX_WORKERS]


def people_lead(record: CampaignRecord) -> str:
    """Return how many workers there are and how many were dropped."""
    barred = [name for name, one in record.workers.items() if one["barred"]]
    text = f"{plural(len(record.workers), 'worker')}."
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
    yield "pool", f"{plural(own, 'item')} to label", f"{count(picked)} picked"
    if hours is not None:
        now = "\u2013" if last is None else f"{last['hours']:,.1f} hours"
        yield "time", f"{hours:g} hours at most", now
    for row in record.limits:
        yield row["rule"], row["limit"], row["now"]


# --------------------------------------------------------------------------------------------------
# The numbers on top: what there is, what it cost, how good it is, what stopped it.


def status(record: CampaignRecord) -> tuple[str, str]:
    """Return how far a campaign is, and why."""
    done = plural(len(record.rounds), "round")
    if record.stop is not None:
        return "stopped", f"after {done}: {record.stop['why']}"
    awaited = record.counts["awaited"]
    more = f", {plural(awaited, 'answer')} awaited" if awaited else ""
    return "open", f"in round {len(record.rounds) + 1}{more}"


def lead(record: CampaignRecord) -> str:
    """Return in a sentence what was done."""
    counts, money = record.counts, record.money
    who = "simulated workers" if record.plan["crowd"]["source"] == "simulated" else "workers"
    n = sum(1 for one in record.workers.values() if one["answers"])
    own = counts["answers"] - counts["control_answers"]
    price = "" if money is None else f" for {with_unit(record, money['spent'])}"
    text = (
        f"{count(n)} {who} gave {plural(counts['answers'], 'answer')}{price}: {count(own)} of them "
        f"label {count(counts['items'])} of the {plural(counts['pool'], 'item')} of the pool"
    )
    if not counts["control_answers"]:
        return f"{text}."
    asked = plural(counts["control_items"], "gold question")
    return f"{text}, and {count(counts['control_answers'])} are to {asked}."


def _quality(
    record: CampaignRecord, result: Consensus | None, score: Score | None, against: str
) -> Iterator[Fact]:
    name = measure_of(record)
    if score is not None:
        value = score.accuracy if name == "accuracy" else score.f1
        bounds = "" if score.interval is None else _bounds(score.interval)
        yield Fact(f"{name} of the labels", percent(value), f"against {against}{bounds}")
    elif result is not None and len(_confidence(result)):
        mean = float(np.mean(_confidence(result), dtype=np.float64))
        what = "labels" if name == "accuracy" else "spans"
        yield Fact("confidence", percent(mean), f"mean of the {what}")
    last = next((one for one in reversed(record.rounds) if one["score"] is not None), None)
    if last is not None:
        measured = last["score"]
        words = f"as measured: {interval(measured)} on {plural(measured['n'], 'item')}"
        yield Fact(f"{name} of the model", percent(measured["value"]), words)


def _bounds(found: tuple[float, float]) -> str:
    return f": {interval({'low': found[0], 'high': found[1]})}"


def _confidence(result: Consensus) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    if result.tagset.rules.is_plain:
        return result.token_confidence[result.codes >= 0]
    return result.span_confidence


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
        words = f"of {fixed} for these items with {plural(k, 'answer')} each; everything: {all_}"
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
            rows = [(key, _lines(value)) for key, value in section.items() if value not in _OPEN]
            if rows:
                found.append((name, rows))
    if record.changes:
        found.append(("changed since", _changes(record)))
    return fill_template(
        "campaign.html.j2",
        title=record.plan["name"],
        plain=bool(record.plan["task"]["labels"]),
        measure=measure_of(record),
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
        **_labels(result, tested, scored, against),
        people=people(record),
        people_lead=people_lead(record),
        n_people=len(record.workers),
        workforce=workforce(record),
        suggestions=record.suggestions,
        stop=record.stop,
        limits=list(limits(record)),
        plan=found,
        versions=dict(record.versions),
    )


def _labels(
    result: Consensus | None, tested: Consensus | None, scored: Score | None, against: str
) -> dict[str, Any]:
    """Return what the sections on labels say; nothing where there is no answer."""
    names = ("measures", "figure", "calibration", "confusion", "habits", "places", "score_types")
    empty: dict[str, Any] = {key: [] for key in names}
    empty |= {"score": scored, "schemes": [], "crowd": None, "is_model": False, "method": []}
    empty["candidates"] = ()
    if result is None:
        return empty
    agreed, workers = agreement(result.crowd), worker_table(result, None)
    # The same labels with gold beside them, if it is not that of labels made for the test alone.
    shown = tested if tested is not None and tested.codes is result.codes else result
    calibration = None if tested is None else sections.calibration_picture(tested, against)
    return empty | {
        "crowd": result.crowd,
        "score_types": sections.score_types(scored),
        "schemes": sections.schemes(result, scored),
        "measures": sections.measures(result, agreed),
        "figure": sections.agreement_picture(result, agreed),
        "calibration": calibration,
        "confusion": sections.confusion_pictures(result, [row.worker for row in workers.rows]),
        "habits": worker_habits(result, workers),
        "places": [replace(place, group="") for place in uncertain_places(shown)],
        "is_model": result.posterior is not None,
        "method": _method(result),
        "candidates": result.candidates,
    }


def _method(result: Consensus) -> list[tuple[str, list[str]]]:
    """Return how the labels were made; how long it took differs."""
    rows = [row for row in sections.method(result) if row[0] != "Time"]
    return [(name, [", ".join(lines)] if name == "Parameters" else lines) for name, lines in rows]


def _score(tested: Consensus | None, seed: int) -> Score | None:
    if tested is None or tested.crowd.gold is None or not (tested.crowd.gold >= 0).any():
        return None
    return score(tested.crowd, tested, bootstrap=RESAMPLES, random_state=seed)
