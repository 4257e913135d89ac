"""How precise workers are with numbers, by the distances of their answers from the values.

With weights="agreement" worker k has the weight 1 / v_k, where v_k estimates the variance of his
answers from their distances to the values m,

    v_k = (sum_i (x_ki - m_i)^2 / (1 - w_k / W_i) + S v) / (n_k + S)

over the n_k items that others answered as well. W_i is the weight of an item's answers: the divisor
makes up for the worker's own part in a mean, without it the weights would run away to one worker.
The mean v of all workers counts as S = `SHRINKAGE` answers. For medians the divisor is the same,
which is near enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan.aggregate.consensus import Consensus
from goldspan.aggregate.numeric.numbers import Groups, label_numbers
from goldspan.aggregate.weighted.ballots import Ballots
from goldspan.crowd import Crowd

SHRINKAGE = 2.0
"""Answers that the pool's variance counts as in a worker's."""


@dataclass(frozen=True, eq=False)
class Answers:
    """The numbers that were answered.

    Attributes:
        ballots: Who gave which label to which item.
        groups: The same as numbers by item.
        known: float64 [n_items], known values, NaN unknown.
        past: Sums of squared errors and counts of an earlier result, float64 [2, n_workers].
    """

    ballots: Ballots
    groups: Groups
    known: NDArray[np.float64]
    past: NDArray[np.float64]

    def errors(self, values: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Give distances from the values, [n_answers], and which of them say something.

        A lone answer is its item's value: its distance says nothing, unless the truth is known.
        """
        token = self.ballots.token
        tells = (self.groups.size > 1) | ~np.isnan(self.known)
        return self.groups.number - values[token], tells[token]


def lay_out(
    crowd: Crowd, numbers: NDArray[np.float64], known: NDArray[np.int16] | None,
    history: Consensus | None,
) -> Answers:  # fmt: skip
    """Read answers, known truth and an earlier result as numbers."""
    ballots = Ballots.of(crowd)
    groups = Groups(ballots.token, numbers[ballots.label], crowd.n_items)
    truth = np.full(crowd.n_items, np.nan)
    if known is not None:
        truth[known >= 0] = numbers[known[known >= 0]]
    past = np.zeros((2, crowd.n_workers))
    if history is not None:
        squares, counts = error_sums(history, np.square)
        place = pc.index_in(crowd.worker_ids, value_set=history.crowd.worker_ids)
        index = pc.fill_null(place, -1).to_numpy(zero_copy_only=False)
        past = np.where(index >= 0, np.stack([squares, counts])[:, index], 0.0)
    return Answers(ballots, groups, truth, past)


def precision(
    answers: Answers, weight: NDArray[np.float64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Give the workers' weights, 1 / variance, scaled to a mean of 1, float64 [n_workers]."""
    ballots = answers.ballots
    error, tells = answers.errors(values)
    own = weight[ballots.worker]
    part = np.where(np.isnan(answers.known)[ballots.token], own, 0)  # none in a known value
    rest = 1 - part / answers.groups.total(own)[ballots.token]
    square = np.divide(error**2, rest, out=np.zeros(len(error)), where=tells & (rest > 0))
    squares = ballots.per_worker(square) + answers.past[0]
    counts = ballots.per_worker(tells) + answers.past[1]
    if squares.sum() <= 0:
        return np.ones(len(counts))
    pool = squares.sum() / counts.sum()
    found = (counts + SHRINKAGE) / (squares + SHRINKAGE * pool)
    return np.asarray(found / found.mean())


def error_sums(result: Consensus, of: Callable[[Any], Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Sum a function of the distances over every worker; also count them, [n_workers] each."""
    crowd, values = result.crowd, result.values
    assert values is not None
    ballots = Ballots.of(crowd)
    number = label_numbers(crowd.tagset, result.method)[ballots.label]
    tells = (ballots.per_token(None) > 1)[ballots.token]
    found = np.where(tells, of(number - values[ballots.token]), 0.0)
    return ballots.per_worker(found), ballots.per_worker(tells)
