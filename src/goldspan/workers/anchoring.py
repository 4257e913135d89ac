"""How far annotators follow what they are shown: assisted answers against blind ones.

What an annotator would have answered without the suggestion is not known of any one answer. But who
sees a suggestion is drawn at random, so that the blind answers of the same annotators say how often
they disagree with it anyhow. The anchoring rate

    a = 1 - (disagreement of assisted answers) / (disagreement of blind answers)

is the share of those disagreements that the suggestion took away: 0 if it changes nothing, 1 if
everybody takes it over. It is what the correlation of two workers' mistakes is for families (excess
agreement as a share of what is possible), measured by an experiment. The ratio is that of Mantel
and Haenszel (1959), stratified by annotator, with the variance of Greenland and Robins (1985).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation.families import CAUTION
from goldspan.errors import InputError

SURE = 1.959964
"""Standard errors of a 95 % interval."""
HALF = 0.5
"""Disagreements, and agreements, that either side is taken to have had more: few answers say little
even if all agree."""
LEAST_VARIANCE = 1e-4


@dataclass(frozen=True)
class Anchoring:
    """How far annotators follow suggestions."""

    rate: float  # The anchoring rate; below 0 if they disagree more often with what they see
    low: float  # Lower end of its 95 % interval
    high: float
    assisted: int  # Answers that were given with a suggestion
    blind: int  # Answers to which there was one that was not shown
    workers: int  # Annotators with answers of both kinds, on whom the rate rests
    agree_assisted: float | None  # Mean agreement of assisted answers with the suggestion
    agree_blind: float | None  # The same of blind ones
    rho: float  # What an assisted answer counts as: the correlation with the suggestion


def measure_anchoring(
    worker: NDArray[Any], shown: NDArray[np.bool_], disagreement: NDArray[np.float64]
) -> Anchoring:
    """Estimate how far annotators follow suggestions.

    >>> import numpy as np
    >>> worker, shown = np.repeat([0, 1], 100), np.tile([True, False], 100)
    >>> found = measure_anchoring(worker, shown, np.where(shown, 0.1, 0.4))
    >>> round(found.rate, 2), round(found.low, 2), round(found.high, 2)
    (0.74, 0.52, 0.86)
    """
    # worker int64 [n_answers], who answered; shown bool [n_answers]
    # disagreement float64 [n_answers]
    worker, shown = np.asarray(worker), np.asarray(shown, np.bool_)
    given = np.asarray(disagreement, np.float64)
    if not len(worker) == len(shown) == len(given):
        raise InputError("worker, shown and disagreement must have one value per answer each")
    if not ((given >= 0) & (given <= 1)).all():
        raise InputError("a disagreement must be a number from 0 to 1")
    _, place = np.unique(worker, return_inverse=True)
    n_workers = int(place.max(initial=-1)) + 1

    def per_worker(which: NDArray[np.bool_]) -> tuple[NDArray[Any], NDArray[Any]]:
        n = np.bincount(place[which], minlength=n_workers).astype(np.float64)
        return n, np.bincount(place[which], given[which], n_workers)

    (n_shown, d_shown), (n_blind, d_blind) = per_worker(shown), per_worker(~shown)
    both = (n_shown > 0) & (n_blind > 0)
    one = np.append(n_shown[both], 1), np.append(d_shown[both], HALF)
    other = np.append(n_blind[both], 1), np.append(d_blind[both], HALF)
    (n_1, d_1), (n_0, d_0), total = one, other, one[0] + other[0]
    above, below = float((d_1 * n_0 / total).sum()), float((d_0 * n_1 / total).sum())
    spread = (n_1 * n_0 * (d_1 + d_0) - d_1 * d_0 * total) / total**2
    error = sqrt(float(spread.sum()) / (above * below))
    ratio = above / below
    rate, doubt = 1 - ratio, (ratio * error) ** 2 + LEAST_VARIANCE
    rho = (CAUTION + rate / doubt) / (CAUTION + 1 / doubt)
    return Anchoring(
        rate,
        1 - exp(log(ratio) + SURE * error),
        1 - exp(log(ratio) - SURE * error),
        int(shown.sum()),
        int((~shown).sum()),
        int(both.sum()),
        float(1 - given[shown].mean()) if shown.any() else None,
        float(1 - given[~shown].mean()) if (~shown).any() else None,
        min(1.0, max(0.0, rho)),
    )
