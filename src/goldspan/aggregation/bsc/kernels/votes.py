"""Statistics to begin with: the shares of votes in the place of posteriors, token by token.

No array over tokens is made. Neighbouring tokens count as independent.
"""

from __future__ import annotations

import numpy as np

from goldspan._kernel import kernel


@kernel
def vote_step(offsets, bounds, row, active, gold, label, counts, start_counts, step_counts):
    """Add the vote shares of some items to the statistics.

    Args:
        offsets, bounds, row, active, gold: As for `chain_step`.
        label: int16 [n_worker_rows], label of every worker row; rows beyond are words.
        counts: float64 [n_rows, J], added to.
        start_counts: float64 [J], added to: the first tokens of items.
        step_counts: float64 [J, J], added to; empty without a chain, where `start_counts` takes
            every token.
    """
    n_labels = counts.shape[1]
    share, before = np.empty(n_labels), np.empty(n_labels)
    for n in range(len(active)):
        if not active[n]:
            continue
        first = offsets[n] - offsets[0]
        for token in range(first, offsets[n + 1] - offsets[0]):
            begin, stop = bounds[token] - bounds[0], bounds[token + 1] - bounds[0]
            for j in range(n_labels):
                before[j] = share[j]
            _shares(token, begin, stop, row, gold, label, share)
            for entry in range(begin, stop):
                target = counts[row[entry]]
                for j in range(n_labels):
                    target[j] += share[j]
            if token == first or not len(step_counts):
                for j in range(n_labels):
                    start_counts[j] += share[j]
            else:
                for i in range(n_labels):
                    for j in range(n_labels):
                        step_counts[i, j] += before[i] * share[j]


@kernel
def _shares(token, begin, stop, row, gold, label, share):
    """Set `share` to the shares of votes, to the known truth, or to equal shares of nothing."""
    n_labels = len(share)
    if len(gold) and gold[token] >= 0:
        for j in range(n_labels):
            share[j] = 1.0 if j == gold[token] else 0.0
        return
    total = 0.0
    for j in range(n_labels):
        share[j] = 0.0
    for entry in range(begin, stop):
        if row[entry] < len(label):
            share[label[row[entry]]] += 1.0
            total += 1.0
    for j in range(n_labels):
        share[j] = share[j] / total if total > 0.0 else 1.0 / n_labels
