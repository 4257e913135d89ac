"""Workers' habits with spans, in words: where they start and end them, what they miss and invent.

Every span of the result on items that a worker answered is compared with the worker's own span of
the same type that overlaps it most (among equals the first); bounds are off by whole tokens.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd import Crowd
from goldspan.spans import SpanArray, Tagged, find_spans

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
    """Find the habits of a worker, the most frequent first.

    Args:
        crowd: Who gave what.
        codes: int16 [n_tokens], the labels to compare with, -1 open.
        worker: Index of the worker.

    Returns:
        What happens in at least 5 % of the spans of a type, and at least three times. Spans that
        touch a token which the worker skipped do not count.
    """
    answers = crowd.latest.take(crowd.by_worker[worker])
    lengths = answers.lengths
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    flat = np.repeat(crowd.offsets[answers.item] - bounds[:-1], lengths) + np.arange(bounds[-1])
    truth = np.where(answers.codes >= 0, codes[flat], np.int16(-1))
    given = np.where(codes[flat] >= 0, answers.codes, np.int16(-1))
    left_open = (truth < 0) | (given < 0)
    sides = [find_spans(Tagged(tags, bounds), crowd.tagset) for tags in (truth, given)]
    doubtful = left_open.copy()
    for side in sides:
        for start, end in zip(side.start, side.end, strict=True):
            if left_open[max(start - 1, 0) : end + 1].any():
                doubtful[start:end] = True
    gold, own = (_clear_of(side, doubtful) for side in sides)
    types = crowd.tagset.types
    seen, marked = Counter(s.type for s in gold), Counter(s.type for s in own)
    found: Counter[tuple[str, int, int, int]] = Counter()
    merged = set()
    for span, other in zip(own, _partners(own, gold), strict=True):
        if not other:
            found["invents", span.type, 0, -1] += 1
        if sum(o.type == span.type for o in other) > 1:
            merged.add(span)
    for span, other in zip(gold, _partners(gold, own), strict=True):
        said = _compare(span, other, merged)
        found.update((kind, span.type, shift, to) for kind, shift, to in said)
    rows = []
    for (kind, of, shift, to), count in found.items():
        total = (marked if kind == "invents" else seen)[of]
        if count >= LEAST_COUNT and count >= LEAST_SHARE * total:
            name = types[to] if to >= 0 else ""
            rows.append(Habit(kind, types[of], count / total, count, shift, name))
    return sorted(rows, key=lambda h: (-h.share, h.type, h.kind, h.shift, h.other))


@dataclass(frozen=True)
class _Span:
    start: int
    end: int
    type: int

    def overlap(self, other: _Span) -> int:
        return min(self.end, other.end) - max(self.start, other.start)


def _clear_of(spans: SpanArray, doubtful: NDArray[np.bool_]) -> list[_Span]:
    """Keep the spans without a doubtful token: one that a side left open, or beside such a one."""
    rows = zip(spans.start.tolist(), spans.end.tolist(), spans.type.tolist(), strict=True)
    return [_Span(a, b, kind) for a, b, kind in rows if not doubtful[a:b].any()]


def _partners(left: list[_Span], right: list[_Span]) -> list[list[_Span]]:
    """Give for every span of one side those of the other that overlap it; both are sorted."""
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
    """Say what was done with a span: (kind, shift, other type)."""
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
