"""From words to numbered features, without a loop over tokens.

Attributes are computed once per distinct word; a template is then a gather, a shift within items
and, for several parts, a mixed-radix number. Features are numbered by template and value; what is
rarer than `min_count`, or was not seen at training, has no number and counts for nothing.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan.errors import InputError
from goldspan.tagger.attributes import ATTRIBUTES
from goldspan.tagger.documents import in_document
from goldspan.tagger.parameters import check_whole
from goldspan.tagger.templates import COLUMN, DOCUMENT, GAZETTEER, Part, Template

NONE, BEFORE, AFTER, FIRST = 0, 1, 2, 3
"""Codes of a part: no value, before the item, after it; values begin at FIRST."""
MAX_HASH_BITS = 26


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
        """Give some items, in the order given."""
        lengths = np.diff(self.offsets)[items]
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        flat = np.repeat(self.offsets[items] - bounds[:-1], lengths) + np.arange(bounds[-1])
        rows = pa.array(flat)
        group = None if self.group is None else self.group[items]
        columns = {name: column.take(rows) for name, column in self.columns.items()}
        return Text(self.words.take(rows), bounds, group, columns)


@dataclass(frozen=True, eq=False)
class Features:
    """The features of tokens, as rows of a sparse matrix.

    Attributes:
        offsets: int64 [n_items + 1], tokens of the items.
        bounds: int64 [n_tokens + 1]; token t has the features ids[bounds[t]:bounds[t + 1]].
        ids: int32 [n_features_of_all_tokens].
        values: float64, the same length; empty if all are 1.
    """

    offsets: NDArray[np.int64]
    bounds: NDArray[np.int64]
    ids: NDArray[np.int32]
    values: NDArray[np.float64]

    @property
    def n_tokens(self) -> int:
        """Number of tokens."""
        return len(self.bounds) - 1

    def items(self, first: int, last: int) -> Features:
        """Give a slice of items as views; offsets and bounds keep their origin."""
        start = self.offsets[first] - self.offsets[0]
        stop = self.offsets[last] - self.offsets[0]
        bounds = self.bounds[start : stop + 1]
        own = slice(bounds[0] - self.bounds[0], bounds[-1] - self.bounds[0])
        values = self.values[own] if len(self.values) else self.values
        return Features(self.offsets[first : last + 1], bounds, self.ids[own], values)

    def select(self, items: NDArray[np.int64]) -> Features:
        """Give some items, in the order given."""
        lengths = np.diff(self.offsets)[items]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        tokens = np.repeat(self.offsets[items] - offsets[:-1], lengths) + np.arange(offsets[-1])
        sizes = np.diff(self.bounds)[tokens]
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        place = np.repeat(self.bounds[tokens] - bounds[:-1], sizes) + np.arange(bounds[-1])
        values = self.values[place] if len(self.values) else self.values
        return Features(offsets, bounds, self.ids[place], values)


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """Templates with the values that they took at training.

    Made by `FeatureMap.fit`.

    Attributes:
        templates: The templates.
        values: By attribute the values seen, Arrow string arrays, sorted.
        keys: Per template the sorted codes of its features, int64; empty with hashing.
        gazetteers: Lower-case words by name, for `gazetteer:NAME`.
        hash_bits: Features are hashed into 2 ** hash_bits numbers; 0: they have numbers of their
            own.
    """

    templates: tuple[Template, ...]
    values: Mapping[str, pa.Array]
    keys: tuple[NDArray[np.int64], ...]
    gazetteers: Mapping[str, frozenset[str]] = field(default_factory=dict)
    hash_bits: int = 0

    @classmethod
    def fit(
        cls,
        text: Text,
        templates: Sequence[Template],
        *,
        min_count: int = 1,
        gazetteers: Mapping[str, Sequence[str]] | None = None,
        hash_bits: int = 0,
    ) -> tuple[FeatureMap, Features]:
        """Number the features of a text.

        Args:
            text: The items.
            templates: What features there are.
            min_count: Features that occur less often are left out.
            gazetteers: Lists of words by name; case does not count.
            hash_bits: 0, or the size of the hashed space as a power of 2.

        Raises:
            InputError: A column or gazetteer that a template names is missing.
        """
        check_numbering(min_count, hash_bits)
        lists = {
            name: frozenset(word.lower() for word in words)
            for name, words in (gazetteers or {}).items()
        }
        empty = cls(tuple(templates), {}, (), lists, hash_bits)
        raw = empty._attributes(text)
        if hash_bits:
            return empty, empty._hashed(text)
        values = {name: pc.unique(column).drop_null().sort() for name, column in raw.items()}
        bare = cls(tuple(templates), values, (), lists, hash_bits)
        bare._check_radices()
        codes = bare._codes(text, raw)
        keys = []
        for code in codes:
            found, counts = np.unique(code[code > NONE], return_counts=True)
            keys.append(found[counts >= min_count])
        made = cls(tuple(templates), values, tuple(keys), lists, 0)
        return made, made._numbered(text, codes)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return 1 << self.hash_bits if self.hash_bits else sum(map(len, self.keys))

    def transform(self, text: Text) -> Features:
        """Find the features of another text; what was not seen at training has none."""
        if self.hash_bits:
            return self._hashed(text)
        return self._numbered(text, self._codes(text, self._attributes(text)))

    def name(self, feature: int) -> str:
        """Say what a feature is, for example `lower[-1]=mr`."""
        if self.hash_bits:
            return f"hash {feature}"
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
                raise InputError(f"template {template} has too many values: use hash_bits")

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
                values = pa.array([self._value(name, word) or None for word in words], STRING)
                found[name] = values.take(code)
        return found

    def _value(self, name: str, word: str) -> str:
        if not name.startswith(GAZETTEER):
            return ATTRIBUTES[name](word)
        listed = name.removeprefix(GAZETTEER)
        if listed not in self.gazetteers:
            raise InputError(
                f"template {name} needs a gazetteer {listed!r}; given: "
                f"{', '.join(self.gazetteers) or 'none'}"
            )
        return "1" if word.lower() in self.gazetteers[listed] else ""

    def _codes(self, text: Text, raw: Mapping[str, pa.Array]) -> list[NDArray[np.int64]]:
        """Give the code of every template at every token, int64 [n_tokens]; 0 for none."""
        place = np.arange(text.n_tokens)
        item = np.repeat(np.arange(len(text.offsets) - 1), np.diff(text.offsets))
        first, last = text.offsets[:-1][item], text.offsets[1:][item]
        plain = {name: self._known(name, column) for name, column in raw.items()}
        shifted: dict[Part, NDArray[np.int64]] = {}
        for part in dict.fromkeys(part for t in self.templates for part in t.parts):
            at = place + part.place
            inside = plain[part.name][np.clip(at, 0, max(0, text.n_tokens - 1))]
            outside = np.where(at < first, BEFORE, AFTER)
            shifted[part] = np.where((at < first) | (at >= last), outside, inside)
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

    def _hashed(self, text: Text) -> Features:
        """Number features by a hash of their words; unseen values have hashes too."""
        ids = np.full((text.n_tokens, len(self.templates)), -1, np.int32)
        raw = self._attributes(text)
        marks = np.array([hash64("\0start"), hash64("\0end")], np.uint64)
        place = np.arange(text.n_tokens)
        item = np.repeat(np.arange(len(text.offsets) - 1), np.diff(text.offsets))
        first, last = text.offsets[:-1][item], text.offsets[1:][item]
        hashes = {name: _hashes(column) for name, column in raw.items()}
        for column, template in enumerate(self.templates):
            total = np.full(text.n_tokens, hash64(str(template)), np.uint64)
            present = np.ones(text.n_tokens, np.bool_)
            for part in template.parts:
                at = place + part.place
                value, known = hashes[part.name]
                inside = np.clip(at, 0, max(0, text.n_tokens - 1))
                outside = (at < first) | (at >= last)
                own = np.where(outside, np.where(at < first, *marks), value[inside])
                present &= outside | known[inside]
                total = (total ^ own) * np.uint64(0x9E3779B97F4A7C15)
                total ^= total >> np.uint64(29)
            number = (total >> np.uint64(64 - self.hash_bits)).astype(np.int32)
            ids[:, column] = np.where(present, number, -1)
        return _sparse(text.offsets, ids)


STRING = pa.large_string()


def _strings(values: Sequence[str], what: str) -> pa.Array:
    try:
        return pa.array(values, STRING)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError) as error:
        raise InputError(f"{what} must be strings: {error}") from None


def _sparse(offsets: NDArray[np.int64], ids: NDArray[np.int32]) -> Features:
    kept = ids >= 0
    bounds = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    return Features(offsets, bounds, ids[kept], np.zeros(0))


def check_numbering(min_count: int, hash_bits: int) -> None:
    """Check how features are to be numbered.

    Raises:
        InputError: No whole number, or out of range.
    """
    check_whole("hash_bits", hash_bits, 0, MAX_HASH_BITS)
    check_whole("min_count", min_count, 1)


def hash64(text: str) -> int:
    """Hash a string into 64 bits, the same in every process."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _hashes(column: pa.Array) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    coded = column.dictionary_encode()
    every = np.array([hash64(value) for value in coded.dictionary.to_pylist()] or [0], np.uint64)
    known = coded.indices.is_valid().to_numpy(zero_copy_only=False)
    return every[pc.fill_null(coded.indices, 0).to_numpy()], known


def _numbered(groups: Sequence[str], n_items: int) -> NDArray[np.int64]:
    if len(groups) != n_items:
        raise InputError(f"{len(groups)} groups for {n_items} items")
    _, number = np.unique(np.asarray(groups, object).astype(str), return_inverse=True)
    return number.astype(np.int64)
