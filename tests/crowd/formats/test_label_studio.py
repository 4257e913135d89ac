"""Label Studio's exports: regions and choices, users, ground truth, and what offsets count."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from crowd_strategies import alike, read_as
from goldspan.crowd import Crowd, CrowdBuilder, ReadOptions, read_crowd
from goldspan.crowd.formats import label_studio
from goldspan.crowd.formats.json_records import one_of
from goldspan.crowd.losses import losses
from goldspan.crowd.source import open_source
from goldspan.errors import FormatError

TEXT = "Ann 😀 Lee sang"


def region(start, end, label="PER", text=None, **more):
    value = {"start": start, "end": end, "labels": [label]} | (
        {} if text is None else {"text": text}
    )
    return {
        "id": "r",
        "from_name": "label",
        "to_name": "text",
        "type": "labels",
        "value": value,
    } | more


def choice(*labels, name="sentiment"):
    return {
        "from_name": name,
        "to_name": "t",
        "type": "choices",
        "value": {"choices": list(labels)},
    }


def by(who, *results, **more):
    return {"id": 1, "completed_by": who, "was_cancelled": False, "result": list(results)} | more


def task(*annotations, text=TEXT, id=1, **data):  # noqa: A002
    return {"id": id, "data": {"text": text, **data}, "annotations": list(annotations)}


def read(*tasks, **options):
    return read_as(label_studio, json.dumps(tasks).encode(), **options)


def message(*tasks, **options) -> str:
    with pytest.raises(FormatError) as caught:
        read(*tasks, **options)
    return str(caught.value)


def small(**changes) -> Crowd:
    """A crowd of which Label Studio's export holds everything, and what is changed of it."""
    builder = CrowdBuilder(ReadOptions(encoding="BIO"))
    facts = {"group": "D", "attributes": {"n": 1}, "gold": ["B-X", "O"]}
    item = builder.add_item("a", ["x", "y"], text=" x y", token_start=[1, 3], **facts)
    builder.add_answer(item, "w", ["B-X", "I-X"], started=5, submitted=7)
    builder.add_answer(item, "w", ["O", "O"], started=6, submitted=8)
    crowd = builder.build()
    answers = {key: changes.pop(key) for key in list(changes) if hasattr(crowd.answers, key)}
    answers = {key: value if value is None else np.array(value) for key, value in answers.items()}
    return replace(crowd, answers=replace(crowd.answers, **answers), **changes)


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({}, []),
        (
            {"texts": pa.nulls(1, pa.string())},
            ["the character offsets of 1 item", "a column of texts"],
        ),
        ({"texts": None, "token_start": None}, []),
        ({"texts": None}, ["the character offsets of 1 item"]),
        ({"token_start": None}, []),
        ({"texts": pa.array(["x y"]), "token_start": None}, []),
        (
            {"token_start": np.array([1, 2], np.int32)},
            ["the text of 1 item", "the character offsets of 1 item"],
        ),
        ({"attributes": pa.table({"n": [{"a": [1.5, None]}]})}, []),
        ({"attempt": [0, 2]}, ["the numbers of repeated answers"]),
        ({"attempt": [1, 0]}, ["labels of 2", "the starting times", "the submission times"]),
        ({"attempt": [1, 0], "submitted": [9, 8]}, []),
        ({"started": [-1, 6]}, []),
        ({"started": None}, []),
        ({"started": [-1, -1]}, ["a column 'started' without a value"]),
        ({"submitted": [-1, 8]}, ["the starting times of"]),
        ({"submitted": None}, ["the starting times of"]),
        ({"submitted": [-1, -1], "started": None}, ["a column 'submitted' without a value"]),
        (
            {"submitted": [7, 253_402_300_800_000]},
            ["the starting times of 1", "the submission times of 1 answer"],
        ),
        ({"submitted": [7, 253_402_300_799_999]}, []),
        ({"cost": [1, 2]}, ["the costs of 2 answers"]),
    ],
)
def test_every_loss_is_named(tmp_path, changes, lost):
    crowd = small(**changes)
    label_studio.write(crowd, tmp_path / "tasks.json")
    named = losses(crowd, "label-studio")
    assert len(named) == len(lost)
    for sentence, start in zip(sorted(named), sorted(lost), strict=True):
        assert sentence.startswith(start)
    again = read_as(label_studio, tmp_path / "tasks.json")
    assert alike(again, crowd) == (lost == [])


@pytest.mark.parametrize("encoding", ["IOBES", "IOB", "BILOU"])
def test_other_encodings_come_back_when_they_are_named(tmp_path, encoding):
    builder = CrowdBuilder(ReadOptions(encoding=encoding))
    item = builder.add_item("a", ["x", "y"], text="x y", token_start=[0, 2])
    tags = {"IOBES": ["S-X", "O"], "IOB": ["I-X", "O"], "BILOU": ["U-X", "O"]}[encoding]
    builder.add_answer(item, "w", tags)
    crowd = builder.build()
    label_studio.write(crowd, tmp_path / "tasks.json")
    assert read_as(label_studio, tmp_path / "tasks.json", encoding=encoding) == crowd
    assert encoding in losses(crowd, "label-studio")[0]


def test_tasks_are_written_as_label_studio_exports_them(tmp_path):
    crowd = read(task(by(3, region(0, 3), created_at="2021-03-09T22:16:08.728Z", lead_time=4.5)))
    label_studio.write(crowd, tmp_path / "tasks.json")
    (found,) = json.loads((tmp_path / "tasks.json").read_text(encoding="utf-8"))
    assert found["data"] == {"text": TEXT, "item": "1"}
    (annotation,) = found["annotations"]
    assert annotation["completed_by"] == 3
    assert annotation["created_at"] == "2021-03-09T22:16:08.728Z"
    assert annotation["lead_time"] == 4.5
    assert annotation["result"][0]["value"] == {
        "start": 0,
        "end": 3,
        "text": "Ann",
        "labels": ["PER"],
    }


def test_regions_become_spans_of_every_user():
    crowd = read(
        task(by(1, region(0, 9)), by(2), topic="music", doc="D1"),
        task(by(2, region(0, 3, "LOC")), id=2, text="Ulm", topic=None),
    )
    assert crowd.answers_of("1") == {"1": ["B-PER", "I-PER", "I-PER", "O"], "2": ["O"] * 4}
    assert crowd.answers_of("2") == {"2": ["B-LOC"]}
    assert crowd.groups.to_pylist() == ["D1", None]
    assert crowd.attributes.to_pydict() == {"topic": ["music", None]}
    assert crowd.texts.to_pylist() == [TEXT, "Ulm"]
    assert (crowd.import_report.n_labels, crowd.import_report.n_placed) == (9, 9)


@pytest.mark.parametrize(
    ("who", "name"),
    [
        (7, "7"),
        ("ann@x.org", "ann@x.org"),
        ({"id": 7, "email": "ann@x.org"}, "ann@x.org"),
        ({"id": 7, "username": "ann"}, "ann"),
        ({"id": 7}, "7"),
        ({"id": 7, "email": "", "username": None}, "7"),
    ],
)
def test_a_user_is_known_by_address_name_or_number(who, name):
    assert read(task(by(who))).worker_ids.to_pylist() == [name]


def test_the_user_of_old_exports_is_found():
    old = {"id": 1, "created_username": "ann", "created_at": 1609789589, "result": [region(0, 3)]}
    found = read({"id": 1, "data": {"text": TEXT}, "completions": [old]})
    assert found.worker_ids.to_pylist() == ["ann"]
    assert found.answers.submitted.tolist() == [1609789589000]


# What offsets count.


def test_a_region_whose_text_is_nowhere_near_is_refused():
    assert 'its own text is the string "Bob"' in message(task(by(1, region(0, 3, text="Bob"))))
    assert "pass that" not in message(task(by(1, region(0, 3, text="Bob"))))


def test_how_a_region_writes_white_space_does_not_matter():
    found = read(task(by(1, region(0, 7, text="a\\nb\u00a0c")), text="a\n b  c d"))
    assert found.answers_of("1") == {"1": ["B-PER", "I-PER", "I-PER", "O"]}


def test_regions_of_hypertext_are_read_if_the_text_has_no_markup():
    value = {
        "start": "/text()[1]",
        "end": "/text()[1]",
        "startOffset": 0,
        "endOffset": 3,
        "globalOffsets": {"start": 0, "end": 3},
        "hypertextlabels": ["PER"],
    }
    result = {"from_name": "l", "type": "hypertextlabels", "value": value}
    assert read(task(by(1, result))).answers_of("1")["1"][0] == "B-PER"
    assert "its offsets count the rendered page" in message(task(by(1, result), text="<b>Ann</b>"))


# What is not an answer.


def test_cancelled_annotations_are_listed_and_counted_but_no_answers():
    crowd = read(task(by(1, region(0, 3)), by(2, region(0, 3), was_cancelled=True)))
    assert crowd.answers_of("1").keys() == {"1"}
    report = crowd.import_report
    assert report.reasons == {"cancelled": 1}
    assert "1 item was cancelled by an annotator: that is not an answer" in report.notes
    assert report.adds_up
    (fault,) = report.faults
    assert (fault.item, fault.worker, fault.kind) == ("1", "2", "cancelled")
    assert read(task(by(2, skipped=True), by(3))).answers_of("1").keys() == {"3"}
    with pytest.raises(FormatError, match="was cancelled"):
        read(task(by(2, was_cancelled=True), by(3)), strict=True)


def test_ground_truth_is_gold():
    crowd = read(task(by(1, region(0, 3), ground_truth=True), by(2)), task(by(2), id=2))
    assert crowd.tagged_by_id() == {"1": ["B-PER", "O", "O", "O"], "2": [None] * 4}
    assert crowd.worker_ids.to_pylist() == ["2"]
    truth = [by(None, region(0, 3), ground_truth=True), by(2, ground_truth=True)]
    text = message(task(*truth))
    assert "item 1, worker gold: the gold differs from that of an earlier annotation" in text


def test_what_is_not_read_is_counted_in_the_notes():
    relation = {"type": "relation", "from_id": "a", "to_id": "b"}
    own = {"model_version": "goldspan", "result": []}
    faulty = [{"result": [region(0, 99)]}, {"result": 7}, "x"]
    found = task(by(1, region(0, 3), relation, choice("x"))) | {"predictions": [own] * 3 + faulty}
    crowd = read(found)
    assert crowd.worker_ids.to_pylist() == ["1"]
    assert crowd.import_report.notes == (
        one_of(["label", "sentiment"]),
        "3 predictions are not read (item 1)",
        "3 predictions that cannot be read are not read (item 1)",
        "1 results of kind 'choices' are not read (item 1, worker 1)",
        "1 results of kind 'relation' are not read (item 1, worker 1)",
    )


def guess(version, *results, **more):
    return {"id": 9, "model_version": version, "score": 0.5, "result": list(results)} | more


def test_the_predictions_of_a_model_are_answers_of_a_worker_of_its_family():
    moment = "2021-03-09T22:16:08.000Z"
    first = task(by(1, region(0, 3))) | {
        "predictions": [guess("v1", region(6, 9), created_at=moment), guess("v1"), guess(None)]
    }
    crowd = read(first, task(by(1), id=2) | {"predictions": [guess("v1", created_at="an hour")]})
    assert crowd.worker_ids.to_pylist() == ["model:v1", "model:v1:2", "model:unnamed", "1"]
    family = {"kind": "prediction", "family": "v1"}
    assert crowd.worker_facts == {
        "model:v1": family, "model:v1:2": family,
        "model:unnamed": {"kind": "prediction", "family": "unnamed"},
    }  # fmt: skip
    assert crowd.answers_of("1")["model:v1"] == ["O", "O", "B-PER", "O"]
    assert crowd.answers_of("1")["model:v1:2"] == ["O"] * 4
    assert crowd.answers_of("2") == {"model:v1": ["O"] * 4, "1": ["O"] * 4}
    assert sorted(crowd.answers.submitted.tolist()) == [-1] * 5 + [1615328168000]


def test_predictions_come_back_as_predictions(tmp_path):
    tasks = [
        task(by(1, region(0, 3))) | {"predictions": [guess("v1", region(6, 9)), guess("v1")]},
        task(by(1), id=2) | {"predictions": [guess("v2", created_at="2021-03-09T22:16:08.000Z")]},
    ]
    crowd = read(*tasks)
    assert losses(crowd, "label-studio") == []
    label_studio.write(crowd, tmp_path / "x.json")
    assert read_as(label_studio, tmp_path / "x.json") == crowd
    written = json.loads((tmp_path / "x.json").read_text())
    assert [one["id"] for one in written] == [1, 2]
    assert [one["model_version"] for one in written[0]["predictions"]] == ["v1", "v1"]
    assert [len(one["annotations"]) for one in written] == [1, 1]
    # Of a worker who is a model by another name the report says what becomes of the facts.
    other = replace(crowd, worker_facts={"1": {"kind": "prediction", "family": "v3"}})
    assert any("facts about" in line for line in losses(other, "label-studio"))


def test_choices_may_be_predicted_only():
    tasks = [task() | {"predictions": [guess("v1", choice("pos"))]}]
    assert read(*tasks).answers_of("1") == {"model:v1": ["pos"]}


def test_one_control_of_several_can_be_named():
    found = task(by(1, region(0, 3), region(6, 9, "VERB", from_name="pos")))
    crowd = read(found, columns={"label": "pos"})
    assert crowd.answers_of("1") == {"1": ["O", "O", "B-VERB", "O"]}
    note = "1 results of kind 'labels' are not read (item 1, worker 1)"
    assert crowd.import_report.notes == (note,)


def test_a_region_without_a_label_is_listed():
    result = region(0, 3)
    del result["value"]["labels"]
    report = read(task(by(1, result, region(6, 9)))).import_report
    assert report.reasons == {"region without a label": 1}
    assert report.adds_up


def test_overlapping_and_doubly_labelled_regions_keep_the_longer():
    double = region(0, 3)
    double["value"]["labels"] = ["PER", "ORG"]
    crowd = read(task(by(1, double, region(6, 9), region(4, 9, "X"))), overlapping="longest")
    assert crowd.answers_of("1") == {"1": ["B-PER", "B-X", "I-X", "O"]}
    assert crowd.import_report.reasons == {"nested span": 1, "several labels of a span": 1}
    assert [fault.token for fault in crowd.import_report.faults] == [0, 2]


# Choices.


def test_choices_become_single_labels():
    crowd = read(
        task(by(1, choice("pos")), by(2, choice("neg")), by(3), text="so good"),
        task(by(1, choice("pos"), ground_truth=True), text="fine", id=2),
    )
    assert crowd.is_classification
    assert crowd.tokens_list == [["so good"], ["fine"]]
    assert crowd.answers_of("1") == {"1": ["pos"], "2": ["neg"], "3": [None]}
    assert crowd.tagged_by_id() == {"1": [None], "2": ["pos"]}


def test_several_choices_are_listed_and_not_placed():
    crowd = read(task(by(1, choice("pos", "neg")), by(2, choice("pos"))))
    assert crowd.answers_of("1") == {"2": ["pos"]}
    assert crowd.import_report.reasons == {"several choices": 1}


def test_choices_of_several_controls_must_be_told_apart():
    found = task(by(1, choice("pos"), choice("sport", name="topic")))
    assert "choices of several controls (sentiment, topic)" in message(found)
    assert read(found, columns={"label": "topic"}).answers_of("1") == {"1": ["sport"]}


def test_an_annotation_of_a_project_without_labels_is_no_answer():
    rating = {"from_name": "r", "to_name": "text", "type": "rating", "value": {"rating": 4}}
    crowd = read(task(by(1, rating), by(2)))
    assert crowd.answers_of("1") == {"2": ["O"] * 4}
    assert crowd.worker_ids.to_pylist() == ["1", "2"]
    report = crowd.import_report
    assert report.reasons == {"only results that are not read": 1}
    assert report.adds_up
    assert "the annotation holds no regions of labels" in str(report.faults[0])
    # Whoever could mark regions and marked none says that there are none.
    asked = read(task(by(1, rating), by(2, region(0, 3))))
    assert asked.answers_of("1")["1"] == ["O"] * 4


# Several texts of a task, several controls.


def on(to_name, start, end, label, text=None, control="label"):
    return region(start, end, label, text, to_name=to_name, from_name=control)


TWO = {"text": "Rome is old", "title": "Rome wins"}


def test_regions_of_another_text_are_counted_and_not_read():
    found = by(1, on("title", 0, 4, "TEAM", "Rome"), on("text", 0, 4, "LOC", "Rome"))
    crowd = read(task(found, **TWO))
    assert crowd.answers_of("1") == {"1": ["B-LOC", "O", "O"]}
    assert crowd.import_report.notes == ("1 regions of 'title' are not read (item 1, worker 1)",)
    crowd = read(task(found, **TWO), columns={"text": "title"})
    assert crowd.answers_of("1") == {"1": ["B-TEAM", "O"]}


@pytest.mark.parametrize("text", ["Rome", None])
def test_regions_of_another_text_alone_are_refused(text):
    found = task(by(1, on("title", 0, 4, "TEAM", text)), **TWO)
    said = "the regions are of the text 'title': pass columns={'text': 'title'}"
    assert said in message(found)


def test_a_control_may_be_called_as_another_field():
    found = task(by(1, on("text", 0, 4, "LOC", "Rome")), text="x", body="Rome is old")
    assert read(found, columns={"text": "body"}).answers_of("1") == {"1": ["B-LOC", "O", "O"]}


def test_labels_of_several_controls_must_be_told_apart():
    found = task(by(1, region(0, 3, from_name="ner"), region(6, 9, "VERB", from_name="pos")))
    assert "labels of several controls (ner, pos): name one with" in message(found)
    assert read(found, columns={"label": "ner"}).answers_of("1")["1"][0] == "B-PER"
    apart = task(by(1, on("title", 0, 4, "X", control="a"), on("text", 0, 4, "Y")), **TWO)
    assert read(apart).answers_of("1") == {"1": ["B-Y", "O", "O"]}


def test_scores_drafts_and_meta_are_counted():
    scored = guess("v1", region(0, 3, score=0.4))
    found = task(by(1, region(0, 3))) | {"drafts": [{}], "meta": {"a": 1}, "predictions": [scored]}
    assert read(found).import_report.notes == (
        "1 drafts are not read (item 1)",
        "1 meta fields of tasks are not read (item 1)",
        "1 scores of predictions are not read (item 1, worker model:v1)",
        "1 scores of regions and choices are not read (item 1, worker model:v1)",
    )


# Order, time, identity.


def test_times_are_read_as_start_and_end():
    answers = read(
        task(by(1, created_at="2021-03-09T22:16:08.728353Z", lead_time=4.288), by(2, lead_time=3))
    ).answers
    assert answers.submitted.tolist() == [1615328168728, -1]
    assert answers.started.tolist() == [1615328164440, -1]


def test_repeated_answers_count_by_time():
    late, soon = "2021-03-09T22:16:09Z", "2021-03-09T22:16:08Z"
    found = task(by(1, region(0, 3), created_at=late), by(1, created_at=soon))
    assert read(found).answers_of("1") == {"1": ["B-PER", "O", "O", "O"]}
    assert read(task(by(1, region(0, 3)), by(1))).answers_of("1") == {"1": ["O"] * 4}


def test_repeated_answers_whose_times_run_backwards_are_a_named_loss():
    builder = CrowdBuilder()
    item = builder.add_item("a", ["x"], text=" x", token_start=[1])
    for attempt, moment in ((0, 5), (1, 3)):
        builder.add_answer(item, "w", ["B-X"], attempt=attempt, submitted=moment)
    (lost,) = losses(builder.build(), "label-studio")
    assert lost == "the submission times of 2 answers (other values come back)"


def test_the_fields_of_data_can_be_named():
    found = {"id": 1, "data": {"body": "Ann", "url": "x", "nr": 9}, "annotations": [by(1)]}
    assert "which field of data is the text: body, url?" in message(found)
    crowd = read(found, columns={"text": "body", "item": "nr"})
    assert crowd.item_ids.to_pylist() == ["9"]
    assert crowd.attributes.to_pydict() == {"url": ["x"]}
    assert "no field 'nr'" in message(task(by(1)), columns={"item": "nr"})
    only = {"id": 1, "data": {"body": "Ann", "n": 1}, "annotations": [by(1)]}
    assert read(only).texts.to_pylist() == ["Ann"]


def test_tokens_of_the_task_are_kept():
    crowd = read(task(by(1, region(0, 4)), text="New York", tokens=["New York"]), cut="expand")
    assert crowd.tokens_list == [["New York"]]
    assert "does not come next" in message(task(by(1), tokens=["Bob"]))
    assert crowd.texts is None


@pytest.mark.parametrize("tokens", [[5], ["Ann", ""], [], "Ann", {"a": 1}])
def test_what_is_no_list_of_tokens_is_passed_over(tokens):
    assert read(task(by(1), text="Ann Lee", tokens=tokens)).tokens_list == [["Ann", "Lee"]]


@pytest.mark.parametrize("starts", [["0"], [-1], [True], 5])
def test_what_is_no_list_of_places_is_passed_over(starts):
    crowd = read(task(by(1), text=" Ann", tokens=["Ann"], token_start=starts))
    assert (crowd.texts.to_pylist(), crowd.token_start) == ([" Ann"], None)


def test_a_document_may_have_an_empty_name():
    assert read(task(by(1), doc="")).groups.to_pylist() == [""]


# JSON-MIN.


def minimal(who, **more):
    found = {"id": 5, "text": TEXT, "topic": "x", "annotator": who, "annotation_id": 3}
    return found | {"created_at": "2021-03-09T22:16:08Z", "updated_at": "", "lead_time": 1.0} | more


def test_json_min_has_one_record_per_annotation():
    spans = [{"start": 0, "end": 3, "text": "Ann", "labels": ["PER"]}]
    crowd = read(minimal(1, ner=spans), minimal(2))
    assert crowd.answers_of("5") == {"1": ["B-PER", "O", "O", "O"], "2": ["O"] * 4}
    assert crowd.attributes.to_pydict() == {"topic": ["x"]}
    assert crowd.answers.started.tolist() == [1615328167000] * 2


def test_json_min_may_have_choices():
    crowd = read(minimal(1, sentiment="pos"), minimal(2, sentiment={"choices": ["neg"]}))
    assert crowd.answers_of("5") == {"1": ["pos"], "2": ["neg"]}
    named = [minimal(1, mood="pos")]
    assert read(*named, columns={"label": "mood"}).answers_of("5") == {"1": ["pos"]}


def test_choices_of_json_min_are_found_or_asked_for():
    records = [minimal(1, topic="music"), minimal(2, topic="sport")]
    said = "no labels, unless a field holds the choices (topic): name one with columns={'label': …}"
    assert said in message(*records)
    assert said in message(*records, columns={"label": "mood"})
    assert read(*records, columns={"label": "topic"}).answers_of("5") == {
        "1": ["music"], "2": ["sport"],
    }  # fmt: skip
    crowd = read(minimal(1, topic={"choices": ["music", "sport"]}), minimal(2, topic="sport"))
    assert crowd.answers_of("5") == {"2": ["sport"]}
    assert crowd.import_report.reasons == {"several choices": 1}


@pytest.mark.parametrize("label", ["label", "sentiment"])
@pytest.mark.parametrize("mark", [",", "\t"])
def test_a_table_of_label_studio_is_refused(label, mark):
    spans = '"[{""start"":0,""end"":3,""text"":""Ann"",""labels"":[""PER""]}]"'
    names = ["annotation_id", "annotator", "created_at", "id", label, "lead_time", "text"]
    cells = ["11", "1", "2024-01-01", "7", spans, "3.2", "Ann sang"]
    data = "\n".join([mark.join(names), mark.join(cells), ""]).encode()
    frame = pd.DataFrame([cells], columns=names)
    for source, options in ((data, {}), (data, {"format": "long"}), (frame, {})):
        with pytest.raises(FormatError, match=r"a table of Label Studio.*: export JSON or JSON-M"):
            read_crowd(source, **options)


def test_a_table_of_single_choices_is_read_if_they_are_named():
    data = b"annotation_id,annotator,id,lead_time,mood,text\n11,1,7,3.2,good,Ann sang\n"
    crowd = read_crowd(data, format="long", columns={"label": "mood"})
    assert crowd.answers_of("7") == {"1": ["good"]}


# Refused.


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"id": 1, "annotations": []}, "no field 'data' (there are: id, annotations)"),
        ({"id": 1, "data": {}, "annotations": []}, "item 1: no field 'text'"),
        (task(by(None)), "item 1: no field 'completed_by'"),
        (task(by(None)), "no field 'completed_by' with a value: 'completed_by' is null"),
        (task({"completed_by": 1, "result": None}), "with a value: 'result' is null"),
        (task(by({})), "no field 'completed_by'"),
        (task(by({"email": None})), "with a user: email, username and id are missing"),
        (task({"completed_by": 1}), "worker 1: no field 'result'"),
        (task(by(1, {"type": "labels"})), "no field 'value'"),
        (task(by(1, created_at=5, lead_time="x")), "lead_time must be seconds"),
        (task(by(1, created_at=5, lead_time=6)), "lead_time must be seconds"),
    ],
)
def test_a_wrong_field_is_refused_with_its_place(found, said):
    text = message(found)
    assert text.startswith("<bytes> line 1")
    assert said in text


def test_the_line_is_that_of_the_task():
    data = json.dumps([task(by(1)), task(by(1, region(0, 99)), id=2)], indent=2)
    line = data[: data.index('"id": 2')].count("\n")
    (fault,) = read_as(label_studio, data.encode()).import_report.faults
    assert str(fault).startswith(f"<bytes> line {line}, item 2, worker 1: ")


def test_a_task_may_not_stand_twice():
    assert "item 1: the item id appears twice" in message(task(by(1)), task(by(2)))


@pytest.mark.parametrize("key", ["annotations", "completions", "predictions"])
def test_tasks_need_data_and_a_list_of_annotations(key):
    assert label_studio.sniff(open_source(json.dumps([{"data": {}, key: []}]).encode()))
    for other in ({"data": {}}, {key: []}, {"data": 1, key: []}, {"data": {}, key: 1}):
        assert not label_studio.sniff(open_source(json.dumps([other]).encode()))


def test_a_project_of_paragraphs_is_refused_with_the_way_round():
    value = {"start": "0", "end": "0", "startOffset": 0, "endOffset": 3, "paragraphlabels": ["PER"]}
    result = {"type": "paragraphlabels", "from_name": "l", "to_name": "t", "value": value}
    task = {"id": 1, "data": {"talk": [{"author": "a", "text": "Ann sang"}]},
            "annotations": [{"completed_by": 1, "result": [result]}]}  # fmt: skip
    said = message(task)
    assert "a project of Paragraphs" in said
    assert "every turn an item of its own" in said
