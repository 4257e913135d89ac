"""JSON of tools without a reader of their own: the forms that are known, and refusals by name."""

from __future__ import annotations

import json

import pytest

from crowd_strategies import lines_of
from goldspan.crowd import read_crowd
from goldspan.errors import FormatError

TEXT = "Ada Byron saw Kent."
PER, NONE = ["B-PER", "I-PER", "O", "O", "O"], ["O"] * 5


def message(*rows, suffix=".jsonl", tmp_path, **options) -> str:
    path = tmp_path / f"file{suffix}"
    path.write_bytes(lines_of(*rows))
    with pytest.raises(FormatError) as caught:
        read_crowd(path, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    "said",
    [
        {"marks": {"ann": [[0, 9, "PER"]], "bob": []}},
        {"marks": {"ann": [{"begin": 0, "end": 9, "tag": "PER"}], "bob": []}},
        {"annotations": [{"annotator": "ann", "spans": [[0, 9, "PER"]]},
                         {"annotator": "bob", "spans": []}]},
        {"annotations": [{"start": 0, "end": 9, "tag": "PER", "annotated_by": [
            {"annotator_id": 1, "annotator": "ann"}]}],
         "seen_by": [{"annotator": "ann"}, {"annotator": "bob"}]},
    ],
)  # fmt: skip
def test_spans_of_several_annotators_are_their_answers(said):
    nested = {"examples": [{"example_id": "a", "content": TEXT, **said}]}
    for data in (lines_of({"id": "a", "text": TEXT, **said}), json.dumps(nested).encode()):
        crowd = read_crowd(data)
        assert crowd.import_report.format == "json-labels"
        assert crowd.answers_of("a") == {"ann": PER, "bob": NONE}


@pytest.mark.parametrize(
    "row",
    [
        {"content": TEXT, "annotation": [
            {"label": ["PER"], "points": [{"start": 0, "end": 8, "text": "Ada Byron"}]}]},
        {"document": TEXT, "tokens": [
            {"text": "Ada Byron", "start": 0, "end": 9, "entityLabel": "PER"}], "relations": []},
        {"textContent": TEXT, "textSegmentAnnotations": [
            {"startOffset": 0, "endOffset": 9, "displayName": "PER"}]},
    ],
)  # fmt: skip
def test_spans_of_nobody_are_those_of_the_file(row, tmp_path):
    (tmp_path / "zoe.json").write_bytes(lines_of(row))
    assert read_crowd(tmp_path / "zoe.json").answers_of("1") == {"zoe": PER}


def test_a_field_of_gold_is_gold():
    crowd = read_crowd(lines_of({"text": TEXT, "gold_spans": [[0, 9, "PER"]]}))
    assert crowd.tagged_by_id() == {"1": PER}
    assert crowd.n_workers == 0


def test_single_labels_of_several_annotators_are_their_answers():
    rows = [
        {"text": text, "annotations": [{"user": {"id": 4}, "label": "x"}, {"user": 5, "label": y}]}
        for text, y in (("a b", "x"), ("c d", "y"))
    ]
    crowd = read_crowd(lines_of(*rows))
    assert crowd.is_classification
    assert crowd.answers_of("2") == {"4": ["x"], "5": ["y"]}


def test_objects_without_lists_are_a_table():
    said = (("p1", "a", "pro"), ("p1", "b", "con"), ("p2", "a", "con"), ("p2", "b", "con"))
    rows = [dict(zip(("post", "rater", "stance"), one, strict=True)) for one in said]
    for data in (lines_of(*rows), json.dumps(rows).encode()):
        crowd = read_crowd(data)
        assert crowd.answers_of("p1") == {"a": ["pro"], "b": ["con"]}
        assert "item=post, worker=rater, label=stance" in crowd.import_report.notes[0]


@pytest.mark.parametrize(
    "found",
    [
        {"annotations": {"ann": "x", "bob": "y"}},  # of annotators, or of questions
        {"entities": {"PER": [[0, 9]]}},
        {"judgments": [{"class": "x"}]},
        {"ner": [{"start": 0, "end": 9, "labels": ["PER"]}]},
        {"my_answers": {"q1": 3}},
    ],
)
def test_what_looks_like_labels_of_another_form_is_refused_by_its_name(found, tmp_path):
    said = message({"id": 1, "text": TEXT, **found}, tmp_path=tmp_path)
    assert f"the field {next(iter(found))!r} looks like labels" in said
    assert "--format span-table" in said


def test_spans_of_tokens_are_refused_with_the_way_round(tmp_path):
    row = {"tokens": ["Ada", "saw"], "entities": [{"type": "PER", "start": 0, "end": 1}]}
    assert "name the fields 'item', 'tokens' and 'gold'" in message(row, tmp_path=tmp_path)
    way = {"item": "1", "tokens": row["tokens"], "gold": row["entities"]}
    assert read_crowd(lines_of(way)).tagged_by_id() == {"1": ["B-PER", "O"]}


@pytest.mark.parametrize("name", ["review", "body", "comment_text"])
def test_texts_have_other_names_too(name, tmp_path):
    row = {name: TEXT, "annotations": {"ann": "x", "bob": "y"}}
    assert "the field 'annotations' looks like labels" in message(row, tmp_path=tmp_path)
    crowd = read_crowd(lines_of({name: TEXT, "marks": {"ann": [[0, 9, "PER"]]}}))
    assert crowd.answers_of("1") == {"ann": PER}


def test_of_several_fields_one_is_named(tmp_path):
    row = {"text": TEXT, "annotations": [[0, 9, "PER"]], "gold_spans": [[0, 3, "X"]]}
    said = message(row, tmp_path=tmp_path)
    assert "(annotations, gold_spans): name one with columns={'label': …}" in said
    crowd = read_crowd(lines_of(row), columns={"label": "annotations"})
    assert crowd.answers_of("1") == {"annotator": PER}


@pytest.mark.parametrize(
    ("row", "tool"),
    [
        ({"sentences": [{"content": TEXT, "labels": []}], "labelSets": []}, "Datasaur"),
        ({"annotatable": {"parts": ["s1"]}, "anncomplete": True, "entities": []}, "tagtog"),
        ({"_referenced_fss": {}, "_views": {}}, "INCEpTION"),
        ({"documents": [{"id": "1", "passages": []}], "key": "x"}, "BioC"),
    ],
)
def test_exports_that_are_not_read_are_named_with_the_way_round(row, tool, tmp_path):
    for suffix in (".json", ".jsonl"):
        said = message(row, suffix=suffix, tmp_path=tmp_path)
        assert f"an export of {tool}" in said
        assert "write a table with a row per span" in said


@pytest.mark.parametrize(
    "more",
    [
        {"tags": ["news", "web"]},
        {"meta": {"label": "x", "spans": [[0, 1, "A"]]}},
        {"user": {"id": 3, "name": "x"}, "entities": {"hashtags": [{"text": "a", "at": [0, 2]}]}},
        {"label": "x"},
    ],
)
def test_other_fields_of_a_text_are_no_labels(more, tmp_path):
    path = tmp_path / "pool.jsonl"
    path.write_bytes(lines_of({"id": 1, "text": TEXT, **more}))
    with pytest.raises(FormatError, match="these are texts without answers"):
        read_crowd(path.read_bytes())


def test_unknown_json_is_of_no_tool(tmp_path):
    said = message({"a": 1, "b": {"c": 2}}, {"a": 2}, suffix=".json", tmp_path=tmp_path)
    assert "no field 'text' (there are: a, b)" in said


@pytest.mark.parametrize("whole", [{"data": [0, 1]}, {"x": 0, "y": 1}])
def test_one_object_may_hold_the_texts(whole):
    rows = [{"text": TEXT, "marks": {"ann": [[0, 9, "PER"]]}},
            {"text": "So it is", "marks": {"ann": []}}]  # fmt: skip
    if "data" in whole:
        data, names = {"data": rows}, ["1", "2"]
    else:
        data, names = dict(zip(whole, rows, strict=True)), ["x", "y"]
    crowd = read_crowd(json.dumps(data).encode())
    assert crowd.item_ids.to_pylist() == names
    assert crowd.answers_of(0) == {"ann": PER}
