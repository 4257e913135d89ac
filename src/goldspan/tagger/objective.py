"""The objective of a chain model and its gradient (MATH section 5).

    -L(w) = sum_n weight_n ln Z_n - target . w - sum_m weight_m ln Z_m(known) + c2 |w|^2

The first sum is over all items, the second over those known in part: ln Z(known) sums over the
sequences that agree with what is known. Both need the same forward-backward, once with every tag
and once with those allowed, and their expected counts have opposite signs. First the shares of the
tokens are found, by shards of items; then every feature sums up the shares of its tokens, by shards
of features, so that no two threads write to one place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from goldspan.protocols import Runner
from goldspan.tagger.columns import Columns, Merged
from goldspan.tagger.features import Features
from goldspan.tagger.kernels.columns import gradient_step
from goldspan.tagger.kernels.training import expected_step
from goldspan.tagger.kernels.vectors import dot
from goldspan.tagger.targets import Clamp, Masks, Targets
from goldspan.tagger.weights import Floats, Weights

ENTRIES_PER_SHARD = 1 << 18
MAX_SHARDS = 8
ALL = np.zeros((0, 0), np.bool_)
"""Nothing is forbidden."""


class Part(NamedTuple):
    """A shard of items and the passes over them, each with its weights and allowed tags."""

    features: Features
    passes: tuple[Clamp, ...]


def cut(features: Features, passes: Sequence[Clamp]) -> list[Part]:
    """Cut items into shards of about equal work; depends on the input only."""
    n_items = len(features.offsets) - 1
    n_shards = min(_n_shards(features), max(1, n_items))
    work = features.bounds[features.offsets - features.offsets[0]] - features.bounds[0]
    edges = np.searchsorted(work, work[-1] * np.arange(1, n_shards) // n_shards)
    edges = np.unique(np.concatenate([[0], edges, [n_items]]))
    parts = []
    for a, b in pairwise(edges.tolist()):
        tokens = slice(*(features.offsets[[a, b]] - features.offsets[0]))
        own = (Clamp(one.allowed[tokens], one.weight[a:b]) for one in passes)
        kept = tuple(one for one in own if one.weight.any())
        parts.append(Part(features.items(a, b), kept))
    return parts


class Expected(NamedTuple):
    """What a shard of items expects.

    Attributes:
        log_z: The weighted sum of ln Z over items and passes.
        share: float64 [n_tokens, J], of the tokens.
        chain: float64 [J + J * J + J], of first tags, steps and last tags.
    """

    log_z: float
    share: Floats
    chain: Floats


def expect(part: Part, params: tuple[Floats, ...]) -> Expected:
    """Do the forward-backward of some items."""
    state, start, step, end = params
    f, n_labels = part.features, len(start)
    share = np.zeros((f.n_tokens, n_labels))
    counts = Weights.zeros(0, n_labels)
    log_z = 0.0
    for allowed, weight in part.passes:
        log_z += expected_step(
            f.offsets, f.bounds, f.ids, f.values, weight, allowed, state, start, step, end,
            share, counts.start, counts.step, counts.end,
        )  # fmt: skip
    return Expected(log_z, share, counts.vector)


@dataclass(frozen=True, eq=False)
class _Slice:
    """A shard of features, from the first to the one before the last."""

    columns: Columns
    root: Floats
    target: Floats
    first: int
    last: int


class Objective:
    """Gives -L(w) and its gradient for the merged weights.

    Args:
        merged: The features.
        targets: What should be learnt.
        masks: What is impossible.
        c2: Penalty.
        runner: Where to work.
        bias: Whether the first and the last tag have weights.
    """

    def __init__(
        self, merged: Merged, targets: Targets, masks: Masks, c2: float, runner: Runner, bias: bool
    ) -> None:
        self._shape = len(merged.root), targets.counts.n_labels
        self._root, self._masks = merged.root, masks
        self._c2, self._runner, self._bias = c2, runner, bias
        known = [Clamp(one.allowed, -one.weight) for one in targets.clamps]
        self._parts = cut(merged.features, [Clamp(ALL, targets.weight), *known])
        target = merged.join(targets.counts)
        state = Weights.of_vector(target, *self._shape).state
        self._chain_target = target[state.size :]
        self._slices = [
            _Slice(merged.columns.between(a, b), merged.root[a:b], state[a:b], a, b)
            for a, b in merged.columns.cut(_n_shards(merged.features))
        ]
        self._gradient = np.empty_like(target)

    def __call__(self, vector: Floats) -> tuple[float, Floats]:
        """Give value and gradient at a point; the gradient is overwritten by the next call."""
        weights = Weights.of_vector(vector, *self._shape)
        state = weights.state * self._root[:, None]
        params = (state, *self._masks.exponentials(weights))
        found = self._runner.map(expect, self._parts, params)
        share = np.concatenate([one.share for one in found])
        rows = self._runner.map(_gradient, self._slices, (share, weights.state, self._c2))
        value = sum(one.log_z for one in found) + sum(terms for terms, _ in rows)
        for one, (_, row) in zip(self._slices, rows, strict=True):
            out = Weights.of_vector(self._gradient, *self._shape).state
            out[one.first : one.last] = row
        return value + self._of_chain(vector, found), self._gradient

    def _of_chain(self, vector: Floats, found: Sequence[Expected]) -> float:
        """Write the gradient of the weights of steps; give their terms."""
        n_state = self._shape[0] * self._shape[1]
        own, out = vector[n_state:], self._gradient[n_state:]
        out[:] = sum(one.chain for one in found)
        out += 2.0 * self._c2 * own - self._chain_target
        if not self._bias:
            ends = Weights.of_vector(out, 0, self._shape[1])
            ends.start[:] = 0.0
            ends.end[:] = 0.0
        return float(self._c2 * dot(own, own) - dot(self._chain_target, own))


def _gradient(one: _Slice, params: tuple[Floats, Floats, float]) -> tuple[float, Floats]:
    share, weights, c2 = params
    out = np.empty_like(one.target)
    own = weights[one.first : one.last]
    terms = gradient_step(*one.columns, one.root, share, one.target, own, c2, out)
    return float(terms), out


def _n_shards(features: Features) -> int:
    return int(np.clip(len(features.ids) // ENTRIES_PER_SHARD, 1, MAX_SHARDS))
