"""`cv`, the confusion vector: per worker and true label one probability of being right.

    A[j, i] = pi_j if i = j, else (1 - pi_j) / (J - 1),
    pi_j ~ Beta(alpha0 + epsilon0, (J - 1) alpha0)

(paper 001). `acc` is the same with one probability for all labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from goldspan.workermodels.base import WorkerModel, right_or_wrong
from goldspan.workermodels.dirichlet import divergence, expected_log
from goldspan.workermodels.prior import Prior
from goldspan.workermodels.rows import Floats, Rows


@dataclass(frozen=True, eq=False)
class Betas:
    """Posterior of being right, Beta(right, wrong).

    Attributes:
        right: float64 [n_workers, J], or [n_workers, 1] for all labels together.
        wrong: The same.
    """

    right: Floats
    wrong: Floats

    @property
    def both(self) -> Floats:
        """Sum of the two parameters."""
        return self.right + self.wrong


class ConfusionVector(WorkerModel[Betas]):
    """One Beta per (worker, truth)."""

    name = "cv"

    def posterior(
        self, counts: Floats, rows: Rows, prior: Prior, last: Betas | None = None
    ) -> Betas:
        """Count right and wrong answers by truth."""
        del last
        counts = counts if prior.history is None else counts + prior.history
        every = rows.sum_workers(counts)
        hits = np.zeros_like(every)
        hits[rows.worker, rows.label] = rows.at_label(counts)
        hits, every = self._pool(hits), self._pool(every)
        right, wrong = prior.right_and_wrong(rows.n_workers, rows.n_labels)
        return Betas(right[:, None] + hits, np.maximum(every - hits, 0.0) + wrong)

    def log_table(self, posterior: Betas, rows: Rows) -> Floats:
        """Give E ln pi where label and truth agree, else E ln (1 - pi) - ln (J - 1)."""
        n = rows.n_labels
        if n == 1:
            return np.zeros((len(rows), 1))
        both = posterior.both
        hit = expected_log(posterior.right, both)
        miss = expected_log(posterior.wrong, both) - np.log(n - 1)
        shape = (rows.n_workers, n)
        table = np.broadcast_to(miss, shape)[rows.worker]
        table[np.arange(len(rows)), rows.label] = np.broadcast_to(hit, shape)[
            rows.worker, rows.label
        ]
        return table

    def divergence(self, posterior: Betas, rows: Rows, prior: Prior) -> float:
        """Sum the divergences of all Betas."""
        if rows.n_labels == 1:
            return 0.0
        zero = np.zeros((len(rows), rows.n_labels))
        before = self.posterior(zero, rows, prior)
        alpha = np.stack([posterior.right, posterior.wrong])
        beta = np.stack([before.right, before.wrong])
        expected = expected_log(alpha, posterior.both)
        return divergence(alpha, beta, posterior.both, before.both, expected)

    def mean(self, posterior: Betas, rows: Rows, prior: Prior, worker: int) -> Floats:
        """Give the expected confusion matrix."""
        del prior
        right = posterior.right[worker] / posterior.both[worker]
        return right_or_wrong(np.broadcast_to(right, (rows.n_labels,)))

    def restore(self, arrays: Mapping[str, Floats]) -> Betas:
        """Make a posterior of its arrays."""
        return Betas(**arrays)

    def draw(
        self, prior: Prior, n_previous: int, n_labels: int, rng: np.random.Generator
    ) -> Floats:
        """Draw a probability per truth."""
        del n_previous
        right, wrong = prior.right_and_wrong(1, n_labels)
        drawn = rng.beta(right[0], wrong, size=self._pool(np.zeros((1, n_labels))).shape[1])
        return right_or_wrong(np.broadcast_to(drawn, (n_labels,)))

    @staticmethod
    def _pool(values: Floats) -> Floats:
        """Keep the true labels apart."""
        return values
