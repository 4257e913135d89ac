"""The face of both taggers: fit, predict, score, constraints, bad input, scikit-learn."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from goldspan.errors import FaultsError, InputError, NotFittedError, UnknownNameError
from goldspan.spans import Tagged
from goldspan.spans import score as span_score
from goldspan.tagger import CRF, Text
from tagger.corpora import example, random_items

X, Y = random_items(60)


@pytest.fixture
def fitted(make):
    return make().fit(X, Y)


def dicts(items):
    return [[{"w": word, "long": len(word) > 2} for word in words] for words in items]


def test_a_tagger_learns_the_example(make):
    words, tags, _ = example()
    tagger = make(templates=CRF().templates).fit(words, tags)
    assert tagger.score(words, tags) > 0.85
    assert tagger.score(words, tags) == span_score(tags, tagger.predict(words)).f1


def test_predictions_have_the_shape_of_the_input(fitted):
    words = [["w1"], [], ["w3", "w4", "never seen"]]
    assert [len(tags) for tags in fitted.predict(words)] == [1, 0, 3]
    assert [len(rows) for rows in fitted.predict_marginals(words)] == [1, 0, 3]
    assert [len(best) for best in fitted.predict_n_best(words, 2)] == [2, 1, 2]
    assert fitted.predict([]) == fitted.predict_marginals([]) == fitted.predict_n_best([]) == []


def test_what_is_predicted_is_well_formed(fitted):
    rng = np.random.default_rng(0)
    words = [[f"w{n}" for n in rng.integers(40, size=12)] for _ in range(30)]
    codec = fitted.codec_
    codes = codec.encode(fitted.predict(words))
    assert codec.mask[codes.codes[:-1], codes.codes[1:]][np.diff(codes.offsets)[0] :].any()
    for tags in fitted.predict(words):
        own = [codec.index[tag] for tag in tags]
        assert codec.start_mask[own[0]]
        assert all(codec.mask[a, b] for a, b in itertools.pairwise(own))


def test_forced_tags_are_kept_and_change_the_others(fitted):
    words = [["w1", "w2", "w3"]]
    forced = [[None, "B-B", {"I-B", "B-A"}]]
    (tags,) = fitted.predict(words, forced=forced)
    assert tags[1] == "B-B"
    assert tags[2] in {"I-B", "B-A"}
    (rows,) = fitted.predict_marginals(words, forced=forced)
    assert rows[1]["B-B"] == pytest.approx(1)
    assert rows[2]["O"] == 0
    assert fitted.predict_n_best(words, 1, forced=forced)[0][0][0] == tags


def test_contradictory_forced_tags_are_an_error(fitted):
    with pytest.raises(InputError, match="item 0: no BIO sequence agrees"):
        fitted.predict([["w1", "w2"]], forced=[["O", "I-A"]])
    soft = fitted.set_params(hard=False)
    assert soft.predict([["w1", "w2"]], forced=[["O", "I-A"]]) == [["O", "I-A"]]


def test_forcing_a_tag_unseen_at_training_is_an_error(fitted):
    with pytest.raises(FaultsError, match="B-C"):
        fitted.predict([["w1"]], forced=[["B-C"]])


def test_scoring_types_unseen_at_training_counts_them_as_missed(fitted):
    predicted = fitted.predict([["w1"], ["w2", "w9"]])
    truth = [["B-C"], predicted[1]]
    assert (
        fitted.score([["w1"], ["w2", "w9"]], truth)
        == span_score(truth, predicted, encoding="BIO").f1
    )


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        ([["O"], ["O", None]], "item 1: to be scored"),
        ([["O"], [{"O", "B-A"}, "O"]], "item 1: to be scored"),
        (["O", ["O", "O"]], "list of tag lists"),
        ([["O"], ["O"]], "different numbers"),
        ([["O"]], "different numbers"),
    ],
)
def test_truth_that_cannot_be_scored_is_refused(fitted, truth, message):
    words = [["w1"], ["w2", "w9"]]
    with pytest.raises(InputError, match=message):
        fitted.score(words, truth)
    if isinstance(fitted, CRF):
        with pytest.raises(InputError, match=message):
            CRF(templates=["word"], max_iter=20).fit(X, Y, validation=(words, truth))


def test_scoring_takes_codes(fitted):
    codes = fitted.encode(Y)
    assert fitted.score(X, codes) == fitted.score(X, Y)
    assert isinstance(codes, Tagged)


def test_one_label_only_is_learnt(make):
    tagger = make().fit([["a", "b"], ["c"]], [["O", "O"], ["O"]])
    assert tagger.predict([["a", "z"]]) == [["O", "O"]]
    assert tagger.predict_n_best([["a"]], 5) == [[(["O"], 1.0)]]
    assert tagger.score([["a"]], [["O"]]) == span_score([["O"]], [["O"]]).f1


def test_plain_labels_are_scored_by_accuracy(make):
    words = [["good", "film"], ["bad", "film"]] * 5
    labels = [["pos", "neutral"], ["neg", "neutral"]] * 5
    tagger = make(templates=["word"], encoding="PLAIN").fit(words, labels)
    assert tagger.score(words, labels) == 1.0
    assert tagger.score(words[:1], [["neg", "neutral"]]) == 0.5


@pytest.mark.parametrize(
    ("words", "tags", "message"),
    [
        ([], [], "the training set is empty"),
        ([[]], [[]], "the training set is empty"),
        ([["a"]], [["O"], ["O"]], "1 items of words, but 2 of tags"),
        ([["a"], ["b", "c"]], [["O"], ["O"]], "item 1 has 2 words and 1 tags"),
        (["a", "b"], [["O"], ["O"]], "list of items"),
        ([["a"]], ["O"], "list of tag lists"),
        ([["a", "b"]], [[None, None]], "the training set is empty"),
        ([["a", "b"]], [["O", []]], "token 1 may have no tag"),
        ([["a", "b"], ["c"]], [["O", None]], "2 items of words, but 1 of tags"),
        ([["a"], ["b", "c"]], [[None], [None, "O", "O"]], "item 1 has 2 words and 3 tags"),
        ([["a", None]], [["O", "O"]], "one of them is None"),
        ([["a", 3]], [["O", "O"]], "words must be strings"),
        ([["a"]], [["X-PER"]], "X-PER"),
    ],
)
def test_bad_training_sets_are_refused(make, words, tags, message):
    with pytest.raises(InputError, match=message):
        make().fit(words, tags)


def test_a_template_with_a_typo_is_refused_with_the_right_name(make):
    with pytest.raises(UnknownNameError, match="did you mean 'lower'"):
        make(templates=["lowr[-1]"]).fit(X, Y)


def test_an_unfitted_tagger_says_so(make):
    with pytest.raises(NotFittedError, match="call fit"):
        make().predict(X)


def test_a_sentence_of_50000_tokens(make):
    words = [["w1", "w2", "w3", "w30", "w9"] * 10_000]
    tagger = make().fit(X, Y)
    (tags,) = tagger.predict(words)
    assert len(tags) == 50_000
    found = tagger.tag(words)
    assert np.isfinite(found.entropy).all()
    assert np.abs(found.probs.sum(axis=1) - 1).max() < 1e-9
    assert make(templates=["word"]).fit(words, [tags]).score(words, [tags]) > 0.5
    some = [[tag if n % 3 else None for n, tag in enumerate(tags)]]
    assert make(templates=["word"]).fit(words, some).score(words, [tags]) > 0.5


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_feature_that_is_no_number_is_refused_with_its_place(make, value):
    with pytest.raises(InputError, match=r"item 1 token 0: feature 'f' is (nan|inf)"):
        make().fit([[{"f": 1.0}], [{"f": value}]], [["O"], ["O"]])


def test_dictionaries_of_features_are_taken(make):
    tagger = make().fit(dicts(X), Y)
    assert tagger.score(dicts(X), Y) > 0.45
    assert tagger.predict([[{"unknown": 1}]]) in ([["O"]], [["B-A"]], [["B-B"]])
    assert tagger.predict([]) == []
    for wrong in (X, Text.of(X)):
        with pytest.raises(InputError, match="trained on dictionaries"):
            tagger.predict(wrong)


def test_dictionaries_for_a_tagger_of_words_are_refused(fitted):
    with pytest.raises(InputError, match="trained on words"):
        fitted.predict(dicts(X))


def test_cross_validation_and_grid_search_work(make):
    scores = cross_val_score(make(), X, Y, cv=3, error_score="raise")
    assert (scores > 0.2).all()
    name, values = ("c2", [0.1, 50.0]) if isinstance(make(), CRF) else ("temper", [0.5, 1e-6])
    search = GridSearchCV(make(), {name: values}, cv=2, error_score="raise").fit(X, Y)
    assert search.best_params_[name] == values[0]
    assert len(search.predict(X)) == len(X)


def test_a_clone_has_the_same_parameters_and_is_not_fitted(fitted):
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(X)


def test_parameters_are_shown_and_checked(make):
    assert "min_count=2" in repr(make(min_count=2))
    with pytest.raises(InputError, match=r"unknown parameter of .* 'c3'"):
        make().set_params(c3=1)
