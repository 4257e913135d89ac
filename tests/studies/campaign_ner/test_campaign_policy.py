"""What a policy of the study asks for next."""

from __future__ import annotations

import numpy as np
import pytest

from goldspan.aggregation import aggregate
from goldspan.crowd import read_crowd
from goldspan.workers.redundancy import RevealedAnswers
from studies.campaign_ner.play import begin
from studies.campaign_ner.policy import DOUBTS, LABELS, Policy, next_share, wrong_spans


@pytest.fixture(scope="module")
def crowd(tiny):
    return read_crowd(tiny / "ner_mturk" / "crowd.tsv.gz")


@pytest.fixture(scope="module")
def revealed(crowd):
    """One answer of every sentence is known."""
    made = RevealedAnswers.of(crowd, "random", 0)
    begin(made, 1, 0)
    return made


@pytest.fixture(scope="module")
def labels(revealed):
    return aggregate(revealed.so_far(), LABELS, rounds=1, dependence=0.25)


@pytest.mark.parametrize("dependence", [0.0, 0.25, 1.0])
def test_the_shares_of_the_first_n_answers_add_up_to_what_n_are_worth(dependence):
    shares = next_share(np.arange(6), dependence)
    for n in range(1, 7):
        assert shares[:n].sum() == pytest.approx(n / (1 + (n - 1) * dependence))


def test_the_wrong_spans_are_what_a_sentence_s_alternatives_say(labels):
    found = wrong_spans(labels)
    given = {(s["item"], s["start"], s["end"], s["type"]) for s in labels.spans.to_pylist()}
    assert given  # else there is nothing to be wrong
    for item, name in enumerate(labels.crowd.item_ids.to_pylist()):
        expected = sum(
            1 - one.confidence if (name, one.start, one.end, one.type) in given else one.confidence
            for one in labels.alternatives(item)
        )
        assert found[item] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("doubt", DOUBTS)
@pytest.mark.parametrize("who", ["best", "any"])
def test_every_answer_left_has_a_promise_that_is_no_less_than_nothing(revealed, labels, doubt, who):
    prices = np.ones(len(revealed.asked), np.int64)
    rest, promised = Policy(doubt=doubt, who=who).promises(labels, revealed, prices)
    assert rest.tolist() == np.flatnonzero(revealed.asked < 0).tolist()
    assert (promised >= 0).all()
    assert (promised > 0).any()


def test_any_worker_promises_the_same_about_a_sentence_and_the_best_one_more(revealed, labels):
    prices = np.ones(len(revealed.asked), np.int64)
    rest, same = Policy(who="any").promises(labels, revealed, prices)
    _, own = Policy(who="best").promises(labels, revealed, prices)
    item = revealed.answers.item[rest]
    spread = [np.ptp(same[item == n]) for n in np.unique(item)]
    assert max(spread) == 0
    assert max(np.ptp(own[item == n]) for n in np.unique(item)) > 0


def test_a_promise_per_price_is_divided_by_the_price(revealed, labels):
    prices = np.arange(1, len(revealed.asked) + 1)
    rest, plain = Policy().promises(labels, revealed, prices)
    _, divided = Policy(per_price=True).promises(labels, revealed, prices)
    assert np.allclose(divided * prices[rest], plain)


def test_shared_mistakes_make_later_answers_worth_less(revealed, labels):
    prices = np.ones(len(revealed.asked), np.int64)
    _, plain = Policy(shared=False).promises(labels, revealed, prices)
    _, less = Policy(shared=True).promises(labels, revealed, prices)
    assert np.allclose(less, 0.6 * plain)  # all sentences have one answer


def test_asking_by_the_crowd_alone_looks_at_other_probabilities(revealed, labels):
    prices = np.ones(len(revealed.asked), np.int64)
    _, text = Policy().promises(labels, revealed, prices)
    _, crowd = Policy(by="bsc-seq").promises(labels, revealed, prices)
    assert not np.allclose(text, crowd)
