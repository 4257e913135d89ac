"""Answers under a chain: their probability, and what they teach.

An answer that labels every token is one path. One that skips tokens stands for all paths that agree
with it; these are summed up by forward-backward with logarithms.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldspan._kernel import kernel
from goldspan.chains.posterior import forward_logarithms, pull

Floats = NDArray[np.float64]
Indexes = NDArray[np.int64]


@kernel
def log_masses(
    item: NDArray[np.int32], offset: Indexes, codes: NDArray[np.int16], tokens: Indexes,
    unary: Floats, start: Floats, step: Floats, end: Floats, masses: Floats,
) -> None:  # fmt: skip
    """Write ln of the summed exp scores of all paths that agree with every answer.

    Args:
        item: int32 [n_answers].
        offset: int64 [n_answers + 1], bounds of the answers in `codes`.
        codes: int16 [n_labels], -1 skipped.
        tokens: int64 [n_items + 1], first token of every item.
        unary: float64 [n_tokens, J], log scores.
        start: float64 [J], exp scores, 0 where forbidden.
        step: float64 [J, J], exp.
        end: float64 [J], exp.
        masses: float64 [n_answers], written; -inf where no path agrees, 0 for no token.
    """
    n_labels = len(start)
    longest = _longest(offset)
    evidence, forward = np.empty((longest, n_labels)), np.empty((longest, n_labels))
    work = np.empty(n_labels)
    log_start, log_step, log_end = np.log(start), np.log(step), np.log(end)
    for answer in range(len(item)):
        begin, length = offset[answer], offset[answer + 1] - offset[answer]
        first = tokens[item[answer]]
        if length == 0:
            masses[answer] = 0.0
        elif _is_full(codes, begin, length):
            total = log_start[codes[begin]] + unary[first, codes[begin]]
            for t in range(1, length):
                now = codes[begin + t]
                total += log_step[codes[begin + t - 1], now] + unary[first + t, now]
            masses[answer] = total + log_end[codes[begin + length - 1]]
        else:
            _clamp(codes, begin, length, first, unary, evidence)
            masses[answer] = forward_logarithms(length, evidence, start, step, end, forward, work)


@kernel
def add_answers(
    item: NDArray[np.int32], offset: Indexes, codes: NDArray[np.int16], tokens: Indexes,
    weight: Floats, unary: Floats, start: Floats, step: Floats, end: Floats, probs: Floats,
    steps: Floats,
) -> None:  # fmt: skip
    """Add the labels of answers times their weight, skipped ones as the chain fills them in.

    Args:
        item, offset, codes, tokens, unary, start, step, end: As for `log_masses`.
        weight: float64 [n_answers]; answers of weight 0, or that no path agrees with, add nothing.
        probs: float64 [n_tokens, J], added to.
        steps: float64 [J, J], added to: expected numbers of steps.
    """
    n_labels = len(start)
    longest = _longest(offset)
    evidence, forward = np.empty((longest, n_labels)), np.empty((longest, n_labels))
    work = np.empty(n_labels)
    for answer in range(len(item)):
        begin, length = offset[answer], offset[answer + 1] - offset[answer]
        first, w = tokens[item[answer]], weight[answer]
        if w == 0.0 or length == 0:
            continue
        if _is_full(codes, begin, length):
            for t in range(length):
                probs[first + t, codes[begin + t]] += w
                if t > 0:
                    steps[codes[begin + t - 1], codes[begin + t]] += w
            continue
        _clamp(codes, begin, length, first, unary, evidence)
        log_z = forward_logarithms(length, evidence, start, step, end, forward, work)
        if log_z > -np.inf:
            _add_filled(length, first, w, log_z, evidence, forward, step, end, probs, steps)


@kernel
def _add_filled(
    length: int, first: int, weight: float, log_z: float, evidence: Floats, forward: Floats,
    step: Floats, end: Floats, probs: Floats, steps: Floats,
) -> None:  # fmt: skip
    """Run backward, and add marginals and steps."""
    n_labels = len(end)
    backward, after, work = np.log(end), np.empty(n_labels), np.empty(n_labels)
    for t in range(length - 1, -1, -1):
        for j in range(n_labels):
            probs[first + t, j] += weight * np.exp(forward[t, j] + backward[j] - log_z)
            after[j] = evidence[t, j] + backward[j]
        if t == 0:
            break
        for i in range(n_labels):
            for j in range(n_labels):
                share = np.exp(forward[t - 1, i] + after[j] - log_z)
                steps[i, j] += weight * step[i, j] * share
        pull(after, step, backward, work)


@kernel
def _longest(offset: Indexes) -> int:
    longest = 0
    for answer in range(len(offset) - 1):
        longest = max(longest, offset[answer + 1] - offset[answer])
    return longest


@kernel
def _is_full(codes: NDArray[np.int16], begin: int, length: int) -> bool:
    lowest = codes[begin]
    for t in range(1, length):
        lowest = min(lowest, codes[begin + t])
    return bool(lowest >= 0)


@kernel
def _clamp(
    codes: NDArray[np.int16], begin: int, length: int, first: int, unary: Floats, evidence: Floats
) -> None:
    """Copy the scores of an item, -inf for what an answer excludes."""
    for t in range(length):
        code = codes[begin + t]
        for j in range(unary.shape[1]):
            evidence[t, j] = unary[first + t, j] if code < 0 or j == code else -np.inf
