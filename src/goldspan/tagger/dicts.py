"""Features that somebody else made: lists of dictionaries, as sklearn-crfsuite takes them.

A string value makes the feature `name:value`, a number the feature `name` with that value, True the
feature `name` with 1, False none; nested dictionaries, lists and sets are joined with a colon.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from goldspan.errors import InputError
from goldspan.tagger.features import Features, Text, check_numbering, hash64


def is_dicts(X: Any) -> bool:
    """Say whether items hold dictionaries of features."""
    if isinstance(X, Text | Features | str):
        return False
    return isinstance(next((token for item in X for token in item), None), Mapping)


@dataclass(frozen=True, eq=False)
class DictFeatures:
    """Numbers of named features.

    Attributes:
        number: Of every feature seen at training; empty with hashing.
        hash_bits: Features are hashed into 2 ** hash_bits numbers; 0: they have numbers of their
            own.
    """

    number: Mapping[str, int]
    hash_bits: int = 0

    @classmethod
    def fit(
        cls, X: Sequence[Sequence[Mapping[str, Any]]], min_count: int = 1, hash_bits: int = 0
    ) -> DictFeatures:
        """Number the features of some items, in sorted order."""
        check_numbering(min_count, hash_bits)
        if hash_bits:
            return cls({}, hash_bits)
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
        return 1 << self.hash_bits if self.hash_bits else len(self.number)

    def transform(self, X: Sequence[Sequence[Mapping[str, Any]]]) -> Features:
        """Find the features of items.

        Raises:
            InputError: A value is NaN or infinite, or neither number nor string.
        """
        ids: list[int] = []
        number = dict(self.number)
        values: list[float] = []
        bounds, offsets = [0], [0]
        for n, item in enumerate(X):
            for t, token in enumerate(item):
                for name, value in _pairs(token):
                    if not math.isfinite(value):
                        raise InputError(f"item {n} token {t}: feature {name!r} is {value}")
                    place = self._place(name, number)
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
        """Say what a feature is."""
        return f"hash {feature}" if self.hash_bits else self._names[feature]

    def _place(self, name: str, number: dict[str, int]) -> int:
        """Give the number of a feature, -1 for none; `number` remembers hashes."""
        if self.hash_bits and name not in number:
            number[name] = hash64(name) >> (64 - self.hash_bits)
        return number.get(name, -1)

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
