"""Tokens that got the same labels from the same workers, found in one pass over the labels."""

from __future__ import annotations

import numpy as np

from goldspan._kernel import kernel


@kernel
def find_patterns(bounds, row, n_rows, pattern, example):
    """Number the distinct lists of rows.

    Args:
        bounds: int64 [n_tokens + 1], entries of `row`; the first may be any number.
        row: int32 [n_entries]; rows from `n_rows` on (words) do not count.
        n_rows: Number of workers' rows.
        pattern: int32 [n_tokens], written: the token's pattern.
        example: int32 [n_tokens], written: the first token of every pattern.

    Returns:
        The number of patterns.
    """
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


@kernel
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
def pattern_logs(bounds, row, log_table, out, shift):
    """Sum the logarithms of every pattern's rows, the largest made 0.

    Args:
        bounds: int64 [n_patterns + 1].
        row: int32 [n_entries].
        log_table: float64 [n_rows, J].
        out: float64 [n_patterns, J], written.
        shift: float64 [n_patterns], written: what was taken off.
    """
    n_labels = log_table.shape[1]
    for p in range(len(bounds) - 1):
        here = out[p]
        for j in range(n_labels):
            here[j] = 0.0
        for entry in range(bounds[p], bounds[p + 1]):
            values = log_table[row[entry]]
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
    """Add the counts of patterns to their rows.

    Args:
        bounds: int64 [n_patterns + 1].
        row: int32 [n_entries].
        own: float64 [n_patterns, J].
        counts: float64 [n_rows, J], added to.
    """
    n_labels = counts.shape[1]
    for p in range(len(bounds) - 1):
        for entry in range(bounds[p], bounds[p + 1]):
            target = counts[row[entry]]
            for j in range(n_labels):
                target[j] += own[p, j]
