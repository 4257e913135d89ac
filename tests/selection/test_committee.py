"""Committees: disagreement written out, and members of every sort."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import entropy
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import goldspan
from goldspan.errors import InputError
from goldspan.selection import select_items
from goldspan.tagger import CRF

A = np.array([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4]])
B = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
C = np.array([[0.9, 0.1], [0.3, 0.7], [0.1, 0.9]])


def scores(found):
    return dict(zip(found.item.tolist(), found.gain.tolist(), strict=True))


def test_votes_have_the_entropy_of_their_shares():
    found = scores(select_items(np.eye(3), "vote", model=[A, B, C]))
    assert found == pytest.approx({0: 0, 1: entropy([1 / 3, 2 / 3]), 2: entropy([1 / 3, 2 / 3])})


def test_kl_is_the_mean_divergence_from_the_average():
    found = scores(select_items(np.eye(3), "committee-kl", model=[A, B, C]))
    for item in range(3):
        each = np.array([A[item], B[item], C[item]])
        wanted = np.mean([entropy(p, each.mean(axis=0)) for p in each])
        assert found[item] == pytest.approx(wanted)


def test_members_may_be_one_array():
    both = np.stack([A, B])
    assert scores(select_items(np.eye(3), "vote", model=both)) == scores(
        select_items(np.eye(3), "vote", model=[A, B])
    )


def test_classifiers_may_know_different_labels():
    rows = np.random.default_rng(0).normal(size=(40, 2))
    first = GaussianNB().fit(rows[:20], np.repeat(["x", "y"], 10))
    second = DecisionTreeClassifier().fit(rows[:20], np.repeat(["y", "z"], 10))
    found = select_items(rows, "committee-kl", model=[first, second], n=5)
    assert (found.gain <= np.log(2) + 1e-9).all()
    assert found.gain[0] > 0.1


@pytest.fixture(scope="module")
def taggers(root):
    crowd = goldspan.read_crowd(root / "examples" / "crowd.tsv")
    tags = crowd.tagset.decode(crowd.gold_tagged)

    def train(items):
        chosen = crowd.select_items(np.array(items))
        return CRF(templates=["lower"], max_iter=8).fit(
            chosen.tokens_list, [tags[n] for n in items]
        )

    return [train(range(20)), train(range(40, 60))]


def test_taggers_disagree_by_the_mean_of_their_tokens(taggers):
    text = ["Kestrel", "Bay", "Ana", "sings"]
    found = select_items([text], "committee-kl", model=taggers)
    marginals = [tagger.predict_marginals([text])[0] for tagger in taggers]
    labels = sorted({label for one in marginals for row in one for label in row})
    total = 0.0
    for token in range(4):
        each = np.array([[one[token].get(label, 0.0) for label in labels] for one in marginals])
        total += np.mean([entropy(p, each.mean(axis=0)) for p in each])
    assert found.gain[0] == pytest.approx(total / 4)


@pytest.mark.parametrize("model", [A, [A], "ab"])
def test_one_model_is_no_committee(model):
    with pytest.raises(InputError, match="at least two models"):
        select_items(np.eye(3), "vote", model=model)


def test_taggers_and_classifiers_do_not_mix(taggers):
    with pytest.raises(InputError, match="not of both"):
        select_items(["a", "b", "c"], "vote", model=[taggers[0], A])
