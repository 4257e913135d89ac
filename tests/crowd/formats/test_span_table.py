"""Tables of spans: from files, Parquet, DataFrames and lists of dicts, never as single labels."""

from __future__ import annotations

import csv
import io

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import goldspan
from goldspan.errors import GoldspanError, InputError

TEXT = 'Ann said "😀, hi"\r\nto Bob'
LONG = "x " * 60_000 + "Rome"
ROWS = [
    {"id": "a", "text": TEXT, "start": 0, "end": 3, "label": "PER", "annotator": "w1"},
    {"id": "a", "text": TEXT, "start": 21, "end": 24, "label": "PER", "annotator": "w1"},
    {"id": "a", "text": TEXT, "start": 10, "end": 11, "label": "EMO", "annotator": "w2"},
    {"id": "b", "text": "  In Rome ", "start": None, "end": None, "label": None,
     "annotator": "w1"},
    {"id": "b", "text": "  In Rome ", "start": 5, "end": 9, "label": "LOC", "annotator": "w2"},
]  # fmt: skip


def table(rows, delimiter=",", **options):
    buffer = io.StringIO(newline="")
    out = csv.DictWriter(buffer, list(rows[0]), delimiter=delimiter, **options)
    out.writeheader()
    out.writerows(rows)
    return buffer.getvalue().encode()


def with_nulls(rows):
    return pd.DataFrame(rows)  # start and end become floats, NaN where empty


def parquet(rows):
    buffer = io.BytesIO()
    with_nulls(rows).to_parquet(buffer)
    return buffer.getvalue()


WAYS = {
    "csv": table,
    "tsv": lambda rows: table(rows, "\t"),
    "semicolons": lambda rows: table(rows, ";"),
    "windows": lambda rows: b"\xef\xbb\xbf" + table(rows, lineterminator="\r\n"),
    "pandas": with_nulls,
    "polars": pl.DataFrame,
    "arrow": pa.Table.from_pylist,
    "parquet": parquet,
    "dicts": list,
}


def refused(data, *parts, **options):
    with pytest.raises(GoldspanError) as caught:
        goldspan.read_crowd(data, **options)
    for part in parts:
        assert part in str(caught.value), str(caught.value)


@pytest.mark.parametrize("way", WAYS)
def test_a_table_of_spans_is_read_as_spans(way):
    crowd = goldspan.read_crowd(WAYS[way](ROWS))
    assert crowd.import_report.format == "span-table"
    assert not crowd.is_classification
    assert crowd.texts.to_pylist() == [TEXT, "  In Rome "]
    assert crowd.item_ids.to_pylist() == ["a", "b"]
    assert crowd.tokens_list[0] == ["Ann", "said", '"', "😀", ",", "hi", '"', "to", "Bob"]
    assert crowd.answers_of("a") == {
        "w1": ["B-PER", *["O"] * 7, "B-PER"],
        "w2": ["O"] * 3 + ["B-EMO"] + ["O"] * 5,
    }
    assert crowd.answers_of("b") == {"w1": ["O", "O"], "w2": ["O", "B-LOC"]}
    assert crowd.import_report.adds_up


@pytest.mark.parametrize(("unit", "shift"), [("utf16", 1), ("utf8", 3)])
def test_offsets_may_count_other_units(unit, shift):
    rows = [{**ROWS[1], "start": 21 + shift, "end": 24 + shift}]
    crowd = goldspan.read_crowd(rows, offsets=unit)
    assert crowd.answers_of("a")["w1"][-1] == "B-PER"


def test_texts_may_be_longer_than_any_token():
    rows = [{**ROWS[0], "text": LONG, "start": len(LONG) - 4, "end": len(LONG), "label": "LOC"}]
    for data in (table(rows), table(rows, "\t"), rows):
        crowd = goldspan.read_crowd(data)
        assert crowd.texts.to_pylist() == [LONG]
        assert crowd.answers_of("a")["w1"][-1] == "B-LOC"


def test_the_text_may_stand_in_one_row_only():
    rows = [{**row, "text": ""} for row in ROWS]
    rows[2]["text"], rows[4]["text"] = TEXT, "  In Rome "
    assert goldspan.read_crowd(table(rows)) == goldspan.read_crowd(table(ROWS))
    rows[4]["text"] = ""
    refused(table(rows), "line 6, item b: no row of this item has its text")


def test_without_an_item_column_the_text_is_the_item():
    rows = [{key: value for key, value in row.items() if key != "id"} for row in ROWS]
    crowd = goldspan.read_crowd(table(rows))
    assert crowd.item_ids.to_pylist() == ["1", "2"]
    assert crowd.n_workers == 2


def test_ids_of_spans_are_not_taken_for_ids_of_items():
    rows = [{**row, "id": str(n)} for n, row in enumerate(ROWS)]
    refused(table(rows), "is it the id of the span?", "columns={'item': 'text'}")
    crowd = goldspan.read_crowd(table(rows), columns={"item": "text"})
    assert crowd.item_ids.to_pylist() == [TEXT, "  In Rome "]


def test_without_a_worker_column_the_spans_are_gold():
    rows = [{key: value for key, value in row.items() if key != "annotator"} for row in ROWS[:2]]
    crowd = goldspan.read_crowd(table(rows))
    assert crowd.n_workers == 0
    assert crowd.tagged_by_id() == {"a": ["B-PER", *["O"] * 7, "B-PER"]}
    assert "no worker column: the spans are read as gold" in crowd.import_report.notes
    known = goldspan.read_crowd(table(ROWS), gold=rows)
    assert known.gold is not None


@pytest.mark.parametrize(
    "names",
    [
        ["doc_id", "sentence", "begin", "stop", "entity_type", "coder"],
        ["Task", "Content", "start_offset", "end_offset", "Tag", "username"],
        ["document", "text", "start_char", "end_char", "type", "rater"],
    ],
)
def test_columns_have_other_usual_names(names):
    rows = [dict(zip(names, row.values(), strict=True)) for row in ROWS]
    assert goldspan.read_crowd(rows) == goldspan.read_crowd(ROWS)


def test_columns_can_be_named():
    rows = [
        dict(zip("abcdef", row.values(), strict=True)) | {"item": "x", "label": "y"} for row in ROWS
    ]
    columns = dict(zip(("item", "text", "start", "end", "label", "worker"), "abcdef", strict=True))
    assert goldspan.read_crowd(rows, columns=columns) == goldspan.read_crowd(ROWS)
    assert goldspan.read_crowd(table(rows), columns=columns) == goldspan.read_crowd(ROWS)
    refused(
        rows, "there is no column 'zz'", columns={**columns, "start": "zz"}, format="span-table"
    )


@pytest.mark.parametrize(
    ("more", "part"),
    [
        ({"user": "u"}, "which column is the worker: annotator, user?"),
        ({"sentence": "s"}, "which column is the text: text, sentence?"),
        ({"begin": 0}, "which column is the start: start, begin?"),
    ],
)
def test_columns_that_could_both_be_meant_are_refused(more, part):
    refused(table([{**row, **more} for row in ROWS]), part, "--columns")


@pytest.mark.parametrize("column", ["text", "label"])
def test_a_column_that_is_needed_is_named(column):
    rows = [{key: value for key, value in row.items() if key != column} for row in ROWS]
    refused(table(rows), "no column", column, "the header has")


def test_what_a_span_covers_is_compared_with_the_text():
    rows = [{**ROWS[0], "span_text": "Ann"}]
    assert goldspan.read_crowd(rows).n_workers == 1
    rows = [{**ROWS[1], "start": 22, "end": 25, "span_text": "Bob"}]
    refused(rows, 'but its own text is the string "Bob"', "offsets='utf16' it fits")


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"start": "x"}, "start must be a whole number from 0 on, not 'x'"),
        ({"start": "2021-01-01T10:00"}, "columns={'started': 'start'}"),
        ({"end": ""}, "end must be a whole number"),
        ({"end": 99}, "outside the text, which has 24 code points"),
        ({"label": ""}, "a span without a label"),
        ({"start": "", "end": ""}, "label 'PER' without start and end"),
        ({"annotator": ""}, "the worker is empty"),
        ({"id": " "}, "the item is empty"),
        ({"text": "Another"}, "not the text that this item has in line"),
    ],
)
def test_a_wrong_row_is_refused_with_its_line(change, part):
    refused(table([ROWS[0], ROWS[0], {**ROWS[0], **change}]), "line ", part)


def test_a_table_with_start_and_end_is_never_read_as_single_labels():
    data = table(ROWS)
    refused(data, "a table of spans, not of single labels", format="long")
    refused(pd.DataFrame(ROWS), "format='span-table'", format="long")
    rows = [{"item": 1, "worker": "w", "label": "x", "start": 5, "end": 9}]
    refused(rows, "no column for text")
    timed = goldspan.read_crowd(rows, columns={"started": "start", "submitted": "end"})
    assert timed.is_classification
    assert timed.answers.started.tolist() == [5]


def test_rows_of_tokens_with_offsets_stay_a_long_table():
    rows = [
        {"item": 1, "worker": "w", "token": "Ann", "start": 0, "end": 3, "label": "B-PER"},
        {"item": 1, "worker": "w", "token": "sang", "start": 4, "end": 8, "label": "O"},
    ]
    assert goldspan.read_crowd(rows).answers_of("1") == {"w": ["B-PER", "O"]}


def test_quotation_marks_of_a_tsv_may_be_those_of_the_text():
    text = '"Ann" sang'
    data = f"id\ttext\tstart\tend\tlabel\tworker\n1\t{text}\t1\t4\tPER\tw\n".encode()
    assert goldspan.read_crowd(data).texts.to_pylist() == [text]


def test_attempts_are_repeated_answers():
    rows = [{**ROWS[0], "attempt": n} for n in (0, 1)]
    crowd = goldspan.read_crowd(rows)
    assert crowd.answers.attempt.tolist() == [0, 1]
    refused([{**ROWS[0], "attempt": "x"}], "attempt 'x' is not a whole number")


def test_a_row_that_is_cut_off_is_refused():
    refused(table(ROWS[3:]) + b"b,x\n", "2 cells where the header has 6: is the row cut off?")


def test_columns_that_are_not_read_are_named():
    rows = [{**row, "confidence": 0.5} for row in ROWS]
    notes = goldspan.read_crowd(rows).import_report.notes
    assert "columns that are not read: confidence" in notes


@pytest.mark.parametrize(("role", "word"), [("label", "NA"), ("annotator", "null")])
def test_a_word_that_means_no_value_is_named(role, word):
    what = {"annotator": "worker"}.get(role, role)
    data = table([{**ROWS[0], role: word}])
    refused(data, "line 2, item a", f"{word!r} means no {what}: if it is a {what}, pass missing=")
    crowd = goldspan.read_crowd(data, missing=["?"])
    assert word in [*crowd.tagset.types, *crowd.worker_ids.to_pylist()]
    with pytest.raises(InputError, match=f"{what} {word!r} would be read as no {what}"):
        goldspan.crowd.losses.losses(crowd, "span-table")


def crowd_table(*rows, text="ring \u260e\ufe0f Mara", **options):
    """Read rows of span, label and annotator of one text."""
    head = ("start", "end", "label", "annotator")
    named = [{"id": "a", "text": text} | dict(zip(head, row, strict=True)) for row in rows]
    return goldspan.read_crowd(table(named), **options)


def test_one_span_within_a_character_leaves_one_answer_out_and_widens_nothing():
    rows = [
        (5, 6, "DEV", "ann"),
        (8, 12, "PER", "ann"),
        (8, 10, "PER", "bob"),
        (8, 12, "PER", "cy"),
    ]
    crowd = crowd_table(*rows)
    assert crowd.answers_of("a") == {
        "bob": ["O", "O", "B-PER", "O"],
        "cy": ["O", "O", "B-PER", "I-PER"],
    }
    assert crowd.import_report.reasons == {"within-character": 1}
    assert crowd.import_report.adds_up
    (fault,) = crowd.import_report.faults
    assert (fault.line, fault.worker) == (2, "ann")
    assert "(--cut expand); this answer is left out until it is fixed" in str(fault)
    assert "ann" in crowd_table(*rows, cut="expand").answers_of("a")
    with pytest.raises(InputError, match="ends within the character"):
        crowd_table(*rows, strict=True)


def test_where_most_answers_have_spans_that_cannot_be_placed_the_file_is_refused():
    with pytest.raises(InputError, match="outside the text, which has 12 code points") as caught:
        crowd_table((5, 60, "DEV", "ann"), (8, 70, "PER", "bob"), (8, 12, "PER", "cy"))
    assert [fault.line for fault in caught.value.faults] == [2, 3]


@pytest.mark.parametrize(
    ("unit", "text", "spans"),
    [
        ("utf16", "\U0001f33b\U0001f33b Ada met Bo today", [(5, 8), (13, 15)]),
        ("utf8", "größer als Ada", [(13, 16)]),
    ],
)
def test_spans_that_cut_words_name_the_offsets_under_which_none_does(unit, text, spans):
    rows = [(a, b, "PER", who) for a, b in spans for who in ("ann", "bob")]
    wanted = ["Ada", "Bo"][: len(spans)]
    if unit == "utf8":
        with pytest.raises(InputError, match=r"it fits: pass that \(--offsets utf8\)"):
            crowd_table(*rows, text=text)
    else:
        (fault,) = crowd_table(*rows, text=text).import_report.faults
        assert "pass offsets='utf16' (--offsets utf16)" in str(fault)
        assert "as 4 do in all" in str(fault)
    crowd = crowd_table(*rows, text=text, offsets=unit)
    assert crowd.import_report.faults == ()
    tags = crowd.answers_of("a")["ann"]
    assert [t for t, tag in zip(crowd.tokens_list[0], tags, strict=True) if tag != "O"] == wanted


def test_spans_that_cut_words_under_every_kind_of_offsets_are_no_sign_of_another():
    text = "\U0001f33b Donaudampf \U0001f33b Autobahn"
    rows = [(2, 7, "X", "ann"), (15, 19, "X", "bob")]
    assert crowd_table(*rows, text=text).import_report.faults == ()
    said = "\U0001f33b in Oslo"
    assert crowd_table((5, 9, "X", "ann"), text=said).import_report.faults == ()


def test_tokens_of_a_span_that_is_left_out_have_no_label():
    rows = [(0, 8, "X", "ann"), (5, 12, "Y", "ann"), (0, 4, "X", "bob")]
    crowd = crowd_table(*rows, text="ring the bell", overlapping="longest")
    assert crowd.tokens_list == [["ring", "the", "bell"]]
    assert crowd.answers_of("a") == {"ann": ["B-X", "I-X", None], "bob": ["B-X", "O", "O"]}
