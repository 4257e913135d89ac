"""BSC with an encoder inside, a tiny one of random weights; and vectors of it inside the CRF."""

from __future__ import annotations

import importlib.util
from itertools import pairwise

import numpy as np
import pytest

import goldspan
from goldspan.aggregation import get_aggregator
from goldspan.aggregation.bsc import encoder as module
from goldspan.aggregation.bsc.encoder import encoder_params
from goldspan.errors import InputError, MissingExtraError
from goldspan.runners import FileCheckpoint
from goldspan.spans import Tagged, find_errors
from goldspan.tagger import CRF, Encoder
from tagger.tiny_encoder import write_tiny

HAS_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "transformers"))
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="torch and transformers are not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
FEW = {
    "rounds": 2, "folds": 2, "encoder_params": "epochs=2, learning_rate=0.005, batch_pieces=128",
}  # fmt: skip


@pytest.fixture(scope="module")
def crowd(root):
    every = goldspan.read_crowd(root / "examples" / "crowd.tsv")
    return every.select_items(np.arange(40))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(write_tiny(tmp_path_factory.mktemp("tiny") / "model"))


@pytest.fixture(scope="module")
def result(crowd, folder):
    return goldspan.aggregate(crowd, "bsc-seq+encoder", encoder=folder, **FEW)


class Killed(Exception):  # noqa: N818 - a kill is no error of the run
    """Stands for a kill."""


class Fragile(FileCheckpoint):
    """A checkpoint after whose n-th state the process dies."""

    def __init__(self, path, n):
        super().__init__(path)
        self.n = n

    def save(self, fingerprint, state):
        super().save(fingerprint, state)
        self.n -= 1
        if not self.n:
            raise Killed


@needs_torch
def test_the_result_is_well_formed_with_probabilities_and_an_encoder(crowd, result):
    assert result.method == "bsc-seq+encoder"
    assert not len(find_errors(Tagged(result.codes, crowd.offsets), crowd.tagset))
    np.testing.assert_allclose(result.token_probs.sum(axis=1), 1, atol=1e-5)
    assert isinstance(result.tagger, Encoder)
    assert result.tagger.codec_ == crowd.tagset
    assert len(result.trace) == 2


@needs_torch
def test_no_encoder_sees_the_items_that_it_scores(crowd, folder, monkeypatch):
    seen = []
    whole = Encoder.fit

    def fit(self, X, y, **rest):
        seen.append({tuple(words) for words in _items(X)})
        return whole(self, X, y, **rest)

    scored = []
    logits = module.Network.logits

    def read(self, text):
        scored.append({tuple(words) for words in _items(text)})
        return logits(self, text)

    monkeypatch.setattr(Encoder, "fit", fit)
    monkeypatch.setattr(module.Network, "logits", read)
    goldspan.aggregate(crowd, "bsc-seq+encoder", encoder=folder, **{**FEW, "rounds": 1})
    own = {tuple(words) for words in crowd.tokens_list}
    for taught, asked in zip(seen[:2], scored[:2], strict=True):
        assert taught | asked == own
        assert not taught & asked


def _items(text):
    words = text.words.to_pylist()
    return [words[a:b] for a, b in pairwise(text.offsets.tolist())]


@needs_torch
@pytest.mark.parametrize("n", [1, 3])
def test_a_killed_run_goes_on_and_ends_with_the_same_bits(crowd, folder, result, tmp_path, n):
    method = get_aggregator("bsc-seq+encoder", encoder=folder, **FEW)
    path = tmp_path / "state"
    with pytest.raises(Killed):
        method.fit(crowd, checkpoint=Fragile(path, n))
    fits = []
    whole = module.EncoderFolds._fit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            module.EncoderFolds,
            "_fit",
            lambda self, k, *rest: fits.append(k) or whole(self, k, *rest),
        )
        again = method.fit(crowd, checkpoint=FileCheckpoint(path)).result_
    assert len(fits) == 4 - n
    np.testing.assert_array_equal(again.token_probs, result.token_probs)
    other = get_aggregator("bsc-seq+encoder", encoder=folder, **{**FEW, "rounds": 3})
    with pytest.raises(InputError, match="another run"):
        other.fit(crowd, checkpoint=FileCheckpoint(path))


@needs_torch
def test_progress_rises_and_says_how_long_it_takes(crowd, folder):
    told = []
    method = get_aggregator("bsc-seq+encoder", encoder=folder, **{**FEW, "rounds": 1})
    method.fit(crowd, progress=lambda *facts: told.append(facts))
    slow = [facts for facts in told if facts[1] == 300]  # two folds and the tagger
    steps = [step for step, *_ in slow]
    assert steps == sorted(steps)
    assert steps[-1] == 300
    assert all(left >= 0 for *_, left in slow)


@needs_torch
def test_new_items_are_labelled_beside_the_encoder(crowd, folder):
    method = get_aggregator("bsc-seq+encoder", encoder=folder, **{**FEW, "rounds": 1}).fit(crowd)
    found = method.predict(crowd.select_items(np.arange(5)))
    assert len(found.tags) == 5


@needs_torch
def test_vectors_are_features_of_the_crf_inside(crowd, folder):
    found = goldspan.aggregate(crowd, "bsc-seq+crf", vectors=folder, rounds=1)
    plain = goldspan.aggregate(crowd, "bsc-seq+crf", rounds=1)
    assert isinstance(found.tagger, CRF)
    assert found.tagger.features_.n_features == plain.tagger.features_.n_features + 32
    assert not np.array_equal(found.token_probs, plain.token_probs)


@needs_torch
def test_auto_takes_an_encoder_that_is_named(crowd, folder):
    found = goldspan.aggregate(crowd, "auto", encoder=folder, **{**FEW, "rounds": 1})
    names = {one.name for one in found.candidates}
    assert "bsc-seq+encoder" in names
    assert "bsc-seq+crf" not in names


def test_auto_takes_no_encoder_unless_it_is_named(crowd):
    found = goldspan.aggregate(crowd, "auto", rounds=1)
    assert not any(one.name.endswith("+encoder") for one in found.candidates)


@pytest.mark.parametrize("method", ["bsc-seq+encoder", "auto"])
def test_without_the_extra_it_says_how_to_get_it_before_anything_is_done(
    crowd, method, monkeypatch
):
    monkeypatch.setattr("goldspan.tagger.network.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match="extra 'encoder'"):
        goldspan.aggregate(crowd, method, encoder="bert")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "bsc-seq\\+encoder: name the encoder"),
        ({"encoder": "x", "encoder_params": "held_out=0.2"}, "held_out cannot be set here"),
        ({"encoder": "x", "encoder_params": "epochs"}, "must look like epochs=2"),
        ({"encoder": "x", "encoder_params": 3}, "a mapping or a string"),
        ({"encoder": "x", "encoder_params": "height=3"}, "height"),
    ],
)
def test_wrong_parameters_are_told_before_anything_is_done(crowd, params, message):
    with pytest.raises(InputError, match=message):
        goldspan.aggregate(crowd, "bsc-seq+encoder", **params)


def test_parameters_are_read_from_a_string_and_a_mapping():
    wanted = {"model": "x", "epochs": 2, "documents": True, "learning_rate": 0.001}
    assert encoder_params("x", "epochs=2, documents=true, learning_rate=0.001") == wanted
    assert encoder_params("x", {k: v for k, v in wanted.items() if k != "model"}) == wanted
