"""The last pass over the items: marginals, best path, entropy, and exact span posteriors.

All of it in logarithms, once. A span [a, b) of type x has the posterior mass of all paths that the
pair table parses to exactly this span (MATH section 7): a path enters x at a with a pair that
starts a span, stays in x without another start, and leaves at b with a pair that ends one. In BIO
that is the forced path B I … I with a not-I behind it; in IOB it may begin with I or with B; the
same sum is exact in every encoding.
"""

from __future__ import annotations

import numpy as np

from goldspan._kernel import kernel
from goldspan.chains.kernels.logarithms import (
    forward_logarithms,
    gather_logarithms,
    largest,
    log_sum,
    log_sum_of_two,
    pull,
)
from goldspan.spans.pairs import ENDED, STARTS


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
    """Give the logarithms of the chain."""
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
    """Give the entropy of the path: H_t(j) = sum_i p(i | j) (H_{t-1}(i) - ln p(i | j))."""
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
    """Give the log mass of the paths that hold exactly the span [begin, stop) of a type."""
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
    """Give the log mass of ending the span before token `stop`."""
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
