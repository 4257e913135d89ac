"""The compiled loops over pairs of answers to the same item, for `families`."""

from __future__ import annotations

import numpy as np

from goldspan._kernel import kernel


@kernel
def list_pairs(bounds, worker, n_workers, pair, one, two):
    """List the pairs of labels of the same token, the lower worker first."""
    # bounds int64 [n_tokens + 1]; worker int64 [n_labels], increasing within a token
    # pair int64 [n_records], written: left * n_workers + right; one, two int64 [n_records], labels
    at = 0
    for t in range(len(bounds) - 1):
        for i in range(bounds[t], bounds[t + 1]):
            for j in range(i + 1, bounds[t + 1]):
                pair[at], one[at], two[at] = worker[i] * n_workers + worker[j], i, j
                at += 1


@kernel
def soft_labels(bounds, worker, code, count, share, logs, counts, probs):
    """Compute the posterior of every token, and count by it what labels workers gave."""
    # bounds int64 [n + 1]; worker, code int64 and share float64 [n_labels]; count float64 [n]
    # logs float64 [n_workers, J, J], of confusion matrices; counts float64 [n_workers, J, J], added
    # to; probs float64 [n, J], the logarithm of the prior, overwritten
    size = probs.shape[1]
    for t in range(len(count)):
        for e in range(bounds[t], bounds[t + 1]):
            for j in range(size):
                probs[t, j] += share[e] * logs[worker[e], j, code[e]]
        best, total = -np.inf, 0.0
        for j in range(size):
            best = max(best, probs[t, j])
        for j in range(size):
            probs[t, j] = np.exp(probs[t, j] - best)
            total += probs[t, j]
        for j in range(size):
            probs[t, j] /= total
        for e in range(bounds[t], bounds[t + 1]):
            for j in range(size):
                counts[worker[e], j, code[e]] += count[t] * probs[t, j]


@kernel
def weighted_quantiles(values, weight, bounds, quantile, out):
    """Compute the lower weighted quantile of every group that is not empty."""
    # values float64 [n_values]; weight float64 [n_values], above 0; bounds int64 [n_groups + 1]
    # out float64 [n_groups], written
    for g in range(len(bounds) - 1):
        begin, stop = bounds[g], bounds[g + 1]
        total = 0.0
        for i in range(begin, stop):
            total += weight[i]
        reached = 0.0
        for i in np.argsort(values[begin:stop]):
            reached += weight[begin + i]
            if reached >= total * quantile * (1 - 1e-9):
                out[g] = values[begin + i]
                break
