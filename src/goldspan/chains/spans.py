"""How sure given labels are: the probability of a path and of every span on it."""

from __future__ import annotations

import numpy as np

from goldspan._kernel import kernel
from goldspan.chains.posterior import (
    backward_logarithms,
    forward_logarithms,
    gather_logarithms,
    logarithms,
    span_mass,
)


@kernel
def confidence_step(
    offsets, bounds, row, active, gold, unary, log_table, start, step, end, pairs, type_of,
    codes, spans, paths, masses,
):  # fmt: skip
    """Compute the posteriors of paths and spans; the first arguments are as for `chain_step`.

    Args:
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
    log_start, log_step, log_end = logarithms(start, step, end)
    work, after = np.empty(n_labels), np.empty(n_labels)
    at = 0
    for n in range(len(active)):
        first, length = offsets[n] - offsets[0], offsets[n + 1] - offsets[n]
        if not active[n] or length == 0:
            continue
        gather_logarithms(first, length, bounds, row, gold, unary, log_table, evidence)
        log_z = forward_logarithms(length, evidence, start, step, end, forward, work)
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
        backward_logarithms(length, evidence, step, log_end, backward, after, work)
        while at < len(spans) and spans[at, 0] == n:
            mass = span_mass(
                spans[at, 1], spans[at, 2], spans[at, 3], length, evidence, forward, backward,
                log_start, log_step, log_end, pairs, type_of,
            )  # fmt: skip
            masses[at] = np.exp(min(0.0, mass - log_z))
            at += 1
