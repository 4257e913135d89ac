"""How a CRF learns from many annotators: mixtures of their answers, round by round."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from goldspan._arrays import count_in_rows
from goldspan._kernel import inner, kernel
from goldspan.aggregation.base import FitContext, check_words, legal_known, text_of
from goldspan.aggregation.bsc.engine import INTERRUPTED, RunContext, fingerprint_of
from goldspan.chains.forward_backward import expect_log, forward_log
from goldspan.crowd import Crowd
from goldspan.crowd.measures import token_accuracy, worker_f1
from goldspan.errors import InputError, UnknownNameError
from goldspan.protocols import Runner
from goldspan.spans import Tagged, find_spans
from goldspan.spans.corpus import write_codes
from goldspan.tagger.base import FeatureTagger, carry
from goldspan.tagger.crf import Masks, Minimum, Targets, train
from goldspan.tagger.features import FeatureMap, Features, Text, read_templates
from goldspan.tagger.kernels import Weights

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
        """Take the answers of a crowd in their order, malformed ones made well-formed."""
        answers = crowd.latest
        raw = cls(answers.item, answers.offset, answers.codes, crowd.offsets)
        possible = raw.log_masses(Scores.even(crowd.n_tokens, masks)) > -np.inf
        codes = raw.codes
        if not crowd.tagset.rules.is_plain:  # skipped tokens lie outside of spans
            spans = find_spans(Tagged(raw.codes, raw.offset), crowd.tagset)
            stays = np.repeat(possible, answers.lengths) | (raw.codes < 0)
            written = write_codes(spans, raw.offset, crowd.tagset)
            codes = np.where(stays, raw.codes, written).astype(np.int16)
        changed = int(np.count_nonzero(codes != raw.codes))
        return replace(raw, codes=codes), changed

    @classmethod
    def of_truth(cls, known: NDArray[np.int16], tokens: NDArray[np.int64]) -> TrainingSequences:
        """Take truth as one answer per item; -1 where nothing is known."""
        return cls(np.arange(len(tokens) - 1, dtype=np.int32), tokens, known, tokens)

    @classmethod
    def of_nothing(cls, tokens: NDArray[np.int64]) -> TrainingSequences:
        """Make an answer per item that skips all tokens: it stands for all paths."""
        return cls.of_truth(np.full(int(tokens[-1]), -1, np.int16), tokens)

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
        log_z = TrainingSequences.of_nothing(self.tokens).log_masses(scores)
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
    """Add the labels of answers times their weight, skipped ones as the chain fills them in."""
    # The arguments are those of `_log_masses` and, besides, weight, float64 [n_answers]
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


# --------------------------------------------------------------------------------------------------
# Worker quality against an estimated truth (Rodrigues et al. 2013, section 3.1: F1, or any loss).


Measure = Callable[[Crowd, NDArray[np.int16]], Any]
MEASURES = ("f1", "accuracy", "posterior")


def measured(crowd: Crowd, codes: NDArray[np.int16], measure: str | Measure) -> Floats:
    """Measure all workers, float64 [n_workers]; NaN where nothing is known."""
    # codes int16 [n_tokens], the truth, -1 open
    if not isinstance(measure, str):
        found = np.asarray(measure(crowd, codes), np.float64)
        if found.shape != (crowd.n_workers,) or (found < 0).any() or np.isinf(found).any():
            raise InputError(
                f"reliability: the function must give {crowd.n_workers} finite numbers of at least "
                "0 (NaN where it cannot tell), one per worker"
            )
        return found
    if measure == "accuracy" or crowd.tagset.rules.is_plain:
        return token_accuracy(crowd, codes)
    return worker_f1(crowd, codes)


def check_measure(measure: Any) -> None:
    """Reject what is not a measure."""
    if isinstance(measure, str):
        if measure not in MEASURES:
            raise UnknownNameError("reliability measure", measure, (*MEASURES, "a function"))
    elif not callable(measure):
        raise InputError(f"reliability must be a name or a function, not {measure!r}")


# --------------------------------------------------------------------------------------------------
# The formulas of CRF-MA on plain arrays (Rodrigues et al. 2013, sections 3.3 to 3.5).


NORMALISE = ("token", "ratio", "none")
LATENT = ("multinomial", "bernoulli")
LEAST_PI = 1e-12
"""Reliabilities below count as this in logarithms: a worker with F1 = 0 makes nothing infinite."""


@dataclass(frozen=True, eq=False)
class Totals:
    """What every worker's answers sum up to."""

    log_prob: Floats  # [n_workers], sum of ln p(y | x) over the worker's answers
    n_given: NDArray[np.int64]  # [n_workers], labels in them; 0 for workers who are left out
    n_labels: int  # Number of tags, C in the paper

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Who takes part."""
        return self.n_given > 0


def log_weights(
    pi: Floats, totals: Totals, normalise: str, tau: float = 1.0, latent: str = LATENT[0]
) -> Floats:
    """Return ln of what gamma is proportional to, or of its odds, float64 [n_workers]."""
    # pi float64 [n_workers], reliabilities
    logs, per_label = np.log(np.maximum(pi, LEAST_PI)), 0.0
    if latent == "bernoulli":
        logs -= _log_wrong(pi)
    if normalise == "ratio" or latent == "bernoulli":  # where random labels do not cancel
        per_label = np.log(totals.n_labels)
    support = totals.log_prob + totals.n_given * per_label
    if normalise == "token":
        support = tau * support / np.maximum(totals.n_given, 1)
    return np.where(totals.kept, logs + support, -np.inf)


def _log_wrong(pi: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(1 - pi, LEAST_PI)))


def responsibilities(
    pi: Floats, totals: Totals, normalise: str, tau: float = 1.0, latent: str = LATENT[0]
) -> Floats:
    """Return gamma, float64 [n_workers] (eq. 15); arguments as `log_weights`."""
    logs = log_weights(pi, totals, normalise, tau, latent)
    return np.asarray(expit(logs) if latent == "bernoulli" else np.exp(logs - logsumexp(logs)))


def log_likelihood(pi: Floats, totals: Totals, latent: str = LATENT[0]) -> float:
    """Return ln p(D), eq. 9, less that of random sequences."""
    logs = log_weights(pi, totals, "ratio", latent=latent)
    if latent == "bernoulli":  # sum of ln (1 - pi + pi * ratio)
        return float((_log_wrong(pi) + np.logaddexp(0, logs))[totals.kept].sum())
    return float(logsumexp(logs))


def expectation(gamma: Floats, pi: Floats, totals: Totals, latent: str = LATENT[0]) -> float:
    """Return the expected complete-data log-likelihood (eq. 14), less that of random sequences."""
    logs = log_weights(pi, totals, "ratio", latent=latent)
    wrong = _log_wrong(pi)[totals.kept].sum() if latent == "bernoulli" else 0.0
    return float(gamma[totals.kept] @ logs[totals.kept] + wrong)


def log_prior(pi: Floats, alpha: Floats, kept: NDArray[np.bool_], latent: str = LATENT[0]) -> float:
    """Return ln Dirichlet(pi; alpha), or Beta(pi; alpha, 1), of who takes part, less its mode's."""
    # The mode is pi ~ alpha - 1; as a constant it would hide everything else beside a strong prior
    extra = np.where(kept, alpha - 1, 0.0)
    counts = extra > 0
    mode = 1.0 if latent == "bernoulli" else extra[counts] / extra.sum()
    return float(extra[counts] @ np.log(np.maximum(pi[counts], LEAST_PI) / mode))


def from_gamma(
    gamma: Floats, alpha: Floats, kept: NDArray[np.bool_], latent: str = LATENT[0]
) -> Floats:
    """Return pi ~ gamma + alpha - 1: the exact M-step under the prior (section 3.5)."""
    if latent == "bernoulli":
        return np.where(kept, np.maximum((gamma + (alpha - 1)) / alpha, LEAST_PI), 0.0)
    return normalised(gamma + (alpha - 1), kept)


def from_measure(
    measured: Floats, power: float, alpha: Floats, kept: NDArray[np.bool_], latent: str = LATENT[0]
) -> Floats:
    """Return pi ~ measure^power / sum of measure^power + alpha - 1 (eq. 18 and section 3.5)."""
    # Powers of shares of the largest measure: those of small numbers would all become 0
    # measured float64 [n_workers]; alpha float64 [n_workers]; kept bool [n_workers], who takes part
    is_alone, known = latent == "bernoulli", kept & ~np.isnan(measured)
    top = float(measured[known].max(initial=0.0)) or 1.0
    if is_alone and top > 1:
        raise InputError("reliability: with latent='bernoulli' a measure must be at most 1")
    share = np.where(known, 0.0, 1.0)
    share[known] = measured[known] / (1.0 if is_alone else top)
    if known.any():
        share[~known] = share[known].mean()
    powers = share**power
    return from_gamma(powers if is_alone else normalised(powers, kept), alpha, kept, latent)


def normalised(values: Floats, kept: NDArray[np.bool_]) -> Floats:
    """Divide by the sum; the same for all who take part if all are 0, and 0 for the others."""
    own = np.where(kept, values, 0.0)
    own = own if own.sum() > 0 else kept.astype(np.float64)
    return np.asarray(own / own.sum())


# --------------------------------------------------------------------------------------------------
# The reliabilities of CRF-MA round by round, and where it may begin.


@dataclass(frozen=True, eq=False)
class ReliabilityTrace:
    """Reliabilities and weights of workers in CRF-MA, round by round; `Consensus.memory`."""

    worker_ids: pa.Array  # Arrow string array [n_workers]
    begin: Floats  # [n_workers], reliabilities before the first round
    gamma: Floats  # [n_rounds, n_workers], the weights of workers in a round's training
    pi: Floats  # [n_rounds, n_workers], reliabilities after it
    expectation: Floats  # [n_rounds], eq
    objective: Floats  # [n_rounds], eq


def draws(ids: Sequence[str], seed: int | None) -> Floats:
    """Draw a number in (0, 1) for every worker, by id: the order of workers does not matter."""
    own = np.random.SeedSequence().entropy if seed is None else seed
    digests = [hashlib.blake2b(f"{own} crf-ma {name}".encode(), digest_size=8) for name in ids]
    return np.array([(int.from_bytes(d.digest(), "big") + 1) / 2**64 for d in digests])


def carried(trace: ReliabilityTrace, crowd: Crowd, kept: NDArray[np.bool_], latent: str) -> Floats:
    """Take over the reliabilities of an earlier result; new workers have the mean one."""
    old = dict(zip(trace.worker_ids.to_pylist(), trace.pi[-1].tolist(), strict=True))
    found = [old.get(name, np.nan) for name in crowd.worker_ids.to_pylist()]
    return from_measure(np.array(found), 1.0, np.ones(len(found)), kept, latent)


# --------------------------------------------------------------------------------------------------
# Rounds: weights of the answers, then the CRF, in turn, until little changes.


@dataclass(frozen=True, eq=False)
class State:
    """Where a run is."""

    weights: Weights | None = None  # Of the CRF, None before there is one
    trace: tuple[float, ...] = ()  # The objective after every round
    arrays: Mapping[str, Floats] = field(default_factory=dict)  # What else a method remembers


@dataclass(frozen=True, eq=False)
class Outcome:
    """Where a run stopped, and why."""

    state: State
    converged: bool
    reason: str


def run(
    state: State,
    one_round: Callable[[State], State],  # Returns the next state, whose trace is longer by one
    reason_to_stop: Callable[[State], str],  # Returns why a state is the last; "" to go on
    max_iter: int,
    context: RunContext,  # Progress and checkpoint
) -> Outcome:
    """Do rounds."""
    kept = context.checkpoint.load(context.fingerprint) if context.checkpoint else None
    if kept is not None:
        arrays = {name: np.array(value) for name, value in kept.items()}
        weights = Weights.of_vector(arrays.pop("weights"), *arrays.pop("shape").tolist())
        trace = tuple(arrays.pop("trace").tolist())
        state = replace(state, trace=trace, weights=weights, arrays=arrays)
    begin, done = time.perf_counter(), len(state.trace)
    try:
        while len(state.trace) < max_iter:
            state = one_round(state)
            now = len(state.trace)
            if not np.isfinite(state.trace[-1]):
                raise InputError(
                    f"the objective is {state.trace[-1]} after round {now}: the CRF finds some "
                    "answers impossible, or its weights are too large; a larger c2 or fewer steps "
                    "keep them small"
                )
            if context.progress:
                pace = (time.perf_counter() - begin) / (now - done)
                context.progress(now, max_iter, state.trace[-1], pace * (max_iter - now))
            reason = reason_to_stop(state)
            if reason:
                return Outcome(state, converged=True, reason=reason)
            if context.checkpoint and now < max_iter:  # a resumed run does one round at least
                context.checkpoint.save(context.fingerprint, _kept(state))
    except KeyboardInterrupt:
        if not state.trace:  # no round is done; weights may be there from a warm start
            raise
        return Outcome(state, converged=False, reason=INTERRUPTED)
    return Outcome(state, converged=False, reason="max_iter")


def moved(trace: tuple[float, ...]) -> float:
    """Return the relative change of the objective in the last round, inf after the first."""
    if len(trace) < 2:
        return np.inf
    return abs(trace[-1] - trace[-2]) / max(1.0, abs(trace[-2]))


def _kept(state: State) -> dict[str, Floats]:
    assert state.weights is not None
    shape = np.array(state.weights.state.shape)
    parts = {"trace": np.array(state.trace), "shape": shape, "weights": state.weights.vector}
    return parts | dict(state.arrays)


# --------------------------------------------------------------------------------------------------
# A crowd prepared for CRFs: features, training sequences, known truth.


@dataclass(frozen=True, eq=False)
class CrfInputs:
    """A crowd with its features."""

    crowd: Crowd
    masks: Masks  # What its encoding allows
    text: Text
    numbers: FeatureMap  # How words become features
    features: Features
    sequences: TrainingSequences  # The answers, in the order of `crowd.latest`
    known: NDArray[np.int16]  # [n_tokens], truth that is given, -1 unknown
    runner: Runner
    notes: tuple[str, ...]

    @property
    def n_labels(self) -> int:
        """Number of tags."""
        return len(self.masks.start)

    @cached_property
    def truth(self) -> TrainingSequences:
        """The known truth as answers."""
        return TrainingSequences.of_truth(self.known, self.crowd.offsets)

    @cached_property
    def is_answered(self) -> NDArray[np.bool_]:
        """Whether an item has an answer or known truth, bool [n_items]."""
        is_answered = np.diff(self.crowd.by_item.bounds) > 0
        return np.asarray(is_answered | (self.truth.n_given > 0))

    def scores(self, weights: Weights | None) -> Scores:
        """Score all tokens; without weights every well-formed sequence is as good."""
        if weights is None:
            return Scores.even(self.crowd.n_tokens, self.masks)
        return Scores.of(self.features, weights, self.masks)

    def targets(self, weight: Floats, truth_weight: Floats, scores: Scores) -> Targets:
        """Sum up answers and known truth."""
        # Answers to items whose truth is known completely are left out
        # weight float64 [n_answers]; truth_weight float64 [n_items], of items with known truth
        sums = TokenTargets.zeros(self.crowd.offsets, self.n_labels)
        lengths = np.diff(self.crowd.offsets)
        known = ((self.truth.n_given == lengths) & (lengths > 0))[self.sequences.item]
        self.sequences.add_to(sums, np.where(known, 0.0, weight), scores)
        self.truth.add_to(sums, truth_weight, scores)
        return sums.targets(self.features, self.numbers.n_features)

    def train(
        self, targets: Targets, start: Weights | None, c2: float, steps: int
    ) -> tuple[Weights, Minimum]:
        """Do some steps of L-BFGS from the weights that were."""
        return train(
            self.features, targets, self.masks, c2=c2, runner=self.runner, start=start,
            max_iter=steps,
        )  # fmt: skip

    def carried(self, tagger: FeatureTagger) -> Weights:
        """Take over the weights of an earlier tagger."""
        known = (tagger.weights_, tagger.features_, tagger.codec_)
        return carry(*known, self.numbers, self.crowd.tagset)

    def fingerprint(self, method: str, params: Mapping[str, Any], begin: State) -> str:
        """Name a run by its words, answers, known truth and parameters, and where it begins."""
        names = (self.crowd.worker_ids, self.text.words)
        texts = ("\n".join(map(str, ids.to_pylist())).encode() for ids in names)
        one, workers = self.sequences, self.crowd.latest.worker
        parts: list[NDArray[Any]] = [np.frombuffer(text, np.uint8) for text in texts]
        parts += [one.item, workers, one.offset, one.codes, one.tokens]
        parts += [self.known, *begin.arrays.values()]
        parts += [] if begin.weights is None else [begin.weights.vector]
        parts += [] if self.text.group is None else [self.text.group]
        return fingerprint_of(method, params, self.crowd.tagset, parts)


def prepare(crowd: Crowd, context: FitContext, templates: Any, min_count: int) -> CrfInputs:
    """Prepare a crowd."""
    check_words(crowd)
    masks = Masks.of(crowd.tagset, hard=True)
    sequences, repaired = TrainingSequences.of_crowd(crowd, masks)
    text = text_of(crowd)
    numbers, features = FeatureMap.fit(text, read_templates(templates), min_count=min_count)
    known, notes = np.full(crowd.n_tokens, -1, np.int16), list[str]()
    if context.known is not None:
        known, notes = legal_known(context.known, crowd)
    notes += [f"{repaired} malformed tags of workers made well-formed"] if repaired else []
    return CrfInputs(
        crowd, masks, text, numbers, features, sequences, known, context.runner, tuple(notes)
    )
