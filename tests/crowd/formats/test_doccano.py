"""doccano's exports: spans and classes, one file per annotator or one for all."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from crowd_strategies import folder_of, lines_of, read_as
from goldspan.crowd import read_crowd
from goldspan.crowd.formats import doccano
from goldspan.crowd.source import open_source
from goldspan.errors import FormatError

TEXT = "Ann Lee sang"
ONE = {"id": 1, "text": TEXT, "label": [[0, 7, "PER"]], "Comments": []}


def read(*lines, **options):
    return read_as(doccano, lines_of(*lines), **options)


def message(*lines, **options) -> str:
    with pytest.raises(FormatError) as caught:
        read(*lines, **options)
    return str(caught.value)


def test_lines_are_written_as_doccano_exports_them(tmp_path):
    crowd = read({**ONE, "annotator": "alice", "doc": "D", "topic": "x"})
    doccano.write(crowd, tmp_path / "all.jsonl")
    (line,) = (tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line) == {
        "id": "1",
        "text": TEXT,
        "label": [[0, 7, "PER"]],
        "annotator": "alice",
        "doc": "D",
        "topic": "x",
    }


@pytest.mark.parametrize("key", ["label", "labels", "entities"])
@pytest.mark.parametrize("text", ["text", "data"])
@pytest.mark.parametrize(
    "span", [[0, 7, "PER"], {"id": 3, "start_offset": 0, "end_offset": 7, "label": "PER"}]
)
def test_spans_stand_under_several_names(key, text, span):
    crowd = read({"id": 1, text: TEXT, key: [span], "user": 5})
    assert crowd.answers_of("1") == {"5": ["B-PER", "I-PER", "O"]}
    assert crowd.attributes is None


@pytest.mark.parametrize("key", ["annotator", "username", "user"])
def test_the_worker_is_named_in_the_line(key):
    assert read({**ONE, key: "alice"}).worker_ids.to_pylist() == ["alice"]


def test_the_worker_is_the_name_of_the_file():
    folder = folder_of(
        **{"alice.smith_DOT_jsonl": lines_of(ONE), "bob_DOT_jsonl": lines_of({**ONE, "label": []})},
        README_DOT_md="about",
    )
    crowd = read_as(doccano, folder)
    assert crowd.answers_of("1") == {"alice.smith": ["B-PER", "I-PER", "O"], "bob": ["O"] * 3}
    assert doccano.sniff(folder)


def test_an_item_is_known_by_its_id_or_that_of_its_document_or_by_its_text():
    bare = {key: value for key, value in ONE.items() if key != "id"}
    crowd = read({**bare, "doc_id": 7, "user": "a"}, {**bare, "doc_id": 7, "user": "b"})
    assert crowd.answers_of("7").keys() == {"a", "b"}
    assert crowd.attributes is None
    crowd = read(
        {**bare, "user": "a"}, {**bare, "text": "Bob Roe sang", "user": "a"}, {**bare, "user": "b"}
    )
    assert crowd.item_ids.to_pylist() == ["1", "2"]
    assert crowd.answers_of("1").keys() == {"a", "b"}
    assert "no field 'key'" in message(ONE, columns={"item": "key"})


def test_a_zip_of_files_is_read():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("alice.jsonl", lines_of(ONE))
        archive.writestr("gold.jsonl", lines_of({**ONE, "label": [[0, 3, "PER"]]}))
    source = open_source(packed.getvalue())
    assert doccano.sniff(source)
    crowd = read_as(doccano, source)
    assert crowd.worker_ids.to_pylist() == ["alice"]
    assert crowd.tagged_by_id() == {"1": ["B-PER", "O", "O"]}


def test_bytes_without_a_name_have_one_annotator():
    assert read(ONE).worker_ids.to_pylist() == ["annotator"]


def test_empty_lists_are_answers_without_a_span_and_are_counted():
    crowd = read({**ONE, "user": "a"}, {**ONE, "label": [], "user": "b"})
    assert crowd.answers_of("1")["b"] == ["O", "O", "O"]
    assert crowd.import_report.notes[0].startswith(
        "1 records with an empty list of labels are read as"
    )


def test_what_nobody_labelled_has_no_answer():
    rest = lines_of({**ONE, "id": 2, "label": []})
    crowd = read_as(doccano, folder_of(ann_DOT_jsonl=lines_of(ONE), unknown_DOT_jsonl=rest))
    assert crowd.worker_ids.to_pylist() == ["ann"]
    assert crowd.answers_of("2") == {}
    note = "1 records of the file 'unknown' were labelled by nobody: not answers"
    assert crowd.import_report.notes == (note,)
    assert read({**ONE, "label": [], "user": "unknown"}).worker_ids.to_pylist() == ["unknown"]


def test_the_file_of_all_members_of_a_project_is_noted():
    crowd = read_as(doccano, folder_of(all_DOT_jsonl=lines_of(ONE)))
    assert crowd.worker_ids.to_pylist() == ["all"]
    (note,) = crowd.import_report.notes
    assert "in collaborative projects they are of several people" in note


@pytest.mark.parametrize("where", [{}, {"start_offset": 0, "end_offset": 3}])
def test_labels_that_are_ids_are_refused(where):
    old = {"id": 1, "text": TEXT, "meta": {}, "annotations": [{"label": 4, "user": 1, **where}]}
    data = lines_of({**old, "annotations": []}, old)
    with pytest.raises(FormatError, match=r"line 2.*are ids.*export 'JSONL \(Text label\)'"):
        read_crowd(data)


def test_classes_become_single_labels():
    crowd = read(
        {"id": 1, "text": TEXT, "label": ["pos"], "user": "a"},
        {"id": 1, "text": TEXT, "label": "neg", "user": "b"},
        {"id": 1, "text": TEXT, "label": [], "user": "c"},
        {"id": 1, "text": TEXT, "label": ["pos", "neg"], "user": "d"},
    )
    assert crowd.is_classification
    assert crowd.tokens_list == [[TEXT]]
    assert crowd.answers_of("1") == {"a": ["pos"], "b": ["neg"]}
    assert crowd.import_report.reasons == {"several choices": 1}
    assert crowd.import_report.adds_up
    assert "are not answers" in crowd.import_report.notes[0]


def test_comments_and_relations_are_counted():
    found = {**ONE, "Comments": ["hm", "so"], "relations": [{"id": 1}]}
    assert read(found).import_report.notes == (
        "2 comments are not read (item 1, worker annotator)",
        "1 relations are not read (item 1, worker annotator)",
    )


def test_annotators_must_share_texts():
    text = message({**ONE, "user": "a"}, {**ONE, "text": "Bob", "user": "b"})
    assert "line 2, item 1, worker b: not the text that this item has in <bytes> line 1" in text


def test_other_attributes_of_one_item_are_noted():
    crowd = read({**ONE, "user": "a", "n": 1}, {**ONE, "user": "b", "n": 2})
    assert crowd.attributes.to_pydict() == {"n": [1]}
    assert "1 records have other attributes" in crowd.import_report.notes[0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": None}, "no field 'id'"),
        ({"text": None}, "no field 'text' or 'data'"),
        ({"label": 5}, "expected a list of spans, found the number 5"),
        ({"label": [{"start_offset": 0, "label": "X"}]}, "no field 'end'"),
    ],
)
def test_a_wrong_field_is_refused_with_its_place(change, said):
    good = {"id": 9, "text": TEXT, "label": [[0, 7, "PER"]], "user": "w"}
    text = message(good, {**ONE, **change})
    assert text.startswith("<bytes> line 2")
    assert said in text


def test_labels_that_are_no_names_are_refused():
    assert "expected a list of labels" in message(
        {**ONE, "label": ["x", 5]}, {**ONE, "label": ["x"]}
    )
