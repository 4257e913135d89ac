"""Forward–backward on tag chains, scaled and in logarithms."""

from __future__ import annotations

import numpy as np

from goldspan._kernel import kernel
from goldspan.spans.encoding import ENDED, STARTS

# --------------------------------------------------------------------------------------------------
# Forward-backward with logarithms: for evidence that no product of probabilities can hold.


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
    """Return ln sum exp, -inf for nothing but -inf."""
    most = largest(values)
    if most == -np.inf:
        return -np.inf
    total = 0.0
    for j in range(len(values)):
        total += np.exp(values[j] - most)
    return most + np.log(total)


@kernel
def log_sum_of_two(left, right):
    """Return ln sum exp(left + right)."""
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
    """Return the largest value."""
    most = values[0]
    for j in range(1, len(values)):
        most = max(most, values[j])
    return most


# --------------------------------------------------------------------------------------------------
# The last pass over the items: marginals, best path, entropy, and exact span posteriors.


@kernel
def posterior_step(
    offsets, bounds, row, active, gold, unary, log_table, start, step, end,
    path_start, path_step, path_end, pairs, type_of, least, codes, probs, entropy, spans, masses,
):  # fmt: skip
    """Do the last pass for some items.

    Args:
        offsets, bounds, row, active, gold, unary, log_table, start, step, end: As for `chain_step`.
        path_start, path_step, path_end: float64 [J], [J, J], [J], logarithms, -inf where a decoded
            path must not go.
        pairs: uint8 [J + 1, J + 1], the pair table, the boundary first; empty for PLAIN.
        type_of: int16 [J], index of every tag's type, -1 for `O`.
        least: Spans with less posterior mass are not listed.
        codes: int16 [n_tokens], the best path, written; -1 in items that are not active.
        probs: float32 [n_tokens, J], marginals, written.
        entropy: float64 [n_items], of the sequence in nats, written.
        spans: int64 [capacity, 4]: item, first token, last token + 1, type; written.
        masses: float64 [capacity], posterior masses of the spans, written.

    Returns:
        The number of spans found, which may be more than fit.
    """
    n_labels = len(start)
    longest = 0
    for n in range(len(active)):
        longest = max(longest, offsets[n + 1] - offsets[n])
    evidence, forward = np.empty((longest, n_labels)), np.empty((longest, n_labels))
    backward = np.empty((longest, n_labels))
    back = np.empty((longest, n_labels), np.int16)
    log_start, log_step, log_end = logarithms(start, step, end)
    work, after = np.empty(n_labels), np.empty(n_labels)
    found = 0
    for n in range(len(active)):
        first, length = offsets[n] - offsets[0], offsets[n + 1] - offsets[n]
        if not active[n] or length == 0:
            codes[first : first + length] = -1
            probs[first : first + length] = 0.0
            entropy[n] = 0.0
            continue
        gather_logarithms(first, length, bounds, row, gold, unary, log_table, evidence)
        log_z = forward_logarithms(length, evidence, start, step, end, forward, work)
        backward_logarithms(length, evidence, step, log_end, backward, after, work)
        for t in range(length):
            total = 0.0
            for j in range(n_labels):
                work[j] = np.exp(forward[t, j] + backward[t, j] - log_z)
                total += work[j]
            for j in range(n_labels):
                probs[first + t, j] = work[j] / total
        _viterbi(length, evidence, path_start, path_step, path_end, back, codes, first)
        entropy[n] = _entropy(length, forward, step, log_step, log_end, log_z, work)
        if len(pairs):
            found = _list_spans(
                n, length, evidence, forward, backward, log_start, log_step, log_end, log_z,
                pairs, type_of, least, probs[first : first + length], spans, masses, found,
            )  # fmt: skip
    return found


@kernel
def logarithms(start, step, end):
    """Return the logarithms of the chain."""
    n_labels = len(start)
    log_start, log_end = np.empty(n_labels), np.empty(n_labels)
    log_step = np.empty((n_labels, n_labels))
    for i in range(n_labels):
        log_start[i], log_end[i] = np.log(start[i]), np.log(end[i])
        for j in range(n_labels):
            log_step[i, j] = np.log(step[i, j])
    return log_start, log_step, log_end


@kernel
def backward_logarithms(length, evidence, step, log_end, backward, after, work):
    """Run backward with logarithms into backward[:length]."""
    n_labels = len(log_end)
    for j in range(n_labels):
        backward[length - 1, j] = log_end[j]
    for t in range(length - 1, 0, -1):
        for j in range(n_labels):
            after[j] = evidence[t, j] + backward[t, j]
        pull(after, step, backward[t - 1], work)


@kernel
def _viterbi(length, evidence, log_start, log_step, log_end, back, codes, first):
    """Write the best path. Among equals the lowest label wins."""
    n_labels = len(log_start)
    best, now = np.empty(n_labels), np.empty(n_labels)
    for j in range(n_labels):
        best[j] = log_start[j] + evidence[0, j]
    for t in range(1, length):
        for j in range(n_labels):
            most, at = -np.inf, 0
            for i in range(n_labels):
                value = best[i] + log_step[i, j]
                if value > most:
                    most, at = value, i
            now[j] = most + evidence[t, j]
            back[t, j] = at
        for j in range(n_labels):
            best[j] = now[j]
    label = 0
    for j in range(n_labels):
        best[j] += log_end[j]
        if best[j] > best[label]:
            label = j
    for t in range(length - 1, -1, -1):
        codes[first + t] = label
        if t:
            label = back[t, label]


@kernel
def _entropy(length, forward, step, log_step, log_end, log_z, work):
    """Return the entropy of the path: H_t(j) = sum_i p(i | j) (H_{t-1}(i) - ln p(i | j))."""
    n_labels = len(log_end)
    before, now = np.zeros(n_labels), np.zeros(n_labels)
    for t in range(1, length):
        most = largest(forward[t - 1])
        for i in range(n_labels):
            work[i] = np.exp(forward[t - 1, i] - most)
        for j in range(n_labels):
            total = 0.0
            for i in range(n_labels):
                total += work[i] * step[i, j]
            now[j] = 0.0
            if not total > 1e-250:  # as unlikely as to add nothing
                continue
            norm = most + np.log(total)
            for i in range(n_labels):
                p = work[i] * step[i, j] / total
                if p > 1e-300:
                    log_p = forward[t - 1, i] + log_step[i, j] - norm
                    now[j] += p * (before[i] - log_p)
        for j in range(n_labels):
            before[j] = now[j]
    entropy = 0.0
    for j in range(n_labels):
        log_p = forward[length - 1, j] + log_end[j] - log_z
        if log_p > -700.0:
            entropy += np.exp(log_p) * (before[j] - log_p)
    return max(entropy, 0.0)


@kernel
def _list_spans(
    n, length, evidence, forward, backward, log_start, log_step, log_end, log_z,
    pairs, type_of, least, probs, spans, masses, found,
):  # fmt: skip
    """List the spans of an item with at least some posterior mass."""
    n_labels = len(log_end)
    n_types = 0
    for j in range(n_labels):
        n_types = max(n_types, type_of[j] + 1)
    inside, new = np.empty(n_labels), np.empty(n_labels)
    for begin in range(length):
        for kind in range(n_types):
            share = 0.0
            for j in range(n_labels):
                if type_of[j] == kind:
                    share += probs[begin, j]
            if share < 0.999 * least:  # no span can begin here; probs are float32
                continue
            enter(begin, kind, evidence, forward, log_start, log_step, pairs, type_of, inside)
            for stop in range(begin + 1, length + 1):
                through = log_sum_of_two(inside, backward[stop - 1]) - log_z
                if not through > np.log(least):
                    break
                mass = np.exp(
                    leave(stop, length, inside, evidence, backward, log_step, log_end, pairs)
                    - log_z
                )
                if mass >= least:
                    if found < len(masses):
                        spans[found, 0], spans[found, 1] = n, begin
                        spans[found, 2], spans[found, 3] = stop, kind
                        masses[found] = min(mass, 1.0)
                    found += 1
                if stop < length:
                    stay(stop, kind, inside, new, evidence, log_step, pairs, type_of)
                    for j in range(n_labels):
                        inside[j] = new[j]
    return found


@kernel
def span_mass(
    begin, stop, kind, length, evidence, forward, backward, log_start, log_step, log_end,
    pairs, type_of,
):  # fmt: skip
    """Return the log mass of the paths that hold exactly the span [begin, stop) of a type."""
    n_labels = len(log_end)
    inside, new = np.empty(n_labels), np.empty(n_labels)
    enter(begin, kind, evidence, forward, log_start, log_step, pairs, type_of, inside)
    for t in range(begin + 1, stop):
        stay(t, kind, inside, new, evidence, log_step, pairs, type_of)
        for j in range(n_labels):
            inside[j] = new[j]
    return leave(stop, length, inside, evidence, backward, log_step, log_end, pairs)


@kernel
def enter(begin, kind, evidence, forward, log_start, log_step, pairs, type_of, inside):
    """Set inside[j] to the log mass of paths up to `begin` that start a span of the type there."""
    n_labels = len(inside)
    work = np.empty(n_labels)
    for j in range(n_labels):
        inside[j] = -np.inf
        if type_of[j] != kind:
            continue
        if begin == 0:
            if pairs[0, j + 1] & STARTS:
                inside[j] = log_start[j] + evidence[0, j]
            continue
        for i in range(n_labels):
            starts = pairs[i + 1, j + 1] & STARTS
            work[i] = forward[begin - 1, i] + log_step[i, j] if starts else -np.inf
        inside[j] = log_sum(work) + evidence[begin, j]


@kernel
def stay(t, kind, inside, new, evidence, log_step, pairs, type_of):
    """Go on to token t without starting another span."""
    n_labels = len(inside)
    work = np.empty(n_labels)
    for j in range(n_labels):
        new[j] = -np.inf
        if type_of[j] == kind:
            for i in range(n_labels):
                goes_on = type_of[i] == kind and not pairs[i + 1, j + 1] & STARTS
                work[i] = inside[i] + log_step[i, j] if goes_on else -np.inf
            new[j] = log_sum(work) + evidence[t, j]


@kernel
def leave(stop, length, inside, evidence, backward, log_step, log_end, pairs):
    """Return the log mass of ending the span before token `stop`."""
    n_labels = len(inside)
    if stop == length:
        return log_sum_of_two(inside, log_end)
    total, work = np.empty(n_labels), np.empty(n_labels)
    for i in range(n_labels):
        total[i] = -np.inf
        if inside[i] == -np.inf:
            continue
        for j in range(n_labels):
            ends = pairs[i + 1, j + 1] & ENDED
            work[j] = log_step[i, j] + evidence[stop, j] + backward[stop, j] if ends else -np.inf
        total[i] = inside[i] + log_sum(work)
    return log_sum(total)
