"""Decoding for span F1: the spans whose expected F1 is largest (minimum Bayes risk).

Expected F1 is taken as 2 sum P(s) / (|S| + E|G|), with the posterior P(s) of every chosen span and
the expected number E|G| of true ones. Its maximum over sets of spans that do not overlap is found
by Dinkelbach's iteration: for a given F the best set maximises sum (P(s) - F / 2), which splits
into items (weighted interval scheduling); F is then computed anew until it stands.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldspan._kernel import kernel

MAX_ROUNDS = 50


def best_spans(
    item: NDArray[np.int64], begin: NDArray[np.int64], stop: NDArray[np.int64],
    mass: NDArray[np.float64],
) -> tuple[NDArray[np.bool_], float]:  # fmt: skip
    """Choose spans.

    Args:
        item: int64 [n_spans], sorted.
        begin: int64 [n_spans].
        stop: int64 [n_spans].
        mass: float64 [n_spans], posterior of every span; E|G| is their sum.

    Returns:
        bool [n_spans], the chosen ones, and the F1 to expect.
    """
    expected, f1 = float(mass.sum()), 0.0
    chosen = np.zeros(len(mass), np.bool_)
    order = np.lexsort((begin, stop, item))
    arrays = [np.ascontiguousarray(a[order], np.int64) for a in (item, begin, stop)]
    weights = mass[order]
    for _ in range(MAX_ROUNDS):
        picked = np.zeros(len(mass), np.bool_)
        _schedule(*arrays, weights - f1 / 2, picked)
        total = picked.sum() + expected
        new = 2 * float(weights[picked].sum()) / total if total else 0.0
        if new <= f1 + 1e-12:
            break
        f1 = new
        chosen[order] = picked
    return chosen, f1


@kernel
def _schedule(
    item: NDArray[np.int64], begin: NDArray[np.int64], stop: NDArray[np.int64],
    gain: NDArray[np.float64], picked: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Pick spans of every item that do not overlap, with the largest sum of gains."""
    first, n_spans = 0, len(item)
    while first < n_spans:
        last = first
        while last < n_spans and item[last] == item[first]:
            last += 1
        best = np.zeros(last - first + 1)
        before = np.zeros(last - first, np.int64)
        for a in range(first, last):
            b = a
            while b > first and stop[b - 1] > begin[a]:
                b -= 1
            before[a - first] = b - first
            taken = best[b - first] + gain[a]
            best[a - first + 1] = max(best[a - first], taken)
        a = last
        while a > first:
            if best[a - first] > best[a - first - 1]:
                picked[a - 1] = True
                a = first + before[a - 1 - first]
            else:
                a -= 1
        first = last
