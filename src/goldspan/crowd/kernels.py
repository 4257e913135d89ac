"""Grouping and numbering the answers of large crowds, compiled by Numba: linear in the answers.

Imported where they are called, for crowds of `goldspan.crowd.grouping.LARGE` answers and more.
"""

from __future__ import annotations

import numpy as np

from goldspan._kernel import kernel

# --------------------------------------------------------------------------------------------------
# Counting sort.


@kernel
def fill_groups(key, bounds, order):
    """Sort answers by group, within a group as they stand."""
    # key int32 [n_answers], the group of every answer; bounds int64 [n_groups + 1]
    for a in range(len(key)):
        bounds[key[a] + 1] += 1
    for g in range(1, len(bounds)):
        bounds[g] += bounds[g - 1]
    # While the groups are filled, bounds[g] is the next place of group g; then it is its end.
    for a in range(len(key)):
        g = key[a]
        order[bounds[g]] = a
        bounds[g] += 1
    for g in range(len(bounds) - 1, 0, -1):
        bounds[g] = bounds[g - 1]
    bounds[0] = 0


# --------------------------------------------------------------------------------------------------
# Repeated answers, item by item: a stamp per worker says whether the worker was met at the item.


@kernel
def fill_attempts(order, bounds, worker, n_workers, backwards, attempt):
    """Number the answers of every worker to every item, and give the highest number."""
    # order int32 [n_answers], the answers sorted by item
    # bounds int64 [n_items + 1], of the items in `order`; worker int32 [n_answers]
    # attempt int16 [n_answers]
    stamp = np.full(n_workers, -1, np.int32)
    count = np.zeros(n_workers, np.int64)
    most = 0
    for i in range(len(bounds) - 1):
        n = bounds[i + 1] - bounds[i]
        for k in range(n):
            a = order[bounds[i + 1] - 1 - k] if backwards else order[bounds[i] + k]
            w = worker[a]
            if stamp[w] == i:
                count[w] += 1
                most = max(most, count[w])
                attempt[a] = count[w]
            else:
                stamp[w] = i
                count[w] = 0
    return most


@kernel
def fill_latest(order, bounds, worker, attempt, n_workers, keep):
    """Mark, of every worker's answers to an item, the one of the highest attempt."""
    # order int32 [n_answers], the answers sorted by item
    # bounds int64 [n_items + 1], of the items in `order`; worker int32 [n_answers]
    # attempt int16 [n_answers]; keep bool [n_answers], all False; written
    stamp = np.full(n_workers, -1, np.int32)
    best = np.zeros(n_workers, np.int64)
    for i in range(len(bounds) - 1):
        for k in range(bounds[i], bounds[i + 1]):
            a = order[k]
            w = worker[a]
            if stamp[w] == i:
                if attempt[a] < attempt[best[w]]:
                    continue
                keep[best[w]] = False
            stamp[w] = i
            best[w] = a
            keep[a] = True
