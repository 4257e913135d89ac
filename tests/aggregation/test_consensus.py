"""The result: asked for more than labels, and written in every format."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import goldspan
from goldspan.aggregation import get_aggregator
from goldspan.errors import InputError
from goldspan.spans import parse


@pytest.fixture(scope="module")
def result(crowd):
    return goldspan.aggregate(crowd, "bsc-seq")


def test_parquet_holds_what_the_result_holds(result, tmp_path):
    result.write(tmp_path / "gold.parquet")
    table = pq.read_table(tmp_path / "gold.parquet")
    assert table.column("item").to_pylist() == result.crowd.item_ids.to_pylist()
    assert table.column("tags").to_pylist() == result.tags
    probs = np.array([p for item in table.column("probs").to_pylist() for p in item])
    np.testing.assert_array_equal(probs, result.token_probs)
    assert json.loads(table.schema.metadata[b"goldspan.tags"]) == list(result.tagset.tags)
    for tags, spans in zip(result.tags, table.column("spans").to_pylist(), strict=True):
        assert [(s["type"], s["start"], s["end"]) for s in spans] == [tuple(s) for s in parse(tags)]


def test_the_alternatives_of_an_item_hold_its_spans_with_their_confidence(result):
    spans = result.spans.to_pylist()
    for item in result.crowd.item_ids.to_pylist()[:20]:
        known = {(a.start, a.end, a.type): a.confidence for a in result.alternatives(item)}
        for span in (s for s in spans if s["item"] == item):
            key = (span["start"], span["end"], span["type"])
            assert known[key] == pytest.approx(span["confidence"], abs=1e-6)


def test_alternatives_come_by_confidence(result):
    shares = [a.confidence for a in result.alternatives(3, least=0.001)]
    assert shares == sorted(shares, reverse=True)


def test_votes_have_no_alternatives(crowd):
    with pytest.raises(InputError, match="posterior"):
        goldspan.aggregate(crowd, "mv-token").alternatives(0)


def test_confusions_add_up_to_the_labels_of_the_worker(result):
    counts = result.confusion("ana")
    labels = dict(
        zip(result.workers["worker"].to_pylist(), result.workers["labels"].to_pylist(), strict=True)
    )
    assert counts.sum() == pytest.approx(labels["ana"], rel=1e-6)


def test_the_spammer_of_the_example_tells_least(result):
    rows = result.workers.to_pylist()
    assert min(rows, key=lambda row: row["information"])["worker"] == "gus"


def test_an_interval_holds_its_accuracy_and_narrows_with_labels(result):
    for row in result.workers.to_pylist():
        assert row["low"] < row["accuracy"] < row["high"]
        assert row["high"] - row["low"] < 4 / np.sqrt(row["labels"])


def test_entropy_is_zero_only_where_all_is_sure(result):
    assert (result.entropy >= 0).all()
    sure = result.confidence > 1 - 1e-7
    assert result.entropy[sure].max(initial=0) < 1e-4
    assert result.entropy[~sure].min() > 0


def test_the_labels_of_single_labels_are_their_tags_and_question_marks_without_answers():
    data = b"task,worker,label\n1,a,x\n2,a,?\n3,b,y\n"
    found = goldspan.aggregate(data, "mv-token")
    assert found.labels == ["x", None, "y"]
    assert found.label_array.to_pylist() == [tags[0] for tags in found.tags]


def test_spans_have_no_single_labels(result):
    for ask in (lambda: result.labels, lambda: result.label_array):
        with pytest.raises(InputError, match="use tags or spans"):
            ask()


@pytest.mark.parametrize("tasks", [[3, 3, 7], ["q", "q", "p"]])
def test_a_series_of_labels_is_the_one_that_pandas_makes_of_lists(tasks):
    frame = pd.DataFrame({"task": tasks, "worker": ["a", "b", "a"], "label": ["x", "x", "?"]})
    found = get_aggregator("mv-token").fit_predict(frame)
    index = pd.Index(list(dict.fromkeys(tasks)), name="task")
    pd.testing.assert_series_equal(
        found, pd.Series(["x", None], index, name="label"), check_exact=True
    )


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table])
def test_a_frame_of_labels_is_of_the_make_of_the_answers(make):
    found = get_aggregator("mv-token").fit_predict(
        make({"task": [3, 3, 7], "worker": ["a", "b", "a"], "label": ["x", "x", "?"]})
    )
    assert found.equals(make({"task": [3, 7], "label": ["x", None]}))
