"""Dense features of the CRF: their gradient against enumeration, numbers and sparse features; and
the vectors of a frozen encoder, with torch: a tiny one of random weights."""

from __future__ import annotations

import importlib.util
import shutil

import numpy as np
import pytest

from goldspan.errors import InputError, MissingExtraError
from goldspan.protocols import Serial
from goldspan.spans import Codec
from goldspan.tagger import CRF, HMM, Text, load_tagger
from goldspan.tagger import crf as module
from goldspan.tagger.base import carry, potentials_of
from goldspan.tagger.crf import Clamp, Masks, Targets, train
from goldspan.tagger.features import FeatureMap, Features, Merged, read_templates
from goldspan.tagger.kernels import Weights
from goldspan.tagger.network import CACHE, Vectors, open_frozen
from tagger.enumeration import distribution
from tagger.tiny_encoder import write_tiny

HAS_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "transformers"))
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="torch and transformers are not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

BIO = Codec.from_types(["A", "B"], "BIO")
J = len(BIO.tags)
SPARSE, D = 5, 3
X = [["Rome", "wins"], ["Kim", "Lee", "wins"], ["Kim", "goes", "to", "Rome"]] * 3
Y = [["B-LOC", "O"], ["B-PER", "I-PER", "O"], ["B-PER", "O", "O", "B-LOC"]] * 3


def mixed_features(rng, lengths):
    """Random sparse features, and dense ones whose rows several tokens share."""
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    sizes = rng.integers(0, 3, offsets[-1])
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    ids = rng.integers(SPARSE, size=bounds[-1]).astype(np.int32)
    vectors = rng.normal(size=(6, D)).astype(np.float32)
    return Features(offsets, bounds, ids, np.zeros(0), vectors, rng.integers(6, size=offsets[-1]))


def as_sparse(features):
    """The same with the dense features as entries with values."""
    ids, values, bounds = [], [], [0]
    for t in range(features.n_tokens):
        own = features.ids[features.bounds[t] : features.bounds[t + 1]].tolist()
        ids += [*own, *range(SPARSE, SPARSE + D)]
        values += [*np.ones(len(own)), *features.vectors[features.rows[t]].astype(float)]
        bounds.append(len(ids))
    return Features(
        features.offsets, np.array(bounds), np.array(ids, np.int32), np.array(values, np.float64)
    )


def random_targets(rng, features):
    """Soft targets of some items, and some tags of others."""
    n_items, n = len(features.offsets) - 1, features.n_tokens
    counts = Weights.zeros(SPARSE + D, J)
    features.count(rng.dirichlet(np.ones(J), n), counts.state)
    allowed = rng.random((n, J)) < 0.7
    allowed[:, 0] = True
    clamp = Clamp(allowed, np.array([0.0, 1.5] + [0.0] * (n_items - 2)))
    return Targets(counts, np.linspace(0.5, 2.0, n_items), (clamp,))


def objective(features, targets, masks, vector, *, bias=True, c2=0.3):
    merged = Merged.of(features, SPARSE + D)
    return module.Objective(merged, targets.merged(merged), masks, c2, Serial(), bias)(vector)


def n_merged(features):
    merged = Merged.of(features, SPARSE + D)
    return len(Weights.zeros(len(merged.root), J).vector)


@pytest.mark.parametrize("hard", [True, False])
@pytest.mark.parametrize("scale", [0.5, 40.0])
def test_log_z_and_expected_counts_of_dense_features_are_those_of_the_enumeration(hard, scale):
    rng = np.random.default_rng(1)
    features, masks = mixed_features(rng, [1, 4, 0, 3]), Masks.of(BIO, hard=hard)
    weight, n = np.array([1.0, 2.5, 1.0, 0.0]), n_merged(features)
    vector = rng.normal(0, scale, n)
    merged = Merged.of(features, SPARSE + D)
    weights = merged.split(vector, J)
    targets = Targets(Weights.zeros(SPARSE + D, J), weight)
    value, gradient = objective(features, targets, masks, vector, c2=0.0)
    p, total = potentials_of(features, weights, masks), 0.0
    expected = np.zeros((D, J))
    for k, length in enumerate([1, 4, 0, 3]):
        if not length:
            continue
        a, b = features.offsets[k], features.offsets[k + 1]
        paths, probs, log_z = distribution(
            p._replace(unary=p.unary[a:b], offsets=np.array([0, length]))
        )
        total += weight[k] * log_z
        for path, probability in zip(paths, probs, strict=True):
            for t, j in enumerate(path):
                expected[:, j] += weight[k] * probability * features.vectors[features.rows[a + t]]
    assert value == pytest.approx(total, rel=1e-11, abs=1e-9)
    dense = Weights.of_vector(gradient, len(merged.root), J).state[-D:]
    np.testing.assert_allclose(dense, expected, atol=1e-8)


@pytest.mark.parametrize("bias", [True, False])
def test_the_gradient_is_that_of_finite_differences(bias):
    rng = np.random.default_rng(2)
    features = mixed_features(rng, [2, 3, 4])
    targets, masks = random_targets(rng, features), Masks.of(BIO, hard=False)
    point = rng.normal(0, 0.7, n_merged(features))
    if not bias:
        ends = Weights.of_vector(point, (len(point) - J * (J + 2)) // J, J)
        ends.start[:] = ends.end[:] = 0.0
    _, found = objective(features, targets, masks, point, bias=bias)
    found, step = found.copy(), 1e-5
    for k in range(len(point) - J * (J + 2)):
        values = []
        for sign in (1, -1):
            moved = point.copy()
            moved[k] += sign * step
            values.append(objective(features, targets, masks, moved, bias=bias)[0])
        assert found[k] == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-5, abs=1e-6)


def test_dense_features_train_to_the_weights_of_the_same_sparse_ones():
    rng = np.random.default_rng(3)
    features, masks = mixed_features(rng, [2, 3, 4, 1, 5]), Masks.of(BIO, hard=True)
    sparse = as_sparse(features)
    probs = rng.dirichlet(np.ones(J), features.n_tokens)
    steps, each = np.zeros((J, J)), np.ones(5)
    found = []
    for one in (features, sparse):
        targets = Targets.of_marginals(one, SPARSE + D, probs, steps, each)
        kept = {"c2": 0.4, "runner": Serial(), "tol": 0.0, "max_iter": 300}
        found.append(train(one, targets, masks, **kept)[0].state)
    np.testing.assert_allclose(*found, atol=1e-5)
    np.testing.assert_allclose(features.scores(found[0]), sparse.scores(found[0]), atol=1e-9)


def test_selections_keep_the_vectors_of_their_tokens():
    features = mixed_features(np.random.default_rng(4), [2, 3, 0, 4])
    state = np.random.default_rng(5).normal(size=(SPARSE + D, J))
    every = features.scores(state)
    chosen = features.select(np.array([3, 1]))
    np.testing.assert_array_equal(chosen.scores(state), every[[5, 6, 7, 8, 2, 3, 4]])
    np.testing.assert_array_equal(chosen.compact().scores(state), chosen.scores(state))
    np.testing.assert_array_equal(features.items(1, 4).scores(state), every[2:])
    assert np.shares_memory(chosen.vectors, features.vectors)


# A frozen encoder.


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_tiny(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture(scope="module")
def trained(folder):
    return CRF(vectors=str(folder), templates=["kind"]).fit(X, Y)


@needs_torch
def test_vectors_tell_words_apart_that_templates_do_not(trained):
    assert trained.score(X, Y) == 1.0
    assert CRF(templates=["kind"]).fit(X, Y).score(X, Y) < 1.0
    assert trained.features_.n_features == trained.features_.n_sparse + 32
    assert trained.features_.name(trained.features_.n_sparse) == "vector 0"


@needs_torch
def test_a_word_is_the_mean_of_its_pieces_and_of_the_layers(folder):
    import torch
    import transformers

    text = Text.of([["Rome", "zap"], ["Kim"]])
    found = open_frozen(str(folder)).vectors(text)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = tokenizer("rome zap", return_tensors="pt")
    assert ids.word_ids() == [None, 0, 1, 1, 1, None]
    with torch.inference_mode():
        layers = model(**ids, output_hidden_states=True).hidden_states
    mean = torch.stack(layers).mean(dim=0)[0].numpy()
    np.testing.assert_allclose(found[0], mean[1], atol=1e-5)
    np.testing.assert_allclose(found[1], mean[2:5].mean(axis=0), atol=1e-5)


@needs_torch
def test_training_words_have_mean_0_and_the_same_length_on_the_average(folder):
    text = Text.of(X)
    vectors = Vectors.fit(str(folder), text)
    found = vectors.of(text)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(found.std(axis=0), found.std(), rtol=1e-3)


@needs_torch
def test_a_saved_tagger_holds_the_hash_and_not_the_encoder(folder, trained, tmp_path):
    path = tmp_path / "ner.goldspan"
    trained.save(path)
    assert path.stat().st_size < (folder / "model.safetensors").stat().st_size
    again = load_tagger(path)
    assert again.vectors == str(folder)
    assert again.predict_marginals(X) == trained.predict_marginals(X)


@needs_torch
def test_an_encoder_that_moved_is_found_where_it_is_said_to_be(folder, trained, tmp_path):
    shutil.copytree(folder, tmp_path / "here")
    gone = CRF(vectors=str(tmp_path / "here"), templates=["kind"]).fit(X, Y)
    gone.save(tmp_path / "ner.goldspan")
    (tmp_path / "here").rename(tmp_path / "there")
    open_frozen.cache_clear()
    with pytest.raises(InputError, match="say where the encoder is"):
        load_tagger(tmp_path / "ner.goldspan").predict(X)
    moved = load_tagger(tmp_path / "ner.goldspan", vectors=str(tmp_path / "there"))
    assert moved.predict(X) == trained.predict(X)


@needs_torch
def test_another_encoder_is_refused(folder, trained, tmp_path):
    trained.save(tmp_path / "ner.goldspan")
    other = write_tiny(tmp_path / "other", width=16)
    with pytest.raises(InputError, match="is not the one whose vectors"):
        load_tagger(tmp_path / "ner.goldspan", vectors=str(other))
    CRF().fit(X, Y).save(tmp_path / "plain.goldspan")
    with pytest.raises(InputError, match="without vectors"):
        load_tagger(tmp_path / "plain.goldspan", vectors=str(folder))


@needs_torch
def test_a_folder_that_the_environment_names_keeps_vectors(folder, tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE, str(tmp_path))
    text = Text.of([["Lee", "goes", "in"]])
    open_frozen.cache_clear()
    found = open_frozen(str(folder)).vectors(text)
    [kept] = tmp_path.iterdir()
    np.testing.assert_array_equal(np.load(kept), found)
    np.save(kept, found + 1)
    open_frozen.cache_clear()
    np.testing.assert_array_equal(open_frozen(str(folder)).vectors(text), found + 1)
    kept.write_bytes(b"damaged")
    open_frozen.cache_clear()
    np.testing.assert_array_equal(open_frozen(str(folder)).vectors(text), found)
    monkeypatch.setenv(CACHE, str(tmp_path / "nowhere"))
    open_frozen.cache_clear()
    with pytest.raises(InputError, match=CACHE):
        open_frozen(str(folder)).vectors(text)


@needs_torch
def test_a_warm_start_takes_the_weights_of_the_same_vectors_alone(folder, trained):
    numbers, _ = FeatureMap.fit(Text.of(X), read_templates(["lower"]), vectors=str(folder))
    known = trained.weights_, trained.features_, trained.codec_
    found = carry(*known, numbers, trained.codec_).state
    np.testing.assert_array_equal(found[-32:], trained.weights_.state[-32:])
    assert not found[:-32].any()
    other, _ = FeatureMap.fit(Text.of(X[:1]), read_templates(["lower"]), vectors=str(folder))
    assert not carry(*known, other, trained.codec_).state.any()  # scaled otherwise


def test_without_the_extra_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("goldspan.tagger.network.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match="extra 'encoder'"):
        CRF(vectors="an encoder that is not loaded").fit(X, Y)


def test_dictionaries_of_features_and_hmms_have_no_vectors():
    with pytest.raises(InputError, match="reads words"):
        CRF(vectors="any").fit([[{"a": 1}]], [["O"]])
    with pytest.raises(InputError, match="vectors"):
        HMM().set_params(vectors="any")
