"""Mixtures of posteriors: against sums by hand."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from goldspan.aggregation.bsc.posterior import consensus_of
from goldspan.aggregation.mixture import CERTAIN, Mixture, posterior_of_labels
from goldspan.protocols import Serial

CROWD = (
    b"token\ta\tb\tc\n"
    b"Ann\tB-PER\tB-PER\tO\nLee\tI-PER\tO\tO\nsaw\tO\tO\tO\nRome\tB-LOC\tO\tB-LOC\n\n"
    b"Rome\tB-LOC\tB-LOC\tB-PER\nwins\tO\tO\tO\n"
)


@pytest.fixture(scope="module")
def crowd():
    return goldspan.read_crowd(CROWD, format="wide")


@pytest.fixture(scope="module")
def parts(crowd):
    return [goldspan.aggregate(crowd, name).posterior for name in ("bsc-seq", "bsc-cm", "ds")]


def test_probabilities_and_spans_are_weighted_means(crowd, parts):
    weights = np.array([0.5, 0.3, 0.2])
    mixture = Mixture(parts, weights, crowd.tagset)
    found = mixture.marginals(0.05)
    expected = sum(w * p.marginals(0.0).probs for w, p in zip(weights, parts, strict=True))
    assert np.allclose(found.probs, expected, atol=1e-6)
    masses = {}
    for weight, part in zip(weights, parts, strict=True):
        own = part.marginals(1e-9)
        for *key, mass in zip(own.item, own.begin, own.stop, own.kind, own.mass, strict=True):
            masses[tuple(map(int, key))] = masses.get(tuple(map(int, key)), 0) + weight * mass
    spans = zip(found.item, found.begin, found.stop, found.kind, strict=True)
    listed = {tuple(map(int, key)): m for key, m in zip(spans, found.mass, strict=True)}
    assert set(listed) == {key for key, mass in masses.items() if mass >= 0.05}
    for key, mass in listed.items():
        assert mass == pytest.approx(masses[key], abs=0.02)


def test_a_result_of_a_mixture_has_the_confidences_of_its_spans(crowd, parts):
    weights = np.array([0.5, 0.3, 0.2])
    result = consensus_of(crowd, Mixture(parts, weights, crowd.tagset), decode="mbr", method="m")
    assert len(result.spans)
    for n, row in enumerate(result.spans.to_pylist()):
        item = crowd.item_index(row["item"])
        by_part = [
            {one[:3]: one.confidence for one in part.alternatives(item, 1e-9)} for part in parts
        ]
        key = (row["start"], row["end"], row["type"])
        mean = sum(w * one.get(key, 0.0) for w, one in zip(weights, by_part, strict=True))
        assert result.span_confidence[n] == pytest.approx(mean, abs=1e-5)
        best = {one[:3]: one.confidence for one in result.alternatives(item)}
        assert best[key] == pytest.approx(mean, abs=1e-5)


def test_on_every_item_the_parts_that_know_it_share_the_weight(crowd, parts):
    here, there = np.array([True, False]), np.array([True, True])
    own = [parts[0].of_items(here), parts[1].of_items(there), parts[2].of_items(there)]
    mixture = Mixture(own, np.array([0.4, 0.4, 0.2]), crowd.tagset)
    assert np.allclose(mixture.shares.T, [[0.4, 0.4, 0.2], [0, 2 / 3, 1 / 3]])
    result = consensus_of(crowd, mixture, decode="mbr", method="m")
    assert result.token_probs.sum(axis=1) == pytest.approx(1)
    rows = result.spans.to_pylist()
    assert {crowd.item_index(row["item"]) for row in rows} == {0, 1}
    for n, row in enumerate(rows):
        item, key = crowd.item_index(row["item"]), (row["start"], row["end"], row["type"])
        listed = {one[:3]: one.confidence for one in mixture.alternatives(item, 1e-9)}
        assert result.span_confidence[n] == pytest.approx(listed[key], abs=1e-5)
    # Parts of less than half of the weight do not label what the others do not know.
    few = Mixture(own[:2], np.array([0.6, 0.4]), crowd.tagset).marginals()
    assert (few.codes[: crowd.offsets[1]] >= 0).all()
    assert (few.codes[crowd.offsets[1] :] == -1).all()


def test_labels_as_a_posterior_are_believed_and_legal(crowd):
    codes = goldspan.aggregate(crowd, "mv-token").codes
    posterior = posterior_of_labels(crowd, codes, Serial())
    found = posterior.marginals()
    assert found.codes.tolist() == codes.tolist()
    own = found.probs[np.arange(len(codes)), codes]
    assert (own > CERTAIN - 0.05).all()


def test_a_temperature_takes_all_evidence_to_a_power(parts):
    warm = parts[0].cooled(2.0)
    assert parts[0].cooled(1) is parts[0]
    assert warm.marginals(np.inf).entropy.sum() > parts[0].marginals(np.inf).entropy.sum()
    # The likeliest path stays, as all scores are halved.
    assert warm.marginals(np.inf).codes.tolist() == parts[0].marginals(np.inf).codes.tolist()
