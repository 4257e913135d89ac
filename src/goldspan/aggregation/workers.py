"""What a method says of its workers: tables, and habits in words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import betaincinv

from goldspan._arrays import count_between, rows_of
from goldspan._kernel import inner, kernel
from goldspan.crowd import Crowd
from goldspan.crowd.measures import share, worker_f1
from goldspan.spans import Tagged, find_spans
from goldspan.spans.corpus import SpanArray

# --------------------------------------------------------------------------------------------------
# Workers' habits with spans, in words: where they start and end them, what they miss and invent.


LEAST_SHARE = 0.05
LEAST_COUNT = 3
"""A habit is told when it is seen this often."""


@dataclass(frozen=True)
class Habit:
    """Something that a worker does with spans of a type.

    Attributes:
        kind: "starts", "ends" (with `shift`), "misses", "invents", "splits", "merges", or "types"
            (with `other`).
        type: Type of the span in the result (of the worker's span for "invents").
        share: Of the result's spans of this type that the worker saw ("invents": of the worker's).
        count: How often.
        shift: Tokens early (negative) or late (positive), for "starts" and "ends".
        other: The type given instead, for "types".
    """

    kind: str
    type: str
    share: float
    count: int
    shift: int = 0
    other: str = ""

    def __str__(self) -> str:
        """Say it in words, for example `opens spans one token early in 12 % of PER`."""
        share = f"in {100 * self.share:.0f} % of {self.type}"
        if self.kind in {"starts", "ends"}:
            verb = "opens" if self.kind == "starts" else "closes"
            n = abs(self.shift)
            tokens = "one token" if n == 1 else f"{n} tokens"
            return f"{verb} spans {tokens} {'early' if self.shift < 0 else 'late'} {share}"
        if self.kind == "types":
            return f"calls them {self.other} {share}"
        if self.kind == "invents":
            return f"marks {self.type} where there is none ({100 * self.share:.0f} % of its spans)"
        words = {"misses": "misses", "splits": "splits", "merges": "merges neighbours"}
        return f"{words[self.kind]} {share}"


def habits(crowd: Crowd, codes: NDArray[np.int16], worker: int) -> list[Habit]:
    """Find the habits of a worker, the most frequent first."""
    # codes int16 [n_tokens]
    answers = crowd.latest.take(crowd.by_worker[worker])
    bounds, flat = rows_of(crowd.offsets, answers.item)
    truth = np.where(answers.codes >= 0, codes[flat], np.int16(-1))
    given = np.where(codes[flat] >= 0, answers.codes, np.int16(-1))
    left_open = (truth < 0) | (given < 0)
    sides = [find_spans(Tagged(tags, bounds), crowd.tagset) for tags in (truth, given)]
    doubtful = left_open.copy()
    for side in sides:
        for start, end in zip(side.start, side.end, strict=True):
            if left_open[max(start - 1, 0) : end + 1].any():
                doubtful[start:end] = True
    gold, own = (side.take(count_between(doubtful, side.start, side.end) == 0) for side in sides)
    types = crowd.tagset.types
    seen, marked = (np.bincount(side.type, minlength=len(types)) for side in (gold, own))
    found = count_errors(gold, own)
    rows = []
    for (kind, of, shift, to), count in found.items():
        total = int((marked if kind == "invents" else seen)[of])
        if count >= LEAST_COUNT and count >= LEAST_SHARE * total:
            name = types[to] if to >= 0 else ""
            rows.append(Habit(kind, types[of], count / total, count, shift, name))
    return sorted(rows, key=lambda h: (-h.share, h.type, h.kind, h.shift, h.other))


Error = tuple[str, int, int, int]
"""Kind, type, shift (of "starts" and "ends", else 0) and the other type (of "types", else -1)."""


def count_errors(gold: SpanArray, own: SpanArray) -> Counter[Error]:
    """Count what was done wrong with spans, by the kinds of `Habit`."""
    # A span whose start and end are both elsewhere counts as "starts" and as "ends"
    true, given = _rows(gold), _rows(own)
    found: Counter[Error] = Counter()
    merged = set()
    for span, other in zip(given, _partners(given, true), strict=True):
        if not other:
            found["invents", span.type, 0, -1] += 1
        if sum(o.type == span.type for o in other) > 1:
            merged.add(span)
    for span, other in zip(true, _partners(true, given), strict=True):
        said = _compare(span, other, merged)
        found.update((kind, span.type, shift, to) for kind, shift, to in said)
    return found


@dataclass(frozen=True)
class _Span:
    start: int
    end: int
    type: int

    def overlap(self, other: _Span) -> int:
        return min(self.end, other.end) - max(self.start, other.start)


def _rows(spans: SpanArray) -> list[_Span]:
    rows = zip(spans.start.tolist(), spans.end.tolist(), spans.type.tolist(), strict=True)
    return [_Span(*row) for row in rows]


def _partners(left: list[_Span], right: list[_Span]) -> list[list[_Span]]:
    """Return for every span of one side those of the other that overlap it; both are sorted."""
    found, first = [], 0
    for span in left:
        while first < len(right) and right[first].end <= span.start:
            first += 1
        at, partners = first, []
        while at < len(right) and right[at].start < span.end:
            partners.append(right[at])
            at += 1
        found.append(partners)
    return found


def _compare(span: _Span, others: list[_Span], merged: set[_Span]) -> list[tuple[str, int, int]]:
    """Return what was done with a span: (kind, shift, other type)."""
    same = [o for o in others if o.type == span.type]
    if not others:
        return [("misses", 0, -1)]
    if not same:
        best = max(others, key=span.overlap)
        return [("types", 0, best.type)]
    if len(same) > 1 and all(a.end <= b.start for a, b in pairwise(same)):
        return [("splits", 0, -1)]
    best = max(same, key=span.overlap)
    if best in merged:
        return [("merges", 0, -1)]
    found = []
    if best.start != span.start:
        found.append(("starts", best.start - span.start, -1))
    if best.end != span.end:
        found.append(("ends", best.end - span.end, -1))
    return found


# --------------------------------------------------------------------------------------------------
# What a result says about its workers: how often they are right, with an interval, and on what.


LEVEL = 0.95
"""Of the credible intervals."""
OCCUPIED = 0.5
"""Expected labels from which a cell counts as occupied."""
JEFFREYS = 0.5
"""Pseudo-count of right and of wrong in them."""


def worker_table(crowd: Crowd, codes: NDArray[np.int16], probs: NDArray[np.float32]) -> pa.Table:
    """Put together the table of a result's workers, one row per worker."""
    # codes int16 [n_tokens], the result's labels, -1 open
    # probs float32 [n_tokens, J], their probabilities
    answers, view = crowd.latest, crowd.by_worker
    right, bits = np.zeros(crowd.n_workers), np.zeros(crowd.n_workers)
    total = np.zeros(crowd.n_workers, np.int64)
    arrays = (answers.item, answers.offset, answers.codes, crowd.offsets, probs)
    _sum_up(view.order, view.bounds, *arrays, right, total, bits)
    low, high = interval(right, total)
    columns = {
        "worker": crowd.worker_ids,
        "answers": pa.array(np.diff(crowd.whole_items.by_worker.bounds)),
        "labels": pa.array(total),
        "accuracy": pa.array(share(right, total)),
        "low": pa.array(low),
        "high": pa.array(high),
        "information": pa.array(np.where(total > 0, bits, np.nan)),
    }
    if not crowd.tagset.rules.is_plain:
        columns["span_agreement"] = pa.array(worker_f1(crowd, codes))
    return pa.table(columns)


def confusion_counts(crowd: Crowd, probs: NDArray[np.float32], worker: int) -> NDArray[np.float64]:
    """Return the expected confusions of a worker, float64 [J, J]: truth, label given."""
    # Element [j, i] is the sum of P(truth = j) over the tokens that the worker labelled i
    answers, n_labels = crowd.latest, probs.shape[1]
    own = crowd.by_worker[worker]
    counts = np.zeros((n_labels, n_labels))
    lengths = answers.lengths[own]
    if not lengths.sum():
        return counts
    ends = np.cumsum(lengths)
    within = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
    codes = answers.codes[np.repeat(answers.offset[own], lengths) + within]
    tokens = np.repeat(crowd.offsets[answers.item[own]], lengths) + within
    kept = codes >= 0
    np.add.at(counts.T, codes[kept], probs[tokens[kept]].astype(np.float64))
    return counts


def interval(
    right: NDArray[np.float64], total: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the credible interval of being right, NaN for workers without labels."""
    hits = np.minimum(right, total) + JEFFREYS
    misses = np.maximum(total - right, 0) + JEFFREYS
    tail = (1 - LEVEL) / 2
    low, high = betaincinv(hits, misses, tail), betaincinv(hits, misses, 1 - tail)
    return np.where(total > 0, low, np.nan), np.where(total > 0, high, np.nan)


@kernel
def _sum_up(
    order: NDArray[np.int64], bounds: NDArray[np.int64], item: NDArray[np.int32],
    offset: NDArray[np.int64], codes: NDArray[np.int16], tokens: NDArray[np.int64],
    probs: NDArray[np.float32], right: NDArray[np.float64], total: NDArray[np.int64],
    bits: NDArray[np.float64],
) -> None:  # fmt: skip
    """Sum up right labels, labels, and the mutual information of truth and label in bits."""
    n_labels = probs.shape[1]
    joint = np.zeros((n_labels, n_labels))
    for worker in range(len(bounds) - 1):
        joint[:] = 0.0
        for at in range(bounds[worker], bounds[worker + 1]):
            answer = order[at]
            shift = tokens[item[answer]] - offset[answer]
            for place in range(offset[answer], offset[answer + 1]):
                code = codes[place]
                if code >= 0:
                    total[worker] += 1
                    right[worker] += probs[place + shift, code]
                    for j in range(n_labels):
                        joint[j, code] += probs[place + shift, j]
        whole = joint.sum()
        for j in range(n_labels):
            row = joint[j].sum()
            for i in range(n_labels):
                if joint[j, i] > 0.0:
                    column = joint[:, i].sum()
                    share = joint[j, i] / whole
                    bits[worker] += share * np.log2(joint[j, i] * whole / (row * column))
        if whole > 0.0:
            bits[worker] -= _by_chance(joint) / (2.0 * np.log(2.0) * whole)
        bits[worker] = max(bits[worker], 0.0)


@inner
def _by_chance(joint: NDArray[np.float64]) -> float:
    """Count occupied cells, less rows and columns: what counts share by chance alone."""
    n_labels = len(joint)
    found = 1.0
    for j in range(n_labels):
        row, column = 0.0, 0.0
        for i in range(n_labels):
            row += joint[j, i]
            column += joint[i, j]
            found += joint[j, i] >= OCCUPIED
        found -= row >= OCCUPIED
        found -= column >= OCCUPIED
    return found
