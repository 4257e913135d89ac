"""The hidden Markov model with several features per token (Rabiner 1989; docs/math.md, section 6).

    p(x, y) = start[y_1] prod_t step[y_{t-1}, y_t] end[y_n] prod_t [prod_f p(f_t | y_t)] ** temper

Features of a token are assumed to be independent given its tag, with a Dirichlet prior on every
table. They are not, which makes their product overconfident: `temper` below 1 weakens it. All
tables come from (soft) counts in closed form; there is no optimiser. Where tags are known in part,
the counts are those expected given what is known, found by EM (Dempster et al. 1977); with `temper`
below 1 the expectation is that of the weakened model.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, Self

import numpy as np

from goldspan.errors import InputError
from goldspan.params import MOST, Number, Rounds
from goldspan.protocols import Progress, Runner, Serial
from goldspan.tagger.base import FeatureTagger
from goldspan.tagger.crf import Expected, Masks, Targets, check_paths, cut, expect
from goldspan.tagger.features import FeatureMap, Features
from goldspan.tagger.kernels import Floats, Weights, dot

LEAST_COUNT = 1e-100
"""Pseudo-counts below could make a ratio of probabilities infinite."""


class HMM(FeatureTagger):
    r"""A hidden Markov model; with the methods, decoding and constraints of `CRF`.

    With templates, each is one table p(value | tag), in which all values that have no number (not
    seen, too rare, or none) are one value. Dictionaries of features and hashed features are one
    table of all features, from which a token's are drawn; those not seen are ignored.

    Args:
        nu: Pseudo-count of every value in every table of features, from 1e-100 to 1e12.
        alpha: Pseudo-count of every possible step, start and end, likewise.
        temper: Exponent of the features' probability, in (0, 1].
        max_iter: Most rounds of EM, where tags are known in part.
        tol: Relative change of the log-likelihood at which EM stops.

    Attributes:
        trace_: The log-likelihood of what is known in every round; empty where all is known.
        converged_: Whether it converged.
        stop_reason_: "counted" where all is known, else "tol", "max_iter" or "interrupted".

    >>> tagger = HMM().fit([["Rome", "wins"], ["Kim", "Lee", "wins"]],
    ...                    [["B-LOC", "O"], ["B-PER", "I-PER", "O"]])
    >>> tagger.predict([["Rome", "wins"]])
    [['B-LOC', 'O']]
    """

    name = "hmm"

    templates: str | Sequence[str] = "hmm"
    nu: Annotated[float, Number(LEAST_COUNT, MOST)] = 0.01
    alpha: Annotated[float, Number(LEAST_COUNT, MOST)] = 1.0
    temper: Annotated[float, Number(above=0, most=1)] = 0.5
    max_iter: Rounds = 50
    tol: Annotated[float, Number(0)] = 1e-5

    def fit_targets(
        self,
        features: Features,
        targets: Targets,
        *,
        start: FeatureTagger | None = None,
        validation: tuple[Any, Any] | None = None,
        runner: Runner | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Turn soft counts into tables; `codec_` and `features_` must be set."""
        del start, validation
        self._check()
        if (features.values < 0).any():
            raise InputError("a feature has a negative value: an HMM counts features")
        masks = Masks.of(self.codec_, hard=self.hard)
        check_paths(features, targets, masks)
        self.trace_: tuple[float, ...] = ()
        self.converged_, self.stop_reason_ = True, "counted"
        if not targets.clamps:
            self.weights_ = self._weights_of(targets.counts, masks)
            return self
        try:
            self._expect_and_count(features, targets, masks, runner or Serial(), progress)
        except KeyboardInterrupt:
            self.stop_reason_ = "interrupted"
            raise
        return self

    def _expect_and_count(
        self,
        features: Features,
        targets: Targets,
        masks: Masks,
        runner: Runner,
        progress: Progress | None,
    ) -> None:
        """Count what is expected given what is known, until that changes little (EM)."""
        parts, known = cut(features, targets.clamps), targets.counts
        begin, self.converged_, self.stop_reason_ = time.monotonic(), False, "max_iter"
        weights = Weights.zeros(*known.state.shape)  # at first all that is allowed is as likely
        for done in range(self.max_iter + 1):
            params = (weights.state, *masks.exponentials(weights))
            found = runner.map(expect, parts, params)
            value = sum(one.log_z for one in found) + float(dot(known.vector, weights.vector))
            self.weights_ = weights = self._weights_of(_total(features, known, found), masks)
            if not done:
                continue
            self.trace_ += (value,)
            if progress:
                pace = (time.monotonic() - begin) / done
                progress(done, self.max_iter, value, pace * (self.max_iter - done))
            if done > 1 and abs(value - self.trace_[-2]) <= self.tol * abs(value):
                self.converged_, self.stop_reason_ = True, "tol"
                return

    def _weights_of(self, counts: Weights, masks: Masks) -> Weights:
        """Turn counts into tables, and these into weights."""
        weights = _chain(counts, masks, self.alpha)
        per_tag = counts.start + counts.step.sum(axis=0)
        lost = np.zeros(weights.n_labels)
        for own in self._tables():
            table = counts.state[own]
            if isinstance(self.features_, FeatureMap):
                total = per_tag + self.nu * (len(table) + 1)
                missing = np.maximum(per_tag - table.sum(axis=0), 0.0) + self.nu
                lost += np.log(missing / total)
                weights.state[own] = np.log((table + self.nu) / missing)
            else:
                seen = table.sum(axis=1) > 0
                total = table.sum(axis=0) + self.nu * seen.sum()
                weights.state[own][seen] = np.log((table[seen] + self.nu) / total)
        weights.state[:] *= self.temper
        weights.start[:] += self.temper * lost
        weights.step[:] += self.temper * lost
        return weights

    def _tables(self) -> list[slice]:
        """Return the features of every table of probabilities."""
        if isinstance(self.features_, FeatureMap):
            edges = np.cumsum([0, *map(len, self.features_.keys)]).tolist()
            return [slice(a, b) for a, b in pairwise(edges)]
        return [slice(0, self.features_.n_features)]


def _total(features: Features, counts: Weights, found: Sequence[Expected]) -> Weights:
    """Add what is expected to what was counted."""
    n_features, n_labels = counts.state.shape
    total = Weights.of_vector(counts.vector, n_features, n_labels)
    share = np.concatenate([one.share for one in found])
    features.count(share, total.state)
    for one in found:
        chain = Weights.of_vector(one.chain, 0, n_labels)
        total.start[:] += chain.start
        total.step[:] += chain.step
        total.end[:] += chain.end
    return total


def _chain(counts: Weights, masks: Masks, alpha: float) -> Weights:
    """Return log tables of start, step and end; what a tag is followed by sums to 1."""
    weights = Weights.zeros(*counts.state.shape)
    weights.start[:] = _log_shares(counts.start, masks.start, alpha)
    after = np.column_stack([counts.step, counts.end])
    allowed = np.column_stack([masks.step, masks.end])
    table = np.array([_log_shares(*row, alpha) for row in zip(after, allowed, strict=True)])
    weights.step[:], weights.end[:] = table[:, :-1], table[:, -1]
    return weights


def _log_shares(counts: Floats, allowed: Floats, alpha: float) -> Floats:
    """Return ln (count + alpha) / total over what is allowed, 0 elsewhere (the mask forbids it)."""
    shares = (counts + alpha) * allowed
    found = np.zeros(len(counts))
    found[allowed > 0] = np.log(shares[allowed > 0] / shares.sum())
    return found
