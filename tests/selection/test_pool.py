"""Pools of every make, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix

import goldspan
from goldspan import _arrays
from goldspan._arrays import keys_of
from goldspan.crowd.formats.texts import Row, of_rows
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source
from goldspan.errors import Fault, InputError
from goldspan.selection import Pool, pool
from goldspan.selection.pool import OnDemand, Places
from goldspan.tagger import Text

TEXTS = ["Rome is old .", "So is Athens"]
WORDS = [text.split() for text in TEXTS]


@pytest.mark.parametrize("pool", [TEXTS, WORDS, Text.of(WORDS), tuple(TEXTS)])
def test_texts_of_every_make_have_their_tokens(pool):
    made = Pool.of(pool)
    assert made.n_tokens.tolist() == [4, 3]
    assert made.words(1) == ["So", "is", "Athens"]
    assert made.item_ids.to_pylist() == ["0", "1"]
    assert made.rows(np.array([1, 0])) == TEXTS[::-1]


def test_single_labels_without_words_are_refused():
    crowd = goldspan.read_crowd(b"task,worker,label\nq1,a,yes\nq2,b,no\n")
    with pytest.raises(InputError, match="have no words, only names"):
        Pool.of(crowd)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_table_has_numbers_and_words_by_column(make):
    made = Pool.of(make({"id": [7, 8], "n": [1, 2], "s": ["x", None]}))
    assert made.item_ids.to_pylist() == ["7", "8"]
    assert made.columns["n"].tolist() == [1.0, 2.0]
    assert made.columns["s"].to_pylist() == ["x", None]


def test_cells_may_be_of_any_type():
    objects = pd.DataFrame({"o": ["a", 1, None], "c": pd.Categorical(["x", None, "y"])})
    made = Pool.of(objects)
    assert made.columns["o"].to_pylist() == ["a", "1", None]
    assert made.columns["c"].to_pylist() == ["x", None, "y"]
    ints = Pool.of(pd.DataFrame({"n": pd.array([1, None], "Int64"), "b": [True, False]}))
    assert np.isnan(ints.columns["n"][1])
    assert ints.columns["b"].to_pylist() == ["true", "false"]


def test_classifiers_get_the_rows_that_were_given():
    frame = pd.DataFrame({"id": ["a", "b", "c"], "n": [1, 2, 3]})
    assert Pool.of(frame).rows(np.array([2, 0]))["n"].tolist() == [3, 1]
    assert Pool.of(np.arange(6.0).reshape(3, 2)).rows(np.array([1])).tolist() == [[2.0, 3.0]]
    assert Pool.of(csr_matrix(np.eye(3))).rows(np.array([2])).toarray().tolist() == [[0, 0, 1]]


def test_a_part_has_the_same_items(root):
    made = Pool.of(goldspan.read_crowd(root / "examples" / "crowd.tsv"))
    part = made.part(np.array([4, 2]))
    assert [part.words(0), part.words(1)] == [made.words(4), made.words(2)]
    table = Pool.of(pl.DataFrame({"n": [1, 2, 3], "s": ["x", "y", "z"]})).part(np.array([2]))
    assert (table.columns["n"].tolist(), table.columns["s"].to_pylist()) == ([3.0], ["z"])


@pytest.mark.parametrize(
    ("pool", "words"),
    [
        (pl.DataFrame({"id": ["a", "a"], "n": [1, 2]}), "item a appears in the pool twice"),
        ("text", "not str"),
        ({"a": 1}, "not dict"),
        (7, "not int"),
        (["a", ["b"]], "all of one sort"),
        ([1, 2], "all of one sort"),
        (np.zeros(3), "a row per item"),
        (np.array([["a"]]), "a row per item"),
        (np.array([[np.inf]]), "column 0, row 0: a number must be finite"),
        (pl.DataFrame({"n": [1.0, float("inf")]}), "column n, row 1"),
        (pl.DataFrame({"item": ["a", None]}), "column item, row 1: an item has no id"),
    ],
    ids=str,
)
def test_what_is_no_pool_is_refused(pool, words):
    with pytest.raises(InputError, match=words):
        Pool.of(pool)


@pytest.mark.parametrize("hashed", [None, lambda _: 0, len])
def test_every_item_is_found_by_its_id_though_hashes_meet(hashed, monkeypatch):
    if hashed is not None:
        for module in (_arrays, pool):
            monkeypatch.setattr(module, "hash64", hashed)
    ids = pa.array([f"s{n}" for n in range(30)])
    places = Places(ids, keys_of(ids))
    assert {name: places[name] for name in places} == {f"s{n}": n for n in range(30)}
    assert "s30" not in places
    assert places.get(7) is None
    again = pa.array(["a", "b", "c", "b", "a", "a"])
    places = Places(again, keys_of(again))
    assert (places["b"], places["a"]) == (1, 0)


def test_items_that_come_one_by_one_make_a_pool():
    words = [["Rome", "falls"], ["so"], ["x", "y", "z"]]
    texts, starts = ["Rome falls", "so", "x  y z"], [[0, 5], [0], [0, 3, 5]]
    documents = ["d1", None, "d1"]
    rows = [
        Row(name, Fault(""), texts[n], words[n], starts[n], documents[n])
        for n, name in enumerate("abc")
    ]
    crowd = of_rows(Source("x", b"x"), rows, ReadOptions())
    pool = Pool.of(crowd)
    assert pool.item_ids.to_pylist() == [*"abc"]
    assert [pool.words(n) for n in range(3)] == words
    assert list(pool.given) == texts
    assert pool.crowd.token_start.tolist() == [0, 5, 0, 0, 3, 5]
    assert pool.crowd.groups.to_pylist() == documents
    assert pool.text.group.tolist() == Text.of(words, ["d1", "i1", "d1"]).group.tolist()
    with pytest.raises(InputError, match="item a appears in the pool twice"):
        of_rows(Source("x", b"x"), [rows[0], rows[0]], ReadOptions())


def test_what_is_made_on_demand_is_a_sequence():
    made = OnDemand(3, lambda n: [n])
    assert (made[0], made[-1], made[1:], list(made)) == ([0], [2], [[1], [2]], [[0], [1], [2]])
    assert len(made) == 3
    with pytest.raises(IndexError):
        made[3]
