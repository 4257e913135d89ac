"""Attributes and their values: n-grams of texts, cells of tables, numbers in intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from goldspan._arrays import rows_of
from goldspan.errors import InputError, UnknownNameError
from goldspan.selection.pool import MISSING, Column, Pool, read_discretiser
from goldspan.tagger.features import FeatureMap, read_templates

# --------------------------------------------------------------------------------------------------
# Which item has which attribute–value pairs: a sparse matrix of ones.


MOST_VALUES = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class Incidence:
    """Items and the attribute–value pairs that each has, every pair once."""

    bounds: NDArray[np.int64]  # [n_items + 1]; item i has the values ids[bounds[i]:bounds[i + 1]]
    ids: NDArray[np.int32]  # [nnz], sorted within an item
    n_values: int  # Number of attribute–value pairs

    @classmethod
    def of(
        cls, bounds: NDArray[np.int64], ids: NDArray[np.integer[Any]], n_values: int
    ) -> Incidence:
        """Make it of rows in any order, which may hold a value several times."""
        if len(ids) and not (ids.min() >= 0 and ids.max() < n_values <= MOST_VALUES):
            raise InputError(f"attribute values must lie in 0 … {n_values - 1:,}")
        shape = (len(bounds) - 1, n_values)
        return cls.of_matrix(
            csr_matrix((np.ones(len(ids), np.bool_), ids, bounds), shape, copy=True)
        )

    @classmethod
    def of_sets(cls, items: Iterable[Iterable[int]], n_values: int | None = None) -> Incidence:
        """Make it of a collection of values per item."""
        rows = [list(row) for row in items]
        bounds = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
        ids = np.array([value for row in rows for value in row], np.int64)
        width = int(ids.max(initial=-1)) + 1 if n_values is None else n_values
        return cls.of(bounds, ids, width)

    @classmethod
    def of_matrix(cls, rows: csr_matrix) -> Incidence:
        """Make it of a SciPy sparse matrix, which is changed: what is not zero counts as there."""
        rows.sum_duplicates()
        rows.eliminate_zeros()
        return cls(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.shape[1])

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

    def row(self, item: int) -> NDArray[np.int32]:
        """Return the values of an item."""
        return self.ids[self.bounds[item] : self.bounds[item + 1]]

    def take(self, which: NDArray[np.intp] | NDArray[np.bool_]) -> Incidence:
        """Select items, in the order given; the values stay."""
        index = np.flatnonzero(which) if which.dtype == np.bool_ else which
        bounds, place = rows_of(self.bounds, index)
        return Incidence(bounds, self.ids[place], self.n_values)

    def sums(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up the weights of every item's values, in their order, float64 [n_items]."""
        item = np.repeat(np.arange(self.n_items), np.diff(self.bounds))
        return np.asarray(np.bincount(item, weights[self.ids], self.n_items))

    def repeated(
        self, keep: NDArray[np.float64], among: NDArray[np.bool_] | None = None
    ) -> NDArray[np.bool_]:
        """Mark the items whose values another has too, all but the one of the least `keep`."""
        # keep float64 [n_items]; among bool [n_items]
        found, seen = np.zeros(self.n_items, np.bool_), set()
        order = np.argsort(keep, kind="stable")
        for item in (order if among is None else order[among[order]]).tolist():
            row = self.row(item).tobytes()
            found[item] = row in seen
            seen.add(row)
        return found


# --------------------------------------------------------------------------------------------------
# From items to attribute–value pairs: fitted on the pool, applied to new items.


TEMPLATES = ("lower", "lower[-1]", "lower[1]", "kind", "suffix3")
"""Of texts, unless others are asked for: words, their neighbours, and what they look like."""
SKIP = "skip"
"""The rule of columns that are not attributes, such as a label."""


@dataclass(frozen=True)
class Features:
    """What the attribute–value pairs of a pool are; made by `Features.fit`.

    Attributes:
        words: Templates with their values, for texts.
        columns: The columns of a table, with their values.
        width: Number of columns of a sparse matrix.
    """

    words: FeatureMap | None = field(default=None, repr=False)
    columns: tuple[Column, ...] = ()
    width: int = 0

    @classmethod
    def fit(
        cls,
        pool: Any,
        *,
        templates: str | Path | Sequence[str] = TEMPLATES,
        numeric: str = "quantile(10)",
        discretisers: Mapping[str, str] | None = None,
        missing: str = "skip",
    ) -> Features:
        """Learn the values that a pool has.

        Args:
            pool: As for `Pool.of`.
            templates: Of texts, as for taggers.
            numeric: How columns of numbers become values: "nearest(10)" (Ntoulas et al.),
                "quantile(10)", "log2" or "categorical".
            discretisers: Other rules by column; "skip" leaves a column out.
            missing: "skip": a missing cell is no value; "value": it is one of its own.

        Raises:
            UnknownNameError: There is no such rule, template or column.

        >>> made = Features.fit(np.array([[12.0], [27.0], [14.0]]), numeric="nearest(10)")
        >>> [made.name(value) for value in range(made.n_values)]
        ['0=10', '0=30']
        """
        items = Pool.of(pool)
        if missing not in MISSING:
            raise UnknownNameError("choice for missing cells", missing, MISSING)
        if items.text is not None:
            return cls(words=FeatureMap.fit(items.text, read_templates(templates))[0])
        if items.matrix is not None:
            return cls(width=items.matrix.shape[1])
        cells = items.columns or {}
        rules = dict(discretisers or {})
        for name in rules:
            if name not in cells:
                raise UnknownNameError("column", name, cells)
        fitted = (
            Column.fit(name, column, read_discretiser(rules.get(name, numeric)), missing)
            for name, column in cells.items()
            if rules.get(name) != SKIP
        )
        return cls(columns=tuple(fitted))

    @property
    def n_values(self) -> int:
        """Number of attribute–value pairs."""
        if self.words is not None:
            return self.words.n_features
        return self.width or sum(map(len, self.columns))

    def transform(self, pool: Any) -> Incidence:
        """Find the attribute–value pairs of items; what the fitted pool has not has none.

        Raises:
            InputError: The items are of another sort, or a column is missing.
        """
        items = Pool.of(pool)
        sort = "texts" if self.words else "a sparse matrix" if self.width else "a table"
        if self.words is not None and items.text is not None:
            found = self.words.transform(items.text)
            return Incidence.of(found.bounds[found.offsets], found.ids, self.n_values)
        if self.width and items.matrix is not None:
            if items.matrix.shape[1] != self.width:
                raise InputError(f"a matrix of {items.matrix.shape[1]} columns, not {self.width}")
            return Incidence.of_matrix(items.matrix.copy())
        if self.words is None and not self.width and items.columns is not None:
            return self._of_columns(items)
        raise InputError(f"these attribute values were fitted on {sort}: the items are another")

    def name(self, value: int) -> str:
        """Return what a value is, for example `lower=rome` or `age=20`.

        Raises:
            InputError: There is no such value.
        """
        if not 0 <= value < self.n_values:
            raise InputError(f"there is no value {value}: there are {self.n_values}")
        if self.words is not None:
            return self.words.name(value)
        for column in self.columns:
            if value < len(column):
                return column.word(value)
            value -= len(column)
        return f"column {value}"

    def _of_columns(self, items: Pool) -> Incidence:
        cells = items.columns or {}
        lost = [column.name for column in self.columns if column.name not in cells]
        if lost:
            raise InputError(f"columns are missing: {', '.join(lost)}")
        ids = np.full((items.n_items, len(self.columns)), -1, np.int64)
        first = 0
        for n, column in enumerate(self.columns):
            codes = column.codes(cells[column.name])
            ids[:, n] = np.where(codes >= 0, first + codes, -1)
            first += len(column)
        known = ids >= 0
        bounds = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
        return Incidence.of(bounds, ids[known], self.n_values)
