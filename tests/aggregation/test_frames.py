"""DataFrames in, labels and probabilities of the same make and type out, as crowd-kit has them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import goldspan
from goldspan.aggregation import aggregate, get_aggregator, methods
from goldspan.errors import InputError, UnavailableError

TASKS = [7, 7, 7, 9, 9, 11]
WORKERS = ["a", "b", "c", "a", "b", "c"]
LABELS = [10, 10, 2, 2, 2, 10]
FRAME = pd.DataFrame({"task": TASKS, "worker": WORKERS, "label": LABELS})
SINGLE = [m for m in methods() if not m.startswith(("bsc", "crf", "multicrf")) and m != "mv-seg"]
LEARNING = ["ds", "one-coin", "ibcc", "mace", "wawa", "zbs", "mv-token", "mv-seq"]
every_method = pytest.mark.parametrize("method", SINGLE)


def frame_of(labels, tasks=(1, 1, 2), workers=("a", "b", "a")):
    return pd.DataFrame({"task": list(tasks), "worker": list(workers), "label": labels})


@every_method
def test_whole_numbers_stay_whole_numbers(method):
    found = get_aggregator(method).fit_predict(FRAME)
    assert found.dtype == np.int64
    assert found.index.tolist() == [7, 9, 11]
    assert found.name == "label"
    assert found.index.name == "task"
    assert set(found) <= {2, 10}
    result = aggregate(FRAME, method)
    assert all(type(label) is int for label in result.labels)
    assert result.to_pandas()["label"].dtype == np.int64


@pytest.mark.parametrize(
    ("labels", "wanted", "kind"),
    [
        ([1, 1, 0], [1, 0], int),
        ([True, True, False], [True, False], bool),
        ([0.5, 0.5, 1.0], [0.5, 1.0], float),
        ([2.0, 2.0, 1.0], [2.0, 1.0], float),
        (["1", "1", "0"], ["1", "0"], str),
        (["01", "01", "1"], ["01", "1"], str),
        (pd.Categorical([3, 3, 4]), [3, 4], int),
        (np.array([-1, -1, 1], np.int8), [-1, 1], int),
        (np.array([2**63, 2**63, 1], np.uint64), [2**63, 1], int),
    ],
    ids=["int", "bool", "float", "whole float", "str", "zeros", "category", "int8", "uint64"],
)
def test_labels_come_back_as_they_came(labels, wanted, kind):
    result = aggregate(frame_of(labels), "mv-token")
    assert result.labels == wanted
    assert [type(label) for label in result.labels] == [kind, kind]
    assert result.to_pandas()["label"].tolist() == wanted
    assert get_aggregator("mv-token").fit_predict(frame_of(labels)).tolist() == wanted
    assert result.label_array.type == pa.string()
    assert result.crowd.to_pandas()["label"].tolist() == list(labels)


def test_whole_numbers_stay_whole_where_an_item_is_open():
    frame = frame_of(pd.array([1, 1, None], "Int64"))
    assert aggregate(frame, "mv-token").labels == [1, None]
    found = get_aggregator("mv-token").fit_predict(frame)
    assert str(found.dtype) == "Int64"
    assert found.isna().tolist() == [False, True]
    assert str(aggregate(frame, "mv-token").to_pandas()["label"].dtype) == "Int64"
    flags = aggregate(frame_of(pd.array([True, True, None], "boolean")), "mv-token").to_pandas()[
        "label"
    ]
    assert str(flags.dtype) == "boolean"


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table])
def test_other_frames_keep_whole_numbers_too(make):
    found = get_aggregator("mv-token").fit_predict(
        make({"task": [3, 3, 7], "worker": ["a", "b", "a"], "label": [1, 1, 0]})
    )
    assert found.equals(make({"task": [3, 7], "label": [1, 0]}))


def test_a_list_of_dicts_keeps_whole_numbers():
    rows = FRAME.to_dict("records")
    assert aggregate(rows, "mv-token").labels == aggregate(FRAME, "mv-token").labels == [10, 2, 10]


def test_files_stay_text(tmp_path):
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    FRAME.to_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        assert aggregate(tmp_path / name, "mv-token").labels == ["10", "2", "10"]


def test_renamed_labels_are_text_unless_they_are_numbers_still():
    assert aggregate(FRAME, "mv-token", labels={"10": "ten"}).labels == ["ten", "2", "ten"]
    assert aggregate(FRAME, "mv-token", labels={"10": "12"}).labels == [12, 2, 12]
    assert aggregate(FRAME, "mv-token", labels={"10": "012"}).labels == ["012", "2", "012"]


def test_gold_with_other_labels_turns_them_to_text():
    crowd = goldspan.read_crowd(FRAME, gold=b"item,label\n7,none\n")
    assert aggregate(crowd, "mv-token").labels == ["10", "2", "10"]
    number = goldspan.read_crowd(FRAME, gold=b"item,label\n7,5\n")
    assert aggregate(number, "mv-token").labels == [10, 2, 10]


def test_the_type_of_labels_is_no_part_of_what_makes_crowds_equal():
    text = FRAME.assign(label=FRAME["label"].astype(str))
    assert goldspan.read_crowd(FRAME) == goldspan.read_crowd(text)


def test_tables_of_single_labels_have_a_label_column():
    table = aggregate(FRAME, "mv-token").to_arrow()
    assert table.column("label").to_pylist() == [10, 2, 10]
    text = aggregate(b"task,worker,label\n1,a,x\n2,a,?\n", "mv-token").to_arrow()
    assert text.column("label").to_pylist() == ["x", None]


@every_method
def test_probabilities_are_a_frame_of_tasks_and_labels(method):
    one = get_aggregator(method)
    found = one.fit_predict_proba(FRAME)
    assert found.index.tolist() == [7, 9, 11]
    assert (found.index.name, found.columns.name) == ("task", "label")
    assert found.columns.tolist() == [2, 10]
    assert found.dtypes.eq(np.float64).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)
    for place, tag in enumerate(one.result_.tagset.tags):
        np.testing.assert_array_equal(found[int(tag)], one.result_.token_probs[:, place])
    pd.testing.assert_frame_equal(found, one.probas_)
    pd.testing.assert_series_equal(one.labels_, get_aggregator(method).fit_predict(FRAME))


def test_the_likeliest_label_is_the_label():
    for method in ("ds", "mv-token", "glad", "wawa"):
        one = get_aggregator(method).fit(FRAME)
        assert one.probas_.idxmax(axis=1).tolist() == one.labels_.tolist()


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table])
def test_probabilities_are_of_the_make_of_the_answers(make):
    data = {"task": ["p", "p", "q"], "worker": ["a", "b", "a"], "label": ["x", "x", "y"]}
    found = get_aggregator("mv-token").fit_predict_proba(make(data))
    assert found.equals(make({"task": ["p", "q"], "x": [1.0, 0.0], "y": [0.0, 1.0]}))


@every_method
def test_classes_are_the_order_of_all_columns(method):
    crowd = goldspan.read_crowd(FRAME)
    frame, array = get_aggregator(method).fit(FRAME), get_aggregator(method).fit(crowd)
    assert frame.classes_.tolist() == frame.probas_.columns.tolist() == [2, 10]
    assert array.classes_.tolist() == sorted(array.classes_.tolist())
    own = dict(zip(array.classes_.tolist(), array.probas_.T, strict=True))
    for place, tag in enumerate(array.result_.tagset.tags):
        label = array.result_.crowd.label_values[place]
        np.testing.assert_array_equal(own[label], array.result_.token_probs[:, place])
        np.testing.assert_allclose(own[label], frame.probas_[int(tag)], atol=1e-6)


def test_classes_are_as_scikit_learn_has_them():
    tree = pytest.importorskip("sklearn.tree").DecisionTreeClassifier()
    for labels in (["b", "a", "c"], [10, 2, 3], [True, False, True]):
        theirs = tree.fit([[0], [1], [2]], labels).classes_
        ours = get_aggregator("mv-token").fit(frame_of(labels, [1, 2, 3], "aaa")).classes_
        assert ours.dtype == theirs.dtype
        assert ours.tolist() == theirs.tolist()


def test_probabilities_of_other_items_have_the_columns_of_the_fit():
    one = get_aggregator("mv-token").fit(FRAME)
    found = one.predict_proba(frame_of([10], [1], ["a"]))
    assert found.columns.tolist() == one.classes_.tolist()
    assert found.loc[1].tolist() == [0, 1]
    text = goldspan.read_crowd(b"task,worker,label\n1,a,2\n2,a,10\n")  # labels are text here
    assert one.predict_proba(text).tolist() == [[1, 0], [0, 1]]
    with pytest.raises(InputError, match="lack: 7"):
        one.predict_proba(frame_of([7], [1], ["a"]))


def test_probabilities_of_a_crowd_are_an_array():
    crowd = goldspan.read_crowd(b"task,worker,label\n1,a,x\n1,b,x\n1,c,x\n1,d,y\n2,a,?\n")
    found = get_aggregator("mv-token").fit_predict_proba(crowd)
    np.testing.assert_array_equal(found, [[0.75, 0.25], [np.nan, np.nan]])
    one = get_aggregator("mv-token").fit(crowd)
    assert one.labels_ == ["x", None]


@pytest.mark.parametrize("method", LEARNING)
def test_probabilities_of_other_items_are_those_of_what_was_learned(method):
    rng = np.random.default_rng(3)
    rows = pd.DataFrame(
        [(t, w, int(rng.random() < 0.9) ^ t % 2) for t in range(60) for w in range(5)],
        columns=["task", "worker", "label"],
    )
    rows.loc[rows["worker"] == 4, "label"] = 1 - rows["label"]  # always wrong
    one = get_aggregator(method).fit(rows)
    before = one.result_
    other = pd.DataFrame({"task": [90] * 3, "worker": [0, 4, 1], "label": [1, 0, 1]})
    found = one.predict_proba(other)
    assert one.result_ is before
    assert found.index.tolist() == [90]
    assert found.loc[90].sum() == pytest.approx(1)
    trusting = get_aggregator("mv-token").fit_predict_proba(other).loc[90, 1]
    if method.startswith("mv"):
        assert found.loc[90, 1] == pytest.approx(trusting)
    else:
        assert found.loc[90, 1] > trusting + 0.05
    assert one.predict(other).labels == [1]


@pytest.mark.parametrize("method", ["wawa", "zbs"])
def test_the_skills_of_other_items_are_those_of_the_fit(method):
    one = get_aggregator(method).fit(FRAME)
    same = one.predict_proba(FRAME)
    np.testing.assert_allclose(same, one.probas_, atol=1e-6)
    stranger = pd.DataFrame({"task": [1, 1], "worker": ["a", "z"], "label": [2, 10]})
    found = one.predict(stranger)
    assert found.labels == [2]
    assert found.notes[-1] == "1 workers who were not in the fitted data have no weight"
    assert found.method == method
    with pytest.raises(InputError, match="no answer"):
        one.predict(frame_of(pd.array([None, None, None], "Int64")))


@pytest.mark.parametrize("method", ["glad", "wmv-log"])
def test_what_holds_for_no_other_item_predicts_none(method):
    one = get_aggregator(method).fit(FRAME)
    with pytest.raises(UnavailableError, match=f"{method} learns nothing .*fit_predict_proba"):
        one.predict_proba(FRAME)


def test_tagged_tokens_have_no_labels_and_probabilities_of_items():
    frame = pd.DataFrame(
        {"item": [1, 1], "worker": ["a", "a"], "token": ["Ann", "sang"], "label": ["B-X", "O"]}
    )
    one = get_aggregator("mv-token").fit(frame)
    assert one.result_.tags == [["B-X", "O"]]
    with pytest.raises(InputError, match="use tags or spans"):
        one.fit_predict(frame)
    with pytest.raises(InputError, match=r"result_\.token_probs"):
        one.fit_predict_proba(frame)
    assert not hasattr(one, "labels_")
    assert not hasattr(one, "probas_")
    assert not hasattr(one, "classes_")


def test_the_index_has_the_name_of_the_column_of_items():
    frame = FRAME.rename(columns={"task": "Question"})
    found = get_aggregator("ds").fit_predict(frame)
    assert found.index.name == "Question"
    assert found.index.tolist() == [7, 9, 11]
