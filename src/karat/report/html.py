"""The report: one HTML file that stands alone – no network, no script, pictures as inline SVG.

Ids, tokens, labels and messages come from strangers: the template escapes everything, and a
content security policy in the page forbids scripts and requests in any case.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from karat import __version__
from karat.aggregate import Consensus
from karat.crowd import Agreement
from karat.crowd.atomic import write_text
from karat.errors import MissingExtraError
from karat.report.distributions import distributions
from karat.report.doubtful import doubtful_places
from karat.report.plots import MAX_POINTS, agreement_figure, inline_svg
from karat.report.workers import WorkerTable, worker_table
from karat.spans import Score

MAX_FAULTS = 20
MAX_FLAGGED = 8
MAX_TYPES = 100
MAX_TEXT = 400
"""Characters of a parameter, a note or a fault."""

SCHEME_MEANING = {
    "strict": "bounds and type",
    "exact": "bounds, any type",
    "partial": "overlap counts half, any type",
    "type": "overlap, same type",
}


@dataclass(frozen=True)
class Fact:
    """A number at the top of the report.

    Attributes:
        name: What it is.
        value: The number, written out.
        detail: What to know about it, "" for nothing.
    """

    name: str
    value: str
    detail: str = ""


@dataclass(frozen=True)
class Measure:
    """A measure of agreement, and how to read it."""

    name: str
    value: str
    meaning: str


def write_report(
    consensus: Consensus,
    path: str | Path,
    *,
    agreement: Agreement | None = None,
    score: Score | None = None,
) -> None:
    """Write a report on a consensus as one HTML file.

    The file needs no network and no script. Sections without content are left out: without
    `agreement` its measures and the picture, without `score` the score. At most 200 workers, 20
    doubtful places and 20 faults are listed, so that the file stays small for large crowds. The
    same arguments give the same bytes.

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
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "percent": _percent,
        "count": _count,
        "share": _share,
        "number": _number,
    }
    workers = worker_table(consensus, agreement)
    source = _source(consensus)
    template = files("karat.report").joinpath("report.html.j2").read_text(encoding="utf-8")
    return environment.from_string(template).render(
        version=__version__,
        consensus=consensus,
        crowd=consensus.crowd,
        plain=consensus.tagset.rules.is_plain,
        title=f"Crowd report: {source}" if source else "Crowd report",
        source=source,
        lead=_lead(consensus),
        facts=_facts(consensus, score),
        method=_method(consensus),
        score=score,
        score_types=_score_types(score),
        schemes=_schemes(consensus, score),
        measures=_measures(consensus, agreement),
        figure=_figure(consensus, agreement),
        workers=workers,
        workers_lead=_workers_lead(workers),
        imported=_imported(consensus),
        places=doubtful_places(consensus),
    )


def _source(consensus: Consensus) -> str:
    """Name of the file that was read; readers write in angle brackets what is no file."""
    source = consensus.crowd.import_report.source
    return "" if source.startswith("<") and source.endswith(">") else source


def _lead(consensus: Consensus) -> str:
    crowd = consensus.crowd
    open_ = int(np.count_nonzero(np.diff(crowd.by_item.bounds) == 0))
    text = (
        f"{_plural(crowd.n_workers, 'worker')} gave {_plural(len(crowd.latest), 'answer')} "
        f"to {_plural(crowd.n_items, 'item')}; {consensus.method} made them into one label per "
        f"{'item' if crowd.is_classification else 'token'}."
    )
    return f"{text} {_plural(open_, 'item')} without an answer: left open." if open_ else text


def _facts(consensus: Consensus, score: Score | None) -> list[Fact]:
    crowd, plain = consensus.crowd, consensus.tagset.rules.is_plain
    facts = []
    if score is not None and plain:
        tokens = f"over {_plural(score.n_tokens, 'label')} with gold"
        facts.append(Fact("accuracy", _percent(score.accuracy), tokens))
    elif score is not None:
        rules = f"policy {score.policy}, {score.encoding}"
        facts.append(Fact("span F1", _percent(score.f1), rules))
    facts.append(Fact("items", _count(crowd.n_items)))
    if not crowd.is_classification:
        facts.append(Fact("tokens", _count(crowd.n_tokens)))
    facts.append(Fact("workers", _count(crowd.n_workers)))
    facts.append(Fact("answers", _count(len(crowd.latest))))
    known = consensus.token_confidence[consensus.codes >= 0]
    of = "labels"
    if not plain:
        facts.append(Fact("spans found", _count(len(consensus.span_array))))
        known, of = consensus.span_confidence, "spans"
    if len(known):
        mean = float(np.mean(known, dtype=np.float64))
        facts.append(Fact("confidence", _percent(mean), f"mean of the {of}"))
    return facts


def _method(consensus: Consensus) -> list[tuple[str, list[str]]]:
    """How the result was made: names and the lines that stand beside them."""
    rows = [("Method", [consensus.method])]
    if consensus.params:
        shown = [f"{name} = {_text(value)}" for name, value in consensus.params.items()]
        rows.append(("Parameters", shown))
    if consensus.notes:
        rows.append(("Notes", [_text(note) for note in consensus.notes]))
    if consensus.trace:
        first, last = consensus.trace[0], consensus.trace[-1]
        steps = f"{_plural(len(consensus.trace), 'step')}, objective from {first:.6g} to {last:.6g}"
        rows.append(("Course", [steps]))
    stop = _text(consensus.stop_reason) or "finished"
    rows.append(("Stopped because", [stop if consensus.converged else f"{stop} (not converged)"]))
    rows.append(("Time", [f"{consensus.seconds:.3g} seconds"]))
    rows.append(("Made with", [f"karat {__version__}"]))
    return rows


def _score_types(score: Score | None) -> list[tuple[str, Any]]:
    """The types that occur, the most frequent first where there are too many of them."""
    if score is None:
        return []
    rows = [(name, r) for name, r in score.types.items() if r.n_true + r.n_predicted]
    if len(rows) > MAX_TYPES:
        rows = sorted(rows, key=lambda row: -row[1].n_true)[:MAX_TYPES]
    return rows


def _schemes(consensus: Consensus, score: Score | None) -> list[tuple[str, str, Any]]:
    """The schemes of SemEval-2013 with what they accept; none for labels without spans."""
    if score is None or consensus.tagset.rules.is_plain:
        return []
    return [(name, SCHEME_MEANING[name], score.schemes[name]) for name in score.schemes]


def _workers_lead(table: WorkerTable) -> str:
    if not table.ranked_by:
        return "There is nothing to compare them by."
    order = f"Sorted by “{table.ranked_by}”, the worst first."
    flagged = table.far_below
    if not flagged:
        return f"{order} Nobody is far below the others."
    names = ", ".join(flagged[:MAX_FLAGGED])
    more = f" and {_count(len(flagged) - MAX_FLAGGED)} more" if len(flagged) > MAX_FLAGGED else ""
    verb = "is" if len(flagged) == 1 else "are"
    whole = _plural(table.n_workers, "worker")
    return (
        f"{order} Far below the others {verb} {len(flagged)} of {whole}: {names}{more} "
        "(under half of the median, or an outlier of the box plot)."
    )


def _measures(consensus: Consensus, agreement: Agreement | None) -> list[Measure]:
    if agreement is None:
        return []
    unit = "item" if consensus.crowd.is_classification else "token"
    pairs = _plural(agreement.n_pairs, "pair")
    rows = [
        (
            "Krippendorff’s α",
            _number(agreement.alpha),
            "1 is perfect, 0 what chance would give, below 0 worse than chance. "
            "By convention 0.80 is reliable and 0.67 the least to draw conclusions from.",
        ),
        (
            "Fleiss’ κ",
            _number(agreement.fleiss_kappa),
            f"On the same scale, with every {unit} counting alike; usually close to α.",
        ),
        (
            "Cohen’s κ",
            _number(agreement.cohen_kappa),
            f"On the same scale, two workers at a time: the mean over {pairs} who share {unit}s.",
        ),
        ("Equal labels", _share(agreement.observed), _equal_meaning(unit)),
    ]
    if agreement.pairwise_span_f1 is not None:
        meaning = "How far two workers mark exactly the same spans; the mean over their pairs."
        rows.append(("Span F1 of pairs", _share(agreement.pairwise_span_f1), meaning))
    return [Measure(*row) for row in rows]


def _equal_meaning(unit: str) -> str:
    text = f"How often two labels of one {unit} are the same, chance included"
    return (
        f"{text}."
        if unit == "item"
        else f"{text}: high already where most tokens lie outside spans."
    )


def _figure(consensus: Consensus, agreement: Agreement | None) -> dict[str, Any] | None:
    """The picture, its text alternative and the same in numbers."""
    if agreement is None:
        return None
    from markupsafe import Markup

    shown = distributions(consensus.crowd, agreement)
    description = " ".join(one.describe() for one in shown)
    svg = inline_svg(agreement_figure(consensus.crowd, agreement), "Box plots", description)
    return {
        "svg": Markup(svg),  # noqa: S704 - drawn by us, holds no text of strangers
        "columns": [one.title + (", %" if one.is_rate else "") for one in shown],
        "rows": [
            (name, [one.show(one.quartiles[i]) for one in shown])
            for i, name in enumerate(
                ("least", "1st quartile", "median", "3rd quartile", "most", "mean")
            )
        ],
        "capped": any(len(one.values) > MAX_POINTS for one in shown),
        "max_points": MAX_POINTS,
    }


def _imported(consensus: Consensus) -> dict[str, Any] | None:
    """The import report, None where nothing was read."""
    report = consensus.crowd.import_report
    if not (report.n_labels or report.faults or report.notes or report.source):
        return None
    faults = [_text(str(fault)) for fault in report.faults[:MAX_FAULTS]]
    return {
        "report": report,
        "reasons": list(report.reasons.items()),
        "kinds": list(report.kinds.items()),
        "notes": [_text(note) for note in report.notes],
        "faults": faults,
        "n_more": len(report.faults) - len(faults),
    }


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def _printable(value: Any) -> Any:
    """Show control characters, which HTML forbids, and stray surrogates as a replacement mark."""
    if type(value) is not str or (value.isprintable()):
        return value
    bad = {"Cc", "Cs"}
    return "".join(
        "\ufffd" if unicodedata.category(c) in bad and c not in "\t\n" else c for c in value
    )


def _plural(n: int, word: str) -> str:
    return f"{_count(n)} {word}{'' if n == 1 else 's'}"


def _count(n: int) -> str:
    return f"{n:,}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f}\u00a0%"


def _share(value: float | None) -> str:
    return "–" if value is None or np.isnan(value) else _percent(value)


def _number(value: float | None) -> str:
    return "–" if value is None or np.isnan(value) else f"{value:.3f}".replace("-", "\u2212")
