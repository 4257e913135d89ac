"""GLAD (Whitehill et al. 2009): the ability of workers and the difficulty of items, by EM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logsumexp

from goldspan.aggregation.weighted import (
    IteratedVote,
    VoteInputs,
    WeightedScores,
    run_rounds,
    softmax,
)

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


class Glad(IteratedVote):
    r"""GLAD: EM over the ability of workers and the difficulty of items.

    Confidence of labels is the posterior; of spans and tagged items a share of weight. The result's
    `item_columns["difficulty"]` holds 1 / beta, of tagged items the mean of their tokens; the
    column `weight` of its workers holds alpha, below 0 for those who mix labels up. Known truth is
    clamped; judged labels of an earlier result count as that many labels on items of usual
    difficulty (ln beta = 1). With few labels per item the difficulty of an item says little.

    Args:
        tol: Relative change of the objective at which to stop.

    >>> from goldspan import read_crowd
    >>> crowd = read_crowd(b"task,worker,label\n1,a,x\n1,b,x\n1,c,x\n2,a,y\n2,b,y\n2,c,x\n")
    >>> found = Glad().fit(crowd).result_
    >>> easy, hard = found.item_columns["difficulty"]
    >>> found.labels, bool(easy < hard)
    (['x', 'y'], True)
    """

    name = "glad"

    def _weigh(self, inputs: VoteInputs) -> WeightedScores:
        model = _Model(inputs)
        n_tokens, n_workers, _ = inputs.token_labels.shape
        alpha, ease = np.full(n_workers, CENTRE), np.full(n_tokens, CENTRE)
        scores, probs, before = model.expect(alpha, ease)

        def step(n: int) -> tuple[float, bool]:  # noqa: ARG001 - every round is alike
            nonlocal alpha, ease, scores, probs, before
            alpha, ease = model.climb(alpha, ease, probs)
            scores, probs, objective = model.expect(alpha, ease)
            close = abs(objective - before) <= self.tol * abs(before)
            before = objective
            return objective, close

        rounds = run_rounds(step, self.max_iter, inputs.context.progress)
        difficulty = _by_item(inputs, np.exp(-ease))
        return WeightedScores(
            alpha, scores, probs, is_posterior=True, rounds=rounds,
            item_columns={"difficulty": difficulty},
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Model:
    """The model of some inputs; its parameters are alpha [n_workers] and ln beta [n_tokens]."""

    inputs: VoteInputs

    def expect(
        self, alpha: NDArray[np.float64], ease: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """Return scores and probabilities, [n_tokens, n_labels], and the objective."""
        token_labels, known = self.inputs.token_labels, self.inputs.known
        spread = np.log(max(token_labels.shape[2] - 1, 1))
        power = alpha[token_labels.worker] * np.exp(ease)[token_labels.token]
        wrong = token_labels.per_token(log_expit(-power) - spread)
        scores = token_labels.sums(power + spread)
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
        token_labels = self.inputs.token_labels
        right = probs[token_labels.token, token_labels.label]

        def workers(alpha: NDArray[np.float64]) -> Terms:
            beta = np.exp(ease)[token_labels.token]
            terms = _likelihood(right, alpha[token_labels.worker] * beta, beta)
            return _added(
                [token_labels.per_worker(x) for x in terms], self._past(alpha), _prior(alpha)
            )

        def tokens(ease: NDArray[np.float64]) -> Terms:
            power = alpha[token_labels.worker] * np.exp(ease)[token_labels.token]
            terms = _likelihood(right, power, power)  # d power / d ln beta is power itself
            return _added([token_labels.per_token(x) for x in terms], _prior(ease))

        for _ in range(CLIMBS):
            alpha = _step(alpha, workers)
            ease = np.clip(_step(ease, tokens), -MOST, MOST)
        return alpha, ease

    def _past(self, alpha: NDArray[np.float64]) -> Terms:
        """Return the terms of past judgements, as of labels on items with ln beta = `CENTRE`."""
        past, beta = self.inputs.past, np.exp(CENTRE)
        value, _, bend = _likelihood(np.zeros(1), alpha * beta, beta)
        value = past.right * alpha * beta + past.total * value
        slope = beta * (past.right - past.total * expit(alpha * beta))
        return value, slope, past.total * bend


def _likelihood(right: NDArray[np.float64], power: NDArray[np.float64], by: Any) -> Terms:
    """Return the terms of labels: expected log-likelihood, slope, and Fisher information."""
    hit = expit(power)
    value = right * power + log_expit(-power)
    return value, (right - hit) * by, hit * (1 - hit) * by**2


def _prior(values: NDArray[np.float64]) -> Terms:
    """Return the terms of N(`CENTRE`, 1)."""
    away = values - CENTRE
    return -(away**2) / 2, -away, np.ones(len(values))


def _added(*terms: Sequence[NDArray[np.float64]]) -> Terms:
    value, slope, bend = (np.sum(parts, axis=0) for parts in zip(*terms, strict=True))
    return value, slope, bend


def _step(
    at: NDArray[np.float64], terms: Callable[[NDArray[np.float64]], Terms]
) -> NDArray[np.float64]:
    """Do a step of Fisher scoring for parameters that do not depend on each other."""
    # Every parameter has a value of its own; where it fell, the step is halved, at last to nothing
    value, slope, bend = terms(at)
    step = np.clip(slope / bend, -1, 1)
    for _ in range(HALVINGS):
        fell = terms(at + step)[0] < value
        if not fell.any():
            return np.asarray(at + step)
        step = np.where(fell, step / 2, step)
    return np.where(fell, at, at + step)


def _by_item(inputs: VoteInputs, tokens: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean over an item's tokens that have labels, float64 [n_items]; else NaN."""
    crowd, voted = inputs.crowd, inputs.token_labels.voted
    item = np.repeat(np.arange(crowd.n_items), np.diff(crowd.offsets))[voted]
    total = np.bincount(item, tokens[voted], crowd.n_items)
    count = np.bincount(item, minlength=crowd.n_items)
    empty = np.full(crowd.n_items, np.nan)
    return np.asarray(np.divide(total, count, out=empty, where=count > 0))
