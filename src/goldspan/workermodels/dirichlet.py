"""Dirichlet and Beta distributions: expected logarithms and divergences.

For Dir(alpha): E ln p_i = psi(alpha_i) - psi(sum alpha), and

    KL(Dir(a) || Dir(b)) = ln G(sum a) - ln G(sum b) - sum_i [ln G(a_i) - ln G(b_i)]
                           + sum_i (a_i - b_i) (psi(a_i) - psi(sum a)).

Components in which a and b agree add nothing to the sums over i: the compact tables leave them out.
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln

from goldspan.workermodels.rows import Floats


def expected_log(alpha: Floats, total: Floats) -> Floats:
    """Give E ln p for components `alpha` of Dirichlets whose parameters sum to `total`."""
    return np.asarray(digamma(alpha) - digamma(total))


def divergence(
    alpha: Floats, beta: Floats, alpha_total: Floats, beta_total: Floats, expected: Floats
) -> float:
    """Sum KL(Dir(alpha) || Dir(beta)) over many Dirichlets.

    Args:
        alpha: Parameters, any shape; components that agree with `beta` may be left out.
        beta: The prior's, the same shape.
        alpha_total: Sums of the complete parameter vectors, one per Dirichlet.
        beta_total: The same of the prior.
        expected: E ln p of every component, the shape of `alpha`.
    """
    totals = gammaln(alpha_total) - gammaln(beta_total)
    parts = gammaln(beta) - gammaln(alpha) + (alpha - beta) * expected
    return float(totals.sum() + parts.sum())
