"""Answers under a chain, against the enumeration of all paths; and what they sum up to."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import logsumexp

from aggregation.bsc import oracle
from goldspan.aggregation.crf.rounds import Scores, TokenTargets, TrainingSequences
from goldspan.spans import Codec
from goldspan.tagger.crf import Masks

CODECS = {
    "BIO": Codec.from_types(["X", "Y"], "BIO"),
    "IOBES": Codec.from_types(["X"], "IOBES"),
    "PLAIN": Codec.from_types(["a", "b", "c"], "PLAIN"),
}
every_codec = pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)


def random_scores(rng, n_tokens, masks):
    n = len(masks.start)
    parts = (masks.start, masks.step, masks.end)
    drawn = (np.exp(rng.normal(size=part.shape)) * part for part in parts)
    return Scores(rng.normal(size=(n_tokens, n)), *drawn)


def enumerated(scores, codec, begin, stop):
    paths = oracle.legal_paths(codec, stop - begin)
    with np.errstate(divide="ignore"):
        logs = (np.log(part) for part in (scores.start, scores.step, scores.end))
        return oracle.enumerate_item(scores.unary[begin:stop], *logs, paths)


def inputs(codec, seed):
    rng = np.random.default_rng(seed)
    crowd = oracle.crowd_of(codec, oracle.random_items(rng, codec, n_items=6, skip=0.3))
    masks = Masks.of(codec, hard=True)
    sequences, _ = TrainingSequences.of_crowd(crowd, masks)
    return crowd, sequences, random_scores(rng, crowd.n_tokens, masks), rng


@every_codec
@pytest.mark.parametrize("seed", range(5))
def test_the_probability_of_an_answer_is_that_of_all_paths_that_agree_with_it(codec, seed):
    crowd, sequences, scores, _ = inputs(codec, seed)
    found = sequences.log_probs(scores)
    for a, item in enumerate(sequences.item.tolist()):
        own = sequences.codes[sequences.offset[a] : sequences.offset[a + 1]]
        every = enumerated(scores, codec, *crowd.offsets[item : item + 2])
        agree = ((every.paths == own) | (own < 0)).all(axis=1)
        np.testing.assert_allclose(found[a], logsumexp(every.log_p[agree]), atol=1e-9)


@every_codec
@pytest.mark.parametrize("seed", range(5))
def test_the_sums_are_expected_counts_given_the_answers(codec, seed):
    crowd, sequences, scores, rng = inputs(codec, seed)
    weight = rng.random(len(sequences.item))
    sums = TokenTargets.zeros(crowd.offsets, len(codec.tags))
    sequences.add_to(sums, weight, scores)
    probs, steps, total = np.zeros_like(sums.probs), np.zeros_like(sums.steps), 0 * sums.weight
    for a, item in enumerate(sequences.item.tolist()):
        own = sequences.codes[sequences.offset[a] : sequences.offset[a + 1]]
        if (own < 0).all():
            continue
        begin, stop = crowd.offsets[item : item + 2]
        every = enumerated(scores, codec, begin, stop)
        agree = ((every.paths == own) | (own < 0)).all(axis=1)
        p = weight[a] * every.p * agree / every.p[agree].sum()
        for t, column in enumerate(every.paths.T):
            probs[begin + t] += np.bincount(column, p, len(codec.tags))
        for t, u in pairwise(range(stop - begin)):
            np.add.at(steps, (every.paths[:, t], every.paths[:, u]), p)
        total[item] += weight[a]
    np.testing.assert_allclose(sums.probs, probs, atol=1e-9)
    np.testing.assert_allclose(sums.steps, steps, atol=1e-9)
    np.testing.assert_allclose(sums.weight, total, atol=1e-12)


@every_codec
@pytest.mark.parametrize("seed", range(8))
def test_every_answer_is_possible_and_possible_ones_are_left_as_they_are(codec, seed):
    crowd, sequences, _, _ = inputs(codec, seed)
    even = Scores.even(crowd.n_tokens, Masks.of(codec, hard=True))
    assert np.isfinite(sequences.log_masses(even)).all()
    raw = crowd.latest
    np.testing.assert_array_equal(sequences.codes < 0, raw.codes < 0)
    changed = 0
    for a, item in enumerate(raw.item.tolist()):
        own = slice(raw.offset[a], raw.offset[a + 1])
        paths = oracle.legal_paths(codec, int(np.diff(crowd.offsets)[item]))
        was = ((paths == raw.codes[own]) | (raw.codes[own] < 0)).all(axis=1).any()
        same = np.array_equal(sequences.codes[own], raw.codes[own])
        assert same if was else not same
        changed += int((sequences.codes[own] != raw.codes[own]).sum())
    assert TrainingSequences.of_crowd(crowd, Masks.of(codec, hard=True))[1] == changed


def test_an_inside_that_opens_a_span_becomes_a_begin_unless_a_skipped_token_may_explain_it():
    codec = CODECS["BIO"]
    crowd = oracle.crowd_of(codec, [{0: [0, 3, 3], 1: [-1, 3, 0], 2: [1, 4, -1]}])
    sequences, changed = TrainingSequences.of_crowd(crowd, Masks.of(codec, hard=True))
    tags = [codec.tags[c] if c >= 0 else "?" for c in sequences.codes]
    assert codec.tags == ("O", "B-X", "B-Y", "I-X", "I-Y")
    assert tags == ["O", "B-X", "I-X", "?", "I-X", "O", "B-X", "B-Y", "?"]
    assert changed == 2


def test_a_twin_adds_what_a_double_weight_adds():
    codec = CODECS["BIO"]
    crowd = oracle.crowd_of(codec, [{0: [1, 3, 0], 1: [1, 3, 0]}, {0: [0, -1], 1: [0, -1]}])
    masks = Masks.of(codec, hard=True)
    sequences, _ = TrainingSequences.of_crowd(crowd, masks)
    scores = random_scores(np.random.default_rng(3), crowd.n_tokens, masks)
    first = (crowd.latest.worker == 0).astype(float)
    both, twice = (TokenTargets.zeros(crowd.offsets, 5) for _ in range(2))
    sequences.add_to(both, np.ones(4), scores)
    sequences.add_to(twice, 2 * first, scores)
    for name in ("probs", "steps", "weight"):
        np.testing.assert_allclose(getattr(both, name), getattr(twice, name), atol=1e-12)


def test_an_answer_without_a_label_adds_nothing():
    crowd = oracle.crowd_of(CODECS["BIO"], [{0: [-1, -1], 1: [0, 1]}])
    masks = Masks.of(CODECS["BIO"], hard=True)
    sequences, _ = TrainingSequences.of_crowd(crowd, masks)
    sums = TokenTargets.zeros(crowd.offsets, 5)
    sequences.add_to(sums, np.ones(2), Scores.even(2, masks))
    assert sums.weight.tolist() == [1.0]
    assert sums.probs.sum() == pytest.approx(2.0)
