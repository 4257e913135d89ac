"""The E-step with a chain: forward-backward over the truth of every item (MATH section 4).

    f_1(j) ~ exp(E ln T_start,j + ll_1(j)),   f_t(j) ~ exp(ll_t(j)) sum_i f_{t-1}(i) exp(E ln T_ij)

scaled at every token; r_t ~ f_t b_t. Evidence is gathered as a product of exp(E ln A) rows, so that
no exponential is taken. Where that could lose digits – a token whose likeliest and least likely
label are more than 1e87 apart, or with very many answers – the item is done again with logarithms.
"""

from __future__ import annotations

import numpy as np

from goldspan._kernel import kernel
from goldspan.chains.posterior import forward_logarithms, gather_logarithms, pull

MAX_PRODUCT = 40
"""Answers of a token up to which their product is safe: each factor is above 1e-7 or so."""
SAFE_RATIO = 1e-87
"""Three forced steps in a row stay above 1e-261."""


@kernel
def chain_step(
    offsets, bounds, row, active, gold, unary, table, log_table, start, step, end,
    counts, start_counts, step_counts, probs,
):  # fmt: skip
    """Do the E-step for some items and add to the statistics.

    Args:
        offsets: int64 [n_items + 1], tokens; the first may be any number.
        bounds: int64 [n_tokens + 1], entries of `row`; the first may be any number.
        row: int32 [n_entries].
        active: bool [n_items]; others are passed over.
        gold: int16 [n_tokens] or empty.
        unary: float64 [n_tokens, J] or empty.
        table: float64 [n_rows, J], exp(E ln A).
        log_table: float64 [n_rows, J], E ln A.
        start: float64 [J], exp(E ln T_start).
        step: float64 [J, J], exp(E ln T), 0 where the encoding forbids.
        end: float64 [J], 1 where an item may end, else 0.
        counts: float64 [n_rows, J], added to; may be empty.
        start_counts: float64 [J], added to.
        step_counts: float64 [J, J], added to.
        probs: float32 [n_tokens, J], r_t, written; may be empty.

    Returns:
        Sum of ln Z over the items, and the number of the first item without any legal truth (its
        gold contradicts the encoding), -1 if there is none.
    """
    n_labels = len(start)
    longest = 0
    for n in range(len(active)):
        longest = max(longest, offsets[n + 1] - offsets[n])
    evidence = np.empty((longest, n_labels))
    forward = np.empty((longest, n_labels))
    backward, before = np.empty(n_labels), np.empty(n_labels)
    outer = np.zeros((n_labels, n_labels))
    log_z = 0.0
    for n in range(len(active)):
        length = offsets[n + 1] - offsets[n]
        if not active[n] or length == 0:
            continue
        first = offsets[n] - offsets[0]
        log_item, safe = gather(first, length, bounds, row, gold, unary, table, evidence)
        if safe:
            log_item += _forward(length, evidence, start, step, forward)
            last = 0.0
            for j in range(n_labels):
                last += forward[length - 1, j] * end[j]
            log_item += np.log(last)
            safe = last > 1e-250 and np.isfinite(log_item)
        if safe:
            for j in range(n_labels):
                backward[j] = end[j] / last
            for t in range(length - 1, -1, -1):
                total = 0.0
                for j in range(n_labels):
                    before[j] = forward[t, j] * backward[j]  # r_t
                    total += before[j]
                for j in range(n_labels):
                    before[j] /= total
                scatter(first + t, before, bounds, row, counts, probs)
                if t == 0:
                    for j in range(n_labels):
                        start_counts[j] += before[j]
                    break
                # g_t(j) = e_t(j) b_t(j) / z_t, with z_t inside `evidence` since _forward
                for j in range(n_labels):
                    backward[j] *= evidence[t, j]
                for i in range(n_labels):
                    total = 0.0
                    weight = forward[t - 1, i]
                    for j in range(n_labels):
                        total += step[i, j] * backward[j]
                        outer[i, j] += weight * backward[j]
                    before[i] = total
                for i in range(n_labels):
                    backward[i] = before[i]
        else:
            log_item = _in_logarithms(
                first, length, bounds, row, gold, unary, log_table, start, step, end,
                evidence, forward, counts, start_counts, step_counts, probs,
            )  # fmt: skip
            if not np.isfinite(log_item):
                return log_z, n
        log_z += log_item
    for i in range(n_labels):
        for j in range(n_labels):
            step_counts[i, j] += outer[i, j] * step[i, j]
    return log_z, -1


@kernel
def gather(first, length, bounds, row, gold, unary, table, evidence):
    """Multiply the evidence of every token, its largest 1; give the logarithms taken out."""
    n_labels = table.shape[1]
    log_scale, safe = 0.0, True
    product = 1.0
    for t in range(length):
        token = first + t
        begin, stop = bounds[token] - bounds[0], bounds[token + 1] - bounds[0]
        if stop - begin > MAX_PRODUCT:
            return 0.0, False
        here = evidence[t]
        for j in range(n_labels):
            here[j] = 1.0
        for entry in range(begin, stop):
            at = row[entry]
            for j in range(n_labels):
                here[j] *= table[at, j]
        if len(unary):
            most = unary[token, 0]
            for j in range(1, n_labels):
                most = max(most, unary[token, j])
            if not np.isfinite(most):
                return 0.0, False
            log_scale += most
            for j in range(n_labels):
                here[j] *= np.exp(unary[token, j] - most)
        largest = here[0]
        least = here[0]
        for j in range(1, n_labels):
            largest = max(largest, here[j])
            least = min(least, here[j])
        if largest < 1e-280 or least < SAFE_RATIO * largest:
            safe = False
        if not safe:
            return 0.0, False
        if len(gold) and gold[token] >= 0:
            for j in range(n_labels):
                if j != gold[token]:
                    here[j] = 0.0
        scale = 1.0 / largest
        product *= largest
        for j in range(n_labels):
            here[j] *= scale
        if product < 1e-200:
            log_scale += np.log(product)
            product = 1.0
    return log_scale + np.log(product), safe


@kernel
def _forward(length, evidence, start, step, forward):
    """Run forward; afterwards forward[t] sums to 1 and evidence[t] is divided by z_t."""
    n_labels = len(start)
    log_z, product = 0.0, 1.0
    for t in range(length):
        here = forward[t]
        if t == 0:
            for j in range(n_labels):
                here[j] = start[j]
        else:
            for j in range(n_labels):
                here[j] = 0.0
            for i in range(n_labels):
                weight = forward[t - 1, i]
                if weight != 0.0:
                    for j in range(n_labels):
                        here[j] += weight * step[i, j]
        total = 0.0
        for j in range(n_labels):
            here[j] *= evidence[t, j]
            total += here[j]
        if not total > 1e-250:
            return -np.inf
        scale = 1.0 / total
        for j in range(n_labels):
            here[j] *= scale
            evidence[t, j] *= scale
        product *= total
        if product < 1e-40:
            log_z += np.log(product)
            product = 1.0
    return log_z + np.log(product)


@kernel
def scatter(token, share, bounds, row, counts, probs):
    """Add r_t to the rows of the token's answers, and keep it if asked to."""
    n_labels = len(share)
    if len(counts):
        for entry in range(bounds[token] - bounds[0], bounds[token + 1] - bounds[0]):
            at = row[entry]
            for j in range(n_labels):
                counts[at, j] += share[j]
    if len(probs):
        for j in range(n_labels):
            probs[token, j] = share[j]


@kernel
def _in_logarithms(
    first, length, bounds, row, gold, unary, log_table, start, step, end,
    evidence, forward, counts, start_counts, step_counts, probs,
):  # fmt: skip
    """Do an item with logarithms throughout; slower, and right for any evidence."""
    n_labels = len(start)
    backward, share = np.empty(n_labels), np.empty(n_labels)
    work = np.empty(n_labels)
    gather_logarithms(first, length, bounds, row, gold, unary, log_table, evidence)
    log_z = forward_logarithms(length, evidence, start, step, end, forward, work)
    if not np.isfinite(log_z):
        return -np.inf
    for j in range(n_labels):
        backward[j] = np.log(end[j])
    for t in range(length - 1, -1, -1):
        total = 0.0
        for j in range(n_labels):
            share[j] = np.exp(forward[t, j] + backward[j] - log_z)
            total += share[j]
        for j in range(n_labels):
            share[j] /= total
        scatter(first + t, share, bounds, row, counts, probs)
        if t == 0:
            for j in range(n_labels):
                start_counts[j] += share[j]
            break
        for j in range(n_labels):
            share[j] = evidence[t, j] + backward[j]
        for i in range(n_labels):
            for j in range(n_labels):
                if step[i, j] > 0.0:  # else 0 times a product that may overflow
                    log_p = forward[t - 1, i] + share[j] - log_z + np.log(step[i, j])
                    step_counts[i, j] += np.exp(log_p)
        pull(share, step, backward, work)
    return log_z
