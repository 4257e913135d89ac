"""What every worker model is: a pure function from expected counts to an expected log table.

A model describes A[j, previous, i] = p(worker gives i | truth j, gave `previous` before). From the
one statistic N[row, j] = sum over the row's tokens of P(truth = j), it gives the posterior of its
parameters, the table E ln A[row, j] that the next E-step gathers, and the divergence from the
prior that the evidence bound subtracts. None of them loops over workers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from goldspan.workermodels.prior import Prior
from goldspan.workermodels.rows import Floats, Rows

P = TypeVar("P")


class WorkerModel(ABC, Generic[P]):
    """Base of the worker models; `P` is the model's posterior, a frozen bundle of arrays.

    Attributes:
        name: In the registry.
        has_memory: Whether the label before counts, so that rows hold it.
    """

    name: ClassVar[str]
    has_memory: ClassVar[bool] = False

    @abstractmethod
    def posterior(self, counts: Floats, rows: Rows, prior: Prior, last: P | None = None) -> P:
        """Update the parameters.

        Args:
            counts: float64 [n_rows, J], expected counts by truth.
            rows: What the rows stand for.
            prior: The pseudo-counts.
            last: The posterior under which `counts` were expected, None at the start.
        """

    @abstractmethod
    def log_table(self, posterior: P, rows: Rows) -> Floats:
        """Give E ln A, float64 [n_rows, J] by truth."""

    @abstractmethod
    def divergence(self, posterior: P, rows: Rows, prior: Prior) -> float:
        """Give KL(posterior || prior), summed over workers."""

    def carry(
        self, posterior: P, old: Rows, new: Rows, worker: NDArray[np.int64], prior: Prior
    ) -> P | None:
        """Carry a posterior over to other rows, if counts alone do not say what it is.

        Args:
            posterior: On the old rows.
            old: The old rows.
            new: The new ones, which hold the old ones of the workers that are kept.
            worker: int64 [old.n_workers], the new index of every worker, -1 for those left out.
            prior: For who and what is new.

        Returns:
            None, unless the model has hidden variables of its own.
        """
        del posterior, old, new, worker, prior
        return None

    @abstractmethod
    def mean(self, posterior: P, rows: Rows, prior: Prior, worker: int) -> Floats:
        """Give the expected A of a worker, float64 [n_previous, J, J]: previous, truth, given."""

    @abstractmethod
    def draw(
        self, prior: Prior, n_previous: int, n_labels: int, rng: np.random.Generator
    ) -> Floats:
        """Draw a worker from the prior, float64 [n_previous, J, J]: previous, truth, given.

        With memory, the Dirichlets of all previous labels are drawn; without it n_previous is 1.
        """

    def arrays(self, posterior: P) -> dict[str, Floats]:
        """Give the posterior as named arrays, for checkpoints."""
        return dict(vars(posterior))

    @abstractmethod
    def restore(self, arrays: Mapping[str, Floats]) -> P:
        """Make a posterior of what `arrays` gave."""


def dense(values: Floats, rows: Rows, worker: int, empty: Floats) -> Floats:
    """Spread the rows of a worker over a dense table, float64 [n_previous, J, J].

    Args:
        values: float64 [n_rows, J] by truth.
        rows: What the rows stand for.
        worker: Whose.
        empty: float64 [n_previous, J, J] to begin with; it is changed and given back.
    """
    own = rows.of_worker(worker)
    empty[rows.previous[own], :, rows.label[own]] = values[own]
    return empty


def right_or_wrong(right: Floats) -> Floats:
    """Make confusion matrices of which all wrong labels are equally likely.

    Args:
        right: float64 [J], probability of the right label by truth.

    Returns:
        float64 [1, J, J].
    """
    n = len(right)
    table = np.repeat(((1 - right) / max(1, n - 1))[:, None], n, axis=1)
    np.fill_diagonal(table, right if n > 1 else 1.0)
    return table[None]
