"""What a chain model should learn: counts of features, and items of which only a part is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import InputError
from goldspan.spans import Codec
from goldspan.tagger.features import Features
from goldspan.tagger.kernels.training import target_step
from goldspan.tagger.weights import Floats, Weights


class Clamp(NamedTuple):
    """What is known of items whose tags are known in part.

    Attributes:
        allowed: bool [n_tokens, J], the tags of which one is right.
        weight: float64 [n_items], how much an item counts; 0 for those known as a whole or not
            at all.
    """

    allowed: NDArray[np.bool_]
    weight: Floats


@dataclass(frozen=True, eq=False)
class Targets:
    """What the expected counts of features should become, and how much every item weighs.

    Attributes:
        counts: Target counts in the places of the weights.
        weight: float64 [n_items], how many sequences an item stands for; 0 leaves it out.
        clamps: Items whose tags are known in part: their target is what the model itself expects
            among the sequences that agree with what is known.
    """

    counts: Weights
    weight: Floats
    clamps: tuple[Clamp, ...] = ()

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
        """Sum up one tag sequence per item, int16 [n_tokens]; all tags must be known.

        Items of weight 0 are left out, whatever their codes.
        """
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

    @classmethod
    def of_allowed(
        cls,
        features: Features,
        n_features: int,
        allowed: NDArray[np.bool_],
        weight: Floats | None = None,
    ) -> Targets:
        """Sum up what is known: of every token some tags, one of which is right.

        Items of which all is known are counted as `of_codes` does it; items of which nothing is
        known are left out.

        Args:
            features: The features.
            n_features: How many different ones there are.
            allowed: bool [n_tokens, J].
            weight: float64 [n_items]; 1 by default.

        Raises:
            InputError: A token has no tag at all.
        """
        size = allowed.sum(axis=1)
        if not size.all():
            raise InputError(f"token {int(np.argmin(size))} may have no tag at all")
        each = np.ones(len(features.offsets) - 1) if weight is None else weight
        whole = _all_of(size == 1, features.offsets)
        nothing = _all_of(size == allowed.shape[1], features.offsets) & ~whole
        codes = allowed.argmax(axis=1).astype(np.int16)
        known = np.where(whole, each, 0.0)
        targets = cls.of_codes(features, n_features, codes, allowed.shape[1], known)
        if (whole | nothing).all():
            return targets
        partly = np.where(whole | nothing, 0.0, each)
        return cls(targets.counts, known + partly, (Clamp(allowed, partly),))

    def add(self, other: Targets) -> Targets:
        """Give the sum with the targets of another label set of the same items."""
        total = self.counts.vector
        total += other.counts.vector
        counts = Weights.of_vector(total, *self.counts.state.shape)
        return Targets(counts, self.weight + other.weight, self.clamps + other.clamps)


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


def _all_of(true: NDArray[np.bool_], offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say of every item whether something is true of all its tokens."""
    false = np.concatenate([[0], np.cumsum(~true)])
    origin = offsets[0]
    return np.asarray(false[offsets[1:] - origin] == false[offsets[:-1] - origin])
