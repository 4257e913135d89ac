"""Pools in files of every kind: what is read is exactly what the file holds, or refused."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from goldspan.crowd.formats.texts import is_numbered
from goldspan.errors import FormatError, InputError, UnknownNameError
from goldspan.selection import Pool
from goldspan.selection.files import read_pool
from goldspan.spans import tokenize
from own_text import own_texts

TEXTS = own_texts(60)


def csv_of(rows, delimiter=",", encoding="utf-8", line_end="\r\n", quoting=csv.QUOTE_MINIMAL):
    buffer = io.StringIO(newline="")
    csv.writer(buffer, delimiter=delimiter, lineterminator=line_end, quoting=quoting).writerows(
        rows
    )
    return buffer.getvalue().encode(encoding)


def table(texts, **how):
    return csv_of([["id", "text"], *([f"t{n}", text] for n, text in enumerate(texts))], **how)


def put(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


FILES = {
    "pool.txt": lambda: "\n".join(TEXTS) + "\n",
    "dos.txt": lambda: "\r\n".join(TEXTS),
    "bom.txt": lambda: "\ufeff" + "\n".join(TEXTS),
    "pool.txt.gz": lambda: gzip.compress("\n".join(TEXTS).encode()),
    "pool.csv": lambda: table(TEXTS),
    "bom.csv": lambda: table(TEXTS, encoding="utf-8-sig"),
    "semicolon.csv": lambda: table(TEXTS, delimiter=";", encoding="utf-16"),
    "excel.csv": lambda: b"sep=;\r\n" + table(TEXTS, delimiter=";"),
    "all.csv": lambda: table(TEXTS, quoting=csv.QUOTE_ALL, line_end="\n"),
    "pool.tsv": lambda: table(TEXTS, delimiter="\t"),
    "pool.jsonl": lambda: "".join(
        json.dumps({"id": n, "text": t}) + "\n" for n, t in enumerate(TEXTS)
    ),
    "raw.jsonl": lambda: "".join(
        json.dumps({"content": t}, ensure_ascii=False) + "\r\n" for t in TEXTS
    ),
    "pool.json": lambda: json.dumps([{"text": text} for text in TEXTS], indent=1),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_text_is_exactly_what_the_file_holds(name, tmp_path):
    pool = Pool.of(read_pool(put(tmp_path / name, FILES[name]())))
    assert list(pool.given) == TEXTS
    for n, text in enumerate(TEXTS):
        starts, words = pool.starts_of(n), pool.words(n)
        assert [text[a : a + len(w)] for a, w in zip(starts, words, strict=True)] == words
        assert list(zip(starts, map(len, words), strict=True)) == [
            (a, b - a) for a, b in tokenize(text)
        ]


def test_a_line_is_cut_at_line_ends_alone():
    text = "a\u2028b\x0bc\x0cd\x85e"
    assert list(Pool.of(read_pool(f"{text}\nnext\n".encode(), "text")).given) == [text, "next"]


def test_a_cell_keeps_its_line_ends_and_its_quotes():
    cells = ["two\r\nlines", "one\nmore", 'said "so"', " blanks ", "007"]
    pool = Pool.of(read_pool(table(cells), "table"))
    assert list(pool.given) == cells
    assert pool.item_ids.to_pylist() == ["t0", "t1", "t2", "t3", "t4"]


def test_quotes_of_a_tsv_are_text_unless_its_writer_quotes():
    plain = b'id\ttext\n1\t"Hello," he said\n2\t"all"\n'
    assert list(Pool.of(read_pool(plain, "table")).given) == ['"Hello," he said', '"all"']
    quoted = table(['"Hello," he said', "tab\there", '"all"'], delimiter="\t")
    assert list(Pool.of(read_pool(quoted, "table")).given) == [
        '"Hello," he said', "tab\there", '"all"'
    ]  # fmt: skip


def test_ids_of_a_table_stay_as_they_are_and_other_columns_are_attributes():
    read = read_pool(
        b"ID,Sentence,label,doc,page\n007,Rome is old,x,d1,3\n008,It rains,,d1,\n", "table"
    )
    pool = Pool.of(read)
    assert pool.item_ids.to_pylist() == ["007", "008"]
    assert pool.crowd.groups.to_pylist() == ["d1", "d1"]
    assert [pool.cells(0), pool.cells(1)] == [{"label": "x", "page": "3"}, {}]
    assert read.import_report.columns == {"text": "Sentence", "item": "ID", "doc": "doc"}
    assert not is_numbered(read)


def test_a_folder_has_an_item_per_file(tmp_path):
    put(tmp_path / "b.txt", "Rome\r\nis old.\r\n")
    put(tmp_path / "a.txt", "\ufeffIt rains.")
    put(tmp_path / "empty.txt", "")
    put(tmp_path / "README.md", "x")
    read = read_pool(tmp_path)
    assert Pool.of(read).item_ids.to_pylist() == ["a", "b"]
    assert Pool.of(read).crowd.groups.to_pylist() == ["a", "b"]
    assert list(Pool.of(read).given) == ["It rains.", "Rome\r\nis old."]
    assert "README.md" in read.import_report.notes[0]
    assert "1 items are empty" in read.import_report.notes[1]


def test_parquet_of_tokens_and_of_texts(tmp_path):
    tokens = pa.table(
        {"id": ["x", "y"], "tokens": [["EU", "rejects"], ["Peter"]], "ner_tags": [[3, 0], [1]]}
    )
    pq.write_table(tokens, tmp_path / "tokens.parquet")
    read = read_pool(tmp_path / "tokens.parquet")
    assert Pool.of(read).words(0) == ["EU", "rejects"]
    assert Pool.of(read).given[0] == "EU rejects"
    assert any("tokens with a blank between" in note for note in read.import_report.notes)
    assert any("ner_tags" in note for note in read.import_report.notes)
    pq.write_table(pa.table({"text": TEXTS, "year": range(60)}), tmp_path / "texts.parquet")
    pool = Pool.of(read_pool(tmp_path / "texts.parquet"))
    assert list(pool.given) == TEXTS
    assert pool.cells(3) == {"year": 3}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_dataframe_is_read_as_a_table(make):
    pool = Pool.of(read_pool(make({"id": [1, 2], "text": TEXTS[:2], "n": [0.5, None]})))
    assert list(pool.given) == TEXTS[:2]
    assert pool.item_ids.to_pylist() == ["1", "2"]
    assert pool.cells(0) == {"n": 0.5}


def test_tokens_are_those_given_unless_they_are_to_be_cut():
    line = json.dumps({"text": "It's 5km", "tokens": ["It's", "5km"]}).encode()
    assert Pool.of(read_pool(line, "jsonl")).words(0) == ["It's", "5km"]
    assert Pool.of(read_pool(line, "jsonl", tokens="given")).words(0) == ["It's", "5km"]
    assert Pool.of(read_pool(line, "jsonl", tokens="fine")).words(0) == ["It", "'", "s", "5", "km"]
    bare = b'{"text": "It\'s 5km"}'
    assert Pool.of(read_pool(bare, "jsonl", tokens="space")).words(0) == ["It's", "5km"]
    with pytest.raises(FormatError, match="line 1, item 1: there are no tokens"):
        read_pool(bare, "jsonl", tokens="given")
    with pytest.raises(UnknownNameError, match="rule for tokens"):
        read_pool(bare, "jsonl", tokens="coarse")


def test_a_text_that_does_not_hold_its_tokens_is_refused_with_the_way_out():
    line = json.dumps({"id": "a", "text": '"No"', "tokens": ["``", "No", "''"]}).encode()
    with pytest.raises(FormatError, match=r'item a: the text does not hold .*task.tokens = "fine"'):
        read_pool(line, "jsonl")
    assert Pool.of(read_pool(line, "jsonl", tokens="fine")).words(0) == ['"', "No", '"']


def test_repeated_tokens_are_found_one_after_the_other():
    line = json.dumps({"text": "a  a b a", "tokens": ["a", "a", "a"], "token_start": [0, 3, 7]})
    assert Pool.of(read_pool(line.encode(), "jsonl")).starts_of(0) == [0, 3, 7]
    pairs = [{"text": "a", "start": 3}, {"text": "b", "start": 5}]
    line = json.dumps({"text": "a  a b a", "tokens": pairs})
    assert Pool.of(read_pool(line.encode(), "jsonl")).starts_of(0) == [3, 5]


def test_conll_has_its_texts_where_they_are_written_down():
    text = json.dumps("It's  fine")
    pool = Pool.of(read_pool(f"# id = a\n# text = {text}\nIt's\tO\nfine\tO\n".encode(), "conll"))
    assert (pool.given[0], pool.starts_of(0)) == ("It's  fine", [0, 6])
    line = "{}\t{}" + "\t_" * 8
    rows = [line.format("1-2", "im"), line.format(1, "in"), line.format(2, "dem")]
    assert Pool.of(read_pool("\n".join(rows).encode(), "conll")).words(0) == ["in", "dem"]


def test_empty_items_are_left_out_and_named():
    read = read_pool(b"id,text\na,x\nb,\nc, \xe2\x80\x8b\nd,y\n", "table")
    assert Pool.of(read).item_ids.to_pylist() == ["a", "d"]
    (note,) = read.import_report.notes
    assert note == "2 items are empty, with nothing to label, and left out: b, c"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"id,text\n1,Rome is old\n2,It rains\n", "'id', 'text'"),
        (b"text\nRome is old\n", "the name of a column"),
        (b'{"text": "Rome"}\n{"text": "x"}\n', r"a JSON object \(.jsonl\)"),
        (b'[{"text": "Rome"}]', "a JSON array"),
        (b"EU B-ORG\nrejects O\n\nPeter B-PER\n", "a token and its tag"),
        (b"%PDF-1.7 ...", "this is a PDF document"),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1....",
            "an Office document .*: open it and save it as CSV",
        ),
        (b"a\0b\n", "a NUL byte"),
    ],
)
def test_a_text_file_that_is_something_else_is_refused(content, words, tmp_path):
    path = put(tmp_path / "pool.txt", content)
    with pytest.raises(FormatError, match=words):
        read_pool(path)


def test_lines_that_look_like_a_table_are_lines_if_one_says_so(tmp_path):
    path = put(tmp_path / "pool.txt", "id,text\n1,Rome is old\n")
    assert list(Pool.of(read_pool(path, "text")).given) == ["id,text", "1,Rome is old"]


@pytest.mark.parametrize("inside", ["xl/workbook.xml", "word/document.xml"])
def test_office_files_are_told_to_be_saved_as_something_else(inside, tmp_path):
    with zipfile.ZipFile(tmp_path / "x.csv", "w") as archive:
        archive.writestr("[Content_Types].xml", "<x/>")
        archive.writestr(inside, "<x/>")
    with pytest.raises(FormatError, match="save"):
        read_pool(tmp_path / "x.csv")


@pytest.mark.parametrize(
    ("content", "named", "words"),
    [
        (b"id,text,body\n1,a,b\n", {}, r"'text', 'body' may be the text .*--text-column"),
        (b"id,satz\n1,a\n", {}, r"no column is known .*'id', 'satz'.*pool.text"),
        (b"id,text\n1,a\n", {"text": "txt"}, r"no column 'txt' \(did you mean 'text'"),
        (b"id,text\n1,a,b\n", {}, "line 2: 3 cells where the header has 2"),
        (b'id,text\n1,"a\n', {}, "a quoted cell is not closed"),
        (b"id,text\n,a\n", {}, "row 1: an item has no id"),
        (b"id,text\n1,a\n1,b\n", {}, "item 1 appears in the pool twice"),
        (b"id,id,text\n1,2,a\n", {}, "appear twice in the header"),
        (b"id,text\n", {}, "no row below"),
    ],
)
def test_a_table_that_cannot_be_read_names_the_fault(content, named, words):
    with pytest.raises(InputError, match=words):
        read_pool(content, "table", **named)


def test_columns_can_be_named():
    content = b"nr,satz,text,akte\na,eins,x,A1\n"
    read = read_pool(content, "table", text="satz", id="nr", document="akte")
    assert (Pool.of(read).given[0], Pool.of(read).item_ids[0].as_py()) == ("eins", "a")
    assert Pool.of(read).crowd.groups.to_pylist() == ["A1"]
    assert Pool.of(read).cells(0) == {"text": "x"}
    with pytest.raises(FormatError, match="no columns to name"):
        read_pool(b"Rome\n", "text", text="satz")


def test_half_a_character_is_refused():
    with pytest.raises(FormatError, match="half of a surrogate"):
        read_pool(b'{"text": "\\ud83d!"}', "jsonl")


def test_answers_are_a_crowd_and_texts_with_labels_are_a_pool(tmp_path):
    crowd = put(tmp_path / "a.csv", "id,text,annotator,label\n1,Rome,ann,x\n1,Rome,bob,y\n")
    with pytest.raises(InputError, match=r"answers of 2 annotators, not .*`goldspan aggregate"):
        read_pool(crowd)
    pool = put(tmp_path / "b.csv", "id,text,user,label\n1,Rome,ann,x\n2,Kiel,ann,y\n")
    assert list(Pool.of(read_pool(pool)).given) == ["Rome", "Kiel"]


def test_documents_of_lines_keep_their_names_when_the_file_grows():
    blocks = [f"line {n}\nand more\n" for n in range(12)]
    short = Pool.of(read_pool("\n".join(blocks[:9]).encode(), "text"))
    long = Pool.of(read_pool("\n".join(blocks).encode(), "text"))
    assert long.crowd.groups.to_pylist()[: short.n_items] == short.crowd.groups.to_pylist()
    assert Pool.of(read_pool(b"one\ntwo\n", "text")).crowd.groups is None


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_column_without_a_name_is_an_attribute(ending, tmp_path):
    """pandas writes its index as one: it was taken for the tokens and the document."""
    content = {"csv": ",text\n0,Rome is old\n1,It rains\n", "jsonl": '{"": "0", "text": "It"}\n'}
    path = tmp_path / f"texts.{ending}"
    path.write_text(content[ending], encoding="utf-8")
    read = read_pool(path)
    assert read.import_report.columns == {"text": "text"}
    assert Pool.of(read).crowd.groups is None
    assert Pool.of(read).words(0) == (["Rome", "is", "old"] if ending == "csv" else ["It"])


def test_columns_at_the_end_without_name_and_cells_are_left_out(tmp_path):
    path = put(tmp_path / "excel.csv", "id,text,,\na,Rome,,\nb,It rains,,\n")
    assert list(Pool.of(read_pool(path)).given) == ["Rome", "It rains"]
    put(path, "id,text,,\na,Rome,,\nb,It rains,,more\n")
    with pytest.raises(FormatError, match="appear twice"):
        read_pool(path)
