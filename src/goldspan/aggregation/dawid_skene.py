"""Dawid and Skene's family: the engine with the chain switched off (MATH section 4).

Every token is an item of its own with the same shares of labels. For single labels this is the
family as it is known; on tagged tokens labels come out well-formed, but workers' labels count as
independent of their neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from goldspan.aggregation.bsc.family import Variational
from goldspan.aggregation.consensus import Consensus
from goldspan.aggregation.workermodels import WorkerModel


class _Independent(Variational):
    """The family without a chain: its defaults are weaker priors and the likeliest labels.

    Args:
        alpha0: Pseudo-count of every label for every truth.
        epsilon0: Pseudo-count of the right label beyond it.
        prior: "given", "auto" or "population", as for `Variational`.
        trusted: Ids of workers who are believed to be good from the start, also as one string with
            commas.
        history: An earlier result whose workers are remembered.
        truth_prior: Pseudo-count of every label in the shares of the truth; ten keep the shares
            from running away where workers gave little (chosen on simulated sparse crowds).
        decode: "viterbi", the likeliest well-formed labels, or "mbr", the spans of largest
            expected F1.
        tol: Relative change of the objective at which to stop.
        max_iter: Most steps.
        n_starts: Starts from different points, of which the best objective counts.
        random_state: Seed of the starts beyond the first.
    """

    is_chain = False

    def __init__(
        self,
        *,
        alpha0: float = 1.0,
        epsilon0: float = 1.0,
        prior: str = "given",
        trusted: Sequence[str] = (),
        history: Consensus | None = None,
        truth_prior: float = 10.0,
        decode: str = "viterbi",
        tol: float = 1e-5,
        max_iter: int = 100,
        n_starts: int = 1,
        random_state: int | None = 0,
    ) -> None:
        super().__init__(
            alpha0=alpha0,
            epsilon0=epsilon0,
            prior=prior,
            trusted=trusted,
            history=history,
            truth_prior=truth_prior,
            decode=decode,
            tol=tol,
            max_iter=max_iter,
            n_starts=n_starts,
            random_state=random_state,
        )


class DawidSkene(_Independent):
    r"""Dawid and Skene (1979): EM over confusion matrices with smoothed counts.

    The counts are smoothed by `alpha0` for every label and `epsilon0` more for the right one:
    without, sparse workers make it worse than a majority vote.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"task,worker,label\n1,a,x\n1,b,x\n1,c,y\n2,a,y\n2,b,y\n")
    >>> DawidSkene().fit_predict(crowd)
    [['x'], ['y']]
    """

    name = "ds"
    worker_model = "cm"
    is_point = True

    def _worker_model(self) -> WorkerModel[Any]:
        from goldspan.aggregation.workermodels import PointConfusionMatrix

        return PointConfusionMatrix()


class OneCoin(_Independent):
    """EM over one probability of being right per worker."""

    name = "one-coin"
    worker_model = "acc"
    is_point = True

    def _worker_model(self) -> WorkerModel[Any]:
        from goldspan.aggregation.workermodels import PointAccuracy

        return PointAccuracy()


class Ibcc(_Independent):
    """Independent Bayesian classifier combination (Kim and Ghahramani 2012), variational."""

    name = "ibcc"
    worker_model = "cm"


class MaceTokens(_Independent):
    """MACE (Hovy et al. 2013), variational: workers know, or give a label by habit.

    Like the original it starts from several points (`n_starts`) and keeps the best objective.
    """

    name = "mace"
    worker_model = "mace"

    def __init__(
        self,
        *,
        alpha0: float = 1.0,
        epsilon0: float = 1.0,
        prior: str = "given",
        trusted: Sequence[str] = (),
        history: Consensus | None = None,
        truth_prior: float = 10.0,
        decode: str = "viterbi",
        tol: float = 1e-5,
        max_iter: int = 100,
        n_starts: int = 5,
        random_state: int | None = 0,
    ) -> None:
        super().__init__(
            alpha0=alpha0,
            epsilon0=epsilon0,
            prior=prior,
            trusted=trusted,
            history=history,
            truth_prior=truth_prior,
            decode=decode,
            tol=tol,
            max_iter=max_iter,
            n_starts=n_starts,
            random_state=random_state,
        )
