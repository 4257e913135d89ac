"""Numbering the rows of a crowd and sorting its labels by token, in time linear in the labels."""

from __future__ import annotations

import numpy as np

from goldspan._kernel import kernel


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
    met = np.zeros(n_pairs, np.int64)
    n_rows = 0
    for worker in range(len(bounds) - 1):
        n_met = 0
        for at in range(bounds[worker], bounds[worker + 1]):
            answer = order[at]
            previous = begin
            for i in range(offset[answer], offset[answer + 1]):
                code = codes[i]
                if code < 0:
                    previous = after
                    continue
                pair = previous * n_labels + code
                if seen[pair] != worker:
                    seen[pair] = worker
                    met[n_met] = pair
                    n_met += 1
                if has_memory:
                    previous = code
        if n_met * n_met > n_pairs:
            n_met = 0
            for pair in range(n_pairs):
                if seen[pair] == worker:
                    met[n_met] = pair
                    n_met += 1
        else:
            for a in range(1, n_met):
                pair, b = met[a], a
                while b > 0 and met[b - 1] > pair:
                    met[b] = met[b - 1]
                    b -= 1
                met[b] = pair
        for a in range(n_met):
            number[met[a]] = n_rows
            row_worker[n_rows] = worker
            row_previous[n_rows] = met[a] // n_labels
            row_label[n_rows] = met[a] % n_labels
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
    """Do both without memory, in the order of the answers; a token's rows end up sorted.

    Args:
        item, offset, codes, tokens: As for `count_rows`.
        worker: int32 [n_answers].
        number: int32 [n_workers * J], of every row, -1 where there is none.
        n_labels: J.
        bounds: int64 [n_tokens + 1], where every token's rows begin.
        row: int32 [n_labels_given], written.
    """
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
