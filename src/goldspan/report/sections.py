"""The sections of a report and their words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from goldspan import __version__
from goldspan.aggregation import Consensus
from goldspan.aggregation.reliability import Reliability, token_cross_entropy
from goldspan.crowd import Crowd
from goldspan.crowd.atomic import write_text
from goldspan.crowd.measures import Agreement, Quartiles
from goldspan.report.drawing import (
    FONT,
    INK,
    MAX_POINTS,
    MUTED,
    POINT,
    agreement_figure,
    bare,
    below,
    default_style,
    distributions,
    fill_template,
    inline_svg,
    new_figure,
    write,
)
from goldspan.report.heat import (
    Confusions,
    confusion_figure,
    confusions,
    mistakes,
    pair_shares,
    pairs_figure,
    said_by_type,
    type_confusion_figure,
    unlike_the_others,
    worker_confusions_figure,
)
from goldspan.report.methods import given, methods_text
from goldspan.report.uncertain import uncertain_places
from goldspan.report.wording import count, number, percent, share, shorten
from goldspan.report.workers import (
    NOUNS,
    WorkerTable,
    reliabilities,
    reliability_figure,
    worker_habits,
    worker_table,
)
from goldspan.spans.notebook import counted
from goldspan.spans.scoring import Score

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --------------------------------------------------------------------------------------------------
# What the sections of the report say: sentences and rows, ready to be set.


MAX_FAULTS = 20
MAX_FLAGGED = 8
MAX_TYPES = 100
MAX_TEXT = 400
"""Characters of a parameter, a note or a fault."""

ALPHA_MEANING = (
    "1 is perfect, 0 what chance would give, below 0 worse than chance. "
    "By convention 0.80 is reliable and 0.67 the least to draw conclusions from."
)
FAR_BELOW = "(under two thirds of the median, or an outlier of the box plot)"
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
    """A number at the top of the report."""

    name: str
    value: str  # The number, written out
    detail: str = ""  # What to know about it, "" for nothing
    share: float | None = None  # Of a whole, drawn as a bar, or None


def source(consensus: Consensus) -> str:
    """Return the name of the file that was read; names in angle brackets are not files."""
    name = consensus.crowd.import_report.source
    return "" if name.startswith("<") and name.endswith(">") else name


def lead(consensus: Consensus) -> str:
    """Return in a sentence who answered what."""
    crowd = consensus.crowd
    unasked, whole = np.diff(crowd.by_item.bounds) == 0, crowd.whole_items
    alone = int(np.count_nonzero(np.diff(whole.by_item.bounds) == 0))
    is_open = bool((consensus.codes[np.repeat(unasked, np.diff(crowd.offsets))] < 0).all())
    end = "left open" if is_open else "labelled by the words alone"
    unit = "item" if crowd.is_classification else "token"
    text = f"{given(crowd)}; {_method_words(consensus)} one label per {unit}."
    return f"{text} {counted(alone, 'item')} without an answer: {end}." if alone else text


def _method_words(consensus: Consensus) -> str:
    """Say what made labels of the answers."""
    if not consensus.candidates:
        return f"{consensus.method} made them into"
    n_chosen = sum(one.weight > 0 for one in consensus.candidates)
    return f"{consensus.method} made them, by {counted(n_chosen, 'method')} together, into"


def facts(consensus: Consensus, score: Score | None) -> list[Fact]:
    """Collect the numbers at the top."""
    crowd, plain = consensus.crowd, consensus.tagset.rules.is_plain
    whole, rows = crowd.whole_items, []
    if score is not None and plain:
        tokens = f"over {counted(score.n_tokens, 'label')} with gold"
        rows.append(Fact("accuracy", percent(score.accuracy), tokens))
    elif score is not None:
        rules = f"policy {score.policy}, {score.encoding}"
        rows.append(Fact("span F1", percent(score.f1), rules))
    rows.append(Fact("items", count(whole.n_items)))
    if not crowd.is_classification:
        rows.append(Fact("tokens", count(whole.n_tokens)))
    rows.append(Fact("workers", count(crowd.n_workers)))
    rows.append(Fact("answers", count(len(whole.latest))))
    known = consensus.token_confidence[consensus.codes >= 0]
    of = "labels"
    if not plain:
        rows.append(Fact("spans found", count(len(consensus.spans))))
        known, of = consensus.span_confidence, "spans"
    if len(known):
        mean = float(np.mean(known, dtype=np.float64))
        rows.append(Fact("confidence", percent(mean), f"mean of the {of}"))
    return rows


def method(consensus: Consensus) -> list[tuple[str, list[str]]]:
    """Return how the result was made: names and the lines that stand beside them."""
    rows = [("Method", [consensus.method])]
    if consensus.params:
        shown = [f"{name} = {_text(value)}" for name, value in consensus.params.items()]
        rows.append(("Parameters", shown))
    if consensus.notes:
        rows.append(("Notes", [_text(note) for note in consensus.notes]))
    if consensus.trace and not consensus.candidates:
        first, last = consensus.trace[0], consensus.trace[-1]
        steps = f"{counted(len(consensus.trace), 'step')}, objective from {first:.6g} to {last:.6g}"
        rows.append(("Course", [steps]))
    stop = _text(consensus.stop_reason) or "finished"
    rows.append(("Stopped because", [stop if consensus.converged else f"{stop} (not converged)"]))
    rows.append(("Time", [f"{consensus.seconds:.3g} seconds"]))
    rows.append(("Made with", [f"goldspan {__version__}"]))
    return rows


def score_types(score: Score | None) -> list[tuple[str, Any]]:
    """Return the types that occur, the most frequent first where there are too many of them."""
    if score is None:
        return []
    rows = [(name, r) for name, r in score.types.items() if r.n_true + r.n_predicted]
    if len(rows) > MAX_TYPES:
        rows = sorted(rows, key=lambda row: -row[1].n_true)[:MAX_TYPES]
    return rows


def schemes(consensus: Consensus, score: Score | None) -> list[tuple[str, str, Any]]:
    """Return the schemes of SemEval-2013 with what they accept; none for labels without spans."""
    if score is None or consensus.tagset.rules.is_plain:
        return []
    return [(name, SCHEME_MEANING[name], score.schemes[name]) for name in score.schemes]


def measures(consensus: Consensus, agreement: Agreement | None) -> list[tuple[str, str, str]]:
    """List the measures of agreement by name, with how to read them; none without an agreement."""
    if agreement is None:
        return []
    unit = "item" if consensus.crowd.is_classification else "token"
    pairs = counted(agreement.n_pairs, "pair")
    fleiss = f"On the same scale, with every {unit} counting alike; usually close to α."
    cohen = f"On the same scale, two workers at a time: the mean over {pairs} who share {unit}s."
    spans = agreement.pairwise_span_f1
    outside = "" if spans is None else ": high already where most tokens lie outside spans"
    equal = f"How often two labels of one {unit} are the same, chance included{outside}."
    rows = [
        ("Krippendorff’s α", number(agreement.alpha), ALPHA_MEANING),
        ("Fleiss’ κ", number(agreement.fleiss_kappa), fleiss),
        ("Cohen’s κ", number(agreement.cohen_kappa), cohen),
        ("Equal labels", share(agreement.observed), equal),
    ]
    if spans is not None:
        meaning = "How far two workers mark exactly the same spans; the mean over their pairs."
        rows.append(("Span F1 of pairs", share(spans), meaning))
    return rows


def workers_lead(table: WorkerTable) -> tuple[str, tuple[str, ...], str]:
    """Return how the workers are sorted and who is far below the others."""
    if not table.ranked_by:
        return "There is nothing to compare them by.", (), ""
    order = f"Sorted by “{table.ranked_by}”, the worst first."
    flagged = table.far_below
    if not flagged:
        return f"{order}{' Nobody is far below the others.' * (table.n_workers > 2)}", (), ""
    more = len(flagged) - MAX_FLAGGED
    verb = "is" if len(flagged) == 1 else "are"
    whole = counted(table.n_workers, "worker")
    before = f"{order} Far below the others {verb} {count(len(flagged))} of {whole}: "
    after = f"{f' and {count(more)} more' if more > 0 else ''} {FAR_BELOW}."
    return before, flagged[:MAX_FLAGGED], after


def spammers_lead(table: WorkerTable) -> tuple[str, tuple[str, ...], str]:
    """Say whose labels tell next to nothing."""
    if not table.spammers:
        return "", (), ""
    more = len(table.spammers) - MAX_FLAGGED
    others = f" and {count(more)} more" if more > 0 else ""
    return "The labels of ", table.spammers[:MAX_FLAGGED], f"{others} {SPAM}."


def imported(consensus: Consensus) -> dict[str, Any] | None:
    """Return the import report, None where nothing was read."""
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


# --------------------------------------------------------------------------------------------------
# The picture of a fit: its objective after every iteration, and why it stopped.


MAX_MARKED = 60
"""Of more steps than this the points are not marked, only the line is drawn."""


def trace_figure(consensus: Consensus) -> Figure:
    r"""Draw the objective per iteration, with the reason why it stopped.

    Args:
        consensus: The result of a method that iterates; without a trace the axes are empty.

    Raises:
        MissingExtraError: Matplotlib is not installed.

    >>> import goldspan
    >>> answers = b"task,worker,label\nq1,a,yes\nq1,b,yes\nq1,c,no\nq2,a,no\nq2,b,no\n"
    >>> figure = trace_figure(goldspan.aggregate(answers, "ds"))
    >>> figure.axes[0].get_xlabel()
    'iteration'
    """
    figure = new_figure(4.4, 2.6)
    trace = np.asarray(consensus.trace, np.float64)
    with default_style():
        ax = figure.subplots()
        figure.subplots_adjust(left=0.175, right=0.96, top=0.8, bottom=0.19)
        bare(ax, "y")
        write(ax, -0.19, 1.17, "Objective per iteration", weight="bold")
        write(ax, -0.19, 1.065, shorten(stop_words(consensus), 62), color=MUTED, size=8.5)
        below(ax, "iteration")
        _draw(ax, trace)
    return figure


def stop_words(consensus: Consensus) -> str:
    """Return how many iterations there were and why they ended."""
    if not consensus.trace:
        return "nothing iterates"
    reason = STOPS.get(consensus.stop_reason, consensus.stop_reason or "finished")
    ended = "converged" if consensus.converged else "not converged"
    return f"{counted(len(consensus.trace), 'iteration')}, {ended}: {reason}"


STOPS = {
    "tol": "its change fell below the tolerance",
    "max_iter": "the allowed number of iterations was used up",
}


def _draw(ax: Axes, trace: Any) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    steps = np.arange(1, len(trace) + 1)
    known = np.isfinite(trace)
    if not known.any():
        ax.set_xticks([])
        ax.set_yticks([])
        write(ax, 0.5, 0.5, "no values", color=MUTED, ha="center")
        return
    few = len(trace) <= MAX_MARKED
    marker: dict[str, Any] = {"marker": "o", "markersize": 4} if few else {}
    ax.plot(steps[known], trace[known], color=POINT, linewidth=1.5, clip_on=False, **marker)
    low, high = float(trace[known].min()), float(trace[known].max())
    room = 0.06 * (high - low) or max(abs(high) * 0.01, 0.5)
    ax.set_ylim(low - room, high + room)
    ax.set_xlim(0.5, max(len(trace), 2) + 0.5)
    ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(5))
    digits = max(0, int(np.ceil(-np.log10(high - low))) + 1) if high > low else 2
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _number(value, min(digits, 6))))
    last = trace[known][-1]
    words = f"{_number(last, 1)}"
    below = last > low + 0.25 * (high - low)
    where = (steps[known][-1], last)
    ax.annotate(
        words,
        where,
        xytext=(0, -11 if below else 7),
        textcoords="offset points",
        ha="right",
        family=FONT,
        size=9,
        weight="bold",
        color=INK,
    )


def _number(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}".replace("-", "\u2212")


# --------------------------------------------------------------------------------------------------
# The pictures of the report: each as SVG, with its words and its numbers for the template.


MAX_LABELS = 12
"""Labels with rows of their own in the heat maps of the report."""
REM_PER_INCH = 6.3
"""Makes the text of a picture nearly as large as the page's small print."""
LEAST_PAIRED, MAX_PAIRS = 3, 8
"""Workers from whom on there is a matrix of pairs, and pairs that are listed."""
SLIGHT = 0.01
"""Mean confidence and share right are called equal if they differ by less."""


def agreement_picture(consensus: Consensus, agreement: Agreement | None) -> dict[str, Any] | None:
    """Return the box plots, their text alternative and the same in numbers."""
    if agreement is None:
        return None
    shown = distributions(consensus.crowd, agreement)
    description = " ".join(one.describe() for one in shown)
    return {
        **picture(agreement_figure(consensus.crowd, agreement), "Box plots", description),
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


def pairs_picture(crowd: Crowd, agreement: Agreement | None) -> dict[str, Any] | None:
    """Return the matrix of pairs and the pairs who agree least; None for less than three."""
    if agreement is None:
        return None
    names, _, n_workers = pair_shares(crowd, agreement)
    if len(names) < LEAST_PAIRED:
        return None
    left, right, total, equal = agreement.pairs
    rates, ids = equal / np.maximum(total, 1), crowd.worker_ids
    known = total >= max(1.0, float(np.median(total)) / 2)
    order = np.lexsort((-total, rates, ~known))[: min(MAX_PAIRS, int(known.sum()))]
    low, _, middle, _, high, _ = map(percent, Quartiles.of(rates[known]))
    words = f"Pairs who share many agree in {low} to {high}, the median is {middle}."
    return {
        **picture(pairs_figure(crowd, agreement), "Agreement of every two workers", words),
        "words": words,
        "n_shown": len(names) if len(names) < n_workers else 0,
        "n_workers": n_workers,
        "least": [
            (ids[left[n]].as_py(), ids[right[n]].as_py(), int(total[n]), float(rates[n]))
            for n in order.tolist()
        ],
    }


def calibration_picture(
    consensus: Consensus, against: str = "the gold of the crowd"
) -> dict[str, Any] | None:
    """Return the reliability diagrams with ECE; None for votes, and without gold."""
    if consensus.posterior is None or consensus.crowd.gold is None:
        return None
    panels = reliabilities(consensus)
    compared = {name: one for name, one in panels.items() if one.n}
    if not compared:
        return None
    sentences = [_verdict(name, one) for name, one in compared.items()]
    figure = reliability_figure(consensus)
    last = list(compared)[-1]
    return {
        **picture(figure, "Reliability diagram", " ".join(sentences)),
        "sentences": sentences,
        "against": against,
        "cross_entropy": f"{token_cross_entropy(consensus):.3f}",
        "unit": "item" if consensus.crowd.is_classification else "token",
        "noun": NOUNS[last] + "s",
        "shown": compared[last],
        "bins": np.flatnonzero(compared[last].counts).tolist(),
    }


def trace_picture(consensus: Consensus) -> dict[str, Any] | None:
    """Return the course of the objective; None if there is none."""
    trace = consensus.trace
    if len(trace) < 2 or consensus.candidates:  # those of auto are scores of the candidates
        return None
    words = f"{shorten(stop_words(consensus))}. From {trace[0]:.6g} to {trace[-1]:.6g}."
    return picture(trace_figure(consensus), "Objective per iteration", words)


def confusion_pictures(consensus: Consensus, workers: list[str]) -> dict[str, Any] | None:
    """Return the heat map of all workers and those of the most unlike ones; None for votes."""
    if consensus.posterior is None:
        return None
    whole = confusions(consensus)
    if not whole.counts.any():
        return None
    figure = confusion_figure(consensus, max_labels=MAX_LABELS)
    unlike = unlike_the_others(consensus, workers) if len(workers) > 1 else []
    small = None
    if unlike:
        drawn = worker_confusions_figure(consensus, unlike, max_labels=MAX_LABELS)
        names = ", ".join(map(shorten, unlike))
        small = picture(drawn, "Confusions of single workers", f"The workers are {names}.")
    return {
        **picture(figure, "Confusions of all workers", _describe(whole.fold(MAX_LABELS))),
        "small": small,
        "n_merged": whole.fold(MAX_LABELS).n_merged,
        "mistakes": mistakes(whole),
    }


def type_picture(consensus: Consensus) -> dict[str, Any] | None:
    """Return the heat map of types as they were said; None where expected ones say the same."""
    crowd = consensus.crowd
    is_same = consensus.tagset.rules.is_plain and crowd.gold is None
    whole = said_by_type(consensus)
    if (is_same and consensus.posterior is not None) or not whole.counts.any():
        return None
    found = whole.fold(MAX_LABELS)
    figure = type_confusion_figure(consensus, max_labels=MAX_LABELS)
    return {
        **picture(figure, "Types as they were said", _describe(found)),
        "by_gold": crowd.gold is not None and bool((crowd.gold >= 0).any()),
        "n_merged": found.n_merged,
        "mistakes": mistakes(whole),
    }


def picture(figure: Figure, title: str, description: str) -> dict[str, Any]:
    """Return a figure as a template takes it: `svg`, and `width` in rem."""
    from markupsafe import Markup

    svg = inline_svg(figure, title, description)
    width = REM_PER_INCH * float(figure.get_figwidth())
    return {"svg": Markup(svg), "width": f"{width:.1f}"}  # noqa: S704 - inline_svg escapes


def _verdict(name: str, shown: Reliability) -> str:
    """Return in a sentence how far confidence and truth are apart."""
    gap = shown.mean_confidence - shown.mean_right
    wrong = "over-confident" if gap > 0 else "under-confident"
    verdict = "well calibrated" if abs(gap) < SLIGHT else wrong
    return (
        f"{counted(shown.n, NOUNS[name])}: {share(shown.mean_right)} right at a mean confidence of "
        f"{share(shown.mean_confidence)}, on the whole {verdict}; "
        f"expected calibration error {share(shown.ece)}."
    )


def _describe(found: Confusions) -> str:
    """Say for every truth how often it was said and what most often instead."""
    sentences = []
    for i, label in enumerate(found.labels):
        rates = found.rates[i].copy()
        if not rates.any():
            continue
        right, rates[i] = float(rates[i]), 0.0
        other = int(rates.argmax())
        words = f"{shorten(label)} is given for true {shorten(label)} in {percent(right)}"
        if rates[other] > 0:
            words += (
                f", most often otherwise {shorten(found.labels[other])} in {percent(rates[other])}"
            )
        sentences.append(f"{words}.")
    return " ".join(sentences)


# --------------------------------------------------------------------------------------------------
# The report: one HTML file that stands alone – no network, no script, pictures as inline SVG.


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
    workers, 20 uncertain places and 20 faults are listed and 12 labels drawn, so that the file
    stays small for large crowds. The same arguments give the same bytes.

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
    """Return the report as a string; the arguments are those of `write_report`."""
    workers = worker_table(consensus, agreement)
    name = source(consensus)
    return fill_template(
        "report.html.j2",
        plain=consensus.tagset.rules.is_plain,
        title=f"Crowd report: {name}" if name else "Crowd report",
        source=name,
        lead=lead(consensus),
        facts=facts(consensus, score),
        warnings=[_text(warning) for warning in consensus.warnings],
        method=method(consensus),
        quote=methods_text(consensus, agreement=agreement),
        calibration=calibration_picture(consensus),
        trace=trace_picture(consensus),
        workers=workers,
        workers_lead=workers_lead(workers),
        spammers_lead=spammers_lead(workers),
        imported=imported(consensus),
        **on_labels(consensus, workers, agreement, score, consensus),
    )


ON_LABELS = (
    "crowd is_model candidates score score_types schemes measures figure pairs by_type confusion "
    "habits places"
)
"""What `on_labels` fills."""


def on_labels(
    consensus: Consensus,
    workers: WorkerTable,
    agreement: Agreement | None,
    score: Score | None,
    shown: Consensus,  # The same labels, with the gold that is shown beside them
) -> dict[str, Any]:
    """Return what the sections say that a campaign's report has, too."""
    names = [row.worker for row in workers.rows]
    values = (
        consensus.crowd, consensus.posterior is not None, consensus.candidates,
        score, score_types(score), schemes(consensus, score),
        measures(consensus, agreement), agreement_picture(consensus, agreement),
        pairs_picture(consensus.crowd, agreement), type_picture(shown),
        confusion_pictures(consensus, names), worker_habits(consensus, workers),
        uncertain_places(shown),
    )  # fmt: skip
    return dict(zip(ON_LABELS.split(), values, strict=True))
