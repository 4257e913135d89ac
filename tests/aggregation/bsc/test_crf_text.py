"""BSC with a CRF inside: cross-fitted, well-formed, repeatable, with a tagger to keep."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from goldspan.aggregation import get_aggregator
from goldspan.aggregation.bsc.text import TextScores, deal
from goldspan.errors import InputError
from goldspan.spans import Tagged, find_errors
from goldspan.spans.scoring import score_codes
from goldspan.tagger.crf import Masks
from goldspan.tagger.kernels import Weights


@pytest.fixture(scope="module")
def method(crowd):
    return get_aggregator("bsc-seq+crf", rounds=3).fit(crowd)


def test_the_result_is_well_formed_with_probabilities_and_a_tagger(crowd, method):
    result = method.result_
    assert result.method == "bsc-seq+crf"
    assert not len(find_errors(Tagged(result.codes, crowd.offsets), crowd.tagset))
    np.testing.assert_allclose(result.token_probs.sum(axis=1), 1, atol=1e-5)
    assert ((result.span_confidence >= 0) & (result.span_confidence <= 1)).all()
    assert result.tagger.predict([["Council", "meets", "in", "Kestrel", "Bay"]])


def test_words_help_where_workers_are_few(crowd):
    few = crowd.answers.take(np.isin(crowd.answers.worker, [2, 3, 5]))
    thin = goldspan.crowd.Crowd(
        crowd.item_ids, crowd.tokens, crowd.worker_ids, crowd.tagset, few,
        groups=crowd.groups, gold=crowd.gold,
    )  # fmt: skip
    plain = goldspan.score(crowd, goldspan.aggregate(thin, "bsc-seq")).f1
    assert (
        goldspan.score(crowd, goldspan.aggregate(thin, "bsc-seq+crf", rounds=3)).f1 > plain - 0.02
    )


def test_new_items_are_labelled_with_the_words_of_the_tagger(crowd, method):
    found = method.predict(crowd.select_items(np.arange(20)))
    assert len(found.tags) == 20
    assert goldspan.score(crowd.select_items(np.arange(20)), found).f1 > 0.8


def test_items_that_nobody_answered_are_labelled_by_their_words(crowd):
    kept = crowd.answers.take(crowd.answers.item >= 12)
    thin = goldspan.crowd.Crowd(
        crowd.item_ids, crowd.tokens, crowd.worker_ids, crowd.tagset, kept,
        groups=crowd.groups, gold=crowd.gold,
    )  # fmt: skip
    plain = goldspan.aggregate(thin, "bsc-seq")
    assert (plain.codes[: crowd.offsets[12]] == -1).all()
    result = goldspan.aggregate(thin, "bsc-seq+crf", rounds=3)
    assert (result.codes >= 0).all()
    assert "12 items without answers are labelled by their words alone" in result.notes
    twelve = np.arange(12)
    unanswered = crowd.select_items(twelve)
    found = Tagged(result.codes[: crowd.offsets[12]], crowd.offsets[:13])
    assert score_codes(unanswered.gold_tagged, found, crowd.tagset).f1 > 0.4


def test_ctrl_c_keeps_the_rounds_that_are_done(crowd):
    seen = []

    def stop(*step):
        seen.append(step[:2])
        if step[:2] == (1, 4):
            raise KeyboardInterrupt

    method = get_aggregator("bsc-seq+crf", rounds=4).fit(crowd, progress=stop)
    assert method.result_.stop_reason == "interrupted"
    assert not method.result_.converged
    assert len(method.result_.trace) == 1
    assert seen[-1] == (1, 4)
    assert goldspan.score(crowd, method.result_).f1 > 0.9
    assert method.result_.tagger.predict([["Kestrel", "Bay"]])


def test_the_power_of_the_text_multiplies_every_score(crowd):
    rng, n = np.random.default_rng(4), len(crowd.tagset.tags)
    weights = Weights(np.zeros((0, n)), rng.normal(size=n), rng.normal(size=(n, n)), np.ones(n))
    unary, masks = rng.normal(size=(3, n)), Masks.of(crowd.tagset, hard=True)
    scores = TextScores(unary, weights, masks)
    once, twice = (scores.raised(power) for power in (1.0, 2.0))
    np.testing.assert_allclose(twice.unary, 2 * unary)
    np.testing.assert_allclose(twice.truth, once.truth**2)
    np.testing.assert_array_equal(once.truth[1:] > 0, crowd.tagset.mask)


def test_documents_stay_together_in_a_fold(crowd):
    fold = deal(crowd, 5, 0)
    groups = crowd.groups.to_pylist()
    for name in set(groups):
        assert len({f for f, g in zip(fold.tolist(), groups, strict=True) if g == name}) == 1
    assert np.bincount(fold).min() > 0


def test_one_document_is_dealt_by_items_and_one_item_is_refused(crowd):
    one = crowd.select_items(np.flatnonzero(np.array(crowd.groups.to_pylist()) == "N01"))
    assert set(deal(one, 3, 0).tolist()) == {0, 1, 2}
    with pytest.raises(InputError, match="two items"):
        goldspan.aggregate(crowd.select_items(np.arange(1)), "bsc-seq+crf")


@pytest.mark.parametrize(
    "params", [{"folds": 1}, {"rounds": 0}, {"c2": -1.0}, {"min_count": 0}, {"text_power": -1}]
)
def test_parameters_that_make_no_sense_are_refused(params):
    with pytest.raises(InputError, match=next(iter(params))):
        get_aggregator("bsc-seq+crf", **params)


def test_a_template_with_a_typo_is_refused(crowd):
    with pytest.raises(InputError, match="lowr"):
        goldspan.aggregate(crowd, "bsc-cm+crf", templates=["lowr"])
