"""The compact table that every worker model works on: one row per pair that occurs.

A row stands for (worker, previous label, label) – without memory for (worker, label) – and only
rows that somebody's answers hold exist: a million workers with 41 labels fill 15 GB this way and
276 GB as a dense table (ARCHITECTURE, "One kernel for every worker model"). A *group* is what a
Dirichlet over labels belongs to: (worker, previous label), or the worker. Rows are sorted by
worker, previous label, label, so that the rows of a group are neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rows:
    """What the rows of a table stand for.

    Attributes:
        worker: int32 [n_rows].
        previous: int16 [n_rows], the label that the worker gave to the token before, in
            0 … n_previous - 1; 0 everywhere without memory.
        label: int16 [n_rows], the label that was given.
        n_workers: Number of workers.
        n_previous: Number of previous labels, 1 without memory.
        n_labels: Number of labels, J.
    """

    worker: NDArray[np.int32]
    previous: NDArray[np.int16]
    label: NDArray[np.int16]
    n_workers: int
    n_previous: int
    n_labels: int

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.worker)

    @cached_property
    def group_start(self) -> NDArray[np.int64]:
        """First row of every group, int64 [n_groups]."""
        if not len(self):
            return np.zeros(0, np.int64)
        new = np.ones(len(self), np.bool_)
        new[1:] = (np.diff(self.worker) != 0) | (np.diff(self.previous) != 0)
        return np.flatnonzero(new).astype(np.int64)

    @cached_property
    def group(self) -> NDArray[np.int64]:
        """Group of every row, int64 [n_rows]."""
        sizes = np.diff(np.append(self.group_start, len(self)))
        return np.repeat(np.arange(len(sizes)), sizes)

    @cached_property
    def group_worker(self) -> NDArray[np.int32]:
        """Worker of every group, int32 [n_groups]."""
        return self.worker[self.group_start]

    @cached_property
    def group_previous(self) -> NDArray[np.int16]:
        """Previous label of every group, int16 [n_groups]."""
        return self.previous[self.group_start]

    def sum_groups(self, values: Floats) -> Floats:
        """Sum rows over groups: [n_rows, …] to [n_groups, …]."""
        if not len(self):
            return np.zeros((0, *values.shape[1:]))
        return np.asarray(np.add.reduceat(values, self.group_start, axis=0))

    def sum_workers(self, values: Floats) -> Floats:
        """Sum rows over workers: [n_rows, …] to [n_workers, …]."""
        out = np.zeros((self.n_workers, *values.shape[1:]))
        if len(self):
            first = np.flatnonzero(np.diff(self.worker, prepend=-1))
            out[self.worker[first]] = np.add.reduceat(values, first, axis=0)
        return out

    def at_label(self, values: Floats) -> Floats:
        """Pick of every row the column of its own label: [n_rows, J] to [n_rows]."""
        return np.asarray(values[np.arange(len(self)), self.label])

    def of_worker(self, worker: int) -> slice:
        """Give the rows of a worker."""
        start, end = np.searchsorted(self.worker, [worker, worker + 1])
        return slice(int(start), int(end))
