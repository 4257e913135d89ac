"""What taggers refuse: faulty parameters, weights of items and tags, and numbers too large."""

from __future__ import annotations

import numpy as np
import pytest

from goldspan.errors import InputError
from goldspan.params import Number, Whole, require
from goldspan.tagger import CRF, HMM
from tagger.corpora import random_items

X, Y = random_items(20)
WORDS, TAGS = [["Rome", "wins"], ["Kim", "Lee"]], [["B-LOC", "O"], ["B-PER", "I-PER"]]
BOTH = pytest.mark.parametrize("tagger", [CRF(max_iter=5), HMM()], ids=["crf", "hmm"])


@pytest.mark.parametrize("value", [1, 3, np.int32(2)])
def test_whole_numbers_in_range_pass(value):
    require("steps", value, Whole(1, 3))


@pytest.mark.parametrize("value", [0, 4, 2.0, "2", True, np.True_, None, np.nan])
def test_other_values_are_no_whole_numbers(value):
    with pytest.raises(
        InputError, match=r"^steps must be a whole number of at least 1 and at most"
    ):
        require("steps", value, Whole(1, 3))


@pytest.mark.parametrize("value", [0.5, 1, np.float32(1.5), np.int64(2), 2.0])
def test_numbers_in_range_pass(value):
    require("temper", value, Number(0.5, 2))


@pytest.mark.parametrize("value", [0.4, 2.1, "1", True, None, np.nan, np.inf, 1j])
def test_other_values_are_no_numbers(value):
    with pytest.raises(
        InputError, match=r"^temper must be a number of at least 0\.5 and at most 2"
    ):
        require("temper", value, Number(0.5, 2))


def test_an_open_range_leaves_out_its_end_and_no_range_holds_infinity():
    require("temper", 1e-9, Number(above=0))
    with pytest.raises(InputError, match=r"^temper must be a number above 0, not 0\.0$"):
        require("temper", 0.0, Number(above=0))
    for value in (np.inf, 10**400):
        with pytest.raises(InputError, match=r"^tol must be a number of at least 0, not"):
            require("tol", value, Number(0))


FAULTY = {
    CRF: {
        "c2": ("a", True, -1.0, np.nan, 1e300),
        "tol": ("a", -1.0, np.nan, np.inf),
        "max_iter": (0, 2.5, "9", True),
        "patience": (0, 1.5),
        "min_count": (0, 1.5, "1"),
    },
    HMM: {
        "tol": (-1, "a", np.nan),
        "max_iter": (0, 2.5),
        "nu": (0, "a", 1e-300, 1e300),
        "alpha": (0, True, 1e300),
        "temper": (0, 1.1, "a"),
    },
}


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [(k, n, v) for k, names in FAULTY.items() for n, values in names.items() for v in values],
)
def test_a_faulty_parameter_is_named_at_fit_with_what_is_allowed(kind, name, value):
    tagger = kind(**{name: value})
    with pytest.raises(InputError, match=rf"^{name} must be a (whole )?number .*\d, not "):
        tagger.fit(WORDS, TAGS)


@pytest.mark.parametrize("tagger", [CRF(c2=-1.0), HMM(tol=-1)], ids=repr)
def test_parameters_are_checked_for_soft_targets_too(tagger):
    features, targets = CRF()._prepare(WORDS, TAGS, None)
    with pytest.raises(InputError, match="must be a number of at least 0"):
        tagger.fit_targets(features, targets)


@BOTH
@pytest.mark.parametrize(
    "weight",
    [["a"] * 2, ["1", "2"], [1.0], [1.0, -1.0], [1.0, np.nan], [1e308] * 2, [[1], [1, 2]], [1j, 1]],
    ids=repr,
)
def test_weights_that_are_none_are_refused(tagger, weight):
    with pytest.raises(InputError, match=r"^weight must be 2 numbers of at least 0 and at most 1e"):
        tagger.fit(WORDS, TAGS, weight=weight)


@BOTH
@pytest.mark.parametrize(
    ("words", "tags", "weight"),
    [
        (WORDS, TAGS, [0, 0]),
        ([*WORDS, []], [*TAGS, []], [0, 0, 1]),
        (WORDS, [TAGS[0], [None, None]], [0, 1]),
    ],
    ids=["all", "but an empty item", "but an unknown item"],
)
def test_tags_must_weigh_something(tagger, words, tags, weight):
    with pytest.raises(InputError, match=r"^weight: every item with tags weighs 0"):
        tagger.fit(words, tags, weight=weight)


@BOTH
@pytest.mark.parametrize(
    ("forced", "message"),
    [
        ([["O", None], None], "item 1: expected a list of tags, one per token; got None"),
        ([["O", None], "OO"], "got a string for an item"),
        ([["O", None], ["O", 3]], "item 1 token 1: expected a tag, several .* or None; got 3"),
        ([["O", {None}], ["O", "O"]], "item 0 token 1: expected a tag"),
        (5, "expected a list of tag lists, one per item; got 5"),
    ],
)
def test_forced_tags_that_are_none_are_refused(tagger, forced, message):
    fitted = tagger.fit(WORDS, TAGS)
    for ask in (fitted.predict, fitted.predict_marginals, fitted.predict_n_best):
        with pytest.raises(InputError, match=message):
            ask(WORDS, forced=forced)


@BOTH
def test_tags_that_are_none_are_refused_at_training_and_scoring(tagger):
    for tags in ([TAGS[0], None], [TAGS[0], ["O", 3]], 7):
        with pytest.raises(InputError, match="expected a"):
            tagger.fit(WORDS, tags)
    fitted = tagger.fit(WORDS, TAGS)
    for tags in ([TAGS[0], None], [TAGS[0], ["O", 3]], 7):
        with pytest.raises(InputError, match="expected a"):
            fitted.score(WORDS, tags)


@pytest.mark.parametrize("n", [0, 1.5, "2"])
def test_the_number_of_best_sequences_must_be_whole(n):
    with pytest.raises(InputError, match=r"^n must be a whole number of at least 1"):
        HMM().fit(WORDS, TAGS).predict_n_best(WORDS, n)


@pytest.mark.parametrize("options", [{"c2": 1e12}, {"c2": 0.0, "max_iter": 20}, {}], ids=repr)
@pytest.mark.parametrize("weight", [1e-300, 1.0, 1e12])
def test_all_that_is_allowed_stays_finite(options, weight):
    crf = CRF(templates=["word"], **options).fit(X, Y, weight=[weight] * len(X))
    assert np.isfinite(crf.trace_).all()
    assert np.isfinite(crf.weights_.vector).all()
    hmm = HMM(nu=1e-100, alpha=1e12).fit(X, Y, weight=[weight] * len(X))
    assert np.isfinite(hmm.weights_.vector).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e200, 1e308])
def test_features_too_large_for_a_finite_objective_are_refused_without_a_warning(size):
    with pytest.raises(InputError, match="the objective is not finite at the start"):
        CRF().fit([[{"a": size}], [{"a": -size}]], [["B-X"], ["O"]])


@pytest.mark.parametrize("options", [{}, {"bias": False}, {"tol": 0.0}], ids=repr)
def test_one_label_alone_is_learned_at_once(options):
    crf = CRF(**options).fit([["a", "b"], ["c"]] * 3, [["O", "O"], ["O"]] * 3)
    assert (crf.trace_, crf.stop_reason_, crf.converged_) == ((0.0,), "tol", True)
    assert crf.predict([["a"]]) == [["O"]]
