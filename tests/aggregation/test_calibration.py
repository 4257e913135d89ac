"""Calibration: measured as defined, mended where gold is known, labels untouched."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from goldspan.aggregation import get_aggregator
from goldspan.aggregation.calibration import at_temperature, calibrate
from goldspan.aggregation.reliability import (
    span_reliability,
    token_cross_entropy,
    token_reliability,
)
from goldspan.errors import InputError


@pytest.fixture(scope="module")
def result(crowd):
    return goldspan.aggregate(crowd, "bsc-seq")


def test_measures_agree_with_a_direct_count(crowd, result):
    gold = crowd.gold
    given = result.codes >= 0
    probs = result.token_probs[given, gold[given]].astype(float)
    assert token_cross_entropy(result, gold) == pytest.approx(
        -np.log(np.maximum(probs, 1e-12)).mean()
    )
    assert token_reliability(result, gold).n == given.sum()
    assert span_reliability(result, gold).n == len(result.span_array)


def test_calibrating_leaves_the_labels_and_lowers_the_cross_entropy(crowd, result):
    mended = calibrate(result, crowd)
    np.testing.assert_array_equal(mended.codes, result.codes)
    assert token_cross_entropy(mended) < token_cross_entropy(result)
    assert span_reliability(mended).ece < span_reliability(result).ece
    assert any("calibrated on" in note for note in mended.notes)


def test_alternatives_are_calibrated_like_the_spans(crowd, result):
    mended = calibrate(result, crowd)
    item = mended.spans.column("item")[0].as_py()
    known = {(a.start, a.end, a.type): a.confidence for a in mended.alternatives(item, 1e-4)}
    span = mended.spans.slice(0, 1).to_pylist()[0]
    assert known[span["start"], span["end"], span["type"]] == pytest.approx(
        span["confidence"], abs=1e-6
    )


def test_temperature_one_changes_nothing_and_a_high_one_doubts_everything(result):
    same = at_temperature(result, 1.0)
    np.testing.assert_allclose(same.token_probs, result.token_probs, atol=1e-6)
    np.testing.assert_allclose(same.span_confidence, result.span_confidence, atol=1e-6)
    hot = at_temperature(result, 50.0)
    assert hot.confidence.mean() < 0.5 * result.confidence.mean()
    assert hot.entropy.mean() > result.entropy.mean()


@pytest.mark.parametrize("temperature", [0, -1, float("nan"), float("inf")])
def test_a_temperature_that_is_none_is_refused(result, temperature):
    with pytest.raises(InputError, match="positive"):
        at_temperature(result, temperature)


def test_too_little_gold_is_refused_and_votes_have_no_temperature(crowd, result):
    few = np.full(crowd.n_tokens, -1, np.int16)
    few[:50] = crowd.gold[:50]
    with pytest.raises(InputError, match="at least 100"):
        calibrate(result, few)
    with pytest.raises(InputError, match="codes"):
        calibrate(result, few[:10])
    votes = goldspan.aggregate(crowd, "mv-token")
    with pytest.raises(InputError, match="posterior"):
        at_temperature(votes, 2.0)


def half_known(crowd):
    """Return the gold of every other item, and which items these are."""
    known = np.arange(crowd.n_items) % 2 == 0
    return np.where(np.repeat(known, np.diff(crowd.offsets)), crowd.gold, -1).astype(
        np.int16
    ), known


@pytest.mark.parametrize("method", ["mv-token", "wawa", "ds", "bsc-seq+words"])
def test_every_method_is_better_calibrated_on_items_that_it_has_not_seen(crowd, method):
    before = goldspan.aggregate(crowd, method)
    gold, known = half_known(crowd)
    after = calibrate(before, gold)
    np.testing.assert_array_equal(after.codes, before.codes)
    unseen = crowd.select_items(np.flatnonzero(~known))
    old, new = (r.measure_confidence(unseen) for r in (before, after))
    # Few of these spans are wrong, so that the Brier score hardly moves.
    assert new.log_loss < old.log_loss
    assert new.brier < old.brier + 0.005
    assert new.cross_entropy < old.cross_entropy + 0.01


def test_votes_get_confidences_of_tokens_spans_and_items(crowd):
    votes = goldspan.aggregate(crowd, "mv-token")
    sure = calibrate(votes, crowd)
    np.testing.assert_allclose(sure.token_probs.sum(axis=1), 1, atol=1e-5)
    assert sure.confidence.min() > 0
    assert sure.confidence.max() < 1
    assert sure.params["temperature"] > 0
    assert "votes" in " ".join(sure.notes)


def test_what_is_calibrated_already_is_refused(crowd, result):
    with pytest.raises(InputError, match="already"):
        calibrate(calibrate(result, crowd), crowd)


def test_known_labels_that_fit_was_given_say_nothing_of_its_confidences(crowd):
    gold, known = half_known(crowd)
    method = get_aggregator("ds").fit(crowd.with_gold(None), gold_of(crowd, known))
    with pytest.raises(InputError, match="does not know"):
        calibrate(method.result_, gold)
    both, others = calibrate(method.result_, crowd), calibrate(method.result_, other_half(crowd))
    np.testing.assert_array_equal(both.span_confidence, others.span_confidence)
    assert "that fit was given are passed over" in both.notes[-1]
    sets = calibrate(method.result_, crowd, coverage=0.9).sets
    assert (
        sets.threshold == calibrate(method.result_, other_half(crowd), coverage=0.9).sets.threshold
    )


def gold_of(crowd, which):
    """Return the chosen items with their gold."""
    return crowd.select_items(np.flatnonzero(which))


def other_half(crowd):
    """Return the gold of the items that `half_known` leaves out."""
    gold, _ = half_known(crowd)
    return np.where(gold < 0, crowd.gold, -1).astype(np.int16)


@pytest.mark.parametrize("method", ["ds", "mv-token"])
def test_a_few_tokens_that_are_all_right_make_nothing_certain(crowd, method):
    result = goldspan.aggregate(crowd, method)
    few = np.full(crowd.n_tokens, -1, np.int16)
    few[:120] = result.codes[:120]
    assert 0.3 < calibrate(result, few).params["temperature"] < 3


def test_what_is_no_gold_is_named(result):
    with pytest.raises(InputError, match="needs known labels"):
        calibrate(result, None)
    with pytest.raises(InputError, match="between 0 and 1"):
        calibrate(result, result.crowd, coverage="0.9")


@pytest.mark.parametrize("method", ["ds", "mv-token", "wawa"])
def test_confidences_of_single_labels_are_the_same_everywhere(method):
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, 150)
    rows = [
        {"task": str(n), "worker": w, "label": f"l{t if rng.random() < 0.6 else 0}"}
        for n, t in enumerate(truth)
        for w in "abc"
    ]
    known = [{"task": str(n), "label": f"l{t}"} for n, t in enumerate(truth)]
    sure = calibrate(goldspan.aggregate(rows, method), known)
    assert "150 known items" in sure.notes[-1]
    np.testing.assert_allclose(sure.span_confidence, sure.token_confidence, atol=1e-6)
    np.testing.assert_allclose(sure.confidence, sure.token_confidence, atol=1e-6)


def test_single_labels_are_calibrated_too():
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 3, 200)
    lines = ["task,worker,label"]
    for task, true in enumerate(truth):
        # three workers who copy each other make the model too sure
        seen = true if rng.random() < 0.7 else rng.integers(0, 3)
        lines += [f"{task},{w},l{seen}" for w in "abc"]
    crowd = goldspan.read_crowd(("\n".join(lines) + "\n").encode())
    names = crowd.item_ids.to_pylist()
    gold = np.array([truth[int(name)] for name in names], np.int16)
    result = goldspan.aggregate(crowd, "ds")
    mended = calibrate(result, gold)
    assert mended.params["temperature"] > 1
    assert token_reliability(mended, gold).ece < token_reliability(result, gold).ece
