"""How much a worker adds to a weighted vote: (L w - 1)², as a test lets us know it.

A vote in which worker i counts L w_i - 1 separates the truth from the other labels by a gap that
grows with F(S) = |S|^(-1/2) Σ_{i in S} (L w_i - 1)² (Li and Liu 2015, "Cheaper and better"; MATH
section 8). Three scores estimate the summand G_i = (L w_i - 1)²:

* "unbiased", the paper's: (L ŵ - 1)² - L² ŵ (1 - ŵ) / (n - 1) with ŵ = C / n. Its mean is G_i.
* "plugin": (L ŵ - 1)². Too high by L² w (1 - w) / n on the average.
* "posterior": (L m - 1)², m the mean of a Beta posterior. A vote with the weights v_i = L m_i - 1
  has the gap Σ v_i (L w_i - 1), whose posterior mean is Σ (L m_i - 1)². The prior, Beta(1, L - 1),
  takes who was not tested for a guesser, who adds nothing, and two right answers prove little; the
  other two scores put him first. It is not the pool's own prior: where workers look much alike F
  grows as √k and takes nearly everybody, which is right only if they err independently. Real
  workers share their mistakes: on ducks, 10 questions, this prior's 17 workers were right on 92 %,
  the pool's prior's 32 on 84 %.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import UnknownNameError
from goldspan.hiring.beta import Reliability

SCORES = ("posterior", "unbiased", "plugin")
LEAST_QUESTIONS = {"posterior": 0.0, "unbiased": 2.0, "plugin": 0.0}
"""Judged answers that a score needs; all need more than none."""


def worker_scores(reliability: Reliability, score: str = "posterior") -> NDArray[np.float64]:
    """Estimate (L w - 1)² of every worker.

    Args:
        reliability: The test results.
        score: "posterior", "unbiased" or "plugin".

    Returns:
        float64 [n_workers]; NaN where there are too few judged answers: none, or fewer than two
        for "unbiased".

    Raises:
        UnknownNameError: There is no such score.

    >>> tested = Reliability.from_counts([18, 2, 0], [20, 2, 0], prior=(2, 2))
    >>> [worker_scores(tested, name).round(3).tolist() for name in SCORES]
    [[0.529, 0.25, nan], [0.621, 1.0, nan], [0.64, 1.0, nan]]
    """
    if score not in SCORES:
        raise UnknownNameError("score", score, SCORES)
    total, labels = reliability.total, reliability.n_labels
    known = (total > 0) & (total >= LEAST_QUESTIONS[score])
    gap = labels * estimate(reliability, score) - 1
    found = gap**2
    if score == "unbiased":
        share = reliability.share
        rest = np.where(known, total - 1, 1)
        found = found - labels**2 * share * (1 - share) / rest
    return np.where(known, found, np.nan)


def estimate(reliability: Reliability, score: str) -> NDArray[np.float64]:
    """Give the chance of being right that a score goes by, float64 [n_workers].

    For "posterior" (1 + C) / (L + n): below chance just where C / n is.
    """
    if score != "posterior":
        return reliability.share
    return np.asarray((1 + reliability.right) / (reliability.n_labels + reliability.total))


def score_ranges(reliability: Reliability) -> NDArray[np.float64]:
    """Give the widths R_i of the ranges that unbiased scores lie in, float64 [n_workers].

    R = (L - 1)² - 1 + (2n - 2 + L)² / (4n (n - 1)): the largest value is that of ŵ = 1, the least
    that of ŵ = (2n - 2 + L) / (2 L n). NaN for n < 2.
    """
    n, labels = np.where(reliability.total >= 2, reliability.total, np.nan), reliability.n_labels
    return np.asarray((labels - 1) ** 2 - 1 + (2 * n - 2 + labels) ** 2 / (4 * n * (n - 1)))


def team_values(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give F of every prefix, k^(-1/2) times the sum of the first k scores, float64 [n]."""
    return np.asarray(np.cumsum(scores) / np.sqrt(np.arange(1, len(scores) + 1)))


def error_bound(value: float, n_labels: int) -> float:
    """Bound the share of wrong labels of a weighted vote: exp(-F² / (2 (L - 1)⁴) + ln(L - 1)).

    It holds when F is the true one and every worker counts L w - 1; it is far from tight.

    >>> round(error_bound(2.0, 2), 3)
    0.135
    """
    if not value > 0:
        return 1.0
    exponent = -(value**2) / (2 * (n_labels - 1) ** 4) + np.log(n_labels - 1)
    return min(1.0, float(np.exp(exponent)))
