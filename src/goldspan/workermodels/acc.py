"""`acc`, accuracy: per worker one probability of being right, whatever the truth.

    A[j, i] = pi if i = j, else (1 - pi) / (J - 1);  pi ~ Beta(alpha0 + epsilon0, (J - 1) alpha0)

(paper 001; the one-coin model of single labels).
"""

from __future__ import annotations

import numpy as np

from goldspan.workermodels.cv import ConfusionVector
from goldspan.workermodels.rows import Floats


class Accuracy(ConfusionVector):
    """One Beta per worker."""

    name = "acc"

    @staticmethod
    def _pool(values: Floats) -> Floats:
        """Take all true labels together."""
        return np.asarray(values.sum(axis=1, keepdims=True))
