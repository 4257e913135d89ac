"""Items of words, and what else is known of them: what taggers read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan._arrays import rows_of
from goldspan.errors import InputError

STRING = pa.large_string()


@dataclass(frozen=True, eq=False)
class Text:
    """Items of words, and what else is known of them.

    Attributes:
        words: Arrow string array [n_tokens].
        offsets: int64 [n_items + 1].
        group: int64 [n_items], document of every item; None: every item is a document.
        columns: Arrow string arrays [n_tokens] by name, such as part-of-speech tags.
    """

    words: pa.Array
    offsets: NDArray[np.int64]
    group: NDArray[np.int64] | None = None
    columns: Mapping[str, pa.Array] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        items: Sequence[Sequence[str]],
        groups: Sequence[str] | None = None,
        columns: Mapping[str, Sequence[Sequence[str]]] | None = None,
    ) -> Text:
        """Make it of lists of words, one list per item.

        Raises:
            InputError: A word is no string, or a column has another number of values.
        """
        lengths = np.fromiter(map(len, items), np.int64, count=len(items))
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        words = _strings([word for item in items for word in item], "words")
        if words.null_count:
            raise InputError("words must be strings, and one of them is None")
        group = None if groups is None else _numbered(groups, len(items))
        more = {}
        for name, values in (columns or {}).items():
            flat = [value for item in values for value in item]
            if len(flat) != len(words):
                raise InputError(f"column {name}: {len(flat)} values for {len(words)} words")
            more[name] = _strings(flat, f"column {name}: values")
        return cls(words, offsets, group, more)

    @property
    def n_tokens(self) -> int:
        """Number of words."""
        return len(self.words)

    def select(self, items: NDArray[np.int64]) -> Text:
        """Return some items, in the order given."""
        bounds, flat = rows_of(self.offsets, items)
        rows = pa.array(flat)
        group = None if self.group is None else self.group[items]
        columns = {name: column.take(rows) for name, column in self.columns.items()}
        return Text(self.words.take(rows), bounds, group, columns)


def _strings(values: Sequence[str], what: str) -> pa.Array:
    try:
        return pa.array(values, STRING)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError) as error:
        raise InputError(f"{what} must be strings: {error}") from None


def _numbered(groups: Sequence[str], n_items: int) -> NDArray[np.int64]:
    if len(groups) != n_items:
        raise InputError(f"{len(groups)} groups for {n_items} items")
    names = pa.array(map(str, groups), STRING)
    return np.asarray(pc.rank(names, tiebreaker="dense"), np.int64) - 1
