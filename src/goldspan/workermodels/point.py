"""Point estimates in place of distributions: what EM (Dawid and Skene 1979) updates.

The same parameters as `cm` and `acc`, but the next E-step uses the logarithm of their mode under a
Dirichlet(1 + prior) instead of their expected logarithm: shares of smoothed counts.
"""

from __future__ import annotations

import numpy as np

from goldspan.workermodels.acc import Accuracy
from goldspan.workermodels.cm import ConfusionMatrix, RowDirichlets
from goldspan.workermodels.cv import Betas
from goldspan.workermodels.prior import Prior
from goldspan.workermodels.rows import Floats, Rows


class PointConfusionMatrix(ConfusionMatrix):
    """Confusion matrices as shares of smoothed counts."""

    name = "cm-point"

    def log_table(self, posterior: RowDirichlets, rows: Rows) -> Floats:
        """Give ln(alpha / total)."""
        return np.asarray(np.log(posterior.alpha / posterior.total[rows.group]))

    def divergence(self, posterior: RowDirichlets, rows: Rows, prior: Prior) -> float:
        """Give minus the log density of the prior, without what does not change."""
        before, table = prior.of_rows(rows), self.log_table(posterior, rows)
        unseen = prior.of_groups(rows) - rows.sum_groups(before)
        return float((unseen * np.log(posterior.total)).sum() - (before * table).sum())


class PointAccuracy(Accuracy):
    """One probability of being right per worker, as a share of smoothed counts."""

    name = "acc-point"

    def log_table(self, posterior: Betas, rows: Rows) -> Floats:
        """Give ln pi where label and truth agree, else ln((1 - pi) / (J - 1))."""
        n = rows.n_labels
        if n == 1:
            return np.zeros((len(rows), 1))
        miss = np.log(posterior.wrong / posterior.both / (n - 1))[rows.worker]
        table = np.repeat(miss, n, axis=1)
        hit = np.log(posterior.right / posterior.both)[rows.worker, 0]
        table[np.arange(len(rows)), rows.label] = hit
        return table

    def divergence(self, posterior: Betas, rows: Rows, prior: Prior) -> float:
        """Give minus the log density of the prior, without what does not change."""
        right, wrong = prior.right_and_wrong(rows.n_workers, rows.n_labels)
        hit = np.log(posterior.right / posterior.both)
        miss = np.log(posterior.wrong / posterior.both)
        past = 0.0
        if prior.history is not None:
            past = float((prior.history * self.log_table(posterior, rows)).sum())
        return -float((right[:, None] * hit + wrong * miss).sum()) - past
