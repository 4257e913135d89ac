"""Taking items evenly: over strata, over documents, and a share of hard ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Draw:
    """Takes items one by one, those of documents with few questions first."""

    def __init__(
        self, group: NDArray[np.int64], rank: NDArray[np.int64], eligible: NDArray[np.int64]
    ) -> None:
        self.rank, self.group = rank, np.unique(group, return_inverse=True)[1]
        self.times = np.zeros(len(group), np.int64)
        self.is_free = np.zeros(len(group), np.bool_)
        self.is_free[eligible] = True

    def free(self, wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Give the items that are wanted and not taken yet."""
        found: NDArray[np.int64] = np.flatnonzero(wanted & self.is_free)
        return found

    def elsewhere(self, pool: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give what the pool has from documents without a question; if none, any such items."""
        fresh: NDArray[np.int64] = pool[self.times[self.group[pool]] == 0]
        if len(fresh):
            return fresh
        others = self.free(np.asarray(self.times[self.group] == 0))
        return others if len(others) else pool

    def take(self, pool: NDArray[np.int64]) -> int:
        """Take the next item of a pool."""
        busy = self.times[self.group[pool]]
        item = int(pool[np.lexsort((self.rank[pool], busy))[0]])
        self.is_free[item] = False
        self.times[self.group[item]] += 1
        return item


def pick(
    draw: Draw, stratum: NDArray[np.int64], is_hard: NDArray[np.bool_], n: int, hard: float
) -> list[int]:
    """Take n items: the strata in turn, the most frequent first, each its hard items first.

    Args:
        draw: What to take from.
        stratum: int64 [n_items].
        is_hard: bool [n_items].
        n: How many; there are so many.
        hard: Share of hard ones; fewer are taken where there are not so many.
    """
    sizes = np.bincount(stratum[draw.is_free])
    n_hard = np.bincount(stratum[draw.is_free & is_hard], minlength=len(sizes))
    turns = places(sizes, n)
    quota = np.bincount(turns, minlength=len(sizes))
    owed = hard_quotas(quota, n_hard, sizes - n_hard, int(np.floor(hard * n + 0.5)))
    picked: list[int] = []
    for s in turns:
        pool = draw.free(stratum == s)
        if len(picked) == n - 1 and len(set(draw.group[picked].tolist())) == 1:
            pool = draw.elsewhere(pool)
        fitting = pool[is_hard[pool] == (owed[s] > 0)]
        picked.append(draw.take(fitting if len(fitting) else pool))
        owed[s] -= 1
    return picked


def places(sizes: NDArray[np.int64], n: int) -> list[int]:
    """Say which stratum comes next, n times: in turn, as long as it has items."""
    found: list[int] = []
    left = sizes.copy()
    turns = np.argsort(-sizes, kind="stable").tolist()
    while len(found) < n:
        for s in turns:
            if left[s] and len(found) < n:
                left[s] -= 1
                found.append(s)
    return found


def hard_quotas(
    quota: NDArray[np.int64], n_hard: NDArray[np.int64], n_easy: NDArray[np.int64], total: int
) -> NDArray[np.int64]:
    """Say how many hard items every stratum gives, int64 [n_strata].

    All give the same share, as far as they have so many. A stratum with too few others gives more.

    >>> hard_quotas(*np.array([[4, 4, 2], [9, 0, 9], [9, 9, 0]]), 5).tolist()
    [3, 0, 2]
    """
    given = np.maximum(quota - n_easy, 0)
    most = np.minimum(quota, n_hard)
    while given.sum() < total and (given < most).any():
        share = np.where(given < most, given / np.maximum(quota, 1), np.inf)
        given[share.argmin()] += 1
    return np.asarray(given)
