"""Labels of everybody: the JSON of LeWiDi and the matrix of MACE."""

from __future__ import annotations

import json
import shlex

import pytest

from goldspan import aggregate, read_crowd, write_crowd
from goldspan.crowd.layers import answer_sets, sets_of
from goldspan.errors import FormatError, InputError

ITEM = {
    "text": "what a day", "annotation task": "irony", "number of annotations": 3,
    "annotations": "0,1,1", "annotators": "Ann4,Ann2,Ann9", "lang": "en", "hard_label": "1",
    "soft_label": {"0": 0.33, "1": 0.67}, "split": "train", "other_info": {"level": 1},
}  # fmt: skip


def lewidi(**items):
    return json.dumps({name: ITEM | one for name, one in items.items()}, indent=1).encode()


def test_lewidi_has_everybodys_labels_and_no_gold():
    crowd = read_crowd(lewidi(a={}, b={"annotations": "1,0", "annotators": "Ann2,Ann4"}))
    report = crowd.import_report
    assert report.format == "lewidi"
    assert crowd.answers_of("a") == {"Ann4": ["0"], "Ann2": ["1"], "Ann9": ["1"]}
    assert crowd.answers_of("b") == {"Ann2": ["1"], "Ann4": ["0"]}
    assert crowd.gold is None
    assert any("--columns gold=hard_label" in note for note in report.notes)
    about = {"annotation task": "irony", "lang": "en", "split": "train"}
    assert crowd.attributes.to_pylist()[0] == about | {"other_info": {"level": 1}}
    known = read_crowd(lewidi(a={}), columns={"gold": "hard_label"})
    assert known.tagged_by_id() == {"a": ["1"]}


def test_the_third_edition_has_labels_by_annotator_and_pairs_of_texts():
    pair = {"context": "It rains.", "statement": "It is wet."}
    crowd = read_crowd(
        lewidi(
            a={"text": pair, "annotations": {"Ann1": "neutral", "Ann3": "entailment,neutral"}},
            b={"text": pair, "annotations": {"Ann1": -3}},
        )
    )
    assert crowd.answers_of("a")["Ann1"] == ["neutral"]
    assert crowd.answers_of("b") == {"Ann1": ["-3"]}
    assert crowd.tokens_list[0] == ["context: It rains.\nstatement: It is wet."]


@pytest.mark.parametrize("spell", [",".join, list], ids=["commas", "lists"])
def test_answers_and_gold_of_several_labels_are_sets(spell, tmp_path):
    said = [(["0", "1"], ["1"]), (["1"], []), (["2", "1"], ["1"])]
    rows = {
        str(n): {"annotations": {"Ann1": spell(a), "Ann3": spell(b)}, "gold": spell(a)}
        for n, (a, b) in enumerate(said)
    }
    crowd = read_crowd(lewidi(**rows))
    answers, known = answer_sets(crowd, chars=False), sets_of(crowd, chars=False)
    for n, (a, b) in enumerate(said):
        for own, wanted in ((answers[str(n), "Ann1", 0], a), (answers[str(n), "Ann3", 0], b)):
            assert {label for label, _, _ in own} == {*wanted}
        assert {label for label, _, _ in known[str(n)]} == {*a}
    with pytest.raises(InputError, match="single labels"):
        write_crowd(crowd, tmp_path / "a.json", format="lewidi")


def test_where_the_annotations_are_withheld_the_hard_label_is_gold():
    withheld = {"annotations": "", "annotators": ""}
    assert read_crowd(lewidi(a=withheld)).tagged_by_id() == {"a": ["1"]}


def test_records_of_lewidi_may_stand_on_lines():
    rows = [ITEM | {"id": f"x{n}"} for n in range(2)]
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    assert read_crowd(data).item_ids.to_pylist() == ["x0", "x1"]


def test_as_many_annotators_as_annotations_are_needed():
    with pytest.raises(FormatError, match="not as many annotations as annotators") as caught:
        read_crowd(lewidi(a={"annotations": "1,0"}, b={"annotators": "Ann1"}))
    assert [fault.item for fault in caught.value.faults] == ["a", "b"]


def written(crowd, path, kind):
    write_crowd(crowd, path, format=kind)
    return path.read_text()


LONG = b"item,worker,label,text\n1,a,x,one\n1,b,y,one\n1,c,y,one\n2,a,x,two\n"


def test_shares_and_the_majority_are_written(tmp_path):
    crowd = read_crowd(LONG)
    first, second = json.loads(written(crowd, tmp_path / "a.json", "lewidi")).values()
    assert first["annotations"] == "x,y,y"
    assert first["annotators"] == "a,b,c"
    assert first["hard_label"] == "y"
    assert first["soft_label"] == {"x": 0.3333, "y": 0.6667}
    assert "gold" not in first
    assert second["text"] == "two"
    known = crowd.with_gold(crowd.answers.codes[[0, 3]])
    first, _ = json.loads(written(known, tmp_path / "b.json", "lewidi")).values()
    assert first["hard_label"] == first["gold"] == "x"
    assert read_crowd(tmp_path / "b.json").tagged_by_id() == {"1": ["x"], "2": ["x"]}


def test_the_probabilities_of_a_consensus_are_its_soft_labels(tmp_path):
    consensus = aggregate(read_crowd(LONG), method="ds")
    write_crowd(consensus, tmp_path / "a.json", format="lewidi")
    first = json.loads((tmp_path / "a.json").read_text())["1"]
    wanted = consensus.token_probs[0].tolist()
    assert list(first["soft_label"].values()) == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("kind", ["lewidi", "mace"])
def test_labels_with_commas_and_spans_are_refused(kind, tmp_path):
    for data in (b'item,worker,label\n1,a,"x,y"\n1,b,z\n', b"token\ta\tb\nAnn\tB-X\tO\n"):
        with pytest.raises(InputError, match=r"comma|holds single labels"):
            write_crowd(read_crowd(data), tmp_path / "a", format=kind)


MATRIX = [
    ("A", "", "B", "A"),
    ("B", "B", "", "B"),
    ("", "", "", ""),
    ("A", "A", "C", "C"),
]


@pytest.mark.parametrize("mark", [",", "\t", ";"])
def test_a_matrix_is_read_by_lines_and_columns(mark):
    crowd = read_crowd("".join(mark.join(row) + "\n" for row in MATRIX).encode())
    assert crowd.import_report.format == "mace"
    assert crowd.n_items == 4
    for n, row in enumerate(MATRIX, start=1):
        said = {str(w): [label] for w, label in enumerate(row, start=1) if label}
        assert crowd.answers_of(str(n)) == said


def test_a_matrix_may_have_ids_or_a_header():
    rows = [("A", "B", "A"), ("B", "B", "C"), ("A", "A", "A"), ("C", "C", "B")]
    ids = "".join(f"q{n},{','.join(row)}\n" for n, row in enumerate(rows))
    crowd = read_crowd(ids.encode())
    assert crowd.answers_of("q1") == {"2": ["B"], "3": ["B"], "4": ["C"]}
    names = "".join(",".join(row) + "\n" for row in [("ann", "bob", "cid"), *rows])
    with pytest.raises(FormatError, match="--format wide --workers ann,bob,cid") as caught:
        read_crowd(names.encode())
    options = shlex.split(str(caught.value).split("`")[1])
    given = options[options.index("--workers") + 1].split(",")
    crowd = read_crowd(names.encode(), format="wide", workers=given)
    assert crowd.answers_of("2") == {"ann": ["B"], "bob": ["B"], "cid": ["C"]}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"1,0,1\n0,0,1\n1,1,1\n0,1,0\n", "--format mace"),  # may be measurements
        (b"A,B\nB,B\nA,A\nB,A\nA,A\n", "--format mace"),  # two columns may be anything
        (b"Ann,Oslo,5\nBob,Rome,7\nCid,Oslo,5\n", "not recognised"),
        (b"Oslo,Rome,Bonn\nRome,Oslo,Kiel\nLyon,Bath,Oslo\n", "do not say what they are"),
    ],
)
def test_what_may_be_no_matrix_is_not_read_as_one(data, message):
    with pytest.raises(FormatError, match=message):
        read_crowd(data)
    if "mace" in message:
        assert read_crowd(data, format="mace").n_items == data.count(b"\n")
