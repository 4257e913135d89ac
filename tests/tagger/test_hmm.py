"""What the HMM counts: tables that are probabilities, and decoding that is theirs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from goldspan.errors import InputError
from goldspan.tagger import HMM, Text
from goldspan.tagger.crf import Masks, Targets
from goldspan.tagger.hmm import _chain
from tagger.corpora import random_items
from tagger.enumeration import log_scores

X, Y = random_items(50, vocabulary=4)


@pytest.mark.parametrize("hard", [True, False])
def test_the_joint_probabilities_of_words_and_tags_sum_to_1(hard):
    """Over all texts of one to three words; the chain's mass beyond three steps is the rest."""
    model = HMM(templates=["word"], temper=1.0, hard=hard).fit(X, Y)
    words = [*sorted({word for item in X for word in item}), "unseen"]
    total = 0.0
    for length in (1, 2, 3):
        for text in product(words, repeat=length):
            total += np.exp(log_scores(model.log_potentials([list(text)]))[1]).sum()
    features = model.features_.transform(Text.of(X))
    codes = model.codec_.encode(Y).codes
    counts = Targets.of_codes(features, model.features_.n_features, codes, len(model.codec_.tags))
    masks = Masks.of(model.codec_, hard=hard)
    start, step, end = masks.exponentials(_chain(counts.counts, masks, model.alpha))
    mass, before = 0.0, start
    for _ in range(3):
        mass += before @ end
        before = before @ step
    assert total == pytest.approx(mass, abs=1e-9)
    assert mass + before.sum() == pytest.approx(1, abs=1e-9)


def test_a_table_is_counts_over_totals():
    model = HMM(templates=["word"], temper=1.0, nu=0.5, encoding="PLAIN", alpha=2.0)
    model.fit([["a", "b"], ["a"]], [["x", "y"], ["x"]])
    p = model.log_potentials([["a"], ["b"], ["never"]])
    joint = np.exp(p.start + p.unary)
    start = np.array([4.0, 2.0]) / 6
    table = np.array([[2.5, 0.5], [0.5, 1.5], [0.5, 0.5]]) / np.array([3.5, 2.5])
    np.testing.assert_allclose(joint, start * table, rtol=1e-12)
    np.testing.assert_allclose(np.exp(p.end), [3 / 8, 3 / 7], rtol=1e-12)


def test_temper_is_an_exponent_of_the_features_only():
    weak, strong = (HMM(templates=["word"], temper=t).fit(X, Y) for t in (1e-9, 1.0))
    flat = weak.log_potentials([["w1"]])
    np.testing.assert_allclose(flat.unary, 0, atol=1e-6)
    one = strong.log_potentials([["w1"]])
    np.testing.assert_allclose(one.end, flat.end, atol=1e-6)


def test_soft_counts_train_as_hard_ones_do():
    hard = HMM(templates=["word"]).fit(X, Y, weight=[0.5] * len(X))
    features = hard.features_.transform(Text.of(X))
    codes = hard.codec_.encode(Y).codes
    n, j = hard.features_.n_features, len(hard.codec_.tags)
    one = Targets.of_codes(features, n, codes, j, np.full(len(X), 0.25))
    soft = HMM(templates=["word"])
    soft.codec_, soft.features_ = hard.codec_, hard.features_
    soft.fit_targets(features, one.add(one))
    np.testing.assert_allclose(soft.weights_.vector, hard.weights_.vector, atol=1e-12)


def test_negative_features_are_refused():
    with pytest.raises(InputError, match="negative"):
        HMM().fit([[{"f": -1.0}]], [["O"]])
