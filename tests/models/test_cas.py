"""UIMA CAS: what is listed, counted or rejected; skipped where dkpro-cassis is not installed."""

from __future__ import annotations

import warnings

import pytest

from goldspan.crowd import read_crowd, write_crowd
from goldspan.errors import FormatError, InputError

pytestmark = pytest.mark.models
cassis = pytest.importorskip("cassis")

DKPRO = "de.tudarmstadt.ukp.dkpro.core.api"
ENTITY = f"{DKPRO}.ner.type.NamedEntity"
FEATURES = {
    ENTITY: {"value": "String", "confidence": "Double"},
    f"{DKPRO}.segmentation.type.Sentence": {"id": "String"},
    f"{DKPRO}.metadata.type.TagsetDescription": {},
    "webanno.custom.Pos": {"tag": "String"},
    "webanno.custom.Num": {"n": "Integer"},
}


def types():
    """Return a type system and the classes of its types, by the last part of their names."""
    system = cassis.TypeSystem()
    made = {}
    for name, features in FEATURES.items():
        kind = system.create_type(name, "uima.tcas.Annotation")
        for feature, of in features.items():
            system.create_feature(kind, feature, f"uima.cas.{of}")
        made[name.rpartition(".")[2]] = kind
    return system, made


@pytest.fixture(params=["xmi", "cas-json"])
def read(request, tmp_path):
    """Return a function that reads a text with annotations: type, begin, end and features."""

    def read_them(text, *annotations, **options):
        system, made = types()
        cas = cassis.Cas(typesystem=system)
        cas.sofa_string = text
        for name, begin, end, features in annotations:
            cas.add(made[name](begin=begin, end=end, **features))
        folder = tmp_path / "d"
        folder.mkdir()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what cassis writes, which is wrong on purpose
            if request.param == "xmi":
                cas.to_xmi(folder / "ann.xmi")
                system.to_xml(tmp_path / "TypeSystem.xml")
            else:
                cas.to_json(folder / "ann.json")
        return read_crowd(tmp_path, format=request.param, **options)

    return read_them


def test_other_layers_and_confidences_are_counted(read):
    crowd = read(
        "Ann sang",
        ("NamedEntity", 0, 3, {"value": "PER", "confidence": 0.5}),
        ("Pos", 4, 8, {"tag": "V"}),
        ("TagsetDescription", 0, 8, {}),
    )
    assert crowd.answers_of("d-1") == {"ann": ["B-PER", "O"]}
    first, second = [note for note in crowd.import_report.notes if "not read" in note]
    assert first.startswith("1 annotations of the layer 'webanno.custom.Pos' are not read (")
    assert second.startswith("1 confidences of spans are not read (")


def test_a_layer_without_strings_is_counted_or_rejected_if_it_is_named(read):
    crowd = read("Ann sang", ("Num", 4, 8, {"n": 3}))
    assert "1 annotations of the layer 'webanno.custom.Num'" in " ".join(crowd.import_report.notes)


def test_a_named_layer_without_strings_is_rejected(read):
    with pytest.raises(FormatError, match=r"'webanno\.custom\.Num' has no feature of strings"):
        read("Ann sang", ("Num", 4, 8, {"n": 3}), columns={"label": "webanno.custom.Num"})


def test_a_named_layer_may_have_no_annotation_in_a_document(read):
    entity = ("NamedEntity", 0, 3, {"value": "PER"})
    crowd = read("Ann sang", entity, columns={"label": "webanno.custom.Pos"})
    assert crowd.answers_of("d-1") == {"ann": ["O", "O"]}
    assert f"1 annotations of the layer '{ENTITY}'" in " ".join(crowd.import_report.notes)


def test_a_layer_that_there_is_not_is_rejected(read):
    with pytest.raises(FormatError, match=r"no annotation of the type 'webanno\.custom\.X'"):
        read("Ann sang", columns={"label": "webanno.custom.X"})


def test_spans_across_and_outside_sentences_are_listed(read):
    crowd = read(
        "Ann sang. Bob. Cem",
        ("Sentence", 0, 9, {}),
        ("Sentence", 10, 14, {}),
        ("NamedEntity", 0, 3, {"value": "PER"}),
        ("NamedEntity", 4, 13, {"value": "EV"}),
        ("NamedEntity", 15, 18, {"value": "PER"}),
    )
    # What a span that is left out covers has no label.
    assert crowd.answers_of("d-1") == {"ann": ["B-PER", None, None]}
    report = crowd.import_report
    assert report.reasons == {"span across sentences": 1, "span outside every sentence": 1}
    assert "span EV [4, 13) lies across sentences" in str(report.faults[0])
    assert "span PER [15, 18) lies outside every sentence" in str(report.faults[1])
    notes = " ".join(report.notes)
    assert "1 parts of the text outside every sentence are not read" in notes
    with pytest.raises(FormatError, match="lies across sentences"):
        read_crowd(report.source, strict=True)


@pytest.mark.parametrize("name", ["NamedEntity", "Sentence"])
@pytest.mark.parametrize(("begin", "end"), [(0, 30), (30, 35), (30, 3)])
def test_what_is_outside_the_text_is_an_error(read, name, begin, end):
    features = {"value": "PER"} if name == "NamedEntity" else {}
    shown = "span PER" if features else name
    message = rf"{shown} \[{begin}, {end}\) is outside the text, which has 8 UTF-16 units"
    with pytest.raises(FormatError, match=message):
        read("Ann sang", (name, begin, end, features))


def test_an_offset_within_a_character_is_an_error(tmp_path):
    system, made = types()
    cas = cassis.Cas(typesystem=system)
    cas.sofa_string = "\U0001f600 Ann"
    cas.add(made["NamedEntity"](begin=2, end=5, value="PER"))
    data = cas.to_json().replace('"begin" : 3', '"begin" : 1').replace('"begin": 3', '"begin": 1')
    (tmp_path / "x.json").write_text(data, encoding="utf-8")
    with pytest.raises(FormatError, match="offset 1 is within a character"):
        read_crowd(tmp_path / "x.json")


def test_equal_ids_in_one_file_are_an_error(read):
    with pytest.raises(FormatError, match=r"item s.*appears twice in this file"):
        read("Ann Ann", ("Sentence", 0, 3, {"id": "s"}), ("Sentence", 4, 7, {"id": "s"}))


@pytest.mark.parametrize("char", ["\f", "\v", "\x01", "\ufffe"])
def test_a_character_that_xml_cannot_hold_is_named(char, tmp_path):
    rows = [{"item": "1", "text": f"Ann{char} sang", "worker": "w", "spans": [[0, 3, "PER"]]}]
    crowd = read_crowd(rows, format="spans")
    message = rf"item '1': its text has the character U\+{ord(char):04X}, which XML cannot hold"
    with pytest.raises(InputError, match=message):
        write_crowd(crowd, tmp_path / "x", format="xmi")
    assert not (tmp_path / "x").exists()
    write_crowd(crowd, tmp_path / "x", format="cas-json")
    assert read_crowd(tmp_path / "x").texts.to_pylist() == [f"Ann{char} sang"]


def _made(folder, text, sentences, spans):
    system, made = types()
    cas = cassis.Cas(typesystem=system)
    cas.sofa_string = text
    for begin, end, name in sentences:
        cas.add(made["Sentence"](begin=begin, end=end, id=name))
    for kind, begin, end, features in spans:
        cas.add(made[kind](begin=begin, end=end, **features))
    folder.mkdir(exist_ok=True)
    return cas, system


@pytest.mark.parametrize("ending", ["xmi", "json"])
def test_files_with_spans_in_different_layers_are_rejected_until_one_is_named(ending, tmp_path):
    """One annotator's parts of speech are no answers to another's question."""
    for who, spans in {
        "ana": [("NamedEntity", 0, 3, {"value": "PER"}), ("Pos", 0, 3, {"tag": "N"})],
        "ben": [("Pos", 0, 3, {"tag": "V"})],
    }.items():
        cas, system = _made(tmp_path / "d", "Ann ran", [(0, 7, "s1")], spans)
        if ending == "xmi":
            cas.to_xmi(tmp_path / "d" / f"{who}.xmi")
            system.to_xml(tmp_path / "TypeSystem.xml")
        else:
            cas.to_json(tmp_path / "d" / f"{who}.json")
    form = "xmi" if ending == "xmi" else "cas-json"
    with pytest.raises(FormatError, match=r"webanno\.custom\.Pos.*those of .*ana.*NamedEntity"):
        read_crowd(tmp_path, format=form)
    crowd = read_crowd(tmp_path, format=form, columns={"label": ENTITY})
    assert crowd.answers_of("s1") == {"ana": ["B-PER", "O"], "ben": ["O", "O"]}


@pytest.mark.parametrize("ending", ["xmi", "json"])
def test_equal_ids_of_two_documents_begin_with_their_document(ending, tmp_path):
    for document, text in {"d1": "Ann ran", "d2": "Bob sat"}.items():
        spans = [("NamedEntity", 0, 3, {"value": "PER"})]
        cas, system = _made(tmp_path / document, text, [(0, 7, "1")], spans)
        if ending == "xmi":
            cas.to_xmi(tmp_path / document / "ana.xmi")
            system.to_xml(tmp_path / "TypeSystem.xml")
        else:
            cas.to_json(tmp_path / document / "ana.json")
    crowd = read_crowd(tmp_path, format="xmi" if ending == "xmi" else "cas-json")
    assert crowd.item_ids.to_pylist() == ["d1-1", "d2-1"]
    assert "begins with its document" in " ".join(crowd.import_report.notes)
