"""What is labelled and where a model errs: by id, index, mask or content."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from goldspan.errors import InputError
from goldspan.selection import Features, Pool
from goldspan.selection.base import Known

POOL = Pool.of(["a b", "c", "d"])


@pytest.mark.parametrize(
    "labelled",
    [["0", "2"], {"0", "2"}, [0, 2], (2, 0), np.array([0, 2]), np.array([True, False, True])],
    ids=["strings", "set", "integers", "tuple", "array", "mask"],
)
def test_labelled_items_are_found_however_they_are_given(labelled):
    assert Known.of(POOL, labelled).is_labelled.tolist() == [True, False, True]


def test_labelled_items_with_content_may_lie_outside_the_pool(root):
    crowd = goldspan.read_crowd(root / "examples" / "crowd.tsv")
    pool = Pool.of(crowd.select_items(np.arange(10)))
    known = Known.of(pool, crowd.select_items(np.array([3, 20])))
    assert np.flatnonzero(known.is_labelled).tolist() == [3]
    assert known.others.item_ids.to_pylist() == [crowd.item_ids[20].as_py()]
    names, rows = known.rows(pool, (f := Features.fit(pool)).transform(pool), f)
    assert (known.count, len(names), rows.n_items) == (2, 2, 2)


def test_the_same_id_for_other_words_is_refused():
    with pytest.raises(InputError, match="item 0 has other words"):
        Known.of(POOL, Pool.of([["x"]]))


@pytest.mark.parametrize(
    ("labelled", "words"),
    [
        (["0", "9", "8"], "labelled item '9' and 1 more is not in the pool"),
        ([3], r"indexes in 0 … 2"),
        (np.array([True]), r"indexes in 0 … 2"),
        (np.array([0.5]), r"indexes in 0 … 2"),
    ],
)
def test_labelled_items_that_are_not_there_are_refused(labelled, words):
    with pytest.raises(InputError, match=words):
        Known.of(POOL, labelled)


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        ({"1": 1.0}, "item 1 is not labelled"),
        ({"0": 1.5}, r"lies in 0 … 1"),
        ({"0": "x"}, "must be a number"),
        ("0", "ids, or shares by id"),
        (3, "ids, or shares by id"),
    ],
)
def test_faulty_errors_are_refused(errors, words):
    with pytest.raises(InputError, match=words):
        Known.of(POOL, ["0"], errors)


def test_error_rates_are_smoothed_towards_the_mean():
    features = Features.fit(POOL, templates=["lower"])
    known = Known.of(POOL, ["0", "1"], {"0": 1.0})
    names, rows = known.rows(POOL, features.transform(POOL), features)
    rate, mean = known.error_rates(names, rows, strength=3.0)
    assert mean == 0.5
    found = {features.name(v): rate[v] for v in range(features.n_values)}
    assert found == pytest.approx(
        {"lower=a": 2.5 / 4, "lower=b": 2.5 / 4, "lower=c": 1.5 / 4, "lower=d": 0.5}
    )
