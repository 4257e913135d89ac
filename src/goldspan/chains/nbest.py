"""The n best paths of a chain (list Viterbi): every tag keeps its n best ways to it."""

from __future__ import annotations

import numpy as np

from goldspan._kernel import kernel
from goldspan.chains.posterior import log_sum


@kernel
def nbest_step(unary, start, step, end, paths, log_probs):
    """Write the best paths of one item.

    Args:
        unary: float64 [length, J], log scores.
        start: float64 [J], log; -inf where forbidden.
        step: float64 [J, J], log.
        end: float64 [J], log.
        paths: int16 [n, length], written, the best first.
        log_probs: float64 [n], ln P(path), written.

    Returns:
        How many there are, at most n.
    """
    length, n_labels = unary.shape
    n = len(log_probs)
    if length == 0:
        log_probs[0] = 0.0
        return 1
    best = np.full((length, n_labels, n), -np.inf)
    back = np.zeros((length, n_labels, n), np.int64)
    forward, work = np.empty(n_labels), np.empty(n_labels)
    new = np.empty(n_labels)
    for j in range(n_labels):
        best[0, j, 0] = start[j] + unary[0, j]
        forward[j] = best[0, j, 0]
    for t in range(1, length):
        for j in range(n_labels):
            for i in range(n_labels):
                work[i] = forward[i] + step[i, j]
                for r in range(n):
                    value = best[t - 1, i, r] + step[i, j] + unary[t, j]
                    if not value > best[t, j, n - 1]:
                        break
                    at = n - 1
                    while at > 0 and best[t, j, at - 1] < value:
                        best[t, j, at] = best[t, j, at - 1]
                        back[t, j, at] = back[t, j, at - 1]
                        at -= 1
                    best[t, j, at] = value
                    back[t, j, at] = i * n + r
            new[j] = log_sum(work) + unary[t, j]
        for j in range(n_labels):
            forward[j] = new[j]
    for j in range(n_labels):
        work[j] = forward[j] + end[j]
    log_z = log_sum(work)
    found = 0
    taken = np.zeros((n_labels, n), np.bool_)
    while found < n:
        most, label, rank = -np.inf, -1, 0
        for j in range(n_labels):
            for r in range(n):
                value = best[length - 1, j, r] + end[j]
                if not taken[j, r] and value > most:
                    most, label, rank = value, j, r
        if label < 0:
            break
        taken[label, rank] = True
        log_probs[found] = min(0.0, most - log_z)
        for t in range(length - 1, -1, -1):
            paths[found, t] = label
            if t:
                code = back[t, label, rank]
                label, rank = code // n, code % n
        found += 1
    return found
