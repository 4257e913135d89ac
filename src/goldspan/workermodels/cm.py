"""`cm`, the confusion matrix: one Dirichlet over the labels given per worker and true label.

Dawid and Skene's worker in the Bayesian form of Kim and Ghahramani; `seq` is the same with the
previous label as one more condition (Simpson and Gurevych 2019; paper 001). alpha = prior + N.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from goldspan.workermodels.base import WorkerModel, dense
from goldspan.workermodels.dirichlet import divergence, expected_log
from goldspan.workermodels.prior import Prior
from goldspan.workermodels.rows import Floats, Rows


@dataclass(frozen=True, eq=False)
class RowDirichlets:
    """Posterior of a Dirichlet per group and truth.

    Attributes:
        alpha: float64 [n_rows, J], parameters of the labels that occur.
        total: float64 [n_groups, J], sum over all labels.
    """

    alpha: Floats
    total: Floats


class ConfusionMatrix(WorkerModel[RowDirichlets]):
    """One Dirichlet per (worker, truth); with memory per (worker, previous label, truth)."""

    name = "cm"

    def posterior(
        self, counts: Floats, rows: Rows, prior: Prior, last: RowDirichlets | None = None
    ) -> RowDirichlets:
        """Add the counts to the prior's."""
        del last
        return RowDirichlets(
            prior.of_rows(rows) + counts, prior.of_groups(rows) + rows.sum_groups(counts)
        )

    def log_table(self, posterior: RowDirichlets, rows: Rows) -> Floats:
        """Give psi(alpha) - psi(total)."""
        return expected_log(posterior.alpha, posterior.total[rows.group])

    def divergence(self, posterior: RowDirichlets, rows: Rows, prior: Prior) -> float:
        """Sum the divergences of all Dirichlets; labels without a row agree with the prior."""
        return divergence(
            posterior.alpha,
            prior.of_rows(rows),
            posterior.total,
            prior.of_groups(rows),
            self.log_table(posterior, rows),
        )

    def mean(self, posterior: RowDirichlets, rows: Rows, prior: Prior, worker: int) -> Floats:
        """Give alpha / total; the prior's share where the worker gave nothing."""
        every = _all_rows(rows.n_previous, rows.n_labels)
        bonus = prior.right_bonus(rows.n_workers)[worker]
        alone = Prior(prior.off, float(bonus), prior.mask, prior.forbidden, prior.base)
        table = np.empty((rows.n_previous, rows.n_labels, rows.n_labels))
        table[every.previous, :, every.label] = alone.of_rows(every)
        dense(posterior.alpha, rows, worker, table)
        return np.asarray(table / table.sum(axis=2, keepdims=True))

    def restore(self, arrays: Mapping[str, Floats]) -> RowDirichlets:
        """Make a posterior of its arrays."""
        return RowDirichlets(**arrays)

    def draw(
        self, prior: Prior, n_previous: int, n_labels: int, rng: np.random.Generator
    ) -> Floats:
        """Draw every row of the confusion matrices from its Dirichlet."""
        every = _all_rows(n_previous, n_labels)
        alpha = np.empty((n_previous, n_labels, n_labels))
        alpha[every.previous, :, every.label] = prior.of_rows(every)
        drawn = rng.standard_gamma(alpha)
        return np.asarray(drawn / drawn.sum(axis=2, keepdims=True))


def _all_rows(n_previous: int, n_labels: int) -> Rows:
    """Give all rows of a single worker."""
    previous, label = np.divmod(np.arange(n_previous * n_labels), n_labels)
    worker = np.zeros(len(label), np.int32)
    return Rows(worker, previous.astype(np.int16), label.astype(np.int16), 1, n_previous, n_labels)
