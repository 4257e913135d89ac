"""The public functions take whatever `read_crowd` takes."""

from __future__ import annotations

import io

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import goldspan
from goldspan.crowd.io import READING, to_crowd
from goldspan.errors import FormatError, InputError, UnknownNameError

DATA = {
    "task": ["1", "1", "2", "2"],
    "worker": ["ann", "bob", "ann", "bob"],
    "label": ["x", "x", "y", "x"],
}
CSV = pd.DataFrame(DATA).to_csv(index=False).encode()
ROWS = pd.DataFrame(DATA).to_dict("records")
GOLD = [{"item": "1", "label": "x"}, {"item": "2", "label": "y"}]
KINDS = {
    "path": lambda folder: _file(folder, CSV),
    "string path": lambda folder: str(_file(folder, CSV)),
    "bytes": lambda _: CSV,
    "file": lambda _: io.BytesIO(CSV),
    "pandas": lambda _: pd.DataFrame(DATA),
    "polars": lambda _: pl.DataFrame(DATA),
    "arrow": lambda _: pa.table(DATA),
    "dicts": lambda _: ROWS,
    "tuple of dicts": lambda _: tuple(ROWS),
    "crowd": lambda _: goldspan.read_crowd(CSV),
    "consensus": lambda _: goldspan.aggregate(CSV, "mv-token"),
}


def _file(folder, data, name="answers.csv"):
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("make", KINDS.values(), ids=list(KINDS))
def test_whatever_read_crowd_takes_is_a_crowd(make, tmp_path):
    assert to_crowd(make(tmp_path)).with_gold(None) == goldspan.read_crowd(CSV)
    assert goldspan.aggregate(make(tmp_path), "ds").labels == ["x", "y"]


@pytest.mark.parametrize("kind", ["path", "dicts", "consensus"])
def test_every_call_takes_it(kind, tmp_path):
    given = KINDS[kind](tmp_path)
    assert goldspan.agreement(given).alpha == goldspan.agreement(goldspan.read_crowd(CSV)).alpha
    lost = ["the confidence of 2 labels"] if kind == "consensus" else []
    assert goldspan.write_crowd(given, tmp_path / "out.csv") == lost
    assert goldspan.read_crowd(tmp_path / "out.csv").with_gold(None) == goldspan.read_crowd(CSV)
    sides = (GOLD, given) if kind == "consensus" else (given, goldspan.aggregate(CSV, "mv-token"))
    reading = {} if kind == "consensus" else {"gold": GOLD}
    assert goldspan.score(*sides, **reading).accuracy == 0.5


@pytest.mark.parametrize(
    "truth",
    [
        GOLD,
        pd.DataFrame(GOLD),
        pl.DataFrame(GOLD),
        pa.Table.from_pylist(GOLD),
        b"item,label\n1,x\n2,y\n",
        pd.Series(["x", "y"], index=["1", "2"]),
        {"1": ["x"], "2": ["y"]},
        goldspan.read_crowd(CSV, gold=GOLD),
    ],
    ids=["dicts", "pandas", "polars", "arrow", "bytes", "series", "mapping", "crowd"],
)
def test_truth_comes_in_every_form(truth):
    found = goldspan.score(truth, goldspan.aggregate(CSV, "mv-token"), encoding="PLAIN")
    assert (found.accuracy, found.n_items) == (0.5, 2)


def test_the_labels_that_fit_predict_returns_are_scored_as_they_are():
    frame = pd.DataFrame({"task": [1, 1, 2], "worker": ["a", "b", "a"], "label": [0, 0, 1]})
    labels = goldspan.aggregation.get_aggregator("ds").fit_predict(frame)
    truth = pd.DataFrame({"task": [1, 2], "label": [0, 0]})
    assert goldspan.score(truth, labels).accuracy == 0.5


def test_items_without_a_shared_id_are_matched_by_order_if_their_tokens_are_the_same(tmp_path):
    crowd = goldspan.read_crowd(b"item\ttoken\tann\nx7\tAnn\tB-PER\nx7\tsang\tO\n")
    truth = _file(tmp_path, b"Ann B-PER\nsang O\n", "truth.conll")
    assert goldspan.score(truth, goldspan.aggregate(crowd, "mv-token")).f1 == 1


def test_a_consensus_is_written_with_its_labels_as_gold(tmp_path):
    goldspan.write_crowd(goldspan.aggregate(CSV, "mv-token"), tmp_path / "out.csv")
    assert goldspan.read_crowd(tmp_path / "out.csv").tagged_by_id() == {"1": ["x"], "2": ["x"]}


def test_the_agreement_of_a_consensus_measures_the_workers_against_it():
    table = goldspan.agreement(goldspan.aggregate(CSV, "mv-token")).workers
    assert table.column("token_accuracy").to_pylist() == [0.5, 1.0]


@pytest.mark.parametrize("known", [GOLD, pd.DataFrame(GOLD), goldspan.aggregate(GOLD_ANSWERS := [
    {"task": "1", "worker": "e", "label": "x"}, {"task": "2", "worker": "e", "label": "y"},
], "mv-token")], ids=["dicts", "frame", "consensus"])  # fmt: skip
def test_known_labels_come_in_every_form(known):
    assert goldspan.read_crowd(CSV, gold=known).tagged_by_id() == {"1": ["x"], "2": ["y"]}
    assert goldspan.aggregate(CSV, "ds", gold=known).labels == ["x", "y"]
    assert goldspan.agreement(CSV, gold=known).workers.column("token_accuracy").to_pylist() == [
        1.0,
        0.5,
    ]
    crowd = goldspan.read_crowd(CSV)
    assert goldspan.agreement(crowd, gold=known).quartiles["worker_accuracy"].mean == 0.75


def test_options_of_reading_are_passed_on(tmp_path):
    odd = pd.DataFrame(DATA).rename(columns={"task": "nr", "worker": "who"})
    options = {"columns": {"item": "nr", "worker": "who"}, "labels": {"x": "z"}}
    assert goldspan.aggregate(odd, "ds", **options).labels == ["z", "y"]
    assert goldspan.agreement(odd, **options).n_pairs == 1
    goldspan.write_crowd(odd, tmp_path / "out.csv", **options)
    assert goldspan.read_crowd(tmp_path / "out.csv").tagset.tags == ("y", "z")
    truth = odd[odd["who"] == "ann"].drop(columns="who")
    found = goldspan.score(
        truth, goldspan.aggregate(CSV, "mv-token"), columns={"item": "nr"}, labels={"y": "x"}
    )
    assert found.accuracy == 1


def test_the_options_are_those_of_read_crowd_and_no_method_has_one_of_their_names():
    assert {"columns", "format", "gold", "labels", "strict"} <= READING
    for method in goldspan.aggregation.methods():
        names = set(goldspan.aggregation.get_aggregator(method).parameter_names())
        assert not names & READING


@pytest.mark.parametrize("call", ["agreement", "aggregate", "write_crowd"])
def test_a_crowd_that_is_there_already_has_no_options_of_reading(call, tmp_path):
    crowd = goldspan.read_crowd(CSV)
    arguments = [crowd, tmp_path / "out.csv"] if call == "write_crowd" else [crowd]
    with pytest.raises(InputError, match="crowd: this is a Crowd already, columns=… say how"):
        getattr(goldspan, call)(*arguments, columns={"item": "nr"})
    assert not (tmp_path / "out.csv").exists()


def test_an_unknown_option_is_refused_with_the_names():
    with pytest.raises(UnknownNameError, match=r"'colums'.*did you mean 'columns'"):
        goldspan.agreement(CSV, colums={})


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (goldspan.aggregate, "crowd"),
        (goldspan.agreement, "crowd"),
        (lambda bad: goldspan.write_crowd(bad, "never.csv"), "crowd"),
        (lambda bad: goldspan.score(bad, CSV), "truth"),
        (lambda bad: goldspan.score(GOLD, bad), "predicted"),
        (lambda bad: goldspan.aggregation.get_aggregator("ds").fit_predict(bad), "crowd"),
    ],
    ids=["aggregate", "agreement", "write_crowd", "score truth", "score predicted", "fit_predict"],
)
def test_errors_name_the_argument(call, argument, tmp_path):
    for bad, what in (
        (3, "cannot read a int"),
        (tmp_path / "none.csv", "No such file"),
        ([{"a": 1}], "no column for item and label"),
        ([{"task": 1, "label": 1}, {"task": "x", "label": 2}], "give every column values of one"),
        (b"\0\0", "NUL"),
    ):
        with pytest.raises(InputError, match=rf"(?s)^{argument}( cannot be read)?:.*{what}"):
            call(bad)


def test_all_faults_of_an_input_stay_in_the_error():
    data = b"item,token,worker,label\n1,a,ann,B-X\n1,b,ann,C-X\n2,a,ann,D-X\n"
    with pytest.raises(FormatError) as caught:
        goldspan.aggregate(data, "mv-token", encoding="BIO")
    assert len(caught.value.faults) == 2
    assert caught.value.where == "crowd"
    assert str(caught.value).startswith("crowd: ")


def test_a_truth_without_known_labels_is_refused_by_name():
    with pytest.raises(
        InputError, match=r"^truth: there are no known labels in it .it was read as"
    ):
        goldspan.score(CSV, goldspan.aggregate(CSV, "mv-token"))
    with pytest.raises(InputError, match=r"^predicted: there are no known labels"):
        goldspan.score(GOLD, goldspan.read_crowd(CSV))


def test_a_list_of_dicts_may_lack_keys_in_some_rows():
    rows = [{"task": 1, "worker": "a", "label": "x"}, {"task": 2, "worker": "a", "label": "y"}]
    rows += [{"task": 1, "worker": "b"}, {"task": 2, "worker": "b", "label": "y", "gold": "y"}]
    crowd = goldspan.read_crowd(rows)
    assert crowd.tagged_by_id() == {"1": [None], "2": ["y"]}
    assert len(crowd.answers) == 3


def test_an_empty_list_of_rows_is_refused():
    with pytest.raises(InputError, match="list of rows is empty"):
        goldspan.read_crowd([])
