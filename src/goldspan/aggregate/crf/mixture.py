"""The formulas of CRF-MA on plain arrays: who is believed how much (paper 000, 3.3 to 3.5).

z = r means that worker r's sequences are the truth and all others' are random (eq. 3 to 9):
p(D) = sum_r pi_r prod_{i in I_r} p(y_i^r | x_i) prod_{j != r} C^-T. Workers differ in what they
answered, so that the random sequences do not cancel out as they do in eq. 13 (MATH section 5).

Likelihood and expectation are given relative to all sequences being random, sum_r sum_i -T ln C:
that is a constant, and so large that nothing else would be seen beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from goldspan.aggregate.crf.lessons import Floats

NORMALISE = ("token", "ratio", "none")
LEAST_PI = 1e-12
"""Reliabilities below count as this in logarithms: a worker with F1 = 0 makes nothing infinite."""


@dataclass(frozen=True, eq=False)
class Totals:
    """What every worker's answers sum up to.

    Attributes:
        log_prob: float64 [n_workers], sum of ln p(y | x) over the worker's answers.
        n_given: int64 [n_workers], labels in them; 0 for workers who are left out.
        n_labels: Number of tags, C in the paper.
    """

    log_prob: Floats
    n_given: NDArray[np.int64]
    n_labels: int

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Who takes part."""
        return self.n_given > 0


def log_weights(pi: Floats, totals: Totals, normalise: str, tau: float = 1.0) -> Floats:
    """Give the logarithms of what gamma is proportional to, float64 [n_workers].

    Args:
        pi: float64 [n_workers], reliabilities.
        totals: Of the workers.
        normalise: "none", eq. 15 to the letter: it favours whoever labelled least; "ratio", eq. 12:
            the random sequences that a worker's take the place of count; "token": the mean log
            probability per label, times tau.
        tau: How sharp "token" is.
    """
    log_pi = np.log(np.maximum(pi, LEAST_PI))
    if normalise == "token":
        support = tau * totals.log_prob / np.maximum(totals.n_given, 1)
    else:
        per_label = np.log(totals.n_labels) if normalise == "ratio" else 0.0
        support = totals.log_prob + totals.n_given * per_label
    return np.where(totals.kept, log_pi + support, -np.inf)


def responsibilities(pi: Floats, totals: Totals, normalise: str, tau: float = 1.0) -> Floats:
    """Give gamma, float64 [n_workers] (eq. 15); arguments as `log_weights`."""
    logs = log_weights(pi, totals, normalise, tau)
    return np.asarray(np.exp(logs - logsumexp(logs)))


def log_likelihood(pi: Floats, totals: Totals) -> float:
    """Give ln p(D), eq. 9, less that of random sequences."""
    return float(logsumexp(log_weights(pi, totals, "ratio")))


def expectation(gamma: Floats, pi: Floats, totals: Totals) -> float:
    """Give the expected complete-data log-likelihood (eq. 14), less that of random sequences."""
    logs = log_weights(pi, totals, "ratio")
    return float(gamma[totals.kept] @ logs[totals.kept])


def log_prior(pi: Floats, alpha: Floats, kept: NDArray[np.bool_]) -> float:
    """Give ln Dirichlet(pi; alpha) of the workers who take part, without its constant."""
    return float(((alpha - 1) * np.log(np.maximum(pi, LEAST_PI)))[kept].sum())


def from_gamma(gamma: Floats, alpha: Floats, kept: NDArray[np.bool_]) -> Floats:
    """Give pi ~ gamma + alpha - 1: the exact M-step."""
    return normalised(gamma + alpha - 1, kept)


def from_measure(
    measured: Floats, power: float, alpha: Floats, strength: float, kept: NDArray[np.bool_]
) -> Floats:
    """Give pi ~ measure^power + pseudo-counts (eq. 18).

    Powers are taken of shares of the largest measure: those of small numbers would all become 0.

    Args:
        measured: float64 [n_workers], such as F1; NaN, where it says nothing, counts as the mean.
        power: 1 in eq. 18, 2 in the paper's experiments.
        alpha: float64 [n_workers] >= 1, of the Dirichlet prior.
        strength: What the pseudo-counts (alpha - 1) / sum(alpha - 1) are multiplied by.
        kept: bool [n_workers], who takes part.
    """
    known = kept & ~np.isnan(measured)
    top = float(measured[known].max(initial=0.0)) or 1.0
    share = np.where(known, 0.0, 1.0)
    share[known] = measured[known] / top
    if known.any():
        share[~known] = share[known].mean()
    extra = np.where(kept, alpha - 1, 0.0)
    extra = strength * extra / max(extra.sum(), LEAST_PI)
    if not extra.any():
        return normalised(share**power, kept)
    own = power * np.log(top)  # what is multiplied out again, divided by the larger of it and 1
    most = max(own, 0.0)
    return normalised(share**power * np.exp(own - most) + extra * np.exp(-most), kept)


def normalised(values: Floats, kept: NDArray[np.bool_]) -> Floats:
    """Divide by the sum; the same for all who take part if all are 0, and 0 for the others."""
    own = np.where(kept, values, 0.0)
    own = own if own.sum() > 0 else kept.astype(np.float64)
    return np.asarray(own / own.sum())
