"""Files: pools in every form, errors, and the lines of a batch."""

from __future__ import annotations

import gzip
import json

import polars as pl
import pyarrow.parquet as pq
import pytest

import goldspan
from goldspan.errors import FormatError, InputError, UnknownNameError
from goldspan.selection import Pool, select_items
from goldspan.selection.files import read_errors, read_pool, selection_lines


def test_plain_text_has_an_item_per_line():
    pool = Pool.of(read_pool(b"Rome is old.\n\nIt rains.\n", "text"))
    assert pool.item_ids.to_pylist() == ["1", "3"]
    assert pool.words(1) == ["It", "rains", "."]


def test_the_ending_says_how_a_file_is_read(tmp_path):
    line = json.dumps({"id": "a", "tokens": ["x", "y"], "year": 7})
    path = tmp_path / "pool.jsonl.gz"
    path.write_bytes(gzip.compress(line.encode()))
    read = read_pool(path)
    assert Pool.of(read).item_ids.to_pylist() == ["a"]
    assert read.attributes["year"].to_pylist() == [7]
    conll = tmp_path / "pool.conll"
    conll.write_text("# id = D1\nRome\tB-LOC\nis\tO\n\n", encoding="utf-8")
    assert Pool.of(read_pool(conll)).words(0) == ["Rome", "is"]


def test_any_crowd_is_a_pool(root):
    path = root / "examples" / "crowd.tsv"
    assert Pool.of(read_pool(path)).item_ids.equals(goldspan.read_crowd(path).item_ids)


@pytest.mark.parametrize("mark", [",", "\t", ";"])
def test_a_table_has_a_row_per_item(mark):
    text = mark.join(["item", "n", "s"]) + "\n" + mark.join(["a", "1.5", ""]) + "\n"
    pool = Pool.of(read_pool(text.encode(), "attributes"))
    assert pool.columns["n"].tolist() == [1.5]
    assert pool.columns["s"].null_count == 1


def test_a_column_of_whole_numbers_may_end_with_another():
    text = "item,n\n" + "".join(f"{n},1\n" for n in range(200_000)) + "last,0.5\n"
    pool = Pool.of(read_pool(text.encode(), "attributes"))
    assert pool.columns["n"][-1] == 0.5


def test_a_table_may_be_parquet(tmp_path):
    pq.write_table(pl.DataFrame({"item": ["a"], "n": [2]}).to_arrow(), tmp_path / "t.parquet")
    assert Pool.of(read_pool(tmp_path / "t.parquet", "attributes")).columns["n"].tolist() == [2.0]


def test_what_is_no_table_is_refused():
    with pytest.raises(InputError, match="is not a table of attributes"):
        read_pool(b"item,n\na,1,2\n", "attributes")
    with pytest.raises(InputError, match="row 1: an item has no id"):
        read_pool(b"item,n\na,1\n,2\n", "attributes")
    with pytest.raises(UnknownNameError, match="format of a pool"):
        read_pool(b"x", "xml")


def test_errors_are_shares_or_items_that_are_wrong():
    assert read_errors(b"task\nq1\nq2\n") == {"q1": 1.0, "q2": 1.0}
    assert read_errors(b"Item, error\nq1,0.25\n") == {"q1": 0.25}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"name,error\na,1\n", "a column item"),
        (b"item,error\na,\n", "line 2, item a: an error is a number"),
        (b"item,error\na\n", "line 2, item a: an error is a number"),
        (b"item\na\na\n", "line 3, item a: the item appears twice"),
    ],
)
def test_faulty_errors_name_the_line(text, words):
    with pytest.raises(FormatError, match=words):
        read_errors(text)


def test_lines_of_a_batch_can_be_read_as_a_pool_again():
    read = read_pool(b'{"item": "a", "text": "Rome is old.", "k": [1]}\n', "jsonl")
    found = select_items(Pool.of(read), "random")
    (line,) = selection_lines(found, read)
    again = read_pool(line.encode(), "jsonl")
    assert Pool.of(again).words(0) == Pool.of(read).words(0)
    assert again.attributes["k"].to_pylist() == [[1]]
    assert json.loads(line)["select"]["is_control"] is True
