"""What an encoder learns: a distribution over the tags for every token, with a weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan._arrays import count_in_rows, rows_of
from goldspan.errors import InputError
from goldspan.spans import Codec, Tagged
from goldspan.tagger.base import as_text
from goldspan.tagger.decoding import Potentials, best_path
from goldspan.tagger.features import Text, is_dicts
from goldspan.tagger.targets import Masks

LEAST_DOCUMENTS = 5
"""Documents below which items are held out instead."""


class SoftTags(NamedTuple):
    """What is believed of the tags of a text, to learn from.

    Attributes:
        codec: The tags.
        probs: float [n_tokens, J], the probability of every tag of a token, as in the order of
            `codec.tags`; a row of zeros teaches nothing.
        weight: float [n_tokens], how much a token counts; None: all the same.

    >>> soft = SoftTags(Codec.from_types(["PER"]), np.array([[0.2, 0.8, 0.0], [1.0, 0.0, 0.0]]))
    >>> soft.codec.tags
    ('O', 'B-PER', 'I-PER')
    """

    codec: Codec
    probs: NDArray[Any]
    weight: NDArray[Any] | None = None


@dataclass(frozen=True, eq=False)
class TokenTargets:
    """Items and what is believed of their tags."""

    text: Text
    codec: Codec
    target: NDArray[np.float32]  # [n_tokens, J], the probability of every tag
    is_open: NDArray[np.bool_]  # [n_tokens], of which tokens one of several tags is right
    weight: NDArray[np.float32]  # [n_tokens], how much a token counts
    n_repaired: int = 0  # Tags that were made well-formed

    def select(self, items: NDArray[np.int64]) -> TokenTargets:
        """Return some items."""
        tokens = rows_of(self.text.offsets - self.text.offsets[0], items)[1]
        known = self.target[tokens], self.is_open[tokens], self.weight[tokens]
        return TokenTargets(self.text.select(items), self.codec, *known, self.n_repaired)

    def whole(self) -> TokenTargets | None:
        """Return the items of which all tokens count and are known; None if there are none."""
        offsets = self.text.offsets - self.text.offsets[0]
        n_bad = count_in_rows(self.is_open | (self.weight <= 0), offsets)
        items = np.flatnonzero((n_bad == 0) & (np.diff(offsets) > 0))
        return self.select(items) if len(items) else None

    def tags(self, masks: Masks) -> Tagged:
        """Return the best well-formed sequence of every item."""
        with np.errstate(divide="ignore"):
            unary = np.log(np.maximum(self.target.astype(np.float64), 1e-30))
            parts = (np.log(masks.start), np.log(masks.step), np.log(masks.end))
        return best_path(Potentials(unary, *parts, self.text.offsets), self.codec)


def words_of(X: Any) -> Text:
    """Take a `Text` or lists of words; features are refused."""
    if not isinstance(X, Text) and is_dicts(X):
        raise InputError("an encoder reads words, not dictionaries of features")
    text = as_text(X)
    if not len(text.offsets) or text.offsets[0] == 0:
        return text
    return text.select(np.arange(len(text.offsets) - 1))


def of_soft_tags(text: Text, y: SoftTags, weight: Any, power: float) -> TokenTargets:
    """Check soft labels, and raise them to a power; items that teach nothing are left out."""
    probs = np.asarray(y.probs, np.float64)
    shape = text.n_tokens, len(y.codec.tags)
    if probs.shape != shape:
        raise InputError(f"probs must be of shape {shape} (words, tags), not {probs.shape}")
    if not (np.isfinite(probs) & (probs >= 0)).all():
        raise InputError("probs must be finite and not negative")
    each = np.ones(shape[0]) if y.weight is None else np.asarray(y.weight, np.float64)
    if each.shape != shape[:1] or not (np.isfinite(each) & (each >= 0)).all():
        raise InputError(f"the weights of tokens must be {shape[0]} numbers of at least 0")
    lengths = np.diff(text.offsets)
    if weight is not None:
        items = np.asarray(weight, np.float64)
        if items.shape != lengths.shape or not (np.isfinite(items) & (items >= 0)).all():
            raise InputError(f"weight must be {len(lengths)} numbers of at least 0")
        each = each * np.repeat(items, lengths)
    raised = probs**power
    total = raised.sum(axis=1, keepdims=True)
    each = np.where(total[:, 0] > 0, each, 0.0)
    target = np.divide(raised, total, out=np.zeros_like(raised), where=total > 0)
    is_open = np.zeros(shape[0], np.bool_)
    task = TokenTargets(text, y.codec, target.astype(np.float32), is_open, each.astype(np.float32))
    taught = np.flatnonzero(count_in_rows(each > 0, text.offsets))
    if not len(taught):
        raise InputError("the training set is empty: there is no tag to learn from")
    return task.select(taught)


def in_order_of(
    codec: Codec, other: Codec, known: NDArray[np.bool_]
) -> NDArray[np.bool_]:  # fmt: skip
    """Return masks of tags of one tag set as those of another; a tag that it lacks is lost."""
    found = np.zeros((len(known), len(codec.tags)), np.bool_)
    for n, tag in enumerate(other.tags):
        if tag in codec.index:
            found[:, codec.index[tag]] = known[:, n]
    lost = ~found.any(axis=1)
    found[lost] = True  # as if it were not known
    return found


def documents_of(text: Text) -> NDArray[np.int64]:
    """Number the documents of items, int64 [n_items]; items where there are too few."""
    n_items = len(text.offsets) - 1
    if text.group is not None:
        found = np.unique(text.group, return_inverse=True)[1].ravel()
        if found.max() + 1 >= LEAST_DOCUMENTS:
            return np.asarray(found, np.int64)
    return np.arange(n_items)
