"""Word naive Bayes: every true label has a Dirichlet over the word types (MATH section 6).

    p(x | t = j) = omega_j[x],  omega_j ~ Dir(nu0)

To the engine a word is one more answer: a row of its own after the workers' rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from goldspan.crowd import Crowd
from goldspan.workermodels.rows import Floats


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The word types of a corpus.

    Attributes:
        words: The types, sorted.
        prior: nu0, pseudo-count of every type for every label.
    """

    words: pa.Array
    prior: float

    @classmethod
    def of(cls, crowd: Crowd, prior: float) -> Vocabulary:
        """Collect the types of a crowd's tokens."""
        words = pc.unique(_flat(crowd)).sort()
        return cls(words, prior)

    def __len__(self) -> int:
        """Count the types, and one for all words that are not among them."""
        return len(self.words) + 1

    def ids(self, crowd: Crowd) -> NDArray[np.int32]:
        """Give the word of every token, int32 [n_tokens]; unknown words share the last id."""
        found = pc.index_in(_flat(crowd), value_set=self.words)
        return np.asarray(pc.fill_null(found, len(self.words)).to_numpy(), np.int32)

    def log_table(self, counts: Floats) -> Floats:
        """Give E ln omega, float64 [n_words, J]."""
        alpha = self.prior + counts
        return np.asarray(digamma(alpha) - digamma(alpha.sum(axis=0)))

    def divergence(self, counts: Floats) -> float:
        """Give KL(posterior || prior)."""
        alpha, before = self.prior + counts, self.prior * len(self)
        parts = gammaln(self.prior) - gammaln(alpha) + counts * self.log_table(counts)
        totals = gammaln(alpha.sum(axis=0)) - gammaln(before)
        return float(totals.sum() + parts.sum())


def _flat(crowd: Crowd) -> pa.Array:
    return crowd.tokens.flatten().cast(pa.large_string())
