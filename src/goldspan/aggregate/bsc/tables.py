"""What goes into an E-step and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from goldspan.workermodels.rows import Floats


@dataclass(frozen=True, eq=False)
class Tables:
    """What an E-step needs of the parameters.

    Attributes:
        log_table: float64 [n_rows + n_words, J], E ln A and E ln omega.
        table: Its exponential.
        truth: float64 [1 or J + 1, J], exp(E ln T), 0 where forbidden.
        end: float64 [J].
    """

    log_table: Floats
    table: Floats
    truth: Floats
    end: Floats


@dataclass(eq=False)
class Sums:
    """The statistics of some items: what the updates need.

    Attributes:
        counts: float64 [n_rows + n_words, J].
        truth: float64 [1 or J + 1, J].
        log_z: Sum of ln Z.
        posterior: The workers' posterior that goes with them, where the counts alone do not say
            it (`mace`, carried over from an earlier result); else None.
    """

    counts: Floats
    truth: Floats
    log_z: float = 0.0
    posterior: Any = None

    def copy(self) -> Sums:
        """Copy."""
        return Sums(self.counts.copy(), self.truth.copy(), self.log_z)

    def add(self, other: Sums) -> Sums:
        """Add other statistics to these."""
        self.counts += other.counts
        self.truth += other.truth
        self.log_z += other.log_z
        return self
