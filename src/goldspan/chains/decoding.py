"""The best paths of chains: Viterbi, the n best (list Viterbi), and whether there is a path."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldspan._kernel import kernel
from goldspan.chains.forward_backward import log_sum
from goldspan.spans import Codec


@kernel
def best_paths(offsets, scores, start, step, end, codes):
    """Write the best path of every item (Viterbi 1967); among equals the lowest tag wins.

    v_t(j) = s_t(j) + max_i (v_{t-1}(i) + step[i, j])
    """
    # offsets int64 [n_items + 1], from 0; scores float64 [n_tokens, J]
    # start float64 [J], [J, J], [J], likewise; step float64 [J], [J, J], [J], likewise
    # end float64 [J], [J, J], [J], likewise; codes int16 [n_tokens], written
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
            best[j] = start[j] + scores[first, j]
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
                best[j] = now[j] + scores[first + t, j]
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


_NEVER = np.iinfo(np.int64).min // 4


def best_paths_of_votes(
    scores: NDArray[np.int64], offsets: NDArray[np.int64], codec: Codec
) -> NDArray[np.int16]:
    """Find for every item the legal tag sequence with the largest sum of whole numbers.

    The recursion of `best_paths` in NumPy: items go on together, token by token, and drop out
    when they end. It is as fast as the compiled one on the few items that votes leave malformed,
    and a majority vote need not wait for a compiler.
    """
    # scores int64 [n_tokens, J]; offsets int64 [n_items + 1]; returns int16 [n_tokens]
    codes = np.zeros(len(scores), np.int16)
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")
    order = order[lengths[order] > 0]
    if not len(order):
        return codes
    begin, length = offsets[:-1][order], lengths[order]
    steps = int(length[0])
    forbidden = np.where(codec.mask, 0, _NEVER)
    best = np.where(codec.start_mask, scores[begin], _NEVER)
    back = np.zeros((steps, len(order), len(codec.tags)), np.int16)
    final = np.empty((len(order), len(codec.tags)), np.int64)
    n_active = len(order)
    for t in range(1, steps + 1):
        still = int(np.searchsorted(-length, -t, side="left"))
        final[still:n_active] = best[still:n_active]
        n_active = still
        if not n_active:
            break
        through = best[:n_active, :, None] + forbidden
        back[t, :n_active] = through.argmax(axis=1)
        best = np.maximum(through.max(axis=1), _NEVER) + scores[begin[:n_active] + t]
    tag = np.where(codec.end_mask, final, _NEVER).argmax(axis=1)
    for t in range(steps - 1, -1, -1):
        active = int(np.searchsorted(-length, -t, side="left"))
        codes[begin[:active] + t] = tag[:active]
        if t:
            tag[:active] = back[t, np.arange(active), tag[:active]]
    return codes


@kernel
def n_best_paths(unary, start, step, end, paths, log_probs):
    """Write the n best paths of one item: every tag keeps its n best ways to it."""
    # unary float64 [length, J], log scores; start float64 [J], log; -inf where forbidden
    # step float64 [J, J], log; end float64 [J], log
    # paths int16 [n, length], written, the best first; log_probs float64 [n], ln P(path), written
    length, n_labels = unary.shape
    n = len(log_probs)
    if length == 0:
        log_probs[0] = 0.0
        return 1
    best = np.full((length, n_labels, n), -np.inf)
    back = np.zeros((length, n_labels, n), np.int64)
    forward, work, new = start + unary[0], np.empty(n_labels), np.empty(n_labels)
    for j in range(n_labels):
        best[0, j, 0] = forward[j]
    for t in range(1, length):
        for j in range(n_labels):
            for i in range(n_labels):
                work[i] = forward[i] + step[i, j]
                for r in range(n):
                    value = best[t - 1, i, r] + step[i, j] + unary[t, j]
                    if not value > best[t, j, n - 1]:
                        break
                    at = n - 1
                    while at > 0 and best[t, j, at - 1] < value:
                        best[t, j, at] = best[t, j, at - 1]
                        back[t, j, at] = back[t, j, at - 1]
                        at -= 1
                    best[t, j, at] = value
                    back[t, j, at] = i * n + r
            new[j] = log_sum(work) + unary[t, j]
        for j in range(n_labels):
            forward[j] = new[j]
    log_z = log_sum(forward + end)
    found = 0
    taken = np.zeros((n_labels, n), np.bool_)
    while found < n:
        most, label, rank = -np.inf, -1, 0
        for j in range(n_labels):
            for r in range(n):
                value = best[length - 1, j, r] + end[j]
                if not taken[j, r] and value > most:
                    most, label, rank = value, j, r
        if label < 0:
            break
        taken[label, rank] = True
        log_probs[found] = min(0.0, most - log_z)
        for t in range(length - 1, -1, -1):
            paths[found, t] = label
            if t:
                code = back[t, label, rank]
                label, rank = code // n, code % n
        found += 1
    return found


@kernel
def first_without_path(offsets, weight, allowed, start, step, end):
    """Return the first item that no possible path goes through, -1 if there is none."""
    # offsets int64 [n_items + 1]; weight [n_items]; items of weight 0 are passed over
    # allowed bool [n_tokens, J], tags that a token may have
    # start [J], [J, J], [J], 0 where forbidden; step [J], [J, J], [J], 0 where forbidden
    # end [J], [J, J], [J], 0 where forbidden
    n_labels = len(start)
    here, before = np.zeros(n_labels, np.bool_), np.zeros(n_labels, np.bool_)
    for n in range(len(weight)):
        first, length = offsets[n] - offsets[0], offsets[n + 1] - offsets[n]
        if weight[n] == 0 or length == 0:
            continue
        for t in range(length):
            for j in range(n_labels):
                reached = t == 0 and start[j] > 0
                for i in range(n_labels):
                    reached |= t > 0 and before[i] and step[i, j] > 0
                here[j] = reached and allowed[first + t, j]
            for j in range(n_labels):
                before[j] = here[j]
        ends = False
        for j in range(n_labels):
            ends |= before[j] and end[j] > 0
        if not ends:
            return n
    return -1
