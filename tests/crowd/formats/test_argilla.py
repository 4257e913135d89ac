"""Argilla's records: of 2.x as JSON and as a data set, and those of 1.x."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crowd_strategies import lines_of
from goldspan.crowd import read_crowd
from goldspan.errors import FormatError

TEXT = "Ada Byron saw Kent."
ADA = {"start": 0, "end": 9, "label": "PER"}
KENT = {"start": 14, "end": 18, "label": "LOC"}


def record(name="a", text=TEXT, **responses):
    return {
        "id": name,
        "fields": {"text": text},
        "metadata": {"source": "web"},
        "suggestions": {},
        "responses": responses,
        "status": "completed",
    }


def said(value, user="u", **more):
    return {"value": value, "user_id": user, **more}


def message(*rows, **options) -> str:
    with pytest.raises(FormatError) as caught:
        read_crowd(lines_of(*rows), **options)
    return str(caught.value)


def test_spans_of_every_user_are_answers_and_suggestions_are_counted():
    one = record(ner=[said([ADA, KENT], "u"), said([ADA], "v")])
    one["suggestions"] = {"ner": {"value": [KENT], "score": None, "agent": "m"}}
    two = record("b", "It rained.", ner=[said([], "u")])
    crowd = read_crowd(json.dumps([one, two]).encode())
    assert crowd.import_report.format == "argilla"
    assert crowd.answers_of("a") == {
        "u": ["B-PER", "I-PER", "O", "B-LOC", "O"],
        "v": ["B-PER", "I-PER", "O", "O", "O"],
    }
    assert crowd.answers_of("b") == {"u": ["O", "O", "O"]}
    assert crowd.import_report.notes == ("1 suggestions are not read (item a)",)
    assert crowd.attributes.to_pydict() == {"source": ["web", "web"]}


def test_a_data_set_has_responses_in_columns_and_those_not_submitted_are_counted(tmp_path):
    rows = [
        {"id": "a", "text": "Fine tea", "mood.responses": ["good", "bad"], "_server_id": "s",
         "mood.responses.users": ["u", "v"], "mood.responses.status": ["submitted", "discarded"],
         "mood.suggestion": "bad"},
        {"id": "b", "text": "Old tea", "mood.responses": ["bad", None], "_server_id": "t",
         "mood.responses.users": ["u", "v"], "mood.responses.status": ["submitted", "draft"],
         "mood.suggestion": None},
    ]  # fmt: skip
    crowd = read_crowd(lines_of(*rows))
    assert [crowd.answers_of(name) for name in "ab"] == [{"u": ["good"]}, {"u": ["bad"]}]
    assert crowd.import_report.reasons == {"response discarded": 1, "response draft": 1}
    assert crowd.import_report.adds_up
    assert crowd.import_report.notes == ("1 suggestions are not read (item a)",)
    assert read_crowd(rows) == crowd
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    assert read_crowd(tmp_path / "rows.parquet") == crowd


@pytest.mark.parametrize(
    "listed",
    [
        [said("good", "u", status="submitted"), said("bad", "v", status="discarded")],
        {"user_id": ["u", "v"], "value": ["good", "bad"], "status": ["submitted", "discarded"]},
    ],
)
def test_a_data_set_of_1_x_has_a_column_per_question(listed):
    rows = [{"text": "Fine tea", "mood": listed, "mood-suggestion": None, "external_id": "e",
             "metadata": "{}"}]  # fmt: skip
    crowd = read_crowd(lines_of(*rows))
    assert crowd.answers_of("e") == {"u": ["good"]}
    assert crowd.import_report.reasons == {"response discarded": 1}


def test_the_answer_of_its_server_is_read():
    one = {"id": "a", "fields": {"text": TEXT}, "suggestions": [], "responses": [
        {"user_id": "u", "status": "submitted", "values": {"ner": {"value": [ADA]}}}]}  # fmt: skip
    crowd = read_crowd(json.dumps({"items": [one], "total": 1}).encode())
    assert crowd.answers_of("a") == {"u": ["B-PER", "I-PER", "O", "O", "O"]}


OLD = {"prediction": None, "prediction_agent": None, "metadata": {}, "id": "a"}


@pytest.mark.parametrize("spans", [[ADA], [["PER", 0, 9]], [["PER", 0, 9, 0.5]]])
def test_a_token_classification_of_1_x_is_an_answer_of_its_agent(spans):
    tokens = ["Ada", "Byron", "saw", "Kent", "."]
    row = {**OLD, "text": TEXT, "tokens": tokens, "annotation": spans, "annotation_agent": "ann",
           "status": "Validated", "prediction": [{**KENT, "score": 0.5}]}  # fmt: skip
    crowd = read_crowd(lines_of(row))
    assert crowd.tokens_list == [tokens]
    assert crowd.answers_of("a") == {"ann": ["B-PER", "I-PER", "O", "O", "O"]}
    assert crowd.import_report.notes == ("1 suggestions are not read (item a)",)


@pytest.mark.parametrize("where", [{"text": "Fine tea"}, {"inputs": {"text": "Fine tea"}}])
def test_a_text_classification_of_1_x_is_one_where_it_was_validated(where):
    one = {**OLD, **where, "annotation": "good", "annotation_agent": "ann", "status": "Validated"}
    crowd = read_crowd(
        lines_of(
            one,
            {**one, "id": "b", "annotation": None, "status": "Default"},
            {**one, "id": "c", "annotation": "bad", "status": "Discarded"},
            {**one, "id": "d", "annotation": ["good", "bad"]},
        )
    )
    assert crowd.answers_of("a") == {"ann": ["good"]}
    assert [crowd.answers_of(name) for name in "bcd"] == [{}, {}, {}]
    assert crowd.import_report.reasons == {"response discarded": 1, "several choices": 1}


def test_of_several_questions_that_of_spans_is_read_or_the_one_that_is_named():
    row = record(ner=[said([ADA])], mood=[said("good")], stars=[said(4)])
    crowd = read_crowd(lines_of(row))
    assert crowd.answers_of("a") == {"u": ["B-PER", "I-PER", "O", "O", "O"]}
    assert "not those to mood, stars" in crowd.import_report.notes[0]
    assert read_crowd(lines_of(row), columns={"label": "mood"}).answers_of("a") == {"u": ["good"]}
    assert read_crowd(lines_of(row), columns={"label": "stars"}).answers_of("a") == {"u": ["4"]}
    assert "(ner, mood, stars): name one" in message(row, columns={"label": "x"})
    del row["responses"]["ner"]
    assert "(mood, stars): name one with columns={'label': …} (--columns label=mood)" in message(
        row
    )


def test_of_several_fields_the_text_is_named():
    row = record(mood=[said("good")])
    row["fields"] = {"question": "What?", "answer": "Tea"}
    assert "(--columns text=question)" in message(row)
    crowd = read_crowd(lines_of(row), columns={"text": "answer"})
    assert crowd.tokens_list == [["Tea"]]


def test_a_response_that_is_no_label_is_refused():
    assert "a response must be a label, not the number 0.5" in message(record(q=[said(0.5)]))
