"""Features: templates, dictionaries, columns of files, documents."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan._arrays import rows_of
from goldspan.errors import InputError, UnknownNameError
from goldspan.params import Whole, require
from goldspan.tagger.kernels import (
    Floats,
    Weights,
    dense_counts,
    dense_step,
    fill_columns,
    mark_columns,
    number_groups,
    target_step,
    unary_step,
)
from goldspan.tagger.network import Vectors
from goldspan.tagger.text import STRING, Text

__all__ = ["STRING", "Text"]  # of another module; all else here is known by its name

# --------------------------------------------------------------------------------------------------
# What a word's document says of it: how it is written elsewhere.


def in_document(
    name: str,
    offsets: NDArray[np.int64],
    group: NDArray[np.int64] | None,
    words: Sequence[str],
    code: NDArray[Any],
) -> pa.Array:
    """Return how a token's word is written elsewhere in its document."""
    # `doc_title`: whether it is capitalised somewhere that does not begin an item
    # offsets int64 [n_items + 1]
    # group int64 [n_items], document of every item; None: every item is one
    # code int [n_tokens], index into them
    lower, number = np.unique([word.lower() for word in words] or [""], return_inverse=True)
    titled = np.array([word[:1].isupper() for word in words] or [False])
    small = np.array([word.islower() for word in words] or [False])
    n_items = len(offsets) - 1
    item = np.repeat(np.arange(n_items), np.diff(offsets))
    document = np.arange(n_items) if group is None else group
    begins = np.zeros(len(code) + 1, np.bool_)
    begins[offsets[:-1]] = True
    pair = document[item] * len(lower) + number[code]
    _, place = np.unique(pair, return_inverse=True)
    n_pairs = int(place.max(initial=-1)) + 1
    title = np.bincount(place, titled[code] & ~begins[:-1], n_pairs)[place] > 0
    lowered = np.bincount(place, small[code], n_pairs)[place] > 0
    found = {
        "doc_title": np.where(title, "1", "0"),
        "doc_lower": np.where(lowered, "1", "0"),
        "doc_kinds": np.char.add(np.where(title, "t", "-"), np.where(lowered, "l", "-")),
    }
    return pa.array(found[name]).cast(pa.large_string())


# --------------------------------------------------------------------------------------------------
# What a word looks like: functions from a word to the values that templates name.


MAX_AFFIX = 4


def shape(word: str) -> str:
    """Return the shape: letters to X and x, digits to 9, the rest as it is.

    >>> shape("McDonald-12")
    'XxXxxxxx-99'
    """
    return "".join(_class(character) for character in word)


def short_shape(word: str) -> str:
    """Return the shape with runs made one.

    >>> short_shape("McDonald-12")
    'XxXx-9'
    """
    return "".join(key for key, _ in groupby(shape(word)))


def digits(word: str) -> str:
    """Return the word with its digits made 9, "" if it has none.

    >>> digits("1996-08-22"), digits("word")
    ('9999-99-99', '')
    """
    found = "".join("9" if character.isdigit() else character for character in word)
    return found if found != word or "9" in word else ""


def kind(word: str) -> str:
    """Return what kind of word it is: upper, title, lower, mixed, number, punctuation or code.

    >>> [kind(word) for word in ("USA", "Rome", "city", "iPod", "19.5", "--", "B-52")]
    ['upper', 'title', 'lower', 'mixed', 'number', 'punctuation', 'code']
    """
    if not any(character.isalnum() for character in word):
        return "punctuation"
    if not any(character.isalpha() for character in word):
        return "number"
    if any(character.isdigit() for character in word):
        return "code"
    if word.isupper():
        return "initial" if len(word) == 1 else "upper"
    if word.islower():
        return "lower"
    return "title" if word[0].isupper() and word[1:].islower() else "mixed"


def _class(character: str) -> str:
    if character.isupper():
        return "X"
    if character.isalpha():
        return "x"
    return "9" if character.isdigit() else character


def _affix(word: str, length: int) -> str:
    """Return the first characters, or with a negative length the last; "" if it has no more."""
    if len(word) <= abs(length):
        return ""
    return word[:length] if length > 0 else word[length:]


ATTRIBUTES: dict[str, Callable[[str], str]] = {
    "word": lambda word: word,
    "lower": str.lower,
    "shape": shape,
    "short_shape": short_shape,
    "digits": digits,
    "kind": kind,
    "is_title": lambda word: "1" if word[:1].isupper() else "",
    "is_upper": lambda word: "1" if word.isupper() and len(word) > 1 else "",
    "has_digit": lambda word: "1" if any(c.isdigit() for c in word) else "",
    "has_hyphen": lambda word: "1" if "-" in word else "",
    "is_punctuation": lambda word: "1" if not any(c.isalnum() for c in word) else "",
    "length": lambda word: str(min(len(word), 12)),
    **{f"prefix{n}": partial(_affix, length=n) for n in range(1, MAX_AFFIX + 1)},
    **{f"suffix{n}": partial(_affix, length=-n) for n in range(1, MAX_AFFIX + 1)},
}
"""The attributes by name."""


# --------------------------------------------------------------------------------------------------
# Feature templates as data: `lower`, `lower[-1]`, `kind[-1]|kind`, `column:pos[1]`.


COLUMN = "column:"
DOCUMENT = ("doc_title", "doc_lower", "doc_kinds")
"""Attributes that look at all of the token's document."""
_PART = re.compile(r"^(?P<name>[\w:.-]+)(\[(?P<place>[+-]?\d+)\])?$")


@dataclass(frozen=True, order=True)
class Part:
    """An attribute at a place."""

    name: str  # Of the attribute; `column:NAME` for a given column
    place: int = 0  # Tokens to the right (negative: left) of the token

    def __str__(self) -> str:
        """Write it as it is read."""
        return f"{self.name}[{self.place}]" if self.place else self.name


@dataclass(frozen=True)
class Template:
    """One or several parts, whose values together make a feature."""

    parts: tuple[Part, ...]

    @classmethod
    def parse(cls, text: str) -> Template:
        """Read a template.

        >>> Template.parse("lower[-1]|kind").parts
        (Part(name='lower', place=-1), Part(name='kind', place=0))
        """
        parts = []
        for piece in str(text).split("|"):
            found = _PART.match(piece.strip())
            if not found:
                raise InputError(
                    f"template {text!r}: {piece!r} must look like lower, lower[-1] or column:pos[1]"
                )
            name = found["name"]
            known = name in ATTRIBUTES or name in DOCUMENT
            if not known and not name.startswith(COLUMN):
                names = [*ATTRIBUTES, *DOCUMENT, f"{COLUMN}NAME"]
                raise UnknownNameError("attribute", name, names)
            parts.append(Part(name, int(found["place"] or 0)))
        return cls(tuple(parts))

    def __str__(self) -> str:
        """Write it as it is read."""
        return "|".join(map(str, self.parts))


DEFAULT: tuple[str, ...] = (
    "word",
    "lower",
    "shape",
    "short_shape",
    "kind",
    "digits",
    *(f"{side}fix{n}" for side in ("pre", "suf") for n in (1, 2, 3, 4)),
    "is_title",
    "is_upper",
    "has_digit",
    "has_hyphen",
    *[f"{name}[{place}]" for place in ((-2, -1, 1, 2)) for name in (("lower", "kind", "suffix3"))],
    *[f"{name}[{place}]" for place in ((-1, 1)) for name in (("short_shape",))],
    "lower[-1]|lower",
    "lower|lower[1]",
    "kind[-1]|kind",
    "kind|kind[1]",
    "kind[-1]|kind|kind[1]",
    "lower[-1]|kind",
    "kind|lower[1]",
    "doc_title|kind",
    "doc_lower|kind",
)
"""What taggers use unless they are told otherwise."""

RODRIGUES: tuple[str, ...] = (
    "lower",
    *(f"{side}fix{n}" for side in ("pre", "suf") for n in (1, 2, 3, 4)),
    "is_title",
    "is_upper",
    "has_digit",
    "has_hyphen",
    "is_punctuation",
    *[f"{name}[{place}]" for place in ((-2, -1, 1, 2)) for name in (("lower", "is_title"))],
)
"""The features of Rodrigues et al. 2013, as far as the text describes them."""

HMM: tuple[str, ...] = ("lower", "suffix3", "short_shape", "lower[-1]", "lower[1]")
"""Few features that overlap little, for the model that takes them to be independent."""

SETS: dict[str, tuple[str, ...]] = {"default": DEFAULT, "rodrigues": RODRIGUES, "hmm": HMM}


def read_templates(source: str | Path | Iterable[str]) -> tuple[Template, ...]:
    """Take templates from a named set, a TOML file (`templates = […]`), or a list."""
    if isinstance(source, str) and source in SETS:
        texts: Iterable[str] = SETS[source]
    elif isinstance(source, str | Path):
        import tomllib

        path = Path(source)
        if path.suffix != ".toml":
            raise UnknownNameError("feature set", str(path), [*SETS, "FILE.toml"])
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: {error}") from None
        listed = content.get("templates")
        if not isinstance(listed, list) or not all(isinstance(text, str) for text in listed):
            raise InputError(f'{path}: it must hold a list of strings: templates = ["lower", …]')
        texts = listed
    else:
        texts = source
    found = tuple(dict.fromkeys(Template.parse(text) for text in texts))
    if not found:
        raise InputError("there is no feature template")
    return found


# --------------------------------------------------------------------------------------------------
# From words to numbered features, without a loop over tokens.


NONE, BEFORE, AFTER, FIRST = 0, 1, 2, 3
"""Codes of a part: no value, before the item, after it; values begin at FIRST."""


@dataclass(frozen=True, eq=False)
class Features:
    """The features of tokens, as rows of a sparse matrix, and beside it a dense one.

    Dense features have the last numbers of all: the D columns of `vectors` come after those that
    `ids` may name.
    """

    offsets: NDArray[np.int64]  # [n_items + 1], tokens of the items
    bounds: NDArray[np.int64]  # [n_tokens + 1]
    ids: NDArray[np.int32]  # [n_features_of_all_tokens]
    values: NDArray[np.float64]  # float64, the same length; empty if all are 1
    # [n_rows, D], shared by all selections of items; D = 0 without any
    vectors: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))  # [n_tokens]

    @property
    def n_tokens(self) -> int:
        """Number of tokens."""
        return len(self.bounds) - 1

    @property
    def n_dense(self) -> int:
        """Number of dense features, D."""
        return int(self.vectors.shape[1])

    def scores(self, state: Floats) -> Floats:
        """Return the summed weights of every token's features, float64 [n_tokens, J]."""
        # state float64 [n_features, J]
        state = np.ascontiguousarray(state, np.float64)
        unary = np.empty((self.n_tokens, state.shape[1]))
        unary_step(self.bounds, self.ids, self.values, self.dense_scores(state), state, unary)
        return unary

    def dense_scores(self, state: Floats) -> Floats:
        """Return the part of the dense features in `scores`; empty without any."""
        if not self.n_dense:
            return np.zeros((0, state.shape[1]))
        base = np.zeros((self.n_tokens, state.shape[1]))
        dense_step(self.vectors, self.rows, state[len(state) - self.n_dense :], base)
        return base

    def count(self, share: Floats, counts: Floats) -> None:
        """Add what falls to every token to the counts of its features."""
        # share float64 [n_tokens, J]
        # counts float64 [n_features, J], added to
        target_step(self.bounds, self.ids, self.values, share, counts)
        if self.n_dense:
            own = counts[len(counts) - self.n_dense :]
            dense_counts(self.vectors, self.rows, np.asarray(share, np.float64), own)

    def compact(self) -> Features:
        """Return the same with vectors that no other items share; a copy, if there are any."""
        if not self.n_dense:
            return self
        return replace(self, vectors=self.vectors[self.rows], rows=np.arange(self.n_tokens))

    def items(self, first: int, last: int) -> Features:
        """Return a slice of items as views; offsets and bounds keep their origin."""
        start = self.offsets[first] - self.offsets[0]
        stop = self.offsets[last] - self.offsets[0]
        bounds = self.bounds[start : stop + 1]
        own = slice(bounds[0] - self.bounds[0], bounds[-1] - self.bounds[0])
        values = self.values[own] if len(self.values) else self.values
        rows = self.rows[start:stop] if self.n_dense else self.rows
        offsets = self.offsets[first : last + 1]
        return Features(offsets, bounds, self.ids[own], values, self.vectors, rows)

    def select(self, items: NDArray[np.int64]) -> Features:
        """Return some items, in the order given."""
        offsets, tokens = rows_of(self.offsets, items)
        bounds, place = rows_of(self.bounds, tokens)
        values = self.values[place] if len(self.values) else self.values
        rows = self.rows[tokens] if self.n_dense else self.rows
        return Features(offsets, bounds, self.ids[place], values, self.vectors, rows)


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """Templates with the values that they took at training.

    Made by `FeatureMap.fit`.
    """

    templates: tuple[Template, ...]
    values: Mapping[str, pa.Array]  # By attribute the values seen, Arrow string arrays, sorted
    keys: tuple[NDArray[np.int64], ...]  # Per template the sorted codes of its features, int64
    vectors: Vectors | None = None  # A frozen encoder whose vectors of words are features, too

    @classmethod
    def fit(
        cls,
        text: Text,
        templates: Sequence[Template],
        *,
        min_count: int = 1,
        vectors: str | None = None,
    ) -> tuple[FeatureMap, Features]:
        """Number the features of a text; `vectors` names a frozen encoder that gives more."""
        require("min_count", min_count, Whole(1))
        frozen = Vectors.fit(vectors, text) if vectors else None
        empty = cls(tuple(templates), {}, ())
        raw = empty._attributes(text)
        values = {name: pc.unique(column).drop_null().sort() for name, column in raw.items()}
        bare = cls(tuple(templates), values, ())
        bare._check_radices()
        codes = bare._codes(text, raw)
        keys = []
        for code in codes:
            found, counts = np.unique(code[code > NONE], return_counts=True)
            keys.append(found[counts >= min_count])
        made = cls(tuple(templates), values, tuple(keys), frozen)
        return made, made._with_vectors(made._numbered(text, codes), text)

    @property
    def n_sparse(self) -> int:
        """Number of features that templates make."""
        return sum(map(len, self.keys))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.n_sparse + (self.vectors.size if self.vectors else 0)

    def transform(self, text: Text) -> Features:
        """Find the features of another text; what was not seen at training has none."""
        found = self._numbered(text, self._codes(text, self._attributes(text)))
        return self._with_vectors(found, text)

    def _with_vectors(self, features: Features, text: Text) -> Features:
        if self.vectors is None:
            return features
        rows = np.arange(features.n_tokens)
        return replace(features, vectors=self.vectors.of(text), rows=rows)

    def name(self, feature: int) -> str:
        """Return what a feature is, for example `lower[-1]=mr`."""
        if self.vectors and self.n_sparse <= feature < self.n_features:
            return f"vector {feature - self.n_sparse}"
        for template, keys in zip(self.templates, self.keys, strict=True):
            if feature < len(keys):
                return f"{template}={self._words(template, int(keys[feature]))}"
            feature -= len(keys)
        raise InputError(f"there is no feature {feature}: there are {self.n_features}")

    def _words(self, template: Template, key: int) -> str:
        words = []
        for part in reversed(template.parts):
            key, code = divmod(key, self._radix(part))
            marks = {BEFORE: "<start>", AFTER: "<end>"}
            words.append(marks.get(code) or self.values[part.name][code - FIRST].as_py())
        return "|".join(reversed(words))

    def _radix(self, part: Part) -> int:
        return len(self.values[part.name]) + FIRST

    def _check_radices(self) -> None:
        for template in self.templates:
            if math.prod(map(self._radix, template.parts)) > np.iinfo(np.int64).max:
                raise InputError(f"template {template} has too many values: join fewer parts")

    def _attributes(self, text: Text) -> dict[str, pa.Array]:
        """Compute the values of all attributes, Arrow string arrays [n_tokens], null for none."""
        names = list(dict.fromkeys(part.name for t in self.templates for part in t.parts))
        coded = text.words.dictionary_encode()
        words, code = coded.dictionary.to_pylist(), coded.indices
        found = {}
        for name in names:
            if name in DOCUMENT:
                found[name] = in_document(name, text.offsets, text.group, words, code.to_numpy())
            elif name.startswith(COLUMN):
                column = name.removeprefix(COLUMN)
                if column not in text.columns:
                    raise InputError(
                        f"template {name} needs a column {column!r}; given: "
                        f"{', '.join(text.columns) or 'none'}"
                    )
                found[name] = text.columns[column]
            else:
                values = pa.array([ATTRIBUTES[name](word) or None for word in words], STRING)
                found[name] = values.take(code)
        return found

    def _codes(self, text: Text, raw: Mapping[str, pa.Array]) -> list[NDArray[np.int64]]:
        """Return the code of every template at every token, int64 [n_tokens]; 0 for none."""
        plain = {name: self._known(name, column) for name, column in raw.items()}
        shifted: dict[Part, NDArray[np.int64]] = {}
        for part in dict.fromkeys(part for t in self.templates for part in t.parts):
            at, before, after = _moved(text, part.place)
            outside = np.where(before, BEFORE, AFTER)
            shifted[part] = np.where(before | after, outside, plain[part.name][at])
        codes = []
        for template in self.templates:
            code = np.zeros(text.n_tokens, np.int64)
            present = np.ones(text.n_tokens, np.bool_)
            for part in template.parts:
                code = code * self._radix(part) + shifted[part]
                present &= shifted[part] > NONE
            codes.append(np.where(present, code, NONE))
        return codes

    def _known(self, name: str, column: pa.Array) -> NDArray[np.int64]:
        coded = column.dictionary_encode()
        place = pc.index_in(coded.dictionary, value_set=self.values[name])
        number = np.append(pc.fill_null(place, NONE - FIRST).to_numpy() + FIRST, NONE)
        index = pc.fill_null(coded.indices, len(number) - 1).to_numpy()
        return np.asarray(number[index], np.int64)

    def _numbered(self, text: Text, codes: Sequence[NDArray[np.int64]]) -> Features:
        ids = np.full((text.n_tokens, len(self.templates)), -1, np.int32)
        base = 0
        for column, (code, keys) in enumerate(zip(codes, self.keys, strict=True)):
            if len(keys):
                at = np.minimum(np.searchsorted(keys, code), len(keys) - 1)
                ids[:, column] = np.where(keys[at] == code, base + at, -1)
            base += len(keys)
        return _sparse(text.offsets, ids)


def _moved(
    text: Text, place: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the token so many places from every one, and which lie before and after its item."""
    at = np.arange(text.n_tokens) + place
    first, last = (
        np.repeat(edge, np.diff(text.offsets)) for edge in (text.offsets[:-1], text.offsets[1:])
    )
    return np.clip(at, 0, max(0, text.n_tokens - 1)), at < first, at >= last


def _sparse(offsets: NDArray[np.int64], ids: NDArray[np.int32]) -> Features:
    kept = ids >= 0
    bounds = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    return Features(offsets, bounds, ids[kept], np.zeros(0))


# --------------------------------------------------------------------------------------------------
# Features merged for training: those that the very same tokens have are one.


MIX = np.uint64(0x9E3779B97F4A7C15)
"""An odd number with its bits all over, for hashes."""


class Columns(NamedTuple):
    """A sparse matrix by its columns."""

    starts: NDArray[np.int64]  # [n_features + 1]; feature f has the entries starts[f]:starts[f + 1]
    tokens: NDArray[np.int32]  # [n_entries], ascending within a feature
    values: Floats  # [n_entries]; empty if all are 1

    @classmethod
    def of(cls, features: Features, n_features: int) -> Columns:
        """List the tokens of every feature."""
        sizes = np.bincount(features.ids, minlength=n_features)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        tokens = np.empty(len(features.ids), np.int32)
        values = np.empty(len(features.values))
        fill_columns(features.bounds, features.ids, features.values, starts, tokens, values)
        return cls(starts, tokens, values)

    def between(self, first: int, last: int) -> Columns:
        """Return a slice of features as views; starts keep their origin."""
        starts = self.starts[first : last + 1]
        own = slice(starts[0] - self.starts[0], starts[-1] - self.starts[0])
        values = self.values[own] if len(self.values) else self.values
        return Columns(starts, self.tokens[own], values)

    def cut(self, n_parts: int) -> list[tuple[int, int]]:
        """Return ranges of features with about as many entries each."""
        n_features = len(self.starts) - 1
        work = self.starts - self.starts[0] + np.arange(n_features + 1)
        edges = np.searchsorted(work, work[-1] * np.arange(1, n_parts) // n_parts)
        return list(pairwise(np.unique(np.concatenate([[0], edges, [n_features]])).tolist()))


@dataclass(frozen=True, eq=False)
class Merged:
    """Features with equal ones made one, and those that no token has left out."""

    group: NDArray[np.int32]  # [n_features], the number of a feature after merging, -1 for none
    root: Floats  # [n_groups], the square root of how many a group has
    features: Features  # The merged features of the tokens; their values are without `root`
    columns: Columns  # The same by their columns; those of dense features, the last ones, are empty

    @classmethod
    def of(cls, features: Features, n_features: int) -> Merged:
        """Merge; groups are numbered by their first token, so that neighbours stand together."""
        n_sparse = n_features - features.n_dense
        every = Columns.of(features, n_sparse)
        group = _groups(every, features.n_tokens)
        dense = int(group.max(initial=-1)) + 1 + np.arange(features.n_dense, dtype=np.int32)
        group = np.concatenate([group, dense])
        n_groups = int(group.max(initial=-1)) + 1
        head = np.zeros(n_groups, np.int64)
        known = np.flatnonzero(group >= 0)[::-1]
        head[group[known]] = known
        new = np.full(n_features, -1, np.int32)
        new[head] = np.arange(n_groups)
        # The features whose new number is not -1
        ids = new[features.ids]
        kept = ids >= 0
        before = np.concatenate([[0], np.cumsum(kept)])
        bounds = before[features.bounds - features.bounds[0]]
        values = features.values[kept] if len(features.values) else features.values
        merged = replace(features, bounds=bounds, ids=ids[kept], values=values)
        root = np.sqrt(np.bincount(group[known], minlength=n_groups))
        return cls(group, root, merged, Columns.of(merged, n_groups))

    def count(self, share: Floats) -> Floats:
        """Sum up what falls to every token by its features, float64 [n_groups, J]."""
        # share float64 [n_tokens, J]
        counts, none = np.empty((len(self.root), share.shape[1])), np.zeros((0, share.shape[1]))
        columns = self.columns
        unary_step(columns.starts, columns.tokens, columns.values, none, share, counts)
        if self.features.n_dense:
            own = counts[-self.features.n_dense :]
            dense_counts(self.features.vectors, self.features.rows, share, own)
        return counts

    def join(self, weights: Weights) -> Floats:
        """Return the vector of the merged weights; differences within a group are lost."""
        merged = Weights.zeros(len(self.root), weights.n_labels)
        known = np.flatnonzero(self.group >= 0)
        places = np.arange(len(known) + 1)
        target_step(places, self.group[known], np.zeros(0), weights.state[known], merged.state)
        merged.state[:] /= self.root[:, None]
        merged.start[:], merged.step[:], merged.end[:] = weights.start, weights.step, weights.end
        return merged.vector

    def split(self, vector: Floats, n_labels: int) -> Weights:
        """Return the weights of all features; 0 for those that no token has."""
        merged = Weights.of_vector(vector, len(self.root), n_labels)
        weights = Weights.zeros(len(self.group), n_labels)
        known = np.flatnonzero(self.group >= 0)
        weights.state[known] = (merged.state / self.root[:, None])[self.group[known]]
        weights.start[:], weights.step[:], weights.end[:] = merged.start, merged.step, merged.end
        return weights


def _groups(columns: Columns, n_tokens: int) -> NDArray[np.int32]:
    """Return the group of every feature, numbered by its first token; -1 for no token."""
    n_features = len(columns.starts) - 1
    token_marks = (np.arange(1, n_tokens + 1, dtype=np.uint64)) * MIX
    token_marks = (token_marks ^ (token_marks >> np.uint64(29))) * MIX
    marks = np.empty(n_features, np.uint64)
    mark_columns(columns.starts, columns.tokens, token_marks, marks)
    group = np.empty(n_features, np.int32)
    n_groups = number_groups(np.argsort(marks, kind="stable"), marks, *columns, group)
    known = np.flatnonzero(group >= 0)
    first = np.zeros(n_groups, np.int32)
    first[group[known]] = columns.tokens[columns.starts[:-1][known]]
    place = np.empty(n_groups + 1, np.int32)
    place[np.argsort(first, kind="stable")] = np.arange(n_groups)
    place[-1] = -1
    return place[group]


# --------------------------------------------------------------------------------------------------
# Features that somebody else made: lists of dictionaries, as sklearn-crfsuite takes them.


def is_dicts(X: Any) -> bool:
    """Return whether items hold dictionaries of features."""
    if isinstance(X, Text | Features | str):
        return False
    return isinstance(next((token for item in X for token in item), None), Mapping)


@dataclass(frozen=True, eq=False)
class DictFeatures:
    """Numbers of named features."""

    number: Mapping[str, int]  # Of every feature seen at training

    @classmethod
    def fit(cls, X: Sequence[Sequence[Mapping[str, Any]]], min_count: int = 1) -> DictFeatures:
        """Number the features of some items, in sorted order."""
        require("min_count", min_count, Whole(1))
        counts: dict[str, int] = {}
        for item in X:
            for token in item:
                for name, _ in _pairs(token):
                    counts[name] = counts.get(name, 0) + 1
        kept = sorted(name for name, count in counts.items() if count >= min_count)
        return cls({name: i for i, name in enumerate(kept)})

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.number)

    def transform(self, X: Sequence[Sequence[Mapping[str, Any]]]) -> Features:
        """Find the features of items."""
        ids: list[int] = []
        values: list[float] = []
        bounds, offsets = [0], [0]
        for n, item in enumerate(X):
            for t, token in enumerate(item):
                for name, value in _pairs(token):
                    if not math.isfinite(value):
                        raise InputError(f"item {n} token {t}: feature {name!r} is {value}")
                    place = self.number.get(name, -1)
                    if place >= 0:
                        ids.append(place)
                        values.append(value)
                bounds.append(len(ids))
            offsets.append(len(bounds) - 1)
        floats = np.array(values, np.float64)
        return Features(
            np.array(offsets, np.int64),
            np.array(bounds, np.int64),
            np.array(ids, np.int32),
            np.zeros(0) if (floats == 1).all() else floats,
        )

    def name(self, feature: int) -> str:
        """Return what a feature is."""
        return self._names[feature]

    @cached_property
    def _names(self) -> list[str]:
        return sorted(self.number, key=self.number.__getitem__)


def _pairs(token: Any, before: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(token, Mapping):
        for key, value in token.items():
            yield from _value(f"{before}{key}", value)
    else:
        raise InputError(f"features must be dictionaries, not {type(token).__name__}")


def _value(name: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, bool | np.bool_):
        if value:
            yield name, 1.0
    elif isinstance(value, str):
        yield f"{name}:{value}", 1.0
    elif isinstance(value, int | float | np.number):
        yield name, float(value)
    elif isinstance(value, Mapping):
        yield from _pairs(value, f"{name}:")
    elif isinstance(value, list | tuple | set | frozenset):
        for one in sorted(value) if isinstance(value, set | frozenset) else value:
            yield f"{name}:{one}", 1.0
    else:
        raise InputError(
            f"feature {name!r} is a {type(value).__name__}: a feature is a string, a number, a "
            "bool, or a list or dictionary of them"
        )
