"""Which item has which attribute–value pairs: a sparse matrix of ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import InputError
from goldspan.select.kernels.rows import hash_rows, only_once, row_sums, same_as_before, turn_over

MOST_VALUES = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class Incidence:
    """Items and the attribute–value pairs that each has, every pair once.

    Attributes:
        bounds: int64 [n_items + 1]; item i has the values ids[bounds[i]:bounds[i + 1]].
        ids: int32 [nnz], sorted within an item.
        n_values: Number of attribute–value pairs.
    """

    bounds: NDArray[np.int64]
    ids: NDArray[np.int32]
    n_values: int

    @classmethod
    def of(
        cls, bounds: NDArray[np.int64], ids: NDArray[np.integer[Any]], n_values: int
    ) -> Incidence:
        """Make it of rows in any order, which may hold a value several times.

        Raises:
            InputError: A value lies outside 0 … n_values - 1.
        """
        if len(ids) and not (ids.min() >= 0 and ids.max() < n_values <= MOST_VALUES):
            raise InputError(f"attribute values must lie in 0 … {n_values - 1:,}")
        kept = np.empty(len(bounds), np.int64)
        first = np.ascontiguousarray(bounds, np.int64)
        found = only_once(first, np.ascontiguousarray(ids, np.int32), n_values, kept)
        return cls(kept, found, n_values)

    @classmethod
    def of_sets(cls, items: Iterable[Iterable[int]], n_values: int | None = None) -> Incidence:
        """Make it of a collection of values per item.

        >>> Incidence.of_sets([{0, 2}, [1]]).counts.tolist()
        [1, 1, 1]
        """
        rows = [list(row) for row in items]
        bounds = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
        ids = np.array([value for row in rows for value in row], np.int64)
        width = int(ids.max(initial=-1)) + 1 if n_values is None else n_values
        return cls.of(bounds, ids, width)

    @classmethod
    def of_matrix(cls, matrix: Any) -> Incidence:
        """Make it of a SciPy sparse matrix: what is not zero counts as there."""
        rows = matrix.tocsr().copy()
        rows.sum_duplicates()
        rows.eliminate_zeros()
        return cls.of(rows.indptr.astype(np.int64), rows.indices, rows.shape[1])

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.bounds) - 1

    @property
    def nnz(self) -> int:
        """Number of pairs of an item and a value."""
        return len(self.ids)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many items have every value, int64 [n_values]: its df."""
        return np.bincount(self.ids, minlength=self.n_values)

    @cached_property
    def by_value(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The items of every value: bounds, int64 [n_values + 1], and items, int32 [nnz]."""
        bounds = np.concatenate([[0], np.cumsum(self.counts)])
        items = np.empty(self.nnz, np.int32)
        turn_over(self.bounds, self.ids, bounds, items)
        return bounds, items

    def row(self, item: int) -> NDArray[np.int32]:
        """Give the values of an item."""
        return self.ids[self.bounds[item] : self.bounds[item + 1]]

    def take(self, which: NDArray[np.intp] | NDArray[np.bool_]) -> Incidence:
        """Select items, in the order given; the values stay."""
        index = np.flatnonzero(which) if which.dtype == np.bool_ else which
        lengths = np.diff(self.bounds)[index]
        bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        place = np.repeat(self.bounds[index] - bounds[:-1], lengths) + np.arange(bounds[-1])
        return Incidence(bounds, self.ids[place], self.n_values)

    def sums(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up the weights of every item's values, float64 [n_items]."""
        found = np.empty(self.n_items)
        row_sums(self.bounds, self.ids, np.ascontiguousarray(weights, np.float64), found)
        return found

    def repeated(
        self, keep: NDArray[np.float64], among: NDArray[np.bool_] | None = None
    ) -> NDArray[np.bool_]:
        """Mark the items whose values another has too, all but one of each.

        Args:
            keep: float64 [n_items]; of those alike the one with the lowest number stays, and of
                equals the first.
            among: bool [n_items], the items that are looked at; None for all.
        """
        hashes = np.empty(self.n_items, np.uint64)
        hash_rows(self.bounds, self.ids, hashes)
        items = np.arange(self.n_items) if among is None else np.flatnonzero(among)
        order = items[np.lexsort((keep[items], hashes[items]))]
        found = np.zeros(self.n_items, np.bool_)
        same_as_before(self.bounds, self.ids, order, hashes, found)
        return found

    def check_size(self, n_items: int) -> None:
        """Refuse another number of items.

        Raises:
            InputError: It is another.
        """
        if n_items != self.n_items:
            raise InputError(f"attribute values of {self.n_items} items for {n_items} items")
