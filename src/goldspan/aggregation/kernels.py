"""The compiled loops over pairs of answers to the same item, for `families`."""

from __future__ import annotations

import numpy as np

from goldspan._kernel import kernel


@kernel
def list_pairs(order, bounds, items, worker, lengths, n_workers, block, pair, both, blocks):
    """List the pairs of answers to some items, the lower worker first."""
    # items int64 [n], which items; worker int64 [n_answers]; lengths int64 [n_items]
    # pair int64 [n_records]; both int64 [n_records, 2], written: the two answers
    # blocks int64 [n_records], written: blocks of the item
    at = 0
    for n in items:
        for i in range(bounds[n], bounds[n + 1]):
            for j in range(i + 1, bounds[n + 1]):
                a, b = order[i], order[j]
                if worker[a] > worker[b]:
                    a, b = b, a
                pair[at] = worker[a] * n_workers + worker[b]
                both[at, 0], both[at, 1] = a, b
                blocks[at] = (lengths[n] + block - 1) // block
                at += 1


@kernel
def count_agreements(number, both, offset, codes, counts, agreed):
    """Count labels in common."""
    # number int64 [n_records]; both int64 [n_records, 2], the two answers
    # codes int64 [n_labels], -1 missing; counts float64 [n_pairs, J, 2]
    # agreed float64 [n_pairs, 2]
    n_labels = counts.shape[1]
    for r in range(len(number)):
        p = number[r]
        if p < 0:
            continue
        a, b = offset[both[r, 0]], offset[both[r, 1]]
        for i in range(offset[both[r, 0] + 1] - a):
            x, y = codes[a + i], codes[b + i]
            if x < 0 or y < 0:
                continue
            agreed[p, 1] += 1.0
            if x == y:
                agreed[p, 0] += 1.0
            if x < n_labels:
                counts[p, x, 0] += 1.0
            if y < n_labels:
                counts[p, y, 1] += 1.0


@kernel
def scatter_of_blocks(
    number, both, offset, codes, block, shares, own, chance, scale, spread, same, agreement, sums
):
    """Sum the squared influence of every block of tokens on the agreement of its pair."""
    # shares float64 [n_pairs, J, 2]; own float64 [n_pairs, 2], sums of squared shares
    # chance float64 [n_pairs], sums of products of shares; scale float64 [n_pairs]
    # spread float64 [n_pairs, 2], 1 - own; same float64 [n_pairs], share of the same labels
    # agreement float64 [n_pairs]; sums float64 [n_pairs, 2]
    n_labels = shares.shape[1]
    for r in range(len(number)):
        p = number[r]
        if p < 0:
            continue
        a, b = offset[both[r, 0]], offset[both[r, 1]]
        length = offset[both[r, 0] + 1] - a
        part, seen = 0.0, 0
        for i in range(length):
            x, y = codes[a + i], codes[b + i]
            if x >= 0 and y >= 0:
                seen += 1
                px = shares[p, x, 0] if x < n_labels else 0.0
                qx = shares[p, x, 1] if x < n_labels else 0.0
                py = shares[p, y, 0] if y < n_labels else 0.0
                qy = shares[p, y, 1] if y < n_labels else 0.0
                hit = 1.0 if x == y else 0.0
                part += (hit - same[p] - (qx - chance[p]) - (py - chance[p])) / scale[p]
                part += agreement[p] * (px - own[p, 0]) / spread[p, 0]
                part += agreement[p] * (qy - own[p, 1]) / spread[p, 1]
            if i + 1 == length or (i + 1) % block == 0:
                if seen:
                    sums[p, 0] += part * part
                    sums[p, 1] += 1.0
                part, seen = 0.0, 0


@kernel
def weighted_quantiles(values, weight, bounds, quantile, out):
    """Compute the lower weighted quantile of every group that is not empty."""
    # values float64 [n_values]; weight float64 [n_values], above 0; bounds int64 [n_groups + 1]
    # out float64 [n_groups], written
    for g in range(len(bounds) - 1):
        begin, stop = bounds[g], bounds[g + 1]
        total = 0.0
        for i in range(begin, stop):
            total += weight[i]
        reached = 0.0
        for i in np.argsort(values[begin:stop]):
            reached += weight[begin + i]
            if reached >= total * quantile * (1 - 1e-9):
                out[g] = values[begin + i]
                break
