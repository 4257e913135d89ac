"""The report: one HTML file that stands alone – no network, no script, pictures as inline SVG.

Ids, tokens, labels and messages come from strangers: the template escapes everything, and a
content security policy in the page forbids scripts and requests in any case.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from karat import __version__
from karat.aggregate import Consensus
from karat.crowd import Agreement
from karat.crowd.atomic import write_text
from karat.errors import MissingExtraError
from karat.report import pictures, sections
from karat.report.doubtful import doubtful_places
from karat.report.habits import worker_habits
from karat.report.wording import count, percent, printable, shorten
from karat.report.workers import worker_table
from karat.spans import Score


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
        agreement: Agreement of the same crowd, from `karat.agreement`.
        score: How good the result is, from `karat.score`.

    Raises:
        MissingExtraError: Jinja2 or Matplotlib is not installed.
        InputError: The path cannot be written.
    """
    write_text(path, [render(consensus, agreement=agreement, score=score)])


def render(
    consensus: Consensus, *, agreement: Agreement | None = None, score: Score | None = None
) -> str:
    """Give the report as a string; the arguments are those of `write_report`."""
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError:
        raise MissingExtraError("jinja2", "report", "a report") from None
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_clean,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"percent": percent, "count": count, "short": shorten}
    workers = worker_table(consensus, agreement)
    source = sections.source(consensus)
    template = files("karat.report").joinpath("report.html.j2").read_text(encoding="utf-8")
    return environment.from_string(template).render(
        version=__version__,
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


def _clean(value: Any) -> Any:
    return printable(value) if type(value) is str else value
