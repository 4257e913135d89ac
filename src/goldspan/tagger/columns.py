"""Features merged for training: those that the very same tokens have are one.

Many features of a rare word stand where its others do: `word`, `lower`, `suffix4`, its pairs with
neighbours. Such features have the same gradient, and the prior makes their weights equal. k of them
with weight w each are one feature with the weight u = w sqrt(k) and the value sqrt(k): the scores
and the penalty are the same, and so are all inner products, with which L-BFGS does its work. On
news text two weights in five are saved, and the result is the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan.tagger.features import Features
from goldspan.tagger.kernels.columns import fill_columns, mark_columns, number_groups
from goldspan.tagger.weights import Floats, Weights

MIX = np.uint64(0x9E3779B97F4A7C15)
"""An odd number with its bits all over, for hashes."""


class Columns(NamedTuple):
    """A sparse matrix by its columns.

    Attributes:
        starts: int64 [n_features + 1]; feature f has the entries starts[f]:starts[f + 1].
        tokens: int32 [n_entries], ascending within a feature.
        values: float64 [n_entries]; empty if all are 1.
    """

    starts: NDArray[np.int64]
    tokens: NDArray[np.int32]
    values: Floats

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
        """Give a slice of features as views; starts keep their origin."""
        starts = self.starts[first : last + 1]
        own = slice(starts[0] - self.starts[0], starts[-1] - self.starts[0])
        values = self.values[own] if len(self.values) else self.values
        return Columns(starts, self.tokens[own], values)

    def cut(self, n_parts: int) -> list[tuple[int, int]]:
        """Give ranges of features with about as many entries each."""
        n_features = len(self.starts) - 1
        work = self.starts - self.starts[0] + np.arange(n_features + 1)
        edges = np.searchsorted(work, work[-1] * np.arange(1, n_parts) // n_parts)
        return list(pairwise(np.unique(np.concatenate([[0], edges, [n_features]])).tolist()))


@dataclass(frozen=True, eq=False)
class Merged:
    """Features with equal ones made one, and those that no token has left out.

    Attributes:
        group: int32 [n_features], the number of a feature after merging, -1 for none.
        root: float64 [n_groups], the square root of how many a group has.
        features: The merged features of the tokens; their values are without `root`.
        columns: The same by their columns.
    """

    group: NDArray[np.int32]
    root: Floats
    features: Features
    columns: Columns

    @classmethod
    def of(cls, features: Features, n_features: int) -> Merged:
        """Merge; groups are numbered by their first token, so that neighbours stand together."""
        every = Columns.of(features, n_features)
        group = _groups(every, features.n_tokens)
        n_groups = int(group.max(initial=-1)) + 1
        head = np.zeros(n_groups, np.int64)
        known = np.flatnonzero(group >= 0)[::-1]
        head[group[known]] = known
        new = np.full(n_features, -1, np.int32)
        new[head] = np.arange(n_groups)
        merged = _renumbered(features, new)
        root = np.sqrt(np.bincount(group[known], minlength=n_groups))
        return cls(group, root, merged, Columns.of(merged, n_groups))

    def join(self, weights: Weights) -> Floats:
        """Give the vector of the merged weights; differences within a group are lost."""
        merged = Weights.zeros(len(self.root), weights.n_labels)
        known = np.flatnonzero(self.group >= 0)
        group = self.group[known]
        for j in range(weights.n_labels):
            sums = np.bincount(group, weights.state[known, j], len(self.root))
            merged.state[:, j] = sums / self.root
        merged.start[:], merged.step[:], merged.end[:] = weights.start, weights.step, weights.end
        return merged.vector

    def split(self, vector: Floats, n_labels: int) -> Weights:
        """Give the weights of all features; 0 for those that no token has."""
        merged = Weights.of_vector(vector, len(self.root), n_labels)
        weights = Weights.zeros(len(self.group), n_labels)
        known = np.flatnonzero(self.group >= 0)
        weights.state[known] = (merged.state / self.root[:, None])[self.group[known]]
        weights.start[:], weights.step[:], weights.end[:] = merged.start, merged.step, merged.end
        return weights


def _groups(columns: Columns, n_tokens: int) -> NDArray[np.int32]:
    """Give the group of every feature, numbered by its first token; -1 for no token."""
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


def _renumbered(features: Features, new: NDArray[np.int32]) -> Features:
    """Give the features whose new number is not -1."""
    ids = new[features.ids]
    kept = ids >= 0
    before = np.concatenate([[0], np.cumsum(kept)])
    bounds = before[features.bounds - features.bounds[0]]
    values = features.values[kept] if len(features.values) else features.values
    return Features(features.offsets, bounds, ids[kept], values)
