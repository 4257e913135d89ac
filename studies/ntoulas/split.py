"""What a repeat begins with: a pool whose labels can be bought, and gold that is set aside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.selection import Pool

Indices = NDArray[np.int64]
Labels = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Split:
    """A pool and a gold set, of items with two labels.

    Attributes:
        pool: What rules of selection see: items without labels.
        rows: Matrix [n_pool, n_features], dense or SciPy CSR: what classifiers learn from.
        gold_rows: Matrix [n_gold, n_features].
        gold: bool [n_gold], the truth of the gold set.
        buy: Gives the labels of items of the pool, bool [n_items]; they may be wrong.
        describe: Says in numbers what items of the pool are, given their labels.
    """

    pool: Pool
    rows: Any
    gold_rows: Any
    gold: Labels
    buy: Callable[[Indices], Labels]
    describe: Callable[[Indices, Labels], Mapping[str, float]]


def set_aside(n_items: int, n_gold: int, seed: int) -> tuple[Indices, Indices]:
    """Draw the gold set: the indexes of the pool and of the gold, each in order.

    >>> pool, gold = set_aside(10, 3, seed=0)
    >>> sorted([*pool.tolist(), *gold.tolist()]) == list(range(10)), len(gold)
    (True, 3)
    """
    order = np.random.default_rng((seed, 0)).permutation(n_items)
    return np.sort(order[n_gold:]), np.sort(order[:n_gold])


FOLDS = 10
"""Of the paper's cross-validation."""


def deal(n_items: int, fold: int) -> tuple[Indices, Indices]:
    """Deal items in ten folds of which one is the gold: the indexes of the pool and of the gold.

    >>> sorted(sum((deal(25, fold)[1].tolist() for fold in range(FOLDS)), [])) == list(range(25))
    True
    """
    order = np.random.default_rng(0).permutation(n_items)
    is_gold = np.arange(n_items) % FOLDS == fold
    return np.sort(order[~is_gold]), np.sort(order[is_gold])
