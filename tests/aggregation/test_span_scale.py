"""Calibrated confidences of spans: what mistakes go with, chosen inside of what is known."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from goldspan.aggregation.bsc.posterior import scaled
from goldspan.aggregation.calibration import fit_logistic, fit_span_scale, item_features
from goldspan.spans import Tagged, find_spans
from goldspan.spans.confidence import auroc, log_loss
from goldspan.spans.corpus import SpanArray


def written(n_documents=60, *, tables, seed=0):
    """Make documents of which every third is a table, and confidences that do not see it.

    In tables a span of type A is mostly wrong if `tables`; otherwise all spans are right alike.
    """
    rng = np.random.default_rng(seed)
    lines = ["doc\titem\ttoken\tann"]
    is_table, document = [], []
    for d in range(n_documents):
        for s in range(4):
            words = ["12", "CITY", "3-1", "name"] if d % 3 == 0 else ["the", "city", "is", "name"]
            rows = zip(words, ("O", "B-A", "O", "B-B"), strict=True)
            lines += [f"d{d}\td{d}s{s}\t{word}\t{tag}" for word, tag in rows]
            lines.append("")
            is_table += [d % 3 == 0] * 2
            document += [d] * 2
    crowd = goldspan.read_crowd("\n".join(lines).encode())
    answers = crowd.latest
    spans = find_spans(Tagged(answers.codes, crowd.offsets), crowd.tagset)
    mass = rng.choice([0.6, 0.8, 0.95], len(spans))
    share = np.full(len(spans), 0.8)
    if tables:
        share[np.array(is_table) & (spans.type == 0)] = 0.1
    return crowd, spans, mass, rng.random(len(spans)) < share, np.array(document)


@pytest.mark.parametrize("seed", range(3))
def test_mistakes_that_go_with_the_form_of_the_text_are_learned(seed):
    crowd, spans, mass, right, document = written(tables=True, seed=seed)
    kept = document < 30
    scale = fit_span_scale(mass, spans, right, kept, crowd)
    sure, truth = scaled(mass, scale, spans)[~kept], right[~kept].astype(float)
    assert log_loss(sure, truth) < log_loss(mass[~kept], truth) - 0.2
    assert auroc(sure, truth) > auroc(mass[~kept], truth) + 0.15


def test_where_it_says_nothing_the_form_of_the_text_is_mostly_left_out():
    """It is taken where it seems better by a standard error, by chance one time in six."""
    taken, worse = 0, []
    for seed in range(12):
        crowd, spans, mass, right, document = written(tables=False, seed=seed)
        kept = document < 30
        scale = fit_span_scale(mass, spans, right, kept, crowd)
        sure, truth = scaled(mass, scale, spans)[~kept], right[~kept].astype(float)
        taken += int(scale.weights.any())
        worse.append(log_loss(sure, truth) - log_loss(np.full(len(sure), 0.8), truth))
    assert taken <= 4
    assert np.mean(worse) < 0.04


def test_few_documents_choose_nothing():
    crowd, spans, mass, right, document = written(tables=True)
    scale = fit_span_scale(mass, spans, right, document < 9, crowd)
    assert not scale.weights.any()


def test_features_are_counts_and_their_means_over_the_document():
    text = b"doc\titem\ttoken\tann\nd\ta\tIBM\tO\nd\ta\t3-1\tO\n\nd\tb\tI\tO\n\ne\tc\tno\tO\n"
    crowd = goldspan.read_crowd(text)
    found = item_features(crowd, crowd.document_of)
    np.testing.assert_allclose(found[:, 0], np.log([2, 1, 1]))
    np.testing.assert_allclose(found[:, 1], [0.5, 0, 0])
    np.testing.assert_allclose(found[:, 2], [0.5, 0, 0])
    np.testing.assert_allclose(found[:, 3:], [[np.log(2) / 2, 0.25, 0.25]] * 2 + [[0, 0, 0]])


def test_a_crowd_without_documents_or_words_is_fitted_too():
    spans = SpanArray(
        np.arange(120),
        np.arange(120) + 1,
        np.zeros(120, np.int16),
        np.arange(120, dtype=np.int32),
        np.zeros(120, np.int32),
    )
    lines = ["item\ttoken\tann"] + [f"i{n}\tx\tB-A\n" for n in range(120)]
    crowd = goldspan.read_crowd("\n".join(lines).encode())
    right = np.arange(120) % 4 > 0
    scale = fit_span_scale(np.full(120, 0.99), spans, right, np.ones(120, bool), crowd)
    assert scale.features.shape == (120, 0)
    assert scaled(np.full(120, 0.99), scale, spans).mean() == pytest.approx(0.75, abs=0.05)


def test_weights_count_rows():
    rng = np.random.default_rng(0)
    x = np.column_stack([np.ones(40), rng.normal(size=40), rng.normal(size=40)])
    right, times = rng.random(40) < 0.6, rng.integers(1, 4, 40)
    prior = np.array([1.0, 4.0, 3.0])
    every = np.repeat(np.arange(40), times)
    np.testing.assert_allclose(
        fit_logistic(x, right, prior, times.astype(float)),
        fit_logistic(x[every], right[every], prior),
        atol=1e-4,
    )
