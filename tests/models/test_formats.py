"""Formats of other tools, read and written by the libraries that define them.

Each test is skipped where its library is not installed: `make test-models` installs them.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import goldspan
from crowd_tables import assert_same
from goldspan.crowd import read_crowd, write_crowd
from goldspan.errors import FormatError

pytestmark = pytest.mark.models

SPANS = "\n".join(
    json.dumps(row)
    for row in [
        {"item": "1", "doc": "d", "text": " Ann Lee\u00a0sang in Rome.", "answers": [
            {"worker": "ann", "spans": [[1, 8, "PER"], [17, 21, "LOC"]]},
            {"worker": "bob", "spans": [[1, 4, "PER"]]}]},
        {"item": "2", "doc": "d", "text": "\U0001f600 It rained \U0001f34e", "answers": [
            {"worker": "ann", "spans": []}]},
        {"item": "3", "doc": "e", "text": "in Rome", "answers": [
            {"worker": "bob", "spans": [[3, 7, "LOC"]]},
            {"worker": "cem", "spans": [[3, 7, "ORG"]]}]},
    ]
).encode()  # fmt: skip
LABELS = b"item,worker,label,text\n1,ann,x,one\n2,ann,y,two\n1,bob,y,one\n3,bob,x,three\n"


@pytest.fixture(params=["spans", "labels"])
def result(request):
    """Return a consensus of spans, and one of single labels."""
    data, kind = (SPANS, "spans") if request.param == "spans" else (LABELS, "long")
    method = "mv-token" if request.param == "spans" else "ds"
    return goldspan.aggregate(read_crowd(data, format=kind), method=method)


def test_datasets_loads_the_folder_with_its_features(result, tmp_path):
    datasets = pytest.importorskip("datasets")
    assert write_crowd(result, tmp_path / "x", format="datasets") == []
    found = datasets.load_from_disk(tmp_path / "x")
    assert list(found) == ["train"]
    train, crowd = found["train"], result.crowd
    assert train["item"][:] == crowd.item_ids.to_pylist()
    name = "label" if crowd.is_classification else "ner_tags"
    feature = train.features[name]
    labels = feature if crowd.is_classification else feature.feature
    assert labels.names == list(crowd.tagset.tags)
    codes = train[name][:]
    flat = codes if crowd.is_classification else [code for row in codes for code in row]
    assert flat == result.codes.tolist()
    probs = np.array(
        train["probs"][:]
        if crowd.is_classification
        else [row for item in train["probs"][:] for row in item]
    )
    assert np.allclose(probs, result.token_probs, atol=1e-6)
    workers = [column for column in train.column_names if column.startswith("annotator.")]
    assert workers == [f"annotator.{worker}" for worker in crowd.worker_ids.to_pylist()]
    if not crowd.is_classification:
        assert train[0]["spans"][0]["type"] == "PER"


def test_what_datasets_saves_again_is_read(result, tmp_path):
    datasets = pytest.importorskip("datasets")
    write_crowd(result, tmp_path / "x", format="datasets")
    found = datasets.load_from_disk(tmp_path / "x")
    wanted = result.as_gold()
    found.save_to_disk(tmp_path / "again")
    assert_same(read_crowd(tmp_path / "again"), wanted)
    found["train"].to_parquet(tmp_path / "a.parquet")
    assert_same(read_crowd(tmp_path / "a.parquet"), wanted)
    assert_same(read_crowd(found["train"]), wanted)


def test_datasets_loads_the_parquet_file_with_its_features(result, tmp_path):
    datasets = pytest.importorskip("datasets")
    assert write_crowd(result, tmp_path / "x.parquet", format="datasets") == []
    found = datasets.Dataset.from_parquet(
        str(tmp_path / "x.parquet"), cache_dir=str(tmp_path / "cache")
    )
    name = "label" if result.crowd.is_classification else "ner_tags"
    feature = found.features[name]
    labels = feature if result.crowd.is_classification else feature.feature
    assert labels.names == list(result.tagset.tags)
    assert_same(read_crowd(found), result.as_gold())


def test_a_data_set_of_others_is_read(tmp_path):
    datasets = pytest.importorskip("datasets")
    rows = {"id": ["a", "b"], "tokens": [["Ann", "sang"], ["hm"]], "ner_tags": [[1, 0], [0]]}
    names = datasets.ClassLabel(names=["O", "B-PER"])
    features = datasets.Features(
        id=datasets.Value("string"),
        tokens=datasets.Sequence(datasets.Value("string")),
        ner_tags=datasets.Sequence(names),
    )
    one = datasets.Dataset.from_dict(rows, features=features)
    two = one.map(lambda row: {"id": row["id"] + "2"})
    datasets.DatasetDict(train=one, test=two).save_to_disk(tmp_path / "x")
    crowd = read_crowd(tmp_path / "x")
    assert crowd.item_ids.to_pylist() == ["a", "b", "a2", "b2"]
    assert crowd.tagset.decode(crowd.gold_tagged)[0] == ["B-PER", "O"]


def test_cleanlab_takes_the_arrays(tmp_path):
    multiannotator = pytest.importorskip("cleanlab.multiannotator")
    pandas = pytest.importorskip("pandas")
    rows = [
        {"item": f"i{n}", "worker": f"w{w}", "label": "yn"[(n + (w == 2 and n % 3 == 0)) % 2]}
        for n in range(30)
        for w in range(3)
    ]
    result = goldspan.aggregate(rows, method="ds")
    assert write_crowd(result, tmp_path / "x.npz") == []
    with np.load(tmp_path / "x.npz") as found:
        arrays = dict(found)
    assert arrays["labels"].tolist() == result.codes.tolist()
    quality = multiannotator.get_label_quality_multiannotator(
        pandas.DataFrame(arrays["labels_multiannotator"]),
        arrays["pred_probs"].astype(np.float64),
        verbose=False,
    )
    assert quality["label_quality"]["consensus_label"].tolist() == result.codes.tolist()


def test_cleanlab_takes_the_arrays_of_tokens(tmp_path):
    token = pytest.importorskip("cleanlab.token_classification.rank")
    result = goldspan.aggregate(read_crowd(SPANS, format="spans"), method="mv-token")
    write_crowd(result, tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as found:
        arrays = dict(found)
    about = json.loads(bytes(arrays["about"]))
    cut = arrays["offsets"][1:-1]
    labels = [row.tolist() for row in np.split(arrays["labels"], cut)]
    probs = np.split(arrays["pred_probs"].astype(np.float64), cut)
    scores, info = token.get_label_quality_scores(labels, probs, tokens=about["tokens"])
    assert len(scores) == len(about["items"]) == 3
    assert len(info) == 3


def test_spacy_gets_entities_groups_and_confidences(tmp_path):
    spacy = pytest.importorskip("spacy")
    result = goldspan.aggregate(read_crowd(SPANS, format="spans"), method="mv-token")
    assert write_crowd(result, tmp_path / "x.spacy") == []
    vocab = spacy.blank("en").vocab
    docs = list(spacy.tokens.DocBin().from_disk(tmp_path / "x.spacy").get_docs(vocab))
    assert [doc.text for doc in docs] == result.crowd.texts.to_pylist()
    found = [(e.text, e.label_) for doc in docs for e in doc.ents]
    texts = result.spans.column("text").to_pylist()
    assert found == list(zip(texts, result.spans.column("type").to_pylist(), strict=True))
    scores = [score for doc in docs for score in doc.spans["sc"].attrs["scores"]]
    assert np.allclose(scores, result.span_confidence, atol=1e-4)
    assert [span.text for span in docs[0].spans["annotator:bob"]] == ["Ann"]
    assert docs[0].spans["annotator:ann"][0].text == "Ann Lee"
    assert_same(read_crowd(tmp_path / "x.spacy"), result.as_gold())


def test_spacy_gets_probabilities_of_single_labels(tmp_path):
    spacy = pytest.importorskip("spacy")
    result = goldspan.aggregate(read_crowd(LABELS), method="ds")
    assert write_crowd(result, tmp_path / "x.spacy") == []
    docs = spacy.tokens.DocBin().from_disk(tmp_path / "x.spacy").get_docs(spacy.blank("en").vocab)
    probs = [[doc.cats[tag] for tag in result.tagset.tags] for doc in docs]
    assert np.allclose(probs, result.token_probs, atol=1e-5)
    assert_same(read_crowd(tmp_path / "x.spacy"), result.as_gold())


def test_a_docbin_of_others_is_read(tmp_path):
    spacy = pytest.importorskip("spacy")
    nlp = spacy.blank("en")
    one, two = nlp("Ann Lee  sang in Rome."), nlp("It rained.")
    one.ents = [one.char_span(0, 7, "PER"), one.char_span(17, 21, "LOC")]
    two.ents = []
    spacy.tokens.DocBin(docs=[one, two]).to_disk(tmp_path / "x.spacy")
    crowd = read_crowd(tmp_path / "x.spacy")
    assert crowd.import_report.format == "docbin"
    assert crowd.tokens_list[0] == ["Ann", "Lee", "sang", "in", "Rome", "."]
    assert crowd.texts.to_pylist() == ["Ann Lee  sang in Rome.", "It rained."]
    assert crowd.tagset.decode(crowd.gold_tagged) == [
        ["B-PER", "I-PER", "O", "O", "B-LOC", "O"],
        ["O", "O", "O"],
    ]


def test_a_file_that_spacy_cannot_read_is_rejected():
    pytest.importorskip("spacy")
    packed = zlib.compress(b"\x82\xa7version\xa30.1\xa5attrs\x90")
    with pytest.raises(FormatError, match="not a DocBin that spaCy reads"):
        read_crowd(packed)


def test_spacy_trains_on_it(tmp_path):
    spacy = pytest.importorskip("spacy")
    from spacy.training import Corpus

    result = goldspan.aggregate(read_crowd(SPANS, format="spans"), method="mv-token")
    result.write(tmp_path / "x.spacy")
    nlp = spacy.blank("en")
    nlp.add_pipe("ner")
    losses = {}
    nlp.initialize(lambda: Corpus(tmp_path / "x.spacy")(nlp))
    nlp.update(list(Corpus(tmp_path / "x.spacy")(nlp)), losses=losses)
    assert losses["ner"] >= 0


def test_cassis_reads_documents_and_spans(tmp_path):
    cassis = pytest.importorskip("cassis")
    result = goldspan.aggregate(read_crowd(SPANS, format="spans"), method="mv-token")
    assert write_crowd(result, tmp_path / "x", format="xmi") == []
    with (tmp_path / "x" / "TypeSystem.xml").open("rb") as file:
        types = cassis.load_typesystem(file)
    with (tmp_path / "x" / "d" / "CURATION_USER.xmi").open("rb") as file:
        cas = cassis.load_cas_from_xmi(file, typesystem=types)
    texts = result.crowd.texts.to_pylist()
    assert cas.sofa_string == "\n".join(texts[:2])
    entities = cas.select("de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity")
    covered = [(one.get_covered_text(), one.value) for one in entities]
    spans = result.spans.to_pylist()
    assert covered == [(one["text"], one["type"]) for one in spans if one["item"] != "3"]
    sure = [round(one["confidence"], 4) for one in spans if one["item"] != "3"]
    assert [one.confidence for one in entities] == pytest.approx(sure, abs=1e-4)
    sentences = cas.select("de.tudarmstadt.ukp.dkpro.core.api.segmentation.type.Sentence")
    assert [one.id for one in sentences] == ["1", "2"]


@pytest.mark.parametrize("name", ["xmi", "cas-json"])
def test_a_cas_comes_back(name, tmp_path):
    pytest.importorskip("cassis")
    result = goldspan.aggregate(read_crowd(SPANS, format="spans"), method="mv-token")
    assert write_crowd(result, tmp_path / "x", format=name) == []
    back = read_crowd(tmp_path / "x")
    assert back.import_report.format == name
    assert_same(back, result.as_gold())


def test_a_cas_of_others_is_read(tmp_path):
    cassis = pytest.importorskip("cassis")
    types = cassis.TypeSystem()
    layer = types.create_type("webanno.custom.Food", "uima.tcas.Annotation")
    types.create_feature(layer, "kind", "uima.cas.String")
    cas = cassis.Cas(typesystem=types)
    cas.sofa_string = "\U0001f600 Pizza and beer"
    cas.add(layer(begin=2, end=7, kind="DISH"))
    cas.add(layer(begin=12, end=16, kind=None))
    (tmp_path / "x").mkdir()
    cas.to_xmi(tmp_path / "x" / "ann.xmi")
    with pytest.raises(FormatError, match="no TypeSystem"):
        read_crowd(tmp_path / "x")
    types.to_xml(tmp_path / "x" / "TypeSystem.xml")
    crowd = read_crowd(tmp_path / "x")
    assert crowd.tagset.decode(crowd.gold_tagged) == [["O", "B-DISH", "O", "O"]]
    assert "span without a label" in str(crowd.import_report.faults)
    cas.to_json(tmp_path / "x.json")
    assert_same(
        read_crowd(tmp_path / "x.json"), replace(crowd, groups=None, item_ids=pa.array(["1"]))
    )


@pytest.mark.parametrize(
    "data", [b"<?xml version='1.0'?><a xmlns:cas='http:///uima/cas.ecore'>", b"{"]
)
def test_a_damaged_cas_is_rejected(data, tmp_path):
    pytest.importorskip("cassis")
    (tmp_path / "d").mkdir()
    (tmp_path / "TypeSystem.xml").write_bytes(
        b"<typeSystemDescription xmlns='http://uima.apache.org/resourceSpecifier'/>"
    )
    name = "xmi" if data[:1] == b"<" else "cas-json"
    (tmp_path / "d" / f"ann.{'xmi' if name == 'xmi' else 'json'}").write_bytes(data)
    with pytest.raises(FormatError, match="not a CAS that can be read"):
        read_crowd(tmp_path, format=name)


def test_spacy_reads_what_a_tagger_tagged(tmp_path):
    spacy = pytest.importorskip("spacy")
    from cli.test_cli import done

    example = Path(__file__).parents[2] / "examples" / "crowd.tsv"
    (tmp_path / "t.txt").write_text("Envoys of Ruvania met in  Geneva.\n\nIt rained.\n")
    done("train", example, "-o", tmp_path / "ner.goldspan", "--max-iter", 60)
    done("tag", tmp_path / "ner.goldspan", tmp_path / "t.txt", "-o", tmp_path / "t.jsonl")
    done("tag", tmp_path / "ner.goldspan", tmp_path / "t.txt", "-o", tmp_path / "t.spacy")
    docs = list(
        spacy.tokens.DocBin().from_disk(tmp_path / "t.spacy").get_docs(spacy.blank("en").vocab)
    )
    rows = [json.loads(line)["gold"] for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    found = [[(e.label_, e.start_char, e.end_char) for e in doc.ents] for doc in docs]
    assert found == [[(one["type"], one["start"], one["end"]) for one in row] for row in rows]
    assert found[0]
    sure = docs[0].spans["sc"].attrs["scores"]
    assert sure == pytest.approx([one["confidence"] for one in rows[0]], abs=1e-4)
