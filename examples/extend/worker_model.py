"""A worker model: one accuracy for the whole crowd, so that all workers count alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from goldspan.aggregation.bsc.family import Bsc
from goldspan.aggregation.workermodels import (
    Floats,
    Prior,
    Rows,
    WorkerModel,
    divergence,
    expected_log,
    right_or_wrong,
)


@dataclass(frozen=True, eq=False)
class SharedBeta:
    """Posterior of being right, Beta(right, wrong): float64 [1] each."""

    right: Floats
    wrong: Floats


class SharedAccuracy(WorkerModel[SharedBeta]):
    """p(c = i | t = j) is π if i = j, else (1 - π)/(J - 1); π is the same for every worker."""

    name = "shared"
    kind = SharedBeta

    def posterior(
        self, counts: Floats, rows: Rows, prior: Prior, last: SharedBeta | None = None
    ) -> SharedBeta:
        """Add the expected right and wrong labels of the crowd to the prior."""
        right, wrong = prior.right_and_wrong(1, rows.n_labels)
        hits = rows.at_label(counts).sum()
        return SharedBeta(right + hits, wrong + max(counts.sum() - hits, 0.0) + np.zeros(1))

    def log_table(self, posterior: SharedBeta, rows: Rows) -> Floats:
        """Return E ln π where label and truth agree, else E ln (1 - π) - ln (J - 1)."""
        both = posterior.right + posterior.wrong
        miss = expected_log(posterior.wrong, both) - np.log(max(1, rows.n_labels - 1))
        table = np.tile(miss, (len(rows), rows.n_labels))
        table[np.arange(len(rows)), rows.label] = expected_log(posterior.right, both)
        return table

    def divergence(self, posterior: SharedBeta, rows: Rows, prior: Prior, logs: Floats) -> float:
        """Return the divergence of one Beta from its prior."""
        del logs  # what log_table gave: for models whose divergence is a sum over all rows
        before = self.posterior(np.zeros((len(rows), rows.n_labels)), rows, prior)
        alpha = np.stack([posterior.right, posterior.wrong])
        beta = np.stack([before.right, before.wrong])
        both = alpha.sum(axis=0)
        return divergence(alpha, beta, both, beta.sum(axis=0), expected_log(alpha, both))

    def mean(self, posterior: SharedBeta, rows: Rows, prior: Prior, worker: int) -> Floats:
        """Return the expected confusion matrix, the same for every worker."""
        right = posterior.right / (posterior.right + posterior.wrong)
        return right_or_wrong(np.full(rows.n_labels, right[0]))

    def draw(
        self, prior: Prior, n_previous: int, n_labels: int, rng: np.random.Generator
    ) -> Floats:
        """Draw an accuracy from the prior."""
        right, wrong = prior.right_and_wrong(1, n_labels)
        return right_or_wrong(np.full(n_labels, rng.beta(right[0], wrong)))


class BscShared(Bsc):
    """BSC in which all workers are equally good."""

    name = "bsc-shared"
    worker_model = SharedAccuracy
