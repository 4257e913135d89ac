"""The workers in a report: reliability, habits, verdicts, teams."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan.aggregation import Consensus
from goldspan.aggregation.reliability import Reliability, span_reliability, token_reliability
from goldspan.aggregation.workers import confusion_counts
from goldspan.crowd.measures import Agreement
from goldspan.errors import InputError
from goldspan.report.drawing import (
    BOX,
    DOTS,
    FONT,
    INK,
    MUTED,
    POINT,
    RIGHT,
    WRONG,
    bare,
    below,
    default_style,
    ground,
    legend,
    new_figure,
    percent_ticks,
    short_count,
    write,
)
from goldspan.report.wording import share, shorten
from goldspan.spans.notebook import counted
from goldspan.workers.verdicts import Verdict, best_first

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --------------------------------------------------------------------------------------------------
# The picture of calibration: confidence against the share that is right, and how much there is.


NOUNS = {"Tokens": "token", "Spans": "span", "Labels": "label"}


def reliability_figure(consensus: Consensus, gold: NDArray[np.int16] | None = None) -> Figure:
    r"""Draw reliability diagrams of the tokens' and of the spans' confidence.

    Above, every bin of confidence is a point: its mean confidence, and the share of it that is
    right, with the 95 % credible interval; on the dotted line confidence is exactly as high as it
    should be, below it is too sure. Beneath, how much falls into each bin, on a logarithmic axis.
    The legend has the expected calibration error (ECE), the mean gap between points and line.

    Args:
        consensus: The result.
        gold: int16 [n_tokens], -1 where unknown; by default that of the crowd.

    Raises:
        InputError: There is no gold.
        MissingExtraError: Matplotlib is not installed.

    >>> import goldspan
    >>> votes = b"task,worker,label,gold\nq1,a,yes,yes\nq1,b,no,yes\nq2,a,no,no\nq2,b,no,no\n"
    >>> len(reliability_figure(goldspan.aggregate(votes)).axes)  # the diagram and its histogram
    2
    """
    panels = reliabilities(consensus, gold)
    figure = new_figure(2.75 * len(panels), 4.3)
    with default_style():
        axes = figure.subplots(
            2, len(panels), squeeze=False, sharex="col", gridspec_kw={"height_ratios": [3, 1]}
        )
        side = 0.5 / (2.75 * len(panels))
        figure.subplots_adjust(
            left=side, right=1 - side / 3, top=0.765, bottom=0.105, wspace=0.3, hspace=0.14
        )
        for (name, shown), (above, beneath) in zip(panels.items(), axes.T, strict=True):
            write(above, -0.2, 1.34, f"{name}: share right, %", weight="bold")
            _diagram(above, shown, name)
            _histogram(beneath, shown)
    return figure


def reliabilities(
    consensus: Consensus, gold: NDArray[np.int16] | None = None
) -> dict[str, Reliability]:
    """Collect what is compared by its name: tokens and spans, or labels alone."""
    tokens = token_reliability(consensus, gold)
    if consensus.tagset.rules.is_plain:
        return {"Labels": tokens}
    return {"Tokens": tokens, "Spans": span_reliability(consensus, gold)}


def _diagram(ax: Axes, shown: Reliability, name: str) -> None:
    bare(ax, "both")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_yticks(np.linspace(0, 1, 6), [f"{n}" for n in range(0, 101, 20)])
    ax.tick_params(axis="x", labelbottom=False)
    dots: dict[str, Any] = {"linestyle": (0, (2, 2)), "label": "as it should be"}
    ax.plot([0, 1], [0, 1], color=MUTED, linewidth=1.2, **dots)
    filled = shown.counts > 0
    x, y = shown.confidence[filled], shown.right[filled]
    gap = [np.maximum(y - shown.low[filled], 0), np.maximum(shown.high[filled] - y, 0)]
    bars: dict[str, Any] = {"color": POINT, "elinewidth": 1.1, "clip_on": False, "zorder": 3}
    label = f"{counted(shown.n, NOUNS[name])}, 95\u00a0% interval"
    marks: dict[str, Any] = {"fmt": "o", "markersize": 4.5, "label": label}
    ax.errorbar(x, y, yerr=gap, **bars, **marks)
    legend = ax.legend(
        title=f"ECE {share(shown.ece)}",
        loc="lower left",
        bbox_to_anchor=(-0.21, 1.0),
        frameon=False,
        prop={"family": FONT, "size": 8.5},
        labelcolor=INK,
        handlelength=1.6,
        handletextpad=0.5,
        borderpad=0.2,
        borderaxespad=0.2,
        alignment="left",
    )
    legend.get_title().set(fontfamily=FONT, fontsize=9, color=INK)


def _histogram(ax: Axes, shown: Reliability) -> None:
    bare(ax, "y")
    ax.set_xlim(0, 1)
    top = max(10.0, float(shown.counts.max()))
    ax.set_yscale("symlog", linthresh=1.0)
    powers = 10.0 ** np.arange(0, np.floor(np.log10(top)) + 1)
    kept = [0.0, *powers[:: max(1, -(-len(powers) // 3))]]
    ax.set_yticks(kept, ["", *map(short_count, kept[1:])], minor=False)
    ax.minorticks_off()
    ax.set_ylim(0, 1.6 * top)
    width = np.diff(shown.edges)
    look: dict[str, Any] = {"color": BOX, "edgecolor": INK, "linewidth": 0.8}
    ax.bar(shown.edges[:-1], shown.counts, width, align="edge", **look)
    ax.set_xticks(np.linspace(0, 1, 6), [f"{n}" for n in range(0, 101, 20)])
    below(ax, "confidence, %   (bars: how many)")


# --------------------------------------------------------------------------------------------------
# The worker table: every worker's numbers, the worst first, who is far below in words.


MAX_WORKERS = 200
FENCE = 1.5
"""Box heights below the box where outliers begin, as in the box plot."""
MIN_GAP = 0.1
"""An outlier is at least this far below the median: among equals small gaps are no finding."""
FAR = 2 / 3
"""Of the median: whoever is below it is far below the others, however few they are."""
FEW = 5
"""Below this many answers a worker's rate says little."""

SPAMMER = 0.1
"""Whose labels tell less than this share of the median information tells next to nothing."""
LEAST_LABELS = 30
"""With fewer labels nobody is called a spammer."""

KNOWN = {
    "span_f1": "F1 against gold",
    "token_accuracy": "Labels equal to gold",
    "span_agreement": "F1 against the result",
    "token_agreement": "Labels equal to the result",
    "accuracy": "Labels right, expected",
    "f1_others": "F1 against the others",
    "information": "Bits per label",
}
"""Columns that goldspan's tables hold, in the order in which the first that is there ranks
workers."""
NO_RATES = {"information"}
_COUNTS = ("worker", "answers", "labels", "groups", "low", "high")
_MAX_EXTRA = 3


@dataclass(frozen=True)
class WorkerRow:
    """One worker."""

    worker: str
    answers: int  # Answers that count
    labels: int  # Labels in them
    rates: tuple[float | None, ...]  # One value per column of the table, None where there is none
    remark: str  # What to know, in words; "" for nothing
    is_far_below: bool  # Whether the worker is far below the others
    is_spammer: bool = False  # Whether the labels tell next to nothing about the truth
    # The 95 % credible interval of the expected accuracy, None if unknown
    bounds: tuple[float, float] | None = None


@dataclass(frozen=True)
class WorkerTable:
    """The workers, the worst first."""

    columns: tuple[str, ...]
    is_rate: tuple[bool, ...]  # For every column whether it holds shares between 0 and 1
    ranked_by: str  # The heading that the rows are ordered by, "" if by nothing
    rows: tuple[WorkerRow, ...]  # At most `MAX_WORKERS`
    n_workers: int
    far_below: tuple[str, ...]  # Ids of the workers who are far below the others, of all workers
    # Ids of the workers whose labels tell next to nothing, of all workers
    spammers: tuple[str, ...] = ()
    # Index of the column that `bounds` belong to, None if there are none
    bounded: int | None = None


def worker_table(consensus: Consensus, agreement: Agreement | None) -> WorkerTable:
    """Put together what the consensus and the agreement know about the workers."""
    crowd = consensus.crowd
    plain = crowd.tagset.rules.is_plain
    found = _rates(consensus, agreement)
    rank = next((name for name in KNOWN if name in found), "")
    values = found.get(rank, np.full(crowd.n_workers, np.nan))
    answers = np.bincount(crowd.latest.worker, minlength=crowd.n_workers)
    given = crowd.latest.codes >= 0
    labels = np.bincount(crowd.worker_of[given], minlength=crowd.n_workers)
    below, spam = far_below(values), spammers(consensus)
    low, high = _bounds(consensus)
    order = np.argsort(values, kind="stable")  # NaN comes last
    rows = tuple(
        WorkerRow(
            worker=crowd.worker_ids[n].as_py(),
            answers=int(answers[n]),
            labels=int(labels[n]),
            rates=tuple(_known(column[n]) for column in found.values()),
            remark=_joined(
                _remark(int(answers[n]), bool(below[n]), bool(spam[n])), _family_words(consensus, n)
            ),
            is_far_below=bool(below[n]),
            is_spammer=bool(spam[n]),
            bounds=None if np.isnan(low[n]) else (float(low[n]), float(high[n])),
        )
        for n in order[:MAX_WORKERS].tolist()
    )
    flagged = [n for n in order.tolist() if below[n]]
    headings = {name: _heading(name, plain=plain) for name in found}
    return WorkerTable(
        columns=tuple(headings.values()),
        is_rate=tuple(name in KNOWN and name not in NO_RATES for name in found),
        ranked_by=headings.get(rank, ""),
        rows=rows,
        n_workers=crowd.n_workers,
        far_below=tuple(crowd.worker_ids[n].as_py() for n in flagged),
        spammers=tuple(crowd.worker_ids[n].as_py() for n in order.tolist() if spam[n]),
        bounded=list(found).index("accuracy") if "accuracy" in found else None,
    )


def far_below(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return who is far below the others: under `FAR` of the median, or an outlier of the box plot.

    Outliers alone do not do: in a crowd of very different workers the box is so high that nobody
    is one. Of less than three values none is far below.
    """
    # values float64 [n_workers]
    known = values[~np.isnan(values)]
    if len(known) < 3:
        return np.zeros(len(values), np.bool_)
    first, median, third = np.percentile(known, [25, 50, 75])
    outlier = min(first - FENCE * (third - first), median - MIN_GAP)
    return np.asarray(values < max(outlier, FAR * median))


def spammers(consensus: Consensus) -> NDArray[np.bool_]:
    """Say whose labels tell next to nothing about the truth, bool [n_workers]."""
    crowd, table = consensus.crowd, consensus.workers
    marked = np.zeros(crowd.n_workers, np.bool_)
    if not {"information", "labels"} <= set(table.column_names):
        return marked
    bits = _aligned(table, "information", crowd.worker_ids)
    labels = _aligned(table, "labels", crowd.worker_ids)
    if np.isnan(bits).all():
        return marked
    median = float(np.nanmedian(bits))
    suspects = (bits < SPAMMER * median) & (labels >= LEAST_LABELS)
    for n in np.flatnonzero(suspects).tolist():
        counts = confusion_counts(crowd, consensus.token_probs, n)
        marked[n] = _entropy(counts.sum(axis=1)) >= median / 2
    return marked


def _entropy(counts: NDArray[np.float64]) -> float:
    """Entropy in bits."""
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


def _bounds(consensus: Consensus) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    table, ids = consensus.workers, consensus.crowd.worker_ids
    if not {"accuracy", "low", "high"} <= set(table.column_names):
        none = np.full(len(ids), np.nan)
        return none, none
    return _aligned(table, "low", ids), _aligned(table, "high", ids)


def _rates(consensus: Consensus, agreement: Agreement | None) -> dict[str, NDArray[np.float64]]:
    """Collect the rate columns by name, float64 [n_workers] with NaN for none."""
    ids = consensus.crowd.worker_ids
    tables = [consensus.workers] if agreement is None else [agreement.workers, consensus.workers]
    columns = {name: table for table in tables for name in table.column_names}
    plain = consensus.tagset.rules.is_plain
    skipped = set() if plain else {"token_accuracy", "token_agreement"} & _replaced(columns)
    known = [name for name in KNOWN if name in columns and name not in skipped]
    extra = [
        name
        for name in consensus.workers.column_names
        if name not in {*KNOWN, *_COUNTS, "effective"}
        and _is_number(consensus.workers.schema.field(name).type)
    ]
    names = [*known, *extra[:_MAX_EXTRA]]
    found = {name: _aligned(columns[name], name, ids) for name in names}
    return {name: column for name, column in found.items() if not np.isnan(column).all()}


def _replaced(columns: Container[str]) -> set[str]:
    """Token rates that say less than the span rates which are there too."""
    pairs = {"token_accuracy": "span_f1", "token_agreement": "span_agreement"}
    return {token for token, span in pairs.items() if span in columns}


def _aligned(table: pa.Table, name: str, ids: pa.Array) -> NDArray[np.float64]:
    place = pc.index_in(ids, value_set=table.column("worker").combine_chunks())
    column = table.column(name).cast(pa.float64()).combine_chunks().take(place)
    return np.asarray(column.to_numpy(zero_copy_only=False), np.float64)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _heading(name: str, *, plain: bool) -> str:
    if plain and name == "f1_others":
        return "Labels equal to the others’"
    return KNOWN.get(name, name.replace("_", " ").capitalize())


def _remark(n_answers: int, is_far_below: bool, is_spammer: bool) -> str:
    if not n_answers:
        return "gave no answer"
    few = f"only {n_answers} answer{'s' if n_answers > 1 else ''}" if n_answers < FEW else ""
    found = ["far below the others"] * is_far_below + ["tells next to nothing"] * is_spammer
    return ", but ".join(part for part in (", ".join(found), few) if part)


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _family_words(consensus: Consensus, worker: int) -> str:
    """Say with how many others a worker errs together, "" for none."""
    families = consensus.families
    n = 0 if families is None else int(families.sizes[families.number[worker]])
    if families is None or n < 2:
        return ""
    name = families.names()[consensus.crowd.worker_ids[worker].as_py()]
    return f"{name}: {n} workers who err together and count as {families.effective[worker]:.1f}"


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


# --------------------------------------------------------------------------------------------------
# What every worker does with spans, in words, for the report.


MOST_WITH_HABITS = 60
MAX_HABITS = 5


def worker_habits(consensus: Consensus, table: WorkerTable) -> list[tuple[str, list[str]]]:
    """List workers with their most frequent habits, in the order of the table of workers."""
    if not consensus.trace or consensus.tagset.rules.is_plain:
        return []
    found = []
    for row in table.rows[:MOST_WITH_HABITS]:
        said = [str(habit) for habit in consensus.habits(row.worker)[:MAX_HABITS]]
        if said:
            found.append((row.worker, said))
    return found


# --------------------------------------------------------------------------------------------------
# Verdicts: how good every worker is, and how sure that is.


MOST_IN_TEAM = 40
"""Intervals that are drawn: those of the first workers in the table."""
COLOURS = {"keep": RIGHT, "look at": INK, "test more": MUTED, "drop": WRONG}
MEASURES = {
    "accuracy": ("how often right", "right"),
    "token_accuracy": ("tokens right", "tokens right"),
    "span_f1": ("span F1", "span F1"),
}
"""How a measure is called in the title and on its axis."""
MARKS = {"keep": "o", "look at": "s", "test more": "D", "drop": "X"}


def verdicts_figure(verdicts: Sequence[Verdict], threshold: float) -> Figure:
    """Draw the workers' intervals.

    The posterior mean and 95 % credible interval of the first 40 workers of the table, whom to keep
    on top; mark and colour are the verdict, the dotted line is its threshold.
    """
    if not verdicts:
        raise InputError("no worker to draw")
    shown = ranked(verdicts)
    wide, height = 3.4, 1.25 + 0.16 * max(10, len(shown))
    figure = new_figure(wide, height)
    with default_style():
        top, bottom = 1 - 0.62 / height, 0.42 / height
        figure.subplots_adjust(top=top, bottom=bottom, left=1.0 / wide, right=1 - 0.15 / wide)
        _intervals(figure.subplots(), shown, len(verdicts), threshold)
    return figure


def ranked(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the workers to draw, in the table's order: keep before drop, best first."""
    return best_first(verdicts)[:MOST_IN_TEAM]


def _intervals(ax: Axes, shown: list[Verdict], n_workers: int, threshold: float) -> None:
    some = f"first {len(shown)} of " if len(shown) < n_workers else ""
    title, unit = MEASURES.get(shown[0].measure, MEASURES["accuracy"])
    title = f"{some}{counted(n_workers, 'worker')}: {title}, %"
    ground(ax, title, f"{unit}, %   (bars: 95\u00a0% interval)", "x")
    place = np.arange(len(shown))[::-1]
    ax.set_ylim(-0.7, len(shown) - 0.3)
    ax.set_yticks(place, [shorten(v.worker, 14) for v in shown])
    for label in ax.get_yticklabels():
        label.set_parse_math(False)
    ax.axvline(threshold, **DOTS)
    for kind, colour in COLOURS.items():
        own = [(y, v) for y, v in zip(place, shown, strict=True) if v.verdict == kind]
        if own:
            y, x = [y for y, _ in own], np.array([v.mean for _, v in own])
            gap = [x - [v.low for _, v in own], np.array([v.high for _, v in own]) - x]
            look: dict[str, Any] = {"fmt": MARKS[kind], "color": colour, "markersize": 4}
            ax.errorbar(x, y, xerr=gap, elinewidth=1.1, label=kind, zorder=3, **look)
    legend(ax)
    percent_ticks(ax.xaxis, 0.0)
    ax.set_xlim(0, 1)
