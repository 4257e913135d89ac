"""How much workers share their mistakes, measured.

The model takes workers to be independent given the truth. People are not: they miss the same names
and skip the same tables, and then five answers say less than five times what one says. The
correlation of their mistakes on spans gives the factor (Kish's design effect: n correlated labels
are worth n / (1 + (n - 1) dependence) independent ones).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd import Crowd

HIDDEN = 6.0
"""How many times larger the dependence is than what is seen of it.

The truth is inferred from the same labels, which takes shared mistakes for the truth. On the NER
crowd of paper 000 0.16 is seen against gold and 0.04 against the inferred labels, and 0.25 was best
on the val half; on the example crowd, whose workers are independent, 0.003 is seen."""
MOST = 0.5
CAUTION = 200.0
"""Pairs of labels that are believed to have been independent."""


def measure_dependence(crowd: Crowd, probs: NDArray[np.floating]) -> float:
    """Estimate the correlation of the workers' mistakes, 0 to `MOST`.

    Takes the most probable label t of every token as its truth and e = [label given is not t] with
    the worker's own rate p for that t; the mean over pairs of labels of the same token of
    (e - p)(e' - p') / sqrt(p(1 - p) p'(1 - p')), weighted with the probability of t. Tokens
    outside of spans, which hardly anybody gets wrong, do not count.

    Args:
        crowd: The answers.
        probs: float [n_tokens, J], probabilities of the labels.
    """
    given = crowd.latest.codes
    token, worker = crowd.token_of, crowd.worker_of
    truth, weight = probs.argmax(axis=1), probs.max(axis=1).astype(np.float64)
    if not crowd.tagset.rules.is_plain:
        weight[truth == crowd.tagset.outside] = 0.0
    asked = np.flatnonzero(given >= 0)
    token, worker = token[asked], worker[asked]
    wrong = (given[asked] != truth[token]).astype(np.float64)
    kind = worker.astype(np.int64) * probs.shape[1] + truth[token]
    right_too = np.bincount(kind, weight[token])
    rate = ((np.bincount(kind, weight[token] * wrong) + 0.5) / (right_too + 1))[kind]
    scaled = (wrong - rate) / np.sqrt(rate * (1 - rate))
    size = len(probs)
    both = np.bincount(token, scaled, size) ** 2 - np.bincount(token, scaled**2, size)
    n = np.bincount(token, minlength=size)
    seen = (weight @ both) / (weight @ (n * (n - 1.0)) + CAUTION)
    return float(np.clip(HIDDEN * seen, 0.0, MOST))
