"""How many of the workers' labels are right: by known truth, by a result, by an earlier result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan.aggregate.consensus import Consensus
from goldspan.aggregate.weighted.ballots import Ballots
from goldspan.crowd import Crowd
from goldspan.crowd.measures import worker_rates

UNITS = ("token", "span")


@dataclass(frozen=True, eq=False)
class Judged:
    """Judged labels of the workers; where the truth is only inferred, expected ones.

    Attributes:
        right: float64 [n_workers].
        total: float64 [n_workers].
    """

    right: NDArray[np.float64]
    total: NDArray[np.float64]

    @classmethod
    def nothing(cls, n_workers: int) -> Judged:
        """Know nothing of anybody."""
        return cls(np.zeros(n_workers), np.zeros(n_workers))

    def __add__(self, other: Judged) -> Judged:
        """Put what is known together."""
        return Judged(self.right + other.right, self.total + other.total)

    def share(self, prior: tuple[float, float] = (0.0, 0.0)) -> NDArray[np.float64]:
        """Give the mean of Beta(prior + right, prior + wrong), NaN where there is nothing."""
        whole = self.total + prior[0] + prior[1]
        empty = np.full(len(whole), np.nan)
        return np.asarray(np.divide(self.right + prior[0], whole, out=empty, where=whole > 0))


def by_truth(
    crowd: Crowd, truth: NDArray[np.int16], ballots: Ballots, unit: str = "token"
) -> Judged:
    """Compare workers with what is known.

    Args:
        crowd: The crowd.
        truth: int16 [n_tokens], -1 unknown.
        ballots: The labels that count.
        unit: "token": labels; "span": right = TP and total = TP + (FP + FN) / 2, so that their
            ratio is the F1 of spans.
    """
    if unit == "span":
        rates = worker_rates(crowd, truth)
        right = np.array([rate.n_right for rate in rates], np.float64)
        total = np.array([(rate.n_true + rate.n_predicted) / 2 for rate in rates])
        return Judged(right, total)
    known = truth[ballots.token] >= 0
    right = ballots.per_worker(ballots.agree(truth))  # no label equals an unknown truth
    return Judged(right, ballots.per_worker(known))


def by_result(result: Consensus, unit: str = "token") -> Judged:
    """Give the expected right labels under a result's probabilities; spans by its spans.

    Args:
        result: Of any method.
        unit: As for `by_truth`.
    """
    ballots = Ballots.of(result.crowd)
    if unit == "span":
        return by_truth(result.crowd, result.codes, ballots, unit)
    probs = result.token_probs[ballots.token, ballots.label]
    return Judged(ballots.per_worker(probs), ballots.per_worker(None))


def remembered(history: Consensus | None, crowd: Crowd, unit: str = "token") -> Judged:
    """Give what an earlier result knows of a crowd's workers, found by id."""
    if history is None:
        return Judged.nothing(crowd.n_workers)
    past = by_result(history, unit)
    place = pc.fill_null(pc.index_in(crowd.worker_ids, value_set=history.crowd.worker_ids), -1)
    index = np.asarray(place.to_numpy(zero_copy_only=False), np.int64)
    known = index >= 0
    return Judged(np.where(known, past.right[index], 0), np.where(known, past.total[index], 0))
