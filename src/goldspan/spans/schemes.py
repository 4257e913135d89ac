"""The four ways of counting of SemEval-2013 task 9: strict, exact, partial, type.

True and predicted spans are paired once per item, and the pairing does not depend on the order in
which spans are listed. Spans with the same bounds are pairs. Among the rest, overlapping spans are
paired so that first the number of pairs of one type, then the number of pairs, then the number of
shared tokens is largest. Spans of one side never overlap each other, so pairs never cross and the
best pairing is a small alignment within each cluster of overlapping spans.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldspan.spans.corpus import SpanArray

SCHEMES = ("strict", "exact", "partial", "type")


@dataclass(frozen=True)
class SchemeScore:
    """Counts under one scheme and their rates.

    Attributes:
        correct: Pairs that the scheme accepts.
        incorrect: Pairs that it refuses.
        partial: Pairs that it half accepts (scheme "partial": other bounds, any type).
        missed: True spans without a pair.
        spurious: Predicted spans without a pair.
    """

    correct: int
    incorrect: int
    partial: int
    missed: int
    spurious: int

    @property
    def precision(self) -> float:
        """(correct + partial / 2) / predicted spans."""
        return self._rate(self.spurious)

    @property
    def recall(self) -> float:
        """(correct + partial / 2) / true spans."""
        return self._rate(self.missed)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0

    def to_dict(self) -> dict[str, float]:
        """Give counts and rates for JSON."""
        names = ("correct", "incorrect", "partial", "missed", "spurious")
        rates = ("precision", "recall", "f1")
        return {name: getattr(self, name) for name in (*names, *rates)}

    def _rate(self, unpaired: int) -> float:
        total = self.correct + self.incorrect + self.partial + unpaired
        return (self.correct + self.partial / 2) / total if total else 0.0


def score_schemes(gold: SpanArray, found: SpanArray) -> dict[str, SchemeScore]:
    """Count the spans of one worker under all four schemes.

    Args:
        gold: True spans, from `find_spans` on one-dimensional codes.
        found: Predicted spans, likewise.
    """
    same_bounds = _same_bounds(gold, found)
    paired = np.flatnonzero(same_bounds >= 0)
    partner = same_bounds[paired]
    n_same_type = int((gold.type[partner] == found.type[paired]).sum())
    n_bounds = len(paired)

    rest_found = np.flatnonzero(same_bounds < 0)
    left = np.ones(len(gold), np.bool_)
    left[partner] = False
    rest_gold = np.flatnonzero(left)
    n_typed, n_untyped = _pair_overlaps(gold.take(rest_gold), found.take(rest_found))
    n_pairs = n_bounds + n_typed + n_untyped
    missed, spurious = len(gold) - n_pairs, len(found) - n_pairs
    overlaps = n_typed + n_untyped
    typed = n_same_type + n_typed
    return {
        "strict": SchemeScore(n_same_type, n_pairs - n_same_type, 0, missed, spurious),
        "exact": SchemeScore(n_bounds, overlaps, 0, missed, spurious),
        "partial": SchemeScore(n_bounds, 0, overlaps, missed, spurious),
        "type": SchemeScore(typed, n_pairs - typed, 0, missed, spurious),
    }


def _same_bounds(gold: SpanArray, found: SpanArray) -> NDArray[np.int64]:
    """Index of the true span with the bounds of each found span, -1 for none."""
    partner = np.searchsorted(gold.start, found.start)
    known = partner < len(gold)
    at = partner[known]
    known[known] = (gold.start[at] == found.start[known]) & (gold.end[at] == found.end[known])
    return np.where(known, partner, -1)


def _pair_overlaps(gold: SpanArray, found: SpanArray) -> tuple[int, int]:
    """Count the pairs of overlapping spans, (of one type, of two types)."""
    first = np.searchsorted(found.end, gold.start, side="right")
    stop = np.searchsorted(found.start, gold.end, side="left")
    typed = untyped = 0
    cluster: list[int] = []
    reach = 0
    for g in np.flatnonzero(stop > first).tolist():
        if cluster and first[g] >= reach:
            a, b = _best_pairing(gold, found, cluster, int(first[cluster[0]]), reach)
            typed, untyped = typed + a, untyped + b
            cluster = []
        cluster.append(g)
        reach = int(stop[g])
    if cluster:
        a, b = _best_pairing(gold, found, cluster, int(first[cluster[0]]), reach)
        typed, untyped = typed + a, untyped + b
    return typed, untyped


def _best_pairing(
    gold: SpanArray, found: SpanArray, cluster: list[int], first: int, stop: int
) -> tuple[int, int]:
    """Align the spans of one cluster; the value is (typed pairs, all pairs, shared tokens)."""
    if len(cluster) == 1 and stop - first == 1:
        same = gold.type[cluster[0]] == found.type[first]
        return (1, 0) if same else (0, 1)
    row = [(0, 0, 0)] * (stop - first + 1)
    for g in cluster:
        above, row = row, [(0, 0, 0)]
        for j, f in enumerate(range(first, stop)):
            shared = int(min(gold.end[g], found.end[f]) - max(gold.start[g], found.start[f]))
            best = max(above[j + 1], row[j])
            if shared > 0:
                same = int(gold.type[g] == found.type[f])
                typed, pairs, tokens = above[j]
                best = max(best, (typed + same, pairs + 1, tokens + shared))
            row.append(best)
    typed, pairs, _ = row[-1]
    return typed, pairs - typed
