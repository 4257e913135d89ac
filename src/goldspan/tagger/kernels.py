"""The weights of a chain model, and the tagger's compiled loops over features and long vectors.

Inference on the chain itself is in `goldspan.chains`. J is the number of tags.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldspan._kernel import inlined, inner, kernel
from goldspan.chains.forward_backward import (
    LANES,
    add_lane_steps,
    add_steps,
    expect_log,
    expect_scaled,
    forward_log,
    forward_scaled,
    run_lanes,
    skip_long,
)

# --------------------------------------------------------------------------------------------------
# The weights of a chain model, as one vector for the optimiser and as tables for the kernels.


Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of features and of steps."""

    state: Floats  # [n_features, J]
    start: Floats  # [J], of the first tag
    step: Floats  # [J, J], rows previous
    end: Floats  # [J], of the last tag

    @classmethod
    def zeros(cls, n_features: int, n_labels: int) -> Weights:
        """Make weights of 0; all are views of one vector."""
        size = (n_features + n_labels + 2) * n_labels
        return cls.of_vector(np.zeros(size), n_features, n_labels)

    @classmethod
    def of_vector(cls, vector: Floats, n_features: int, n_labels: int) -> Weights:
        """See a vector as weights; nothing is copied."""
        first, last = n_features * n_labels, len(vector) - n_labels
        return cls(
            vector[:first].reshape(n_features, n_labels),
            vector[first : first + n_labels],
            vector[first + n_labels : last].reshape(n_labels, n_labels),
            vector[last:],
        )

    @property
    def vector(self) -> Floats:
        """All weights in one vector; a copy."""
        parts = (self.state, self.start, self.step, self.end)
        return np.concatenate([part.ravel() for part in parts])

    @property
    def n_labels(self) -> int:
        """Number of tags."""
        return len(self.start)


# --------------------------------------------------------------------------------------------------
# What a gradient of the CRF needs: ln Z and what is expected of all tokens.
#
#     L(w) = sum_n [E_q score - weight_n ln Z_n] - c2 |w|^2
#     dL/dw = target counts - expected counts - 2 c2 w
#
# (Lafferty et al. 2001.) Target counts are summed up once, before training, so that the cost of a
# gradient does not depend on how many annotators labelled an item. With `allowed` tags Z sums over
# the sequences that agree with what is known, and the counts are those expected given it.


SAFE_RATIO = 1e-60
"""Scores of a token further apart than this are handled with logarithms."""
SAFE_STEPS = 1e-30
"""So are all items when two possible steps are further apart than this.

Within both bounds no backward product overflows: a tag is at most three steps from any other in
every encoding, and what is three times as unlikely as that is above 1e-300.
"""


@kernel
def expected_lanes(
    order, offsets, bounds, ids, values, base, weight, state, start, step, end,
    share, start_counts, step_counts, end_counts, left,
):  # fmt: skip
    """Add what is expected of the tokens of some items, as `expected_step` does, 32 at a time."""
    # It is faster; items that need logarithms, or are very long, are left out
    # order int32 [n]; left bool [n_items], set where an item was left out
    n_labels = len(start)
    begin = skip_long(order, offsets, left)
    if not _even(start, step, end):
        for place in range(begin, len(order)):
            left[order[place]] = True
        begin = len(order)
    if begin == len(order):
        return 0.0
    longest = offsets[order[begin] + 1] - offsets[order[begin]]
    evidence = np.empty((longest, n_labels, LANES))
    forward = np.empty((longest, n_labels, LANES))
    score = np.empty((longest, n_labels))
    lane_steps = np.empty((n_labels, n_labels, LANES))
    log_item, lane_weight = np.empty(LANES), np.empty(LANES)
    lengths, firsts = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    outer = np.empty((n_labels, n_labels))
    for i in range(n_labels):
        for j in range(n_labels):
            outer[i, j] = 0.0
            for w in range(LANES):
                lane_steps[i, j, w] = 0.0
    total_log_z = 0.0
    for base_item in range(begin, len(order), LANES):
        n_lanes = min(LANES, len(order) - base_item)
        for w in range(LANES):
            lengths[w], log_item[w], lane_weight[w] = 0, 0.0, 0.0
        for w in range(n_lanes):
            item = order[base_item + w]
            length = offsets[item + 1] - offsets[item]
            firsts[w], lane_weight[w] = offsets[item] - offsets[0], weight[item]
            scores(firsts[w], length, bounds, ids, values, base, state, score)
            log_scale, safe = _exponentiate(length, score)
            if safe:
                lengths[w], log_item[w] = length, log_scale
                for t in range(length):
                    for j in range(n_labels):
                        evidence[t, j, w] = score[t, j]
        run_lanes(lengths, evidence, start, step, end, forward, log_item, lane_steps)
        add_lane_steps(lane_weight, lane_steps, outer)
        for w in range(n_lanes):
            if lengths[w] == 0:
                left[order[base_item + w]] = True
                continue
            own, last = lane_weight[w], lengths[w] - 1
            total_log_z += own * log_item[w]
            for j in range(n_labels):
                start_counts[j] += own * forward[0, j, w]
                end_counts[j] += own * forward[last, j, w]
        for t in range(max(lengths)):
            for w in range(n_lanes):
                if t < lengths[w]:
                    for j in range(n_labels):
                        share[firsts[w] + t, j] += forward[t, j, w] * lane_weight[w]
    add_steps(outer, step, step_counts)
    return total_log_z


@kernel
def expected_step(
    offsets, bounds, ids, values, base, weight, allowed, state, start, step, end,
    share, start_counts, step_counts, end_counts,
):  # fmt: skip
    """Add what is expected of the tokens of some items; return the weighted sum of ln Z."""
    # offsets int64 [n_items + 1]; bounds int64 [n_tokens + 1]; ids int32 [n_entries], features
    # values float64 [n_entries], or empty if all are 1; base float64 [n_tokens, J]
    # weight float64 [n_items]; allowed bool [n_tokens, J]; state float64 [n_features, J]
    # start float64 [J]; step float64 [J, J], exp; end float64 [J], exp; share float64 [n_tokens, J]
    # start_counts float64 [J], added to; step_counts float64 [J, J], added to
    # end_counts float64 [J], added to
    n_labels = len(start)
    longest = 0
    for n in range(len(weight)):
        longest = max(longest, offsets[n + 1] - offsets[n])
    score, forward = np.empty((longest, n_labels)), np.empty((longest, n_labels))
    outer = np.zeros((n_labels, n_labels))
    total_log_z = 0.0
    safe_chain = _even(start, step, end)
    for n in range(len(weight)):
        length = offsets[n + 1] - offsets[n]
        if weight[n] == 0.0 or length == 0:
            continue
        first = offsets[n] - offsets[0]
        scores(first, length, bounds, ids, values, base, state, score)
        log_z, safe = 0.0, False
        if safe_chain:
            log_z, safe = _exponentiate(length, score)
        if safe:
            if len(allowed):
                _forbid(first, length, allowed, score, 0.0)
            log_z += forward_scaled(length, score, start, step, end, forward)
            safe = np.isfinite(log_z) and (len(allowed) == 0 or _far_from_0(length, forward))
        if safe:
            expect_scaled(length, score, step, end, weight[n], forward, outer)
        else:
            if safe_chain:
                scores(first, length, bounds, ids, values, base, state, score)
            if len(allowed):
                _forbid(first, length, allowed, score, -np.inf)
            log_z = forward_log(length, score, start, step, end, forward)
            if log_z > -np.inf:
                expect_log(length, score, step, end, weight[n], log_z, forward, step_counts)
        total_log_z += weight[n] * log_z
        if log_z == -np.inf:
            continue
        for t in range(length):
            for j in range(n_labels):
                share[first + t, j] += forward[t, j]
        for j in range(n_labels):
            start_counts[j] += forward[0, j]
            end_counts[j] += forward[length - 1, j]
    add_steps(outer, step, step_counts)
    return total_log_z


@inner
def _even(start, step, end):
    """Return whether the chain's possible entries lie within SAFE_STEPS of each other."""
    n_labels = len(start)
    most, least = 0.0, np.inf
    for i in range(n_labels):
        for value in (start[i], end[i]):
            if value > 0.0:
                most, least = max(most, value), min(least, value)
        for j in range(n_labels):
            if step[i, j] > 0.0:
                most, least = max(most, step[i, j]), min(least, step[i, j])
    return least >= most * SAFE_STEPS


@inner
def scores(first, length, bounds, ids, values, base, state, score):
    """Sum the weights of every token's features into score[:length]."""
    for t in range(length):
        begin, stop = bounds[first + t] - bounds[0], bounds[first + t + 1] - bounds[0]
        sum_rows(ids, begin, stop, values, state, score[t])
        if len(base):
            for j in range(state.shape[1]):
                score[t, j] += base[first + t, j]


@inlined
def sum_rows(rows, begin, stop, values, table, out):
    """Sum some rows of a table, each times its value, into out [J]."""
    # rows int32 [n_entries]; values float64 [n_entries], or empty if all are 1
    # table float64 [n_rows, J]; out float64 [J], written
    for j in range(len(out)):
        out[j] = 0.0
    if len(values):
        for entry in range(begin, stop):
            own, value = table[rows[entry]], values[entry]
            for j in range(len(out)):
                out[j] += value * own[j]
    else:
        for entry in range(begin, stop - 3, 4):  # four rows at once: `out` is stored less
            a, b = table[rows[entry]], table[rows[entry + 1]]
            c, d = table[rows[entry + 2]], table[rows[entry + 3]]
            for j in range(len(out)):
                out[j] += (a[j] + b[j]) + (c[j] + d[j])
        for entry in range(stop - (stop - begin) % 4, stop):
            own = table[rows[entry]]
            for j in range(len(out)):
                out[j] += own[j]


@inner
def _forbid(first, length, allowed, score, value):
    """Set the scores of tags that are not allowed."""
    for t in range(length):
        for j in range(score.shape[1]):
            if not allowed[first + t, j]:
                score[t, j] = value


@inner
def _far_from_0(length, forward):
    """Return whether what is possible is far from 0, so that no backward product overflows."""
    for t in range(length):
        for j in range(forward.shape[1]):
            if 0.0 < forward[t, j] < 1e-150:
                return False
    return True


@kernel
def scatter(token, share, bounds, ids, values, counts):
    """Add a token's shares to the counts of its features."""
    n_labels = len(share)
    weighted = len(values) > 0
    for entry in range(bounds[token] - bounds[0], bounds[token + 1] - bounds[0]):
        target = counts[ids[entry]]
        if weighted:
            value = values[entry]
            for j in range(n_labels):
                target[j] += value * share[j]
        else:
            for j in range(n_labels):
                target[j] += share[j]


@inner
def _exponentiate(length, score):
    """Exponentiate scores, the largest of a token 1; return what was taken out, and if safe."""
    n_labels = score.shape[1]
    log_scale = 0.0
    for t in range(length):
        most, least = score[t, 0], score[t, 0]
        for j in range(1, n_labels):
            most = max(most, score[t, j])
            least = min(least, score[t, j])
        if not most - least < -np.log(SAFE_RATIO):
            return 0.0, False
        log_scale += most
        for j in range(n_labels):
            score[t, j] = np.exp(score[t, j] - most)
    return log_scale, True


@kernel
def unary_step(bounds, ids, values, base, state, unary):
    """Write the scores of all tokens into unary [n_tokens, J]."""
    scores(0, len(bounds) - 1, bounds, ids, values, base, state, unary)


@kernel
def target_step(bounds, ids, values, probs, counts):
    """Add target shares [n_tokens, J] to the counts of the features."""
    for token in range(len(bounds) - 1):
        scatter(token, probs[token], bounds, ids, values, counts)


@kernel
def dense_step(vectors, rows, weights, base):
    """Add the scores of dense features to base [n_tokens, J]."""
    # vectors float32 [n_rows, D]; rows int64 [n_tokens], the row of a token; weights float64 [D, J]
    # base float64 [n_tokens, J], added to
    n_labels = weights.shape[1]
    for token in range(len(rows)):
        own, here = vectors[rows[token]], base[token]
        for d in range(len(weights)):
            value, weight = own[d], weights[d]
            for j in range(n_labels):
                here[j] += value * weight[j]


@kernel
def dense_counts(vectors, rows, share, counts):
    """Add shares [n_tokens, J] times the tokens' vectors to the counts of dense features [D, J]."""
    n_labels = share.shape[1]
    for token in range(len(rows)):
        own, here = vectors[rows[token]], share[token]
        for d in range(len(counts)):
            value, target = own[d], counts[d]
            for j in range(n_labels):
                target[j] += value * here[j]


# --------------------------------------------------------------------------------------------------
# Features seen from their own side: which tokens have one, and which features are the same.


@kernel
def fill_columns(bounds, ids, values, starts, tokens, column_values):
    """List the tokens of every feature."""
    # bounds int64 [n_tokens + 1]; ids int32 [n_entries], features
    # values float64 [n_entries], or empty if all are 1; starts int64 [n_features + 1]
    # tokens int32 [n_entries]; column_values float64 [n_entries], written; may be empty
    place = starts.copy()
    for token in range(len(bounds) - 1):
        for entry in range(bounds[token] - bounds[0], bounds[token + 1] - bounds[0]):
            at = place[ids[entry]]
            tokens[at] = token
            if len(values):
                column_values[at] = values[entry]
            place[ids[entry]] += 1


@kernel
def mark_columns(starts, tokens, token_marks, marks):
    """Write a number for every feature into marks, uint64 [n_features]: the same for equal ones."""
    # token_marks uint64 [n_tokens], random; marks uint64 [n_features]
    for feature in range(len(marks)):
        total = np.uint64(0)
        for entry in range(starts[feature], starts[feature + 1]):
            total += token_marks[tokens[entry]]
        marks[feature] = total


@kernel
def number_groups(order, marks, starts, tokens, values, group):
    """Number the groups of equal features; return how many there are."""
    # order int64 [n_features], features by their marks; marks uint64 [n_features]
    # group int32 [n_features]
    head, n_groups = -1, 0
    for i in range(len(order)):
        feature = order[i]
        if starts[feature] == starts[feature + 1]:
            group[feature] = -1
            continue
        if (
            head < 0
            or marks[feature] != marks[head]
            or not _equal(starts, tokens, values, feature, head)
        ):
            head = feature
            n_groups += 1
        group[feature] = n_groups - 1
    return n_groups


@inner
def _equal(starts, tokens, values, left, right):
    """Return whether two features have the same tokens with the same values."""
    size = starts[left + 1] - starts[left]
    if size != starts[right + 1] - starts[right]:
        return False
    for k in range(size):
        a, b = starts[left] + k, starts[right] + k
        if tokens[a] != tokens[b] or (len(values) and values[a] != values[b]):
            return False
    return True


@kernel
def gradient_step(starts, tokens, values, root, share, target, weights, c2, gradient):
    """Write the gradient of -L(w) for some features; return its terms c2 |w|^2 - target . w."""
    # starts int64 [n_features + 1]; tokens int32 [n_entries], tokens of the features
    # values float64 [n_entries], or empty if all are 1; root float64 [n_features]
    # share float64 [n_tokens, J]; target float64 [n_features, J]; weights float64 [n_features, J]
    # gradient float64 [n_features, J], written
    n_labels = share.shape[1]
    row, terms = np.empty(n_labels), np.zeros(n_labels)
    for feature in range(len(root)):
        begin, stop = starts[feature] - starts[0], starts[feature + 1] - starts[0]
        sum_rows(tokens, begin, stop, values, share, row)
        for j in range(n_labels):
            weight, wanted = weights[feature, j], target[feature, j]
            pull = c2 * weight
            gradient[feature, j] = root[feature] * row[j] - wanted + 2.0 * pull
            terms[j] += (pull - wanted) * weight
    total = 0.0
    for j in range(n_labels):
        total += terms[j]
    return total


# --------------------------------------------------------------------------------------------------
# Long vectors: every one is read as few times as possible, and sums always have the same order
# (BLAS's depends on its number of threads).

CHUNK = 256
"""Numbers of several vectors that stay near the processor together."""


@kernel
def dot(left, right):
    """Return the inner product of two vectors, float64 [n]."""
    total = 0.0
    for at in range(len(left)):
        total += left[at] * right[at]
    return total


@kernel
def add_multiple(values, factor, others, out):
    """Write values + factor * others, float64 [n], into out."""
    for at in range(len(out)):
        out[at] = values[at] + others[at] * factor


@kernel
def take_step(x, scale, table, gradient, step, change, direction, length, new):
    """Go from x into a direction, and note it in rows of a table; return step . change."""
    # x float64 [n]; length * direction is added; scale float64 [n]; table float64 [n_rows, n]
    # direction float64 [n]; new float64 [n], the gradient there
    total = 0.0
    for at in range(len(x)):
        x[at] += direction[at] * length
        table[step, at] = direction[at] * length * scale[at]
        table[change, at] = new[at] / scale[at] - table[gradient, at]
        table[gradient, at] = new[at] / scale[at]
        total += table[step, at] * table[change, at]
    return total


@kernel
def products(table, rows, three, out):
    """Write the inner products of some rows of a table with three of them into out [n_rows, 3]."""
    sums = np.zeros((len(rows), 3, CHUNK))
    for first in range(0, table.shape[1], CHUNK):
        stop = first + CHUNK
        for k in range(len(rows)):
            for m in range(3):
                left, right = table[rows[k]][first:stop], table[three[m]][first:stop]
                here = sums[k, m]
                for at in range(len(left)):
                    here[at] += left[at] * right[at]
    for k in range(len(rows)):
        for m in range(3):
            out[k, m] = 0.0
            for at in range(CHUNK):
                out[k, m] += sums[k, m, at]


@kernel
def combine(table, rows, weights, scale, out):
    """Write the weighted sum of some rows of a table; return its product with the last row."""
    # table float64 [n_rows, n]; rows int64 [n_kept], which; weights float64 [n_kept]
    # scale float64 [n]; out float64 [n], written
    total = 0.0
    for first in range(0, len(out), CHUNK):
        stop = first + CHUNK
        here = out[first:stop]
        for at in range(len(here)):
            here[at] = 0.0
        for k in range(len(rows)):
            own, weight = table[rows[k]][first:stop], weights[k]
            for at in range(len(own)):
                here[at] += own[at] * weight
        for at in range(len(own)):
            total += here[at] * own[at]
        own = scale[first:stop]
        for at in range(len(own)):
            here[at] /= own[at]
    return total
