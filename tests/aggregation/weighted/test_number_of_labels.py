"""L of the weighted majority votes: the labels that workers choose from, given or counted."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import goldspan
from aggregation.weighted import dense
from goldspan.workers import Reliability

BOTH = pytest.mark.parametrize("method", ["wmv-linear", "wmv-log"])
UNANIMOUS = b"task,worker,label\n1,a,y\n1,b,y\n1,c,y\n2,a,x\n2,b,x\n"
SPANS = b"token\ta\tb\nRome\tB-X\tO\nis\tO\tO\n"


def weights_of(result):
    return result.workers.column("weight").to_numpy()


def reliability_of(right, total, n_labels, measure="accuracy"):
    names = list("abcdefg"[: len(right)])
    return Reliability.from_counts(
        right, total, n_labels=n_labels, worker_ids=names, prior=(1, 1), measure=measure
    )


@BOTH
def test_a_unanimous_answer_of_workers_above_chance_wins_where_few_labels_occur(method):
    crowd = goldspan.read_crowd(UNANIMOUS)
    result = goldspan.aggregate(crowd, method, reliability=reliability_of([9] * 3, 20, 4))
    assert result.labels == ["y", "x"]
    assert (weights_of(result) > 0).all()
    assert "weights are for 4 labels, but the crowd has 2" in result.notes


def test_weights_are_for_the_labels_of_a_reliability():
    reliability = reliability_of([9, 2, 7], [10, 10, 12], 5)
    result = goldspan.aggregate(
        goldspan.read_crowd(UNANIMOUS), "wmv-linear", reliability=reliability
    )
    np.testing.assert_allclose(weights_of(result), 5 * reliability.mean - 1, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_labels", [3, 6])
def test_the_posterior_leaves_absent_labels_their_part(n_labels):
    labels, _ = dense.draw(1)
    shares = np.random.default_rng(1).uniform(0.1, 0.9, size=labels.shape[1])
    given = {f"w{k}": share for k, share in enumerate(shares)}
    result = goldspan.aggregate(
        dense.crowd_of(labels), "wmv-log", reliability=given, n_labels=n_labels
    )
    for row, probs in zip(labels, result.token_probs, strict=True):
        joint = np.ones(n_labels)
        for truth, k in itertools.product(range(n_labels), np.flatnonzero(row >= 0)):
            joint[truth] *= shares[k] if row[k] == truth else (1 - shares[k]) / (n_labels - 1)
        np.testing.assert_allclose(probs, (joint / joint.sum())[:3], rtol=0, atol=1e-6)


def test_a_negative_weight_speaks_for_absent_labels_too():
    crowd = goldspan.read_crowd(b"task,worker,label\n1,a,x\n1,b,y\n2,c,y\n")
    result = goldspan.aggregate(
        crowd, "wmv-linear", n_labels=4, reliability={"a": 0.15, "b": 0.5, "c": 0.25}
    )
    # L = 4: a counts -0.4, b 1 and c nothing; against x means 0.4 for y and the absent.
    np.testing.assert_allclose(result.token_probs[0], [0, 1.4 / 2.2], atol=1e-6)
    np.testing.assert_allclose(result.token_probs[1], [0.25, 0.25], atol=1e-6)


def test_far_below_chance_the_posterior_stays_finite_with_and_without_absent_labels():
    lines = "".join(f"1,w{k},x\n" for k in range(400))
    crowd = goldspan.read_crowd(f"task,worker,label\n{lines}2,w0,y\n".encode())
    bad = {f"w{k}": 0.01 for k in range(400)}
    for n_labels in (None, 3):
        result = goldspan.aggregate(
            crowd, "wmv-log", reliability=bad, n_labels=n_labels, truncation=0.01
        )
        expected = [0, 1 / ((n_labels or 2) - 1)]
        np.testing.assert_allclose(result.token_probs[0], expected, atol=1e-6)


@pytest.mark.parametrize("unit", ["token", "span"])
def test_a_reliability_by_spans_brings_its_types_and_none(unit):
    crowd = goldspan.read_crowd(SPANS, format="wide")
    reliability = reliability_of([9, 5], [20, 20], 5, "span_f1")
    result = goldspan.aggregate(crowd, "wmv-linear", reliability=reliability, unit=unit)
    np.testing.assert_allclose(weights_of(result), 5 * reliability.mean - 1, rtol=0, atol=1e-12)
    assert "weights are for 5 labels, but the crowd has 2" in result.notes


@BOTH
def test_a_mapping_and_known_truth_take_the_labels_of_the_crowd_if_not_told_otherwise(method):
    crowd = goldspan.read_crowd(UNANIMOUS)
    given = {"a": 0.6, "b": 0.7, "c": 0.8}
    for options in ({"reliability": given}, {"gold": b"task,label\n1,y\n"}):
        plain, same, more = (
            goldspan.aggregate(crowd, method, n_labels=n, **options) for n in (None, 2, 4)
        )
        np.testing.assert_array_equal(weights_of(plain), weights_of(same))
        assert not any("weights are for" in note for note in (*plain.notes, *same.notes))
        assert (weights_of(more) > weights_of(plain)).all()
        assert "weights are for 4 labels, but the crowd has 2" in more.notes


def test_a_number_of_labels_that_is_told_stands_above_that_of_the_reliability():
    reliability = reliability_of([9] * 3, 20, 4)
    crowd = goldspan.read_crowd(UNANIMOUS)
    result = goldspan.aggregate(crowd, "wmv-linear", reliability=reliability, n_labels=3)
    np.testing.assert_allclose(weights_of(result), 3 * reliability.mean - 1, rtol=0, atol=1e-12)


def test_labels_of_which_the_reliability_knows_fewer_are_noted():
    crowd = dense.crowd_of(dense.draw(0)[0])
    result = goldspan.aggregate(crowd, "wmv-log", reliability=reliability_of([9], [10], 2))
    assert "weights are for 2 labels, but the crowd has 3" in result.notes
    np.testing.assert_allclose(result.token_probs.sum(axis=1), 1, atol=1e-6)
