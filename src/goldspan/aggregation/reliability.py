"""Whether a confidence can be believed: of all that is given with 80 %, 80 % should be right.

Guo et al. 2017, On Calibration of Modern Neural Networks: reliability diagrams, and the expected
calibration error (ECE) over bins of equal width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from goldspan._arrays import count_between
from goldspan.aggregation.consensus import Consensus
from goldspan.aggregation.workers import interval
from goldspan.crowd.measures import share
from goldspan.errors import InputError
from goldspan.spans import Tagged, find_spans
from goldspan.spans.confidence import LEAST_PROB, N_BINS, bins_of
from goldspan.spans.scoring import right_spans

NO_GOLD = "the crowd has no gold to compare the confidence with; pass gold="


@dataclass(frozen=True, eq=False)
class Reliability:
    """Confidence and truth, bin by bin."""

    edges: NDArray[np.float64]  # [n_bins + 1], from 0 to 1; a bin holds its upper edge
    counts: NDArray[np.int64]  # [n_bins]
    confidence: NDArray[np.float64]  # [n_bins], mean confidence, NaN in empty bins
    right: NDArray[np.float64]  # [n_bins], the share that is right, NaN in empty bins
    low: NDArray[np.float64]  # [n_bins]
    high: NDArray[np.float64]  # [n_bins], upper end

    @property
    def n(self) -> int:
        """How much was compared."""
        return int(self.counts.sum())

    @property
    def mean_confidence(self) -> float:
        """Mean over all that was compared, NaN without any."""
        return self._mean(self.confidence)

    @property
    def mean_right(self) -> float:
        """Share that is right, NaN without any."""
        return self._mean(self.right)

    @property
    def ece(self) -> float:
        """Expected calibration error: mean gap of confidence and share right, NaN without any."""
        return self._mean(np.abs(self.confidence - self.right))

    def _mean(self, values: NDArray[np.float64]) -> float:
        return float(np.nansum(values * self.counts) / self.n) if self.n else float("nan")


def reliability(confidence: ArrayLike, is_right: ArrayLike, n_bins: int = N_BINS) -> Reliability:
    """Compare confidence and truth."""
    # confidence float [n], between 0 and 1; is_right bool [n]
    given = np.asarray(np.round(np.asarray(confidence, np.float64), 6), np.float64)
    edges = np.linspace(0, 1, n_bins + 1)
    bins = bins_of(given, n_bins)
    counts = np.bincount(bins, minlength=n_bins).astype(np.int64)
    right = np.bincount(bins, np.asarray(is_right, np.float64), n_bins).astype(np.float64)
    low, high = interval(right, counts)
    mean = share(np.bincount(bins, given, n_bins).astype(np.float64), counts)
    return Reliability(edges, counts, mean, share(right, counts), low, high)


def token_reliability(
    consensus: Consensus, gold: NDArray[np.int16] | None = None, n_bins: int = N_BINS
) -> Reliability:
    r"""Compare the confidence of tokens with the gold, where there are both.

    >>> import goldspan
    >>> votes = b"task,worker,label,gold\nq1,a,yes,yes\nq1,b,yes,yes\nq2,a,no,yes\nq2,b,no,yes\n"
    >>> token_reliability(goldspan.aggregate(votes, "mv-token")).ece
    0.5
    """
    # gold int16 [n_tokens], -1 where unknown; by default that of the crowd
    truth = _gold(consensus, gold)
    known = _compared(consensus, truth)
    is_right = (consensus.codes == truth)[known]
    return reliability(consensus.token_confidence[known], is_right, n_bins)


def span_reliability(
    consensus: Consensus, gold: NDArray[np.int16] | None = None, n_bins: int = N_BINS
) -> Reliability:
    """Compare the confidence of the result's spans with the gold: right are bounds and type.

    Spans with a token whose gold is unknown do not count; PLAIN labels have no spans.
    """
    # gold int16 [n_tokens], -1 where unknown; by default that of the crowd
    truth = _gold(consensus, gold)
    if consensus.tagset.rules.is_plain:
        return reliability(np.zeros(0), np.zeros(0), n_bins)
    is_right, known = judged_spans(consensus, truth)
    return reliability(consensus.span_confidence[known], is_right[known], n_bins)


def judged_spans(
    consensus: Consensus, truth: NDArray[np.int16], foreign: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which spans of a result are right, and of which all gold is known; bool [n_spans]."""
    # truth int16 [n_tokens], -1 where unknown; foreign bool [n_tokens]
    found = consensus.span_array
    true = find_spans(Tagged(truth, consensus.crowd.offsets), consensus.tagset)
    unknown = truth < 0 if foreign is None else (truth < 0) & ~foreign
    is_known = count_between(unknown, found.start, found.end) == 0
    return right_spans(true, found, len(truth)), is_known


def token_cross_entropy(consensus: Consensus, gold: NDArray[np.int16] | None = None) -> float:
    """Return the mean of -ln P(gold label) over the tokens with gold and a result, in nats.

    Lower is better; it punishes what is wrong and sure. Votes, which give shares, may have a
    share of 0 for the gold: that counts as 1e-12. NaN if there is nothing to compare.
    """
    # gold int16 [n_tokens], -1 where unknown; by default that of the crowd
    truth = _gold(consensus, gold)
    known = _compared(consensus, truth)
    probs = consensus.token_probs[known, truth[known]].astype(np.float64)
    if not len(probs):
        return float("nan")
    return float(-np.log(np.clip(probs, LEAST_PROB, 1)).mean())


def _gold(consensus: Consensus, gold: NDArray[np.int16] | None) -> NDArray[np.int16]:
    truth = consensus.crowd.gold if gold is None else gold
    if truth is None:
        raise InputError(NO_GOLD)
    if len(truth) != len(consensus.codes):
        raise InputError(f"gold has {len(truth)} tokens, the result {len(consensus.codes)}")
    return truth


def _compared(consensus: Consensus, truth: NDArray[np.int16]) -> NDArray[np.int64]:
    return np.flatnonzero((consensus.codes >= 0) & (truth >= 0))
