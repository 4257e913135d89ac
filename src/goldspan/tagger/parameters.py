"""The weights of a chain model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# --------------------------------------------------------------------------------------------------
# The weights of a chain model, as one vector for the optimiser and as tables for the kernels.


Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of features and of steps."""

    state: Floats  # [n_features, J]
    start: Floats  # [J], of the first tag
    step: Floats  # [J, J], rows previous
    end: Floats  # [J], of the last tag

    @classmethod
    def zeros(cls, n_features: int, n_labels: int) -> Weights:
        """Make weights of 0; all are views of one vector."""
        size = (n_features + n_labels + 2) * n_labels
        return cls.of_vector(np.zeros(size), n_features, n_labels)

    @classmethod
    def of_vector(cls, vector: Floats, n_features: int, n_labels: int) -> Weights:
        """See a vector as weights; nothing is copied."""
        first, last = n_features * n_labels, len(vector) - n_labels
        return cls(
            vector[:first].reshape(n_features, n_labels),
            vector[first : first + n_labels],
            vector[first + n_labels : last].reshape(n_labels, n_labels),
            vector[last:],
        )

    @property
    def vector(self) -> Floats:
        """All weights in one vector; a copy."""
        parts = (self.state, self.start, self.step, self.end)
        return np.concatenate([part.ravel() for part in parts])

    @property
    def n_labels(self) -> int:
        """Number of tags."""
        return len(self.start)
