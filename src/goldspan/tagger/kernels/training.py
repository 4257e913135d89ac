"""What a gradient of the CRF needs: ln Z and what is expected of all tokens.

    L(w) = sum_n [E_q score - weight_n ln Z_n] - c2 |w|^2,   dL/dw = target counts - expected counts

Target counts are summed up once, before training; so the cost of a gradient does not depend on how
many workers labelled an item (MATH section 5). With `allowed` tags Z sums over the sequences that
agree with what is known, and the counts are those expected given it.
"""

from __future__ import annotations

import numpy as np

from goldspan._kernel import kernel
from goldspan.chains.posterior import forward_logarithms, pull

SAFE_RATIO = 1e-60
"""Scores of a token further apart than this are handled with logarithms."""
SAFE_STEPS = 1e-30
"""So are all items when two possible steps are further apart than this.

Within both bounds no backward product overflows: a tag is at most three steps from any other in
every encoding, and what is three times as unlikely as that is above 1e-300.
"""


@kernel
def expected_step(
    offsets, bounds, ids, values, weight, allowed, state, start, step, end,
    share, start_counts, step_counts, end_counts,
):  # fmt: skip
    """Add what is expected of the tokens of some items; give the weighted sum of ln Z.

    Args:
        offsets: int64 [n_items + 1], tokens; the first may be any number.
        bounds: int64 [n_tokens + 1], entries of `ids`; the first may be any number.
        ids: int32 [n_entries], features.
        values: float64 [n_entries], or empty if all are 1.
        weight: float64 [n_items]; may be negative, 0 leaves an item out.
        allowed: bool [n_tokens, J], tags that a token may have; or empty.
        state: float64 [n_features, J].
        start: float64 [J], exp of the weights, 0 where forbidden.
        step: float64 [J, J], exp.
        end: float64 [J], exp.
        share: float64 [n_tokens, J], marginals times the item's weight, added to.
        start_counts: float64 [J], added to.
        step_counts: float64 [J, J], added to.
        end_counts: float64 [J], added to.
    """
    n_labels = len(start)
    longest = 0
    for n in range(len(weight)):
        longest = max(longest, offsets[n + 1] - offsets[n])
    score, forward = np.empty((longest, n_labels)), np.empty((longest, n_labels))
    backward, here = np.empty(n_labels), np.empty(n_labels)
    outer = np.zeros((n_labels, n_labels))
    total_log_z = 0.0
    safe_chain = _even(start, step, end)
    for n in range(len(weight)):
        length = offsets[n + 1] - offsets[n]
        if weight[n] == 0.0 or length == 0:
            continue
        first = offsets[n] - offsets[0]
        scores(first, length, bounds, ids, values, state, score)
        log_z, safe = 0.0, False
        if safe_chain:
            log_z, safe = _exponentiate(length, score)
        if safe:
            if len(allowed):
                _forbid(first, length, allowed, score, 0.0)
            more = _forward(length, score, start, step, end, forward)
            log_z += more
            safe = np.isfinite(more) and (len(allowed) == 0 or _far_from_0(length, forward))
        if not safe:
            if safe_chain:
                scores(first, length, bounds, ids, values, state, score)
            if len(allowed):
                _forbid(first, length, allowed, score, -np.inf)
            total_log_z += weight[n] * _in_logarithms(
                first, length, weight[n], score, forward, start, step, end,
                share, start_counts, step_counts, end_counts,
            )  # fmt: skip
            continue
        total_log_z += weight[n] * log_z
        last = 0.0
        for j in range(n_labels):
            last += forward[length - 1, j] * end[j]
        for j in range(n_labels):
            backward[j] = end[j] / last
        for t in range(length - 1, -1, -1):
            total = 0.0
            for j in range(n_labels):
                here[j] = forward[t, j] * backward[j]
                total += here[j]
            out = share[first + t]
            for j in range(n_labels):
                here[j] *= weight[n] / total
                out[j] += here[j]
            if t == length - 1:
                for j in range(n_labels):
                    end_counts[j] += here[j]
            if t == 0:
                for j in range(n_labels):
                    start_counts[j] += here[j]
                break
            for j in range(n_labels):
                backward[j] *= score[t, j]
            for i in range(n_labels):
                total = 0.0
                before = forward[t - 1, i] * weight[n]
                for j in range(n_labels):
                    total += step[i, j] * backward[j]
                    outer[i, j] += before * backward[j]
                here[i] = total
            for i in range(n_labels):
                backward[i] = here[i]
    for i in range(n_labels):
        for j in range(n_labels):
            if step[i, j] > 0.0:
                step_counts[i, j] += outer[i, j] * step[i, j]
    return total_log_z


@kernel
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


@kernel
def scores(first, length, bounds, ids, values, state, score):
    """Sum the weights of every token's features into score[:length]."""
    n_labels = state.shape[1]
    weighted = len(values) > 0
    for t in range(length):
        here = score[t]
        for j in range(n_labels):
            here[j] = 0.0
        for entry in range(bounds[first + t] - bounds[0], bounds[first + t + 1] - bounds[0]):
            own = state[ids[entry]]
            if weighted:
                value = values[entry]
                for j in range(n_labels):
                    here[j] += value * own[j]
            else:
                for j in range(n_labels):
                    here[j] += own[j]


@kernel
def _forbid(first, length, allowed, score, value):
    """Set the scores of tags that are not allowed."""
    for t in range(length):
        for j in range(score.shape[1]):
            if not allowed[first + t, j]:
                score[t, j] = value


@kernel
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


@kernel
def _exponentiate(length, score):
    """Exponentiate scores, the largest of a token 1; give the logarithms taken out."""
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
def _forward(length, score, start, step, end, forward):
    """Run forward scaled; afterwards score[t] is divided by the token's normaliser."""
    n_labels = len(start)
    log_z, product = 0.0, 1.0
    for t in range(length):
        here = forward[t]
        if t == 0:
            for j in range(n_labels):
                here[j] = start[j]
        else:
            for j in range(n_labels):
                here[j] = 0.0
            for i in range(n_labels):
                weight = forward[t - 1, i]
                for j in range(n_labels):
                    here[j] += weight * step[i, j]
        total = 0.0
        for j in range(n_labels):
            here[j] *= score[t, j]
            total += here[j]
        if not 1e-250 < total < 1e250:
            return -np.inf
        scale = 1.0 / total
        for j in range(n_labels):
            here[j] *= scale
            score[t, j] *= scale
        product *= total
        if not 1e-30 < product < 1e30:
            log_z += np.log(product)
            product = 1.0
    last = 0.0
    for j in range(n_labels):
        last += forward[length - 1, j] * end[j]
    if not 1e-250 < last < 1e250:
        return -np.inf
    return log_z + np.log(product) + np.log(last)


@kernel
def _in_logarithms(
    first, length, weight, score, forward, start, step, end,
    share, start_counts, step_counts, end_counts,
):  # fmt: skip
    """Do an item with logarithms throughout; slower, and right for any scores."""
    n_labels = len(start)
    backward, here, work = np.empty(n_labels), np.empty(n_labels), np.empty(n_labels)
    log_z = forward_logarithms(length, score, start, step, end, forward, work)
    if log_z == -np.inf:
        return log_z
    for j in range(n_labels):
        backward[j] = np.log(end[j])
    for t in range(length - 1, -1, -1):
        for j in range(n_labels):
            here[j] = weight * np.exp(forward[t, j] + backward[j] - log_z)
            share[first + t, j] += here[j]
            if t == length - 1:
                end_counts[j] += here[j]
        if t == 0:
            for j in range(n_labels):
                start_counts[j] += here[j]
            break
        for j in range(n_labels):
            here[j] = score[t, j] + backward[j]
        for i in range(n_labels):
            for j in range(n_labels):
                if step[i, j] > 0.0:
                    step_counts[i, j] += (
                        weight * step[i, j] * np.exp(forward[t - 1, i] + here[j] - log_z)
                    )
        pull(here, step, backward, work)
    return log_z


@kernel
def unary_step(bounds, ids, values, state, unary):
    """Write the scores of all tokens into unary [n_tokens, J]."""
    scores(0, len(bounds) - 1, bounds, ids, values, state, unary)


@kernel
def target_step(bounds, ids, values, probs, counts):
    """Add target shares [n_tokens, J] to the counts of the features."""
    for token in range(len(bounds) - 1):
        scatter(token, probs[token], bounds, ids, values, counts)


@kernel
def first_without_path(offsets, weight, allowed, start, step, end):
    """Return the first item whose known tags no possible sequence has, -1 if there is none.

    Args:
        offsets: int64 [n_items + 1], tokens; the first may be any number.
        weight: float64 [n_items]; items of weight 0 are passed over.
        allowed: bool [n_tokens, J], tags that a token may have.
        start, step, end: float64 [J], [J, J], [J], 0 where forbidden.
    """
    n_labels = len(start)
    here, before = np.zeros(n_labels, np.bool_), np.zeros(n_labels, np.bool_)
    for n in range(len(weight)):
        first, length = offsets[n] - offsets[0], offsets[n + 1] - offsets[n]
        if weight[n] == 0.0 or length == 0:
            continue
        for t in range(length):
            for j in range(n_labels):
                reached = t == 0 and start[j] > 0.0
                for i in range(n_labels):
                    reached |= t > 0 and before[i] and step[i, j] > 0.0
                here[j] = reached and allowed[first + t, j]
            for j in range(n_labels):
                before[j] = here[j]
        ends = False
        for j in range(n_labels):
            ends |= before[j] and end[j] > 0.0
        if not ends:
            return n
    return -1
