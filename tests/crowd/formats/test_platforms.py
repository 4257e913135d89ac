"""Exports of Toloka, Appen and SageMaker become crowds; what is no answer is counted."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime

import pandas as pd
import pytest

from crowd_tables import zipped
from goldspan import read_crowd
from goldspan.errors import FormatError

TEXT = "Ann lives in Paris"
PER = {"label": "PER", "startOffset": 0, "endOffset": 3}
LOC = {"label": "LOC", "startOffset": 13, "endOffset": 18}


def table(*rows, mark="\t"):
    buffer = io.StringIO()
    names = list(dict.fromkeys(name for one in rows for name in one))
    out = csv.DictWriter(buffer, names, delimiter=mark, lineterminator="\n")
    out.writeheader()
    out.writerows(rows)
    return buffer.getvalue().encode()


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def milliseconds(*date):
    return datetime(*date, tzinfo=UTC).timestamp() * 1000


# Toloka


def task(item, worker, label, text=TEXT, **more):
    """Return a row; `about_x` stands for the column `ASSIGNMENT:x`."""
    about = {f"ASSIGNMENT:{key.removeprefix('about_')}": value for key, value in more.items()}
    return {
        "INPUT:text": text, "OUTPUT:result": label, "GOLDEN:result": "", "HINT:text": "",
        "ASSIGNMENT:task_id": item, "ASSIGNMENT:worker_id": worker,
        "ASSIGNMENT:assignment_id": f"{worker}-page", "ASSIGNMENT:status": "APPROVED",
    } | about  # fmt: skip


QUOTED = 'A "quoted"\ttext'
TASKS = [
    task("t1", "w1", "good") | {"GOLDEN:result": "good"},
    task("t2", "w1", "bad", QUOTED, about_reward="0.03"),
    task("t1", "w2", "bad", about_started="2021-03-04T10:00:00.500", about_reward="0.01",
         about_submitted="2021-03-04T10:01:00.500") | {"GOLDEN:result": "good"},
    task("t2", "w3", "good", QUOTED, about_status="REJECTED"),
]  # fmt: skip


@pytest.mark.parametrize("mark", ["\t", ",", ";"])
def test_toloka_has_answers_gold_times_and_what_was_rejected(mark):
    crowd = read_crowd(table(*TASKS, mark=mark))
    report = crowd.import_report
    assert report.format == "toloka"
    assert crowd.answers_of("t1") == {"w1": ["good"], "w2": ["bad"]}
    assert crowd.answers_of("t2") == {"w1": ["bad"]}
    assert crowd.tokens_list == [[TEXT], ['A "quoted"\ttext']]
    assert crowd.tagged_by_id() == {"t1": ["good"], "t2": [None]}
    assert report.reasons == {"rejected": 1}
    assert "1 rejected assignment is not an answer" in report.notes
    assert crowd.worker_ids.to_pylist() == ["w1", "w2", "w3"]
    assert max(crowd.answers.started) == milliseconds(2021, 3, 4, 10) + 500
    # A page is paid as a whole: w1's has two tasks
    assert sorted(crowd.answers.cost) == [-1, 10_000, 15_000]


def test_toloka_is_read_from_frames_and_parquet(tmp_path):
    frame = pd.read_csv(io.BytesIO(table(*TASKS)), sep="\t")
    frame.to_parquet(tmp_path / "tasks.parquet")
    wanted = read_crowd(table(*TASKS)).answers_of("t1")
    for source in (frame, tmp_path / "tasks.parquet"):
        crowd = read_crowd(source)
        assert crowd.import_report.format == "toloka"
        assert crowd.answers_of("t1") == wanted


def test_pages_of_toloka_may_stand_apart_and_tasks_have_no_ids():
    rows = [{key: value for key, value in row.items() if "task_id" not in key} for row in TASKS]
    head, *rest = table(*rows).decode().split("\n")
    blank = "\t" * head.count("\t")
    crowd = read_crowd("\n".join([head, rest[0], blank, rest[1], "", *rest[2:]]).encode())
    assert crowd.answers_of(TEXT) == {"w1": ["good"], "w2": ["bad"]}
    pairs = [
        {"INPUT:left": "a", "INPUT:right": right, "OUTPUT:which": "left",
         "ASSIGNMENT:worker_id": "w"} for right in "bc"
    ]  # fmt: skip
    assert read_crowd(table(*pairs)).item_ids.to_pylist() == ["a | b", "a | c"]


def test_of_several_outputs_the_one_with_gold_or_categories_is_the_label():
    rows = [row | {"OUTPUT:comment": f"it is {n} or so"} for n, row in enumerate(TASKS)]
    crowd = read_crowd(table(*rows))
    assert crowd.answers_of("t2") == {"w1": ["bad"]}
    assert "not those to comment" in crowd.import_report.notes[0]
    two = [row | {"OUTPUT:topic": "food", "GOLDEN:result": ""} for row in TASKS]
    with pytest.raises(FormatError, match=r"result, topic.*--columns label=OUTPUT:result"):
        read_crowd(table(*two))
    for name in ("OUTPUT:topic", "topic"):
        crowd = read_crowd(table(*two), columns={"label": name})
        assert crowd.answers_of("t2") == {"w1": ["food"]}


@pytest.mark.parametrize(
    "keys", [("offset", "length"), ("start", "finish"), ("startOffset", "endOffset")]
)
def test_spans_of_toloka_are_json_in_a_cell(keys):
    found = [
        {"label": kind, keys[0]: start, keys[1]: size if keys[1] == "length" else start + size}
        for kind, start, size in (("PER", 0, 3), ("LOC", 13, 5))
    ]
    crowd = read_crowd(table(task("t", "a", json.dumps(found)), task("t", "b", "[]")))
    assert crowd.answers_of("t") == {"a": ["B-PER", "O", "O", "B-LOC"], "b": ["O"] * 4}


def test_aggregated_answers_and_control_tasks_of_toloka_are_gold():
    rows = [
        {"INPUT:image": f"{n}.png", "OUTPUT:result": label, "CONFIDENCE:result": "90%"}
        for n, label in enumerate(("cat", "dog"))
    ]
    crowd = read_crowd(table(*rows))
    assert crowd.n_workers == 0
    assert crowd.tagged_by_id() == {"0.png": ["cat"], "1.png": ["dog"]}
    tasks = [{"INPUT:text": TEXT, "GOLDEN:result": "good", "HINT:text": "look"}]
    assert read_crowd(table(*tasks)).tagged_by_id() == {TEXT: ["good"]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ASSIGNMENT:worker_id": ""}, "ASSIGNMENT:worker_id"),
        ({"ASSIGNMENT:reward": "much"}, "reward must be a number"),
        ({"INPUT:text": "another"}, "not the text that this item has"),
        ({"GOLDEN:result": "bad"}, "the gold differs"),
    ],
)
def test_a_faulty_cell_of_toloka_is_named_with_its_line(change, message):
    with pytest.raises(FormatError, match=message) as caught:
        read_crowd(table(*TASKS, TASKS[0] | change))
    assert caught.value.faults[0].line in {2, 6}


# Appen


def judgement(unit, worker, label, **more):
    return {
        "_unit_id": unit, "_created_at": "3/9/2017 18:03:22", "_golden": "false", "_id": 1,
        "_started_at": "3/9/2017 18:02:22", "_tainted": "false", "_trust": "0.9",
        "_worker_id": worker, "_country": "NOR", "mood": label, "mood_gold": "",
        "mood_gold_reason": "", "text": f"text of {unit}", "source": "web",
    } | more  # fmt: skip


JUDGEMENTS = [
    judgement(1, 7, "good", _golden="true", mood_gold="good"),
    judgement(1, 8, "bad", _golden="true", mood_gold="good", _tainted="true", _trust="0.4"),
    judgement(2, 7, "bad", mood_gold="bad"),
    judgement(2, 9, "bad"),
    judgement(3, 7, "good\nbad", _golden="true", mood_gold="bad\ngood"),
]


def test_appen_has_judgements_trust_and_test_questions():
    crowd = read_crowd(table(*JUDGEMENTS, mark=","))
    report = crowd.import_report
    assert report.format == "appen"
    assert crowd.answers_of("1") == {"7": ["good"]}
    assert crowd.answers_of("2") == {"7": ["bad"], "9": ["bad"]}
    # A unit that is no test question any more has no gold, one with two right answers neither
    assert crowd.tagged_by_id() == {"1": ["good"], "2": [None], "3": [None]}
    assert "2 answers are right (bad, good)" in str(report.faults[-2] if report.faults else "")
    assert report.reasons["tainted"] == 1
    assert "1 tainted assignment is not an answer" in report.notes
    assert crowd.known_facts["7"] == {"trust": "0.9"}
    assert crowd.answers.started[0] == milliseconds(2017, 3, 9, 18, 2, 22)
    assert crowd.attributes.to_pylist()[0] == {"source": "web"}


def test_without_gold_the_question_of_appen_is_what_differs_within_a_unit():
    rows = [
        {key: value for key, value in row.items() if "gold" not in key}
        | {"_created_at": "09.03.2017 18:03"}
        for row in JUDGEMENTS[:4]
    ]
    plain = read_crowd(table(*rows, mark=","))
    assert plain.answers_of("2") == {"7": ["bad"], "9": ["bad"]}
    assert any("times in _created_at are not read" in note for note in plain.import_report.notes)
    by_r = [{f"X{k}" if k[0] == "_" else k: v for k, v in row.items()} for row in rows]
    assert read_crowd(table(*by_r, mark=",")).answers_of("1") == {"7": ["good"]}
    with pytest.raises(FormatError, match="mood, why"):
        read_crowd(table(*(r | {"why": f"{r['_worker_id']}{r['mood']}"} for r in rows), mark=","))


def test_an_aggregated_report_of_appen_is_gold():
    rows = [
        {"_unit_id": n, "_golden": known != "", "_trusted_judgments": 3, "mood": label,
         "mood:confidence": 0.7, "mood_gold": known, "text": f"text {n}"}
        for n, (label, known) in enumerate((("good", ""), ("bad", "good\nbad"), ("bad", "good")))
    ]  # fmt: skip
    crowd = read_crowd(table(*rows, mark=","))
    assert crowd.n_workers == 0
    assert crowd.tagged_by_id() == {"0": ["good"], "1": ["bad"], "2": ["good"]}


def test_a_report_of_appen_in_json_has_the_same_judgements():
    units = {}
    for row in JUDGEMENTS:
        unit = units.setdefault(row["_unit_id"], {
            "id": row["_unit_id"], "results": {"judgments": []},
            "data": {"text": row["text"], "source": "web", "mood_gold": row["mood_gold"]},
        })  # fmt: skip
        unit["results"]["judgments"].append({
            "worker_id": row["_worker_id"], "trust": 0.9, "tainted": row["_tainted"] == "true",
            "golden": row["_golden"] == "true", "data": {"mood": row["mood"].split("\n")},
            "created_at": "2017-03-09T18:03:22+00:00",
        })  # fmt: skip
    crowd, wanted = read_crowd(lines(*units.values())), read_crowd(table(*JUDGEMENTS, mark=","))
    assert crowd.import_report.format == "appen"
    assert crowd.import_report.reasons == wanted.import_report.reasons
    assert crowd.tagged_by_id() == wanted.tagged_by_id()
    for unit in "123":
        assert crowd.answers_of(unit) == wanted.answers_of(unit)
    assert crowd.answers.submitted.tolist() == wanted.answers.submitted.tolist()


# SageMaker Ground Truth


def manifest(text, label, kind="text-span", job="names", **about):
    known = {"type": f"groundtruth/{kind}", "human-annotated": "yes", "job-name": job} | about
    return {"source": text, job: label, f"{job}-metadata": known}


def entities(*found):
    return {"annotations": {"entities": list(found), "labels": [{"label": "PER"}]}}


def request(item, answers, text=TEXT):
    return {
        "datasetObjectId": item,
        "dataObject": {"content": text},
        "annotations": [
            {"workerId": who, "annotationData": {"content": json.dumps(content)}}
            for who, content in answers.items()
        ],
    }


def response(**answers):
    return json.dumps({
        "answers": [
            {"workerId": who, "answerContent": {"crowd-entity-annotation": {"entities": found}},
             "acceptanceTime": "2021-03-04T10:00:00.000Z", "submissionTime": "2021-03-04T10:01:00Z"}
            for who, found in answers.items()
        ]
    }).encode()  # fmt: skip


def test_a_manifest_of_spans_is_gold():
    crowd = read_crowd(lines(manifest(TEXT, entities(PER, LOC)), manifest("It rained", entities())))
    assert crowd.import_report.format == "sagemaker"
    assert crowd.tagged_by_id() == {"0": ["B-PER", "O", "O", "B-LOC"], "1": ["O", "O"]}
    assert crowd.n_workers == 0


def test_a_manifest_of_classes_has_their_names():
    rows = [
        manifest("a", 1, "text-classification", **{"class-name": "good"}),
        manifest("b", 0, "text-classification", **{"class-name": "bad", "human-annotated": "no"}),
        manifest("c", [3], "text-classification-multilabel", **{"class-map": {"3": "bad"}}),
        manifest("d", [3, 4], "x", **{"class-map": {"3": "bad", "4": "good"}}),
        {"source": "e", "names-metadata": {"failure-reason": "no answers"}},
    ]
    crowd = read_crowd(lines(*rows))
    known = [tags[0] for tags in crowd.tagged_by_id().values()]
    assert known == ["good", None, "bad", None, None]
    assert any("labels that a model gave" in note for note in crowd.import_report.notes)


def test_requests_for_consolidation_have_everybodys_answers():
    answers = {"ann": {"crowd-entity-annotation": {"entities": [PER]}},
               "bob": {"crowd-entity-annotation": {"entities": [PER, LOC]}}}  # fmt: skip
    crowd = read_crowd(json.dumps([request("7", answers)]).encode())
    assert crowd.answers_of("7") == {
        "ann": ["B-PER", "O", "O", "O"], "bob": ["B-PER", "O", "O", "B-LOC"]
    }  # fmt: skip
    classes = {"ann": {"crowd-classifier": {"label": "good"}},
               "bob": {"crowd-classifier": {"label": "bad"}}}  # fmt: skip
    assert read_crowd(lines(request("7", classes))).answers_of("7") == {
        "ann": ["good"], "bob": ["bad"]
    }  # fmt: skip
    everybody = {"annotationsFromAllWorkers": request("", classes)["annotations"]}
    crowd = read_crowd(lines(manifest(TEXT, everybody, "custom")))
    assert crowd.answers_of("0") == {"ann": ["good"], "bob": ["bad"]}


def test_responses_of_workers_take_their_texts_from_the_manifest_beside_them():
    folder = "annotations/worker-response/iteration-1"
    files = {
        f"{folder}/0/2021-03-04_10.json": response(ann=[PER], bob=[]),
        f"{folder}/1/2021-03-04_10.json": response(ann=[]),
        "annotations/consolidated-annotation/consolidation-response/iteration-1/a.json": json.dumps(
            [{"datasetObjectId": "0", "consolidatedAnnotation": {"content": {}}}]
        ).encode(),
        "manifests/intermediate/1/output.manifest": lines(manifest("other", entities())),
        "manifests/output/output.manifest": lines(
            manifest(TEXT, entities(LOC)), manifest("It rained", entities())
        ),
    }
    crowd = read_crowd(zipped(files))
    assert crowd.answers_of("0") == {"ann": ["B-PER", "O", "O", "O"], "bob": ["O"] * 4}
    assert crowd.answers_of("1") == {"ann": ["O", "O"]}
    assert crowd.gold is None
    assert crowd.answers.submitted[0] - crowd.answers.started[0] == 60_000
    del files["manifests/output/output.manifest"]
    with pytest.raises(FormatError, match="or add the file that has them"):
        read_crowd(zipped(files))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([manifest(TEXT, {"annotations": [{"class_id": 0}]}, "object-detection")], "not read"),
        ([manifest(TEXT, 0, job="mood") | manifest(TEXT, 1, job="topic")], "mood, topic"),
        ([request("1", {}) | {"annotations": [{"workerId": "a",
           "annotationData": {"content": "{"}}]}], "is not JSON"),
        ([manifest(TEXT, entities(PER)), {"source": "x"}], "not an output manifest"),
    ],
)  # fmt: skip
def test_what_ground_truth_has_besides_is_refused(rows, message):
    with pytest.raises(FormatError, match=message):
        read_crowd(lines(*rows))
