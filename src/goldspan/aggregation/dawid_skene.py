"""Dawid and Skene's family: the engine without the chain (docs/math.md, section 4).

Every token is an item of its own with the same shares of labels. For single labels this is the
family as it is known; on tagged tokens labels come out well-formed, but workers' labels count as
independent of their neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from goldspan.aggregation.bsc.family import Variational
from goldspan.aggregation.bsc.priors import Decoder
from goldspan.aggregation.workermodels import LEAST, WorkerModel
from goldspan.params import MOST, Number, Whole, fixed


class _Independent(Variational):
    """The family without a chain: its defaults are weaker priors and the likeliest labels.

    Args:
        truth_prior: Pseudo-count of every label in the shares of the truth; ten keep the shares
            from running away where workers gave little (chosen on simulated sparse crowds).
        decode: "viterbi", the likeliest well-formed labels, or "mbr", the spans of largest
            expected F1.
    """

    is_chain = False

    alpha0: Annotated[float, Number(LEAST, MOST)] = 1.0
    epsilon0: Annotated[float, Number(0, MOST)] = 1.0
    truth_prior: Annotated[float, Number(1e-3, MOST)] = 10.0
    decode: Decoder = "viterbi"
    # Tokens that stand alone have no label before them, and their words are not used.
    forbidden: float | str = fixed(0.1)
    at_start: str = fixed("outside")
    after_skip: str = fixed("own")
    word_prior: float = fixed(1.0)
    templates: str | Sequence[str] = fixed("default")
    vectors: str | None = fixed(None)
    encoder: str | None = fixed(None)
    encoder_params: Any = fixed(None)
    c2: float = fixed(4.0)
    min_count: int = fixed(2)
    folds: int = fixed(5)
    rounds: int = fixed(6)
    dependence: float | str = fixed("auto")
    text_power: float = fixed(1.3)
    documents: str = fixed("none")


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
    n_starts: Annotated[int, Whole(1)] = 5
