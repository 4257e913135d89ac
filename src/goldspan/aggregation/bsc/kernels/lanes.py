"""Forward-backward over many items side by side, so that the inner loops are long.

Loops over nine labels are too short for vector instructions; here the innermost index is the item.
Items come sorted by length; those that need logarithms, or are very long, are left to `chain_step`.
"""

from __future__ import annotations

import numpy as np

from goldspan._kernel import kernel
from goldspan.aggregation.bsc.kernels.chain import gather, scatter

LANES = 32
MAX_LENGTH = 1024
"""Longer items would fill too much memory side by side."""


@kernel
def lanes_step(
    order, offsets, bounds, row, gold, unary, table, start, step, end,
    counts, start_counts, step_counts, probs, left,
):  # fmt: skip
    """Do the E-step for some items and add to the statistics.

    Args:
        order: int32 [n], items to do, the longest first.
        offsets, bounds, row, gold, unary, table, start, step, end: As for `chain_step`.
        counts, start_counts, step_counts, probs: As for `chain_step`.
        left: bool [n_items], set where an item was not done.

    Returns:
        Sum of ln Z over the items that were done.
    """
    n_labels = len(start)
    begin = 0
    while begin < len(order):
        item = order[begin]
        if offsets[item + 1] - offsets[item] <= MAX_LENGTH:
            break
        left[item] = True
        begin += 1
    if begin == len(order):
        return 0.0
    longest = offsets[order[begin] + 1] - offsets[order[begin]]
    evidence = np.empty((longest, n_labels, LANES))
    forward = np.empty((longest, n_labels, LANES))
    scratch = np.empty((longest, n_labels))
    backward, after = np.zeros((n_labels, LANES)), np.zeros((n_labels, LANES))
    outer = np.zeros((n_labels, n_labels, LANES))
    total, log_item, one = np.empty(LANES), np.empty(LANES), np.empty(n_labels)
    product = np.empty(LANES)
    lengths, firsts = np.zeros(LANES, np.int64), np.zeros(LANES, np.int64)
    log_z = 0.0
    for base in range(begin, len(order), LANES):
        longest = 0
        for w in range(LANES):
            lengths[w] = 0
            log_item[w] = 0.0
            product[w] = 1.0
            if base + w < len(order):
                item = order[base + w]
                length = offsets[item + 1] - offsets[item]
                firsts[w] = offsets[item] - offsets[0]
                log_scale, safe = gather(
                    firsts[w], length, bounds, row, gold, unary, table, scratch
                )
                if safe:
                    lengths[w], log_item[w] = length, log_scale
                    longest = max(longest, length)
                    for t in range(length):
                        for j in range(n_labels):
                            evidence[t, j, w] = scratch[t, j]
                else:
                    left[item] = True
        for w in range(LANES):
            for t in range(lengths[w], longest):
                for j in range(n_labels):
                    evidence[t, j, w] = 0.0
        for t in range(longest):
            _forward_token(t, evidence, forward, start, step, total)
            for w in range(LANES):
                if t >= lengths[w]:
                    total[w] = 1.0
                elif not total[w] > 1e-250:
                    left[order[base + w]] = True
                    lengths[w] = 0
                    total[w] = 1.0
                product[w] *= total[w]
                if product[w] < 1e-40:
                    log_item[w] += np.log(product[w])
                    product[w] = 1.0
                total[w] = 1.0 / total[w]
            for j in range(n_labels):
                for w in range(LANES):
                    forward[t, j, w] *= total[w]
                    evidence[t, j, w] *= total[w]
        for j in range(n_labels):
            for w in range(LANES):
                backward[j, w] = 0.0
        for w in range(LANES):
            total[w] = 0.0
            if lengths[w]:
                for j in range(n_labels):
                    total[w] += forward[lengths[w] - 1, j, w] * end[j]
                if total[w] > 1e-250:
                    log_z += log_item[w] + np.log(product[w]) + np.log(total[w])
                else:
                    left[order[base + w]] = True
                    lengths[w] = 0
            if not lengths[w]:  # nothing of a lane that failed may count
                for t in range(longest):
                    for j in range(n_labels):
                        forward[t, j, w] = 0.0
                        evidence[t, j, w] = 0.0
        for t in range(longest - 1, -1, -1):
            for w in range(LANES):
                if lengths[w] - 1 == t:
                    for j in range(n_labels):
                        backward[j, w] = end[j] / total[w]
            for w in range(LANES):
                if t < lengths[w]:
                    share = 0.0
                    for j in range(n_labels):
                        one[j] = forward[t, j, w] * backward[j, w]
                        share += one[j]
                    for j in range(n_labels):
                        one[j] /= share
                        if t == 0:
                            start_counts[j] += one[j]
                    scatter(firsts[w] + t, one, bounds, row, counts, probs)
            if t:
                _backward_token(t, evidence, forward, step, backward, after, outer)
    for i in range(n_labels):
        for j in range(n_labels):
            share = 0.0
            for w in range(LANES):
                share += outer[i, j, w]
            step_counts[i, j] += share * step[i, j]
    return log_z


@kernel
def _forward_token(t, evidence, forward, start, step, total):
    """Go on to token t in all lanes; `total` is what the new values sum to."""
    n_labels = len(start)
    here = forward[t]
    for j in range(n_labels):
        for w in range(LANES):
            here[j, w] = start[j] if t == 0 else 0.0
    if t:
        before = forward[t - 1]
        for i in range(n_labels):
            for j in range(n_labels):
                weight = step[i, j]
                if weight != 0.0:
                    for w in range(LANES):
                        here[j, w] += before[i, w] * weight
    for w in range(LANES):
        total[w] = 0.0
    for j in range(n_labels):
        for w in range(LANES):
            here[j, w] *= evidence[t, j, w]
            total[w] += here[j, w]


@kernel
def _backward_token(t, evidence, forward, step, backward, after, outer):
    """Go back from token t in all lanes and add to the expected steps."""
    n_labels = len(step)
    for j in range(n_labels):
        for w in range(LANES):
            after[j, w] = evidence[t, j, w] * backward[j, w]
    for i in range(n_labels):
        for w in range(LANES):
            backward[i, w] = 0.0
        before = forward[t - 1]
        for j in range(n_labels):
            weight = step[i, j]
            if weight != 0.0:
                for w in range(LANES):
                    backward[i, w] += weight * after[j, w]
                    outer[i, j, w] += before[i, w] * after[j, w]
