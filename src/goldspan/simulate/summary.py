"""How good every worker is against the gold: what a simulation made, or a real crowd with gold."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd import Crowd
from goldspan.spans import Tagged, score_codes


class WorkerRates(NamedTuple):
    """One worker against the gold.

    Attributes:
        worker: Id.
        n_answers: Items answered.
        n_tokens: Tokens labelled whose gold is known.
        accuracy: Share of these tokens with the right label; NaN without any.
        f1: Of spans; NaN for PLAIN labels, or if neither side has a span.
    """

    worker: str
    n_answers: int
    n_tokens: int
    accuracy: float
    f1: float


def measure_workers(crowd: Crowd) -> list[WorkerRates]:
    """Measure all workers, in the order of the crowd.

    Raises:
        InputError: The crowd has no gold.

    >>> from goldspan.simulate import draw_truth, simulate_crowd
    >>> measure_workers(simulate_crowd(draw_truth(10), ["perfect"]))[0].accuracy
    1.0
    """
    codes = crowd.gold_tagged.codes
    return [_measure(crowd, codes, w) for w in range(crowd.n_workers)]


def _measure(crowd: Crowd, gold: NDArray[np.int16], w: int) -> WorkerRates:
    own = crowd.by_worker[w]
    answers = crowd.latest.take(own)
    tokens = np.repeat(crowd.offsets[answers.item] - answers.offset[:-1], answers.lengths)
    truth = gold[tokens + np.arange(len(answers.codes))]
    known = (truth >= 0) & (answers.codes >= 0)
    n_known = int(known.sum())
    n_right = int(((truth == answers.codes) & known).sum())
    f1 = np.nan
    if not crowd.tagset.rules.is_plain:
        none = np.int16(-1)
        left = Tagged(np.where(known, truth, none), answers.offset)
        right = Tagged(np.where(known, answers.codes, none), answers.offset)
        found = score_codes(left, right, crowd.tagset)
        if found.micro.n_predicted + found.micro.n_true:
            f1 = found.f1
    accuracy = n_right / n_known if n_known else np.nan
    return WorkerRates(crowd.worker_ids[w].as_py(), len(answers), n_known, accuracy, f1)
