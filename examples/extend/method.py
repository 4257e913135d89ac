"""A method: every token gets the label of the worker who answered most items."""

from __future__ import annotations

import numpy as np

from goldspan.aggregation import Aggregator, Consensus
from goldspan.aggregation.base import FitContext
from goldspan.aggregation.votes import agreement_table, item_shares, span_shares, vote_counts
from goldspan.crowd import Crowd


class MostExperienced(Aggregator):
    """Take the answer of the worker with most answers, whatever the others say.

    If several have equally many, the last of them counts.

    Args:
        least: Fewest answers that a worker must have given to count.
    """

    name = "most-experienced"

    def __init__(self, *, least: int = 1) -> None:
        self.least = least

    def _aggregate(self, crowd: Crowd, context: FitContext) -> Consensus:
        n_answers = np.bincount(crowd.latest.worker, minlength=crowd.n_workers)
        codes = np.full(crowd.n_tokens, -1, np.int16)
        for worker in np.argsort(n_answers, kind="stable"):  # the most experienced comes last
            if n_answers[worker] >= self.least:
                mine = (crowd.worker_of == worker) & (crowd.latest.codes >= 0)
                codes[crowd.token_of[mine]] = crowd.latest.codes[mine]
        counts = vote_counts(crowd)
        total = counts.sum(axis=1, keepdims=True)
        return Consensus(
            crowd=crowd,
            codes=codes,
            token_probs=(counts / np.maximum(total, 1)).astype(np.float32),
            span_confidence=span_shares(crowd, codes),
            confidence=item_shares(crowd, codes),
            make_workers=agreement_table,
            method=self.name,
            stop_reason="nothing iterates",
        )
