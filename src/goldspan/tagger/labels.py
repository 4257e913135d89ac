"""The tags of a training set: checked, numbered, made well-formed, summed up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import InputError
from goldspan.spans import Codec, Tagged, find_spans, write_codes
from goldspan.tagger.features import Features, Text
from goldspan.tagger.known import (
    Known,
    allowed_tags,
    is_partial,
    is_unknown,
    named_tags,
    read_known,
)
from goldspan.tagger.parameters import MOST
from goldspan.tagger.targets import Targets
from goldspan.tagger.weights import Floats


@dataclass(frozen=True, eq=False)
class Labels:
    """What is known of the tags of some items.

    Attributes:
        items: Per item and token a tag, several of which one is right, or None.
        codec: The tag set.
        weight: float64 [n_items], how much an item counts.
        partial: Whether something is not known.
        number: int64 [n_items], the items' numbers in the training set as it was given.
    """

    items: list[list[Known]]
    codec: Codec
    weight: Floats
    partial: bool
    number: NDArray[np.int64]

    @classmethod
    def of(cls, y: Any, encoding: str, weight: Any) -> Labels:
        """Take lists of tags.

        Raises:
            InputError: There is no tag, what is given are no tags, or the weights are none.
        """
        items = read_known(y)
        tags = set(named_tags(items))
        if not tags:
            raise InputError("the training set is empty: there is no tag to learn from")
        codec = Codec.from_tags(tags, encoding)
        each = _weights_of(weight, len(items))
        return cls(items, codec, each, is_partial(items), np.arange(len(items)))

    def leave_out_unknown(self, X: Any) -> tuple[Any, Labels]:
        """Leave out the items of which nothing is known, here and in X.

        Raises:
            InputError: X has another number of items.
        """
        text = X if isinstance(X, Text) else list(X)
        size = len(text.offsets) - 1 if isinstance(text, Text) else len(text)
        if size != len(self.items):
            raise InputError(f"{size} items of words, but {len(self.items)} of tags")
        kept = np.flatnonzero([not is_unknown(item) for item in self.items])
        items = [self.items[n] for n in kept]
        some = text.select(kept) if isinstance(text, Text) else [text[n] for n in kept]
        return some, Labels(items, self.codec, self.weight[kept], self.partial, kept)

    def check_lengths(self, features: Features) -> None:
        """Check that every word has a tag.

        Raises:
            InputError: Some item has another number of tags than words; the first is named.
        """
        words = np.diff(features.offsets)
        tags = np.array([len(item) for item in self.items])
        if len(words) != len(tags):
            raise InputError(f"{len(words)} items of words, but {len(tags)} of tags")
        if (words != tags).any():
            bad = int(np.flatnonzero(words != tags)[0])
            name = self.number[bad]
            raise InputError(f"item {name} has {words[bad]} words and {tags[bad]} tags")

    def check_weight(self) -> None:
        """Check that some tags count.

        Raises:
            InputError: All items that have tags weigh 0.
        """
        pairs = zip(self.weight, self.items, strict=True)
        if not any(weight > 0 and tags for weight, tags in pairs):
            raise InputError("weight: every item with tags weighs 0: one at least must weigh more")

    def targets(self, features: Features, n_features: int, *, repair: bool) -> tuple[Targets, int]:
        """Sum up what is known.

        Args:
            features: Of the items.
            n_features: How many different ones there are.
            repair: Whether items known as a whole are made well-formed.

        Returns:
            The targets, and how many tags were changed.

        Raises:
            FaultsError: A tag is not in the tag set.
            InputError: A token has no tag left.
        """
        n_labels = len(self.codec.tags)
        if not self.partial:
            codes, n_repaired = self._codes(self.items, repair)
            found = Targets.of_codes(features, n_features, codes, n_labels, self.weight)
            return found, n_repaired
        allowed = allowed_tags(self.items, self.codec)
        whole = np.array([not is_partial([item]) for item in self.items])
        some = [item for item, known in zip(self.items, whole, strict=True) if known]
        codes, n_repaired = self._codes(some, repair)
        tokens = np.repeat(whole, np.diff(features.offsets))
        allowed[tokens] = np.eye(n_labels, dtype=np.bool_)[codes]
        return Targets.of_allowed(features, n_features, allowed, self.weight), n_repaired

    def _codes(self, items: Any, repair: bool) -> tuple[NDArray[np.int16], int]:
        tagged = self.codec.encode(items)
        return legal_codes(tagged, self.codec) if repair else (tagged.codes, 0)


def legal_codes(tagged: Tagged, codec: Codec) -> tuple[NDArray[np.int16], int]:
    """Write tags well-formed (an I that opens a span becomes B); give how many changed."""
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
