"""Texts to label: what is taken for them where answers or texts are wanted, and what they are."""

from __future__ import annotations

import json
import shlex

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crowd_tables import zipped
from goldspan import read_crowd
from goldspan.crowd.detection import recognise
from goldspan.crowd.formats.texts import is_numbered
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source, open_source
from goldspan.errors import FormatError, InputError
from goldspan.selection import Pool, select_items
from goldspan.selection.files import read_pool, selection_lines

LONG = "a,Mara flew to Oslo,{}\na,Mara flew to Oslo,{}\nb,It rained in Kiel,{}\n"


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


KINDS = {
    # Name and content; what it is where answers are wanted, and where texts are; "" for refused
    "lines": ("x.txt", "Mara flew.\nIt rained.\n", "texts", "texts"),
    "lines with commas": ("x.txt", "Mara, Oslo\nIt, rain\n", "texts", "texts"),
    "lines without an ending": ("x.md", "Mara flew.\nIt rained.\n", "", ""),
    "markup": ("x.xml", "<doc>\n<text>Mara flew.</text>\n</doc>\n", "", ""),
    "tokens with tags": ("x.txt", "Mara B-PER\nflew O\n", "conll", ""),
    "a table of texts": ("x.csv", "id,Text\n1,Mara flew\n2,It rained\n", "texts", "texts"),
    "a table in lines": ("x.txt", "id,text\n1,Mara flew\n2,It rained\n", "", ""),
    "answers in lines": ("x.txt", "item,worker,label\n1,ann,x\n1,bob,y\n", "long", ""),
    "answers in lines without a header": (
        "x.txt", "worker1\ta.ex\tx\nworker2\ta.ex\ty\nworker1\tb.ex\tx\n", "long", "",
    ),
    "tokens of annotators in lines": ("x.txt", "token,ann,bob\nMara,B-PER,O\n", "wide", ""),
    "spans in cells": ("x.csv", 'id,text,spans\n1,Mara flew,"[(0, 4)]"\n2,It,[]\n', "", "texts"),
    "labels of nobody": ("x.csv", "id,text,label\n1,Mara flew,x\n2,It rained,y\n", "long", "texts"),
    "authors": ("x.csv", "id,text,user,label\n1,Mara,a,x\n2,Oslo,a,y\n", "texts", "texts"),
    "users who answer": ("x.csv", "id,text,user,label\n1,Mara,a,x\n1,Mara,b,y\n", "long", "long"),
    "answers": (
        "x.csv", "tweet_id,tweet,rater,stance\n" + LONG.format("r1,pro", "r2,con", "r1,pro"),
        "long", "long",
    ),
    "a column per annotator": (
        "x.csv", "id,text,rater_1,rater_2\n1,Mara flew to Oslo,x,y\n2,It rained in Kiel,y,y\n",
        "wide", "wide",
    ),
    "two readings": (
        "x.csv", "id,text,ann,ben\n1,Mara flew to Oslo,x,y\n2,It rained in Kiel,y,x\n", "", "texts"
    ),
    "texts of another name": ("x.csv", "nr,satz\n1,Mara flew to Oslo\n2,It rained\n", "", "texts"),
    "objects": ("x.jsonl", lines({"text": "Mara"}, {"text": "Oslo", "meta": {"a": 1}}), "texts",
                "texts"),
    "objects without an ending": ("x", lines({"tokens": ["Mara"]}), "texts", "texts"),
    "objects of answers": ("x.jsonl", lines({"text": "Mara", "spans": [], "worker": "a"}), "spans",
                           "texts"),
    "a list": ("x.json", json.dumps([{"content": "Mara"}]), "texts", "texts"),
    "fields that nobody knows": ("x", lines({"text": "Mara", "marks": {"a": 1}}), "texts",
                                 "texts"),
}  # fmt: skip


def found(source, *, texts):
    try:
        return recognise(source, ReadOptions(), texts=texts)[0]
    except FormatError:
        return ""


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_known_by_evidence_and_never_by_being_left_over(kind):
    name, content, answers, texts = KINDS[kind]
    source = Source(name, content.encode())
    assert (found(source, texts=False), found(source, texts=True)) == (answers, texts)


def test_a_folder_is_one_of_texts_if_most_of_its_files_are():
    texts = {"a.txt": b"Mara flew.", "b.txt": b"It rained.", "README.md": b"x"}
    assert found(open_source(zipped(texts)), texts=False) == "texts"
    others = {"a.txt": b"Mara flew.", "b.html": b"<p>", "c.html": b"<p>"}
    assert found(open_source(zipped(others)), texts=False) == ""


def test_where_answers_are_wanted_texts_are_refused_with_the_command_that_labels_them(tmp_path):
    path = tmp_path / "my texts.csv"
    path.write_text("id,text\n1,Mara flew\n")
    with pytest.raises(FormatError, match="these are texts without answers") as error:
        read_crowd(path)
    command = str(error.value).split("`")[1]
    assert shlex.split(command) == ["goldspan", "init", str(path), "--labels", "LABEL,LABEL"]
    crowd = read_crowd(path, unlabelled="keep")
    assert (crowd.n_workers, crowd.texts.to_pylist()) == (0, ["Mara flew"])


def test_texts_of_another_name_are_refused_with_their_column(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("nr,satz\n1,Mara flew to Oslo\n2,It rained in Kiel\n")
    with pytest.raises(FormatError, match=r"without answers: .* --text-column satz --labels"):
        read_crowd(path)


def test_both_readings_are_printed_where_both_are_likely(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(KINDS["two readings"][1])
    with pytest.raises(FormatError, match="say how it is read") as error:
        read_crowd(path)
    answers, texts = (shlex.split(one) for one in str(error.value).split("`")[1::2])
    assert answers[:3] == ["goldspan", "aggregate", str(path)]
    assert texts[:5] == ["goldspan", "init", str(path), "--text-column", "text"]
    crowd = read_crowd(path, format=answers[4], workers=answers[-1].split(","))
    assert crowd.worker_ids.to_pylist() == ["ann", "ben"]
    pool = read_pool(path)
    assert pool.texts.to_pylist() == ["Mara flew to Oslo", "It rained in Kiel"]
    assert shlex.join(answers) in pool.import_report.notes[-1]


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table])
def test_a_frame_of_texts_is_refused_where_answers_are_wanted(make):
    frame = make({"id": [1, 2], "text": ["Mara flew", "It rained"]})
    with pytest.raises(FormatError, match="these are texts without answers"):
        read_crowd(frame)
    assert read_crowd(frame, unlabelled="keep").item_ids.to_pylist() == ["1", "2"]


def test_parquet_is_told_apart_as_a_table_is(tmp_path):
    texts = pa.table({"text": ["Mara flew", "It rained"], "year": [1, 2]})
    answers = pa.table({"text": ["Mara", "Mara"], "rater": ["a", "b"], "stance": ["x", "y"]})
    for table, wanted in ((texts, "texts"), (answers, "parquet")):
        pq.write_table(table, tmp_path / "x.parquet")
        assert found(open_source(tmp_path / "x.parquet"), texts=True) == wanted
    assert read_crowd(tmp_path / "x.parquet").n_workers == 2


def test_other_fields_stay_with_the_items_and_lists_are_not_attributes():
    rows = [{"id": 7, "text": "Mara", "k": [1], "v": 1}, {"id": 8, "text": "Oslo", "v": "x"}]
    crowd = read_pool(lines(*rows).encode())
    assert any("mixes types" in note for note in crowd.import_report.notes)
    assert any("left out: k" in note for note in crowd.import_report.notes)
    pool = Pool.of(crowd)
    assert [pool.cells(0), pool.cells(1)] == [{"v": "1"}, {"v": "x"}]
    chosen = select_items(pool, "random", random_state=1)
    again = {row["item"]: row for row in map(json.loads, selection_lines(chosen, crowd))}
    assert (again["7"]["k"], again["7"]["id"], again["8"]["text"]) == ([1], 7, "Oslo")
    assert "k" not in again["8"]


def test_items_are_numbered_only_where_they_have_no_ids(tmp_path):
    assert is_numbered(read_pool(b"Mara\nOslo\n", "text"))
    assert is_numbered(read_pool(b"text\nMara\n", "table"))
    assert not is_numbered(read_pool(b"id,text\n1,Mara\n", "table"))
    (tmp_path / "1.txt").write_text("Mara")
    assert not is_numbered(read_pool(tmp_path))


def test_texts_have_columns_of_their_own_roles_alone():
    with pytest.raises(InputError, match="texts have no column for start"):
        read_crowd(b"id,text\n1,x\n", format="texts", columns={"start": "id"}, unlabelled="keep")
