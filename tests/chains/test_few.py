"""For few tokens NumPy does what the kernels do for many, and gives the same."""

from __future__ import annotations

import numpy as np
import pytest

from goldspan.chains import posterior
from goldspan.chains.lattice import Chain, Spans
from goldspan.chains.posterior import lattice_of
from goldspan.spans import Codec

CODECS = [Codec.from_types(["A", "B"], encoding) for encoding in ("BIO", "IOB", "IOBES")]
GIVEN: list[dict] = [
    {}, {"unary": True}, {"gold": True}, {"scale": 300.0},
    {"unary": True, "gold": True, "scale": 90.0},
]  # fmt: skip


@pytest.fixture
def kernels(monkeypatch):
    """Let a function be called with the kernels, however few tokens there are."""

    def call(function, *words):
        with monkeypatch.context() as patch:
            patch.setattr(posterior, "FEW_TOKENS", -1)
            return function(*words)

    return call


def arguments(codec, seed, *, unary=False, gold=False, scale=1.0):
    """Draw items: some are empty, some not active, offsets and bounds begin anywhere."""
    rng = np.random.default_rng(seed)
    n_labels, n_rows = len(codec.tags), 7
    lengths = rng.integers(0, 9, 30)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    n_tokens = int(offsets[-1])
    sizes = rng.integers(0, 4, n_tokens)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    row = rng.integers(n_rows, size=bounds[-1]).astype(np.int32)
    active = rng.random(30) < 0.8
    known = np.where(rng.random(n_tokens) < 0.2, rng.integers(n_labels, size=n_tokens), -1)
    extra = rng.normal(0, scale, (n_tokens, n_labels))
    chain = Chain(
        np.where(codec.start_mask, rng.random(n_labels), 0.0),
        np.where(codec.mask, rng.random((n_labels, n_labels)), 0.0),
        codec.end_mask.astype(np.float64),
    )
    return (
        offsets + 5, bounds + 3, row, active,
        known.astype(np.int16) if gold else np.zeros(0, np.int16),
        extra if unary else np.zeros((0, n_labels)),
        rng.normal(-1, scale, (n_rows, n_labels)), chain,
    )  # fmt: skip


def same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11, equal_nan=True)


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.encoding)
@pytest.mark.parametrize("given", GIVEN, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_few_tokens_have_the_posteriors_that_the_kernels_find(codec, given, seed, kernels):
    drawn = arguments(codec, seed, **given)
    lattice, expected = lattice_of(*drawn), kernels(lattice_of, *drawn)
    for mine, theirs in zip(lattice, expected, strict=True):
        same(mine, theirs)
    found, full = posterior.marginals(lattice), kernels(posterior.marginals, expected)
    same(found[0], full[0])
    same(found[1], full[1])
    with np.errstate(divide="ignore"):
        path = [np.where(codec.mask, np.log(lattice.step), -np.inf)]
    ways = lattice.log_start, *path, lattice.log_end
    codes = posterior.best_codes(lattice, *ways)
    np.testing.assert_array_equal(codes, kernels(posterior.best_codes, expected, *ways))
    steps = Spans.of(expected, codec.pairs, codec.type_of)
    for least in (0.01, 0.3):
        spans, masses = posterior.likely_spans(expected, steps, full[0], least)
        others, weights = kernels(posterior.likely_spans, expected, steps, full[0], least)
        assert len(others)
        np.testing.assert_array_equal(spans, others)
        same(masses, weights)
    spans, _ = posterior.likely_spans(expected, steps, full[0], 0.01)
    paths = posterior.masses_of(expected, steps, codes, spans)
    theirs = kernels(posterior.masses_of, expected, steps, codes, spans)
    same(paths[0], theirs[0])
    same(paths[1], theirs[1])


def test_an_item_without_any_path_is_none_in_both(kernels):
    codec = CODECS[0]
    inside = codec.index["I-B"]
    gold = np.array([codec.index["B-A"], inside, 0], np.int16)
    n_labels = len(codec.tags)
    drawn = (
        np.array([0, 2, 3]), np.zeros(4, np.int64), np.zeros(0, np.int32), np.ones(2, np.bool_),
        gold, np.zeros((0, n_labels)), np.zeros((0, n_labels)),
        Chain(codec.start_mask * 0.5, codec.mask * 0.5, codec.end_mask * 1.0),
    )  # fmt: skip
    lattice, expected = lattice_of(*drawn), kernels(lattice_of, *drawn)
    assert lattice.log_z[0] == expected.log_z[0] == -np.inf
    assert np.isfinite(lattice.log_z[1])
    ways = lattice.log_start, lattice.log_step, lattice.log_end
    codes = posterior.best_codes(lattice, *ways)
    np.testing.assert_array_equal(codes, kernels(posterior.best_codes, expected, *ways))
    assert np.isnan(posterior.marginals(lattice)[0][0, 0])
    assert np.isnan(kernels(posterior.marginals, expected)[0][0, 0])


@pytest.mark.parametrize("n_items", [0, 1])
def test_no_token_is_no_trouble(n_items, kernels):
    n_labels = len(CODECS[0].tags)
    nothing = np.zeros((0, n_labels))
    drawn = (
        np.zeros(n_items + 1, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int32),
        np.ones(n_items, np.bool_), np.zeros(0, np.int16), nothing, nothing,
        Chain(np.ones(n_labels), np.ones((n_labels, n_labels)), np.ones(n_labels)),
    )  # fmt: skip
    for how in (lambda function, *words: function(*words), kernels):
        lattice = how(lattice_of, *drawn)
        probs, entropy = how(posterior.marginals, lattice)
        assert probs.shape == (0, n_labels)
        assert entropy.tolist() == [0.0] * n_items
        assert not len(how(posterior.best_codes, lattice, *lattice[7:10]))


def test_what_is_done_again_and_again_is_done_by_the_kernels(monkeypatch):
    def refuse(*_):
        raise AssertionError("NumPy takes longer than kernels that are compiled")

    for name in ("fill_few", "few_marginals", "few_best_codes"):
        monkeypatch.setattr(posterior, name, refuse)
    chain = Chain(np.ones(2), np.ones((2, 2)), np.ones(2))
    tokens = np.array([0, 1]), np.array([0, 0]), np.zeros(0, np.int32), np.ones(1, np.bool_)
    drawn = (*tokens, np.full(1, -1, np.int16), np.zeros((0, 2)), np.zeros((0, 2)), chain)
    lattice = lattice_of(*drawn, once=False)
    assert posterior.marginals(lattice)[0].tolist() == [[0.5, 0.5]]
    assert posterior.best_codes(lattice, *lattice[7:10]).tolist() == [0]
    with pytest.raises(AssertionError, match="NumPy"):
        lattice_of(*drawn)
