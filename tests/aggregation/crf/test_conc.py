"""CRF-CONC and CRF-GOLD: plain training on many answers, and on the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import goldspan
from aggregation.bsc import oracle
from goldspan.aggregation import aggregate, get_aggregator, methods
from goldspan.aggregation.crf import CrfGold
from goldspan.errors import InputError, NotFittedError, UnknownNameError
from goldspan.spans import Codec
from goldspan.tagger import CRF

EVERY = ("crf-conc", "crf-ma", "multicrf", "multicrf-max")
every_method = pytest.mark.parametrize("method", EVERY)
FEW = ("lower", "suffix3", "is_title", "lower[-1]")
QUICK = {"templates": FEW, "max_iter": 2, "steps": 15}


@pytest.fixture(scope="module")
def alone(crowd):
    """What one worker did of it."""
    answers = crowd.latest.take(crowd.latest.worker == crowd.worker_index("ana"))
    return replace(crowd, answers=answers).select_items(np.unique(answers.item))


@pytest.mark.parametrize("method", ["crf-conc", "multicrf", "multicrf-max"])
def test_one_worker_teaches_what_his_tags_teach_a_plain_crf(alone, method):
    assert (alone.latest.codes >= 0).all()
    options = {"templates": FEW, "c2": 0.5}
    result = aggregate(alone, method, **options, steps=30, max_iter=1)
    text = goldspan.tagger.Text.of(alone.tokens_list, alone.groups.to_pylist())
    tags = [alone.answers_of(item)["ana"] for item in range(alone.n_items)]
    plain = CRF(**options, max_iter=30).fit(text, tags)
    np.testing.assert_allclose(result.tagger.weights_.vector, plain.weights_.vector, atol=1e-9)
    assert result.tags == plain.predict(text)


def test_a_sole_worker_teaches_crf_ma_the_same(alone):
    options = {"templates": FEW, "c2": 0.5, "steps": 30, "max_iter": 1}
    one, two = (aggregate(alone, method, **options) for method in ("crf-conc", "crf-ma"))
    np.testing.assert_allclose(
        one.tagger.weights_.vector, two.tagger.weights_.vector, atol=1e-9
    )  # his gamma is 1
    assert two.memory.gamma[0].max() == 1.0


def test_a_twin_is_a_worker_of_double_weight():
    codec = Codec.from_types(["X"], "BIO")
    twins = oracle.crowd_of(codec, [{0: [1, 2, 0], 1: [1, 2, 0]}, {0: [0, 1], 1: [0, 1]}])
    alone = oracle.crowd_of(codec, [{0: [1, 2, 0]}, {0: [0, 1]}])
    both = aggregate(twins, "crf-conc", c2=0.2, steps=200)
    half = aggregate(alone, "crf-conc", c2=0.1, steps=200)
    np.testing.assert_allclose(
        both.tagger.weights_.vector, half.tagger.weights_.vector, atol=1e-2
    )  # 2 L - 0.2 |w|^2 and L - 0.1 |w|^2 have the same maximum
    assert both.trace[-1] == pytest.approx(2 * half.trace[-1], rel=1e-3)


def test_the_objective_of_conc_never_falls_with_skipped_tokens(crowd):
    assert (crowd.latest.codes < 0).any()
    trace = aggregate(crowd, "crf-conc", **{**QUICK, "max_iter": 5, "tol": 0.0}).trace
    assert len(trace) == 5
    assert (np.diff(trace) > 0).all()


def test_gold_is_the_upper_bound_and_for_studies_only(crowd):
    gold = CrfGold(**QUICK).fit(crowd, crowd).result_
    assert gold.method == "crf-gold"
    assert goldspan.score(crowd, gold).f1 > 0.92
    gold = CrfGold(**QUICK, c2=5.0).fit(crowd, crowd).result_
    assert not np.array_equal(gold.codes, crowd.gold)  # its labels are the CRF's own
    assert "crf-gold" not in methods()
    with pytest.raises(UnknownNameError, match="crf-conc"):
        get_aggregator("crf-gold")


def test_gold_without_truth_is_refused(crowd):
    with pytest.raises(InputError, match="call fit"):
        CrfGold().fit(crowd)


def test_known_truth_counts_as_often_as_its_item_was_answered(crowd):
    all_known = aggregate(crowd, "crf-conc", **QUICK, gold=crowd)
    np.testing.assert_array_equal(all_known.codes, crowd.gold)
    answers = crowd.latest
    theirs = crowd.gold[crowd.token_of].astype(np.int16)
    perfect = replace(crowd, answers=replace(answers, codes=theirs))
    same = aggregate(perfect, "crf-conc", **QUICK)
    np.testing.assert_allclose(
        all_known.tagger.weights_.vector, same.tagger.weights_.vector, atol=1e-9
    )


SKIPPED = "2 skipped tokens"


@pytest.mark.parametrize(
    ("method", "note"),
    [
        ("crf-conc", f"{SKIPPED} filled in by the CRF"),
        ("crf-ma", f"{SKIPPED} filled in by the CRF"),
        ("multicrf", f"{SKIPPED} name no candidate"),
        ("multicrf-max", f"{SKIPPED} name no candidate"),
    ],
)
def test_notes_say_what_becomes_of_skipped_tokens(method, note):
    codec = Codec.from_types(["X"], "BIO")
    items = [{0: [1, 2, 0], 1: [1, -1, -1]}, {0: [0, 1], 1: [-1, -1]}]  # the last says nothing
    crowd = oracle.crowd_of(codec, items)
    notes = aggregate(crowd, method, **QUICK).notes
    assert [one for one in notes if "skipped" in one] == [note]


def test_notes_of_gold_say_nothing_of_skipped_tokens(crowd):
    assert (crowd.latest.codes < 0).any()
    notes = CrfGold(**QUICK).fit(crowd, crowd).result_.notes
    assert notes
    assert not any("skipped" in note for note in notes)


# What all four share


@every_method
def test_the_tagger_labels_new_items_and_can_be_saved(crowd, method, tmp_path):
    one = get_aggregator(method, **QUICK)
    with pytest.raises(NotFittedError, match="call fit first"):
        one.predict(crowd)
    one.fit(crowd)
    some = crowd.select_items(np.arange(10)).with_gold(None)
    bare = replace(some, answers=some.answers.take(np.arange(0)))
    found = one.predict(bare)
    assert (found.codes >= 0).all()
    assert found.params == one.get_params()
    one.result_.tagger.save(tmp_path / "tagger.goldspan")
    again = goldspan.tagger.load_tagger(tmp_path / "tagger.goldspan")
    text = goldspan.tagger.Text.of(bare.tokens_list, bare.groups.to_pylist())
    assert again.predict(text) == found.tags


@every_method
def test_a_crowd_whose_only_words_are_names_of_items_is_refused(method):
    table = b"task,worker,label\nq1,a,yes\nq1,b,no\nq2,a,no\n"
    with pytest.raises(InputError, match="a CRF learns from words"):
        aggregate(table, method)


@every_method
def test_single_labels_of_words_can_be_learned(method):
    codec = Codec.from_types(["noun", "verb"], "PLAIN")
    words = ["cats", "sleeps", "dogs", "runs", "cats", "runs"]
    answers = [{0: [n % 2], 1: [n % 2], 2: [n % 2 if n < 5 else 0]} for n in range(6)]
    crowd = oracle.crowd_of(codec, answers, tokens=[[word] for word in words])
    result = aggregate(crowd, method, c2=0.01)
    assert result.labels == ["noun", "verb"] * 3
    np.testing.assert_allclose(result.token_confidence, result.confidence, atol=1e-6)


@every_method
def test_an_encoding_with_ends_stays_well_formed(method):
    codec = Codec.from_types(["X"], "IOBES")
    items = oracle.random_items(np.random.default_rng(2), codec, n_items=8, longest=6)
    result = aggregate(oracle.crowd_of(codec, items), method, **QUICK)
    from goldspan.spans import validate

    assert not any(validate(tags, "IOBES") for tags in result.tags)


@every_method
def test_other_tags_are_refused_by_predict(crowd, method):
    one = get_aggregator(method, **QUICK).fit(crowd)
    other = oracle.crowd_of(Codec.from_types(["NEW"], "BIO"), [{0: [1, 2]}])
    with pytest.raises(InputError, match="must not have others"):
        one.predict(other)


@every_method
def test_an_earlier_result_gives_its_weights(crowd, method):
    first = aggregate(crowd, "crf-conc", **QUICK)
    cold = aggregate(crowd, method, **QUICK)
    warm = aggregate(crowd, method, **QUICK, start=first)
    assert warm.trace[0] > cold.trace[0]
