"""Answers as a CRF reads them: label sequences that are well-formed, with their skipped tokens.

    sum_r gamma_r ln p(y^r | x) = sum_r gamma_r score(y^r) - (sum_r gamma_r) ln Z(x)

The first term is linear in the weights: all answers are summed up once, and an evaluation costs one
forward-backward per item, whatever the number of workers (MATH section 5). Where an answer skips
tokens, score(y^r) is that of the CRF's own filling-in – EM over what is not there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation.crf.kernels.answers import add_answers, log_masses
from goldspan.crowd import Crowd
from goldspan.spans import Codec, Tagged, find_spans
from goldspan.spans.corpus import write_codes
from goldspan.tagger.crf import Masks, Targets
from goldspan.tagger.features import Features
from goldspan.tagger.kernels.training import unary_step
from goldspan.tagger.parameters import Weights

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scores:
    """What a CRF says of all tokens.

    Attributes:
        unary: float64 [n_tokens, J], log scores.
        start: float64 [J], exp scores of the first tag, 0 where forbidden.
        step: float64 [J, J], exp, rows previous.
        end: float64 [J], exp.
    """

    unary: Floats
    start: Floats
    step: Floats
    end: Floats

    @classmethod
    def of(cls, features: Features, weights: Weights, masks: Masks) -> Scores:
        """Score the tokens."""
        unary = np.empty((features.n_tokens, weights.n_labels))
        unary_step(features.bounds, features.ids, features.values, weights.state, unary)
        return cls(unary, *masks.exponentials(weights))

    @classmethod
    def even(cls, n_tokens: int, masks: Masks) -> Scores:
        """Return every well-formed sequence the same score."""
        return cls(np.zeros((n_tokens, len(masks.start))), masks.start, masks.step, masks.end)


@dataclass(frozen=True, eq=False)
class Lessons:
    """Label sequences, one row per sequence.

    Attributes:
        item: int32 [n_answers].
        offset: int64 [n_answers + 1], bounds in `codes`.
        codes: int16 [n_labels], -1 skipped.
        tokens: int64 [n_items + 1], bounds of the items in flat tokens.
    """

    item: NDArray[np.int32]
    offset: NDArray[np.int64]
    codes: NDArray[np.int16]
    tokens: NDArray[np.int64]

    @classmethod
    def of_crowd(cls, crowd: Crowd, masks: Masks) -> tuple[Lessons, int]:
        """Take the answers of a crowd in their order, malformed ones made well-formed.

        An answer that no well-formed sequence agrees with is read as conlleval reads it (an I that
        opens a span becomes B).

        Returns:
            The answers, and how many tags changed.
        """
        answers = crowd.latest
        raw = cls(answers.item, answers.offset, answers.codes, crowd.offsets)
        possible = raw.log_masses(Scores.even(crowd.n_tokens, masks)) > -np.inf
        codes = np.where(
            np.repeat(possible, answers.lengths) | (raw.codes < 0),
            raw.codes,
            _well_formed(raw, crowd.tagset),
        ).astype(np.int16)
        changed = int(np.count_nonzero(codes != raw.codes))
        return replace(raw, codes=codes), changed

    @classmethod
    def of_truth(cls, known: NDArray[np.int16], tokens: NDArray[np.int64]) -> Lessons:
        """Take truth as one answer per item; -1 where nothing is known."""
        return cls(np.arange(len(tokens) - 1, dtype=np.int32), tokens, known, tokens)

    @cached_property
    def n_given(self) -> NDArray[np.int64]:
        """Labels of every answer, skipped tokens not counted."""
        total = np.concatenate([[0], np.cumsum(self.codes >= 0)])
        return np.asarray(total[self.offset[1:]] - total[self.offset[:-1]])

    @property
    def n_skipped(self) -> int:
        """Number of skipped tokens in answers that have some label."""
        lengths = np.diff(self.offset)
        return int((lengths - self.n_given)[self.n_given > 0].sum())

    def log_masses(self, scores: Scores) -> Floats:
        """Return ln of the mass of every answer, float64 [n_answers]; -inf if it is impossible."""
        masses = np.empty(len(self.item))
        log_masses(
            self.item, self.offset, self.codes, self.tokens,
            scores.unary, scores.start, scores.step, scores.end, masses,
        )  # fmt: skip
        return masses

    def log_probs(self, scores: Scores) -> Floats:
        """Return ln p(y | x) of every answer, float64 [n_answers], skipped tokens summed over."""
        nothing = np.full(int(self.tokens[-1]), -1, np.int16)
        log_z = Lessons.of_truth(nothing, self.tokens).log_masses(scores)
        return np.asarray(self.log_masses(scores) - log_z[self.item])

    def add_to(self, sums: Sums, weight: Floats, scores: Scores) -> None:
        """Add the answers times their weight, float64 [n_answers]; empty ones add nothing."""
        own = np.where(self.n_given > 0, weight, 0.0)
        self.add_filled(sums, own, scores)

    def add_filled(self, sums: Sums, weight: Floats, scores: Scores) -> None:
        """Add the answers as the scores fill them in, also those without any label."""
        add_answers(
            self.item, self.offset, self.codes, self.tokens, weight,
            scores.unary, scores.start, scores.step, scores.end, sums.probs, sums.steps,
        )  # fmt: skip
        sums.weight[:] += np.bincount(self.item, weight, len(sums.weight))


@dataclass(frozen=True, eq=False)
class Sums:
    """What all answers together say of every token.

    Attributes:
        probs: float64 [n_tokens, J].
        steps: float64 [J, J].
        weight: float64 [n_items].
    """

    probs: Floats
    steps: Floats
    weight: Floats

    @classmethod
    def zeros(cls, tokens: NDArray[np.int64], n_labels: int) -> Sums:
        """Begin with nothing."""
        shape = (int(tokens[-1]), n_labels)
        return cls(np.zeros(shape), np.zeros((n_labels, n_labels)), np.zeros(len(tokens) - 1))

    def targets(self, features: Features, n_features: int) -> Targets:
        """Sum up over the features."""
        return Targets.of_marginals(features, n_features, self.probs, self.steps, self.weight)


def _well_formed(raw: Lessons, codec: Codec) -> NDArray[np.int16]:
    """Write all answers well-formed; skipped tokens lie outside of spans."""
    if codec.rules.is_plain:
        return raw.codes
    spans = find_spans(Tagged(raw.codes, raw.offset), codec)
    return write_codes(spans, raw.offset, codec)
