"""Potato's output folders, of older and of newer versions."""

from __future__ import annotations

import json

import pytest

from crowd_strategies import folder_of, lines_of
from goldspan.crowd import read_crowd
from goldspan.errors import FormatError

TEXT = "Ada Byron saw Kent."
ADA = {"start": 0, "end": 9, "span": "Ada Byron", "annotation": "PER"}


def line(name="i1", spans=(), **labels):
    return {
        "id": name,
        "displayed_text": TEXT,
        "span_annotations": list(spans),
        "label_annotations": labels,
        "behavioral_data": {"time_string": "Time spent: 0d 0h 0m 9s "},
    }


def folder(**files):
    return folder_of(**{f"{name}__annotated_instances_DOT_jsonl": f for name, f in files.items()})


def message(source, **options) -> str:
    with pytest.raises(FormatError) as caught:
        read_crowd(source, **options)
    return str(caught.value)


def test_a_folder_per_annotator_has_their_spans_and_other_labels_are_counted():
    ann, bob = lines_of(line(spans=[ADA], mood={"good": "1"})), lines_of(line())
    crowd = read_crowd(folder(ann=ann, bob=bob))
    assert crowd.import_report.format == "potato"
    assert crowd.answers_of("i1") == {"ann": ["B-PER", "I-PER", "O", "O", "O"], "bob": ["O"] * 5}
    (note,) = crowd.import_report.notes
    assert "not those to mood: name another with --columns label=mood" in note


def test_the_file_of_all_lines_is_read_alone_and_not_beside_the_folders():
    whole = lines_of(
        *({**line(mood={label: "1"}), "user_id": who} for who, label in (("u", "a"), ("v", "b")))
    )
    assert read_crowd(whole).answers_of("i1") == {"u": ["a"], "v": ["b"]}
    both = folder_of(
        out__annotated_instances_DOT_jsonl=whole,
        out__u__annotated_instances_DOT_jsonl=lines_of(line(mood={"a": "1"})),
    )
    crowd = read_crowd(both)
    assert crowd.answers_of("i1") == {"u": ["a"]}
    assert len(crowd.answers) == 1


STATES = [
    ([[{"schema": "mood", "name": "good"}, "true"], [{"schema": "mood", "name": "bad"}, False]],
     [[{"schema": "ner", "name": "PER", "title": "PER", "start": 0, "end": 9}, "true"]]),
    ({"mood": {"good": "true", "bad": "false"}},
     {"ner": [{"start": 0, "end": 9, "label": "PER", "text": "Ada Byron"}]}),
    ({"mood": {"labels": {"good": True}}}, {"ner": [{"start": 0, "end": 9, "name": "PER"}]}),
]  # fmt: skip


def state(labels, spans=None):
    return json.dumps(
        {
            "user_id": "ann",
            "instance_id_to_label_to_value": {"i1": labels},
            "instance_id_to_span_to_value": {} if spans is None else {"i1": spans},
        }
    )


@pytest.mark.parametrize(("labels", "spans"), STATES)
@pytest.mark.parametrize("data", ["data__items_DOT_json", "data__items_DOT_csv"])
def test_a_state_has_the_texts_in_the_data_files_of_the_project(labels, spans, data):
    texts = (
        f"id,text\ni1,{TEXT}\n"
        if data.endswith("csv")
        else json.dumps([{"id": "i1", "text": TEXT}])
    )
    source = folder_of(out__a__user_state_DOT_json=state(labels, spans), **{data: texts})
    crowd = read_crowd(source)
    assert crowd.answers_of("i1") == {"ann": ["B-PER", "I-PER", "O", "O", "O"]}
    named = read_crowd(source, columns={"label": "mood"})
    assert named.answers_of("i1") == {"ann": ["good"]}
    assert named.tokens_list == [[TEXT]]


def test_without_its_texts_a_state_has_labels_but_no_spans():
    labels, spans = STATES[0]
    source = folder_of(ann__user_state_DOT_json=state(labels))
    assert read_crowd(source).answers_of("i1") == {"ann": ["good"]}
    source = folder_of(ann__user_state_DOT_json=state(labels, spans))
    assert "or add the file that has them to the folder" in message(source)


def test_the_value_of_a_field_is_the_label_and_several_choices_are_listed():
    source = folder(
        ann=lines_of(line(grade={"slider": "3"})), bob=lines_of(line(grade={"slider": "5"}))
    )
    assert read_crowd(source).answers_of("i1") == {"ann": ["3"], "bob": ["5"]}
    source = folder(
        ann=lines_of(line(mood={"good": "1"})), bob=lines_of(line(mood={"good": "1", "bad": "2"}))
    )
    assert read_crowd(source).import_report.reasons == {"several choices": 1}


def test_of_several_schemes_one_is_named():
    source = folder(ann=lines_of(line(mood={"good": "1"}, topic={"tea": "1"})))
    assert "(mood, topic): name one with columns={'label': …} (--columns label=mood)" in message(
        source
    )
    assert read_crowd(source, columns={"label": "topic"}).answers_of("i1") == {"ann": ["tea"]}
    assert "must be a list of two" in message(
        folder(ann=lines_of({**line(), "label_annotations": [3]}))
    )
