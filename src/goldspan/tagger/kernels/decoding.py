"""The best path alone, for tagging when nothing else is asked for (Viterbi 1967)."""

from __future__ import annotations

import numpy as np

from goldspan._kernel import kernel


@kernel
def best_path_step(offsets, unary, start, step, end, codes):
    """Write the best path of every item into codes, int16 [n_tokens]; among equals the lowest tag.

    Args:
        offsets: int64 [n_items + 1], from 0.
        unary: float64 [n_tokens, J], log scores, -inf where something is forbidden.
        start, step, end: float64 [J], [J, J], [J], likewise; rows of `step` previous.
        codes: int16 [n_tokens].

    Returns:
        The number of the first item without any possible path, -1 if there is none.
    """
    n_labels, longest = len(start), 0
    for n in range(len(offsets) - 1):
        longest = max(longest, offsets[n + 1] - offsets[n])
    back = np.zeros((longest, n_labels), np.int16)
    best, now = np.empty(n_labels), np.empty(n_labels)
    for n in range(len(offsets) - 1):
        first, length = offsets[n], offsets[n + 1] - offsets[n]
        if length == 0:
            continue
        for j in range(n_labels):
            best[j] = start[j] + unary[first, j]
        for t in range(1, length):
            source = back[t]
            for j in range(n_labels):
                now[j] = best[0] + step[0, j]
                source[j] = 0
            for i in range(1, n_labels):
                for j in range(n_labels):
                    value = best[i] + step[i, j]
                    if value > now[j]:
                        now[j] = value
                        source[j] = i
            for j in range(n_labels):
                best[j] = now[j] + unary[first + t, j]
        label = 0
        for j in range(n_labels):
            best[j] += end[j]
            if best[j] > best[label]:
                label = j
        if best[label] == -np.inf:
            return n
        for t in range(length - 1, -1, -1):
            codes[first + t] = label
            label = back[t, label]
    return -1
