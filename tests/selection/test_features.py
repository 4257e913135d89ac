"""Attribute–value pairs: fitted on the pool, applied to new items, kept as JSON."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix

from goldspan.errors import InputError, UnknownNameError
from goldspan.selection import Features, Pool

ROWS = {
    "item": ["a", "b", "c", "d"],
    "age": [12.0, 27.0, None, 14.0],
    "town": ["Rome", None, "Oslo", "Rome"],
}


def names(features, pool):
    items = features.transform(pool)
    return [{features.name(int(v)) for v in items.row(n)} for n in range(items.n_items)]


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, lambda rows: Pool.of(pl.DataFrame(rows))]
)
def test_a_table_of_any_make_has_a_value_per_cell(make):
    table = make(ROWS)
    features = Features.fit(table, numeric="nearest(10)")
    assert names(features, table) == [
        {"age=10", "town=Rome"}, {"age=30"}, {"town=Oslo"}, {"age=10", "town=Rome"},
    ]  # fmt: skip
    assert Pool.of(table).item_ids.to_pylist() == ["a", "b", "c", "d"]


def test_a_missing_cell_may_be_a_value_of_its_own():
    table = pl.DataFrame(ROWS)
    features = Features.fit(table, numeric="nearest(10)", missing="value")
    assert names(features, table)[1:3] == [{"age=30", "town=?"}, {"age=?", "town=Oslo"}]
    assert features.n_values == 6


def test_new_items_have_the_values_of_the_pool_and_no_others():
    features = Features.fit(pl.DataFrame(ROWS), numeric="nearest(10)")
    new = pl.DataFrame({"age": [11.0, 55.0], "town": ["Bonn", "Oslo"]})
    assert names(features, new) == [{"age=10"}, {"town=Oslo"}]


def test_columns_may_have_rules_of_their_own():
    table = pl.DataFrame({"x": [1.0, 5.0], "y": [1.0, 5.0]})
    features = Features.fit(table, numeric="log2", discretisers={"y": "categorical"})
    assert names(features, table) == [{"x=1", "y=1"}, {"x=4", "y=5"}]


def test_a_column_may_be_left_out():
    table = pl.DataFrame({"x": [1.0, 5.0], "label": ["spam", "ham"]})
    features = Features.fit(table, numeric="log2", discretisers={"label": "skip"})
    assert names(features, table) == [{"x=1"}, {"x=4"}]


def test_an_item_has_the_features_of_its_words_once_each():
    features = Features.fit([["Rome", "rome"], ["Oslo"]], templates=["lower", "kind"])
    assert names(features, [["Rome", "rome"], ["Bonn", "Oslo"]]) == [
        {"lower=rome", "kind=title", "kind=lower"},
        {"lower=oslo", "kind=title"},
    ]


def test_a_sparse_matrix_is_taken_as_it_is():
    matrix = csr_matrix(np.eye(3))
    features = Features.fit(matrix)
    assert names(features, matrix) == [{"column 0"}, {"column 1"}, {"column 2"}]
    with pytest.raises(InputError, match="2 columns, not 3"):
        features.transform(csr_matrix(np.eye(2)))


def test_items_of_another_sort_are_refused():
    features = Features.fit([["a"]])
    with pytest.raises(InputError, match="fitted on texts"):
        features.transform(np.eye(2))
    with pytest.raises(InputError, match="columns are missing: age"):
        Features.fit(pl.DataFrame({"age": [1.0]})).transform(pl.DataFrame({"x": [1.0]}))
    with pytest.raises(InputError, match="held numbers at fit, and now holds words"):
        Features.fit(pl.DataFrame({"x": [1.0]})).transform(pl.DataFrame({"x": ["a"]}))


def test_options_that_do_not_exist_are_refused():
    with pytest.raises(UnknownNameError, match="column 'z'"):
        Features.fit(pl.DataFrame(ROWS), discretisers={"z": "log2"})
    with pytest.raises(UnknownNameError, match="missing cells"):
        Features.fit(pl.DataFrame(ROWS), missing="drop")
    with pytest.raises(InputError, match="there is no value 9"):
        Features.fit([["a"]], templates=["lower"]).name(9)
