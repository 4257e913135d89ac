"""The posterior of a chain after answers that are drawn: what one is expected to gain.

The chain has given probabilities at every token. Its steps are one table, scaled to the
probabilities on both sides (Deming & Stephan 1940): evidence scales the steps of a posterior, too,
so that this finds the posterior of a chain with these steps. An annotator's label depends on the
true one and on whether their own last label was inside a span.
"""

import numpy as np

from goldspan._kernel import inlined, inner, kernel
from goldspan.chains.forward_backward import largest

RARE, LEAST = 1e-4, 1e-6
"""Labels of no more than this probability are left out; least gain about others."""
ROUNDS, CLOSE = 50, 1e-6
"""How often a step is scaled at most, and how near its probabilities are to come."""


@kernel
def fill_gains(item, worker, offsets, inside, probs, steps, tables, drawn, found):
    """Write the gain of every pair; those of an item are neighbours and share its chain."""
    longest, n_labels, size = drawn.shape[1] // 2, len(steps), 0
    begins, answer = np.empty(longest + 1, np.int64), np.empty(longest, np.int64)
    own, forward = np.empty((longest, n_labels)), np.empty((longest, n_labels))
    chain, work = np.empty((longest, n_labels, n_labels)), np.empty((2, n_labels))
    for n in range(len(item)):
        if n == 0 or item[n] != item[n - 1]:
            here = probs[offsets[item[n]] : offsets[item[n] + 1]]
            size = _lay_out(here, steps, inside, begins, own, chain, work)
        found[n] = 0.0
        for path in drawn:
            _draw(size, begins, own, chain, tables[worker[n]], inside, path, answer, forward)
            gain = _gain(size, begins, own, chain, tables[worker[n]], inside, answer, forward, work)
            found[n] += gain / len(drawn)
        found[n] = max(found[n], LEAST) if size else 0.0


@inner
def _lay_out(probs, steps, inside, begins, own, chain, work):
    """Write the tokens that are not sure, each after its neighbour; return how many."""
    # begins [k] is -1 where token k follows k - 1, else whether what is before it is in a span
    size, last, sure_next = 0, -2, len(probs) > 0 and largest(probs[0]) >= 1 - RARE
    for t in range(len(probs)):
        is_sure, sure_next = sure_next, t + 1 == len(probs) or largest(probs[t + 1]) >= 1 - RARE
        if is_sure and sure_next:
            continue
        total = 0.0
        for j in range(len(steps)):
            own[size, j] = probs[t, j] if probs[t, j] > RARE else 0.0
            total += own[size, j]
        for j in range(len(steps)):
            own[size, j] /= total
        if last == t - 1:
            begins[size] = -1
            _scale(own[size - 1], own[size], steps, chain[size], work)
        else:
            begins[size] = inside[probs[t - 1].argmax()] if t else 0
        size, last = size + 1, t
    begins[size] = 0
    return size


@inner
def _scale(left, right, steps, step, work):
    """Write step[i, j], the chance of label j after i: the steps scaled to both probabilities."""
    n_labels, rows, columns = len(steps), work[0], work[1]
    columns[:] = 1.0
    for _ in range(ROUNDS):
        most = 0.0
        for i in range(n_labels):
            rows[i] = left[i] / _dot(steps[i], columns)
        for j in range(n_labels):
            total = _dot(rows, steps[:, j])
            most = max(most, abs(right[j] - columns[j] * total))
            columns[j] = right[j] / total
        if most < CLOSE:
            break
    for i in range(n_labels):
        total = _dot(steps[i], columns)
        for j in range(n_labels):
            step[i, j] = steps[i, j] * columns[j] / total


@inner
def _draw(size, begins, own, chain, table, inside, path, answer, forward):
    """Draw labels, and an answer to them; write it, and p(label of k | answer up to k)."""
    truth, was_inside = 0, 0
    for k in range(size):
        if begins[k] >= 0:
            was_inside = begins[k]
        truth = _pick(own[k] if begins[k] >= 0 else chain[k, truth], path[2 * k])
        label = answer[k] = _pick(table[was_inside, truth], path[2 * k + 1])
        total = 0.0
        for j in range(own.shape[1]):
            share = own[k, j]
            if share > 0.0 and begins[k] < 0:
                share = _dot(forward[k - 1], chain[k, :, j])
            forward[k, j] = share * table[was_inside, j, label]
            total += forward[k, j]
        scale = 1.0 / total
        for j in range(own.shape[1]):
            forward[k, j] *= scale
        was_inside = inside[label]


@inner
def _gain(size, begins, own, chain, table, inside, answer, forward, work):
    """Return the rise of the sum of p^2 by an answer: run backward."""
    n_labels, after, message, found = forward.shape[1], work[0], work[1], 0.0
    for k in range(size - 1, -1, -1):
        total, most = 0.0, 0.0
        for j in range(n_labels):
            if begins[k + 1] < 0:
                message[j] = after[j] * table[inside[answer[k]], j, answer[k + 1]]
        for i in range(n_labels):
            if begins[k + 1] >= 0:
                after[i] = 1.0
            else:
                after[i] = _dot(chain[k + 1, i], message) if forward[k, i] > 0.0 else 0.0
            most = max(most, after[i])
        scale = 1.0 / most
        for i in range(n_labels):
            after[i] *= scale
            message[i] = forward[k, i] * after[i]
            total += message[i]
        found += _dot(message, message) / total**2 - _dot(own[k], own[k])
    return found


@inlined
def _dot(left, right):
    """Return the sum of products."""
    total = 0.0
    for j in range(len(left)):
        total += left[j] * right[j]
    return total


@inner
def _pick(shares, at):
    """Return the label in whose part of [0, 1) a number lies."""
    total = 0.0
    for j in range(len(shares) - 1):
        total += shares[j]
        if at < total:
            return j
    return len(shares) - 1
