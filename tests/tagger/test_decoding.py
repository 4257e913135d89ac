"""Decoding against all paths: marginals, best path, entropy, spans, n best, forced tags."""

from __future__ import annotations

import numpy as np
import pytest

from goldspan.errors import InputError
from goldspan.spans import Codec
from goldspan.tagger.decoding import (
    Potentials,
    best_path,
    constrain,
    decode,
    n_best,
    spans_with_confidence,
)
from tagger.enumeration import codecs, distribution, random_potentials, span_mass

BIO = Codec.from_types(["A", "B"], "BIO")
CASES = [
    (codec, hard, length, scale)
    for codec in codecs()
    for hard in (True, False)
    for length, scale in ((1, 1.5), (2, 1.5), (4, 1.5), (4, 60.0))
]


@pytest.fixture(params=CASES, ids=lambda c: f"{c[0].encoding}-{c[1]}-{c[2]}-{c[3]}")
def case(request):
    codec, hard, length, scale = request.param
    rng = np.random.default_rng(7)
    return random_potentials(rng, codec, length, hard=hard, scale=scale), codec


def test_marginals_best_path_and_entropy_are_those_of_the_enumeration(case):
    potentials, codec = case
    paths, probs, _ = distribution(potentials)
    found = decode(potentials, codec)
    expected = np.zeros_like(potentials.unary)
    for path, p in zip(paths, probs, strict=True):
        expected[np.arange(len(path)), path] += p
    np.testing.assert_allclose(found.probs, expected, atol=1e-9)
    assert tuple(found.codes) == paths[int(np.argmax(probs))]
    inside = probs > 0
    entropy = -(probs[inside] * np.log(probs[inside])).sum()
    assert found.entropy[0] == pytest.approx(entropy, abs=1e-9)
    assert tuple(best_path(potentials, codec).codes) == paths[int(np.argmax(probs))]


def test_among_equal_paths_both_ways_of_decoding_take_the_lowest_tags():
    n = len(BIO.tags)
    rng = np.random.default_rng(2)
    parts = [rng.integers(-1, 2, shape).astype(float) for shape in ((60, n), n, (n, n), n)]
    flat = Potentials(*parts, np.array([0, 0, 9, 20, 60]))
    np.testing.assert_array_equal(best_path(flat, BIO).codes, decode(flat, BIO).codes)


def test_span_posteriors_are_those_of_the_enumeration(case):
    potentials, codec = case
    paths, probs, _ = distribution(potentials)
    found = decode(potentials, codec, least=1e-6)
    if codec.rules.is_plain:
        assert len(found.spans) == 0
        return
    expected = {k: p for k, p in span_mass(paths, probs, codec).items() if p >= 1e-6}
    s = found.spans
    keys = zip(s.start.tolist(), s.end.tolist(), s.type.tolist(), strict=True)
    got = dict(zip(keys, found.mass.tolist(), strict=True))
    assert got.keys() == expected.keys()
    for key, p in expected.items():
        assert got[key] == pytest.approx(p, abs=1e-9)


@pytest.mark.parametrize("n", [1, 3, 1000])
def test_the_n_best_paths_are_those_of_the_enumeration(case, n):
    potentials, codec = case
    paths, probs, _ = distribution(potentials)
    (best,) = n_best(potentials, codec, n)
    order = np.argsort(-probs, kind="stable")[:n]
    assert len(best) == len(order)
    np.testing.assert_allclose([p for _, p in best], probs[order], atol=1e-9)
    listed = {tuple(codec.tags[j] for j in paths[k]): probs[k] for k in range(len(paths))}
    assert len({tuple(tags) for tags, _ in best}) == len(best)
    for tags, p in best:
        assert listed[tuple(tags)] == pytest.approx(p, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_forced_tags_give_the_conditional_distribution(seed):
    rng = np.random.default_rng(seed)
    potentials = random_potentials(rng, BIO, 4, hard=True)
    some = {"B-A", "I-A", "O"}
    forced = [[None, "B-A", some, None]]
    paths, probs, _ = distribution(potentials)
    kept = [p[1] == BIO.index["B-A"] and BIO.tags[p[2]] in some for p in paths]
    probs = np.where(kept, probs, 0) / probs[kept].sum()
    found = decode(constrain(potentials, BIO, forced), BIO)
    expected = np.zeros_like(potentials.unary)
    for path, p in zip(paths, probs, strict=True):
        expected[np.arange(4), path] += p
    np.testing.assert_allclose(found.probs, expected, atol=1e-9)
    assert tuple(found.codes) == paths[int(np.argmax(probs))]
    (best,) = n_best(constrain(potentials, BIO, forced), BIO, 5)
    np.testing.assert_allclose([p for _, p in best], np.sort(probs)[::-1][:5], atol=1e-9)


@pytest.mark.parametrize("forced", [["O", "I-A", None], ["I-B", None, None], [None, "B-A", "I-B"]])
def test_contradictory_forced_tags_are_refused_and_the_item_is_named(forced):
    rng = np.random.default_rng(0)
    p = random_potentials(rng, BIO, 5, hard=True)._replace(offsets=np.array([0, 2, 5]))
    constrained = constrain(p, BIO, [[None, None], forced])
    with pytest.raises(InputError, match="item 1: no BIO sequence agrees with its forced tags"):
        decode(constrained, BIO)
    with pytest.raises(InputError, match="item 1: no BIO sequence"):
        best_path(constrained, BIO)
    with pytest.raises(InputError, match="item 1: no BIO sequence"):
        n_best(constrained, BIO, 2)


def test_items_are_independent_and_empty_ones_are_passed_over():
    rng = np.random.default_rng(3)
    whole = random_potentials(rng, BIO, 7, hard=True)._replace(offsets=np.array([0, 3, 3, 7]))
    found = decode(whole, BIO)
    for a, b in ((0, 3), (3, 7)):
        part = Potentials(whole.unary[a:b], *whole[1:4], np.array([0, b - a]))
        np.testing.assert_array_equal(decode(part, BIO).probs, found.probs[a:b])
    assert found.entropy[1] == 0
    assert [len(item) for item in n_best(whole, BIO, 4)] == [4, 1, 4]
    assert n_best(whole, BIO, 4)[1] == [([], 1.0)]


def test_the_confidence_of_a_best_span_is_its_posterior():
    p = random_potentials(np.random.default_rng(5), BIO, 5, hard=True)
    p.unary[1, BIO.index["B-A"]] += 5
    paths, probs, _ = distribution(p)
    mass = span_mass(paths, probs, BIO)
    spans, confidence = spans_with_confidence(decode(p, BIO, least=1e-9), BIO)
    assert len(spans) > 0
    for s, e, t, c in zip(spans.start, spans.end, spans.type, confidence, strict=True):
        assert mass[s, e, t] == pytest.approx(c, abs=1e-9)


def test_more_candidate_spans_than_room_are_all_listed():
    flat = Codec.from_types(["A", "B", "C", "D"], "BIO")
    n = len(flat.tags)
    zero = Potentials(
        np.zeros((600, n)), *(np.zeros(s) for s in (n, (n, n), n)), np.array([0, 600])
    )
    found = decode(zero, flat, least=1e-4)
    assert len(found.spans) > 600 + 1000
    assert (found.mass >= 1e-4).all()
