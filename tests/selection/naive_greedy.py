"""Greedy coverage as it is written down, one item after the other, and the best of all subsets."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.sparse import csr_matrix

from goldspan.selection.features import Incidence
from goldspan.selection.greedy import Spending, Wanted


def naive_cover(items: Incidence, wanted: Wanted, spending: Spending, ranks, is_out=None):
    """Return items and gains; every step looks at every item."""
    out = np.zeros(items.n_items, bool) if is_out is None else is_out.copy()
    counts = np.zeros(items.n_values, int) if wanted.counts is None else wanted.counts.copy()
    weights = np.ones(items.n_values) if wanted.weights is None else wanted.weights
    left, picked, gains, levels = spending.budget, [], [], []
    leveled = wanted.order == "levels"
    for level in range(1, wanted.w + 1) if leveled else [wanted.w]:
        while len(picked) < spending.most:
            best, best_key = -1, 0.0
            for item in ranks.tolist():
                if out[item] or (spending.spend is not None and spending.spend[item] > left):
                    continue
                gain = gain_of(items.row(item), counts, level, weights)
                key = gain if spending.shares is None else gain / spending.shares[item]
                if key > best_key:
                    best, best_key = item, key
            if best < 0:
                break
            picked.append(best)
            gains.append(gain_of(items.row(best), counts, level, weights))
            levels.append(level if leveled else 0)
            out[best] = True
            counts[items.row(best)] += 1
            if spending.spend is not None:
                left -= spending.spend[best]
    return picked, gains, levels


def gain_of(row, counts, level, weights):
    """Add up the weights of what is still needed, in the order of the row."""
    total = 0.0
    for value in row.tolist():
        if counts[value] < level:
            total += weights[value]
    return total


def value_of(chosen, items: Incidence, wanted: Wanted) -> float:
    """Return f of a set of items beyond what is labelled."""
    start = np.zeros(items.n_values, int) if wanted.counts is None else wanted.counts
    weights = np.ones(items.n_values) if wanted.weights is None else wanted.weights
    counts = start.copy()
    for item in chosen:
        counts[items.row(item)] += 1
    return float((np.minimum(wanted.w, counts) - np.minimum(wanted.w, start)) @ weights)


def best_of_all(items: Incidence, wanted: Wanted, spending: Spending) -> float:
    """Return f of the best set that the spending pays, by looking at all of them."""
    best = 0.0
    for size in range(min(spending.most, items.n_items) + 1):
        for chosen in combinations(range(items.n_items), size):
            price = 0 if spending.spend is None else sum(spending.spend[list(chosen)])
            if price <= spending.budget:
                best = max(best, value_of(chosen, items, wanted))
    return best


def matrix_of(items: Incidence) -> csr_matrix:
    """Return items as a sparse matrix."""
    ones = np.ones(items.nnz)
    return csr_matrix((ones, items.ids, items.bounds), shape=(items.n_items, items.n_values))


def random_items(rng, n_items=12, n_values=15, most=5) -> Incidence:
    """Draw items with up to `most` values each."""
    rows = [rng.choice(n_values, rng.integers(0, most + 1), replace=False) for _ in range(n_items)]
    return Incidence.of_sets(rows, n_values)
