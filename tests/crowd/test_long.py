"""Long tables: single labels, sequences, DataFrames, repeated answers, and what comes back."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import goldspan
from crowd_tables import assert_same, refusal, small, written
from goldspan.crowd import CrowdBuilder
from goldspan.errors import InputError

SINGLE = "task,worker,label,gold\n1,a,x,x\n1,b,y,x\n2,a,,\n2,b,y,\n"
SEQUENCE = (
    "item,doc,worker,position,token,label,gold\n"
    "s1,d,a,0,Ann,B-PER,B-PER\n"
    "s1,d,a,1,sang,O,O\n"
    "s1,d,b,1,sang,O,O\n"
    "s2,e,b,0,Paris,B-LOC,?\n"
)


def read(text, **options):
    data = text.encode() if isinstance(text, str) else text
    return goldspan.read_crowd(data, format="long", **options)


def rows(*lines, header="item,worker,token,label"):
    return "\n".join([header, *lines]) + "\n"


def parquet(**columns):
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


# Single labels


def test_a_file_that_names_its_delimiter_in_the_first_line_is_recognised():
    crowd = goldspan.read_crowd(b"sep=|\ntask|worker|label\n1,0|a|x\n")
    assert crowd.import_report.format == "long"
    assert crowd.answers_of("1,0") == {"a": ["x"]}


def test_single_labels_are_a_crowd_of_plain_tags_on_one_token_each():
    crowd = read(SINGLE)
    assert crowd.is_classification
    assert crowd.item_ids.to_pylist() == ["1", "2"]
    assert crowd.tokens_list == [["1"], ["2"]]
    assert crowd.answers_of("1") == {"a": ["x"], "b": ["y"]}
    assert crowd.answers_of("2") == {"b": ["y"]}
    assert crowd.tagged_by_id() == {"1": ["x"], "2": [None]}
    assert (crowd.tagset.encoding, crowd.tagset.tags) == ("PLAIN", ("x", "y"))


def test_labels_that_look_like_tags_stay_plain_if_they_are_single():
    assert read("task,worker,label\n1,a,B-PER\n1,b,O\n").tagset.tags == ("B-PER", "O")


@pytest.mark.parametrize("label", ["NA", "?", "", "N/A", "NaN", "nan", "null"])
def test_cells_that_mean_no_label_are_no_answers(label):
    crowd = read(f"task,worker,label\n1,a,x\n1,b,{label}\n")
    assert crowd.answers_of("1") == {"a": ["x"]}
    assert crowd.worker_ids.to_pylist() == ["a", "b"]


@pytest.mark.parametrize(
    "header",
    ["item,annotator,tag", "question;user;answer", "Task\tWorkerId\tLabel", "id,labeler,category"],
)
def test_the_usual_names_of_columns_are_known(header):
    mark = next(c for c in ",;\t" if c in header)
    crowd = goldspan.read_crowd(f"{header}\n1{mark}a{mark}x\n".encode())
    assert crowd.import_report.format == "long"
    assert crowd.answers_of("1") == {"a": ["x"]}


def test_other_names_of_columns_need_no_format():
    data = b"aufgabe,token,wer,was\n1,Ann,a,B-PER\n"
    named = {"item": "aufgabe", "worker": "wer", "label": "was"}
    crowd = goldspan.read_crowd(data, columns=named)
    assert crowd.answers_of("1") == {"a": ["B-PER"]}


def test_a_column_that_the_user_named_is_not_taken_for_another_role():
    crowd = read("id,task,label\nann,1,x\n", columns={"worker": "task"})
    assert crowd.item_ids.to_pylist() == ["ann"]
    assert crowd.worker_ids.to_pylist() == ["1"]


def test_what_means_no_label_can_be_said():
    crowd = read("task,worker,label\n1,a,-\n1,b,NA\n1,c,\n", missing=["-"])
    assert crowd.answers_of("1") == {"b": ["NA"]}


# Sequences


def test_rows_of_one_item_and_worker_are_a_sequence():
    crowd = read(SEQUENCE)
    assert crowd.tokens_list == [["Ann", "sang"], ["Paris"]]
    assert crowd.groups.to_pylist() == ["d", "e"]
    assert crowd.answers_of("s1") == {"a": ["B-PER", "O"], "b": [None, "O"]}
    assert crowd.tagged_by_id() == {"s1": ["B-PER", "O"], "s2": [None]}
    assert crowd.tagset.encoding == "BIO"


@given(st.permutations(SEQUENCE.splitlines()[1:]))
def test_with_positions_the_order_of_rows_counts_only_for_the_order_of_items(lines):
    crowd = read("\n".join([SEQUENCE.splitlines()[0], *lines]))
    order = [crowd.item_index("s1"), crowd.item_index("s2")]
    assert_same(crowd.select_items(np.array(order)), read(SEQUENCE))


def test_positions_may_count_from_one():
    crowd = read(rows("1,a,1,x,O", "1,a,2,y,B-X", header="item,worker,position,token,label"))
    assert crowd.tokens_list == [["x", "y"]]


def test_without_positions_the_order_of_rows_is_that_of_the_tokens():
    crowd = read(rows("1,a,x,O", "1,b,x,O", "1,a,y,B-X", "1,b,y,O"))
    assert crowd.answers_of("1") == {"a": ["O", "B-X"], "b": ["O", "O"]}


def test_without_tokens_the_positions_name_them():
    crowd = read(rows("1,a,0,O", "1,a,1,B-X", header="item,worker,position,label"))
    assert crowd.tokens_list == [["0", "1"]]


def test_the_encoding_is_seen_in_answers_and_gold_together():
    data = rows("1,a,x,O,S-PER", "1,a,y,O,O", header="item,worker,token,label,gold")
    assert read(data).tagset.encoding == "IOBES"


def test_a_cell_with_quotes_and_line_ends_is_read():
    crowd = read('item,worker,token,label\n1,a,"a ""b"", c",O\n1,a,"two\nlines",O\n')
    assert crowd.tokens_list == [['a "b", c', "two\nlines"]]


def test_a_table_without_workers_is_gold():
    crowd = read("item,token,label\n1,Ann,B-PER\n1,sang,O\n")
    assert crowd.tagged_by_id() == {"1": ["B-PER", "O"]}
    assert len(crowd.answers) == 0
    assert any("read as gold" in note for note in crowd.import_report.notes)


def test_gold_rows_stand_in_the_order_of_their_positions():
    crowd = read("item,doc,position,token,label\n1,d,1,sang,O\n1,d,0,Ann,B-PER\n")
    assert crowd.tokens_list == [["Ann", "sang"]]
    assert crowd.groups.to_pylist() == ["d"]


# Numbers and times


@pytest.mark.parametrize(
    ("cell", "wanted"),
    [
        ("1704067200000", 1704067200000),
        ("2024-01-01", 1704067200000),
        ("2024-01-01T00:00:00", 1704067200000),
        ("2024-01-01 00:00:00.25", 1704067200250),
        ("2024-01-01T00:00:00Z", 1704067200000),
        ("2024-01-01T02:00:00+02:00", 1704067200000),
        ("", -1),
    ],
)
def test_times_are_milliseconds_or_iso_times(cell, wanted):
    crowd = read(f"item,worker,label,started,submitted\n1,a,x,{cell},2024-01-01\n1,b,x,,5\n")
    assert crowd.answers.started.tolist() == [wanted, -1]
    assert crowd.answers.submitted.tolist() == [1704067200000, 5]


def test_costs_are_whole_numbers():
    assert read("item,worker,label,cost\n1,a,x,50000\n1,b,x,\n").answers.cost.tolist() == [
        50000,
        -1,
    ]


@pytest.mark.parametrize(
    ("role", "cell", "what"),
    [
        ("submitted", "yesterday", "submitted 'yesterday' is not a whole number or an ISO time"),
        ("cost", "0.05", "cost '0.05' is not a whole number"),
        ("attempt", "2024-01-01", "attempt '2024-01-01' is not a whole number"),
        ("attempt", "70000", "attempt must be a number from 0 to 32767"),
        ("attempt", "-1", "attempt must be a number from 0 to 32767"),
        ("cost", "9" * 25, "is not a whole number"),
    ],
)
def test_a_number_that_is_none_is_refused_with_its_place(role, cell, what):
    data = f"item,worker,label,{role}\n1,a,x,\n7,b,x,{cell}\n".encode()
    refusal(data, "<bytes> line 3, item 7, worker b: ", what)


@pytest.mark.parametrize("cell", ["-1", "100001", "999999999999", "9" * 25, "1970-01-01", "x"])
def test_a_position_that_cannot_be_is_refused_with_its_place(cell):
    data = rows(f"7,a,{cell},x,O", header="item,worker,position,token,label").encode()
    refusal(data, "<bytes> line 2, item 7, worker a: position")


# Repeated answers


def test_repeated_answers_are_kept_the_last_counts_and_the_report_says_so():
    crowd = read("task,worker,label\n1,a,x\n1,b,y\n1,a,y\n1,a,z\n")
    assert crowd.answers.attempt.tolist() == [0, 0, 1, 2]
    assert crowd.answers_of("1") == {"a": ["z"], "b": ["y"]}
    assert "2 repeated answers: all kept, the last one counts" in crowd.import_report.notes


def test_attempts_can_be_numbered_and_the_highest_counts():
    data = "task,worker,label,attempt\n1,a,x,5\n1,a,y,2\n1,b,z,\n"
    assert read(data).answers_of("1") == {"a": ["x"], "b": ["z"]}
    assert read(data).answers.attempt.tolist() == [5, 2, 0]
    assert read(data, repeated="first").answers_of("1") == {"a": ["y"], "b": ["z"]}


def test_repeated_sequences_with_positions_are_attempts():
    lines = ["1,a,0,x,O", "1,a,1,y,O", "1,a,0,x,B-X", "1,a,1,y,O"]
    crowd = read(rows(*lines, header="item,worker,position,token,label"))
    assert crowd.tokens_list == [["x", "y"]]
    assert crowd.answers_of("1") == {"a": ["B-X", "O"]}
    assert len(crowd.answers) == 2


def test_repeated_sequences_without_positions_are_attempts_too():
    lines = ["1,a,x,O", "1,a,y,O", "1,b,x,O", "1,b,y,O", "1,a,x,B-X", "1,a,y,O"]
    crowd = read(rows(*lines))
    assert crowd.tokens_list == [["x", "y"]]
    assert crowd.answers_of("1") == {"a": ["B-X", "O"], "b": ["O", "O"]}
    assert len(crowd.answers) == 3


def test_an_attempt_that_stands_twice_is_refused_with_both_lines():
    single = b"task,worker,label,attempt\n1,a,x,0\n1,b,x,0\n1,a,y,0\n"
    refusal(
        single,
        "<bytes> line 4, item 1 token 0, worker a: attempt 0 appears twice (first in line 2)",
    )
    lines = ["1,a,0,x,O,0", "1,a,1,y,O,0", "1,a,1,y,B-X,0"]
    refusal(
        rows(*lines, header="item,worker,position,token,label,attempt").encode(),
        "line 4, item 1 token 1, worker a: attempt 0 appears twice (first in line 3)",
    )


@pytest.mark.realdata
@pytest.mark.parametrize(("name", "repeats"), [("weather_tweets_amt", 5), ("adult_content2", 2922)])
def test_the_repeated_answers_of_real_crowds_are_those_of_the_data_page(data, name, repeats):
    crowd = goldspan.read_crowd(next((data / "classification" / name).glob("labels.csv*")))
    assert len(crowd.answers) - len(crowd.latest) == repeats
    assert any(note.startswith(f"{repeats} repeated") for note in crowd.import_report.notes)


REAL = {
    "bluebirds": (108, 39, 4212),
    "ducks": (240, 53, 9600),
    "dog": (807, 109, 8070),
    "face_sentiment": (584, 27, 5242),
    "product": (8315, 176, 24945),
    "snow_rte": (800, 164, 8000),
    "snow_temp": (462, 76, 4620),
    "snow_wsd": (177, 34, 1770),
    "web": (2665, 177, 15567),
    "sentiment_polarity": (4999, 203, 27746),
    "weather_tweets_amt": (300, 110, 6030),
    "adult_content2": (11040, 825, 92721),
}


@pytest.mark.realdata
@pytest.mark.parametrize("name", REAL)
def test_real_crowds_of_single_labels_have_the_numbers_of_the_data_page(data, name):
    crowd = goldspan.read_crowd(next((data / "classification" / name).glob("labels.csv*")))
    assert (crowd.n_items, crowd.n_workers, len(crowd.answers)) == REAL[name]


# DataFrames and Parquet

FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
    "parquet": lambda columns: parquet(**columns),
    "categories": lambda columns: pd.DataFrame(columns).astype({"worker": "category"}),
    "polars categories": lambda columns: pl.DataFrame(columns).cast({"worker": pl.Categorical}),
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_a_table_of_any_make_is_read(make):
    crowd = goldspan.read_crowd(
        make({"task": [7, 7, 8], "worker": ["a", "b", "a"], "label": [0, 1, 1]})
    )
    assert crowd.item_ids.to_pylist() == ["7", "8"]
    assert crowd.answers_of("7") == {"a": ["0"], "b": ["1"]}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_a_sequence_of_any_make_is_read(make):
    columns = {"item": [1, 1], "worker": ["a", "a"], "position": [1, 0], "token": ["y", "x"]}
    crowd = goldspan.read_crowd(make({**columns, "label": ["O", "B-X"], "attempt": [0, 0]}))
    assert crowd.answers_of("1") == {"a": ["B-X", "O"]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_whole_numbers_stay_whole_where_a_value_is_missing(make):
    columns = {"task": [1.0, 2.0], "worker": [3.0, 4.0], "label": [0.0, None], "gold": [1.0, None]}
    crowd = goldspan.read_crowd(make({**columns, "submitted": [1.7e12, None]}))
    assert crowd.item_ids.to_pylist() == ["1", "2"]
    assert crowd.answers_of("1") == {"3": ["0"]}
    assert crowd.tagset.tags == ("0", "1")
    assert crowd.answers.submitted.tolist() == [1_700_000_000_000]


def test_nan_is_no_label():
    frame = pl.DataFrame({"task": [1, 1], "worker": ["a", "b"], "label": [1.0, float("nan")]})
    assert goldspan.read_crowd(frame).answers_of("1") == {"a": ["1"]}


def test_fractions_stay_fractions():
    frame = pd.DataFrame({"task": [1, 1], "worker": ["a", "b"], "label": [1.0, 0.5]})
    assert goldspan.read_crowd(frame).answers_of("1") == {"a": ["1"], "b": ["0.5"]}


@pytest.mark.parametrize("unit", ["us", "ns", "ms"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_times_of_a_data_frame_are_milliseconds(unit, zone):
    moments = pd.Series([datetime(2024, 1, 1, 12, tzinfo=UTC), None]).dt.as_unit(unit)
    moments = moments.dt.tz_convert(zone) if zone else moments.dt.tz_localize(None)
    frame = pd.DataFrame({"task": [1, 2], "worker": "a", "label": "x", "submitted": moments})
    assert goldspan.read_crowd(frame).answers.submitted.tolist() == [1704110400000, -1]


def in_chunks(table):
    return pa.concat_tables([table.slice(1, 2), table.slice(0, 1), table.slice(3)])


def test_ids_stand_in_the_order_of_the_rows_though_a_table_comes_in_chunks():
    columns = {
        "task": [7, 9, 8, 7, 10],
        "worker": list("baabc"),
        "label": ["x", None, "", "y", "x"],
    }
    crowd = goldspan.read_crowd(in_chunks(pa.table(columns)))
    assert crowd.item_ids.to_pylist() == ["9", "8", "7", "10"]
    assert crowd.worker_ids.to_pylist() == ["a", "b", "c"]
    assert crowd.answers_of("7") == {"b": ["y"]}
    assert crowd.answers_of("9") == {}


def test_categories_may_be_unused_stand_in_any_order_and_twice():
    words = pa.array(["c", "b", "a", "b", None])
    named = {
        "task": pa.DictionaryArray.from_arrays(pa.array([1, 2, 3]), words),
        "worker": ["w"] * 3,
        "label": pa.DictionaryArray.from_arrays(pa.array([4, None, 1]), words),
    }
    crowd = goldspan.read_crowd(pa.table(named))
    assert crowd.item_ids.to_pylist() == ["b", "a"]
    assert crowd.answers_of("b") == {"w": ["b"]}
    assert crowd.tagset.tags == ("b",)
    frame = pd.DataFrame({"task": pd.Categorical([5, 3], [3, 4, 5]), "worker": "w", "label": 1})
    assert goldspan.read_crowd(frame).item_ids.to_pylist() == ["5", "3"]


def test_an_empty_cell_is_refused_at_every_row_that_has_it():
    table = pa.table({"task": [1, None, 2, None], "worker": list("abab"), "label": list("xxxx")})
    refusal(table, "line 2: the item is empty", "line 4: the item is empty")


def test_columns_that_are_not_asked_for_may_hold_anything():
    frame = pd.DataFrame({"task": [1], "worker": ["a"], "label": ["x"], "notes": [[1, "b"]]})
    assert goldspan.read_crowd(frame).n_items == 1


@pytest.mark.parametrize(
    ("frame", "parts"),
    [
        (pl.LazyFrame({"task": [1], "worker": ["a"], "label": ["x"]}), ["collect() it"]),
        (
            pd.DataFrame({"task": [1, 2], "worker": "a", "label": [1, "x"]}),
            ["columns of mixed types"],
        ),
        (
            pd.DataFrame([[1, "a", "x", "y"]], columns=["task", "worker", "label", "label"]),
            ["'label' 2 times: ", "name every column once"],
        ),
        (pa.table({"task": [1], "worker": ["a"], "label": [["x"]]}), ["column 'label' holds list"]),
        (
            pd.DataFrame({"task": [1], "worker": ["a"]}),
            ["no column for label", "columns={'label': …}"],
        ),
        (pd.DataFrame({"task": [], "worker": [], "label": []}), ["the table has no row"]),
    ],
    ids=["lazy", "mixed", "twice", "lists", "no label", "no row"],
)
def test_a_data_frame_that_cannot_be_read_is_refused(frame, parts):
    refusal(frame, *parts)


# What is refused


def test_an_unknown_tag_is_refused_with_line_item_and_worker():
    data = rows("1,a,x,B-X", "1,a,y,X-X").encode()
    refusal(
        data,
        "<bytes> line 3, item 1, worker a: tag 'X-X' is not in BIO",
        "--label OLD=NEW",
        encoding="BIO",
    )


def test_an_unknown_tag_in_the_gold_is_refused_with_item_and_token():
    data = rows("1,a,x,O,B-X", "1,a,y,O,X-X", header="item,worker,token,label,gold").encode()
    refusal(data, "<bytes>, item 1 token 1, worker gold: tag 'X-X' is not in BIO", encoding="BIO")


def test_contradictory_gold_is_refused_with_both_values():
    data = b"task,worker,label,gold\n1,a,x,\n1,b,x,x\n1,c,x,y\n"
    refusal(data, "<bytes> line 4, item 1, worker c: gold 'y' where an earlier row has 'x'")


def test_workers_with_different_tokens_are_refused_with_the_way_out():
    data = rows("1,a,x,O", "1,b,z,O").encode()
    refusal(
        data,
        "<bytes> line 3, item 1 token 0, worker b: token 'z' where another row has 'x'",
        "format 'folder', which aligns them",
    )


def test_a_position_that_no_row_has_is_refused():
    data = rows("7,a,0,x,O", "7,a,2,z,O", header="item,worker,position,token,label").encode()
    refusal(data, "<bytes>, item 7 token 1: no row shows this token")


@pytest.mark.parametrize(
    ("line", "what"),
    [(",a,x,O", "item"), ("1,,x,O", "worker"), ("1,a,,O", "token"), ("1, ,x,O", "worker")],
)
def test_an_empty_cell_is_refused_with_its_line(line, what):
    refusal(
        rows("1,a,x,O", line).encode(),
        f"<bytes> line 3: the {what} is empty: remove the row, or write the {what}",
    )


def test_gold_rows_with_gaps_or_repeats_are_refused():
    header = "item,position,token,label"
    for second in ("0", "2"):
        data = rows("1,0,x,O", f"1,{second},y,O", header=header).encode()
        refusal(data, "<bytes> line 3, item 1: position", "from 0 or 1 without gaps or repeats")


def test_several_labels_without_a_worker_column_are_refused_with_the_way_to_name_it():
    refusal(
        b"task,label\n1,x\n1,y\n",
        "<bytes> line 3, item 1: the item has several labels",
        "--columns worker=NAME",
    )


def test_a_missing_column_is_refused_with_the_header_and_the_way_to_name_it():
    refusal(
        b"a,b,label\n1,2,3\n",
        "<bytes> line 1: no column for item (the header has a, b, label)",
        "--columns item=NAME",
        format="long",
    )
    refusal(
        SINGLE.encode(),
        "there is no column 'frage': the header has task, worker, label, gold",
        columns={"item": "frage"},
    )


def test_a_worker_column_of_question_marks_is_one_worker_of_that_name():
    assert read("task,worker,label\n1,?,x\n2,?,y\n").worker_ids.to_pylist() == ["?"]


# What comes back


def test_a_tsv_has_tabs_and_a_csv_commas():
    for name, mark in (("a.tsv", "\t"), ("a.csv", ","), ("a.tsv.gz", "\t")):
        with written(small(), "long", name) as (path, _):
            text = goldspan.crowd.source.open_source(path).text.value
            assert text.splitlines()[0] == mark.join(
                ["item", "worker", "position", "token", "label"]
            )


def test_what_nobody_answered_is_not_written(tmp_path):
    builder = CrowdBuilder()
    builder.add_item("i", ["Ann", "sang"], gold=["B-PER", "O"])
    with pytest.raises(InputError, match="a row per answer, and the crowd has none: write another"):
        goldspan.write_crowd(builder.build(), tmp_path / "x.csv", format="long")
    assert not (tmp_path / "x.csv").exists()


UNREAD = "id,text,start,length,label,annotator\n1,Ann sang,0,3,PER,ann\n"


@pytest.mark.parametrize(
    "make", [str.encode, lambda text: pd.read_csv(io.StringIO(text), dtype=str)]
)
def test_columns_without_a_role_are_named(make):
    notes = goldspan.read_crowd(make(UNREAD)).import_report.notes
    assert "columns that are not read: start, length" in notes
    assert goldspan.read_crowd(SINGLE.encode()).import_report.notes[0].startswith("1 cell ''")


def test_the_text_may_be_called_data():
    crowd = goldspan.read_crowd(b"id,data,annotator,label\n1,Good film.,ann,pos\n")
    assert crowd.texts.to_pylist() == ["Good film."]
    assert crowd.import_report.notes == ()


def test_an_item_that_is_named_in_its_first_row_only_has_the_rows_below():
    data = "Sentence #,Word,POS,Tag\nS 1,Ada,NNP,B-per\n,swam,VBD,O\nS 2,It,PRP,O\n,rained,VBD,O\n"
    crowd = goldspan.read_crowd(data.encode())
    assert crowd.tagged_by_id() == {"S 1": ["B-per", "O"], "S 2": ["O", "O"]}
    assert crowd.import_report.format == "long"
    assert "rows without an item are of the item above" in crowd.import_report.notes
    assert goldspan.read_crowd(data.encode(), format="long").n_items == 2
    worked = "item,worker,token,label\na,w,Ada,B-per\n,w,swam,O\nb,w,It,O\n"
    assert goldspan.read_crowd(worked.encode()).answers_of("a") == {"w": ["B-per", "O"]}
    # Where an id comes again, an empty cell may be of any item
    refusal(data.replace("S 2", "S 1").encode(), "the item is empty")
    refusal(data.replace("S 1,", ",", 1).encode(), "the item is empty")


# Columns whose names promise what is not in them


@pytest.mark.parametrize("name", ["index", "token_id", "position"])
def test_a_number_of_rows_or_of_questions_is_no_position_of_tokens(name):
    data = f"{name},item,worker,label\n0,1,a,x\n1,1,b,y\n2,2,a,x\n3,2,b,x\n"
    crowd = read(data)
    assert crowd.is_classification
    assert crowd.n_tokens == crowd.n_items == 2
    assert any("numbers of rows" in note for note in crowd.import_report.notes)
    assert not read(data, columns={"position": name}).is_classification
    gold = read(f"{name},item,label\n0,1,x\n1,2,y\n")
    assert gold.is_classification
    assert gold.gold.tolist() == [0, 1]


def test_positions_of_tokens_without_the_tokens_are_positions():
    crowd = read("item,worker,position,label\n1,a,0,x\n1,a,1,y\n2,a,0,x\n")
    assert np.diff(crowd.offsets).tolist() == [2, 1]


def test_a_timestamp_that_cannot_be_read_is_left_out_and_said():
    rows = "1,a,x,2023/05/01 10:00:00 AM GMT+1\n1,b,y,2023/05/01 10:00:07 AM GMT+1\n"
    crowd = read(f"item,worker,label,Timestamp\n{rows}")
    assert crowd.answers.submitted is None
    assert any("times that are neither ISO" in note for note in crowd.import_report.notes)
    known = read("item,worker,label,time\n1,a,x,2024-01-01\n1,b,y,5\n")
    assert known.answers.submitted.tolist() == [1704067200000, 5]
