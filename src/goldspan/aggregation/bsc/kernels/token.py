"""The E-step without a chain: every token by itself (Dawid and Skene; IBCC; single labels).

r_t(j) ~ exp(E ln p_j + sum_k E ln A^k(j, ., c^k_t)),   p the shares of the labels
"""

from __future__ import annotations

import numpy as np

from goldspan._kernel import kernel
from goldspan.aggregation.bsc.kernels.chain import MAX_PRODUCT
from goldspan.chains.posterior import log_sum


@kernel
def token_step(
    offsets, bounds, row, active, gold, unary, table, log_table, share, counts, share_counts, probs
):
    """Do the E-step for some items; the arguments are those of `chain_step`.

    Args:
        share: float64 [J], exp(E ln p).
        share_counts: float64 [J], added to.

    Returns:
        Sum of ln Z over the tokens.
    """
    n_labels = len(share)
    truth = np.empty(n_labels)
    log_share = np.empty(n_labels)
    for j in range(n_labels):
        log_share[j] = np.log(share[j])
    log_z, product = 0.0, 1.0
    for n in range(len(active)):
        if not active[n]:
            continue
        for token in range(offsets[n] - offsets[0], offsets[n + 1] - offsets[0]):
            begin, stop = bounds[token] - bounds[0], bounds[token + 1] - bounds[0]
            total = 0.0
            if stop - begin <= MAX_PRODUCT and not len(unary):
                total = _multiply(token, begin, stop, row, gold, table, share, truth)
            if total > 1e-250:
                product *= total
                if product < 1e-40:
                    log_z += np.log(product)
                    product = 1.0
            else:
                log_z += _in_logarithms(
                    token, begin, stop, row, gold, unary, log_table, log_share, truth
                )
                total = 1.0
            for j in range(n_labels):
                truth[j] /= total
                share_counts[j] += truth[j]
            if len(counts):
                for entry in range(begin, stop):
                    at = row[entry]
                    for j in range(n_labels):
                        counts[at, j] += truth[j]
            if len(probs):
                for j in range(n_labels):
                    probs[token, j] = truth[j]
    return log_z + np.log(product)


@kernel
def _multiply(token, begin, stop, row, gold, table, share, truth):
    """Multiply the evidence of a token; give the sum."""
    n_labels = len(share)
    for j in range(n_labels):
        truth[j] = share[j]
    for entry in range(begin, stop):
        at = row[entry]
        for j in range(n_labels):
            truth[j] *= table[at, j]
    if len(gold) and gold[token] >= 0:
        for j in range(n_labels):
            if j != gold[token]:
                truth[j] = 0.0
    total = 0.0
    for j in range(n_labels):
        total += truth[j]
    return total


@kernel
def _in_logarithms(token, begin, stop, row, gold, unary, log_table, log_share, truth):
    """Do one token with logarithms; `truth` sums to 1 afterwards."""
    n_labels = len(log_share)
    for j in range(n_labels):
        truth[j] = log_share[j] + (unary[token, j] if len(unary) else 0.0)
    for entry in range(begin, stop):
        values = log_table[row[entry]]
        for j in range(n_labels):
            truth[j] += values[j]
    if len(gold) and gold[token] >= 0:
        for j in range(n_labels):
            if j != gold[token]:
                truth[j] = -np.inf
    log_z = log_sum(truth)
    for j in range(n_labels):
        truth[j] = np.exp(truth[j] - log_z)
    return log_z


@kernel
def label_step(
    offsets, bounds, row, active, gold, unary, table, log_table, share, codes, probs, entropy
):
    """Give the labels of items that are single tokens: the last pass where there is no chain.

    Args:
        offsets, bounds, row, active, gold, unary, table, log_table, share: As for `token_step`;
            `unary` is empty.
        codes: int16 [n_items], the likeliest labels, written; -1 in items that are not active.
        probs: float32 [n_items, J], written.
        entropy: float64 [n_items], in nats, written.
    """
    n_labels = len(share)
    truth, log_share = np.empty(n_labels), np.empty(n_labels)
    for j in range(n_labels):
        log_share[j] = np.log(share[j])
    for n in range(len(active)):
        token = offsets[n] - offsets[0]
        entropy[n] = 0.0
        if not active[n]:
            codes[token] = -1
            for j in range(n_labels):
                probs[token, j] = 0.0
            continue
        begin, stop = bounds[token] - bounds[0], bounds[token + 1] - bounds[0]
        total = 0.0
        if stop - begin <= MAX_PRODUCT:
            total = _multiply(token, begin, stop, row, gold, table, share, truth)
        if not total > 1e-250:
            _in_logarithms(token, begin, stop, row, gold, unary, log_table, log_share, truth)
            total = 1.0
        best = 0
        for j in range(n_labels):
            p = truth[j] / total
            probs[token, j] = p
            if probs[token, j] > probs[token, best]:  # in float32: what is equal to 7 digits ties
                best = j
            if p > 0.0:
                entropy[n] -= p * np.log(p)
        codes[token] = best
        entropy[n] = max(entropy[n], 0.0)
