"""Prodigy's tasks: accepted ones are answers, the others are listed."""

from __future__ import annotations

import json

import pytest

from crowd_strategies import folder_of, lines_of, read_as
from goldspan.crowd.formats import prodigy
from goldspan.errors import FormatError

TEXT = "Ann Lee's song"
TOKENS = [
    {"text": "Ann", "start": 0, "end": 3, "id": 0, "ws": True},
    {"text": "Lee", "start": 4, "end": 7, "id": 1, "ws": False},
    {"text": "'s", "start": 7, "end": 9, "id": 2, "ws": True},
    {"text": "song", "start": 10, "end": 14, "id": 3, "ws": False},
]
ONE = {
    "text": TEXT,
    "_input_hash": -17,
    "_task_hash": 5,
    "tokens": TOKENS,
    "spans": [{"start": 0, "end": 7, "token_start": 0, "token_end": 1, "label": "PER"}],
    "_view_id": "ner_manual",
    "answer": "accept",
    "_timestamp": 1615328168,
    "_annotator_id": "ner-ann",
    "_session_id": "ner-ann",
}
CHOICE = {
    "text": TEXT,
    "options": [{"id": "POS", "text": "good"}, {"id": 2, "text": "bad"}],
    "accept": ["POS"],
    "answer": "accept",
    "_input_hash": 3,
    "_annotator_id": "ann",
}


def read(*lines, **options):
    return read_as(prodigy, lines_of(*lines), **options)


def message(*lines, **options) -> str:
    with pytest.raises(FormatError) as caught:
        read(*lines, **options)
    return str(caught.value)


def test_tasks_are_written_as_prodigy_writes_them(tmp_path):
    prodigy.write(read({**ONE, "_timestamp": 1615328168.5}), tmp_path / "tasks.jsonl")
    (line,) = (tmp_path / "tasks.jsonl").read_text(encoding="utf-8").splitlines()
    found = json.loads(line)
    assert found["item"] == "-17"
    for key in ("text", "tokens", "spans", "answer", "_annotator_id", "_session_id", "_view_id"):
        assert found[key] == ONE[key]
    assert found["_timestamp"] == 1615328168.5
    assert -(2**31) <= found["_input_hash"] < 2**31


def test_spans_count_characters_and_tokens_are_used():
    crowd = read(ONE, {**ONE, "_annotator_id": "ner-bob", "spans": []})
    assert crowd.tokens_list == [["Ann", "Lee", "'s", "song"]]
    assert crowd.token_start.tolist() == [0, 4, 7, 10]
    assert crowd.answers_of("-17") == {
        "ner-ann": ["B-PER", "I-PER", "O", "O"],
        "ner-bob": ["O"] * 4,
    }
    assert crowd.answers.submitted.tolist() == [1615328168000] * 2


def test_without_tokens_the_text_is_tokenised():
    bare = {key: value for key, value in ONE.items() if key != "tokens"}
    assert read(bare).tokens_list == [["Ann", "Lee", "'", "s", "song"]]
    assert read(bare).import_report.faults == ()
    before = read(bare, tokens="words", cut="expand")
    assert before.tokens_list == [["Ann", "Lee's", "song"]]
    assert [fault.kind for fault in before.import_report.faults] == ["cut"]


def test_tokens_of_white_space_are_left_out():
    tokens = [*TOKENS[:2], {"text": " ", "start": 3, "end": 4, "id": 9}]
    assert read({**ONE, "tokens": tokens}).tokens_list == [["Ann", "Lee"]]


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({}, "ner-ann"),
        ({"_annotator_id": None}, "ner-s1"),
        ({"_annotator_id": None, "_session_id": None}, "annotator"),
    ],
)
def test_the_worker_is_the_annotator_the_session_or_the_file(change, name):
    assert read({**ONE, "_session_id": "ner-s1", **change}).worker_ids.to_pylist() == [name]


def test_files_of_a_folder_are_annotators():
    bare = {**ONE, "_annotator_id": None, "_session_id": None}
    folder = folder_of(ann_DOT_jsonl=lines_of(bare), gold_DOT_jsonl=lines_of({**bare, "spans": []}))
    crowd = read_as(prodigy, folder)
    assert crowd.worker_ids.to_pylist() == ["ann"]
    assert crowd.tagged_by_id() == {"-17": ["O"] * 4}
    assert prodigy.sniff(folder)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"item": "D1-1"}, "D1-1"),
        ({}, "-17"),
        ({"_input_hash": None}, "5"),
        ({"_input_hash": None, "_task_hash": None}, "1"),
    ],
)
def test_the_item_is_known_by_name_hash_or_text(change, name):
    assert read({**ONE, **change}).item_ids.to_pylist() == [name]


def test_without_hashes_the_same_text_is_the_same_item():
    bare = {"text": "Ann", "spans": [], "answer": "accept"}
    crowd = read(
        {**bare, "_annotator_id": "a"},
        {**bare, "text": "Bob", "_annotator_id": "a"},
        {**bare, "_annotator_id": "b"},
    )
    assert crowd.item_ids.to_pylist() == ["1", "2"]
    assert crowd.answers_of("1").keys() == {"a", "b"}


@pytest.mark.parametrize("answer", ["reject", "ignore"])
def test_what_was_not_accepted_is_listed_and_counted_but_no_answer(answer):
    crowd = read(ONE, {**ONE, "_annotator_id": "bob", "answer": answer})
    assert crowd.answers_of("-17").keys() == {"ner-ann"}
    assert crowd.worker_ids.to_pylist() == ["ner-ann", "bob"]
    report = crowd.import_report
    assert report.reasons == {f"answer {answer}": 1}
    assert report.adds_up
    assert str(report.faults[0]) == (
        f"<bytes> line 2, item -17, worker bob: the task was answered with {answer!r}: not used"
    )
    with pytest.raises(FormatError, match="was answered with"):
        read({**ONE, "answer": answer}, strict=True)


def test_another_answer_is_refused():
    assert "unknown answer 'accepted': choose from accept, reject, ignore (did you mean" in message(
        {**ONE, "answer": "accepted"}
    )


def test_a_task_without_an_answer_is_an_item():
    crowd = read({"text": "Bob", "_input_hash": 1}, ONE)
    assert crowd.item_ids.to_pylist() == ["1", "-17"]
    assert len(crowd.answers) == 1


def test_spans_without_an_answer_are_accepted():
    bare = {key: value for key, value in ONE.items() if key != "answer"}
    assert read(bare).answers_of("-17") == read(ONE).answers_of("-17")


def test_choices_become_single_labels():
    crowd = read(CHOICE, {**CHOICE, "accept": [2], "_annotator_id": "bob"})
    assert crowd.is_classification
    assert crowd.tokens_list == [[TEXT]]
    assert crowd.answers_of("3") == {"ann": ["POS"], "bob": ["2"]}


@pytest.mark.parametrize(("accept", "reason"), [([], "no choice"), (["POS", 2], "several choices")])
def test_other_than_one_choice_is_listed(accept, reason):
    report = read(CHOICE, {**CHOICE, "accept": accept, "_annotator_id": "bob"}).import_report
    assert report.reasons == {reason: 1}
    assert report.faults[0].worker == "bob"
    assert report.adds_up


def test_an_accepted_label_is_a_single_label_and_a_rejected_one_is_what_it_is_not():
    task = {"text": TEXT, "label": "POS", "answer": "accept", "_input_hash": 1, "_session_id": "a"}
    crowd = read(
        task,
        {**task, "_session_id": "b", "answer": "reject"},
        {**task, "_session_id": "c", "answer": "ignore"},
        {**task, "_input_hash": 2, "answer": "reject", "_timestamp": 5},
    )
    assert crowd.answers_of("1") == {"a": ["POS"], "b": ["not POS"]}
    assert crowd.answers_of("2") == {"a": ["not POS"]}
    assert crowd.answers.submitted.tolist() == [-1, -1, 5000]
    assert crowd.import_report.reasons == {"answer ignore": 1}


def test_where_tasks_ask_about_several_labels_a_rejected_one_says_none():
    task = {"text": TEXT, "label": "POS", "answer": "accept", "_input_hash": 1, "_session_id": "a"}
    crowd = read(task, {**task, "label": "NEG", "answer": "reject"})
    assert crowd.answers_of("1") == {"a": ["POS"]}
    assert crowd.import_report.reasons == {"answer reject": 1}


def test_spans_and_single_labels_cannot_be_mixed():
    assert "mixes spans and single labels" in message(ONE, CHOICE)


def test_repeated_tasks_are_repeated_answers():
    crowd = read(ONE, {**ONE, "spans": []})
    assert crowd.answers_of("-17") == {"ner-ann": ["O"] * 4}
    assert crowd.answers.attempt.tolist() == [0, 1]


def test_meta_holds_attributes():
    crowd = read({**ONE, "meta": {"source": "web", "score": 0.5}, "doc": 7})
    assert crowd.attributes.to_pydict() == {"source": ["web"], "score": [0.5]}
    assert crowd.groups.to_pylist() == ["7"]


def test_what_is_not_read_is_counted_in_the_notes():
    span = {**ONE["spans"][0], "score": 0.3}
    more = {"relations": [{"head": 0, "child": 1, "label": "x"}], "versions": [{}, {}]}
    crowd = read({**ONE, "spans": [span], **more, "comment": "c", "flagged": None, "score": 0.5})
    assert crowd.import_report.notes == (
        "1 fields 'comment' are not read (item -17, worker ner-ann)",
        "1 relations are not read (item -17, worker ner-ann)",
        "1 scores are not read (item -17, worker ner-ann)",
        "1 scores of spans are not read (item -17, worker ner-ann)",
        "2 versions of a review are not read (item -17, worker ner-ann)",
    )
    assert read(ONE).import_report.notes == ()
    assert read(CHOICE).import_report.notes == ()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"text": None}, "no field 'text'"),
        ({"tokens": [{"text": "Ann"}]}, "no field 'start'"),
        ({"tokens": [{"text": "Ann", "start": 1}]}, "token 0 'Ann' is not what the text has at 1"),
        (
            {"tokens": [TOKENS[0], {"text": "n", "start": 2}]},
            "token 1 'n' begins within the one before",
        ),
        ({"spans": [{"start": 0, "end": 3}]}, "no field 'type' or 'label'"),
        ({"spans": [{"start": 0, "end": 3, "label": None}]}, "with a value: 'label' is null"),
        ({"accept": [None]}, "no field 'accept'"),
        ({"accept": ["a"]}, "a single label for an item of 4 tokens"),
    ],
)
def test_a_wrong_field_is_refused_with_its_place(change, said):
    text = message({"text": "Bob", "_input_hash": 1}, {**ONE, **change})
    assert text.startswith("<bytes> line 2")
    assert said in text
