"""Training sequences: answers made well-formed, with their skipped tokens.

    sum_r gamma_r ln p(y^r | x) = sum_r gamma_r score(y^r) - (sum_r gamma_r) ln Z(x)

The first term is linear in the weights: all answers are summed up once, and an evaluation costs one
forward-backward per item, whatever the number of workers (docs/math.md, section 5). Where an
answer skips tokens, score(y^r) is its expectation under the CRF (EM).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from goldspan._arrays import count_in_rows
from goldspan._kernel import inner, kernel
from goldspan.chains.forward_backward import expect_log, forward_log
from goldspan.crowd import Crowd
from goldspan.spans import Codec, Tagged, find_spans
from goldspan.spans.corpus import write_codes
from goldspan.tagger.crf import Masks, Targets
from goldspan.tagger.features import Features
from goldspan.tagger.parameters import Weights

Floats = NDArray[np.float64]
Indexes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of a CRF for all tokens."""

    unary: Floats  # [n_tokens, J], log scores
    start: Floats  # [J], exp scores of the first tag, 0 where forbidden
    step: Floats  # [J, J], exp, rows previous
    end: Floats  # [J], exp

    @classmethod
    def of(cls, features: Features, weights: Weights, masks: Masks) -> Scores:
        """Score the tokens."""
        return cls(features.scores(weights.state), *masks.exponentials(weights))

    @classmethod
    def even(cls, n_tokens: int, masks: Masks) -> Scores:
        """Return every well-formed sequence the same score."""
        return cls(np.zeros((n_tokens, len(masks.start))), masks.start, masks.step, masks.end)


@dataclass(frozen=True, eq=False)
class TrainingSequences:
    """Label sequences, one row per sequence."""

    item: NDArray[np.int32]  # [n_answers]
    offset: NDArray[np.int64]  # [n_answers + 1], bounds in `codes`
    codes: NDArray[np.int16]  # [n_labels], -1 skipped
    tokens: NDArray[np.int64]  # [n_items + 1], bounds of the items in flat tokens

    @classmethod
    def of_crowd(cls, crowd: Crowd, masks: Masks) -> tuple[TrainingSequences, int]:
        """Take the answers of a crowd in their order, malformed ones made well-formed.

        An answer that no well-formed sequence agrees with is read as conlleval reads it (an I that
        opens a span becomes B).
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
    def of_truth(cls, known: NDArray[np.int16], tokens: NDArray[np.int64]) -> TrainingSequences:
        """Take truth as one answer per item; -1 where nothing is known."""
        return cls(np.arange(len(tokens) - 1, dtype=np.int32), tokens, known, tokens)

    @cached_property
    def n_given(self) -> NDArray[np.int64]:
        """Labels of every answer, skipped tokens not counted."""
        return count_in_rows(self.codes >= 0, self.offset)

    @property
    def n_skipped(self) -> int:
        """Number of skipped tokens in answers that have some label."""
        lengths = np.diff(self.offset)
        return int((lengths - self.n_given)[self.n_given > 0].sum())

    def log_masses(self, scores: Scores) -> Floats:
        """Return ln of the mass of every answer, float64 [n_answers]; -inf if it is impossible."""
        masses = np.empty(len(self.item))
        _log_masses(
            self.item, self.offset, self.codes, self.tokens,
            scores.unary, scores.start, scores.step, scores.end, masses,
        )  # fmt: skip
        return masses

    def log_probs(self, scores: Scores) -> Floats:
        """Return ln p(y | x) of every answer, float64 [n_answers], skipped tokens summed over."""
        nothing = np.full(int(self.tokens[-1]), -1, np.int16)
        log_z = TrainingSequences.of_truth(nothing, self.tokens).log_masses(scores)
        return np.asarray(self.log_masses(scores) - log_z[self.item])

    def add_to(self, sums: TokenTargets, weight: Floats, scores: Scores) -> None:
        """Add the answers times their weight, float64 [n_answers]; empty ones add nothing."""
        own = np.where(self.n_given > 0, weight, 0.0)
        self.add_filled(sums, own, scores)

    def add_filled(self, sums: TokenTargets, weight: Floats, scores: Scores) -> None:
        """Add the answers as the scores fill them in, also those without any label."""
        _add_answers(
            self.item, self.offset, self.codes, self.tokens, weight,
            scores.unary, scores.start, scores.step, scores.end, sums.probs, sums.steps,
        )  # fmt: skip
        sums.weight[:] += np.bincount(self.item, weight, len(sums.weight))


@dataclass(frozen=True, eq=False)
class TokenTargets:
    """The weighted sum of all answers, token by token."""

    probs: Floats  # [n_tokens, J]
    steps: Floats  # [J, J]
    weight: Floats  # [n_items]

    @classmethod
    def zeros(cls, tokens: NDArray[np.int64], n_labels: int) -> TokenTargets:
        """Return sums of nothing."""
        shape = (int(tokens[-1]), n_labels)
        return cls(np.zeros(shape), np.zeros((n_labels, n_labels)), np.zeros(len(tokens) - 1))

    def targets(self, features: Features, n_features: int) -> Targets:
        """Sum up over the features."""
        return Targets.of_marginals(features, n_features, self.probs, self.steps, self.weight)


def _well_formed(raw: TrainingSequences, codec: Codec) -> NDArray[np.int16]:
    """Write all answers well-formed; skipped tokens lie outside of spans."""
    if codec.rules.is_plain:
        return raw.codes
    spans = find_spans(Tagged(raw.codes, raw.offset), codec)
    return write_codes(spans, raw.offset, codec)


# --------------------------------------------------------------------------------------------------
# The compiled loops over answers. One that labels every token is one path; one that skips tokens
# stands for all paths that agree with it, which are summed up by forward-backward with logarithms.


@kernel
def _log_masses(
    item: NDArray[np.int32], offset: Indexes, codes: NDArray[np.int16], tokens: Indexes,
    unary: Floats, start: Floats, step: Floats, end: Floats, masses: Floats,
) -> None:  # fmt: skip
    """Write ln of the summed exp scores of all paths that agree with every answer."""
    # item int32 [n_answers]; offset int64 [n_answers + 1]; codes int16 [n_labels], -1 skipped
    # tokens int64 [n_items + 1], first token of every item; unary float64 [n_tokens, J], log scores
    # start float64 [J], exp scores, 0 where forbidden; step float64 [J, J], exp
    # end float64 [J], exp; masses float64 [n_answers]
    n_labels = len(start)
    longest = _longest(offset)
    evidence, forward = np.empty((longest, n_labels)), np.empty((longest, n_labels))
    log_start, log_step, log_end = np.log(start), np.log(step), np.log(end)
    for answer in range(len(item)):
        begin, length = offset[answer], offset[answer + 1] - offset[answer]
        first = tokens[item[answer]]
        if length == 0:
            masses[answer] = 0.0
        elif _is_full(codes, begin, length):
            total = log_start[codes[begin]] + unary[first, codes[begin]]
            for t in range(1, length):
                now = codes[begin + t]
                total += log_step[codes[begin + t - 1], now] + unary[first + t, now]
            masses[answer] = total + log_end[codes[begin + length - 1]]
        else:
            _clamp(codes, begin, length, first, unary, evidence)
            masses[answer] = forward_log(length, evidence, start, step, end, forward)


@kernel
def _add_answers(
    item: NDArray[np.int32], offset: Indexes, codes: NDArray[np.int16], tokens: Indexes,
    weight: Floats, unary: Floats, start: Floats, step: Floats, end: Floats, probs: Floats,
    steps: Floats,
) -> None:  # fmt: skip
    """Add the labels of answers times their weight, skipped ones as the chain fills them in.

    The arguments are those of `_log_masses` and, besides, weight, float64 [n_answers]; probs,
    float64 [n_tokens, J], added to; and steps, float64 [J, J], expected numbers of steps, added to.
    Answers of weight 0, or that no path agrees with, add nothing.
    """
    n_labels = len(start)
    longest = _longest(offset)
    evidence, forward = np.empty((longest, n_labels)), np.empty((longest, n_labels))
    for answer in range(len(item)):
        begin, length = offset[answer], offset[answer + 1] - offset[answer]
        first, w = tokens[item[answer]], weight[answer]
        if w == 0.0 or length == 0:
            continue
        if _is_full(codes, begin, length):
            for t in range(length):
                probs[first + t, codes[begin + t]] += w
                if t > 0:
                    steps[codes[begin + t - 1], codes[begin + t]] += w
            continue
        _clamp(codes, begin, length, first, unary, evidence)
        log_z = forward_log(length, evidence, start, step, end, forward)
        if log_z > -np.inf:
            expect_log(length, evidence, step, end, w, log_z, forward, steps)
            for t in range(length):
                for j in range(n_labels):
                    probs[first + t, j] += forward[t, j]


@inner
def _longest(offset: Indexes) -> int:
    longest = 0
    for answer in range(len(offset) - 1):
        longest = max(longest, offset[answer + 1] - offset[answer])
    return longest


@inner
def _is_full(codes: NDArray[np.int16], begin: int, length: int) -> bool:
    lowest = codes[begin]
    for t in range(1, length):
        lowest = min(lowest, codes[begin + t])
    return bool(lowest >= 0)


@inner
def _clamp(
    codes: NDArray[np.int16], begin: int, length: int, first: int, unary: Floats, evidence: Floats
) -> None:
    """Copy the scores of an item, -inf for what an answer excludes."""
    for t in range(length):
        code = codes[begin + t]
        for j in range(unary.shape[1]):
            evidence[t, j] = unary[first + t, j] if code < 0 or j == code else -np.inf
