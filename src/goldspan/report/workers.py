"""The worker table: every worker's numbers, the worst first, who is far below in words."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan.aggregate import Consensus
from goldspan.aggregate.workers import confusion_counts
from goldspan.crowd import Agreement

MAX_WORKERS = 200
FENCE = 1.5
"""Box heights below the box where outliers begin, as in the box plot."""
MIN_GAP = 0.1
"""An outlier is at least this far below the median: among equals small gaps are no finding."""
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
    """One worker.

    Attributes:
        worker: The id.
        answers: Answers that count.
        labels: Labels in them.
        rates: One value per column of the table, None where there is none.
        remark: What to know, in words; "" for nothing.
        is_far_below: Whether the worker is far below the others.
        is_spammer: Whether the labels tell next to nothing about the truth.
        bounds: The 95 % credible interval of the expected accuracy, None if unknown.
    """

    worker: str
    answers: int
    labels: int
    rates: tuple[float | None, ...]
    remark: str
    is_far_below: bool
    is_spammer: bool = False
    bounds: tuple[float, float] | None = None


@dataclass(frozen=True)
class WorkerTable:
    """The workers, the worst first.

    Attributes:
        columns: Headings of the rates.
        is_rate: For every column whether it holds shares between 0 and 1.
        ranked_by: The heading that the rows are ordered by, "" if by nothing.
        rows: At most `MAX_WORKERS`.
        n_workers: All workers.
        far_below: Ids of the workers who are far below the others, of all workers.
        spammers: Ids of the workers whose labels tell next to nothing, of all workers.
        bounded: Index of the column that `bounds` belong to, None if there are none.
    """

    columns: tuple[str, ...]
    is_rate: tuple[bool, ...]
    ranked_by: str
    rows: tuple[WorkerRow, ...]
    n_workers: int
    far_below: tuple[str, ...]
    spammers: tuple[str, ...] = ()
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
            remark=_remark(int(answers[n]), bool(below[n]), bool(spam[n])),
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
    """Say who is far below the others: under half of the median, or an outlier of the box plot.

    Outliers alone do not do: in a crowd of very different workers the box is so high that nobody
    is one. Of less than three values none is far below.

    Args:
        values: float64 [n_workers], between 0 and 1, NaN where unknown.

    >>> far_below(np.array([0.9, 0.85, 0.8, 0.88, 0.1, np.nan])).tolist()
    [False, False, False, False, True, False]
    """
    known = values[~np.isnan(values)]
    if len(known) < 3:
        return np.zeros(len(values), np.bool_)
    first, median, third = np.percentile(known, [25, 50, 75])
    outlier = min(first - FENCE * (third - first), median - MIN_GAP)
    return np.asarray(values < max(outlier, median / 2))


def spammers(consensus: Consensus) -> NDArray[np.bool_]:
    """Say whose labels tell next to nothing about the truth, bool [n_workers].

    Their information – the bits that one label tells about the truth – is below a tenth of the
    median of all workers. Two kinds of workers are spared: those with less than 30 labels,
    and those who were asked for nothing that could tell more, for example sentences that hold no
    span: the truth of their tokens has an entropy below a half of that median. Votes know no
    information.
    """
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
        if name not in {*KNOWN, *_COUNTS} and _is_number(consensus.workers.schema.field(name).type)
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


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
