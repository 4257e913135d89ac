"""Features seen from their own side: which tokens have one, and which features are the same."""

from __future__ import annotations

import numpy as np

from goldspan._kernel import kernel


@kernel
def fill_columns(bounds, ids, values, starts, tokens, column_values):
    """List the tokens of every feature.

    Args:
        bounds: int64 [n_tokens + 1], entries of `ids`; the first may be any number.
        ids: int32 [n_entries], features.
        values: float64 [n_entries], or empty if all are 1.
        starts: int64 [n_features + 1], where the tokens of a feature begin.
        tokens: int32 [n_entries], written, ascending within a feature.
        column_values: float64 [n_entries], written; may be empty.
    """
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
    """Write a number for every feature into marks, uint64 [n_features]: the same for equal ones.

    Args:
        starts, tokens: As `fill_columns` wrote them.
        token_marks: uint64 [n_tokens], random.
        marks: uint64 [n_features].
    """
    for feature in range(len(marks)):
        total = np.uint64(0)
        for entry in range(starts[feature], starts[feature + 1]):
            total += token_marks[tokens[entry]]
        marks[feature] = total


@kernel
def number_groups(order, marks, starts, tokens, values, group):
    """Number the groups of equal features; give how many there are.

    Args:
        order: int64 [n_features], features by their marks.
        marks: uint64 [n_features].
        starts, tokens, values: As `fill_columns` wrote them.
        group: int32 [n_features], written; -1 for features that no token has.
    """
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


@kernel
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
    """Write the gradient of -L(w) for some features; give its terms in w: c2 |w|^2 - target . w.

    Args:
        starts: int64 [n_features + 1], entries of `tokens`; the first may be any number.
        tokens: int32 [n_entries], tokens of the features.
        values: float64 [n_entries], or empty if all are 1.
        root: float64 [n_features], factor of all values of a feature.
        share: float64 [n_tokens, J], what is expected of a token.
        target: float64 [n_features, J].
        weights: float64 [n_features, J].
        c2: Penalty.
        gradient: float64 [n_features, J], written.
    """
    n_labels = share.shape[1]
    row, terms = np.empty(n_labels), np.zeros(n_labels)
    for feature in range(len(root)):
        for j in range(n_labels):
            row[j] = 0.0
        for entry in range(starts[feature] - starts[0], starts[feature + 1] - starts[0]):
            own = share[tokens[entry]]
            if len(values):
                value = values[entry]
                for j in range(n_labels):
                    row[j] += value * own[j]
            else:
                for j in range(n_labels):
                    row[j] += own[j]
        here, wanted, out = weights[feature], target[feature], gradient[feature]
        for j in range(n_labels):
            pull = c2 * here[j]
            out[j] = root[feature] * row[j] - wanted[j] + 2.0 * pull
            terms[j] += (pull - wanted[j]) * here[j]
    total = 0.0
    for j in range(n_labels):
        total += terms[j]
    return total
