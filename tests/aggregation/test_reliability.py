"""The numbers of calibration against direct computations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

import goldspan
from goldspan.aggregation.reliability import reliability
from goldspan.errors import InputError
from goldspan.report import span_reliability, token_cross_entropy, token_reliability


@pytest.fixture(scope="module")
def model(crowd):
    return goldspan.aggregate(crowd, "bsc-seq")


@pytest.fixture
def labels():
    return goldspan.read_crowd(
        b"task,worker,label\nq1,ann,x\nq1,bob,x\nq1,cem,x\nq2,ann,x\nq2,bob,x\nq2,cem,y\nq3,dan,?\n"
    )


PAIRS = st.lists(st.tuples(st.integers(0, 1000), st.booleans()), min_size=1, max_size=60)


def _ece(pairs, n_bins):
    """Sum over the bins (k / n, (k + 1) / n] of |sum of confidence - number right| / n."""
    total = 0.0
    for k in range(n_bins):
        inside = [
            (thousandths / 1000, right)
            for thousandths, right in pairs
            if 1000 * k < thousandths * n_bins <= 1000 * (k + 1) or (k == thousandths == 0)
        ]
        total += abs(sum(p for p, _ in inside) - sum(right for _, right in inside))
    return total / len(pairs)


@given(PAIRS, st.sampled_from([1, 4, 10, 15]))
def test_the_calibration_error_is_the_mean_gap_of_the_bins(pairs, n_bins):
    confidence = np.array([p / 1000 for p, _ in pairs], np.float32)
    found = reliability(confidence, [right for _, right in pairs], n_bins)
    assert found.ece == pytest.approx(_ece(pairs, n_bins), abs=1e-6)
    assert found.n == len(pairs)
    assert found.mean_confidence == pytest.approx(confidence.mean(dtype=float), abs=1e-6)
    assert found.mean_right == pytest.approx(np.mean([right for _, right in pairs]))


def test_the_intervals_are_those_of_a_beta_with_jeffreys_prior():
    found = reliability([0.75] * 10, [True] * 7 + [False] * 3)
    assert found.low[7] == pytest.approx(beta.ppf(0.025, 7.5, 3.5))
    assert found.high[7] == pytest.approx(beta.ppf(0.975, 7.5, 3.5))
    assert np.isnan(np.delete(found.low, 7)).all()


def test_what_was_drawn_with_its_confidence_is_calibrated():
    rng = np.random.default_rng(3)
    confidence = rng.uniform(size=200_000)
    assert reliability(confidence, rng.uniform(size=200_000) < confidence).ece < 0.006
    assert reliability(confidence, rng.uniform(size=200_000) < confidence**2).ece > 0.1


def test_nothing_has_no_calibration():
    found = reliability([], [])
    assert found.n == 0
    assert np.isnan([found.ece, found.mean_confidence, found.mean_right]).all()


def test_tokens_and_spans_are_those_of_the_gold(model, crowd):
    tokens, spans = token_reliability(model), span_reliability(model)
    assert tokens.mean_right == pytest.approx(goldspan.score(crowd, model).accuracy)
    assert spans.mean_right == pytest.approx(goldspan.score(crowd, model).micro.precision)
    assert spans.n == len(model.span_array)
    right = model.codes == crowd.gold
    pairs = zip(np.round(1000 * model.token_confidence), right, strict=True)
    assert tokens.ece == pytest.approx(_ece([(int(p), r) for p, r in pairs], 10), abs=1e-3)


def test_the_cross_entropy_is_the_mean_surprise_of_the_gold(model, crowd):
    probs = [float(model.token_probs[n, label]) for n, label in enumerate(crowd.gold)]
    expected = -np.mean(np.log(np.maximum(probs, 1e-12)))
    assert token_cross_entropy(model) == pytest.approx(expected)


def test_a_share_of_zero_costs_much_but_not_everything(labels):
    votes = goldspan.aggregate(labels, "mv-token")
    gold = np.array([labels.tagset.tags.index("y"), -1, -1], np.int16)
    assert token_cross_entropy(votes, gold) == pytest.approx(-np.log(1e-12))


def test_tokens_without_gold_and_open_ones_do_not_count(labels):
    votes = goldspan.aggregate(labels, "mv-token")
    assert token_reliability(votes, np.array([0, -1, 0], np.int16)).n == 1
    assert span_reliability(votes, np.array([0, -1, 0], np.int16)).n == 0
    assert np.isnan(token_cross_entropy(votes, np.full(3, -1, np.int16)))


def test_spans_with_unknown_gold_do_not_count(model, crowd):
    gold = crowd.gold.copy()
    first = model.span_array.start[0]
    gold[first] = -1
    assert span_reliability(model, gold).n == len(model.span_array) - 1


def test_without_gold_the_argument_is_named(model, crowd):
    bare = replace(model, crowd=crowd.with_gold(None))
    for numbers in (token_reliability, span_reliability, token_cross_entropy):
        with pytest.raises(InputError, match="gold="):
            numbers(bare)
        assert numbers(bare, crowd.gold) is not None


def test_gold_of_another_crowd_is_refused(model):
    with pytest.raises(InputError, match="gold has 3 tokens, the result 2599"):
        token_reliability(model, np.zeros(3, np.int16))
