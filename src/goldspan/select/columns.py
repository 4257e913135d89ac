"""One column of a table as attribute–value pairs: numbers through a rule, words as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan.errors import InputError
from goldspan.select.discretise import Discretiser, Quantile, read_discretiser

MISSING = ("skip", "value")
"""What a missing cell is: nothing, or a value of its own."""

Cells: TypeAlias = NDArray[np.float64] | pa.Array
"""Numbers, NaN where missing; or Arrow strings, null where missing."""


@dataclass(frozen=True)
class Column:
    """What a column's cells mean.

    Attributes:
        name: Of the column.
        rule: Of its numbers; None for words.
        values: The bins or words that the pool has, sorted.
        has_missing: Whether a missing cell is a value, the last one.
    """

    name: str
    rule: Discretiser | None
    values: tuple[float, ...] | tuple[str, ...]
    has_missing: bool

    @classmethod
    def fit(cls, name: str, cells: Cells, rule: Discretiser, missing: str) -> Column:
        """Learn the values of a column of the pool."""
        if isinstance(cells, pa.Array):
            words = sorted(pc.unique(cells).drop_null().to_pylist())
            return cls(name, None, tuple(words), missing == "value" and cells.null_count > 0)
        known = ~np.isnan(cells)
        fitted = rule.fitted(cells[known])
        bins = np.unique(fitted.bins(cells[known]))
        return cls(name, fitted, tuple(bins.tolist()), missing == "value" and not known.all())

    def __len__(self) -> int:
        """Count the values."""
        return len(self.values) + self.has_missing

    def codes(self, cells: Cells) -> NDArray[np.int64]:
        """Give the value of every cell, int64 [n]; -1 for none, and for what the pool has not."""
        if isinstance(cells, pa.Array) != (self.rule is None):
            was, seen = ("words", "numbers") if self.rule is None else ("numbers", "words")
            raise InputError(f"column {self.name}: it held {was} at fit, and now holds {seen}")
        if isinstance(cells, pa.Array):
            places = pc.index_in(cells, value_set=pa.array(self.values, pa.string()))
            found = np.asarray(pc.fill_null(places, -1).to_numpy(zero_copy_only=False), np.int64)
            found = found.copy()
            missing = cells.is_null().to_numpy(zero_copy_only=False)
        else:
            assert self.rule is not None
            missing = np.isnan(cells)
            bins, values = self.rule.bins(np.where(missing, 0.0, cells)), np.array(self.values)
            at = np.minimum(np.searchsorted(values, bins), max(0, len(values) - 1))
            same = values[at] == bins if len(values) else np.zeros(len(bins), np.bool_)
            found = np.where(same, at, -1)
        found[missing] = len(self.values) if self.has_missing else -1
        return found

    def word(self, code: int) -> str:
        """Write a value, for example `age=20`."""
        if code == len(self.values):
            return f"{self.name}=?"
        value = self.values[code]
        return f"{self.name}={value if self.rule is None else self.rule.word(float(value))}"

    def facts(self) -> dict[str, Any]:
        """Give everything as JSON has it."""
        edges = list(self.rule.edges) if isinstance(self.rule, Quantile) else None
        return {
            "name": self.name,
            "rule": None if self.rule is None else str(self.rule),
            "step": getattr(self.rule, "step", None),
            "edges": edges,
            "values": list(self.values),
            "has_missing": self.has_missing,
        }

    @classmethod
    def of_facts(cls, facts: dict[str, Any]) -> Column:
        """Take what `facts` gave."""
        rule = None if facts["rule"] is None else read_discretiser(facts["rule"])
        if facts["step"] is not None:
            rule = type(rule)(facts["step"])  # type: ignore[misc,call-arg]
        if isinstance(rule, Quantile):
            rule = Quantile(rule.n_bins, tuple(map(float, facts["edges"])))
        kind = str if rule is None else float
        values: Any = tuple(kind(value) for value in facts["values"])
        return cls(str(facts["name"]), rule, values, bool(facts["has_missing"]))
