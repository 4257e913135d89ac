"""What the sections of the report say: sentences and rows, ready to be set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from goldspan import __version__
from goldspan.aggregate import Consensus
from goldspan.crowd import Agreement
from goldspan.report.wording import count, number, percent, plural, share, shorten
from goldspan.report.workers import WorkerTable
from goldspan.spans import Score

MAX_FAULTS = 20
MAX_FLAGGED = 8
MAX_TYPES = 100
MAX_TEXT = 400
"""Characters of a parameter, a note or a fault."""

ALPHA_MEANING = (
    "1 is perfect, 0 what chance would give, below 0 worse than chance. "
    "By convention 0.80 is reliable and 0.67 the least to draw conclusions from."
)
FAR_BELOW = "(under half of the median, or an outlier of the box plot)"
SPAM = (
    "tell next to nothing about the truth: less than a tenth of the median bits per label, once "
    "what chance alone seems to tell is taken off, though there was something to tell"
)
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
        share: Of a whole, drawn as a bar, or None.
    """

    name: str
    value: str
    detail: str = ""
    share: float | None = None


@dataclass(frozen=True)
class Measure:
    """A measure of agreement, and how to read it."""

    name: str
    value: str
    meaning: str


def source(consensus: Consensus) -> str:
    """Give the name of the file that was read; readers write in angle brackets what is no file."""
    name = consensus.crowd.import_report.source
    return "" if name.startswith("<") and name.endswith(">") else name


def lead(consensus: Consensus) -> str:
    """Say in a sentence who answered what."""
    crowd = consensus.crowd
    unasked = np.diff(crowd.by_item.bounds) == 0
    alone = int(np.count_nonzero(unasked))
    is_open = bool((consensus.codes[np.repeat(unasked, np.diff(crowd.offsets))] < 0).all())
    end = "left open" if is_open else "labelled by the words alone"
    text = (
        f"{plural(crowd.n_workers, 'worker')} gave {plural(len(crowd.latest), 'answer')} "
        f"to {plural(crowd.n_items, 'item')}; {consensus.method} made them into one label per "
        f"{'item' if crowd.is_classification else 'token'}."
    )
    return f"{text} {plural(alone, 'item')} without an answer: {end}." if alone else text


def facts(consensus: Consensus, score: Score | None) -> list[Fact]:
    """Collect the numbers at the top."""
    crowd, plain = consensus.crowd, consensus.tagset.rules.is_plain
    rows = []
    if score is not None and plain:
        tokens = f"over {plural(score.n_tokens, 'label')} with gold"
        rows.append(Fact("accuracy", percent(score.accuracy), tokens))
    elif score is not None:
        rules = f"policy {score.policy}, {score.encoding}"
        rows.append(Fact("span F1", percent(score.f1), rules))
    rows.append(Fact("items", count(crowd.n_items)))
    if not crowd.is_classification:
        rows.append(Fact("tokens", count(crowd.n_tokens)))
    rows.append(Fact("workers", count(crowd.n_workers)))
    rows.append(Fact("answers", count(len(crowd.latest))))
    known = consensus.token_confidence[consensus.codes >= 0]
    of = "labels"
    if not plain:
        rows.append(Fact("spans found", count(len(consensus.span_array))))
        known, of = consensus.span_confidence, "spans"
    if len(known):
        mean = float(np.mean(known, dtype=np.float64))
        rows.append(Fact("confidence", percent(mean), f"mean of the {of}"))
    return rows


def method(consensus: Consensus) -> list[tuple[str, list[str]]]:
    """Say how the result was made: names and the lines that stand beside them."""
    rows = [("Method", [consensus.method])]
    if consensus.params:
        shown = [f"{name} = {_text(value)}" for name, value in consensus.params.items()]
        rows.append(("Parameters", shown))
    if consensus.notes:
        rows.append(("Notes", [_text(note) for note in consensus.notes]))
    if consensus.trace:
        first, last = consensus.trace[0], consensus.trace[-1]
        steps = f"{plural(len(consensus.trace), 'step')}, objective from {first:.6g} to {last:.6g}"
        rows.append(("Course", [steps]))
    stop = _text(consensus.stop_reason) or "finished"
    rows.append(("Stopped because", [stop if consensus.converged else f"{stop} (not converged)"]))
    rows.append(("Time", [f"{consensus.seconds:.3g} seconds"]))
    rows.append(("Made with", [f"goldspan {__version__}"]))
    return rows


def score_types(score: Score | None) -> list[tuple[str, Any]]:
    """Give the types that occur, the most frequent first where there are too many of them."""
    if score is None:
        return []
    rows = [(name, r) for name, r in score.types.items() if r.n_true + r.n_predicted]
    if len(rows) > MAX_TYPES:
        rows = sorted(rows, key=lambda row: -row[1].n_true)[:MAX_TYPES]
    return rows


def schemes(consensus: Consensus, score: Score | None) -> list[tuple[str, str, Any]]:
    """Give the schemes of SemEval-2013 with what they accept; none for labels without spans."""
    if score is None or consensus.tagset.rules.is_plain:
        return []
    return [(name, SCHEME_MEANING[name], score.schemes[name]) for name in score.schemes]


def measures(consensus: Consensus, agreement: Agreement | None) -> list[Measure]:
    """List the measures of agreement; none without an agreement."""
    if agreement is None:
        return []
    unit = "item" if consensus.crowd.is_classification else "token"
    pairs = plural(agreement.n_pairs, "pair")
    rows = [
        ("Krippendorff’s α", number(agreement.alpha), ALPHA_MEANING),
        (
            "Fleiss’ κ",
            number(agreement.fleiss_kappa),
            f"On the same scale, with every {unit} counting alike; usually close to α.",
        ),
        (
            "Cohen’s κ",
            number(agreement.cohen_kappa),
            f"On the same scale, two workers at a time: the mean over {pairs} who share {unit}s.",
        ),
        (
            "Equal labels",
            share(agreement.observed),
            _equal_meaning(unit, plain=agreement.pairwise_span_f1 is None),
        ),
    ]
    if agreement.pairwise_span_f1 is not None:
        meaning = "How far two workers mark exactly the same spans; the mean over their pairs."
        rows.append(("Span F1 of pairs", share(agreement.pairwise_span_f1), meaning))
    return [Measure(*row) for row in rows]


def _equal_meaning(unit: str, *, plain: bool) -> str:
    outside = "" if plain else ": high already where most tokens lie outside spans"
    return f"How often two labels of one {unit} are the same, chance included{outside}."


def workers_lead(table: WorkerTable) -> tuple[str, tuple[str, ...], str]:
    """Say how the workers are sorted and who is far below the others.

    Returns:
        The words before the names, the names, and the words after them.
    """
    if not table.ranked_by:
        return "There is nothing to compare them by.", (), ""
    order = f"Sorted by “{table.ranked_by}”, the worst first."
    flagged = table.far_below
    if not flagged:
        return f"{order} Nobody is far below the others.", (), ""
    more = len(flagged) - MAX_FLAGGED
    verb = "is" if len(flagged) == 1 else "are"
    whole = plural(table.n_workers, "worker")
    before = f"{order} Far below the others {verb} {count(len(flagged))} of {whole}: "
    after = f"{f' and {count(more)} more' if more > 0 else ''} {FAR_BELOW}."
    return before, flagged[:MAX_FLAGGED], after


def spammers_lead(table: WorkerTable) -> tuple[str, tuple[str, ...], str]:
    """Say whose labels tell next to nothing.

    Returns:
        The words before the names, the names, and the words after them; all empty if nobody's.
    """
    if not table.spammers:
        return "", (), ""
    more = len(table.spammers) - MAX_FLAGGED
    others = f" and {count(more)} more" if more > 0 else ""
    return "The labels of ", table.spammers[:MAX_FLAGGED], f"{others} {SPAM}."


def imported(consensus: Consensus) -> dict[str, Any] | None:
    """Give the import report, None where nothing was read."""
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
    return shorten(value if isinstance(value, str) else repr(value), MAX_TEXT)
