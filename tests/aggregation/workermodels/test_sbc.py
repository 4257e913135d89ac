"""Simulation-based calibration of the worker models (Talts et al. 2018).

Workers are drawn from the prior, then answers to items whose truth is known. Where posterior and
prior belong together, the posterior's distribution function at the drawn parameter is uniform.
`mace` sums out who knew an answer, approximately, so nothing is promised of its ranks.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from goldspan.aggregation.workermodels import Prior, Rows, get_worker_model

N_LABELS, N_WORKERS, N_ANSWERS, N_BINS = 3, 600, 24, 20
PRIOR = Prior(0.8, 2.5)
EXACT = ["acc", "cv", "cm", "seq"]


def simulated(name):
    """Return the workers' tables [K, previous, truth, given], their counts of labels, and rows."""
    rng, model = np.random.default_rng(11), get_worker_model(name)
    n_previous = N_LABELS + 1 if model.has_memory else 1
    tables = np.stack([model.draw(PRIOR, n_previous, N_LABELS, rng) for _ in range(N_WORKERS)])
    counts = np.zeros_like(tables)
    for worker in range(N_WORKERS):
        for previous in range(n_previous):
            for truth in range(N_LABELS):
                n = N_ANSWERS // 4 if model.has_memory else N_ANSWERS
                counts[worker, previous, truth] = rng.multinomial(
                    n, tables[worker, previous, truth]
                )
    every = np.argwhere(np.ones((N_WORKERS, n_previous, N_LABELS), bool)).T
    rows = Rows(
        every[0].astype(np.int32), every[1].astype(np.int16), every[2].astype(np.int16),
        N_WORKERS, n_previous, N_LABELS,
    )  # fmt: skip
    return model, tables, counts[rows.worker, rows.previous, :, rows.label], rows


def ranks(name, prior=PRIOR):
    """Return P(parameter ≤ the true one) of every worker, for one parameter of each."""
    model, tables, counts, rows = simulated(name)
    posterior = model.posterior(counts, rows, prior)
    true = tables[:, 0, 1, 1]  # of being right where the truth is label 1
    if name in {"acc", "cv"}:
        column = 0 if name == "acc" else 1
        return stats.beta.cdf(true, posterior.right[:, column], posterior.wrong[:, column])
    at = np.flatnonzero((rows.previous == 0) & (rows.label == 1))
    alpha, total = posterior.alpha[at, 1], posterior.total[rows.group[at], 1]
    return stats.beta.cdf(true, alpha, total - alpha)


def uniform(found):
    """Return the p-value of equally full bins."""
    return stats.chisquare(np.histogram(found, N_BINS, (0, 1))[0]).pvalue


@pytest.mark.parametrize("name", EXACT)
def test_the_ranks_of_true_parameters_are_uniform(name):
    assert uniform(ranks(name)) > 0.001


@pytest.mark.parametrize("wrong", [Prior(0.8, 8.0), Prior(3.0, 2.5)], ids=["bonus", "off"])
@pytest.mark.parametrize("name", EXACT)
def test_a_wrong_prior_is_seen(name, wrong):
    assert uniform(ranks(name, wrong)) < 1e-6
