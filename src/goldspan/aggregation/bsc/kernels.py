"""The compiled loops of Bayesian sequence combination, besides those on chains (`goldspan.chains`).

Rows of a table stand for (worker, previous label, label); a token's evidence is the product of the
rows of the labels it got. J is the number of labels.
"""

from __future__ import annotations

import numpy as np

from goldspan._kernel import inlined, inner, kernel
from goldspan.chains.forward_backward import MAX_PRODUCT, log_sum, scatter

# --------------------------------------------------------------------------------------------------
# Rows and labels by token: numbering the pairs of worker, previous label and label that occur.


@kernel
def count_rows(
    order, bounds, item, offset, codes, tokens, has_memory, begin, after, n_previous, n_labels,
    per_token,
):  # fmt: skip
    """Count the rows, and the labels of every token t in per_token[t + 1]."""
    seen = np.full(n_previous * n_labels, -1, np.int32)
    n_rows = 0
    for worker in range(len(bounds) - 1):
        for at in range(bounds[worker], bounds[worker + 1]):
            answer = order[at]
            token = tokens[item[answer]]
            previous = begin
            for i in range(offset[answer], offset[answer + 1]):
                code = codes[i]
                if code < 0:
                    previous = after
                else:
                    pair = previous * n_labels + code
                    if seen[pair] != worker:
                        seen[pair] = worker
                        n_rows += 1
                    per_token[token + 1] += 1
                    if has_memory:
                        previous = code
                token += 1
    return n_rows


@kernel
def fill_rows(
    order, bounds, item, offset, codes, tokens, has_memory, begin, after, n_previous, n_labels,
    place, row, row_worker, row_previous, row_label,
):  # fmt: skip
    """Number the rows worker by worker, sorted, and put every label's row beside its token."""
    n_pairs = n_previous * n_labels
    seen = np.full(n_pairs, -1, np.int32)
    number = np.zeros(n_pairs, np.int32)
    n_rows = 0
    for worker in range(len(bounds) - 1):
        for at in range(bounds[worker], bounds[worker + 1]):
            answer = order[at]
            previous = begin
            for i in range(offset[answer], offset[answer + 1]):
                code = codes[i]
                if code < 0:
                    previous = after
                    continue
                seen[previous * n_labels + code] = worker
                if has_memory:
                    previous = code
        for pair in range(n_pairs):
            if seen[pair] == worker:
                number[pair] = n_rows
                row_worker[n_rows] = worker
                row_previous[n_rows] = pair // n_labels
                row_label[n_rows] = pair % n_labels
                n_rows += 1
        for at in range(bounds[worker], bounds[worker + 1]):
            answer = order[at]
            token = tokens[item[answer]]
            previous = begin
            for i in range(offset[answer], offset[answer + 1]):
                code = codes[i]
                if code < 0:
                    previous = after
                else:
                    row[place[token]] = number[previous * n_labels + code]
                    place[token] += 1
                    if has_memory:
                        previous = code
                token += 1


@kernel
def lay_out_plain(item, worker, offset, codes, tokens, number, n_labels, bounds, row):
    """Do both without memory, in the order of the answers; a token's rows end up sorted."""
    # worker int32 [n_answers]; number int32 [n_workers * J]; bounds int64 [n_tokens + 1]
    # row int32 [n_labels_given], written
    filled = np.zeros(len(bounds) - 1, np.int32)
    for answer in range(len(item)):
        token = tokens[item[answer]]
        base = np.int64(worker[answer]) * n_labels
        for i in range(offset[answer], offset[answer + 1]):
            if codes[i] >= 0:
                own = number[base + codes[i]]
                first = bounds[token]
                at = first + filled[token]
                filled[token] += 1
                while at > first and row[at - 1] > own:
                    row[at] = row[at - 1]
                    at -= 1
                row[at] = own
            token += 1


@kernel
def count_plain(item, worker, offset, codes, tokens, n_labels, used, per_token):
    """Count the labels of every token t in per_token[t + 1], and mark the rows that are used."""
    for answer in range(len(item)):
        token = tokens[item[answer]]
        base = np.int64(worker[answer]) * n_labels
        for i in range(offset[answer], offset[answer + 1]):
            if codes[i] >= 0:
                used[base + codes[i]] = True
                per_token[token + 1] += 1
            token += 1


# --------------------------------------------------------------------------------------------------
# Patterns: tokens with the same labels of the same workers share one product.


@kernel
def find_patterns(bounds, row, n_rows, pattern, example):
    """Number the distinct lists of rows."""
    # bounds int64 [n_tokens + 1]; row int32 [n_entries]
    # pattern int32 [n_tokens], written: the token's pattern; example int32 [n_tokens]
    n_tokens = len(bounds) - 1
    size = 16
    while size < 2 * n_tokens:
        size *= 2
    slots = np.full(size, -1, np.int32)
    n_patterns = 0
    for token in range(n_tokens):
        begin, stop = bounds[token] - bounds[0], bounds[token + 1] - bounds[0]
        key = np.uint64(1469598103934665603)
        for entry in range(begin, stop):
            if row[entry] < n_rows:
                key = (key ^ np.uint64(row[entry] + 1)) * np.uint64(1099511628211)
                key ^= key >> np.uint64(29)
        at = np.int64(key & np.uint64(size - 1))
        while slots[at] >= 0 and not _same(bounds, row, n_rows, token, example[slots[at]]):
            at = (at + 1) & (size - 1)
        if slots[at] < 0:
            slots[at] = n_patterns
            example[n_patterns] = token
            n_patterns += 1
        pattern[token] = slots[at]
    return n_patterns


@inner
def _same(bounds, row, n_rows, left, right):
    """Return whether two tokens have the same rows of workers, which stand first."""
    a, b = bounds[left] - bounds[0], bounds[right] - bounds[0]
    end_a, end_b = bounds[left + 1] - bounds[0], bounds[right + 1] - bounds[0]
    while True:
        done_a, done_b = a == end_a or row[a] >= n_rows, b == end_b or row[b] >= n_rows
        if done_a or done_b:
            return done_a and done_b
        if row[a] != row[b]:
            return False
        a += 1
        b += 1


@kernel
def weigh_labels(bounds, row, worker, number, rho, weight):
    """Count n labels of a family at a token as n / (1 + (n - 1) rho), in equal parts."""
    # bounds int64 [n_tokens + 1]; row int32 [n_entries]; worker int32 [n_worker_rows]
    # number int64 [n_workers], family of every worker; rho float64 [n_families]
    # weight float64 [n_entries]
    for token in range(len(bounds) - 1):
        begin, stop = bounds[token] - bounds[0], bounds[token + 1] - bounds[0]
        for entry in range(begin, stop):
            if row[entry] >= len(worker):
                continue
            own = number[worker[row[entry]]]
            if rho[own] <= 0.0:
                continue
            n = 0
            for other in range(begin, stop):
                if row[other] < len(worker) and number[worker[row[other]]] == own:
                    n += 1
            weight[entry] = 1.0 / (1.0 + (n - 1) * rho[own])


@kernel
def pattern_logs(bounds, row, weight, log_table, out, shift):
    """Sum the logarithms of every pattern's rows, the largest made 0."""
    # bounds int32 [n_patterns + 1]; row int32 [n_entries]; weight float64 [n_entries]
    # log_table float64 [n_rows, J]; out float64 [n_patterns, J], written
    # shift float64 [n_patterns]
    n_labels = log_table.shape[1]
    for p in range(len(bounds) - 1):
        here = out[p]
        for j in range(n_labels):
            here[j] = 0.0
        for entry in range(bounds[p], bounds[p + 1]):
            values = log_table[row[entry]]
            if len(weight):
                for j in range(n_labels):
                    here[j] += weight[entry] * values[j]
            else:
                for j in range(n_labels):
                    here[j] += values[j]
        most = here[0]
        for j in range(1, n_labels):
            most = max(most, here[j])
        shift[p] = most
        for j in range(n_labels):
            here[j] -= most


@kernel
def spread(bounds, row, own, counts):
    """Add the counts of patterns to their rows."""
    # bounds int64 [n_patterns + 1]; row int32 [n_entries]; own float64 [n_patterns, J]
    # counts float64 [n_rows, J], added to
    n_labels = counts.shape[1]
    for p in range(len(bounds) - 1):
        for entry in range(bounds[p], bounds[p + 1]):
            target = counts[row[entry]]
            for j in range(n_labels):
                target[j] += own[p, j]


# --------------------------------------------------------------------------------------------------
# Statistics to begin with: vote shares in the place of posteriors, neighbours independent.


@kernel
def vote_step(offsets, bounds, row, active, gold, weight, label, counts, start_counts, step_counts):
    """Add the vote shares of some items to the statistics."""
    # weight float64 [n_entries]; label int16 [n_worker_rows]; counts float64 [n_rows, J], added to
    # start_counts float64 [J]; step_counts float64 [J, J]
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
            _shares(token, begin, stop, row, gold, weight, label, share)
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


@inner
def _shares(token, begin, stop, row, gold, weight, label, share):
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
            vote = weight[entry] if len(weight) else 1.0
            share[label[row[entry]]] += vote
            total += vote
    for j in range(n_labels):
        share[j] = share[j] / total if total > 0.0 else 1.0 / n_labels


# --------------------------------------------------------------------------------------------------
# The E-step without a chain: r_t(j) ~ exp(E ln p_j + sum_k E ln A^k(j, ., c^k_t)).


@kernel
def token_step(
    offsets, bounds, row, active, gold, unary, table, log_table, share, counts, share_counts
):
    """Do the E-step for some items, token by token."""
    # share float64 [J], exp(E ln p); share_counts float64 [J], added to
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
            scatter(token, truth, bounds, row, counts)
    return log_z + np.log(product)


@inlined
def _multiply(token, begin, stop, row, gold, table, share, truth):
    """Multiply the evidence of a token; return the sum."""
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


@inner
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
    """Compute the labels of items that are single tokens: the last pass where there is no chain."""
    # codes int16 [n_items]; probs float32 [n_items, J], written
    # entropy float64 [n_items], in nats, written
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
