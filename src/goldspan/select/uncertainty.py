"""Uncertainty: items whose label or tags a model is least sure of.

For labels P(y | x) of a classifier; for taggers of whole sequences y (Settles and Craven 2008).
Scores are the higher the less sure the model is.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from goldspan.errors import InputError
from goldspan.select.base import Task
from goldspan.select.predictions import by_blocks, class_probs, is_tagger, path_log_probs
from goldspan.select.ranking import Floats, Ranked
from goldspan.tagger import Text
from goldspan.tagger.base import Tagger


@dataclass(kw_only=True)
class Uncertainty(Ranked):
    """Base of the rules that ask one model."""

    needs_model: ClassVar[bool] = True

    @abstractmethod
    def of_labels(self, probs: Floats) -> Floats:
        """Give the scores of items, float64 [n], from probabilities, float64 [n, n_labels]."""

    @abstractmethod
    def of_sequences(self, tagger: Tagger, text: Text) -> Floats:
        """Give the scores of items from a tagger, float64 [n_items]."""

    def _scores(self, task: Task, index: NDArray[np.int64]) -> Floats:
        if isinstance(task.model, list | tuple) and any(
            is_tagger(one) or hasattr(one, "predict_proba") for one in task.model
        ):
            raise InputError(f"{self.name} asks one model: for several take vote or committee-kl")
        if is_tagger(task.model):
            return by_blocks(
                task.model, task.pool, index, lambda text: self.of_sequences(task.model, text)
            )
        return self.of_labels(class_probs(task.model, task.pool, index))


@dataclass(kw_only=True)
class LeastConfidence(Uncertainty):
    """1 - P(best): how likely the best label, or the best tag sequence, is wrong.

    >>> probs = np.array([[0.9, 0.1], [0.6, 0.4]])
    >>> LeastConfidence().select(["a", "b"], model=probs, n=1).item.tolist()
    [1]
    """

    name: ClassVar[str] = "least-confidence"

    def of_labels(self, probs: Floats) -> Floats:
        """1 - max P."""
        return np.asarray(1 - probs.max(axis=1))

    def of_sequences(self, tagger: Tagger, text: Text) -> Floats:
        """1 - P(best path)."""
        return np.asarray(-np.expm1(path_log_probs(tagger, text, 1)[:, 0]))


@dataclass(kw_only=True)
class Margin(Uncertainty):
    """1 - (P(best) - P(second)): how close the runner-up is."""

    name: ClassVar[str] = "margin"

    def of_labels(self, probs: Floats) -> Floats:
        """1 - difference of the two largest."""
        best = np.sort(probs, axis=1)[:, ::-1]
        second = best[:, 1] if best.shape[1] > 1 else 0.0
        return np.asarray(1 - (best[:, 0] - second))

    def of_sequences(self, tagger: Tagger, text: Text) -> Floats:
        """The same of the two best paths."""
        best = np.exp(path_log_probs(tagger, text, 2))
        return np.asarray(1 - (best[:, 0] - best[:, 1]))


@dataclass(kw_only=True)
class Entropy(Uncertainty):
    """Entropy in nats: of the label, or of the whole tag sequence, which grows with its length."""

    name: ClassVar[str] = "entropy"

    def of_labels(self, probs: Floats) -> Floats:
        """- sum P ln P."""
        return np.asarray(entr(probs).sum(axis=1))

    def of_sequences(self, tagger: Tagger, text: Text) -> Floats:
        """Of all paths."""
        return np.asarray(np.maximum(0.0, tagger.tag(text, least=np.inf).entropy))


@dataclass(kw_only=True)
class Mnlp(Uncertainty):
    """Mean over tokens of -ln P(best path): what is unsure, whatever its length.

    The maximum normalised log-probability of Shen et al. (2018), with the sign turned.
    """

    name: ClassVar[str] = "mnlp"

    def of_labels(self, probs: Floats) -> Floats:
        """- ln max P, for items of one label."""
        return np.asarray(-np.log(probs.max(axis=1)))

    def of_sequences(self, tagger: Tagger, text: Text) -> Floats:
        """- ln P(best path) / tokens."""
        lengths = np.maximum(1, np.diff(text.offsets))
        return np.asarray(-path_log_probs(tagger, text, 1)[:, 0] / lengths)


@dataclass(kw_only=True)
class TokenEntropy(Uncertainty):
    """Mean over tokens of the entropy of a token's tag, in nats."""

    name: ClassVar[str] = "token-entropy"

    def of_labels(self, probs: Floats) -> Floats:
        """The entropy, for items of one label."""
        return np.asarray(entr(probs).sum(axis=1))

    def of_sequences(self, tagger: Tagger, text: Text) -> Floats:
        """Mean of the marginals' entropies."""
        found = tagger.tag(text, least=np.inf)
        return token_means(entr(np.clip(found.probs, 0, 1)).sum(axis=1), found.offsets)


@dataclass(kw_only=True)
class SpanChange(Uncertainty):
    """How many spans an annotator is expected to change, per cost by default.

    With y drawn from the model, the expected number of spans that are in one of y and the best
    path and not in the other: the sum of 1 - P(span) over the best path's spans and of P(span)
    over all others. What goldspan's taggers are scored by is spans, so this is the expected change
    of Settles and Craven's (2008) "expected model change" where it counts; spans below 0.001 are
    left out.
    """

    name: ClassVar[str] = "span-change"
    by_cost: bool = True

    def of_labels(self, probs: Floats) -> Floats:  # noqa: ARG002 - refused whatever they are
        """Refuse.

        Raises:
            InputError: Always: labels are no spans.
        """
        raise InputError("span-change counts spans: it needs a tagger (mnlp and margin do not)")

    def of_sequences(self, tagger: Tagger, text: Text) -> Floats:
        """Sum over the spans.

        Raises:
            InputError: The tags are PLAIN: they have no spans.
        """
        from goldspan.tagger.chain import spans_with_confidence

        if tagger.codec_.rules.is_plain:
            raise InputError("span-change counts spans, and PLAIN tags have none: use mnlp")
        found = tagger.tag(text, least=1e-3)
        best, mass = spans_with_confidence(found, tagger.codec_)
        n_items = len(text.offsets) - 1
        every = np.bincount(found.spans.item, weights=found.mass, minlength=n_items)
        return np.asarray(
            np.maximum(0.0, every + np.bincount(best.item, 1 - 2 * mass, minlength=n_items))
        )


def token_means(values: Floats, offsets: NDArray[np.int64]) -> Floats:
    """Give the mean of every item's tokens, float64 [n_items]; 0 for items without tokens."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    lengths = np.diff(offsets)
    return np.asarray(np.diff(sums[offsets]) / np.maximum(1, lengths))
