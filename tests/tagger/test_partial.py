"""Tags known in part: the objective against all paths, what it teaches, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from goldspan.errors import FaultsError, InputError
from goldspan.protocols import Serial
from goldspan.spans import Codec
from goldspan.tagger import CRF, HMM, Text
from goldspan.tagger.base import potentials_of
from goldspan.tagger.crf import Masks, Objective, Targets
from goldspan.tagger.features import Features, Merged
from goldspan.tagger.kernels import Weights
from goldspan.tagger.targets import allowed_tags
from tagger.corpora import random_items
from tagger.enumeration import distribution

BIO = Codec.from_types(["A", "B"], "BIO")
J = len(BIO.tags)
X, Y = random_items(60)
KNOWN = [
    ["O", "B-A", "I-A", "O"],
    [None, None, None],
    [None, "B-B", {"I-B", "O"}],
    ["O"],
    [("B-A", "B-B"), None, None, "O"],
]
"""Whole, nothing, part, whole, part; `None` and the sets leave several paths."""
WEIGHT = np.array([1.0, 1.0, 2.5, 0.5, 1.0])
LENGTHS = [len(item) for item in KNOWN]


def hidden(share, seed=0):
    """The tags with some of them hidden."""
    rng = np.random.default_rng(seed)
    return [[None if rng.random() < share else tag for tag in tags] for tags in Y]


def random_features(rng, n_features=6):
    offsets = np.concatenate([[0], np.cumsum(LENGTHS)])
    sizes = rng.integers(0, 4, offsets[-1])
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    ids = rng.integers(n_features, size=bounds[-1]).astype(np.int32)
    return Features(offsets, bounds, ids, rng.normal(size=bounds[-1]))


def random_point(merged, scale, rng):
    vector = rng.normal(0, scale, len(Weights.zeros(len(merged.root), J).vector))
    return vector, merged.split(vector, J)


def counts_of(path, features, first, share):
    """What a path counts, as weights."""
    counts = Weights.zeros(6, J)
    counts.start[path[0]] += share
    counts.end[path[-1]] += share
    for t, j in enumerate(path):
        for e in range(features.bounds[first + t], features.bounds[first + t + 1]):
            counts.state[features.ids[e], j] += share * features.values[e]
        if t:
            counts.step[path[t - 1], j] += share
    return counts.vector


@pytest.mark.parametrize("hard", [True, False])
@pytest.mark.parametrize("scale", [0.5, 30.0, 300.0], ids=lambda s: f"scale{s}")
def test_the_objective_is_that_of_the_enumeration(hard, scale):
    """ln Z(known) - ln Z and the difference of the expectations, over all paths."""
    rng = np.random.default_rng(4)
    features, masks = random_features(rng), Masks.of(BIO, hard=hard)
    targets = Targets.of_allowed(features, 6, allowed_tags(KNOWN, BIO), WEIGHT)
    merged = Merged.of(features, 6)
    vector, weights = random_point(merged, scale, rng)
    value, gradient = Objective(merged, targets.merged(merged), masks, 0.0, Serial(), bias=True)(
        vector
    )
    p, total = potentials_of(features, weights, masks), 0.0
    expected = np.zeros_like(weights.vector)
    for n, item in enumerate(KNOWN):
        a, b = features.offsets[n], features.offsets[n + 1]
        own = p._replace(unary=p.unary[a:b], offsets=np.array([0, b - a]))
        mask = allowed_tags([item], BIO)
        clamped = own._replace(unary=np.where(mask, own.unary, -np.inf))
        for potentials, sign in ((own, 1.0), (clamped, -1.0)):
            paths, probs, log_z = distribution(potentials)
            total += sign * WEIGHT[n] * log_z
            for path, probability in zip(paths, probs, strict=True):
                expected += counts_of(path, features, a, sign * WEIGHT[n] * probability)
    assert value == pytest.approx(total, rel=1e-12, abs=1e-9)
    shaped = Weights.of_vector(expected, 6, J)
    np.testing.assert_allclose(gradient, merged.join(shaped), atol=1e-9)


def test_known_tokens_far_from_what_the_model_believes_are_done_with_logarithms():
    """A hundred tokens whose second tag, alone allowed at the end, is ever less likely."""
    n = 100
    codec = Codec.from_types(["x", "y"], "PLAIN")
    one = Features(np.array([0, n]), np.arange(n + 1), np.zeros(n, np.int32), np.zeros(0))
    masks = Masks(np.ones(2), np.eye(2), np.ones(2))
    known = allowed_tags([[None] * (n - 1) + ["y"]], codec)
    merged = Merged.of(one, 1)
    vector = np.zeros_like(Weights.zeros(1, 2).vector)
    Weights.of_vector(vector, 1, 2).state[:] = [[10.0, 0.0]]
    targets = Targets.of_allowed(one, 1, known)
    value, gradient = Objective(merged, targets.merged(merged), masks, 0.0, Serial(), bias=True)(
        vector
    )
    assert value == pytest.approx(10.0 * n, rel=1e-12)
    np.testing.assert_allclose(gradient[:2], [n, -n], rtol=1e-12)


def test_what_is_known_as_a_whole_trains_as_ever(make):
    sets = [[{tag} for tag in tags] for tags in Y]
    one, other = make().fit(X, Y), make().fit(X, sets)
    np.testing.assert_array_equal(one.weights_.vector, other.weights_.vector)


def test_items_of_which_nothing_is_known_have_no_effect(make):
    more, tags = [*X, ["w1", "never", "w2"]], [*hidden(0.2), [None, None, None]]
    weight = np.linspace(0.5, 2.0, len(more))
    one = make(min_count=2).fit(X, tags[:-1], weight=weight[:-1])
    for items in (more, Text.of(more)):
        other = make(min_count=2).fit(items, tags, weight=weight)
        np.testing.assert_array_equal(one.weights_.vector, other.weights_.vector)
    free = [*tags[:-1], [set(one.codec_.tags)] * 3]
    assert make().fit(more, free).score(X, Y) == pytest.approx(one.score(X, Y), abs=0.1)


def test_tags_known_in_part_teach_more_than_the_whole_items_alone(make):
    tags = hidden(0.4)
    whole = [n for n, item in enumerate(tags) if None not in item]
    more, truth = random_items(300, seed=9)
    alone = make().fit([X[n] for n in whole], [Y[n] for n in whole])
    assert make().fit(X, tags).score(more, truth) > alone.score(more, truth) + 0.03


def test_a_set_of_tags_teaches_that_the_others_are_wrong():
    words, sets = [["a"], ["b"]] * 5, [[{"x", "y"}], ["z"]] * 5
    crf = CRF(templates=["word"], encoding="PLAIN", c2=0.01).fit(words, sets)
    (row,) = crf.predict_marginals([["a"]])[0]
    assert row["x"] == pytest.approx(row["y"], abs=1e-6)
    assert row["z"] < 0.05


def test_label_sets_known_in_part_add_up():
    rng = np.random.default_rng(6)
    features, masks = random_features(rng), Masks.of(BIO, hard=False)
    other = [["O"] * 4, ["O", {"O", "B-A"}, None], [None] * 3, [None], ["O", None, None, None]]
    merged = Merged.of(features, 6)
    vector, _ = random_point(merged, 1.0, rng)
    sets = [Targets.of_allowed(features, 6, allowed_tags(k, BIO)) for k in (KNOWN, other)]

    def at(targets):
        value, gradient = Objective(
            merged, targets.merged(merged), masks, 0.0, Serial(), bias=True
        )(vector)
        return value, gradient.copy()

    (one, first), (two, second), (both, sums) = map(at, (*sets, sets[0].add(sets[1])))
    assert both == pytest.approx(one + two, rel=1e-12)
    np.testing.assert_allclose(sums, first + second, atol=1e-12)


@pytest.mark.parametrize("known", [["O", "I-A", None], [None, "B-A", "I-B"], [{"I-A", "I-B"}, "O"]])
def test_contradictory_tags_are_refused_and_the_item_is_named(make, known):
    words = [*X, ["w1", "w2", "w3"][: len(known)]]
    with pytest.raises(InputError, match=r"item 60: no possible sequence .* hard=False"):
        make().fit(words, [*Y, known])
    assert make(hard=False).fit(words, [*Y, known]).n_repaired_ == 0


def test_only_items_known_as_a_whole_are_repaired(make):
    tags = [*Y, ["I-A", "O"], [None, "I-A"]]
    assert make().fit([*X, ["w1", "w2"], ["w1", "w2"]], tags).n_repaired_ == 1


def test_a_tag_that_is_none_of_the_encoding_is_refused_in_a_set_too(make):
    with pytest.raises(FaultsError, match="X-A"):
        make().fit([["a", "b"]], [["O", {"O", "X-A"}]])


def test_an_hmm_comes_to_rest_where_its_counts_are_those_expected():
    """The counts of all paths that agree with what is known give the tables that they come from."""
    some = [n for n, item in enumerate(X) if len(item) <= 4]
    words, tags = [X[n] for n in some], [hidden(0.3)[n] for n in some]
    hmm = HMM(templates=["word"], tol=0.0, max_iter=3000).fit(words, tags)
    features, n_features = hmm.features_.transform(Text.of(words)), hmm.features_.n_features
    masks, n_labels = Masks.of(hmm.codec_, hard=True), len(hmm.codec_.tags)
    p, allowed = potentials_of(features, hmm.weights_, masks), allowed_tags(tags, hmm.codec_)
    counts, log_z = np.zeros_like(hmm.weights_.vector), 0.0
    for n, item in enumerate(tags):
        if all(tag is None for tag in item):
            continue
        own = slice(features.offsets[n], features.offsets[n + 1])
        unary = np.where(allowed[own], p.unary[own], -np.inf)
        paths, probs, log_p = distribution(
            p._replace(unary=unary, offsets=np.array([0, len(item)]))
        )
        log_z += log_p
        for path, share in zip(paths, probs, strict=True):
            codes, weight = np.array(path, np.int16), np.array([share])
            one = features.items(n, n + 1)
            counts += Targets.of_codes(one, n_features, codes, n_labels, weight).counts.vector
    again = hmm._weights_of(Weights.of_vector(counts, n_features, n_labels), masks)
    np.testing.assert_allclose(again.vector, hmm.weights_.vector, atol=1e-6)
    assert hmm.trace_[-1] == pytest.approx(log_z, rel=1e-9)
    assert hmm.trace_[-1] > hmm.trace_[0]


def test_an_hmm_says_how_its_rounds_ended():
    assert HMM().fit(X, Y).stop_reason_ == "counted"
    assert HMM().fit(X, Y).trace_ == ()
    ended = HMM().fit(X, hidden(0.3))
    assert (ended.stop_reason_, ended.converged_) == ("tol", True)
    heard = []
    short = HMM(max_iter=2).fit(X, hidden(0.3), progress=lambda *args: heard.append(args))
    assert (short.stop_reason_, short.converged_) == ("max_iter", False)
    assert [args[:3] for args in heard] == [(1, 2, short.trace_[0]), (2, 2, short.trace_[1])]
    with pytest.raises(InputError, match="max_iter"):
        HMM(max_iter=0).fit(X, Y)
