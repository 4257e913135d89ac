"""The objective and its gradient, and what training finds."""

from __future__ import annotations

import numba
import numpy as np
import pycrfsuite
import pytest

from goldspan.chains import forward_backward
from goldspan.chains.forward_backward import LANES, MAX_LENGTH
from goldspan.protocols import Serial
from goldspan.spans import Codec
from goldspan.tagger import CRF, Text
from goldspan.tagger import crf as module
from goldspan.tagger.base import potentials_of
from goldspan.tagger.crf import Masks, Targets, train
from goldspan.tagger.features import FeatureMap, Features, Merged, read_templates
from goldspan.tagger.kernels import Weights, expected_lanes, expected_step, products, unary_step
from tagger.corpora import example, random_items
from tagger.enumeration import distribution

BIO = Codec.from_types(["A", "B"], "BIO")
J = len(BIO.tags)
NONE = np.zeros((0, J))
"""What dense features add where there are none."""
forward_log, expect_log = (
    numba.njit(one.py_func, error_model="numpy")  # only kernels call those that are cached
    for one in (forward_backward.forward_log, forward_backward.expect_log)
)


def random_features(rng, lengths, n_features, *, weighted=False):
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    sizes = rng.integers(0, 4, offsets[-1])
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    ids = rng.integers(n_features, size=bounds[-1]).astype(np.int32)
    values = rng.normal(size=bounds[-1]) if weighted else np.zeros(0)
    return Features(offsets, bounds, ids, values)


def objective(features, targets, masks, vector, *, c2=0.3, bias=True):
    """Value and gradient in the places of the merged weights."""
    merged = Merged.of(features, len(targets.counts.state))
    return module.Objective(merged, targets.merged(merged), masks, c2, Serial(), bias)(vector)


def merged_weights(features, n_features, scale, rng):
    """Random weights, all features and merged."""
    merged = Merged.of(features, n_features)
    vector = rng.normal(0, scale, len(Weights.zeros(len(merged.root), J).vector))
    return merged, merged.split(vector, J), vector


@pytest.mark.parametrize("hard", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("scale", [0.5, 30.0, 300.0], ids=lambda s: f"scale{s}")
def test_log_z_and_expected_counts_are_those_of_the_enumeration(hard, weighted, scale):
    rng = np.random.default_rng(1)
    lengths, n_features = [1, 4, 0, 3], 6
    features = random_features(rng, lengths, n_features, weighted=weighted)
    weight = np.array([1.0, 2.5, 1.0, 0.0])
    merged, weights, vector = merged_weights(features, n_features, scale, rng)
    masks = Masks.of(BIO, hard=hard)
    targets = Targets(Weights.zeros(n_features, J), weight)
    value, gradient = objective(features, targets, masks, vector, c2=0.0)
    expected, total = Weights.zeros(n_features, J), 0.0
    p = potentials_of(features, weights, masks)
    for n, length in enumerate(lengths):
        if not length:
            continue
        a, b = features.offsets[n], features.offsets[n + 1]
        own = p._replace(unary=p.unary[a:b], offsets=np.array([0, length]))
        paths, probs, log_z = distribution(own)
        total += weight[n] * log_z
        for path, probability in zip(paths, probs, strict=True):
            share = weight[n] * probability
            expected.start[path[0]] += share
            expected.end[path[-1]] += share
            for t, j in enumerate(path):
                for e in range(features.bounds[a + t], features.bounds[a + t + 1]):
                    size = features.values[e] if weighted else 1.0
                    expected.state[features.ids[e], j] += share * size
                if t:
                    expected.step[path[t - 1], j] += share
    assert value == pytest.approx(total, rel=1e-12, abs=1e-9)
    np.testing.assert_allclose(gradient, merged.join(expected), atol=1e-9)


@pytest.mark.parametrize("hard", [True, False])
@pytest.mark.parametrize("scale", [0.1, 5.0, 40.0, 90.0], ids=lambda s: f"state{s}")
@pytest.mark.parametrize("step_scale", [0.1, 30.0, 200.0], ids=lambda s: f"step{s}")
def test_products_and_logarithms_give_the_same_on_a_long_item(hard, scale, step_scale):
    rng = np.random.default_rng(0)
    n = 300
    ids = rng.integers(7, size=n).astype(np.int32)
    features = Features(np.array([0, n]), np.arange(n + 1), ids, np.zeros(0))
    sizes = [(scale, (7, J)), (step_scale, J), (step_scale, (J, J)), (step_scale, J)]
    weights = Weights(*(rng.normal(0, sd, shape) for sd, shape in sizes))
    chain = Masks.of(BIO, hard=hard).exponentials(weights)
    entries = features.bounds, features.ids, features.values
    share, counts = np.zeros((n, J)), Weights.zeros(0, J)
    log_z = expected_step(
        features.offsets, *entries, NONE, np.ones(1), module.ALL, weights.state, *chain,
        share, counts.start, counts.step, counts.end,
    )  # fmt: skip
    score = np.empty((n, J))
    unary_step(*entries, NONE, weights.state, score)
    marginals, steps = np.empty((n, J)), np.zeros((J, J))
    same = forward_log(n, score, *chain, marginals)
    expect_log(n, score, *chain[1:], 1.0, same, marginals, steps)
    assert log_z == pytest.approx(same, rel=1e-11)
    np.testing.assert_allclose(share, marginals, atol=1e-6)
    np.testing.assert_allclose(counts.start, marginals[0], atol=1e-6)
    np.testing.assert_allclose(counts.step, steps, atol=1e-6)
    np.testing.assert_allclose(counts.end, marginals[-1], atol=1e-6)


@pytest.mark.parametrize("hard", [True, False])
def test_items_side_by_side_expect_what_they_expect_alone(hard):
    rng = np.random.default_rng(4)
    lengths = [*rng.integers(0, 12, 2 * LANES + 5), MAX_LENGTH + 1, MAX_LENGTH]
    features = random_features(rng, lengths, 30)
    weight = rng.normal(1, 2, len(lengths)) * (rng.random(len(lengths)) > 0.2)
    weights = Weights(*(rng.normal(0, 1, shape) for shape in ((30, J), J, (J, J), J)))
    weights.state[7] *= 400  # some tokens are too far apart for products
    chain = Masks.of(BIO, hard=hard).exponentials(weights)
    words = (features.offsets, features.bounds, features.ids, features.values, NONE)
    share, counts = np.zeros((features.n_tokens, J)), Weights.zeros(0, J)
    out = (counts.start, counts.step, counts.end)
    order = np.argsort(-np.diff(features.offsets), kind="stable")
    order = order[(weight != 0)[order] & (np.diff(features.offsets) > 0)[order]].astype(np.int32)
    left = np.zeros(len(lengths), np.bool_)
    log_z = expected_lanes(order, *words, weight, weights.state, *chain, share, *out, left)
    far = np.bincount(np.repeat(np.arange(len(lengths)), lengths), [
        7 in features.ids[a:b] for a, b in zip(features.bounds, features.bounds[1:], strict=False)
    ], len(lengths)) > 0  # fmt: skip
    assert left[-2] == bool(weight[-2])
    assert set(np.flatnonzero(left)) <= {len(lengths) - 2, *np.flatnonzero(far & (weight != 0))}
    assert 5 < np.count_nonzero(left) < len(order) - LANES
    alone = np.where(left, 0.0, weight)
    share_alone, counts_alone = np.zeros_like(share), Weights.zeros(0, J)
    same = expected_step(
        *words, alone, module.ALL, weights.state, *chain,
        share_alone, counts_alone.start, counts_alone.step, counts_alone.end,
    )  # fmt: skip
    assert log_z == pytest.approx(same, rel=1e-12)
    np.testing.assert_allclose(share, share_alone, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(counts.vector, counts_alone.vector, rtol=1e-9, atol=1e-12)


def test_items_alone_are_taken_where_the_chain_itself_is_too_far_apart():
    features = random_features(np.random.default_rng(5), [3, 2], 4)
    weights = Weights(np.zeros((4, J)), np.zeros(J), np.full((J, J), -100.0), np.zeros(J))
    chain = Masks.of(BIO, hard=False).exponentials(weights)
    words = (features.offsets, features.bounds, features.ids, features.values, NONE)
    counts, left = Weights.zeros(0, J), np.zeros(2, np.bool_)
    out = (np.zeros((5, J)), counts.start, counts.step, counts.end)
    order = np.array([0, 1], np.int32)
    assert expected_lanes(order, *words, np.ones(2), weights.state, *chain, *out, left) == 0
    assert left.all()
    assert not counts.vector.any()


@pytest.mark.parametrize("bias", [True, False])
def test_the_gradient_agrees_with_finite_differences(bias):
    rng = np.random.default_rng(2)
    features = random_features(rng, [3, 5, 2], 5, weighted=True)
    codes = np.array([1, 3, 0, 0, 2, 4, 4, 0, 0, 1], np.int16)
    targets = Targets.of_codes(features, 5, codes, J, np.array([1.0, 0.5, 2.0]))
    masks = Masks.of(BIO, hard=True)
    merged, _, vector = merged_weights(features, 5, 0.5, rng)
    _, gradient = objective(features, targets, masks, vector, bias=bias)
    ends = Weights.of_vector(np.arange(len(vector)), len(merged.root), J)
    for i in range(len(vector)):
        if not bias and (i in ends.start or i in ends.end):
            assert gradient[i] == 0
            continue
        moved = [vector + d * (np.arange(len(vector)) == i) for d in (1e-5, -1e-5)]
        up, down = (objective(features, targets, masks, v, bias=bias)[0] for v in moved)
        assert gradient[i] == pytest.approx((up - down) / 2e-5, abs=1e-5)


def crfsuite(X, y, c2, path):
    """The weights' loss and a tagger of python-crfsuite on the same features."""
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    for words, tags in zip(X, y, strict=True):
        trainer.append(words, tags)
    trainer.set_params(
        {
            "c1": 0.0, "c2": c2, "max_iterations": 2000, "epsilon": 1e-9, "delta": 1e-12,
            "period": 50, "feature.possible_states": True, "feature.possible_transitions": True,
        }
    )  # fmt: skip
    trainer.train(str(path))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    return trainer.logparser.last_iteration["loss"], tagger


@pytest.mark.parametrize("corpus", ["example", "random"])
def test_the_optimum_is_that_of_python_crfsuite(corpus, tmp_path):
    X, y = example()[:2] if corpus == "example" else random_items(300)
    dicts = [[{f"w={w}": True, f"s={w[-2:]}": True} for w in words] for words in X]
    names = [[sorted(token) for token in words] for words in dicts]
    loss, theirs = crfsuite(names, y, 0.4, tmp_path / "model")
    crf = CRF(c2=0.4, hard=False, bias=False, tol=1e-13, max_iter=2000).fit(dicts, y)
    assert crf.trace_[-1] == pytest.approx(loss, rel=1e-5)
    other = [theirs.tag(words) for words in names]
    differ = [n for n, tags in enumerate(crf.predict(dicts)) if tags != other[n]]
    for best, second in crf.predict_n_best([dicts[n] for n in differ], 2):  # rounding decides ties
        assert best[1] == pytest.approx(second[1], rel=1e-9)
    assert len(differ) <= 1
    theirs.set(names[0])
    tag = y[0][0]
    assert crf.predict_marginals(dicts[:1])[0][0][tag] == pytest.approx(
        theirs.marginal(tag, 0), abs=1e-4
    )


@pytest.fixture(scope="module")
def numbered():
    X, y = random_items(120)
    templates = read_templates(["word", "word[-1]"])
    features_of, features = FeatureMap.fit(Text.of(X), templates)
    return features, features_of.n_features, BIO.encode(y).codes


def optimum(numbered, targets, **options):
    settings = {"c2": 0.5, "runner": Serial(), "tol": 1e-13, "max_iter": 1000, **options}
    return train(numbered[0], targets, Masks.of(BIO, hard=False), **settings)


def test_soft_one_hot_targets_are_hard_targets(numbered):
    features, n_features, codes = numbered
    hard = Targets.of_codes(features, n_features, codes, J)
    steps = np.zeros((J, J))
    for a, b in zip(features.offsets[:-1], features.offsets[1:], strict=True):
        np.add.at(steps, (codes[a : b - 1], codes[a + 1 : b]), 1.0)
    soft = Targets.of_marginals(features, n_features, np.eye(J)[codes], steps, hard.weight)
    np.testing.assert_array_equal(soft.counts.vector, hard.counts.vector)


def test_two_workers_who_agree_are_one_of_weight_2(numbered):
    features, n_features, codes = numbered
    one = Targets.of_codes(features, n_features, codes, J)
    double = Targets.of_codes(features, n_features, codes, J, 2 * one.weight)
    two = one.add(one)
    np.testing.assert_array_equal(two.counts.vector, double.counts.vector)
    np.testing.assert_array_equal(two.weight, double.weight)
    assert one.weight.max() == 1
    assert optimum(numbered, two)[1].trace == optimum(numbered, double)[1].trace


def test_items_of_weight_0_count_for_nothing():
    X, y = random_items(40)
    options = {"templates": ["word"], "tol": 1e-13}
    both = CRF(**options).fit(X, y, weight=[1.0] * 20 + [0.0] * 20)
    half = CRF(**options).fit(X[:20], y[:20])
    assert both.trace_[-1] == pytest.approx(half.trace_[-1], rel=1e-9)


def test_soft_targets_give_the_distribution_that_they_ask_for():
    """With one feature and no penalty the marginals of the model become the targets."""
    features = Features(np.array([0, 1]), np.array([0, 1]), np.array([0], np.int32), np.zeros(0))
    share = np.array([[0.5, 0.2, 0.1, 0.15, 0.05]])
    targets = Targets.of_marginals(features, 1, share, np.zeros((J, J)), np.ones(1))
    masks = Masks.of(BIO, hard=False)
    weights, _ = train(features, targets, masks, c2=0.0, runner=Serial(), tol=1e-15)
    _, probs, _ = distribution(potentials_of(features, weights, masks))
    np.testing.assert_allclose(probs, share[0], atol=1e-6)


def test_the_objective_never_rises_and_the_gradient_vanishes(numbered):
    features, n_features, codes = numbered
    targets = Targets.of_codes(features, n_features, codes, J)
    weights, found = optimum(numbered, targets)
    assert all(b <= a for a, b in zip(found.trace[:-1], found.trace[1:], strict=True))
    vector = Merged.of(features, n_features).join(weights)
    _, gradient = objective(features, targets, Masks.of(BIO, hard=False), vector, c2=0.5)
    assert np.abs(gradient).max() < 1e-3
    assert found.stop_reason in {"tol", "line search"}


def test_hard_masks_never_train_what_the_encoding_forbids():
    X, y = random_items(60)
    y[0] = ["I-A"] * len(y[0])
    crf = CRF(templates=["word"]).fit(X, y)
    assert crf.n_repaired_ == 1
    assert np.isfinite(crf.trace_).all()
    assert CRF(templates=["word"], hard=False).fit(X, y).n_repaired_ == 0


def test_scaled_coordinates_make_a_narrow_valley_round():
    def bowl(x):
        return float(x**2 @ curvature) / 2, curvature * x

    curvature, start = np.geomspace(1e-3, 1e5, 40), np.ones(40)
    plain = module.minimise(bowl, start, tol=0.0, max_iter=30)
    scaled = module.minimise(bowl, start, scale=np.sqrt(curvature), tol=0.0, max_iter=2)
    assert scaled.trace[-1] < 1e-20
    np.testing.assert_allclose(scaled.x, 0.0, atol=1e-9)
    assert plain.trace[-1] > 1e-4


def test_where_tokens_stand_alone_the_scale_is_the_curvature_at_the_shares():
    # One feature per token, one token per item, no penalty: at the optimum the second derivative
    # along a weight is n p (1 - p) with the shares p of the targets.
    ids = np.repeat([0, 1], [4000, 1000]).astype(np.int32)
    features = Features(np.arange(5001), np.arange(5001), ids, np.zeros(0))
    probs = np.random.default_rng(2).dirichlet(np.ones(J), 5000)
    targets = Targets.of_marginals(features, 2, probs, np.zeros((J, J)), np.ones(5000))
    masks, merged = Masks.of(BIO, hard=False), Merged.of(features, 2)
    weights, _ = train(features, targets, masks, c2=1e-9, runner=Serial(), tol=0.0, bias=False)
    objective = module.Objective(merged, targets.merged(merged), masks, 1e-9, Serial(), bias=False)
    at, step = merged.join(weights), 1e-4
    for place in range(2 * J):
        moved = np.zeros(len(at))
        moved[place] = step
        (_, ahead), (_, back) = (
            (value, gradient.copy()) for value, gradient in map(objective, (at + moved, at - moved))
        )
        curvature = (ahead[place] - back[place]) / (2 * step)
        assert objective.scale[place] ** 4 == pytest.approx(curvature, rel=0.01)


def test_the_scale_of_signed_values_and_of_items_known_in_part_goes_by_the_shares_of_all_tags():
    ids, codes = np.repeat([0, 1], 20).astype(np.int32), np.tile([0, 1, 0, 2], 10).astype(np.int16)
    masks, allowed = Masks.of(BIO, hard=False), np.eye(J, dtype=bool)[codes]
    allowed[20:, 3:] = True
    for values, n_known, size in ((np.tile([2.0, -2.0], 20), 40, 80), (np.zeros(0), 20, 20)):
        features = Features(np.arange(41), np.arange(41), ids, values)
        merged, targets = Merged.of(features, 2), Targets.of_codes(features, 2, codes, J)
        if n_known == 20:
            targets = Targets.of_allowed(features, 2, allowed)
        tags = np.bincount(codes[:n_known], minlength=J) + 1.0
        shares = tags / tags.sum()
        found = module.Objective(merged, targets.merged(merged), masks, 0.0, Serial(), bias=True)
        own = Weights.of_vector(found.scale**4, 2, J).state[1]
        np.testing.assert_allclose(own, size * shares * (1 - shares), rtol=1e-12)


def test_six_steps_come_nearer_than_ten_without_a_scale(monkeypatch):
    X, y = random_items(2000)
    features_of, features = FeatureMap.fit(Text.of(X), read_templates(["word", "word[-1]"]))
    targets = Targets.of_codes(features, features_of.n_features, BIO.encode(y).codes, J)

    def reach(max_iter):
        masks, rest = Masks.of(BIO, hard=False), {"c2": 0.5, "runner": Serial(), "tol": 0.0}
        return train(features, targets, masks, max_iter=max_iter, **rest)[1].trace[-1]

    best, scaled, minimise = reach(300), reach(6), module.minimise
    monkeypatch.setattr(
        module, "minimise", lambda *args, **rest: minimise(*args, **{**rest, "scale": None})
    )
    assert best < scaled < reach(10)
    assert reach(300) == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_the_size_of_the_weights_of_items_and_of_the_penalty_is_no_matter(numbered, size):
    features, n_features, codes = numbered
    weight = np.full(len(features.offsets) - 1, size)
    targets = Targets.of_codes(features, n_features, codes, J, weight)
    masks, rest = Masks.of(BIO, hard=False), {"runner": Serial(), "tol": 0.0, "max_iter": 100}
    once = Targets.of_codes(features, n_features, codes, J)
    wanted, _ = train(features, once, masks, c2=0.5, **rest)
    found, _ = train(features, targets, masks, c2=0.5 * size, **rest)
    np.testing.assert_allclose(found.state, wanted.state, atol=1e-4)


def test_huge_values_in_items_of_weight_0_are_left_out():
    X = [[{"a": 1.0}], [{"a": 1.0}], [{"a": 2e154}]]
    crf = CRF(encoding="PLAIN").fit(X, [["X"], ["Y"], ["Y"]], weight=[1, 1, 0])
    assert np.isfinite(crf.trace_).all()


def test_ctrl_c_leaves_a_point_and_its_value(monkeypatch):
    calls = iter(range(3))

    def stopped(*args):
        if next(calls) == 2:
            raise KeyboardInterrupt
        return products(*args)

    def bowl(x):
        return float(x**2 @ np.arange(1, 6)), 2 * np.arange(1, 6) * x

    monkeypatch.setattr(module, "products", stopped)
    with pytest.raises(module.Interrupted) as stop:
        module.minimise(bowl, np.ones(5), tol=0.0)
    assert len(stop.value.found.trace) == 4
    assert bowl(stop.value.found.x)[0] == pytest.approx(stop.value.found.trace[-1], rel=1e-12)
