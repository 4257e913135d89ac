"""Training targets: labels, hard or soft, known completely or in part, with weights."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from goldspan._arrays import count_in_rows
from goldspan.errors import InputError
from goldspan.params import MOST
from goldspan.spans import Codec, Tagged, find_spans
from goldspan.spans.corpus import write_codes
from goldspan.tagger.features import Features, Merged, Text
from goldspan.tagger.kernels import Floats, Weights

# --------------------------------------------------------------------------------------------------
# What is known of tokens – a tag, some tags of which one is right, or nothing – as masks.


Known = str | Collection[str] | None
"""What is known of a token: its tag, some tags of which one is right, or nothing."""


def read_known(given: Any) -> list[list[Known]]:
    """Take what is known of every token of every item."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"expected a list of tag lists, one per item; got {given!r}")
    items = []
    for n, tags in enumerate(given):
        if isinstance(tags, str):
            raise InputError("expected a list of tag lists, one per item; got a string for an item")
        if not isinstance(tags, Iterable):
            raise InputError(f"item {n}: expected a list of tags, one per token; got {tags!r}")
        items.append(list(tags))
        for token, tag in enumerate(items[-1]):
            if not _is_known(tag):
                raise InputError(
                    f"item {n} token {token}: expected a tag, several tags of which one is right, "
                    f"or None; got {tag!r}"
                )
    return items


def _is_known(tag: Any) -> bool:
    if tag is None or isinstance(tag, str):
        return True
    return isinstance(tag, Collection) and all(isinstance(one, str) for one in tag)


def is_partial(items: Sequence[Sequence[Known]]) -> bool:
    """Return whether something is not known."""
    return any(not isinstance(tag, str) for tag in chain.from_iterable(items))


def is_unknown(item: Sequence[Known]) -> bool:
    """Return whether nothing is known of an item, which has tokens."""
    return len(item) > 0 and all(tag is None for tag in item)


def named_tags(items: Sequence[Sequence[Known]]) -> Iterator[str]:
    """Yield all tags that are named."""
    for known in chain.from_iterable(items):
        if isinstance(known, str):
            yield known
        elif known is not None:
            yield from known


def allowed_tags(items: Sequence[Sequence[Known]], codec: Codec) -> NDArray[np.bool_]:
    """Return the tags that tokens may have, bool [n_tokens, J]."""
    single = [[tag if isinstance(tag, str) else None for tag in item] for item in items]
    codes = codec.encode(single).codes
    allowed = np.ones((len(codes), len(codec.tags)), np.bool_)
    known = np.flatnonzero(codes >= 0)
    allowed[known] = False
    allowed[known, codes[known]] = True
    token = 0
    for item in items:
        for tag in item:
            if tag is not None and not isinstance(tag, str):
                own = codec.encode([list(tag)]).codes
                if not len(own):
                    raise InputError(f"token {token} may have no tag at all")
                allowed[token] = False
                allowed[token, own] = True
            token += 1
    return allowed


# --------------------------------------------------------------------------------------------------
# Target counts of features, and items of which only some tags are known.


class Clamp(NamedTuple):
    """What is known of items whose tags are known in part."""

    allowed: NDArray[np.bool_]  # [n_tokens, J], the tags of which one is right
    weight: Floats  # [n_items], how much an item counts; 0 for those known as a whole or not at all


@dataclass(frozen=True, eq=False)
class Targets:
    """What the expected counts of features should become, and how much every item weighs."""

    counts: Weights  # Target counts in the places of the weights
    weight: Floats  # [n_items], how many sequences an item stands for; 0 leaves it out
    clamps: tuple[Clamp, ...] = ()  # Items whose tags are known in part

    @classmethod
    def of_marginals(
        cls,
        features: Features,
        n_features: int,
        probs: NDArray[Any],
        steps: Floats,
        weight: Floats,
    ) -> Targets:
        """Sum up soft targets."""
        # probs float [n_tokens, J], marginals times the item's weight
        # steps float64 [J, J], expected numbers of steps, weighted and summed
        # weight float64 [n_items]
        state = np.zeros((n_features, probs.shape[1]))
        features.count(probs, state)
        return cls(Weights(state, *_of_chain(features.offsets, probs, steps)), weight)

    @classmethod
    def of_merged(cls, merged: Merged, probs: Floats, steps: Floats, weight: Floats) -> Self:
        """Sum up soft targets of merged features; arguments as for `of_marginals`."""
        state = merged.count(probs) * merged.root[:, None]
        return cls(Weights(state, *_of_chain(merged.features.offsets, probs, steps)), weight)

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
        # Items of weight 0 are left out, whatever their codes
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
        """Sum up what is known: of every token some tags, one of which is right."""
        # Items of which all is known are counted as `of_codes` does it
        # allowed bool [n_tokens, J]
        # weight float64 [n_items]; 1 by default
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

    def merged(self, merged: Merged) -> Targets:
        """Return the targets of the merged features."""
        joined = merged.join(self.counts)
        counts = Weights.of_vector(joined, len(merged.root), self.counts.n_labels)
        return replace(self, counts=counts)

    def add(self, other: Targets) -> Targets:
        """Return the sum with the targets of another label set of the same items."""
        total = self.counts.vector
        total += other.counts.vector
        counts = Weights.of_vector(total, *self.counts.state.shape)
        return Targets(counts, self.weight + other.weight, self.clamps + other.clamps)


def _of_chain(
    offsets: NDArray[np.int64], probs: NDArray[Any], steps: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the target counts of first tags, steps and last tags."""
    filled = np.flatnonzero(np.diff(offsets))
    start = probs[offsets[:-1][filled] - offsets[0]].sum(axis=0)
    end = probs[offsets[1:][filled] - offsets[0] - 1].sum(axis=0)
    return start, steps, end


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
        """Return exp of the weights of steps, 0 where forbidden."""
        return (
            np.exp(weights.start) * self.start,
            np.exp(weights.step) * self.step,
            np.exp(weights.end) * self.end,
        )


def _all_of(true: NDArray[np.bool_], offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for every item whether something is true of all its tokens, bool [n_items]."""
    return np.asarray(count_in_rows(~true, offsets - offsets[0]) == 0)


# --------------------------------------------------------------------------------------------------
# The tags of a training set: checked, numbered, made well-formed, summed up.


@dataclass(frozen=True, eq=False)
class Labels:
    """What is known of the tags of some items."""

    items: list[list[Known]]  # Per item and token a tag, several of which one is right, or None
    codec: Codec
    weight: Floats  # [n_items], how much an item counts
    partial: bool  # Whether something is not known
    number: NDArray[np.int64]  # [n_items], the items' numbers in the training set as it was given

    @classmethod
    def of(cls, y: Any, encoding: str, weight: Any) -> Labels:
        """Take lists of tags."""
        items = read_known(y)
        tags = set(named_tags(items))
        if not tags:
            raise InputError("the training set is empty: there is no tag to learn from")
        codec = Codec.from_tags(tags, encoding)
        each = _weights_of(weight, len(items))
        return cls(items, codec, each, is_partial(items), np.arange(len(items)))

    def leave_out_unknown(self, X: Any) -> tuple[Any, Labels]:
        """Leave out the items of which nothing is known, here and in X."""
        text = X if isinstance(X, Text) else list(X)
        size = len(text.offsets) - 1 if isinstance(text, Text) else len(text)
        if size != len(self.items):
            raise InputError(f"{size} items of words, but {len(self.items)} of tags")
        kept = np.flatnonzero([not is_unknown(item) for item in self.items])
        items = [self.items[n] for n in kept]
        some = text.select(kept) if isinstance(text, Text) else [text[n] for n in kept]
        return some, Labels(items, self.codec, self.weight[kept], self.partial, kept)

    def check_lengths(self, features: Features | Text) -> None:
        """Check that every word has a tag."""
        words = np.diff(features.offsets)
        tags = np.array([len(item) for item in self.items])
        if len(words) != len(tags):
            raise InputError(f"{len(words)} items of words, but {len(tags)} of tags")
        if (words != tags).any():
            bad = int(np.flatnonzero(words != tags)[0])
            name = self.number[bad]
            raise InputError(f"item {name} has {words[bad]} words and {tags[bad]} tags")

    def check_weight(self) -> None:
        """Check that some tags count."""
        pairs = zip(self.weight, self.items, strict=True)
        if not any(weight > 0 and tags for weight, tags in pairs):
            raise InputError("weight: every item with tags weighs 0: one at least must weigh more")

    def targets(self, features: Features, n_features: int, *, repair: bool) -> tuple[Targets, int]:
        """Sum up what is known."""
        n_labels = len(self.codec.tags)
        if not self.partial:
            codes, n_repaired = self._codes(self.items, repair)
            found = Targets.of_codes(features, n_features, codes, n_labels, self.weight)
            return found, n_repaired
        allowed, n_repaired = self.known(repair=repair)
        return Targets.of_allowed(features, n_features, allowed, self.weight), n_repaired

    def known(self, *, repair: bool) -> tuple[NDArray[np.bool_], int]:
        """Return the tags that tokens may have, bool [n_tokens, J], and how many were changed."""
        allowed = allowed_tags(self.items, self.codec)
        whole = np.array([not is_partial([item]) for item in self.items], np.bool_)
        some = [item for item, known in zip(self.items, whole, strict=True) if known]
        codes, n_repaired = self._codes(some, repair)
        tokens = np.repeat(whole, [len(item) for item in self.items])
        allowed[tokens] = np.eye(len(self.codec.tags), dtype=np.bool_)[codes]
        return allowed, n_repaired

    def _codes(self, items: Any, repair: bool) -> tuple[NDArray[np.int16], int]:
        tagged = self.codec.encode(items)
        return legal_codes(tagged, self.codec) if repair else (tagged.codes, 0)


def legal_codes(tagged: Tagged, codec: Codec) -> tuple[NDArray[np.int16], int]:
    """Write tags well-formed (an I that opens a span becomes B); return also how many changed."""
    if codec.rules.is_plain:
        return tagged.codes, 0
    written = write_codes(find_spans(tagged, codec), tagged.offsets, codec)
    return written, int(np.count_nonzero(written != tagged.codes))


def _weights_of(weight: Sequence[float] | None, n_items: int) -> Floats:
    if weight is None:
        return np.ones(n_items)
    try:
        each = np.asarray(weight)
    except ValueError:  # lists of different lengths
        each = np.zeros(0, object)
    is_right = each.dtype.kind in "biuf" and each.shape == (n_items,)
    if not is_right or not ((each >= 0) & (each <= MOST)).all():
        raise InputError(f"weight must be {n_items} numbers of at least 0 and at most {MOST:g}")
    return each.astype(np.float64)
