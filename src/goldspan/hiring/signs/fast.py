"""Too fast: half of the answers took less than a third of the median worker's time per token.

Needs answers with the times when they were started and submitted. The limit is a share of the
median worker's median time; a sign test says whether the worker's own median is below it. A worker
who is fast may be good: the evidence gives the share right beside the time. Strength is 1 less the
worker's median over that of the median worker.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd import Crowd
from goldspan.hiring.signs.base import Scene, Sign, at_least, percent


def fast(scene: Scene) -> list[Sign]:
    """Find the workers who are too fast; none where times are not known."""
    seconds, worker = seconds_per_token(scene.crowd)
    n = np.bincount(worker, minlength=scene.crowd.n_workers)
    tested = n >= scene.limits.least
    if tested.sum() < 3:
        return []
    order = np.lexsort((seconds, worker))
    begin = np.concatenate([[0], np.cumsum(n)])[:-1]
    medians = np.full(len(n), np.nan)
    medians[tested] = seconds[order][(begin + n // 2)[tested]]
    usual = float(np.nanmedian(medians))
    below = np.bincount(worker, seconds < scene.limits.fast * usual, len(n)).astype(np.int64)
    corrected, passes = scene.significant(at_least(below, n, 0.5), int(tested.sum()))
    what = "an answer" if scene.crowd.is_classification else "a token"
    return [
        Sign(
            scene.name(w),
            "too fast",
            float(np.clip(1 - medians[w] / usual, 0, 1)),
            float(corrected[w]),
            f"{medians[w]:.2g} s for {what} in the median, the median worker {usual:.2g} s"
            f"{_quality(scene, w)}",
            {"seconds": float(medians[w]), "median": usual, "answers": int(n[w])},
        )
        for w in np.flatnonzero(tested & passes).tolist()
    ]


def seconds_per_token(crowd: Crowd) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Give the time of every answer whose times are known, and its worker."""
    answers = crowd.latest
    if answers.started is None or answers.submitted is None:
        return np.zeros(0), np.zeros(0, np.int32)
    known = (answers.started >= 0) & (answers.submitted >= answers.started) & (answers.lengths > 0)
    spent = (answers.submitted - answers.started)[known] / 1000
    return np.asarray(spent / answers.lengths[known]), answers.worker[known]


def _quality(scene: Scene, worker: int) -> str:
    own = scene.crowd.latest.worker == worker
    right, total = scene.judged.right, scene.judged.total
    if not total[own].sum() or not total[~own].sum():
        return ""
    shares = right[own].sum() / total[own].sum(), right[~own].sum() / total[~own].sum()
    return f"; {percent(shares[0])} of the labels right, the others {percent(shares[1])}"
