"""For few labels NumPy does what the kernels do for many, and gives the same."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from goldspan.aggregation.bsc import posterior
from goldspan.aggregation.bsc.posterior import best_spans
from goldspan.chains import posterior as chain
from goldspan.crowd import CrowdBuilder


@pytest.fixture
def kernels(monkeypatch):
    """Let a function be called with the kernels, however few labels there are."""

    def call(function, *words, **named):
        with monkeypatch.context() as patch:
            patch.setattr(posterior, "FEW_SPANS", -1)
            patch.setattr(chain, "FEW_TOKENS", -1)
            return function(*words, **named)

    return call


def crowd_of(seed, n_items=25):
    """Draw a crowd with skipped tokens, repeated answers and items that nobody answered."""
    rng = np.random.default_rng(seed)
    tags = ["O", "B-A", "I-A", "B-B", "I-B"]
    builder = CrowdBuilder()
    for n in range(n_items):
        length = int(rng.integers(1, 8))
        item = builder.add_item(f"t{n}", ["w"] * length)
        for worker in rng.permutation(6)[: rng.integers(0, 5)]:
            for _ in range(1 + (rng.random() < 0.2)):
                said = rng.choice(tags, length).tolist()
                skips = rng.random(length) < 0.2
                row = [None if skip else tag for tag, skip in zip(said, skips, strict=True)]
                builder.add_answer(item, f"w{worker}", row)
    return builder.build()


def same(left, right):
    np.testing.assert_array_equal(left, right)
    assert np.asarray(left).dtype == np.asarray(right).dtype


def test_few_spans_are_chosen_as_many_are(kernels):
    rng = np.random.default_rng(0)
    item = np.sort(rng.integers(20, size=200))
    begin = rng.integers(10, size=200)
    spans = item, begin, begin + rng.integers(1, 4, 200), rng.random(200)
    mine, theirs = best_spans(*spans), kernels(best_spans, *spans)
    same(mine[0], theirs[0])
    assert mine[1] == theirs[1]


@pytest.mark.compiles
@pytest.mark.parametrize("method", ["bsc-seq", "bsc-cm", "bsc-seq+words", "ibcc"])
def test_all_of_a_result_is_the_same(method, kernels):
    crowd = crowd_of(1)
    mine = goldspan.aggregate(crowd, method)
    theirs = kernels(goldspan.aggregate, crowd, method)
    np.testing.assert_array_equal(mine.codes, theirs.codes)
    for name in ("token_probs", "span_confidence", "confidence"):
        np.testing.assert_allclose(getattr(mine, name), getattr(theirs, name), rtol=1e-6, atol=1e-9)
