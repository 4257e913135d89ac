"""The coverage rules: what is labelled counts, errors weigh, duplicates go, reasons are given."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from naive_greedy import matrix_of, random_items

from goldspan.errors import InputError, UnknownNameError
from goldspan.selection import Features, select_items
from goldspan.selection.schedule import get_selector

WORDS = ["lower"]


def of_words(texts):
    return Features.fit(texts, templates=WORDS)


def test_the_paper_s_rule_takes_the_most_new_pairs_whatever_the_costs():
    texts = ["a b c d", "a", "e f", "g"]
    found = get_selector("coverage-paper").select(texts, budget="6tokens", features=of_words(texts))
    assert found.item.tolist() == [0, 2]
    assert found.gain.tolist() == [4, 2]
    assert found.why == ("level 1: lower=a", "level 1: lower=e")


def test_gains_are_divided_by_costs():
    texts = ["a a a a b", "a b", "c c"]
    found = get_selector("coverage", weights="none").select(
        texts, budget="4tokens", features=of_words(texts)
    )
    assert found.item.tolist() == [1, 2]


def test_a_pair_weighs_the_logarithm_of_its_items():
    texts = ["a x", "a b", "b y", "b z"]
    found = get_selector("coverage", w=1).select(texts, features=of_words(texts))
    assert found.gain == pytest.approx([np.log(2) + np.log(3)])
    assert found.item.tolist() == [1]
    assert found.stopped == "saturated"
    assert (found.facts["values"], found.facts["covered"]) == (2, 2)


def test_labelled_items_are_not_picked_and_what_they_have_is_covered():
    texts = ["a b c", "a b", "d", "c"]
    found = get_selector("coverage-paper").select(texts, labelled=[0], features=of_words(texts))
    assert found.item.tolist() == [2]
    assert found.facts["labelled"] == 1


def test_labelled_items_outside_the_pool_count_too():
    pool = pl.DataFrame({"item": ["a", "b"], "x": ["p", "q"]})
    labelled = pl.DataFrame({"item": ["z"], "x": ["p"]})
    found = get_selector("coverage-paper").select(pool, labelled=labelled)
    assert found.item_ids == ["b"]


def test_items_with_the_same_pairs_are_one_and_the_cheapest_stays():
    texts = ["a b a b", "b a", "a b b", "c"]
    found = get_selector("coverage", weights="none", w=2).select(
        texts, features=of_words(texts), budget="99tokens"
    )
    assert found.item.tolist() == [1, 3] or found.item.tolist() == [3, 1]
    assert found.facts["duplicates"] == 2
    kept = get_selector("coverage", weights="none", w=2, duplicates=True).select(
        texts, features=of_words(texts), budget="99tokens"
    )
    assert len(kept) == 3


def test_errors_weigh_by_their_smoothed_rate():
    texts = ["a", "b", "b", "a"]
    rule = get_selector("coverage", w=2, weights="none", smoothing=2)
    found = rule.select(texts, labelled=[0, 1], errors={"0": 1.0}, features=of_words(texts))
    # a: (1 + 2 * 1/2) / (1 + 2) = 2/3 and b: (0 + 2 * 1/2) / 3 = 1/3, over the mean rate 1/2.
    assert found.item.tolist() == [3, 2]
    assert found.gain == pytest.approx([4 / 3, 2 / 3])
    assert found.level.tolist() == [2, 2]


def test_errors_may_be_what_is_to_be_covered():
    texts = ["a b", "c d", "a", "d", "e"]
    found = get_selector("coverage-paper", errors_as="target").select(
        texts, labelled=["0", "1"], errors=["0"], features=of_words(texts)
    )
    assert found.item.tolist() == [2]
    assert found.facts["values"] == 2


def test_a_model_that_is_never_wrong_changes_nothing():
    texts = ["a b", "c", "a"]
    rule, features = get_selector("coverage"), of_words(texts)
    plain = rule.select(texts, labelled=[0], features=features)
    right = rule.select(texts, labelled=[0], errors={}, features=features)
    assert plain.item.tolist() == right.item.tolist()


def test_the_order_of_the_pool_does_not_matter():
    texts = {f"t{n}": f"w{n % 7} w{n % 5} w{n % 3}" for n in range(40)}
    rows = list(texts.items())
    tables = [
        pl.DataFrame({"item": [k for k, _ in some], "x": [v for _, v in some]})
        for some in (rows, rows[::-1])
    ]
    first, second = (get_selector("coverage-paper").select(t, n=9) for t in tables)
    assert first.item_ids == second.item_ids


def test_fewer_picks_are_the_beginning_of_more():
    matrix = matrix_of(random_items(np.random.default_rng(4), 60, 20, 4))
    more = get_selector("coverage", w=3).select(matrix, n=40)
    assert set(more.level.tolist()) == {1, 2, 3}
    few = get_selector("coverage", w=3).select(matrix, n=7)
    assert few.item.tolist() == more.item.tolist()[:7]


def test_empty_texts_are_left_out():
    assert select_items([["a"], [], ["b"]], "random").item.tolist() in ([0, 2], [2, 0])


@pytest.mark.parametrize("pool", [[], [[]], pl.DataFrame({"x": []}), np.zeros((0, 2))])
@pytest.mark.parametrize("by", ["coverage", "random", "density"])
def test_a_pool_without_items_is_exhausted(pool, by):
    found = select_items(pool, by, n=3)
    assert (len(found), found.stopped) == (0, "exhausted")


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"w": 0}, "w must be a whole number"),
        ({"smoothing": 0}, "smoothing"),
        ({"duplicates": 7}, "duplicates must be True or False"),
        ({"weights": [1.0]}, "weights must be"),
        ({"weights": [-1.0, 0, 0]}, "not negative"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(params, words):
    texts = ["a b c"]
    with pytest.raises(InputError, match=words):
        get_selector("coverage", **params).select(texts, features=of_words(texts))


@pytest.mark.parametrize("param", ["order", "weights", "errors_as"])
def test_words_that_do_not_exist_are_refused(param):
    with pytest.raises(UnknownNameError, match="choose from"):
        get_selector("coverage", **{param: "x"}).select(["a"])


def test_a_selection_is_a_table():
    texts = ["a b", "c"]
    rows = get_selector("coverage-paper").select(texts, features=of_words(texts)).to_arrow()
    assert rows.to_pylist()[0] == {
        "item": "0", "rule": "coverage-paper", "level": 1, "gain": 2.0, "cost": 1,
        "why": "level 1: lower=a", "is_control": False,
    }  # fmt: skip
