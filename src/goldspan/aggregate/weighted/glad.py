"""GLAD (Whitehill et al. 2009): the ability of workers and the difficulty of items, by EM.

A worker of ability alpha is right on a token of easiness beta > 0 with probability

    P(right) = sigma(alpha beta),

wrong labels are equally likely, and so are true ones. alpha and ln beta have the prior N(1, 1). The
M-step improves all workers, then all tokens, by guarded steps of Fisher scoring, so that the
objective – ln P(labels, alpha, ln beta), up to a constant – never falls. The label of a token is
argmax_l sum_k (alpha_k beta + ln(L - 1)) [label_k = l].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logsumexp

from goldspan.aggregate.bsc.engine import Stopping
from goldspan.aggregate.consensus import Consensus
from goldspan.aggregate.weighted.base import Case, Weighing, WeightedVote, softmax
from goldspan.aggregate.weighted.rounds import run_rounds
from goldspan.tagger.parameters import check_whole

CLIMBS = 2
"""Steps of Fisher scoring in one M-step, of the workers and then of the tokens."""
HALVINGS = 5
"""Of a step that would lower the objective."""
CENTRE = 1.0
"""Of the priors of alpha and of ln beta."""
MOST = 6.0
"""Of |ln beta|: far beyond what the prior lets happen, it keeps numbers finite."""

Terms = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
"""Of every parameter: its part of the objective, the slope, and the information (positive)."""


class Glad(WeightedVote):
    r"""GLAD: EM over the ability of workers and the difficulty of items.

    Confidence of labels is the posterior; of spans and tagged items a share of weight. The result's
    `item_columns["difficulty"]` holds 1 / beta, of tagged items the mean of their tokens; the
    column `weight` of its workers holds alpha, below 0 for those who mix labels up. Known truth is
    clamped; judged labels of an earlier result count as that many labels on items of usual
    difficulty (ln beta = 1). With few labels per item the difficulty of an item says little.

    Args:
        tol: Relative change of the objective at which to stop.
        max_iter: Most rounds.
        ties: As for `mv-token`.
        legal: Make the result well-formed: the legal sequence with the largest sum.
        random_state: Seed for ties="random".
        history: An earlier result of any method.

    >>> from goldspan import read_crowd
    >>> crowd = read_crowd(b"task,worker,label\n1,a,x\n1,b,x\n1,c,x\n2,a,y\n2,b,y\n2,c,x\n")
    >>> found = Glad().fit(crowd).result_
    >>> easy, hard = found.item_columns["difficulty"]
    >>> found.labels, bool(easy < hard)
    (['x', 'y'], True)
    """

    name = "glad"

    def __init__(
        self,
        *,
        tol: float = 1e-5,
        max_iter: int = 100,
        ties: str = "outside",
        legal: bool = True,
        random_state: int | None = 0,
        history: Consensus | None = None,
    ) -> None:
        self.tol = tol
        self.max_iter = max_iter
        super().__init__(ties=ties, legal=legal, random_state=random_state, history=history)
        self._check()

    def _check(self) -> None:
        super()._check()
        Stopping(self.tol, self.max_iter)
        check_whole("max_iter", self.max_iter, 1)

    def _weigh(self, case: Case) -> Weighing:
        model = _Model(case)
        n_tokens, n_workers, _ = case.ballots.shape
        alpha, ease = np.full(n_workers, CENTRE), np.full(n_tokens, CENTRE)
        scores, probs, before = model.expect(alpha, ease)

        def step(n: int) -> tuple[float, bool]:  # noqa: ARG001 - every round is alike
            nonlocal alpha, ease, scores, probs, before
            alpha, ease = model.climb(alpha, ease, probs)
            scores, probs, objective = model.expect(alpha, ease)
            close = abs(objective - before) <= self.tol * abs(before)
            before = objective
            return objective, close

        course = run_rounds(step, self.max_iter, case.given.progress)
        difficulty = _by_item(case, np.exp(-ease))
        return Weighing(
            alpha, scores, probs, is_posterior=True, course=course,
            item_columns={"difficulty": difficulty},
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Model:
    """The model of a case; its parameters are alpha [n_workers] and ln beta [n_tokens]."""

    case: Case

    def expect(
        self, alpha: NDArray[np.float64], ease: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """Give scores and probabilities, [n_tokens, n_labels], and the objective."""
        ballots, known = self.case.ballots, self.case.known
        spread = np.log(max(ballots.shape[2] - 1, 1))
        power = alpha[ballots.worker] * np.exp(ease)[ballots.token]
        wrong = ballots.per_token(log_expit(-power) - spread)
        scores = ballots.sums(power + spread)
        probs, mass = softmax(scores), logsumexp(scores, axis=1)
        if known is not None:
            there = np.flatnonzero(known >= 0)
            probs[there] = 0
            probs[there, known[there]] = 1
            mass[there] = scores[there, known[there]]
        prior = self._past(alpha)[0].sum() + _prior(alpha)[0].sum() + _prior(ease)[0].sum()
        return scores, probs, float((wrong + mass).sum() + prior)

    def climb(
        self, alpha: NDArray[np.float64], ease: NDArray[np.float64], probs: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Raise the expected log-likelihood under the labels' probabilities."""
        ballots = self.case.ballots
        right = probs[ballots.token, ballots.label]

        def workers(alpha: NDArray[np.float64]) -> Terms:
            beta = np.exp(ease)[ballots.token]
            terms = _likelihood(right, alpha[ballots.worker] * beta, beta)
            return _added([ballots.per_worker(x) for x in terms], self._past(alpha), _prior(alpha))

        def tokens(ease: NDArray[np.float64]) -> Terms:
            power = alpha[ballots.worker] * np.exp(ease)[ballots.token]
            terms = _likelihood(right, power, power)  # d power / d ln beta is power itself
            return _added([ballots.per_token(x) for x in terms], _prior(ease))

        for _ in range(CLIMBS):
            alpha = _step(alpha, workers)
            ease = np.clip(_step(ease, tokens), -MOST, MOST)
        return alpha, ease

    def _past(self, alpha: NDArray[np.float64]) -> Terms:
        """Give the terms of past judgements, as of labels on items with ln beta = `CENTRE`."""
        past, beta = self.case.past, np.exp(CENTRE)
        value, _, bend = _likelihood(np.zeros(1), alpha * beta, beta)
        value = past.right * alpha * beta + past.total * value
        slope = beta * (past.right - past.total * expit(alpha * beta))
        return value, slope, past.total * bend


def _likelihood(right: NDArray[np.float64], power: NDArray[np.float64], by: Any) -> Terms:
    """Give the terms of labels: expected log-likelihood, slope, and Fisher information.

    Args:
        right: Probability of being right.
        power: alpha beta.
        by: Derivative of `power` by the parameter.
    """
    hit = expit(power)
    value = right * power + log_expit(-power)
    return value, (right - hit) * by, hit * (1 - hit) * by**2


def _prior(values: NDArray[np.float64]) -> Terms:
    """Give the terms of N(`CENTRE`, 1)."""
    away = values - CENTRE
    return -(away**2) / 2, -away, np.ones(len(values))


def _added(*terms: Sequence[NDArray[np.float64]]) -> Terms:
    value, slope, bend = (np.sum(parts, axis=0) for parts in zip(*terms, strict=True))
    return value, slope, bend


def _step(
    at: NDArray[np.float64], terms: Callable[[NDArray[np.float64]], Terms]
) -> NDArray[np.float64]:
    """Do a step of Fisher scoring for parameters that do not depend on each other.

    Every parameter has a value of its own; where it fell, the step is halved, at last to nothing.
    """
    value, slope, bend = terms(at)
    step = np.clip(slope / bend, -1, 1)
    for _ in range(HALVINGS):
        fell = terms(at + step)[0] < value
        if not fell.any():
            return np.asarray(at + step)
        step = np.where(fell, step / 2, step)
    return np.where(fell, at, at + step)


def _by_item(case: Case, tokens: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the mean over an item's tokens that have labels, float64 [n_items]; NaN without any."""
    crowd, voted = case.crowd, case.ballots.voted
    item = np.repeat(np.arange(crowd.n_items), np.diff(crowd.offsets))[voted]
    total = np.bincount(item, tokens[voted], crowd.n_items)
    count = np.bincount(item, minlength=crowd.n_items)
    empty = np.full(crowd.n_items, np.nan)
    return np.asarray(np.divide(total, count, out=empty, where=count > 0))
