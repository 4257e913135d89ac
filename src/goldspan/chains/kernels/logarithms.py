"""Forward-backward with logarithms: for evidence that no product of probabilities can hold.

Plain loops throughout: Numba takes ten times as long to compile array expressions.
"""

from __future__ import annotations

import numpy as np

from goldspan._kernel import kernel

TINY = 1e-250
"""Sums below this beside a largest term of 1 are done again, term by term."""


@kernel
def gather_logarithms(first, length, bounds, row, gold, unary, log_table, evidence):
    """Sum the log evidence of an item's tokens into evidence[:length], -inf where gold forbids."""
    n_labels = log_table.shape[1]
    for t in range(length):
        token = first + t
        here = evidence[t]
        for j in range(n_labels):
            here[j] = unary[token, j] if len(unary) else 0.0
        for entry in range(bounds[token] - bounds[0], bounds[token + 1] - bounds[0]):
            values = log_table[row[entry]]
            for j in range(n_labels):
                here[j] += values[j]
        if len(gold) and gold[token] >= 0:
            for j in range(n_labels):
                if j != gold[token]:
                    here[j] = -np.inf


@kernel
def forward_logarithms(length, evidence, start, step, end, forward, work):
    """Run forward with logarithms; give ln Z, -inf if there is no path."""
    n_labels = len(start)
    for t in range(length):
        if t == 0:
            for j in range(n_labels):
                forward[0, j] = np.log(start[j]) + evidence[0, j]
        else:
            push(forward[t - 1], step, forward[t], work)
            for j in range(n_labels):
                forward[t, j] += evidence[t, j]
    for j in range(n_labels):
        work[j] = forward[length - 1, j] + np.log(end[j])
    return log_sum(work)


@kernel
def push(values, step, out, work):
    """Set out[j] = ln sum_i exp(values[i]) step[i, j], without a logarithm of every pair.

    Sums that would be lost beside the largest value are done one by one.
    """
    n_labels = len(out)
    most = largest(values)
    for j in range(n_labels):
        out[j] = 0.0 if most > -np.inf else -np.inf
    if most == -np.inf:
        return
    for i in range(n_labels):
        weight = np.exp(values[i] - most)
        for j in range(n_labels):
            out[j] += weight * step[i, j]
    for j in range(n_labels):
        if out[j] > TINY:
            out[j] = most + np.log(out[j])
        else:
            for i in range(n_labels):
                work[i] = values[i] + np.log(step[i, j])
            out[j] = log_sum(work)


@kernel
def pull(values, step, out, work):
    """Set out[i] = ln sum_j step[i, j] exp(values[j])."""
    n_labels = len(out)
    most = largest(values)
    for j in range(n_labels):
        work[j] = np.exp(values[j] - most) if most > -np.inf else 0.0
    for i in range(n_labels):
        total = 0.0
        for j in range(n_labels):
            total += step[i, j] * work[j]
        out[i] = most + np.log(total) if total > TINY else -np.inf
    if most == -np.inf:
        return
    for i in range(n_labels):
        if out[i] == -np.inf:
            for j in range(n_labels):
                work[j] = values[j] + np.log(step[i, j])
            out[i] = log_sum(work)


@kernel
def log_sum(values):
    """Give ln sum exp, -inf for nothing but -inf."""
    most = largest(values)
    if most == -np.inf:
        return -np.inf
    total = 0.0
    for j in range(len(values)):
        total += np.exp(values[j] - most)
    return most + np.log(total)


@kernel
def log_sum_of_two(left, right):
    """Give ln sum exp(left + right)."""
    most = -np.inf
    for j in range(len(left)):
        most = max(most, left[j] + right[j])
    if most == -np.inf:
        return -np.inf
    total = 0.0
    for j in range(len(left)):
        total += np.exp(left[j] + right[j] - most)
    return most + np.log(total)


@kernel
def largest(values):
    """Give the largest value."""
    most = values[0]
    for j in range(1, len(values)):
        most = max(most, values[j])
    return most
