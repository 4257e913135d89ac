"""What known items teach: which spans are right, which types the crowd confuses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from goldspan import aggregate, read_crowd
from goldspan.aggregation import truth
from goldspan.aggregation.truth import LEAST_SPANS, Correction, Seen, learn, learn_types
from goldspan.crowd import Crowd
from goldspan.spans import Tagged

TOKENS = 6


def seen(rng: np.random.Generator, n: int, useful: float) -> Seen:
    """Spans of which a feature says more than their log-odds, or nothing."""
    rows = np.zeros((n, 4), np.int64)
    rows[:, 0] = np.arange(n) // 5
    feature, odds = rng.normal(size=n), rng.normal(size=n)
    is_right = rng.random(n) < expit(odds + useful * feature)
    features = np.column_stack([np.zeros(n), feature])
    return Seen(rows, odds, features, is_right, rows[:, 0], int(is_right.sum()))


def test_a_feature_that_helps_is_learned_with_its_weight():
    found = learn(seen(np.random.default_rng(0), 2_000, useful=1.5))
    assert found is not None
    assert found.weights is not None
    assert found.weights[-1] == pytest.approx(1.5, abs=0.3)


def test_noise_is_hardly_ever_taken_for_help():
    found = [learn(seen(np.random.default_rng(seed), 300, useful=0.0)) for seed in range(40)]
    assert sum(one is not None and one.weights is not None for one in found) <= 2


def test_few_spans_teach_nothing():
    few = seen(np.random.default_rng(0), 30, useful=9.0)
    assert few.n_true < LEAST_SPANS
    assert learn(few) is None


def test_the_choice_keeps_the_expected_number_of_spans_where_the_level_is_not_clear():
    own = seen(np.random.default_rng(1), 500, useful=1.5)
    weights = np.array([-2.0, 0.3, 1.0, 1.5])
    found = Correction(np.zeros(3), weights, moves_level=False, sure=weights)
    is_open = np.arange(500) >= 100
    chosen = found.choose(own.odds, own.features, is_open)
    assert chosen[is_open].sum() == pytest.approx(expit(own.odds[is_open]).sum(), rel=1e-6)
    assert found.confidence(own.odds, own.features).sum() < 0.6 * chosen.sum()


def test_probabilities_that_are_far_too_high_are_lowered():
    own = seen(np.random.default_rng(2), 2_000, useful=0.0)
    found = learn(Seen(own.rows, own.odds + 3, own.features, own.is_right, own.group, own.n_true))
    assert found is not None
    assert found.moves_level
    every = np.ones(len(own.odds), np.bool_)
    sums = [f(own.odds + 3, own.features, *more).sum()
            for f, more in ((found.choose, (every,)), (found.confidence, ()))]  # fmt: skip
    assert sums == pytest.approx([own.is_right.sum()] * 2, rel=0.1)


def test_the_logistic_regression_is_at_its_maximum():
    own = seen(np.random.default_rng(3), 200, useful=1.0)
    design = np.column_stack([np.ones(200), own.features[:, 1]])
    weights = truth._logistic(own.odds, design, own.is_right, 2.0)
    slope = design.T @ (own.is_right - expit(own.odds + design @ weights))
    assert slope == pytest.approx(np.array([0.3, 2.0]) * weights, abs=1e-6)


def confusing_crowd(n_items: int) -> Crowd:
    """Three workers who read the clubs of sports reports as places."""
    rng, rows = np.random.default_rng(0), ["doc\tsent\ttoken\tgold\tw1\tw2\tw3"]
    for item in range(n_items):
        is_sport = item % 2
        for token in range(TOKENS):
            name = token == 3
            gold = ("B-ORG" if is_sport else "B-LOC") if name else "O"
            word = f"Place{rng.integers(5)}" if name else ("match" if is_sport else "visit")
            said = ["B-LOC" if name and rng.random() < 0.9 else "O" for _ in range(3)]
            rows.append("\t".join([f"d{item}", "1", word, gold, *said]))
    return read_crowd("\n".join(rows).encode())


def test_types_that_the_whole_crowd_confuses_are_learned_from_known_items():
    both, n_known = confusing_crowd(240), 80
    known = both.gold_tagged.codes.copy()
    known[n_known * TOKENS :] = -1
    item = np.arange(both.n_items)
    rows = np.stack([item, 0 * item + 3, 0 * item + 4, 0 * item], axis=1)  # all read as LOC
    is_known = item < n_known
    own, probs = rows[is_known], np.full(both.n_items, 0.9)
    given = Seen(own, np.zeros(n_known), np.zeros((n_known, 1)), own[:, 0] % 2 == 0, own[:, 0],
                 n_known)  # fmt: skip
    found = learn_types(both, given, probs[is_known], Tagged(known, both.offsets))
    assert found is not None
    new, chance, _ = found.apply(rows, probs, probs, ~is_known)
    assert (new[~is_known, 3] == item[~is_known] % 2).mean() > 0.95
    assert (new[is_known] == own).all()
    assert chance.max() <= 0.9
    (note,) = found.notes(both.tagset.types, rows[:, 3], new[:, 3], chance)
    assert note.startswith("80 spans that the crowd reads as LOC: taken for ORG")
    assert "40 of 40 such changes" in note


def test_auto_learns_from_known_items_what_no_answer_shows():
    both, n_known = confusing_crowd(120), 60
    gold = both.gold_tagged.codes.copy()
    gold[n_known * TOKENS :] = -1
    result = aggregate(both.with_gold(None), "auto", gold=both.with_gold(gold))
    true, found = both.gold_tagged.codes[n_known * TOKENS :], result.codes[n_known * TOKENS :]
    assert (found == true)[true != both.tagset.outside].mean() > 0.9  # by answers alone half
    known_notes = [note for note in result.notes if "known items" in note]
    assert known_notes, result.notes
