"""Training a linear-chain CRF on hard or soft targets (MATH section 5).

    L(w) = sum_n [E_q score(y, x_n) - weight_n ln Z(x_n)] - c2 |w|^2

q is what is believed of the truth: one tag sequence, several with weights, or marginals. The first
term is linear in w, so that targets are summed up once; every evaluation is one forward-backward
per item, whatever the number of workers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from karat.errors import InputError
from karat.protocols import Runner
from karat.spans import Codec
from karat.tagger.features import Features
from karat.tagger.kernels.training import expected_step, target_step
from karat.tagger.kernels.vectors import dot, penalise
from karat.tagger.lbfgs import Minimum, minimise
from karat.tagger.weights import Floats, Weights

ENTRIES_PER_SHARD = 1 << 18
MAX_SHARDS = 8


@dataclass(frozen=True, eq=False)
class Targets:
    """What the expected counts of features should become, and how much every item weighs.

    Attributes:
        counts: Target counts in the places of the weights.
        weight: float64 [n_items], how many sequences an item stands for; 0 leaves it out.
    """

    counts: Weights
    weight: Floats

    @classmethod
    def of_marginals(
        cls,
        features: Features,
        n_features: int,
        probs: NDArray[Any],
        steps: Floats,
        weight: Floats,
    ) -> Targets:
        """Sum up soft targets.

        Args:
            features: The features.
            n_features: How many different ones there are.
            probs: float [n_tokens, J], marginals times the item's weight.
            steps: float64 [J, J], expected numbers of steps, weighted and summed.
            weight: float64 [n_items].
        """
        n_labels = probs.shape[1]
        counts = Weights.zeros(n_features, n_labels)
        target_step(features.bounds, features.ids, features.values, probs, counts.state)
        counts.step[:] = steps
        filled = np.flatnonzero(np.diff(features.offsets))
        origin = features.offsets[0]
        counts.start[:] = probs[features.offsets[:-1][filled] - origin].sum(axis=0)
        counts.end[:] = probs[features.offsets[1:][filled] - origin - 1].sum(axis=0)
        return cls(counts, weight)

    @classmethod
    def of_codes(
        cls,
        features: Features,
        n_features: int,
        codes: NDArray[np.int16],
        n_labels: int,
        weight: Floats | None = None,
    ) -> Targets:
        """Sum up one tag sequence per item, int16 [n_tokens]; all tags must be known."""
        lengths = np.diff(features.offsets)
        each = np.ones(len(lengths)) if weight is None else np.asarray(weight, np.float64)
        per_token = np.repeat(each, lengths)
        probs = np.zeros((len(codes), n_labels))
        probs[np.arange(len(codes)), codes] = per_token
        first = np.zeros(len(codes), np.bool_)
        first[(features.offsets[:-1] - features.offsets[0])[lengths > 0]] = True
        pair = codes[:-1].astype(np.int64) * n_labels + codes[1:]
        inside = ~first[1:]
        steps = np.bincount(pair[inside], per_token[1:][inside], n_labels**2).astype(np.float64)
        return cls.of_marginals(
            features, n_features, probs, steps.reshape(n_labels, n_labels), each
        )

    def add(self, other: Targets) -> Targets:
        """Give the sum with the targets of another label set of the same items."""
        total = self.counts.vector
        total += other.counts.vector
        counts = Weights.of_vector(total, *self.counts.state.shape)
        return Targets(counts, self.weight + other.weight)


@dataclass(frozen=True, eq=False)
class Masks:
    """What a sequence may do: 1 or 0 for the first tag, every step and the last tag."""

    start: Floats
    step: Floats
    end: Floats

    @classmethod
    def of(cls, codec: Codec, *, hard: bool) -> Masks:
        """Take them from a tag set; without `hard` everything is allowed."""
        if hard:
            parts = (codec.start_mask, codec.mask, codec.end_mask)
            return cls(*(part.astype(np.float64) for part in parts))
        n = len(codec.tags)
        return cls(np.ones(n), np.ones((n, n)), np.ones(n))

    def exponentials(self, weights: Weights) -> tuple[Floats, Floats, Floats]:
        """Give exp of the weights of steps, 0 where forbidden."""
        return (
            np.exp(weights.start) * self.start,
            np.exp(weights.step) * self.step,
            np.exp(weights.end) * self.end,
        )


@dataclass(frozen=True, eq=False)
class _Part:
    features: Features
    weight: Floats


def cut(features: Features, weight: Floats) -> list[_Part]:
    """Cut items into shards of about equal work; depends on the input only."""
    n_items, n_entries = len(weight), len(features.ids)
    n_shards = int(np.clip(n_entries // ENTRIES_PER_SHARD, 1, min(MAX_SHARDS, max(1, n_items))))
    work = features.bounds[features.offsets - features.offsets[0]] - features.bounds[0]
    edges = np.searchsorted(work, work[-1] * np.arange(1, n_shards) // n_shards)
    edges = np.unique(np.concatenate([[0], edges, [n_items]]))
    return [_Part(features.items(a, b), weight[a:b]) for a, b in pairwise(edges.tolist())]


def train(
    features: Features,
    targets: Targets,
    masks: Masks,
    *,
    c2: float,
    runner: Runner,
    start: Weights | None = None,
    max_iter: int = 200,
    tol: float = 1e-5,
    callback: Callable[[int, float, Floats], str | None] | None = None,
    bias: bool = True,
) -> tuple[Weights, Minimum]:
    """Find the weights of largest penalised likelihood.

    Args:
        features: The features of all items.
        targets: What they should be labelled.
        masks: What is impossible.
        c2: Penalty; the Gaussian prior has variance 1 / (2 c2).
        runner: Where to work.
        start: Weights to begin with; 0 by default.
        max_iter: Most steps of L-BFGS.
        tol: Relative decrease over ten steps at which to stop.
        callback: Told step, objective and weights; a string stops.
        bias: Whether the first and the last tag have weights.

    Returns:
        The weights and how the search went; its objective is -L(w).
    """
    if not 0 <= c2 < np.inf:
        raise InputError(f"c2 must be a number of at least 0, not {c2}")
    n_features, n_labels = targets.counts.state.shape
    target = targets.counts.vector
    parts = cut(features, targets.weight)
    first = Weights.of_vector(
        np.zeros_like(target) if start is None else start.vector, n_features, n_labels
    )
    if not bias:
        first.start[:] = first.end[:] = 0.0
    objective = partial(_objective, parts, target, masks, c2, runner, (n_features, n_labels), bias)
    found = minimise(objective, first.vector, max_iter=max_iter, tol=tol, callback=callback)
    return Weights.of_vector(found.x, n_features, n_labels), found


def _objective(
    parts: Sequence[_Part],
    target: Floats,
    masks: Masks,
    c2: float,
    runner: Runner,
    shape: tuple[int, int],
    bias: bool,
    vector: Floats,
) -> tuple[float, Floats]:
    """Give -L(w) and its gradient."""
    weights = Weights.of_vector(vector, *shape)
    params = (weights.state, *masks.exponentials(weights))
    log_z, gradient = runner.map_reduce(_expected, parts, params, _add)
    value = log_z - dot(target, vector) + c2 * dot(vector, vector)
    penalise(gradient, target, vector, c2)
    if not bias:
        ends = Weights.of_vector(gradient, *shape)
        ends.start[:] = 0
        ends.end[:] = 0
    return value, gradient


def _expected(part: _Part, params: tuple[Floats, ...]) -> tuple[float, Floats]:
    state, start, step, end = params
    f = part.features
    counts = Weights.zeros(*state.shape)
    vector = counts.state.base
    log_z = expected_step(
        f.offsets, f.bounds, f.ids, f.values, part.weight, state, start, step, end,
        counts.state, counts.start, counts.step, counts.end,
    )  # fmt: skip
    assert vector is not None
    return float(log_z), vector


def _add(left: tuple[float, Floats], right: tuple[float, Floats]) -> tuple[float, Floats]:
    vector = left[1]
    vector += right[1]
    return left[0] + right[0], vector
