"""Formats of the tools that train models: what goldspan writes by itself comes back.

`tests/models` reads the same files with the tools themselves.
"""

from __future__ import annotations

import json
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import goldspan
from crowd_tables import assert_same, assert_says_losses, refusal
from goldspan.crowd import read_crowd, write_crowd
from goldspan.crowd.formats.span_exports import SoftLabels
from goldspan.errors import FormatError, InputError, MissingExtraError, UnavailableError

SPANS = "\n".join(
    json.dumps(row)
    for row in [
        {"item": "1", "doc": "d", "text": "Ann Lee\u00a0sang in Rome.", "answers": [
            {"worker": "ann", "spans": [[0, 7, "PER"], [16, 20, "LOC"]]},
            {"worker": "bob", "spans": [[0, 3, "PER"]]}]},
        {"item": "2", "doc": "d", "text": "\U0001f600 It rained \U0001f34e", "answers": [
            {"worker": "ann", "spans": []}]},
        {"item": "3", "doc": "e", "text": "in Rome", "answers": [
            {"worker": "bob", "spans": [[3, 7, "LOC"]]},
            {"worker": "cem", "spans": [[3, 7, "ORG"]]}]},
    ]
).encode()  # fmt: skip
LABELS = b"item,worker,label,text\n1,ann,x,one\n2,ann,y,two\n1,bob,y,one\n3,bob,x,three\n"


def spans():
    return goldspan.aggregate(read_crowd(SPANS, format="spans"), method="mv-token")


def labels():
    return goldspan.aggregate(read_crowd(LABELS), method="ds")


# All of them


@pytest.mark.parametrize("name", ["cleanlab", "datasets"])
def test_single_labels_come_back(name, tmp_path):
    crowd = labels().as_gold()
    assert write_crowd(crowd, tmp_path / "x", format=name) == []
    assert_same(read_crowd(tmp_path / "x"), crowd)


@pytest.mark.parametrize("name", ["gliner", "span-table", "webanno"])
def test_single_labels_are_no_spans(name, tmp_path):
    with pytest.raises(InputError, match="these are single labels"):
        write_crowd(labels(), tmp_path / "x", format=name)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("name", ["xmi", "cas-json", "docbin"])
def test_what_is_not_installed_is_named(name, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cassis", None)
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtraError, match=r"needs (dkpro-cassis|spacy)"):
        write_crowd(spans(), tmp_path / "x", format=name)
    assert not (tmp_path / "x").exists()


def test_formats_without_a_place_say_what_confidences_they_lose(tmp_path):
    result = spans()
    assert write_crowd(result, tmp_path / "x.tsv")[-1] == "the confidence of 2 spans"
    assert write_crowd(result, tmp_path / "y", format="webanno") == ["the confidence of 2 spans"]
    assert write_crowd(result.as_gold(), tmp_path / "z", format="webanno") == []


def test_confidences_of_other_spans_are_rejected(tmp_path):
    soft = SoftLabels(None, np.zeros(5, np.float32))
    with pytest.raises(InputError, match="5 confidences for 2 spans of the gold"):
        write_crowd(spans().as_gold(), tmp_path / "x", format="gliner", soft=soft)


# GLiNER


def test_gliner_gets_tokens_and_inclusive_spans(tmp_path):
    result = spans()
    lost = result.write(tmp_path / "x.json", "gliner")
    assert lost == []
    rows = json.loads((tmp_path / "x.json").read_text("utf-8"))
    assert rows[0]["tokenized_text"] == ["Ann", "Lee", "sang", "in", "Rome", "."]
    assert rows[0]["ner"] == [[0, 0, "PER"]]
    assert rows[0]["scores"] == [round(float(result.span_confidence[0]), 4)]
    assert rows[0]["confidence"] == round(float(result.confidence[0]), 4)
    back = read_crowd(tmp_path / "x.json")
    assert back.import_report.format == "gliner"
    assert back.tagged_by_id() == result.as_gold().tagged_by_id()
    assert back.texts.to_pylist() == result.crowd.texts.to_pylist()


def test_gliner_leaves_out_what_nobody_labelled(tmp_path):
    crowd = read_crowd(SPANS, format="spans")
    gold = np.full(crowd.n_tokens, -1, np.int16)
    gold[: crowd.offsets[1]] = crowd.tagset.index["O"]
    (lost, *_) = write_crowd(crowd.with_gold(gold), tmp_path / "x", format="gliner")
    assert lost.startswith("2 items: '2' is missing")
    assert len(json.loads((tmp_path / "x").read_text("utf-8"))) == 1


def test_gliner_refuses_answers_without_gold(tmp_path):
    with pytest.raises(UnavailableError, match="this crowd has no gold"):
        write_crowd(read_crowd(SPANS, format="spans"), tmp_path / "y", format="gliner")
    assert not (tmp_path / "y").exists()


def test_gliner_data_of_others_is_read():
    rows = [{"tokenized_text": ["Ann", "sang"], "ner": [[0, 0, "person"]], "negatives": ["city"]}]
    crowd = read_crowd(rows)
    assert crowd.tagged_by_id() == {"1": ["B-person", "O"]}
    assert crowd.attributes.to_pydict() == {"negatives": [["city"]]}


def test_the_confidences_of_gliner_data_are_counted():
    rows = [{"tokenized_text": ["Ann"], "ner": [[0, 0, "X"]], "scores": [0.5], "confidence": 0.4}]
    notes = read_crowd(rows).import_report.notes
    assert "1 scores of spans are not read (item 1)" in notes
    assert "1 confidences of items are not read (item 1)" in notes


@pytest.mark.parametrize(
    ("span", "message"),
    [
        ([0, "x"], "a span must be a list of first token, last token and label"),
        ([1, 0, "x"], "is empty or outside the 2 tokens"),
        ([0, 2, "x"], "is empty or outside the 2 tokens"),
        ([0, 0, ""], "a span has the string"),
        ([-1, 0, "x"], "start must be a whole number"),
    ],
)
def test_spans_that_gliner_cannot_mean_are_rejected(span, message):
    refusal([{"tokenized_text": ["Ann", "sang"], "ner": [span]}], message, format="gliner")


# Tables of spans


def test_a_table_of_spans_has_a_row_per_span(tmp_path):
    result = spans()
    assert result.write(tmp_path / "x.csv") == []
    assert (tmp_path / "x.csv").read_text("utf-8").splitlines() == [
        "item,doc,text,start,end,label,span_text,worker,confidence",
        "1,d,Ann Lee\u00a0sang in Rome.,0,3,PER,Ann,gold,0.5",
        "2,d,\U0001f600 It rained \U0001f34e,,,,,gold,",
        "3,e,in Rome,3,7,LOC,Rome,gold,0.5",
    ]
    back = read_crowd(tmp_path / "x.csv")
    assert back.import_report.format == "span-table"
    assert back.tagged_by_id() == result.as_gold().tagged_by_id()


def test_what_a_spreadsheet_takes_for_a_formula_is_guarded(tmp_path):
    rows = [{"id": "1", "text": "=1+1 is '=2", "start": 0, "end": 4, "label": "@x", "worker": "-a"}]
    crowd = read_crowd(rows, format="span-table")
    assert write_crowd(crowd, tmp_path / "x.csv", format="span-table") == []
    cells = (tmp_path / "x.csv").read_text("utf-8").splitlines()[1].split(",")
    assert cells[1:2] + cells[4:6] == ["'=1+1 is '=2", "'@x", "'=1+1"]
    assert_same(read_crowd(tmp_path / "x.csv"), crowd)
    assert write_crowd(crowd, tmp_path / "y.csv", format="span-table", raw_csv=True) == []
    assert "'@x" not in (tmp_path / "y.csv").read_text("utf-8")


def test_repeated_answers_and_items_without_one_come_back(tmp_path):
    rows = [
        {"item": "1", "text": "Ann sang", "answers": [
            {"worker": "ann", "spans": []},
            {"worker": "ann", "spans": [[0, 3, "PER"]], "attempt": 1}]},
        {"item": "2", "text": 'Bob, "too"\r\nsang', "answers": []},
    ]  # fmt: skip
    crowd = read_crowd(rows, format="spans")
    assert write_crowd(crowd, tmp_path / "x.csv", format="span-table") == []


# cleanlab


def test_cleanlab_gets_arrays(tmp_path):
    result = labels()
    assert result.write(tmp_path / "x.npz") == []
    with np.load(tmp_path / "x.npz") as found:
        arrays = dict(found)
    assert arrays["labels"].tolist() == result.codes.tolist()
    assert np.array_equal(arrays["pred_probs"], result.token_probs)
    given = arrays["labels_multiannotator"]
    assert np.isnan(given).tolist() == [[False, False], [False, True], [True, False]]
    about = json.loads(bytes(arrays["about"]))
    assert about["classes"] == ["x", "y"]
    assert about["workers"] == ["ann", "bob"]
    write_crowd(result.crowd, tmp_path / "y.npz")
    with np.load(tmp_path / "y.npz") as found:
        assert "pred_probs" not in found
        assert (found["labels"] == -1).all()


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("labels", np.array([0, 1, 9])),
        ("labels", np.array([0, 1])),
        ("labels_multiannotator", np.zeros((3, 9))),
        ("offsets", np.array([0, 1])),
        ("about", np.zeros(3, np.uint8)),
        ("about", np.frombuffer(b"[]", np.uint8)),
    ],
)
def test_arrays_that_do_not_fit_are_rejected(name, array, tmp_path):
    write_crowd(labels(), tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as found:
        arrays = {**found, name: array}
    np.savez(tmp_path / "y.npz", **arrays)
    with pytest.raises(FormatError, match="not the arrays that goldspan writes for cleanlab"):
        read_crowd(tmp_path / "y.npz")


# Hugging Face data sets


def test_a_data_set_has_class_labels_annotators_and_soft_labels(tmp_path):
    result = spans()
    assert result.write(tmp_path / "x", "datasets") == []
    with pa.ipc.open_stream((tmp_path / "x/train/data-00000-of-00001.arrow").read_bytes()) as rows:
        table = rows.read_all()
    assert json.loads((tmp_path / "x/dataset_dict.json").read_text("utf-8"))["splits"] == ["train"]
    info = json.loads((tmp_path / "x/train/dataset_info.json").read_text("utf-8"))
    tags = list(result.tagset.tags)
    assert info["features"]["ner_tags"]["feature"] == {"names": tags, "_type": "ClassLabel"}
    assert [one for one in table.column_names if one.startswith("annotator.")] == [
        f"annotator.{worker}" for worker in ("ann", "bob", "cem")
    ]
    assert table["annotator.cem"].to_pylist()[:2] == [None, None]
    flat = [row for item in table["probs"].to_pylist() for row in item]
    assert np.allclose(flat, result.token_probs)
    assert table["spans"].to_pylist()[2] == [
        {"start": 1, "end": 2, "type": "LOC", "confidence": 0.5}
    ]


@pytest.mark.parametrize("make", [spans, labels])
def test_a_parquet_file_has_the_features_too(make, tmp_path):
    result = make()
    assert result.write(tmp_path / "x.parquet", "datasets") == []
    about = json.loads(pq.read_schema(tmp_path / "x.parquet").metadata[b"huggingface"])
    name = "label" if result.crowd.is_classification else "ner_tags"
    assert "ClassLabel" in json.dumps(about["info"]["features"][name])
    back = read_crowd(tmp_path / "x.parquet")
    assert back.import_report.format == "datasets"
    assert_same(back, result.as_gold())


def test_skipped_tokens_are_passed_over_by_losses(tmp_path):
    said = {"worker": "w", "spans": [{"type": "X", "start": 0, "end": 1}], "skipped": [[1, 2]]}
    rows = [{"item": "1", "tokens": ["a", "b"], "answers": [said]}]
    crowd = read_crowd(rows, format="spans")
    assert write_crowd(crowd, tmp_path / "x", format="datasets") == []
    with pa.ipc.open_stream((tmp_path / "x/train/data-00000-of-00001.arrow").read_bytes()) as found:
        assert found.read_all()["annotator.w"].to_pylist() == [[crowd.tagset.index["B-X"], -100]]


def test_splits_become_an_attribute(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        rows = pa.table({"id": [name], "tokens": [["Ann", "sang"]], "tags": [["B-PER", "O"]]})
        path = str(tmp_path / name / "data.arrow")
        with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, rows.schema) as stream:
            stream.write_table(rows)
        (tmp_path / name / "state.json").write_text("{}")
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["b", "a"]}')
    crowd = read_crowd(tmp_path)
    assert crowd.item_ids.to_pylist() == ["b", "a"]
    assert crowd.tagged_by_id()["a"] == ["B-PER", "O"]
    write_crowd(labels(), tmp_path / "x", format="datasets")
    file = tmp_path / "x/train/data-00000-of-00001.arrow"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(FormatError, match="the Arrow file is damaged"):
        read_crowd(tmp_path / "x")
    for column in ("a", "b"):
        (tmp_path / column / "data.arrow").unlink()
    with pytest.raises(FormatError, match=r"no \.arrow file in the folder"):
        read_crowd(tmp_path / "a", format="datasets")


# WebAnno TSV


def test_webanno_has_a_file_per_document_and_annotator(tmp_path):
    crowd = spans().as_gold()
    write_crowd(crowd, tmp_path / "x", format="webanno")
    found = sorted(str(path.relative_to(tmp_path / "x")) for path in tmp_path.rglob("*.tsv"))
    assert found == [
        "d/CURATION_USER.tsv", "d/ann.tsv", "d/bob.tsv", "e/CURATION_USER.tsv", "e/bob.tsv",
        "e/cem.tsv",
    ]  # fmt: skip
    lines = (tmp_path / "x/d/ann.tsv").read_text("utf-8").splitlines()
    layer = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity|identifier|value"
    assert lines[:8] == [
        "#FORMAT=WebAnno TSV 3.3", f"#T_SP={layer}", "", "", "#Sentence.id=1",
        "#Text=Ann Lee\u00a0sang in Rome.", "1-1\t0-3\tAnn\t*[1]\tPER[1]\t",
        "1-2\t4-7\tLee\t*[1]\tPER[1]\t",
    ]  # fmt: skip
    # Offsets count UTF-16 units of the document.
    assert lines[15:18] == [
        "2-1\t22-24\t\U0001f600\t_\t_\t", "2-2\t25-27\tIt\t_\t_\t", "2-3\t28-34\trained\t_\t_\t",
    ]  # fmt: skip


@given(label=st.text(st.sampled_from("\\[]|_->;\t\n*A\r"), min_size=1, max_size=6))
def test_any_label_comes_back_from_webanno(label):
    text = "Ann \\ [1] | _ sang\\n"
    rows = [{"item": "1", "text": text, "worker": "w", "spans": [[0, 7, label], [8, 9, label]]}]
    crowd = read_crowd(rows, format="spans")
    back = assert_says_losses(crowd, "webanno")
    assert [one for one in back if "labels" in one or "text" in one] == []


EXPORT = """#FORMAT=WebAnno TSV 3.2
#T_SP=de.tudarmstadt.ukp.dkpro.core.api.lexmorph.type.pos.POS|PosValue
#T_SP=webanno.custom.Food|kind|note
#T_RL=webanno.custom.Eats|how|BT_webanno.custom.Food


#Text=\U0001f600 Applepie is
#Text=so good
1-1\t0-2\t\U0001f600\t_\t_\t_\t_\t_\t
1-2\t3-11\tApplepie\tNN\t_\t_\t_\t_\t
1-2.1\t3-8\tApple\t_\tFRUIT\t*\t_\t_\t
1-3\t12-14\tis\tVB\t_\t_\tx\t1-2\t
1-4\t15-17\tso\t_\tGOOD\\_ONE[2]|X[3]\t*[2]|*[3]\t_\t_\t
1-5\t18-22\tgood\t_\tGOOD\\_ONE[2]\t*[2]\t_\t_\t

#Text=Yes
2-1\t23-26\tYes\t_\t*\tn\t_\t_\t
"""


def test_an_export_of_webanno_is_read():
    crowd = read_crowd(
        EXPORT.encode(), columns={"label": "webanno.custom.Food"}, overlapping="longest"
    )
    assert crowd.item_ids.to_pylist() == ["1", "2"]
    assert crowd.texts.to_pylist()[0] == "\U0001f600 Applepie is\nso good"
    assert crowd.tokens_list[0] == ["\U0001f600", "Apple", "pie", "is", "so", "good"]
    assert crowd.tagged_by_id()["1"] == ["O", "B-FRUIT", "O", "O", "B-GOOD_ONE", "I-GOOD_ONE"]
    notes = " ".join(crowd.import_report.notes)
    assert "2 annotations of the layer 'de.tudarmstadt.ukp.dkpro" in notes
    assert "1 annotations of the layer 'webanno.custom.Eats'" in notes
    by_feature = read_crowd(EXPORT.encode(), columns={"label": "PosValue"})
    assert by_feature.tagged_by_id()["1"] == ["O", "B-NN", "B-VB", "O", "O"]


def test_an_archive_with_an_archive_per_annotator_is_read(tmp_path):
    inner = tmp_path / "ann.zip"
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("ann.tsv", EXPORT)
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.write(inner, "annotation/doc.txt/ann.zip")
        archive.writestr("annotation/doc.txt/INITIAL_CAS.tsv", EXPORT)
        archive.writestr("curation/doc.txt/CURATION_USER.tsv", EXPORT)
    crowd = read_crowd(tmp_path / "x.zip", columns={"label": "kind"}, overlapping="longest")
    assert crowd.worker_ids.to_pylist() == ["ann"]
    assert crowd.item_ids.to_pylist() == ["doc.txt-1", "doc.txt-2"]
    assert crowd.answers_of("doc.txt-1")["ann"] == crowd.tagged_by_id()["doc.txt-1"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("#T_SP=web", "#T_XX=web", "no layer or feature 'kind'"),
        ("3-11\t", "3-99\t", "offset 99 is outside the sentence's text"),
        ("3-11\t", "1-11\t", "offset 1 is outside the sentence's text or within a character"),
        ("1-3\t12", "hello\t12", "not a row of a token"),
        ("FRUIT\t", "FRU]IT\t", "not the label of a span"),
        ("#Text=Yes\n", "", "offset 23 is outside"),
    ],
)
def test_a_damaged_export_of_webanno_is_rejected(old, new, message):
    refusal(EXPORT.replace(old, new, 1).encode(), message, columns={"label": "kind"})


def test_a_file_of_webanno_that_was_cut_off_is_told():
    cut = EXPORT[: EXPORT.index("1-4\t")]
    crowd = read_crowd(cut.encode(), columns={"label": "PosValue"})
    assert crowd.tokens_list == [["\U0001f600", "Applepie", "is"]]
    notes = " ".join(crowd.import_report.notes)
    assert "1 ends of sentences behind the last row (is the file cut off?) are not read" in notes


def test_an_id_of_two_lines_has_no_place_in_webanno(tmp_path):
    rows = [{"item": "a\nb", "text": "Ann sang", "worker": "w", "spans": []}]
    with pytest.raises(InputError, match="a sentence's id is one line"):
        write_crowd(read_crowd(rows, format="spans"), tmp_path / "x", format="webanno")


# Predictions with scores


def test_label_studio_gets_scores_of_the_items_and_their_regions(tmp_path):
    result = spans()
    assert result.write(tmp_path / "x.json", "label-studio") == []
    tasks = json.loads((tmp_path / "x.json").read_text("utf-8"))
    assert [task["annotations"] for task in tasks] == [[], [], []]
    (one,) = tasks[2]["predictions"]
    assert (one["model_version"], one["score"]) == ("goldspan mv-token", 0.5)
    assert [(region["value"]["text"], region["score"]) for region in one["result"]] == [
        ("Rome", 0.5)
    ]


def test_prodigy_gets_scores(tmp_path):
    result = spans()
    assert result.write(tmp_path / "x.jsonl", "prodigy") == []
    tasks = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text("utf-8").splitlines()]
    assert [task["_view_id"] for task in tasks] == ["ner_manual"] * 3
    assert [task["score"] for task in tasks] == np.round(result.confidence, 4).tolist()
    assert tasks[2]["spans"][0]["score"] == 0.5


def test_a_table_of_others_is_read_by_its_columns(tmp_path):
    table = pa.table({"id": ["a"], "tokens": [["Ann", "sang"]], "tags": [["B-PER", "O"]]})
    pq.write_table(table, tmp_path / "x.parquet")
    assert read_crowd(tmp_path / "x.parquet", format="datasets").tagged_by_id() == {
        "a": ["B-PER", "O"]
    }
    spans().write(tmp_path / "y.parquet", "datasets")
    back = read_crowd(tmp_path / "y.parquet", format="parquet")
    assert back.worker_ids.to_pylist() == ["ann", "bob", "cem"]
