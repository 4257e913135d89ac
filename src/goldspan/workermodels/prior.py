"""What is believed of workers before they answer: pseudo-counts, the same two for every model.

Before any answer a worker is believed to have given `off` answers of every label for every truth
and `bonus` more of the right one (MATH section 3: alpha0 and epsilon0). Labels that the encoding
forbids after the previous label get `forbidden` instead: a pseudo-count of 1 there costs one to
seven points of F1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import InputError
from goldspan.workermodels.rows import Floats, Rows

LEAST = 0.1
"""Least pseudo-count of what the encoding allows: psi(1e-12) = -1e12 would veto it for ever."""
LEAST_FORBIDDEN = 1e-3


@dataclass(frozen=True, eq=False)
class Prior:
    """Pseudo-counts of a worker model.

    Attributes:
        off: alpha0, of every label for every truth; at least 0.1.
        bonus: epsilon0, what the right label has beyond it: a number, or float64 [n_workers].
        mask: bool [n_previous, J], which label may follow which; None if all may.
        forbidden: Pseudo-count where `mask` is False; at least 0.001.
        base: float64 [n_previous, J, J] in place of `off` and `bonus`, indexed by previous label,
            truth, label given: the population's habits, for a hierarchical prior. Or None.
        history: float64 [n_rows, J], counts from earlier work, or None.
    """

    off: float = 1.25
    bonus: float | Floats = 18.75
    mask: NDArray[np.bool_] | None = field(default=None, repr=False)
    forbidden: float = 0.1
    base: Floats | None = field(default=None, repr=False)
    history: Floats | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name, value, least in (
            ("off", self.off, LEAST),
            ("bonus", self.bonus, 0.0),
            ("forbidden", self.forbidden, LEAST_FORBIDDEN),
        ):
            try:
                array = np.asarray(value, np.float64)
            except (TypeError, ValueError):
                raise InputError(f"prior: {name} must be a number, not {value!r}") from None
            if not np.isfinite(array).all() or (array < least).any():
                raise InputError(f"prior: {name} must be a number of at least {least}, not {value}")

    def right_bonus(self, n_workers: int) -> Floats:
        """Give the bonus of every worker, float64 [n_workers].

        Raises:
            InputError: There is not one bonus per worker.
        """
        array = np.asarray(self.bonus, np.float64)
        if array.shape not in {(), (n_workers,)}:
            raise InputError(
                f"prior: bonus must be one number, or one per worker ({n_workers}); "
                f"it has shape {array.shape}"
            )
        return np.broadcast_to(array, (n_workers,))

    def of_rows(self, rows: Rows) -> Floats:
        """Give the pseudo-counts of the rows, float64 [n_rows, J] by truth."""
        if self.base is not None:
            self._check_base(rows)
            alpha = self.base[rows.previous, :, rows.label].copy()
        else:
            alpha = np.full((len(rows), rows.n_labels), float(self.off))
            bonus = self.right_bonus(rows.n_workers)[rows.worker]
            alpha[np.arange(len(rows)), rows.label] += bonus
            if self.mask is not None:
                alpha[~self.mask[rows.previous, rows.label]] = self.forbidden
        return np.asarray(alpha if self.history is None else alpha + self.history)

    def of_groups(self, rows: Rows) -> Floats:
        """Give the pseudo-counts summed over all labels, float64 [n_groups, J] by truth.

        Labels that never occur in a group count too, though they have no row.
        """
        if self.base is not None:
            self._check_base(rows)
            total = self.base.sum(axis=2)[rows.group_previous]
        else:
            n = rows.n_labels
            allowed = np.ones((rows.n_previous, n), np.bool_) if self.mask is None else self.mask
            n_allowed = allowed.sum(axis=1)[:, None]
            off = n_allowed * self.off + (n - n_allowed) * self.forbidden
            # The bonus belongs to truth j only where label j is allowed after the previous one.
            bonus = self.right_bonus(rows.n_workers)[rows.group_worker]
            total = off[rows.group_previous] + bonus[:, None] * allowed[rows.group_previous]
        return np.asarray(total if self.history is None else total + rows.sum_groups(self.history))

    def right_and_wrong(self, n_workers: int, n_labels: int) -> tuple[Floats, float]:
        """Give the Beta prior of being right made of the same two numbers (MATH section 3).

        Returns:
            float64 [n_workers] for right, and (J-1) alpha0 for wrong (alpha0 if J is 1, so that
            the distribution exists).
        """
        return self.off + self.right_bonus(n_workers), max(1, n_labels - 1) * self.off

    def _check_base(self, rows: Rows) -> None:
        shape = (rows.n_previous, rows.n_labels, rows.n_labels)
        if self.base is None or self.base.shape != shape:
            found = None if self.base is None else self.base.shape
            raise InputError(f"prior: base must have shape {shape}, not {found}")
