"""The items to choose from, with their columns, and numbers cut into intervals."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan._arrays import hash64, keys_of
from goldspan.crowd import Answers, Crowd
from goldspan.crowd.formats.texts import IDS, Strings, repeated_id
from goldspan.crowd.model import item_texts, list_array
from goldspan.errors import InputError, UnavailableError, UnknownNameError
from goldspan.spans import Codec, tokenize
from goldspan.tagger import Text

# --------------------------------------------------------------------------------------------------
# Numbers become values: a bin rule is fitted on the pool, kept, and applied to new items.


Floats = NDArray[np.float64]
_LOWEST = 1100.0
"""Added to exponents, so that those of tiny numbers are positive too."""


@dataclass(frozen=True)
class Discretiser:
    """A rule that puts numbers into bins: `nearest(10)`, `quantile(10)`, `log2` or `categorical`.

    >>> Discretiser("nearest", 10).bins(np.array([12.0, 27.0, 25.0, -5.0])).tolist()
    [1.0, 3.0, 3.0, 0.0]
    """

    name: str  # To the nearest multiple, halves up; equally many; powers of 2; each its own
    number: float = 0.0  # The step of "nearest", how many bins "quantile" has
    edges: tuple[float, ...] = ()  # Of "quantile", once it is fitted

    def __post_init__(self) -> None:
        if self.name == "nearest" and not 0 < self.number < math.inf:
            raise InputError(f"nearest: the step must be a positive number, not {self.number!r}")
        if self.name == "quantile" and self.number < 2:
            raise InputError(f"quantile: there must be at least 2 bins, not {self.number!r}")

    def fitted(self, numbers: Floats) -> Discretiser:
        """Return the rule as it is for the pool's numbers, float64 [n], none of them missing."""
        if self.name != "quantile" or not len(numbers):
            return self
        inner = np.arange(1, self.number) / self.number
        found = np.unique(np.quantile(numbers, inner, method="linear"))  # equal edges are one
        return replace(self, edges=tuple(found.tolist()))

    def bins(self, numbers: Floats) -> Floats:
        """Return the bin of every number as a number, float64 [n]."""
        if self.name == "nearest":
            return np.asarray(np.floor(numbers / self.number + 0.5) + 0.0)  # + 0.0: no -0.0
        if self.name == "quantile":
            return np.searchsorted(np.array(self.edges), numbers, side="right").astype(np.float64)
        if self.name == "log2":  # [1, 2), [2, 4), …; 0 is a bin, negative numbers mirror them
            exponent = np.frexp(numbers)[1] - 1 + _LOWEST
            return np.where(numbers == 0, 0.0, np.sign(numbers) * exponent)
        return numbers + 0.0

    def word(self, code: float) -> str:
        """Return what a bin holds: of "log2" the number that is nearest to 0."""
        if self.name == "quantile":
            edges = [-math.inf, *self.edges, math.inf]
            return f"{edges[int(code)]:g}…{edges[int(code) + 1]:g}"
        if self.name == "log2" and code:
            return f"{math.copysign(2.0 ** (abs(code) - _LOWEST), code):g}"
        return f"{code * self.number if self.name == 'nearest' else code:g}"

    def __str__(self) -> str:
        """Write the rule as it is read."""
        return f"{self.name}({self.number:g})" if self.number else self.name


DISCRETISERS = {"nearest": 10.0, "quantile": 10.0, "log2": 0.0, "categorical": 0.0}
"""The rules with the numbers that they have unless others are given; 0: they take none."""
_WRITTEN = re.compile(r"^\s*(?P<name>[\w-]+)\s*(\(\s*(?P<number>[^()]+?)\s*\))?\s*$")


def read_discretiser(text: Any) -> Discretiser:
    """Read a rule: `nearest(10)`, `quantile(10)`, `log2` or `categorical`."""
    if isinstance(text, Discretiser):
        return text
    found = _WRITTEN.match(str(text))
    if not found:
        raise InputError(f"discretiser {text!r} must look like nearest(10), quantile(10) or log2")
    name, usual = found["name"], DISCRETISERS.get(found["name"])
    if usual is None:
        raise UnknownNameError("discretiser", name, DISCRETISERS)
    if found["number"] is None:
        return Discretiser(name, usual)
    try:
        number = float(found["number"])
    except ValueError:
        raise InputError(f"discretiser {text!r}: {found['number']!r} is not a number") from None
    if not usual or (name == "quantile" and not number.is_integer()):
        what = "a whole number of bins" if usual else "no number"
        raise InputError(f"discretiser {text!r}: {name} takes {what}")
    return Discretiser(name, number)


# --------------------------------------------------------------------------------------------------
# One column of a table as attribute–value pairs: numbers through a rule, words as they are.


MISSING = ("skip", "value")
"""What a missing cell is: nothing, or a value of its own."""

Cells: TypeAlias = NDArray[np.float64] | pa.Array
"""Numbers, NaN where missing; or Arrow strings, null where missing."""


@dataclass(frozen=True)
class Column:
    """What a column's cells mean."""

    name: str
    rule: Discretiser | None  # Of its numbers; None for words
    values: tuple[float, ...] | tuple[str, ...]  # The bins or words that the pool has, sorted
    has_missing: bool  # Whether a missing cell is a value, the last one

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
        """Return the value of every cell, int64 [n]; -1 for none, and for what the pool has not."""
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


# --------------------------------------------------------------------------------------------------
# The items to choose from: texts, or a table of attributes, of whatever make.


Made = TypeVar("Made")


class OnDemand(Sequence[Made], Generic[Made]):
    """A sequence whose members are made when they are asked for: a million of them take no room."""

    def __init__(self, length: int, make: Callable[[int], Made]) -> None:
        self._length, self._make = length, make

    @classmethod
    def strings(cls, values: pa.Array) -> OnDemand[str]:
        """Return the strings of an Arrow array."""
        return OnDemand(len(values), partial(_string, values))

    def __len__(self) -> int:
        """Count them."""
        return self._length

    def __getitem__(self, index: Any) -> Any:
        """Make one, or a list of those of a slice."""
        found = range(self._length)[index]
        return self._make(found) if isinstance(found, int) else [*map(self._make, found)]

    def __iter__(self) -> Iterator[Made]:
        """Make one after the other."""
        return map(self._make, range(self._length))


def _string(values: pa.Array, place: int) -> str:
    return str(values[place].as_py())


class Places(Mapping[str, int]):
    """The index of every item by its id: sorted hashes, 16 bytes an item."""

    def __init__(self, item_ids: pa.Array, keys: NDArray[np.uint64]) -> None:
        self._ids = item_ids
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]

    def __getitem__(self, name: str) -> int:
        """Return the index of the item with an id; of several with the same, the first."""
        if isinstance(name, str):
            key = np.uint64(hash64(name))
            at = int(np.searchsorted(self._keys, key))
            while at < len(self._keys) and self._keys[at] == key:
                place = int(self._order[at])
                if self._ids[place].as_py() == name:
                    return place
                at += 1
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        """Go through the ids in the order of the items."""
        return iter(OnDemand.strings(self._ids))

    def __len__(self) -> int:
        """Count the items."""
        return len(self._ids)


@dataclass(frozen=True, eq=False)
class Pool:
    """Items to choose from; made by `Pool.of`.

    Attributes:
        item_ids: Arrow string array [n_items].
        text: The words of every item as taggers read them; None for tables.
        crowd: The items with their texts, and where the words begin in them; None for tables.
        columns: The cells of every column by name, or None.
        matrix: SciPy CSR matrix [n_items, n_values] whose entries are attribute–value pairs, or
            None.
        given: What classifiers read: the texts, or the table as it was given.
    """

    item_ids: pa.Array
    text: Text | None = None
    crowd: Crowd | None = field(default=None, repr=False)
    columns: Mapping[str, Cells] | None = None
    matrix: Any = None
    given: Any = field(default=None, repr=False)

    @classmethod
    def of(cls, pool: Any) -> Pool:
        """Take a pool.

        Args:
            pool: A `Crowd` (answers are not looked at), a `goldspan.tagger.Text`, a list of texts
                (cut into fine tokens) or of lists of words; a DataFrame of any make, whose column
                item (or id, task) holds the ids; a NumPy matrix of numbers, NaN where missing; or a
                SciPy sparse matrix.

        Raises:
            InputError: It is none of these, an id appears twice, or a crowd has no words.

        >>> Pool.of(["Rome is old .", "So is Athens ."]).n_tokens.tolist()
        [4, 4]
        """
        made = _made(pool)
        twice = None if made is pool else repeated_id(made.item_ids)
        if twice is not None:
            raise InputError(f"item {twice} appears in the pool twice: ids must differ")
        return made

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.item_ids)

    @property
    def n_tokens(self) -> NDArray[np.int64]:
        """Tokens of every item, int64 [n_items].

        Raises:
            UnavailableError: The items are rows of a table.
        """
        if self.text is None:
            raise UnavailableError(
                "this pool is a table of attributes: it has no tokens to count; give costs as "
                "numbers, one per item"
            )
        return np.diff(self.text.offsets)

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """A number per id, uint64 [n_items], the same in every process."""
        return keys_of(OnDemand.strings(self.item_ids))

    @cached_property
    def place(self) -> Places:
        """The index of every item by its id."""
        return Places(self.item_ids, self.keys)

    def words(self, item: int) -> list[str]:
        """Return the words of an item, none for a row of a table."""
        if self.text is None:
            return []
        a, b = self.text.offsets[item : item + 2].tolist()
        return list(self.text.words.slice(a, b - a).to_pylist())

    def starts_of(self, item: int) -> list[int]:
        """Return the first characters of an item's words in its text; none for a row of a table."""
        if self.crowd is None:
            return []
        assert self.crowd.token_start is not None
        a, b = self.crowd.offsets[item : item + 2]
        return list(self.crowd.token_start[a:b].tolist())

    def cells(self, item: int) -> dict[str, Any]:
        """Return the attributes of an item that are text or numbers, without missing ones."""
        found = {}
        for name, cells in self._attributes.items():
            value = cells[item].item() if isinstance(cells, np.ndarray) else cells[item].as_py()
            is_known = isinstance(value, str | int | float | bool) and value != ""
            if is_known and value == value:  # noqa: PLR0124 - NaN
                found[name] = value
        return found

    @cached_property
    def _attributes(self) -> Mapping[str, Any]:
        if self.crowd is None:
            return self.columns or {}
        table, roles = self.crowd.attributes, {*self.crowd.import_report.columns.values()}
        if table is None:
            return {}
        return {name: table[name] for name in table.column_names if name not in roles}

    def part(self, index: NDArray[np.int64]) -> Pool:
        """Return some items, in the order given."""
        if self.crowd is not None and self.text is not None:
            return _of_texts(self.crowd.select_items(index), self.text.select(index))
        kept = pa.array(index)
        columns = {
            name: cells.take(kept) if isinstance(cells, pa.Array) else cells[index]
            for name, cells in (self.columns or {}).items()
        }
        matrix = None if self.matrix is None else self.matrix[index]
        ids = self.item_ids.take(kept)
        return Pool(ids, columns=columns or None, matrix=matrix, given=self.rows(index))

    def rows(self, index: NDArray[np.int64]) -> Any:
        """Return some items as classifiers read them: rows of what was given, or texts."""
        if self.text is not None:
            return [self.given[n] for n in index.tolist()]
        if self.matrix is not None or isinstance(self.given, np.ndarray):
            return self.given[index]
        import narwhals as nw

        return nw.from_native(self.given, eager_only=True)[index.tolist()].to_native()


def _made(pool: Any) -> Pool:
    if isinstance(pool, Pool):
        return pool
    if isinstance(pool, Crowd):
        return _of_crowd(pool.whole_items)
    if isinstance(pool, Text):
        return _of_words(pool)
    if isinstance(pool, np.ndarray):
        return _of_array(pool)
    if hasattr(pool, "tocsr"):
        rows = pool.tocsr()
        return Pool(_numbers(rows.shape[0]), matrix=rows, given=rows)
    is_frame = hasattr(pool, "columns") or hasattr(pool, "column_names")
    if isinstance(pool, str | bytes | Mapping) or not (is_frame or isinstance(pool, Sequence)):
        raise InputError(
            "a pool is a Crowd, a list of texts, a list of lists of words, a DataFrame or a "
            f"matrix, not {type(pool).__name__}; read a file with goldspan.read_crowd first"
        )
    if is_frame:
        return _of_frame(pool)
    if all(isinstance(item, str) for item in pool):
        cut = [tokenize(text) for text in pool]
        words = [[text[a:b] for a, b in one] for text, one in zip(pool, cut, strict=True)]
        starts = np.fromiter((a for one in cut for a, _ in one), np.int32)
        return _of_words(Text.of(words), texts=pa.array(pool, pa.string()), token_start=starts)
    if any(isinstance(item, str) or not isinstance(item, Sequence) for item in pool):
        raise InputError("a list of items holds texts or lists of words, all of one sort")
    return _of_words(Text.of(pool))


def _numbers(n: int) -> pa.Array:
    return pa.array(np.arange(n)).cast(pa.string())


def _of_texts(crowd: Crowd, text: Text) -> Pool:
    return Pool(crowd.item_ids, text, crowd, given=OnDemand.strings(crowd.texts))


def _of_words(text: Text, **more: Any) -> Pool:
    """Take items without ids; `more` are columns of the crowd."""
    crowd = Crowd(
        item_ids=_numbers(len(text.offsets) - 1),
        tokens=list_array(text.words, text.offsets),
        worker_ids=pa.array([], pa.string()),
        tagset=Codec(("O",), "BIO"),
        answers=Answers.none(),
        **more,
    )
    return _of_texts(_with_texts(crowd), text)


def _of_crowd(crowd: Crowd) -> Pool:
    words = crowd.tokens.flatten().cast(pa.large_string())
    if crowd.is_classification and words.equals(crowd.item_ids.cast(pa.large_string())):
        if crowd.attributes is None:
            raise InputError(
                "the items of this crowd have no words, only names: give a pool with their texts "
                "or a table of their attributes"
            )
        columns = {name: crowd.attributes[name] for name in crowd.attributes.column_names}
        return _of_frame(pa.table({**columns, "item": crowd.item_ids}))
    group = None if crowd.groups is None else crowd.document_of
    items = crowd.unanswered(crowd.tagset)
    if crowd.import_report.format != "texts":  # whose tokens are where they are said to be
        items = _with_texts(items)
    return _of_texts(items, Text(words, crowd.offsets, group))


def _with_texts(crowd: Crowd) -> Crowd:
    """Return a crowd with the text of every item; without one its tokens are joined."""
    texts, starts = Strings(pa.string()), array("i")
    for one in item_texts(crowd):
        texts.extend((one.value,))
        starts.extend(start for start, _ in one.bounds)
    return replace(crowd, texts=texts.done(), token_start=np.frombuffer(starts, np.int32))


def _of_array(rows: NDArray[Any]) -> Pool:
    if rows.ndim != 2 or rows.dtype.kind not in "biuf":
        raise InputError(
            f"a matrix of attributes has a row per item and holds numbers, not {rows.dtype} of "
            f"shape {rows.shape}: give words as a DataFrame"
        )
    columns = {str(n): _finite(one, str(n)) for n, one in enumerate(rows.T.astype(np.float64))}
    return Pool(_numbers(len(rows)), columns=columns, given=rows)


def _of_frame(frame: Any) -> Pool:
    import narwhals as nw

    table = nw.from_native(frame, eager_only=True)
    key = next((name for name in IDS if name in table.columns), None)
    ids = _numbers(len(table)) if key is None else _ids(table[key].to_list(), key)
    names = [name for name in table.columns if name != key]
    columns = {str(name): _cells(table[name], str(name)) for name in names}
    return Pool(ids, columns=columns, given=frame)


def _ids(values: list[Any], column: str) -> pa.Array:
    for row, value in enumerate(values):
        if value is None or value != value:  # noqa: PLR0124 - NaN
            raise InputError(f"column {column}, row {row}: an item has no id")
    return pa.array([str(value) for value in values], pa.string())


def _cells(column: Any, name: str) -> Cells:
    """Return a column of a table as numbers or as strings."""
    if column.dtype.is_numeric():
        numbers = column.to_arrow().cast(pa.float64())
        return _finite(np.array(numbers.to_numpy(zero_copy_only=False), np.float64), name)
    try:
        words = column.to_arrow().cast(pa.string())
    except (pa.ArrowException, TypeError, ValueError):  # objects of several types
        words = pa.array([None if cell is None else str(cell) for cell in column.to_list()])
    return words.combine_chunks() if isinstance(words, pa.ChunkedArray) else words


def _finite(numbers: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    bad = np.flatnonzero(np.isinf(numbers))
    if len(bad):
        raise InputError(f"column {name}, row {bad[0]}: a number must be finite, or missing")
    return numbers
