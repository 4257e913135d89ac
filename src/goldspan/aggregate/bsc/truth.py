"""The truth before anybody answers: Dirichlets over its first label and over its steps.

T_j ~ Dir(gamma_j) over the labels that may follow j, a start row apart (MATH section 4). What the
encoding forbids has no parameter at all: its probability is 0 for ever. Without a chain there is
one Dirichlet over labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from goldspan.spans import Codec

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Truth:
    """Dirichlets over labels, in a table of rows of which some cells do not exist.

    Attributes:
        allowed: bool [n_rows, J]; row 0 is the start (or, without a chain, the only row), row j + 1
            what follows label j.
        end: float64 [J], 1 where an item may end, else 0.
        prior: Pseudo-count of every allowed cell.
        is_point: Whether to use shares in place of expected logarithms (EM).
    """

    allowed: NDArray[np.bool_]
    end: Floats
    prior: float = 1.0
    is_point: bool = False

    @classmethod
    def chain(cls, codec: Codec, prior: float = 1.0) -> Truth:
        """Make the chain of a tag set; PLAIN allows every step."""
        allowed = np.vstack([codec.start_mask, codec.mask])
        return cls(allowed, codec.end_mask.astype(np.float64), prior)

    @classmethod
    def independent(cls, n_labels: int, prior: float = 1.0, *, is_point: bool = False) -> Truth:
        """Make one distribution for all tokens."""
        allowed = np.ones((1, n_labels), np.bool_)
        return cls(allowed, np.ones(n_labels), prior, is_point)

    @property
    def is_chain(self) -> bool:
        """Whether the label before counts."""
        return len(self.allowed) > 1

    def log_table(self, counts: Floats) -> Floats:
        """Give E ln T after some counts, float64 [n_rows, J]; -inf where nothing is allowed."""
        alpha = np.where(self.allowed, self.prior + counts, 1.0)
        total = (alpha * self.allowed).sum(axis=1, keepdims=True)
        logs = np.log(alpha / total) if self.is_point else digamma(alpha) - digamma(total)
        return np.where(self.allowed, logs, -np.inf)

    def divergence(self, counts: Floats) -> float:
        """Give KL(posterior || prior); for points minus the log density, without constants."""
        ok = self.allowed
        alpha = np.where(ok, self.prior + counts, 1.0)
        logs = np.where(ok, self.log_table(counts), 0.0)
        if self.is_point:
            return float(-(self.prior * logs).sum())
        total, before = (alpha * ok).sum(axis=1), self.prior * ok.sum(axis=1)
        parts = gammaln(self.prior) - gammaln(alpha) + (alpha - self.prior) * logs
        return float((gammaln(total) - gammaln(before)).sum() + (parts * ok).sum())
