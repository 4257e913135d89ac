"""Results of Mechanical Turk's batches become crowds; what cannot be guessed is asked for."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime

import pytest

from goldspan import read_crowd
from goldspan.errors import FormatError

TIME = "Mon Jan 07 15:54:06 PST 2019"


def row(hit, worker, **more):
    """Return an assignment; `Input_x` stands for the column `Input.x`."""
    facts = {
        "HITId": hit, "AssignmentId": f"{hit}-{worker}", "WorkerId": worker, "Reward": "$0.05",
        "AcceptTime": TIME, "SubmitTime": "Mon Jan 07 15:55:06 PST 2019",
        "AssignmentStatus": "Approved",
    }  # fmt: skip
    return facts | {key.replace("_", ".", 1): value for key, value in more.items()}


def batch(*rows):
    buffer = io.StringIO()
    names = list(dict.fromkeys(name for one in rows for name in one))
    out = csv.DictWriter(buffer, names, quoting=csv.QUOTE_ALL)
    out.writeheader()
    out.writerows(rows)
    return buffer.getvalue().encode()


MOODS = [
    row("h1", "ann", Input_text="Sun, at last", Answer_mood="glad"),
    row("h1", "bob", Input_text="Sun, at last", Answer_mood="sad"),
    row("h2", "ann", Input_text="Rain", Answer_mood="sad"),
]


def spans(*found):
    return [{"startOffset": a, "endOffset": b, "label": kind} for a, b, kind in found]


def test_single_labels_times_and_rewards_are_read():
    crowd = read_crowd(batch(*MOODS))
    assert crowd.import_report.format == "mturk"
    assert crowd.answers_of("h1") == {"ann": ["glad"], "bob": ["sad"]}
    begin = datetime(2019, 1, 7, 23, 54, 6, tzinfo=UTC).timestamp() * 1000
    assert crowd.answers.started[0] == begin
    assert crowd.answers.submitted[0] == begin + 60_000
    assert list(crowd.answers.cost) == [50_000] * 3


def test_rejected_assignments_are_listed_and_not_placed():
    rejected = row("h2", "bob", Input_text="Rain", Answer_mood="glad")
    rejected["AssignmentStatus"] = "Rejected"
    to_reject = row("h2", "cat", Input_text="Rain", Answer_mood="glad") | {"Reject": "careless"}
    crowd = read_crowd(batch(*MOODS, rejected, to_reject))
    assert crowd.answers_of("h2") == {"ann": ["sad"]}
    report = crowd.import_report
    assert report.reasons == {"rejected": 2}
    assert "2 rejected assignments are not answers" in report.notes
    assert report.adds_up


@pytest.mark.parametrize("shape", ["taskAnswers", "column"])
def test_entities_become_spans_of_tokens(shape):
    found = spans((0, 3, "PER"), (13, 18, "LOC"))
    more = {"Answer_names.entities": json.dumps(found)}
    if shape == "taskAnswers":
        answers = [{"names": {"entities": found}}]
        more = {"Answer_taskAnswers": json.dumps(answers)}
    empty = {key: value.replace(json.dumps(found), "[]") for key, value in more.items()}
    text = {"Input_text": "Ann lives in Paris."}
    crowd = read_crowd(batch(row("h1", "ann", **text, **more), row("h1", "bob", **text, **empty)))
    tokens = ["Ann", "lives", "in", "Paris", "."]
    assert crowd.tokens.to_pylist() == [tokens]
    assert crowd.answers_of("h1") == {"ann": ["B-PER", "O", "O", "B-LOC", "O"], "bob": ["O"] * 5}


def test_offsets_are_those_of_browsers_where_one_says_so():
    answers = json.dumps([{"names": {"entities": spans((3, 6, "PER"))}}])
    data = batch(row("h1", "ann", Input_text="😀 Ann", Answer_taskAnswers=answers))
    crowd = read_crowd(data, offsets="utf16")
    assert crowd.answers_of("h1")["ann"][-1] == "B-PER"


@pytest.mark.parametrize(
    "more",
    [
        {"Answer_mood.glad": "true", "Answer_mood.sad": "false"},
        {"Answer_mood.label": "glad"},
        {"Answer_taskAnswers": '[{"mood": {"glad": true, "sad": false}}]'},
        {"Answer_taskAnswers": '[{"mood": {"label": "glad"}}]'},
        {"Answer_taskAnswers": '[{"mood": "glad"}]'},
        {"Answer_taskAnswers": '{"mood": {"labels": ["glad"]}}'},
    ],
)
def test_choices_are_labels_in_whatever_form_the_page_kept_them(more):
    crowd = read_crowd(batch(row("h1", "ann", Input_text="Sun", **more)))
    assert crowd.answers_of("h1") == {"ann": ["glad"]}


def test_several_choices_and_no_answer_are_listed():
    text = {"Input_text": "Sun"}
    both = {"Answer_mood.glad": "true", "Answer_mood.sad": "true"}
    none = {"Answer_mood.glad": "false", "Answer_mood.sad": "false"}
    one = {"Answer_mood.glad": "true", "Answer_mood.sad": "false"}
    crowd = read_crowd(
        batch(row("h1", "ann", **text, **both), row("h1", "bob", **text, **none),
              row("h1", "cat", **text, **one), row("h1", "dan", **text))
    )  # fmt: skip
    assert crowd.answers_of("h1") == {"cat": ["glad"]}
    assert crowd.import_report.reasons == {"several choices": 1, "no choice": 1, "no answer": 1}


def test_several_texts_or_questions_are_asked_for_by_name():
    rows = [
        row("h1", "ann", Input_id="a", Input_title="Day", Input_body="Sun",
            Answer_mood="glad", Answer_sure="very"),
        row("h2", "bob", Input_id="a", Input_title="Day", Input_body="Sun",
            Answer_mood="sad", Answer_sure="little"),
    ]  # fmt: skip
    with pytest.raises(FormatError, match=r"Input\.id, Input\.title, Input\.body"):
        read_crowd(batch(*rows))
    with pytest.raises(FormatError, match=r"mood, sure.*label=Answer\.mood"):
        read_crowd(batch(*rows), columns={"text": "body"})
    with pytest.raises(FormatError, match="no answer 'moood'"):
        read_crowd(batch(*rows), columns={"text": "body", "label": "moood"})
    crowd = read_crowd(
        batch(*rows), columns={"text": "Input.body", "label": "Answer.mood", "item": "Input.id"}
    )
    assert crowd.answers_of("a") == {"ann": ["glad"], "bob": ["sad"]}
    assert crowd.attributes.to_pylist() == [{"title": "Day"}]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"AcceptTime": "yesterday"}, "AcceptTime"),
        ({"AcceptTime": "Mon Jan 07 15:54:06 XYZ 2019"}, "must be a time such as"),
        ({"Reward": "five"}, "Reward must be a number"),
        ({"WorkerId": ""}, "WorkerId"),
        ({"Input.text": "other"}, "not the text that this item has"),
    ],
)
def test_a_faulty_cell_is_named_with_its_line_and_task(changes, message):
    odd = row("h1", "cat", Input_text="Sun, at last", Answer_mood="glad") | changes
    with pytest.raises(FormatError, match=message) as caught:
        read_crowd(batch(*MOODS, odd))
    (fault,) = caught.value.faults
    assert fault.line == 5


def test_a_file_that_is_cut_off_or_lacks_columns_is_refused():
    data = batch(*MOODS)
    with pytest.raises(FormatError, match="a quoted cell is not closed"):
        read_crowd(data[:-3])
    with pytest.raises(FormatError, match="cells where the header has"):
        read_crowd(data[:-8])
    with pytest.raises(FormatError, match="cells where the header has"):
        read_crowd(data + b'"h3","x"\r\n')
    with pytest.raises(FormatError, match="no column WorkerId"):
        read_crowd(b"HITId,AssignmentId,Input.text\n1,2,a\n", format="mturk")
    with pytest.raises(FormatError, match="no item"):
        read_crowd(data.split(b"\r\n")[0] + b"\r\n")


def test_line_breaks_within_a_text_keep_the_lines_of_faults_right():
    two = row("h1", "ann", Input_text="Sun\nand rain", Answer_mood="glad")
    odd = row("h2", "ann", Input_text="Sun", Answer_mood="glad") | {"Reward": "five"}
    with pytest.raises(FormatError, match="Reward") as caught:
        read_crowd(batch(two, odd))
    assert caught.value.faults[0].line == 4
