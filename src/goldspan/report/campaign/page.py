"""The page: everything about a campaign in one HTML file that stands alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from goldspan.aggregate import Consensus
from goldspan.crowd import agreement
from goldspan.crowd.atomic import write_text
from goldspan.report import pictures, sections
from goldspan.report.campaign import covering, ending, learning, people, planned, spending, top
from goldspan.report.campaign.numbers import Numbers, currency_of, measure_of
from goldspan.report.doubtful import doubtful_places
from goldspan.report.filling import fill_template
from goldspan.report.habits import worker_habits
from goldspan.report.workers import worker_table
from goldspan.spans import Score, score

RESAMPLES = 200
"""Of items, for the interval of the labels' score."""


def write_campaign_report(
    record: Numbers,
    path: str | Path,
    *,
    result: Consensus | None = None,
    tested: Consensus | None = None,
    against: str = "",
) -> None:
    """Write the report of a campaign as one HTML file.

    The file needs no network and no script. What is not known is left out, so that it can be made
    at any time of a campaign. It holds no time of day: the same arguments give the same bytes.

    Args:
        record: The numbers, a `goldspan.campaign.CampaignRecord`.
        path: Where to; what stands there is replaced when the report is complete.
        result: The labels.
        tested: Labels in whose crowd stands gold that their method has not seen.
        against: What that gold is, in words such as "the hidden gold".

    Raises:
        MissingExtraError: Jinja2 or Matplotlib is not installed.
        InputError: The path cannot be written.
    """
    write_text(path, [render(record, result=result, tested=tested, against=against)])


def render(
    record: Numbers,
    *,
    result: Consensus | None = None,
    tested: Consensus | None = None,
    against: str = "",
) -> str:
    """Give the report as a string; the arguments are those of `write_campaign_report`."""
    scored = _score(tested, record.plan["seed"])
    return fill_template(
        "campaign.html.j2",
        title=record.plan["name"],
        plain=bool(record.plan["task"]["labels"]),
        measure=measure_of(record),
        status=top.status(record),
        lead=top.lead(record),
        facts=top.facts(record, result, scored, against),
        score_title=f"How good the labels are, against {against}",
        **_course(record),
        **_labels(result, tested, scored, against),
        people=people.people(record),
        people_lead=people.people_lead(record),
        n_people=len(record.workers),
        stop=record.stop,
        limits=ending.limits(record),
        plan=planned.plan_rows(record),
        versions=dict(record.versions),
    )


def _course(record: Numbers) -> dict[str, Any]:
    """Give what the sections on rounds, money and coverage say."""
    return {
        "learning": learning.learning_picture(record),
        "rounds": learning.round_rows(record),
        "outlook": learning.outlook(record),
        "currency": currency_of(record),
        "paid": record.money is not None,
        "spending": spending.spending_picture(record),
        "redundancy": spending.redundancy_picture(record),
        "bill": spending.bill_rows(record),
        "coverage": covering.coverage_picture(record),
        "picks": covering.pick_rows(record),
    }


def _labels(
    result: Consensus | None, tested: Consensus | None, scored: Score | None, against: str
) -> dict[str, Any]:
    """Give what the sections on labels say; nothing where there is no answer."""
    names = ("measures", "figure", "calibration", "confusion", "habits", "places", "score_types")
    empty: dict[str, Any] = {key: [] for key in names}
    empty |= {"score": scored, "schemes": [], "crowd": None, "is_model": False, "method": []}
    if result is None:
        return empty
    agreed, workers = agreement(result.crowd), worker_table(result, None)
    # The same labels with gold beside them, if it is not that of labels made for the test alone.
    shown = tested if tested is not None and tested.codes is result.codes else result
    calibration = None if tested is None else pictures.calibration_picture(tested, against)
    return empty | {
        "crowd": result.crowd,
        "score_types": sections.score_types(scored),
        "schemes": sections.schemes(result, scored),
        "measures": sections.measures(result, agreed),
        "figure": pictures.agreement_picture(result, agreed),
        "calibration": calibration,
        "confusion": pictures.confusion_pictures(result, [row.worker for row in workers.rows]),
        "habits": worker_habits(result, workers),
        "places": [replace(place, group="") for place in doubtful_places(shown)],
        "is_model": result.posterior is not None,
        "method": _method(result),
    }


def _method(result: Consensus) -> list[tuple[str, list[str]]]:
    """Say how the labels were made; how long it took is another time different."""
    rows = [row for row in sections.method(result) if row[0] != "Time"]
    return [(name, [", ".join(lines)] if name == "Parameters" else lines) for name, lines in rows]


def _score(tested: Consensus | None, seed: int) -> Score | None:
    if tested is None or tested.crowd.gold is None or not (tested.crowd.gold >= 0).any():
        return None
    return score(tested.crowd, tested, bootstrap=RESAMPLES, random_state=seed)
