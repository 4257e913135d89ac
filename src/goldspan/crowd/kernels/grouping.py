"""Counting sort."""

from __future__ import annotations

from goldspan._kernel import kernel


@kernel
def fill_groups(key, bounds, order):
    """Sort answers by group, within a group as they stand.

    Args:
        key: int32 [n_answers], the group of every answer.
        bounds: int64 [n_groups + 1], zeros; becomes the bounds of the groups in `order`.
        order: int32 or int64 [n_answers], written.
    """
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
