"""Posteriors under a chain: marginals, entropy, best paths, and the mass of paths and of spans.

The posterior of a span is exact: the summed probability of all paths that hold exactly this span,

    P(span [a, b) of a type) = sum over tags of  enter_a . stay_{a+1} ... stay_{b-1} . leave_b / Z,

the forward mass that starts a span of the type at a, goes on without starting another one, and ends
it before b (constrained forward-backward: Culotta & McCallum 2004). The pair table says which step
starts, continues or ends a span. The entropy is that of the whole path (Hernando et al. 2005).
"""

from __future__ import annotations

import numpy as np

from goldspan._kernel import kernel
from goldspan.chains.decoding import best_paths
from goldspan.chains.forward_backward import (
    backward_log,
    forward_log,
    gather_log,
    largest,
    log_sum,
    log_sum_of_two,
)
from goldspan.spans.encoding import ENDED, STARTS

# --------------------------------------------------------------------------------------------------
# The last pass over the items: marginals, best path, entropy, and exact span posteriors.


@kernel
def posterior_items(
    offsets, bounds, row, active, gold, unary, log_table, start, step, end,
    path_start, path_step, path_end, pairs, type_of, least, codes, probs, entropy, spans, masses,
):  # fmt: skip
    """Compute marginals, entropies, best paths and span posteriors of some items.

    Everything is computed with logarithms: this is done once, after the iterations.

    Args:
        offsets, bounds, row, active, gold, unary: As for `expect_items`, as are the next.
        log_table, start, step, end: See there.
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
    log_start, log_step, log_end = np.log(start), np.log(step), np.log(end)
    work, bounds_of_item = np.empty(n_labels), np.zeros(2, np.int64)
    found = 0
    for n in range(len(active)):
        first, length = offsets[n] - offsets[0], offsets[n + 1] - offsets[n]
        if not active[n] or length == 0:
            codes[first : first + length] = -1
            probs[first : first + length] = 0.0
            entropy[n] = 0.0
            continue
        gather_log(first, length, bounds, row, gold, unary, log_table, evidence)
        log_z = forward_log(length, evidence, start, step, end, forward)
        backward_log(length, evidence, step, end, backward)
        for t in range(length):
            total = 0.0
            for j in range(n_labels):
                work[j] = np.exp(forward[t, j] + backward[t, j] - log_z)
                total += work[j]
            for j in range(n_labels):
                probs[first + t, j] = work[j] / total
        own = codes[first : first + length]
        own[:] = 0  # if there is no path
        bounds_of_item[1] = length
        best_paths(bounds_of_item, evidence, path_start, path_step, path_end, own)
        entropy[n] = _entropy(length, forward, step, log_step, log_end, log_z, work)
        if len(pairs):
            found = _list_spans(
                n, length, evidence, forward, backward, log_start, log_step, log_end, log_z,
                pairs, type_of, least, probs[first : first + length], spans, masses, found,
            )  # fmt: skip
    return found


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


# --------------------------------------------------------------------------------------------------
# How probable given labels are: the posteriors of a path and of every span on it.


@kernel
def confidence_items(
    offsets, bounds, row, active, gold, unary, log_table, start, step, end, pairs, type_of,
    codes, spans, paths, masses,
):  # fmt: skip
    """Compute the posteriors of given paths and spans of some items.

    Args:
        offsets, bounds, row, active, gold, unary: As for `expect_items`, as are the next.
        log_table, start, step, end: See there.
        pairs: uint8 [J + 1, J + 1], the pair table.
        type_of: int16 [J].
        codes: int16 [n_tokens], the paths; an item with a -1 is passed over.
        spans: int64 [n_spans, 4]: item, first token, last + 1, type; sorted by item.
        paths: float64 [n_items], P(path), written.
        masses: float64 [n_spans], P(span), written.
    """
    n_labels = len(start)
    longest = 0
    for n in range(len(active)):
        longest = max(longest, offsets[n + 1] - offsets[n])
    evidence, forward = np.empty((longest, n_labels)), np.empty((longest, n_labels))
    backward = np.empty((longest, n_labels))
    log_start, log_step, log_end = np.log(start), np.log(step), np.log(end)
    at = 0
    for n in range(len(active)):
        first, length = offsets[n] - offsets[0], offsets[n + 1] - offsets[n]
        if not active[n] or length == 0:
            continue
        gather_log(first, length, bounds, row, gold, unary, log_table, evidence)
        log_z = forward_log(length, evidence, start, step, end, forward)
        score = 0.0
        for t in range(length):
            code = codes[first + t]
            if code < 0:
                score = -np.inf
                break
            score += evidence[t, code]
            score += log_start[code] if t == 0 else log_step[codes[first + t - 1], code]
        if score > -np.inf:
            paths[n] = np.exp(min(0.0, score + log_end[codes[first + length - 1]] - log_z))
        if at == len(spans) or spans[at, 0] != n:
            continue
        backward_log(length, evidence, step, end, backward)
        while at < len(spans) and spans[at, 0] == n:
            mass = span_mass(
                spans[at, 1], spans[at, 2], spans[at, 3], length, evidence, forward, backward,
                log_start, log_step, log_end, pairs, type_of,
            )  # fmt: skip
            masses[at] = np.exp(min(0.0, mass - log_z))
            at += 1


# --------------------------------------------------------------------------------------------------
# The mass of a span: paths enter it, stay in it without starting another, and leave it.


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
