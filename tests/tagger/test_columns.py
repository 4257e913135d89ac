"""Merging equal features: which are merged, and that nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

from goldspan.protocols import Serial
from goldspan.tagger import CRF
from goldspan.tagger.crf import Masks, Targets, go_on, train
from goldspan.tagger.features import Columns, Features, Merged
from goldspan.tagger.kernels import Weights
from tagger.corpora import random_items

J = 3


def random_features(rng, n_tokens, n_features, *, weighted):
    sizes = rng.integers(0, 4, n_tokens)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    ids = rng.integers(n_features, size=bounds[-1]).astype(np.int32)
    values = rng.integers(1, 3, bounds[-1]).astype(float) if weighted else np.zeros(0)
    return Features(np.array([0, n_tokens]), bounds, ids, values)


def dense(features, n_features):
    matrix = np.zeros((features.n_tokens, n_features))
    values = features.values if len(features.values) else np.ones(len(features.ids))
    token = np.repeat(np.arange(features.n_tokens), np.diff(features.bounds))
    np.add.at(matrix, (token, features.ids), values)
    return matrix


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_columns_are_those_of_the_matrix(seed, weighted):
    features = random_features(np.random.default_rng(seed), 9, 12, weighted=weighted)
    columns, matrix = Columns.of(features, 12), dense(features, 12)
    for f, (a, b) in enumerate(zip(columns.starts[:-1], columns.starts[1:], strict=True)):
        found = np.zeros(features.n_tokens)
        np.add.at(found, columns.tokens[a:b], columns.values[a:b] if weighted else 1.0)
        np.testing.assert_array_equal(found, matrix[:, f])
        assert (np.diff(columns.tokens[a:b]) >= 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_equal_columns_are_one_and_empty_ones_none(seed):
    features = random_features(np.random.default_rng(seed), 4, 40, weighted=False)
    merged, matrix = Merged.of(features, 40), dense(features, 40)
    for f in range(40):
        assert (merged.group[f] >= 0) == matrix[:, f].any()
        for g in range(f):
            same = matrix[:, f].any() and (matrix[:, f] == matrix[:, g]).all()
            assert same == (merged.group[f] == merged.group[g] >= 0)
    assert len(merged.root) < matrix.any(axis=0).sum()
    kept = dense(merged.features, len(merged.root))
    for f in np.flatnonzero(merged.group >= 0):
        np.testing.assert_array_equal(kept[:, merged.group[f]], matrix[:, f])
    first = merged.columns.tokens[merged.columns.starts[:-1]]
    assert (np.diff(first) >= 0).all()


def test_features_with_equal_tokens_and_other_values_are_not_merged():
    features = Features(np.array([0, 1]), np.array([0, 2]), np.array([0, 1], np.int32), np.ones(2))
    assert len(Merged.of(features, 2).root) == 1
    features.values[1] = 2.0
    assert len(Merged.of(features, 2).root) == 2


def test_scores_penalty_and_inner_products_are_kept():
    rng = np.random.default_rng(3)
    features = random_features(rng, 5, 30, weighted=True)
    merged, matrix = Merged.of(features, 30), dense(features, 30)
    size = len(Weights.zeros(len(merged.root), J).vector)
    one, other = rng.normal(size=(2, size))
    full, also = merged.split(one, J), merged.split(other, J)
    np.testing.assert_allclose(full.vector @ also.vector, one @ other, rtol=1e-12)
    np.testing.assert_allclose(merged.join(full), one, rtol=1e-12)
    own = Weights.of_vector(one, len(merged.root), J).state * merged.root[:, None]
    scores = dense(merged.features, len(merged.root)) @ own
    np.testing.assert_allclose(scores, matrix @ full.state, atol=1e-12)


def test_features_that_always_stand_together_have_the_same_weight():
    X, y = random_items(60)
    crf = CRF().fit([[{"w": word, "again": word} for word in words] for words in X], y)
    place = {crf.features_.name(n): n for n in range(crf.features_.n_features)}
    state = crf.weights_.state
    for name in (name for name in place if name.startswith("w:")):
        again = name.replace("w:", "again:")
        np.testing.assert_array_equal(state[place[name]], state[place[again]])


def test_a_start_is_evened_out_and_forgets_what_no_token_has():
    features = Features(
        np.array([0, 2]), np.array([0, 2, 4]), np.array([0, 1, 0, 1], np.int32), np.zeros(0)
    )
    targets = Targets.of_codes(features, 3, np.array([0, 1], np.int16), J)
    start = Weights.zeros(3, J)
    start.state[:] = [[3.0, 0, 0], [1.0, 0, 0], [5.0, 0, 0]]
    masks = Masks(np.ones(J), np.ones((J, J)), np.ones(J))
    weights, _ = train(features, targets, masks, c2=1.0, runner=Serial(), start=start, max_iter=0)
    np.testing.assert_allclose(weights.state[:, 0], [2.0, 2.0, 0.0], rtol=1e-12)


def test_a_search_goes_on_where_another_stopped_with_other_targets():
    rng = np.random.default_rng(1)
    features = random_features(rng, 30, 20, weighted=True)
    masks = Masks(np.ones(J), np.ones((J, J)), np.ones(J))
    merged, options = Merged.of(features, 20), {"c2": 0.1, "runner": Serial()}
    codes = rng.integers(J, size=(2, 30)).astype(np.int16)
    one, other = (Targets.of_codes(features, 20, own, J) for own in codes)
    first = go_on(merged, one.merged(merged), masks, None, **options, steps=7)
    weights, found = train(features, one, masks, **options, max_iter=7, tol=0.0)
    np.testing.assert_array_equal(merged.split(first.weights, J).vector, weights.vector)
    second = go_on(merged, other.merged(merged), masks, first, **options, steps=5)
    again, found = train(features, other, masks, **options, max_iter=5, tol=0.0, start=weights)
    np.testing.assert_allclose(merged.split(second.weights, J).vector, again.vector, rtol=1e-9)
    assert second.value - merged.join(other.counts) @ second.weights == pytest.approx(
        found.trace[-1], rel=1e-12
    )
