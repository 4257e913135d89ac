"""Parquet: everything of a crowd comes back; damaged files and other layouts are refused."""

from __future__ import annotations

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import goldspan
from crowd_tables import assert_same, crowd_of, read_or_refuse, refusal, small, written
from goldspan.crowd import CrowdBuilder, write_crowd


def bytes_of(crowd):
    with written(crowd, "parquet") as (path, _):
        return path.read_bytes()


def packed(table, **about):
    """Write a table with goldspan's metadata."""
    buffer = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({b"goldspan": json.dumps(about)}), buffer)
    return buffer.getvalue()


def layout(**changes):
    """Return the table and the metadata of a small crowd, with some columns changed."""
    table = pq.read_table(io.BytesIO(bytes_of(small(gold=["B-X", None]))))
    about = json.loads(table.schema.metadata[b"goldspan"])
    for name, values in changes.items():
        if name in table.column_names:
            place = table.column_names.index(name)
            table = table.set_column(place, name, pa.array(values, table.schema.field(name).type))
        else:
            about[name] = values
    return packed(table, **about)


# What comes back


def test_what_nobody_answered_comes_back():
    builder = CrowdBuilder()
    builder.add_item("a", ["x"])
    builder.add_worker("nobody")
    crowd = builder.build()
    assert_same(goldspan.read_crowd(bytes_of(crowd)), crowd)


def test_the_order_of_workers_answers_and_tags_comes_back():
    crowd = small(again=["O", "O"], gold=["B-X", None], cost=7)
    back = goldspan.read_crowd(bytes_of(crowd))
    assert back.tagset == crowd.tagset
    for name in ("item", "worker", "offset", "codes", "attempt", "cost"):
        one, two = getattr(back.answers, name), getattr(crowd.answers, name)
        assert one.tolist() == two.tolist()
        assert one.dtype == two.dtype
    assert back.gold.dtype == np.int16


def test_the_report_counts_the_labels():
    report = goldspan.read_crowd(bytes_of(crowd_of([{"v": ["B-X", None]}]))).import_report
    assert (report.format, report.n_labels, report.n_placed) == ("parquet", 1, 1)


# What is refused


def test_a_file_of_a_newer_goldspan_is_refused():
    refusal(
        layout(version=2),
        "<bytes>: written by a newer goldspan (layout 2, this one reads 1): update goldspan",
    )


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"tags": ["O"]}, "a label is not a tag"),
        ({"tags": ["O", "Q-X", "I-X"]}, "tag 'Q-X' is not in BIO"),
        ({"encoding": "BIOX"}, "unknown encoding"),
        ({"workers": []}, "KeyError"),
        ({"workers": ["w", "w"]}, "an id appears twice"),
        ({"has": ["doc"]}, "doc"),
        ({"item": [0, 5]}, "an answer has no item"),
        ({"item": [0, None]}, "an answer has no item"),
        ({"attempt": [None, None]}, "an attempt appears twice"),
        ({"labels": [None, [1]]}, "not as many labels as its item has tokens"),
        ({"labels": [None, [1, 1, 1]]}, "not as many labels as its item has tokens"),
        ({"attempt": [None, -1]}, "an attempt appears twice"),
        ({"tokens": [[], None]}, "an item has no token"),
        ({"tokens": [["x", None], None]}, "a value is missing"),
        ({"gold": [[1], None]}, "a column is too short"),
        ({"version": None}, "TypeError"),
    ],
    ids=lambda value: None if isinstance(value, str) else str(value),
)
def test_a_layout_that_does_not_fit_together_is_refused(changes, what):
    refusal(
        layout(**changes), "<bytes>: goldspan's layout is damaged (", what, "write the file again"
    )


def test_metadata_that_are_no_json_are_refused():
    table = pa.table({"worker": ["a"]}).replace_schema_metadata({b"goldspan": b"\xff{"})
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    refusal(buffer.getvalue(), "goldspan's layout is damaged")


def test_a_truncated_file_is_refused(tmp_path):
    path = tmp_path / "crowd.parquet"
    write_crowd(small(), path)
    path.write_bytes(path.read_bytes()[:-30])
    refusal(path, f"{path}: the Parquet file is truncated or damaged", "fetch or write it again")


def test_a_flipped_byte_of_the_data_is_noticed():
    crowd = crowd_of([{f"w{n}": ["B-X", "I-X", "O"] for n in range(50)}])
    whole = bytes_of(crowd)
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    for place in range(4, len(whole) - footer, 7):
        broken = bytearray(whole)
        broken[place] ^= 0xFF
        back = read_or_refuse(bytes(broken), format="parquet")
        assert back is None or back == crowd


@pytest.mark.realdata
def test_the_crowd_of_paper_000_takes_less_than_a_byte_per_label(data):
    crowd = goldspan.read_crowd(data / "ner_mturk" / "crowd.tsv.gz")
    with written(crowd, "parquet", "crowd.parquet") as (path, lost):
        assert lost == []
        assert_same(goldspan.read_crowd(path), crowd)
        table = pq.ParquetFile(path).metadata
        sizes = {}
        for n in range(table.row_group(0).num_columns):
            column = table.row_group(0).column(n)
            sizes[column.path_in_schema] = column.total_compressed_size
        labels = next(size for name, size in sizes.items() if name.startswith("labels"))
        assert labels < crowd.import_report.n_placed
