"""For few labels NumPy does what the kernels do for many, and gives the same."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from goldspan.aggregation.bsc import engine, evidence, posterior
from goldspan.aggregation.bsc.engine import Model, Truth, vote_shard
from goldspan.aggregation.bsc.evidence import compress, lay_out
from goldspan.aggregation.bsc.posterior import best_spans
from goldspan.aggregation.workermodels import Prior
from goldspan.chains import posterior as chain
from goldspan.crowd import CrowdBuilder


@pytest.fixture
def kernels(monkeypatch):
    """Let a function be called with the kernels, however few labels there are."""

    def call(function, *words, **named):
        with monkeypatch.context() as patch:
            patch.setattr(engine, "FEW_LABELS", -1)
            patch.setattr(evidence, "FEW_LABELS", -1)
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


LAYOUTS = [
    {"has_memory": True},
    {"has_memory": True, "start": "own", "skipped": "own"},
    {"has_memory": True, "skipped": "own", "words": True},
    {"has_memory": False, "words": True},
]


def laid_out(crowd, words=False, **how):
    ids = np.arange(crowd.n_tokens, dtype=np.int32) % 3 if words else None
    return lay_out(crowd, words=ids, **how)


def same(left, right):
    np.testing.assert_array_equal(left, right)
    assert np.asarray(left).dtype == np.asarray(right).dtype


@pytest.mark.parametrize("how", LAYOUTS, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_rows_patterns_and_votes_of_few_labels_are_those_of_the_kernels(how, seed, kernels):
    crowd = crowd_of(seed)
    (mine, rows), (theirs, others) = laid_out(crowd, **how), kernels(laid_out, crowd, **how)
    for name in ("offsets", "bounds", "row", "active"):
        same(getattr(mine, name), getattr(theirs, name))
    for name in ("worker", "previous", "label"):
        same(getattr(rows, name), getattr(others, name))
    assert (rows.n_workers, rows.n_previous) == (others.n_workers, others.n_previous)
    for a, b in ((0, 25), (3, 20)):
        part = mine.items(a, b)
        packed, expected = compress([part], len(rows))[0], kernels(compress, [part], len(rows))[0]
        for name in ("bounds", "row", "pattern_bounds", "pattern_row", "n_tokens_of"):
            same(getattr(packed, name), getattr(expected, name))


@pytest.mark.parametrize("truth", ["chain", "independent"])
@pytest.mark.parametrize("weighted", [True, False])
def test_votes_of_few_labels_are_those_of_the_kernels(truth, weighted, kernels):
    crowd = crowd_of(0)
    rng = np.random.default_rng(0)
    gold = np.where(rng.random(crowd.n_tokens) < 0.3, rng.integers(5, size=crowd.n_tokens), -1)
    evidence, rows = lay_out(crowd, has_memory=True, gold=gold.astype(np.int16))
    if weighted:
        evidence.weight.resize(len(evidence.row), refcheck=False)
        evidence.weight[:] = rng.random(len(evidence.row))
    made = Truth.chain(crowd.tagset) if truth == "chain" else Truth.independent(5)
    model = Model(None, rows, Prior, made)
    for part in (evidence, evidence.items(4, 21)):
        mine, theirs = vote_shard(part, model), kernels(vote_shard, part, model)
        np.testing.assert_allclose(mine.counts, theirs.counts, rtol=1e-13)
        np.testing.assert_allclose(mine.truth, theirs.truth, rtol=1e-13)


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
