"""Wawa and zero-based skill against dense loops, and the iterative ones against crowd-kit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import goldspan
from aggregation.weighted import dense


def vote(labels, skill):
    """The first label with the largest sum; sums are rounded so that ties are ties."""
    return np.round(dense.weighted_sums(labels, skill), 9).argmax(axis=1)


def agreement(labels, codes):
    given = labels >= 0
    return ((labels == codes[:, None]) & given).sum(axis=0) / given.sum(axis=0)


def weights_of(result):
    return result.workers.column("weight").to_numpy()


@pytest.mark.parametrize("seed", range(5))
def test_wawa_weighs_workers_by_their_agreement_with_the_majority(seed):
    labels, _ = dense.draw(seed)
    result = goldspan.aggregate(dense.crowd_of(labels), "wawa")
    skill = agreement(labels, vote(labels, np.ones(labels.shape[1])))
    np.testing.assert_allclose(weights_of(result), skill, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(result.codes, vote(labels, skill))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_zero_based_skill_moves_towards_the_agreement_with_its_own_vote(seed, rate):
    labels, _ = dense.draw(seed)
    result = goldspan.aggregate(dense.crowd_of(labels), "zbs", rate=rate, max_iter=45, tol=0)
    skill, now = np.full(labels.shape[1], 1 / 3 + 1e-5), rate
    for n in range(1, len(result.trace) + 1):
        now = now / 2 if n % 20 == 0 else now
        skill = skill + now * (agreement(labels, vote(labels, skill)) - skill)
    np.testing.assert_allclose(weights_of(result), skill, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(result.codes, vote(labels, skill))
    assert len(result.trace) == 45 or result.converged


def test_zero_based_skill_converges_and_says_so():
    crowd = dense.crowd_of(dense.draw(0, n_items=300)[0])
    heard = []
    aggregator = goldspan.aggregation.get_aggregator("zbs")
    result = aggregator.fit(crowd, progress=lambda *told: heard.append(told)).result_
    assert (result.converged, result.stop_reason) == (True, "tol")
    assert result.trace[-1] <= 1e-10
    assert [told[0] for told in heard] == list(range(1, len(result.trace) + 1))
    short = goldspan.aggregate(crowd, "zbs", max_iter=1)
    assert (short.converged, short.stop_reason) == (False, "max_iter")


def peer_labels(method, crowd):
    """Labels of crowd-kit's aggregator, as codes."""
    peer = pytest.importorskip("crowdkit.aggregation.classification")
    pd = pytest.importorskip("pandas")
    answers = crowd.latest
    frame = pd.DataFrame({"task": answers.item, "worker": answers.worker, "label": answers.codes})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pandas, about the peer
        made = {"wawa": "Wawa", "zbs": "ZeroBasedSkill", "glad": "GLAD"}[method]
        options = {"zbs": {"n_iter": 25}, "glad": {"n_iter": 2}}.get(method, {})
        theirs = getattr(peer, made)(**options).fit(frame)
        if method in {"wawa", "zbs"}:  # their predict needs an older scikit-learn
            theirs = peer.MajorityVote().fit(frame, skills=theirs.skills_)
    return theirs.labels_.reindex(range(crowd.n_items)).to_numpy()


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("method", "sets"),
    [
        ("wawa", ["bluebirds", "face_sentiment", "snow_temp"]),
        ("zbs", ["snow_temp"]),
        ("glad", ["snow_temp"]),
    ],
)
def test_labels_are_those_of_crowd_kit_on_real_crowds(method, sets, data):
    """They break ties by the first label in another order and run GLAD with another optimiser."""
    for name in sets:
        crowd = goldspan.read_crowd(data / "classification" / name / "labels.csv")
        crowd = crowd.select_items(np.arange(100))  # for the peer's sake
        same = goldspan.aggregate(crowd, method).codes == peer_labels(method, crowd)
        assert same.mean() >= 0.98, name
