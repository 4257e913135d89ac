"""The pictures of the report: each as SVG, with its words and its numbers for the template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from goldspan.aggregate import Consensus
from goldspan.aggregate.reliability import Reliability, token_cross_entropy
from goldspan.crowd import Agreement
from goldspan.report.canvas import inline_svg
from goldspan.report.confusion import Confusions, confusions, mistakes, unlike_the_others
from goldspan.report.course import stop_words, trace_figure
from goldspan.report.distributions import distributions
from goldspan.report.heat import confusion_figure, worker_confusions_figure
from goldspan.report.plots import MAX_POINTS, agreement_figure
from goldspan.report.reliability import NOUNS, reliabilities, reliability_figure
from goldspan.report.wording import count, percent, plural, share, shorten

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_LABELS = 12
"""Labels with rows of their own in the heat maps of the report."""
REM_PER_INCH = 6.3
"""Makes the letters of a picture nearly as large as the page's small print."""
SLIGHT = 0.01
"""Mean confidence and share right are called equal if they differ by less."""


def agreement_picture(consensus: Consensus, agreement: Agreement | None) -> dict[str, Any] | None:
    """Give the box plots, their text alternative and the same in numbers."""
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


def calibration_picture(
    consensus: Consensus, against: str = "the gold of the crowd"
) -> dict[str, Any] | None:
    """Give the reliability diagrams with ECE; None for votes, and without gold.

    Args:
        consensus: The result.
        against: What the gold is, in words.
    """
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
        "bins": [_bin(compared[last], i) for i in np.flatnonzero(compared[last].counts).tolist()],
    }


def trace_picture(consensus: Consensus) -> dict[str, Any] | None:
    """Give the course of the objective; None if there is none."""
    trace = consensus.trace
    if len(trace) < 2:
        return None
    words = f"{shorten(stop_words(consensus))}. From {trace[0]:.6g} to {trace[-1]:.6g}."
    return picture(trace_figure(consensus), "Objective per iteration", words)


def confusion_pictures(consensus: Consensus, workers: list[str]) -> dict[str, Any] | None:
    """Give the heat map of all workers and those of the most unlike ones; None for votes.

    Args:
        consensus: The result.
        workers: Ids among which the unlike ones are chosen.
    """
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
        "mistakes": [
            {
                "truth": shorten(one.truth),
                "given": shorten(one.given),
                "share": percent(one.share),
                "count": count(round(one.count)),
            }
            for one in mistakes(whole)
        ],
    }


def picture(figure: Figure, title: str, description: str) -> dict[str, Any]:
    """Give a figure as a template takes it: `svg`, and `width` in rem.

    Args:
        figure: The figure.
        title: Its short name, read aloud in place of the picture.
        description: What it shows, in sentences.
    """
    from markupsafe import Markup

    svg = inline_svg(figure, title, description)
    width = REM_PER_INCH * float(figure.get_figwidth())
    return {"svg": Markup(svg), "width": f"{width:.1f}"}  # noqa: S704 - inline_svg escapes


def _verdict(name: str, shown: Reliability) -> str:
    """Say in a sentence how far confidence and truth are apart."""
    gap = shown.mean_confidence - shown.mean_right
    sure = "too sure" if gap > 0 else "not sure enough"
    verdict = "as sure as it should be" if abs(gap) < SLIGHT else sure
    return (
        f"{plural(shown.n, NOUNS[name])}: {share(shown.mean_right)} right at a mean confidence of "
        f"{share(shown.mean_confidence)}, on the whole {verdict}; "
        f"expected calibration error {share(shown.ece)}."
    )


def _bin(shown: Reliability, i: int) -> dict[str, str]:
    low, high = 100 * shown.edges[i], 100 * shown.edges[i + 1]
    return {
        "range": f"{low:.0f}–{high:.0f}\u00a0%",
        "n": count(int(shown.counts[i])),
        "confidence": percent(float(shown.confidence[i])),
        "right": percent(float(shown.right[i])),
        "interval": f"{100 * shown.low[i]:.0f}–{100 * shown.high[i]:.0f}",
    }


def _describe(found: Confusions) -> str:
    """Say for every truth how often it was said and what most often instead."""
    sentences = []
    for i, label in enumerate(found.labels):
        rates = found.rates[i].copy()
        if not rates.any():
            continue
        right, rates[i] = float(rates[i]), 0.0
        other = int(rates.argmax())
        words = f"{shorten(label)} is said for {shorten(label)} in {percent(right)}"
        if rates[other] > 0:
            words += f", most often else {shorten(found.labels[other])} in {percent(rates[other])}"
        sentences.append(f"{words}.")
    return " ".join(sentences)
