"""Labels that nobody confirmed: marked in the files of annotation tools, and not read as gold."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowd_strategies import common_crowds
from goldspan.crowd import read_crowd, write_crowd
from goldspan.errors import GoldspanError, InputError

TOOLS = {
    "label-studio": "x.json", "doccano": "x.jsonl", "prodigy": "x.jsonl", "brat": "folder",
}  # fmt: skip
SPANS = b"""{"item": "1", "doc": "d", "text": "Ann Lee sang", "answers": [
{"worker": "bob", "spans": [{"type": "PER", "start": 0, "end": 3}]}],
"gold": [{"type": "PER", "start": 0, "end": 7}]}
{"item": "2", "doc": "e", "text": "It rained", "answers": [{"worker": "bob", "spans": []}],
"gold": []}
{"item": "3", "doc": "f", "text": "in Rome", "answers": [{"worker": "bob", "spans": []}],
"gold": [{"type": "LOC", "start": 3, "end": 7}]}
""".replace(b",\n", b", ").replace(b"[\n", b"[")
LABELS = b"item,worker,label,gold\n1,ann,x,x\n2,ann,y,x\n"


@pytest.fixture
def crowd():
    return read_crowd(SPANS, format="spans")


def objects(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("name", TOOLS)
def test_what_nobody_confirmed_is_not_read_as_gold(crowd, tmp_path, name):
    path = tmp_path / TOOLS[name]
    write_crowd(crowd, path, format=name, predicted={"1": 0.98765, "2": 0.5})
    back = read_crowd(path)
    assert back.import_report.format == name
    names = ["d-1", "e-1", "f-1"] if name == "brat" else ["1", "2", "3"]
    assert back.item_ids.to_pylist() == names
    assert back.worker_ids.to_pylist() == ["bob"]
    assert [back.answers_of(one) for one in names] == [
        crowd.answers_of(one) for one in ["1", "2", "3"]
    ]
    known = back.gold >= 0
    assert np.split(known, back.offsets[1:-1])[2].all()
    assert known.sum() == 2
    (note,) = [note for note in back.import_report.notes if "prediction" in note]
    assert note.startswith("2 ")


@pytest.mark.parametrize("name", ["label-studio", "doccano", "prodigy"])
@given(crowd=common_crowds(), data=st.data())
def test_the_rest_comes_back_as_without_them(tmp_path_factory, name, crowd, data):
    ids = crowd.item_ids.to_pylist()
    chosen = data.draw(st.lists(st.sampled_from(ids), unique=True)) if ids else []
    folder = tmp_path_factory.mktemp("one")
    gold = None if crowd.gold is None else crowd.gold.copy()
    if gold is not None:
        gold[np.repeat([one in chosen for one in ids], np.diff(crowd.offsets))] = -1
    write = partial(write_crowd, format=name)
    try:
        expected = write(crowd.with_gold(gold), folder / "a")
    except InputError:
        return
    lost = write(crowd, folder / "b", predicted=dict.fromkeys(chosen, 0.25))
    wanted = {"a column of gold without a tag"}
    assert {*lost} - wanted == {*expected} - wanted
    try:
        back = read_crowd(folder / "a", format=name)
    except GoldspanError:
        return
    assert read_crowd(folder / "b", format=name) == back


def test_prodigy_gets_ignored_tasks(crowd, tmp_path):
    write_crowd(crowd, tmp_path / "x", format="prodigy", predicted={"1": 0.98765, "2": np.nan})
    by = {one["item"]: one for one in objects(tmp_path / "x") if one["_annotator_id"] != "bob"}
    assert [one["answer"] for one in by.values()] == ["ignore", "ignore", "accept"]
    assert [one["_annotator_id"] for one in by.values()] == ["goldspan", "goldspan", "gold"]
    assert (by["1"]["predicted"], by["2"]["predicted"]) == (0.9877, None)
    assert [span["label"] for span in by["1"]["spans"]] == ["PER"]
    assert "predicted" not in by["3"]


def test_doccano_gets_a_field(crowd, tmp_path):
    write_crowd(crowd, tmp_path / "x", format="doccano", predicted={"1": 0.98765})
    by = {one["id"]: one for one in objects(tmp_path / "x") if one["annotator"] != "bob"}
    assert [one["annotator"] for one in by.values()] == ["goldspan", "gold", "gold"]
    assert [one.get("predicted") for one in by.values()] == [0.9877, None, None]


def test_brat_gets_a_folder_and_notes(tmp_path):
    crowd = read_crowd(SPANS.replace(b'"e"', b'"d"'), format="spans")
    lost = write_crowd(crowd, tmp_path / "x", format="brat", predicted={"1": 0.98765})
    found = (tmp_path / "x" / "_goldspan" / "d.ann").read_text("utf-8")
    assert (
        found == "T1\tPER 0 7\tAnn Lee\n#1\tAnnotatorNotes T1\tnot confirmed, confidence 0.9877\n"
    )
    assert (tmp_path / "x" / "gold" / "f.ann").read_text("utf-8") == "T1\tLOC 3 7\tRome\n"
    # Of a document of which not all is confirmed, nothing is gold: brat knows whole files only.
    assert not (tmp_path / "x" / "gold" / "d.ann").exists()
    assert any(one.startswith("the gold of 1 item: ") for one in lost)


def test_a_worker_of_that_name_still_has_answers(tmp_path):
    crowd = read_crowd(LABELS.replace(b"ann", b"goldspan"))
    for name in ("doccano", "prodigy"):
        write_crowd(crowd, tmp_path / name, format=name, predicted={"2": 0.75})
        back = read_crowd(tmp_path / name)
        assert back.worker_ids.to_pylist() == ["goldspan"]
        assert len(back.answers) == 2


@pytest.mark.parametrize("name", ["long", "spans", "parquet", "conll"])
def test_formats_without_a_place_for_it_refuse(tmp_path, name):
    with pytest.raises(InputError, match=f"predicted format '{name}' cannot mark"):
        write_crowd(read_crowd(LABELS), tmp_path / "x", format=name, predicted={"2": 0.75})
    assert not (tmp_path / "x").exists()
