"""What votes with weights share: from weights to labels, shares, and a result.

At every token the label with the largest sum of weights wins, argmax_l sum_k nu_k [label_k = l];
a negative weight speaks for all other labels. Ties, well-formed sequences and open items are as for
votes. Confidence is a share of weight, a negative one spread over the other labels: no calibrated
probability. Where a method has a posterior, that is the confidence of its labels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.aggregate.base import Aggregator, Given
from goldspan.aggregate.clamp import leave_open, read_known, sure_of, with_known
from goldspan.aggregate.consensus import Consensus
from goldspan.aggregate.shares import agreement_table, item_shares, span_shares
from goldspan.aggregate.weighted.ballots import Ballots, in_grains
from goldspan.aggregate.weighted.judged import Judged, remembered
from goldspan.aggregate.weighted.rounds import AT_ONCE, Course
from goldspan.aggregate.winners import check_choices, winners
from goldspan.aggregate.workers import worker_table
from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.spans import Tagged, find_errors


@dataclass(frozen=True, eq=False)
class Case:
    """What there is to decide from.

    Attributes:
        crowd: The crowd.
        ballots: The labels that count.
        known: int16 [n_tokens], known truth, -1 unknown; or None.
        past: What an earlier result knows of the workers.
        given: What else the aggregator was given.
    """

    crowd: Crowd
    ballots: Ballots
    known: NDArray[np.int16] | None
    past: Judged
    given: Given


@dataclass(frozen=True, eq=False)
class Weighing:
    """What a method found.

    Attributes:
        weight: float64 [n_workers], shown in the table of workers.
        scores: float64 [n_tokens, n_labels], the largest wins; None: sums of `weight`.
        probs: float64 [n_tokens, n_labels]; None: shares of weight.
        is_posterior: Whether `probs` are probabilities, by which workers can be judged.
        n_absent: Labels that may be right but that the crowd does not have; their part of the
            confidence is missing from its rows.
        course: How its rounds went.
        notes: Decisions and warnings.
        item_columns: What it found out about items.
    """

    weight: NDArray[np.float64]
    scores: NDArray[np.float64] | None = None
    probs: NDArray[np.float64] | None = None
    is_posterior: bool = False
    n_absent: int = 0
    course: Course = AT_ONCE
    notes: tuple[str, ...] = ()
    item_columns: dict[str, NDArray[np.float64]] = field(default_factory=dict)


class WeightedVote(Aggregator):
    """Base of the votes with weights; a subclass finds the weights in `_weigh`."""

    def __init__(
        self, *, ties: str, legal: bool, random_state: int | None, history: Consensus | None
    ) -> None:
        self.ties = ties
        self.legal = legal
        self.random_state = random_state
        self.history = history

    def _check(self) -> None:
        """Refuse parameters that make no sense."""
        check_choices(self.ties, self.legal, self.random_state)
        if self.history is not None and not isinstance(self.history, Consensus):
            raise InputError(f"history must be an earlier result, not {self.history!r}")

    def _weigh(self, case: Case) -> Weighing:
        """Find the weights."""
        raise NotImplementedError  # pragma: no cover

    def _voters(self, crowd: Crowd) -> NDArray[np.bool_] | None:  # noqa: ARG002 - for subclasses
        """Say who votes, bool [n_workers]; None: everybody."""
        return None

    def _past(self, crowd: Crowd) -> Judged:
        return remembered(self.history, crowd)

    def _aggregate(self, crowd: Crowd, given: Given) -> Consensus:
        known, notes = read_known(given.known, crowd, legal=self.legal)
        ballots = Ballots.of(crowd, self._voters(crowd))
        found = self._weigh(Case(crowd, ballots, known, self._past(crowd), given))
        scores = found.scores
        if scores is None:
            scores = ballots.sums(found.weight[ballots.worker])
        codes, notes = self._decide(crowd, ballots, scores, known, notes)
        notes += unused_notes(self.name, given)
        probs = found.probs
        if probs is None:
            probs = weight_shares(ballots, scores, found.weight, found.n_absent)
        result = _result(crowd, codes, probs.astype(np.float32), found, (*found.notes, *notes))
        return result if known is None else sure_of(result, known)

    def _decide(
        self, crowd: Crowd, ballots: Ballots, scores: NDArray[np.float64],
        known: NDArray[np.int16] | None, notes: list[str],
    ) -> tuple[NDArray[np.int16], list[str]]:  # fmt: skip
        """Choose codes, int16 [n_tokens], -1 open; and say what was decided how."""
        votes, rule = in_grains(scores), (self.ties, self.random_state)
        codes = winners(votes, ballots.voted, crowd, crowd.tagset, rule, legal=self.legal)
        if known is not None:
            codes = with_known(codes, known, votes, crowd, legal=self.legal)
        illegal = len(find_errors(Tagged(codes, crowd.offsets), crowd.tagset))
        codes, n_open = leave_open(codes, self._asked(crowd), known, crowd)
        notes = [f"ties: {self.ties}", f"{illegal} illegal tags in the result", *notes]
        if n_open:
            notes.append(f"{n_open} items without answers are left open")
        return codes, notes

    def _asked(self, crowd: Crowd) -> NDArray[np.bool_]:
        """Whether anybody who votes answered an item, bool [n_items]."""
        voters, answers = self._voters(crowd), crowd.latest
        counts = None if voters is None else voters[answers.worker]
        return np.bincount(answers.item, counts, crowd.n_items) > 0


def unused_notes(name: str, given: Given) -> list[str]:
    """Say what a method was given to go on from and has no use for."""
    unused = {"start": given.start, "a checkpoint": given.checkpoint}
    return [f"{name} makes no use of {what}" for what, it in unused.items() if it is not None]


def weight_shares(
    ballots: Ballots, scores: NDArray[np.float64], weight: NDArray[np.float64], n_absent: int = 0
) -> NDArray[np.float64]:
    """Give every label's share of the weight at its token.

    A negative weight counts, in equal parts, for the labels that its worker did not give: this
    changes no order of labels. Where nobody has a weight all labels have the same share.

    Args:
        ballots: The labels.
        scores: float64 [n_tokens, n_labels], sums of weights.
        weight: float64 [n_workers].
        n_absent: Labels beyond these that a negative weight speaks for as well.

    Returns:
        float64 [n_tokens, n_labels]; rows sum to 1, or less by the share of the absent labels.
    """
    against = np.maximum(-weight, 0)
    mass, elsewhere = scores, np.zeros((len(scores), 1))
    if against.any():
        elsewhere = ballots.per_token(against[ballots.worker])[:, None]
        mass = np.maximum(scores + elsewhere, 0)
    whole = mass.sum(axis=1, keepdims=True) + n_absent * elsewhere
    even = np.full_like(mass, 1 / (mass.shape[1] + n_absent))
    return np.asarray(np.divide(mass, whole, out=even, where=whole > 0))


def softmax(scores: NDArray[np.float64], n_absent: int = 0) -> NDArray[np.float64]:
    """Turn log probabilities up to a constant into probabilities, row by row.

    Args:
        scores: float64 [n_tokens, n_labels].
        n_absent: Labels beyond these, with a score of 0 each.
    """
    top = scores.max(axis=1, keepdims=True, initial=0.0 if n_absent else -np.inf)
    found = np.exp(scores - top)
    absent = n_absent * np.exp(-top) if n_absent else 0.0
    return np.asarray(found / (found.sum(axis=1, keepdims=True) + absent))


def _result(
    crowd: Crowd, codes: NDArray[np.int16], probs: NDArray[np.float32], found: Weighing,
    notes: tuple[str, ...],
) -> Consensus:  # fmt: skip
    """Put the result together; single labels have one confidence, tagged tokens shares too."""
    if crowd.is_classification:
        given = np.take_along_axis(probs, np.maximum(codes, 0)[:, None].astype(np.int64), 1)[:, 0]
        items = np.where(codes >= 0, given, np.float32(0))
        spans = given[codes >= 0]
    else:
        counts = np.maximum(found.weight, 0)
        items, spans = item_shares(crowd, codes, counts), span_shares(crowd, codes, counts)
    return Consensus(
        crowd=crowd,
        codes=codes,
        token_probs=probs,
        span_confidence=spans,
        confidence=items,
        make_workers=partial(_workers, weight=found.weight, is_posterior=found.is_posterior),
        method="",
        trace=found.course.trace,
        converged=found.course.converged,
        stop_reason=found.course.stop_reason,
        notes=notes,
        item_columns=found.item_columns,
    )


def _workers(result: Consensus, weight: NDArray[np.float64], *, is_posterior: bool) -> Any:
    """Per worker the weight, and agreement with the labels or with their probabilities."""
    if is_posterior:
        table = worker_table(result.crowd, result.codes, result.token_probs)
    else:
        table = agreement_table(result)
    return table.append_column("weight", pa.array(weight))
