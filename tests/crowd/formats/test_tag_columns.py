"""Rows of items with a column of tags per annotator: Parquet, Hugging Face Datasets, JSON lines."""

from __future__ import annotations

import io
import json

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st

import goldspan
from crowd_strategies import lines_of
from goldspan.errors import GoldspanError, InputError

NAMES = ["O", "B-PER", "I-PER"]
ROWS = [
    {"id": "a", "tokens": ["Ann", "Lee", "sang"], "ann": ["B-PER", "I-PER", "O"],
     "bob": ["B-PER", "O", "O"]},
    {"id": "b", "tokens": ["So", "what"], "ann": ["O", "O"], "bob": None},
]  # fmt: skip
CODED = [
    {
        name: [NAMES.index(tag) for tag in value] if name in {"ann", "bob"} and value else value
        for name, value in row.items()
    }
    for row in ROWS
]
ANSWERS = {"ann": ["B-PER", "I-PER", "O"], "bob": ["B-PER", "O", "O"]}


def parquet(rows, features=None):
    table = pa.Table.from_pylist(rows)
    if features:
        about = json.dumps({"info": {"features": features}})
        table = table.replace_schema_metadata({"huggingface": about})
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def feature(names, kind):
    label = {"names": names, "_type": "ClassLabel"}
    if kind == "list":
        return [label]
    if kind == "mapping":
        label = {"names": {str(n): name for n, name in enumerate(names)}, "_type": "ClassLabel"}
    return {"feature": label, "_type": kind.title()}


class ClassLabel:
    def __init__(self, names):
        self.names = names


class Sequence:
    def __init__(self, inner):
        self.feature = inner


class Dataset:
    """What a Dataset of Hugging Face looks like from outside."""

    def __init__(self, rows, features):
        self.rows, self._features = rows, features

    @property
    def column_names(self):
        return list(self.rows[0])

    @property
    def features(self):
        return self._features

    def to_pandas(self):
        return pd.DataFrame(self.rows)


class IterableDataset:
    features = None
    column_names = None


def dataset(rows):
    names = {name: Sequence(ClassLabel(NAMES)) for name in ("ann", "bob")}
    return Dataset(rows, {"id": object(), "tokens": Sequence(object()), **names})


def refused(data, *parts, **options):
    with pytest.raises(GoldspanError) as caught:
        goldspan.read_crowd(data, **options)
    for part in parts:
        assert part in str(caught.value), str(caught.value)


WAYS = {
    "parquet": lambda: parquet(ROWS),
    "arrow": lambda: pa.Table.from_pylist(ROWS),
    "pandas": lambda: pd.DataFrame(ROWS),
    "polars": lambda: pl.DataFrame(ROWS),
    "dicts": lambda: ROWS,
    "lines": lambda: lines_of(*ROWS),
    "dataset": lambda: dataset(CODED),
    **{
        f"parquet with names ({kind})": (
            lambda kind=kind: parquet(CODED, dict.fromkeys(("ann", "bob"), feature(NAMES, kind)))
        )
        for kind in ("sequence", "list", "mapping")
    },
}


@pytest.mark.parametrize("way", WAYS)
def test_every_column_of_tags_is_an_annotator(way):
    crowd = goldspan.read_crowd(WAYS[way]())
    assert crowd.import_report.format == "tag-columns"
    assert crowd.tokens_list == [["Ann", "Lee", "sang"], ["So", "what"]]
    assert crowd.answers_of("a") == ANSWERS
    assert crowd.answers_of("b") == {"ann": ["O", "O"]}
    assert crowd.gold is None
    assert crowd.import_report.adds_up


def test_numbers_need_names_which_the_labels_may_give():
    refused(parquet(CODED), "column 'ann' holds numbers from 0 to 2 without names", "--label 0=O")
    labels = {str(n): name for n, name in enumerate(NAMES)}
    assert goldspan.read_crowd(parquet(CODED), labels=labels).answers_of("a") == ANSWERS


def test_negative_numbers_and_null_are_no_labels():
    rows = [{**CODED[0], "ann": [-100, 2, 0], "bob": [None, 0, 0]}, CODED[1]]
    crowd = goldspan.read_crowd(dataset(rows))
    assert crowd.answers_of("a") == {"ann": [None, "I-PER", "O"], "bob": [None, "O", "O"]}


def test_a_single_column_of_tags_is_gold_and_that_is_said():
    rows = [{"tokens": row["tokens"], "ner_tags": row["ann"]} for row in ROWS]
    crowd = goldspan.read_crowd(parquet(rows))
    assert crowd.n_workers == 0
    assert crowd.tagged_by_id()["1"] == ["B-PER", "I-PER", "O"]
    assert "column 'ner_tags' is read as gold" in crowd.import_report.notes
    assert goldspan.read_crowd(parquet(rows), workers=["ner_tags"]).n_workers == 1


def test_gold_stands_beside_annotators():
    rows = [{**row, "gold": row["ann"]} for row in ROWS]
    crowd = goldspan.read_crowd(parquet(rows))
    assert crowd.worker_ids.to_pylist() == ["ann", "bob"]
    assert crowd.tagged_by_id()["a"] == ["B-PER", "I-PER", "O"]
    named = goldspan.read_crowd(parquet(ROWS), columns={"gold": "ann"})
    assert named.worker_ids.to_pylist() == ["bob"]
    again = goldspan.read_crowd(parquet(ROWS), gold=pd.DataFrame(rows).drop(columns=["ann", "bob"]))
    assert again.gold is not None


def test_layers_of_one_corpus_are_not_taken_for_annotators():
    rows = [{**row, "pos_tags": ["X"] * len(row["tokens"])} for row in ROWS]
    rows = [{name: row[name] for name in ("tokens", "pos_tags", "ann")} for row in rows]
    refused(parquet(rows), "which are annotators?", "workers=", "columns={'gold': 'pos_tags'}")
    odd = [{"tokens": row["tokens"], "x": ["NN"] * len(row["tokens"]), "y": row["ann"]}
           for row in ROWS]  # fmt: skip
    refused(parquet(odd), "columns x, y hold a tag per token")
    assert goldspan.read_crowd(parquet(odd), workers=["y"]).worker_ids.to_pylist() == ["y"]
    gold = goldspan.read_crowd(parquet(rows), columns={"gold": "ann"})
    assert gold.n_workers == 0
    assert gold.gold is not None


def test_the_text_comes_in_with_the_places_of_its_tokens():
    rows = [{**ROWS[0], "text": "Ann  Lee sang."}, {**ROWS[1], "text": "So what"}]
    crowd = goldspan.read_crowd(parquet(rows))
    assert crowd.texts.to_pylist() == ["Ann  Lee sang.", "So what"]
    assert crowd.token_start.tolist() == [0, 5, 9, 0, 3]


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"ann": ["O"]}, "column 'ann' has 1 tags for 3 tokens"),
        ({"tokens": []}, "the row has no tokens"),
        ({"tokens": ["Ann", "", "x"]}, "the row has no tokens, or an empty one"),
    ],
)
def test_a_wrong_row_is_refused_with_its_place(change, part):
    refused(parquet([{**ROWS[0], **change}, ROWS[1]]), "line 1, item a", part)


@pytest.mark.parametrize(
    ("rows", "part"),
    [
        ([{"tokens": ["a"]}], "no column with a list of tags per row"),
        ([{"words2": ["a"], "ann": ["O"]}], "no column of tokens"),
    ],
)
def test_a_column_that_is_missing_is_named(rows, part):
    refused(parquet(rows), part, format="tag-columns")


def test_names_that_are_too_few_are_refused():
    names = dict.fromkeys(("ann", "bob"), feature(NAMES[:2], "sequence"))
    refused(parquet(CODED, names), "has the tag 2, but only 2 names")


def test_what_cannot_be_read_as_a_whole_is_refused():
    refused(IterableDataset(), "load the data set without streaming=True")
    refused({"train": dataset(CODED)}, "data['train']")


def test_broken_metadata_are_passed_over():
    table = pa.Table.from_pylist(ROWS).replace_schema_metadata({"huggingface": "{"})
    assert goldspan.read_crowd(table).n_workers == 2


TAGS = st.lists(st.none() | st.integers(-2, 3) | st.sampled_from([*NAMES, "x", ""]), max_size=3)


# The format of what is no file


LONG = [{"item": "1", "worker": "w", "label": "x"}]
WIDE = pd.DataFrame(
    {"doc": ["d", "d", "e"], "token": ["a", "b", "c"], "A1": ["B-X", "O", "?"], "A2": ["O"] * 3}
)


@pytest.mark.parametrize("data", [pd.DataFrame(LONG), pl.DataFrame(LONG), LONG])
def test_the_named_format_is_honoured_or_refused(data):
    assert goldspan.read_crowd(data, format="long").import_report.format == "long"
    refused(data, "no column", format="span-table")
    refused(data, "no column of tokens", format="tag-columns")
    refused(data, "no column for token", format="wide")
    for name in ("conll", "brat", "folder", "mturk"):
        refused(data, f"format '{name}' is a file or a folder", "long, span-table", format=name)
    refused(data, "unknown format 'nothing'", format="nothing")


def test_a_wide_frame_is_read_as_such_when_it_is_named():
    crowd = goldspan.read_crowd(WIDE, format="wide")
    assert crowd.tokens_list == [["a", "b"], ["c"]]
    assert crowd.answers_of("d-1") == {"A1": ["B-X", "O"], "A2": ["O", "O"]}
    assert crowd == goldspan.read_crowd(WIDE.to_csv(sep="\t", index=False).encode())


TOOLS = {
    "label-studio": [
        {"id": 1, "data": {"text": "Ann"}, "annotations": [
            {"completed_by": 1, "result": [{"type": "labels", "value":
             {"start": 0, "end": 3, "labels": ["P"]}}]}]}],
    "prodigy": [{"text": "Ann", "_input_hash": 1, "_annotator_id": "1", "answer": "accept",
                 "spans": [{"start": 0, "end": 3, "label": "P"}]}],
    "doccano": [{"id": 1, "text": "Ann", "label": [[0, 3, "P"]], "annotator": "1"}],
    "spans": [{"id": 1, "text": "Ann", "spans": [[0, 3, "P"]], "worker": "1"}],
}  # fmt: skip


@pytest.mark.parametrize("name", TOOLS)
def test_records_of_a_tool_are_read_as_its_file(name):
    for options in ({}, {"format": name}):
        crowd = goldspan.read_crowd(TOOLS[name], **options)
        assert crowd.import_report.format == name
        assert list(crowd.answers_of(0).values()) == [["B-P"]]


# Nobody's labels


NOBODY = {
    "label-studio": json.dumps(
        [
            {
                "id": 1,
                "data": {"text": "Ann"},
                "annotations": [],
                "predictions": [{"model_version": "goldspan", "result": []}],
            }
        ]
    ).encode(),
    "doccano": lines_of(
        {"id": 1, "text": "Ann", "label": None}, {"id": 2, "text": "B", "label": None}
    ),
    "prodigy": lines_of({"text": "Ann", "_input_hash": 1}),
    "wide": b"token\nAnn\n",
    "span-table": b"id,text,start,end,label,annotator\n1,Ann,,,,\n",
}


@pytest.mark.parametrize("name", NOBODY)
def test_a_file_without_anybodys_labels_is_refused(name):
    refused(NOBODY[name], "nobody's labels (0 workers), and no gold", format=name)
    pool = goldspan.read_crowd(NOBODY[name], format=name, unlabelled="keep")
    assert pool.n_workers == 0
    refused(NOBODY[name], "unknown rule for items without labels", format=name, unlabelled="x")


def test_gold_alone_is_said():
    crowd = goldspan.read_crowd(b"token\tgold\nAnn\tB-P\n")
    assert any("gold only" in note for note in crowd.import_report.notes)


def test_a_list_of_something_else_is_refused():
    with pytest.raises(InputError, match="cannot read a list"):
        goldspan.read_crowd([1, 2])
