"""The report: one HTML file that stands alone – no network, no script, pictures as inline SVG."""

from __future__ import annotations

from pathlib import Path

from goldspan.aggregate import Consensus
from goldspan.crowd import Agreement
from goldspan.crowd.atomic import write_text
from goldspan.report import pictures, sections
from goldspan.report.doubtful import doubtful_places
from goldspan.report.filling import fill_template
from goldspan.report.habits import worker_habits
from goldspan.report.workers import worker_table
from goldspan.spans import Score


def write_report(
    consensus: Consensus,
    path: str | Path,
    *,
    agreement: Agreement | None = None,
    score: Score | None = None,
) -> None:
    """Write a report on a consensus as one HTML file.

    The file needs no network and no script. Sections without content are left out: without
    `agreement` its measures and the picture, without `score` the score; what only models know –
    calibration against the crowd's gold, confusions, rejected spans – for votes. At most 200
    workers, 20 doubtful places and 20 faults are listed and 12 labels drawn, so that the file stays
    small for large crowds. The same arguments give the same bytes.

    Args:
        consensus: The result to report on.
        path: Where to; what stands there is replaced when the report is complete.
        agreement: Agreement of the same crowd, from `goldspan.agreement`.
        score: How good the result is, from `goldspan.score`.

    Raises:
        MissingExtraError: Jinja2 or Matplotlib is not installed.
        InputError: The path cannot be written.
    """
    write_text(path, [render(consensus, agreement=agreement, score=score)])


def render(
    consensus: Consensus, *, agreement: Agreement | None = None, score: Score | None = None
) -> str:
    """Give the report as a string; the arguments are those of `write_report`."""
    workers = worker_table(consensus, agreement)
    source = sections.source(consensus)
    return fill_template(
        "report.html.j2",
        crowd=consensus.crowd,
        plain=consensus.tagset.rules.is_plain,
        title=f"Crowd report: {source}" if source else "Crowd report",
        source=source,
        lead=sections.lead(consensus),
        facts=sections.facts(consensus, score),
        method=sections.method(consensus),
        score=score,
        score_types=sections.score_types(score),
        schemes=sections.schemes(consensus, score),
        measures=sections.measures(consensus, agreement),
        figure=pictures.agreement_picture(consensus, agreement),
        calibration=pictures.calibration_picture(consensus),
        trace=pictures.trace_picture(consensus),
        confusion=pictures.confusion_pictures(consensus, [row.worker for row in workers.rows]),
        workers=workers,
        workers_lead=sections.workers_lead(workers),
        habits=worker_habits(consensus, workers),
        spammers_lead=sections.spammers_lead(workers),
        is_model=consensus.posterior is not None,
        imported=sections.imported(consensus),
        places=doubtful_places(consensus),
    )
