"""Data sets as others save them, in Arrow and DocBins: whose names count, and what has no label."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import goldspan
from crowd_tables import refusal
from goldspan.crowd.detection import recognise
from goldspan.crowd.formats.datasets import write_splits
from goldspan.crowd.formats.json_records import one_of
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import open_source

BIO, OTHER = ["O", "B-PER", "I-PER", "B-LOC"], ["O", "B-LOC", "I-LOC", "B-PER"]


def with_classes(table, **names):
    """Return a table with the features that `datasets` writes for integer labels."""
    labels = {column: {"names": n, "_type": "ClassLabel"} for column, n in names.items()}
    return table.replace_schema_metadata(
        {"huggingface": json.dumps({"info": {"features": labels}})}
    )


def split(names, ids, codes, column="ner_tags"):
    rows = pa.table({"id": ids, "tokens": [["Ann", "sang"]] * len(ids), column: codes})
    return with_classes(rows, **{column: names})


def tags(crowd):
    return crowd.tagset.decode(crowd.gold_tagged)


# Splits of a data set


def test_every_split_is_read_by_its_own_names(tmp_path):
    parts = {"train": split(BIO, ["1"], [[1, 0]]), "test": split(OTHER, ["2"], [[3, -100]])}
    write_splits(tmp_path / "x", parts)
    crowd = goldspan.read_crowd(tmp_path / "x")
    assert tags(crowd) == [["B-PER", "O"], ["B-PER", None]]
    assert crowd.attributes.to_pylist() == [{"split": "train"}, {"split": "test"}]


def test_a_label_without_a_name_in_its_split_is_rejected(tmp_path):
    parts = {"train": split(BIO, ["1"], [[1, 0]]), "test": split(OTHER[:2], ["2"], [[3, 0]])}
    write_splits(tmp_path / "x", parts)
    refusal(tmp_path / "x", f"{tmp_path / 'x'}, split test: a label is 3, but there are only 2")


def test_a_split_without_names_is_rejected_where_others_have_them(tmp_path):
    parts = {"train": split(BIO, ["1"], [[1, 0]]), "test": split(OTHER, ["2"], [[3, 0]])}
    parts["test"] = with_classes(parts["test"], other=["x"])
    write_splits(tmp_path / "x", parts)
    refusal(tmp_path / "x", "split test: column 'ner_tags' has no names of labels, and that of")


def test_ids_that_begin_anew_in_every_split_get_its_name(tmp_path):
    parts = {"train": split(BIO, ["0", "1"], [[1, 0], [0, 0]]), "test": split(BIO, ["0"], [[3, 0]])}
    write_splits(tmp_path / "x", parts)
    crowd = goldspan.read_crowd(tmp_path / "x")
    assert crowd.item_ids.to_pylist() == ["train-0", "train-1", "test-0"]
    assert crowd.import_report.source == str(tmp_path / "x")
    assert (
        "1 ids of items are in several splits: the name of the split is put before all ids, as in "
        "'train-0'"
    ) in crowd.import_report.notes


def test_ids_that_are_whole_stay(tmp_path):
    parts = {"train": split(BIO, [7, 8], [[1, 0], [0, 0]]), "test": split(BIO, [9], [[3, 0]])}
    write_splits(tmp_path / "x", parts)
    assert goldspan.read_crowd(tmp_path / "x").item_ids.to_pylist() == ["7", "8", "9"]


def test_an_id_twice_in_one_split_is_rejected_with_the_name_of_the_folder(tmp_path):
    write_splits(tmp_path / "x", {"train": split(BIO, ["1", "1"], [[1, 0], [0, 0]])})
    refusal(tmp_path / "x", f"{tmp_path / 'x'} line 2, item 1: the item id appears twice")


def test_splits_that_goldspan_wrote_may_have_equal_ids(tmp_path):
    table = pa.table({"item": ["1"], "tokens": [["Ann", "sang"]], "ner_tags": [[1, 0]]})
    parts = {"a": with_classes(table, ner_tags=BIO), "b": with_classes(table, ner_tags=OTHER)}
    write_splits(tmp_path / "x", parts)
    crowd = goldspan.read_crowd(tmp_path / "x")
    assert crowd.item_ids.to_pylist() == ["a-1", "b-1"]
    assert tags(crowd) == [["B-PER", "O"], ["B-LOC", "O"]]


def test_what_a_method_said_is_not_read_and_named(tmp_path):
    result = goldspan.aggregate(b"token\tann\tbob\nAnn\tB-PER\tB-PER\n", method="mv-token")
    result.write(tmp_path / "x", "datasets")
    notes = goldspan.read_crowd(tmp_path / "x").import_report.notes
    assert "columns that are not read: probs, confidence, spans" in notes


# Names of the labels of tables


LONG = with_classes(
    pa.table({"item": ["1", "2", "3"], "worker": ["a"] * 3, "label": [0, 1, -1]}),
    label=["neg", "pos"],
)
SPANS = with_classes(
    pa.table({"text": ["Ann sang"], "start": [0], "end": [3], "label": [1], "worker": ["a"]}),
    label=["LOC", "PER"],
)


def parquet(table):
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def folder(table, path):
    write_splits(path, {"train": table})
    return path


@pytest.mark.parametrize("way", ["parquet", "folder", "table"])
@pytest.mark.parametrize("named", [True, False])
def test_labels_of_tables_have_their_names(tmp_path, way, named):
    def read(table, name):
        source = {"parquet": parquet, "table": lambda one: one}.get(way)
        data = folder(table, tmp_path / name) if source is None else source(table)
        given = {"format": name} if named and way != "folder" else {}
        return goldspan.read_crowd(data, **given)

    crowd = read(LONG, "long")
    assert [crowd.answers_of(one) for one in "123"] == [{"a": ["neg"]}, {"a": ["pos"]}, {}]
    assert read(SPANS, "span-table").answers_of("1") == {"a": ["B-PER", "O"]}


def test_a_label_of_a_table_without_a_name_is_rejected():
    data = parquet(with_classes(pa.table(LONG.to_pydict()), label=["neg"]))
    refusal(data, "<bytes>: column 'label' has the label 1, but only 1 names")


def test_names_by_number_count_in_the_order_of_the_numbers():
    names = {"1": "B-PER", "0": "O", "10": "X", "2": "I-PER"}
    table = split({**names, "10": "B-LOC"}, ["1"], [[1, 2]])
    assert tags(goldspan.read_crowd(parquet(table))) == [["B-PER", "I-PER"]]


# Whether a Parquet file is a crowd or a pool

ROW = {"id": "1", "tokens": ["Ann", "sang"]}
CROWDS = {
    "tags": pa.Table.from_pylist([{**ROW, "ner_tags": ["B-PER", "O"]}]),
    "codes": split(BIO, ["1"], [[1, 0]]),
    "annotators": pa.Table.from_pylist([{**ROW, "ann": ["O", "O"], "bob": None}]),
    "spans": SPANS,
    "answers": LONG,
}
POOLS = {
    "tokens": pa.Table.from_pylist([ROW]),
    "keywords": pa.Table.from_pylist([{**ROW, "keywords": ["a", "b", "c"]}]),
    "codes without names": pa.Table.from_pylist([{**ROW, "ner_tags": [1, 0]}]),
    "layers": pa.Table.from_pylist([{**ROW, "pos_tags": ["A", "B"], "ner_tags": ["O", "O"]}]),
    "times": pa.table({"text": ["Ann sang"], "start": [0.5], "end": [1.5]}),
}


@pytest.mark.parametrize("name", [*CROWDS, *POOLS])
def test_a_parquet_file_is_a_crowd_where_it_can_be_read_as_one(name):
    data = parquet((CROWDS | POOLS)[name])
    found = recognise(open_source(data), ReadOptions(), texts=True)[0]
    assert (found != "texts") == (name in CROWDS)
    if name in CROWDS:
        goldspan.read_crowd(data)


def test_parquet_files_of_labels_are_crowds(tmp_path):
    result = goldspan.aggregate(b"token\tann\tbob\nAnn\tB-PER\tB-PER\n", method="mv-token")
    for path, name in ((tmp_path / "a.parquet", "datasets"), (tmp_path / "b.parquet", None)):
        result.write(path, name)
        assert recognise(open_source(path), ReadOptions(), texts=True)[0] != "texts"


# DocBins of others


def docbin(*docs):
    spacy = pytest.importorskip("spacy")
    return spacy.tokens.DocBin(docs=docs, store_user_data=True).to_bytes()


def doc(text, spans=(), **how):
    """Return a Doc with entities: first token, one past the last, and label of each."""
    spacy = pytest.importorskip("spacy")
    found = spacy.blank("xx")(text)
    if how or spans:
        made = [spacy.tokens.Span(found, a, b, label) for a, b, label in spans]
        found.set_ents(made, **how)
    return found


def with_cats(text, **cats):
    found = doc(text)
    found.cats = cats
    return found


@pytest.mark.models
def test_a_category_is_gold_only_where_one_holds():
    data = docbin(
        with_cats("yes", A=1.0, B=0.0),
        with_cats("none", A=0.0, B=0.0),
        with_cats("both", A=1.0, B=1.0),
        with_cats("likeliest", A=0.4, B=0.35, C=0.25),
        with_cats("tie", A=0.5, B=0.5),
    )
    crowd = goldspan.read_crowd(data)
    assert tags(crowd) == [["A"], [None], [None], ["A"], [None]]
    faults = [str(one) for one in crowd.import_report.faults]
    assert faults == [
        f"<bytes> line {n}, item {n}, worker gold: categories 'A', 'B' hold, and an item has one "
        "label: none is taken"
        for n in (3, 5)
    ]
    assert crowd.import_report.notes[:2] == (
        "5 probabilities of categories are not read (item 4; item 5)",
        "1 sets of categories of which none is above 0.5 are not read (item 2)",
    )


@pytest.mark.models
def test_tokens_without_annotation_have_no_label():
    data = docbin(doc("Ann sang in Rome", [(0, 1, "PER")], default="missing"))
    assert tags(goldspan.read_crowd(data)) == [["B-PER", None, None, None]]
    data = docbin(doc("Ann sang in Rome", [(0, 1, "PER")], default="outside"))
    assert tags(goldspan.read_crowd(data)) == [["B-PER", "O", "O", "O"]]


@pytest.mark.models
def test_tokens_without_gold_are_missing_in_the_docbin(tmp_path):
    pytest.importorskip("spacy")
    crowd = goldspan.read_crowd(
        pa.table({"tokens": [["Ann", "sang", "."]], "tags": [["B-PER", None, "O"]]})
    )
    assert goldspan.write_crowd(crowd, tmp_path / "x.spacy") == []
    assert tags(goldspan.read_crowd(tmp_path / "x.spacy")) == [["B-PER", None, "O"]]


@pytest.mark.models
def test_what_stands_beside_the_entities_is_counted():
    spacy = pytest.importorskip("spacy")
    one = doc("Ann sang in Rome", [(0, 1, "PER")], default="outside")
    one.cats = {"news": 1.0}
    spans = [spacy.tokens.Span(one, 0, 1, "PER"), spacy.tokens.Span(one, 3, 4, "LOC")]
    one.spans["sc"] = spacy.tokens.SpanGroup(one, spans=spans, attrs={"scores": [0.9, 0.8]})
    assert goldspan.read_crowd(docbin(one)).import_report.notes[:4] == (
        one_of(["spans", "cats"]),
        "1 categories (doc.cats) beside spans are not read (item 1)",
        "2 confidences of spans are not read (item 1)",
        "1 spans of the group 'sc' beside doc.ents are not read (item 1)",
    )


@pytest.mark.models
@pytest.mark.parametrize(("group", "by"), [("sc", ""), ("annotator:ann", ", worker ann")])
def test_a_span_without_a_label_is_named_with_its_place(group, by):
    spacy = pytest.importorskip("spacy")
    one = doc("Ann sang")
    one.spans[group] = [spacy.tokens.Span(one, 0, 1)]
    data = docbin(doc("Ann sang", [(0, 1, "PER")]), one)
    where = f"<bytes> line 2, item 2{by}"
    refusal(data, f"{where}: the span [0, 3) has no label: give it one, or remove it")


@pytest.mark.models
def test_an_empty_doc_is_left_out():
    data = docbin(doc("Ann sang", [(0, 1, "PER")]), doc(""), doc("  "))
    crowd = goldspan.read_crowd(data)
    assert crowd.item_ids.to_pylist() == ["1"]
    assert "2 empty Docs are left out (first: item 2)" in crowd.import_report.notes
