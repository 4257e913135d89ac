"""Votes with a weight per worker: what they share, WMV, Wawa and ZBS."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan.aggregation.base import FitContext, as_crowd, read_known, sure_of
from goldspan.aggregation.bsc.priors import trusted_ids
from goldspan.aggregation.consensus import Consensus
from goldspan.aggregation.families import Families, families_for
from goldspan.aggregation.votes import GRAINS, Vote, agreement_table, item_shares, span_shares
from goldspan.aggregation.workers import worker_table
from goldspan.crowd import Crowd
from goldspan.crowd.measures import worker_rates
from goldspan.errors import InputError
from goldspan.params import Number, OneOf, Rounds, Tolerance, Whole, result
from goldspan.protocols import Progress

# --------------------------------------------------------------------------------------------------
# The labels that count in a vote, one row each, and their sums over tokens and workers.


@dataclass(frozen=True, eq=False)
class TokenLabels:
    """Who gave which label to which token."""

    token: NDArray[np.int64]  # [n_labels_given], flat token of the crowd
    worker: NDArray[np.int32]  # [n_labels_given]
    label: NDArray[np.int16]  # [n_labels_given], code
    shape: tuple[int, int, int]  # n_tokens, n_workers, n_labels
    share: NDArray[np.float64] | None = None  # [n_labels_given]

    @classmethod
    def of(
        cls,
        crowd: Crowd,
        voters: NDArray[np.bool_] | None = None,  # [n_workers], who votes; None: everybody
        families: Families | None = None,  # Workers who err together; None: everybody errs alone
    ) -> TokenLabels:
        """Take the labels of a crowd's latest answers, of some workers only if asked to."""
        codes, worker = crowd.latest.codes, crowd.worker_of
        counts = codes >= 0
        if voters is not None:
            counts &= voters[worker]
        shape = crowd.n_tokens, crowd.n_workers, len(crowd.tagset.tags)
        token = crowd.token_of
        if not counts.all():
            token, worker, codes = token[counts], worker[counts], codes[counts]
        share = None if families is None else families.weights(token, worker)
        return cls(token, worker, codes, shape, share)

    def __len__(self) -> int:
        """Count the labels."""
        return len(self.token)

    @cached_property
    def voted(self) -> NDArray[np.bool_]:
        """Whether a token has a label, bool [n_tokens]."""
        return np.bincount(self.token, minlength=self.shape[0]) > 0

    @cached_property
    def cell(self) -> NDArray[np.int64]:
        """Place of every label in a flat table [n_tokens, n_labels], int64 [n_labels_given]."""
        return self.token * self.shape[2] + self.label

    def sums(self, weight: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Sum weights per token and label, float64 [n_tokens, n_labels]."""
        # weight float64 [n_labels_given]; None: 1 each
        n_tokens, _, n_labels = self.shape
        found = np.bincount(self.cell, self.shared(weight), n_tokens * n_labels)
        return found.reshape(n_tokens, n_labels).astype(np.float64, copy=False)

    def per_token(self, values: NDArray[Any] | None) -> NDArray[np.float64]:
        """Sum over the labels of every token, float64 [n_tokens]; None: count them."""
        found = np.bincount(self.token, self.shared(values), self.shape[0])
        return found.astype(np.float64, copy=False)

    def shared(self, values: NDArray[Any] | None) -> Any:
        """Return values as they count at tokens, float64 [n_labels_given]; None: 1 each."""
        if self.share is None:
            return values
        return self.share if values is None else self.share * values

    def per_worker(self, values: NDArray[Any] | None) -> NDArray[np.float64]:
        """Sum over the labels of every worker, float64 [n_workers]; None: count them."""
        return np.bincount(self.worker, values, self.shape[1]).astype(np.float64, copy=False)


def in_grains(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Round scores to whole multiples of a small part of the largest, int64, same shape."""
    # Sums of the same weights in another order differ in their last bits
    most = np.abs(scores).max(initial=0.0)
    return np.rint(scores * (GRAINS / most if most > 0 else 0.0)).astype(np.int64)


# --------------------------------------------------------------------------------------------------
# Rounds of an iterative vote: the objective after each, progress, and when to stop.


@dataclass(frozen=True)
class RoundTrace:
    """How the rounds went."""

    trace: tuple[float, ...]  # The objective after every round
    converged: bool  # Whether it came to its end
    stop_reason: str  # "tol", "max_iter" or "interrupted"


AT_ONCE = RoundTrace((), converged=True, stop_reason="weighted votes need no iteration")
"""Of methods without rounds."""


def run_rounds(
    step: Callable[[int], tuple[float, bool]], max_iter: int, progress: Progress | None
) -> RoundTrace:
    """Do rounds until one says that it is the last, or there are enough of them."""
    # Ctrl-C ends them as well, but for the first
    trace: list[float] = []
    begin = time.perf_counter()
    try:
        while len(trace) < max_iter:
            objective, is_last = step(len(trace))
            trace.append(objective)
            if progress:
                pace = (time.perf_counter() - begin) / len(trace)
                progress(len(trace), max_iter, objective, pace * (max_iter - len(trace)))
            if is_last:
                return RoundTrace(tuple(trace), converged=True, stop_reason="tol")
    except KeyboardInterrupt:
        if not trace:
            raise
        return RoundTrace(tuple(trace), converged=False, stop_reason="interrupted")
    return RoundTrace(tuple(trace), converged=False, stop_reason="max_iter")


# --------------------------------------------------------------------------------------------------
# Reliabilities that are given: workers found by id, unknown ones with the mean of the prior.


def given_shares(reliability: Any, crowd: Crowd, prior: tuple[float, float]) -> NDArray[np.float64]:
    """Return the probability of being right of every worker of a crowd."""
    # returns float64 [n_workers]
    if isinstance(reliability, Mapping):
        ids = pa.array([str(name) for name in reliability], pa.string())
        shares = np.array(list(reliability.values()), np.float64)
    else:
        ids, shares, prior = reliability.worker_ids, reliability.mean, reliability.prior
    bad = np.flatnonzero(~((shares >= 0) & (shares <= 1)))
    if len(bad):
        at = int(bad[0])
        raise InputError(
            f"reliability: worker {ids[at].as_py()} has {shares[at]}; a share lies in 0 … 1"
        )
    place = pc.fill_null(pc.index_in(crowd.worker_ids, value_set=ids), len(shares))
    weight = prior[0] + prior[1]
    unknown = prior[0] / weight if weight > 0 else np.nan
    found = np.append(shares, unknown)[place.to_numpy(zero_copy_only=False)]
    return np.asarray(found, np.float64)


# --------------------------------------------------------------------------------------------------
# How many of the workers' labels are right: by known truth, by a result, by an earlier result.


UNITS = ("token", "span")


@dataclass(frozen=True, eq=False)
class Judged:
    """Judged labels of the workers; where the truth is only inferred, expected ones."""

    right: NDArray[np.float64]  # [n_workers]
    total: NDArray[np.float64]  # [n_workers]

    @classmethod
    def nothing(cls, n_workers: int) -> Judged:
        """Know nothing of anybody."""
        return cls(np.zeros(n_workers), np.zeros(n_workers))

    def __add__(self, other: Judged) -> Judged:
        """Put what is known together."""
        return Judged(self.right + other.right, self.total + other.total)

    def share(self, prior: tuple[float, float] = (0.0, 0.0)) -> NDArray[np.float64]:
        """Return the mean of Beta(prior + right, prior + wrong), NaN where there is nothing."""
        whole = self.total + prior[0] + prior[1]
        empty = np.full(len(whole), np.nan)
        return np.asarray(np.divide(self.right + prior[0], whole, out=empty, where=whole > 0))


def by_truth(
    crowd: Crowd, truth: NDArray[np.int16], token_labels: TokenLabels, unit: str = "token"
) -> Judged:
    """Compare workers with what is known."""
    # truth int16 [n_tokens], -1 unknown
    if unit == "span":
        rates = worker_rates(crowd, truth)
        right = np.array([rate.n_right for rate in rates], np.float64)
        total = np.array([(rate.n_true + rate.n_predicted) / 2 for rate in rates])
        return Judged(right, total)
    known = truth[token_labels.token] >= 0
    agrees = token_labels.label == truth[token_labels.token]  # no label equals an unknown truth
    return Judged(token_labels.per_worker(agrees), token_labels.per_worker(known))


def by_result(result: Consensus, unit: str = "token") -> Judged:
    """Return the expected right labels under a result's probabilities; spans by its spans."""
    token_labels = TokenLabels.of(result.crowd)
    if unit == "span":
        return by_truth(result.crowd, result.codes, token_labels, unit)
    probs = result.token_probs[token_labels.token, token_labels.label]
    return Judged(token_labels.per_worker(probs), token_labels.per_worker(None))


def remembered(history: Consensus | None, crowd: Crowd, unit: str = "token") -> Judged:
    """Return what an earlier result knows of a crowd's workers, found by id."""
    if history is None:
        return Judged.nothing(crowd.n_workers)
    past = by_result(history, unit)
    place = pc.fill_null(pc.index_in(crowd.worker_ids, value_set=history.crowd.worker_ids), -1)
    index = np.asarray(place.to_numpy(zero_copy_only=False), np.int64)
    known = index >= 0
    return Judged(np.where(known, past.right[index], 0), np.where(known, past.total[index], 0))


# --------------------------------------------------------------------------------------------------
# What votes with weights share: from weights to labels, shares, and a result.


@dataclass(frozen=True, eq=False)
class VoteInputs:
    """What there is to decide from."""

    crowd: Crowd
    token_labels: TokenLabels  # The labels that count
    known: NDArray[np.int16] | None  # [n_tokens], known truth, -1 unknown; or None
    past: Judged  # What an earlier result knows of the workers
    context: FitContext  # What else the aggregator was given
    families: Families | None = None  # Workers who err together; None: everybody errs alone


@dataclass(frozen=True, eq=False)
class WeightedScores:
    """What a method found."""

    weight: NDArray[np.float64]  # [n_workers], shown in the table of workers
    scores: NDArray[np.float64] | None = None  # [n_tokens, n_labels], the largest wins
    probs: NDArray[np.float64] | None = None  # [n_tokens, n_labels]; None: shares of weight
    is_posterior: bool = False  # Whether `probs` are probabilities, by which workers can be judged
    entropy: NDArray[np.float64] | None = None  # [n_items], of models whose posterior it is
    n_absent: int = 0  # Labels that may be right but that the crowd does not have
    rounds: RoundTrace = AT_ONCE  # How its rounds went
    notes: tuple[str, ...] = ()  # Decisions and warnings
    # What it found out about items
    item_columns: dict[str, NDArray[np.float64]] = field(default_factory=dict)


class WeightedVote(Vote):
    """Base of the votes with weights; a subclass finds the weights in `_weigh`.

    Args:
        ties: Which of tied labels wins, as for `mv-token`.
        legal: Make the result well-formed: the legal sequence with the largest sum.
        history: An earlier result of any method: its expected right labels of a worker count as
            that many more judged labels.
    """

    def _weigh(self, inputs: VoteInputs) -> WeightedScores:
        """Find the weights."""
        raise NotImplementedError  # pragma: no cover

    def _voters(self, crowd: Crowd) -> NDArray[np.bool_] | None:  # noqa: ARG002 - for subclasses
        """Return who votes, bool [n_workers]; None: everybody."""
        return None

    def _aggregate(self, crowd: Crowd, context: FitContext) -> Consensus:
        known, notes = read_known(context.known, crowd, legal=self.legal)
        families = families_for(self.families, crowd, context.known)
        voters, answers = self._voters(crowd), crowd.latest
        token_labels = TokenLabels.of(crowd, voters, families)
        past = remembered(self.history, crowd, getattr(self, "unit", "token"))
        found = self._weigh(VoteInputs(crowd, token_labels, known, past, context, families))
        scores = found.scores
        if scores is None:
            scores = token_labels.sums(found.weight[token_labels.worker])
        votes = in_grains(scores)
        codes = self._winners(crowd, votes, token_labels.voted, crowd.tagset)
        counts = None if voters is None else voters[answers.worker]
        asked = np.bincount(answers.item, counts, crowd.n_items) > 0
        codes, notes = self._completed(crowd, codes, votes, asked, known, notes)
        unused = {"start": context.start, "a checkpoint": context.checkpoint}
        notes += [f"{self.name} makes no use of {what}" for what, it in unused.items() if it]
        probs = found.probs
        if probs is None:
            probs = weight_shares(token_labels, scores, found.weight, found.n_absent)
        notes += [families.note] if families else []
        notes = [*found.notes, *notes]
        result = _result(crowd, codes, probs.astype(np.float32), found, tuple(notes), families)
        return result if known is None else sure_of(result, known)


class IteratedVote(WeightedVote):
    """Base of the votes that are found in rounds.

    Args:
        tol: Change at which to stop.
        max_iter: Most rounds.
    """

    tol: Tolerance = 1e-5
    max_iter: Rounds = 100


def weight_shares(
    token_labels: TokenLabels,
    scores: NDArray[np.float64],
    weight: NDArray[np.float64],
    n_absent: int = 0,
) -> NDArray[np.float64]:
    """Return every label's share of the weight at its token."""
    # A negative weight counts, in equal parts, for the labels that its worker did not give
    # scores float64 [n_tokens, n_labels], sums of weights; weight float64 [n_workers]
    # returns float64 [n_tokens, n_labels]
    against = np.maximum(-weight, 0)
    mass, elsewhere = scores, np.zeros((len(scores), 1))
    if against.any():
        elsewhere = token_labels.per_token(against[token_labels.worker])[:, None]
        mass = np.maximum(scores + elsewhere, 0)
    whole = mass.sum(axis=1, keepdims=True) + n_absent * elsewhere
    even = np.full_like(mass, 1 / (mass.shape[1] + n_absent))
    return np.asarray(np.divide(mass, whole, out=even, where=whole > 0))


def softmax(scores: NDArray[np.float64], n_absent: int = 0) -> NDArray[np.float64]:
    """Turn log probabilities up to a constant into probabilities, row by row."""
    # scores float64 [n_tokens, n_labels]
    top = scores.max(axis=1, keepdims=True, initial=0.0 if n_absent else -np.inf)
    found = np.exp(scores - top)
    absent = n_absent * np.exp(-top) if n_absent else 0.0
    return np.asarray(found / (found.sum(axis=1, keepdims=True) + absent))


def _result(
    crowd: Crowd, codes: NDArray[np.int16], probs: NDArray[np.float32], found: WeightedScores,
    notes: tuple[str, ...], families: Families | None,
) -> Consensus:  # fmt: skip
    """Put the result together; single labels have one confidence, tagged tokens shares too."""
    if crowd.is_classification:
        given = np.take_along_axis(probs, np.maximum(codes, 0)[:, None].astype(np.int64), 1)[:, 0]
        items = np.where(codes >= 0, given, np.float32(0))
        spans = given[codes >= 0]
    else:
        counts = np.maximum(found.weight, 0)
        own = crowd, codes, counts, families
        items, spans = item_shares(*own), span_shares(*own)
    return Consensus(
        crowd=crowd,
        codes=codes,
        token_probs=probs,
        span_confidence=spans,
        confidence=items,
        make_workers=partial(_workers, weight=found.weight, is_posterior=found.is_posterior),
        method="",
        trace=found.rounds.trace,
        converged=found.rounds.converged,
        stop_reason=found.rounds.stop_reason,
        notes=notes,
        entropy=None if found.entropy is None else found.entropy.astype(np.float32),
        item_columns=found.item_columns,
        families=families,
    )


def _workers(result: Consensus, weight: NDArray[np.float64], *, is_posterior: bool) -> Any:
    """Per worker the weight, and agreement with the labels or with their probabilities."""
    if is_posterior:
        table = worker_table(result.crowd, result.codes, result.token_probs)
    else:
        table = agreement_table(result)
    return table.append_column("weight", pa.array(weight))


# --------------------------------------------------------------------------------------------------
# Weighted majority votes by the workers' reliability (Li and Liu 2015; docs/math.md, section 8).


BELOW = ("negative", "zero")


def read_pair(prior: Any) -> tuple[float, float]:
    """Read pseudo-counts, given as a pair or as one string with a comma (on the command line).

    >>> read_pair((1, 1)), read_pair("0, 0.5")
    ((1.0, 1.0), (0.0, 0.5))
    """
    try:
        a, b = (float(x) for x in (prior.split(",") if isinstance(prior, str) else prior))
    except (TypeError, ValueError):
        a = b = np.nan
    if not (0 <= a < np.inf and 0 <= b < np.inf):
        raise InputError(f"prior must be a pair of numbers of at least 0, not {prior!r}")
    return a, b


def _check_source(method: Any) -> None:
    if not isinstance(method, str) or method.startswith("wmv-"):
        raise InputError(f"weights_from must be the name of another method, not {method!r}")


def _check_reliability(given: Any) -> None:
    known = given is None or hasattr(given, "worker_ids")
    if not known and not isinstance(given, Mapping):
        raise InputError(
            "reliability must be a Reliability or a mapping from worker ids to shares, not "
            f"{given!r}"
        )


class LinearVote(WeightedVote):
    r"""Weighted majority vote with the weights L w - 1.

    A worker's w is, in this order: what `reliability` says; the share of right labels among known
    truth, if `fit` is given any; the expected share of right labels by the method `weights_from`.
    Shares are means of Beta(prior + right, prior + wrong).

    Confidence is the share of weight at the token, no calibrated probability.

    Args:
        reliability: w by worker: a `goldspan.workers.Reliability` (its posterior means), or a
        mapping
            from ids to shares. Workers who are not in it have the mean of the prior.
        weights_from: The method that judges workers where there is nothing else to judge by.
        prior: Pseudo-counts of right and wrong labels. (0, 0) gives C / n as in the paper, and
            workers without a judged label no weight. On the command line "0,0".
        below: What becomes of workers below chance: "negative", their votes speak for the other
            labels, as in the paper, which is right for workers who mix labels up; or "zero", they
            have no say, which is safer where few labels were judged.
        only: Ids of the workers who vote, also as one string with commas; empty: everybody. Items
            that only others answered stay open. All labels serve to judge workers.
        unit: What a worker is judged by on tagged tokens: "token", their labels; "span", the F1 of
            their spans, with types + 1 for L.
        n_labels: L, the labels that a worker chooses from; None: that of a `Reliability`, else the
            labels of the crowd. Labels that the crowd does not have take part in the confidence.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"task,worker,label\n1,a,x\n1,b,y\n1,c,y\n")
    >>> LinearVote(reliability={"a": 0.9, "b": 0.6, "c": 0.6}).fit_predict(crowd)
    [['x']]
    """

    name = "wmv-linear"

    reliability: Annotated[Any, _check_reliability] = None
    weights_from: Annotated[str, _check_source] = "one-coin"
    prior: Annotated[tuple[float, float] | str, read_pair] = (1.0, 1.0)
    below: Annotated[str, OneOf(BELOW)] = "negative"
    only: Annotated[Collection[str], trusted_ids] = ()
    unit: Annotated[str, OneOf(UNITS)] = "token"
    n_labels: Annotated[int | None, Whole(2)] = None

    def _voters(self, crowd: Crowd) -> NDArray[np.bool_] | None:
        names = trusted_ids(self.only)
        if not names:
            return None
        votes = np.zeros(crowd.n_workers, np.bool_)
        votes[[crowd.worker_index(name) for name in names]] = True
        return votes

    def _weigh(self, inputs: VoteInputs) -> WeightedScores:
        right, source = self._right(inputs)
        tagset, measure = inputs.crowd.tagset, getattr(self.reliability, "measure", None)
        by_span = self.unit == "span" or measure == "span_f1"
        n_own = len(tagset.types) + 1 if by_span else len(tagset.tags)
        n_labels: int = getattr(self.reliability, "n_labels", max(n_own, 2))
        n_labels = self.n_labels or n_labels
        weight = self._weights(right, n_labels)
        if self.below == "zero":
            weight = np.maximum(weight, 0)
        voters = self._voters(inputs.crowd)
        below = int((weight < 0).sum())
        notes = [f"weights from {source}"]
        if n_labels != n_own:
            notes.append(f"weights are for {n_labels} labels, but the crowd has {n_own}")
        notes += [f"{below} workers below chance speak for the other labels"] if below else []
        if voters is not None:
            weight = np.where(voters, weight, 0)
            notes.append(f"{int(voters.sum())} of {len(voters)} workers vote")
        return WeightedScores(weight, n_absent=max(n_labels - n_own, 0), notes=tuple(notes))

    def _weights(self, right: NDArray[np.float64], n_labels: int) -> NDArray[np.float64]:
        """Turn w [n_workers], NaN unknown, into weights; those of the unknown are 0."""
        return np.nan_to_num(n_labels * right - 1, nan=0.0)

    def _right(self, inputs: VoteInputs) -> tuple[NDArray[np.float64], str]:
        """Return w of every worker, NaN unknown, and where it is from."""
        crowd = inputs.crowd
        if self.reliability is not None:
            shares = given_shares(self.reliability, crowd, read_pair(self.prior))
            return shares, "the reliability given"
        if self.unit == "span" and crowd.tagset.rules.is_plain:
            raise InputError('unit="span" needs spans: labels without prefixes have none')
        if inputs.known is not None:
            everybody = TokenLabels.of(crowd)
            judged, source = by_truth(crowd, inputs.known, everybody, self.unit), "known truth"
        else:
            judged, source = by_result(self._judge(inputs), self.unit), self.weights_from
        if self.history is not None:
            source += " and an earlier result"
        return (judged + inputs.past).share(read_pair(self.prior)), source

    def _judge(self, inputs: VoteInputs) -> Consensus:
        """Aggregate with the method that judges workers."""
        from goldspan.aggregation import get_aggregator

        judge, given = get_aggregator(self.weights_from), inputs.context
        if "families" in judge.parameter_names():
            judge.set_params(families=inputs.families or "none")
        return judge.fit(inputs.crowd, runner=given.runner, progress=given.progress).result_


class LogOddsVote(LinearVote):
    r"""Weighted majority vote with log-odds, ln((L - 1) w / (1 - w)).

    Confidence is the posterior under one probability w of being right per worker, where wrong
    labels and true labels are equally likely; of spans and of tagged items shares of weight.

    Args:
        truncation: w is kept in truncation … 1 - truncation: no test of ten questions makes a
            worker infallible.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"task,worker,label\n1,a,x\n1,b,y\n1,c,y\n")
    >>> vote = LogOddsVote(reliability={"a": 0.9, "b": 0.6, "c": 0.6}).fit(crowd).result_
    >>> vote.labels, round(float(vote.confidence[0]), 3)
    (['x'], 0.8)
    """

    name = "wmv-log"

    truncation: Annotated[float, Number(1e-9, 0.49)] = 0.05

    def _weights(self, right: NDArray[np.float64], n_labels: int) -> NDArray[np.float64]:
        kept = np.clip(right, self.truncation, 1 - self.truncation)
        return np.nan_to_num(np.log((n_labels - 1) * kept / (1 - kept)), nan=0.0)

    def _weigh(self, inputs: VoteInputs) -> WeightedScores:
        found = super()._weigh(inputs)
        scores = inputs.token_labels.sums(found.weight[inputs.token_labels.worker])
        probs = softmax(scores, found.n_absent)
        return replace(found, scores=scores, probs=probs, is_posterior=True)


# --------------------------------------------------------------------------------------------------
# Votes weighted by agreement with their own result: `wawa` once, `zbs` again and again.


class _Skilled(WeightedVote):
    """What both share: a vote, and the share of labels that agree with it."""

    def _vote(self, inputs: VoteInputs, skill: NDArray[np.float64] | None) -> NDArray[np.int16]:
        """Vote with skills [n_workers], None: all the same; known truth in its place."""
        token_labels, crowd = inputs.token_labels, inputs.crowd
        votes = in_grains(token_labels.sums(None if skill is None else skill[token_labels.worker]))
        codes = self._winners(crowd, votes, token_labels.voted, crowd.tagset)
        return codes if inputs.known is None else np.where(inputs.known >= 0, inputs.known, codes)

    def predict(self, crowd: Any, *, runner: Any = None) -> Consensus:
        """Vote on other items with the skills of the workers as `fit` left them."""
        found, table = as_crowd(crowd), self.result_.workers
        columns = (table.column(name).to_pylist() for name in ("worker", "weight"))
        skills = dict(zip(*columns, strict=True))
        ids = found.worker_ids.to_pylist()
        new = sum(name not in skills for name in ids)
        vote = _WithSkills(
            ties=self.ties, legal=self.legal, random_state=self.random_state,
            families=self.families,
        )  # fmt: skip
        vote.name, vote.skill = self.name, np.array([skills.get(name, 0.0) for name in ids])
        result = vote.fit(found, runner=runner).result_
        notes = (*result.notes, f"{new} workers who were not in the fitted data have no weight")
        return replace(
            result,
            method=self.name,
            params=self.get_params(),
            stop_reason="predicted with fixed parameters",
            notes=notes if new else result.notes,
        )

    def _agreement(self, inputs: VoteInputs, codes: NDArray[np.int16]) -> NDArray[np.float64]:
        """Share of labels that agree, [n_workers], the past included; 0 without any."""
        judged: Judged = by_truth(inputs.crowd, codes, inputs.token_labels) + inputs.past
        return np.nan_to_num(judged.share(), nan=0.0)


class _WithSkills(WeightedVote):
    """One vote with skills that are known, float64 [n_workers]."""

    skill: NDArray[np.float64] = result()

    def _weigh(self, inputs: VoteInputs) -> WeightedScores:  # noqa: ARG002 - there is nothing to find
        return WeightedScores(self.skill)


class Wawa(_Skilled):
    r"""Worker agreement with the aggregate: a majority vote, skills by it, a weighted vote.

    Confidence is the share of weight at the token, no calibrated probability. Known truth stands in
    the first vote.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"task,worker,label\n1,a,x\n1,b,x\n1,c,y\n2,a,y\n2,c,x\n")
    >>> Wawa().fit_predict(crowd)
    [['x'], ['x']]
    """

    name = "wawa"

    def _weigh(self, inputs: VoteInputs) -> WeightedScores:
        return WeightedScores(self._agreement(inputs, self._vote(inputs, None)))


class ZeroBasedSkill(_Skilled, IteratedVote):
    r"""Zero-based skill: all begin little better than chance, and votes and skills alternate.

    Every round takes a weighted vote and moves the skills towards their agreement with it,
    skill += rate (agreement - skill); the rate is halved every 20 rounds. The trace holds the mean
    square of agreement - skill, which the steps reduce while the vote stands.

    Confidence is the share of weight at the token, no calibrated probability.

    Args:
        rate: The first learning rate, in 0 … 1.
        tol: Largest difference of a skill from the agreement at which to stop.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"task,worker,label\n1,a,x\n1,b,x\n1,c,y\n2,a,y\n2,c,x\n")
    >>> ZeroBasedSkill().fit(crowd).result_.converged
    True
    """

    name = "zbs"
    above_chance = 1e-5
    halved_after = 20

    rate: Annotated[float, Number(above=0, most=1)] = 1.0

    def _weigh(self, inputs: VoteInputs) -> WeightedScores:
        chance = 1 / inputs.token_labels.shape[2] + self.above_chance
        skill = np.nan_to_num(inputs.past.share(), nan=chance)

        def step(n: int) -> tuple[float, bool]:
            nonlocal skill
            rest = self._agreement(inputs, self._vote(inputs, skill)) - skill
            skill = skill + self.rate * 0.5 ** ((n + 1) // self.halved_after) * rest
            return float((rest**2).mean()), bool(np.abs(rest).max() <= self.tol)

        rounds = run_rounds(step, self.max_iter, inputs.context.progress)
        return WeightedScores(skill, rounds=rounds)
