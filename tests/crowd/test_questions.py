"""Several questions about the same items: `read_layers`, and what takes its `Layers`."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest

import goldspan
from goldspan import Layers, aggregate, agreement, read_crowd, read_layers, score
from goldspan.aggregation import LayersConsensus
from goldspan.errors import FormatError, GoldspanError, InputError, UnknownNameError

TEXTS = {"d1": "Ann sang in Rome", "d2": "Bob slept", "d3": "it rains"}
SPANS = {"d1": [(0, 3, "PER"), (12, 16, "LOC")], "d2": [(0, 3, "PER")], "d3": []}
MOODS = {"d1": "glad", "d2": "calm", "d3": "sad"}
WORKERS = ("ann", "bob", "eve")


def said(item, worker):
    """Everybody is right, but eve about the second item."""
    is_wrong = (item, worker) == ("d2", "eve")
    return ([], "sad") if is_wrong else (SPANS[item], MOODS[item])


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def label_studio():
    tasks = []
    for item, text in TEXTS.items():
        annotations = []
        for worker in WORKERS:
            spans, mood = said(item, worker)
            results = [
                {"type": "labels", "from_name": "ner", "to_name": "text",
                 "value": {"start": a, "end": b, "labels": [kind]}}
                for a, b, kind in spans
            ]  # fmt: skip
            results.append({"type": "choices", "from_name": "mood", "to_name": "text",
                            "value": {"choices": [mood]}})  # fmt: skip
            annotations.append({"completed_by": {"email": worker}, "result": results})
        tasks.append({"data": {"item": item, "text": text}, "annotations": annotations})
    return json.dumps(tasks).encode()


def prodigy():
    return lines(
        *(
            {"item": item, "text": text, "_input_hash": n, "_annotator_id": worker,
             "answer": "accept", "options": [{"id": mood} for mood in MOODS.values()],
             "accept": [said(item, worker)[1]],
             "spans": [{"start": a, "end": b, "label": kind}
                       for a, b, kind in said(item, worker)[0]]}
            for n, (item, text) in enumerate(TEXTS.items())
            for worker in WORKERS
        )
    )  # fmt: skip


def argilla():
    return lines(
        *(
            {"id": item, "fields": {"text": text}, "responses": {
                "ner": [{"user_id": worker, "status": "submitted", "value": [
                    {"start": a, "end": b, "label": kind} for a, b, kind in said(item, worker)[0]]}
                    for worker in WORKERS],
                "mood": [{"user_id": worker, "status": "submitted", "value": said(item, worker)[1]}
                         for worker in WORKERS]}}
            for item, text in TEXTS.items()
        )
    )  # fmt: skip


FILES = {
    "label-studio": (label_studio, "ner", "mood"),
    "prodigy": (prodigy, "spans", "accept"),
    "argilla": (argilla, "ner", "mood"),
}


@pytest.mark.parametrize("name", FILES)
def test_spans_and_choices_are_read_aggregated_written_and_scored(name, tmp_path):
    make, spans, choice = FILES[name]
    layers = read_layers(make())
    assert list(layers) == [spans, choice]
    assert {one.import_report.format for one in layers.values()} == {name}
    assert "3 items, 3 workers" in repr(layers)
    for one in layers.values():
        assert one.item_ids.to_pylist() == list(TEXTS)
        assert sorted(one.worker_ids.to_pylist()) == sorted(WORKERS)
    assert layers[choice].answers_of("d2") == {"ann": ["calm"], "bob": ["calm"], "eve": ["sad"]}
    only = read_layers(make(), [choice])
    assert list(only) == [choice]
    assert only[choice] == layers[choice]

    result = aggregate(layers, "mv-token")
    assert isinstance(result, LayersConsensus)
    assert result.labels == {choice: list(MOODS.values())}
    found = result.spans.select(["layer", "item", "start_char", "end_char", "type"]).to_pylist()
    expected = [(spans, item, *span) for item, own in SPANS.items() for span in own]
    assert [tuple(row.values()) for row in found] == expected
    assert result.workers.column("layer").to_pylist() == [spans] * 3 + [choice] * 3

    path = tmp_path / "gold.jsonl"
    result.write(path)
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert rows[1]["layers"][choice] == ["calm"]
    assert [one["type"] for one in rows[1]["layers"][spans]] == ["PER"]
    gold = read_layers(path)
    assert list(gold) == [spans, choice]
    scores = score(gold, result)
    assert [scores[spans].f1, scores[choice].accuracy] == [1.0, 1.0]
    assert score(result, path)[choice].accuracy == 1.0
    measures = agreement(layers)
    assert list(measures) == [spans, choice]
    assert measures[choice].alpha == agreement(layers[choice]).alpha < 1


@pytest.mark.parametrize("name", FILES)
def test_without_a_layer_one_question_is_read_and_the_others_named(name):
    make, spans, choice = FILES[name]
    crowd = read_crowd(make())
    notes = " ".join(crowd.import_report.notes)
    assert spans in notes
    assert choice in notes
    assert "--layer all" in notes
    named = read_crowd(make(), columns={"label": choice})
    assert named.is_classification
    assert "--layer all" not in " ".join(named.import_report.notes) or name == "argilla"


NAMED = "#FORMAT=WebAnno TSV 3.3\n#T_SP=webanno.custom.Mood|value\n"
NAMED += "#T_SP=de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity|value\n\n\n"


def webanno(entity, mood="_"):
    head = NAMED if mood != "_" else NAMED.replace("#T_SP=webanno.custom.Mood|value\n", "")
    first, second = ((f"{mood}\t", "_\t") if mood != "_" else ("", ""))  # fmt: skip
    rows = f"1-1\t0-3\tAnn\t{first}{entity}\t\n1-2\t4-8\tsang\t{second}_\t\n"
    return f"{head}#Text=Ann sang\n{rows}"


def test_layers_of_webanno_also_where_a_file_lacks_one(tmp_path):
    for worker, text in {"ann": webanno("PER", "glad"), "bob": webanno("PER")}.items():
        place = tmp_path / "doc" / f"{worker}.tsv"
        place.parent.mkdir(exist_ok=True)
        place.write_text(text, "utf-8")
    layers = read_layers(tmp_path)
    entity, mood = layers
    assert (entity.rpartition(".")[2], mood) == ("NamedEntity", "webanno.custom.Mood")
    assert layers[mood].answers_of(0) == {"ann": ["B-glad", "O"], "bob": ["O", "O"]}
    assert layers[entity].answers_of(0) == {"ann": ["B-PER", "O"], "bob": ["B-PER", "O"]}
    assert "--layer all" in " ".join(read_crowd(tmp_path).import_report.notes)
    with pytest.raises(UnknownNameError, match=r"layer 'tone': choose from de\..*Mood"):
        read_layers(tmp_path, ["tone"])
    with pytest.raises(FormatError, match="no layer or feature 'tone'"):
        read_crowd(tmp_path, columns={"label": "tone"})


TABLE = "item,worker,mood,stars\n" + "".join(
    f"{item},{worker},{said(item, worker)[1]},{n + (worker == 'eve')}\n"
    for n, item in enumerate(TEXTS, start=2)
    for worker in WORKERS
)


def test_label_columns_of_a_table_are_named(tmp_path):
    layers = read_layers(TABLE.encode(), ["mood", "stars"], ordinal=["stars"])
    assert layers.ordinal == ("stars",)
    result = aggregate(layers)
    assert result["stars"].method == "ordinal"
    assert result["mood"].method == "auto"
    assert result.labels["mood"] == list(MOODS.values())
    assert [str(one) for one in result.labels["stars"]][:2] == ["2", "3"]
    with pytest.raises(AttributeError, match="no layer has spans"):
        _ = result.spans
    assert aggregate(layers, "mv-token")["stars"].method == "mv-token"
    path = tmp_path / "gold.jsonl"
    result.write(path)
    assert score(read_layers(path), result)["stars"].accuracy == 1.0
    known = aggregate(layers, "ds", gold={"mood": {"d2": "sad"}})
    assert known.labels["mood"][1] == "sad"


def test_tables_of_all_layers_have_their_names():
    layers = read_layers(TABLE.encode(), ["mood", "stars"])
    frame = layers.to_pandas()
    assert next(iter(frame.columns)) == "layer"
    assert frame["layer"].tolist() == ["mood"] * 9 + ["stars"] * 9
    found = aggregate(layers, "mv-token").to_pandas()
    assert found["layer"].tolist() == ["mood"] * 3 + ["stars"] * 3
    assert list(found.columns) == ["layer", "item", "label", "confidence"]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"item,worker,label\n1,ann,x\n1,bob,x\n", "label"),
        (b"token\tann\tbob\nAnn\tB-PER\tO\n", "spans"),
        (b"token\tann\tbob\nAnn\tNOUN\tVERB\nran\tVERB\tVERB\n", "tags"),
    ],
)
def test_a_file_of_one_question_is_a_layer_called_by_its_kind(data, kind):
    layers = read_layers(data)
    assert list(layers) == [kind]
    assert layers[kind] == read_crowd(data)


def test_names_that_are_not_there_are_refused_with_those_that_are(tmp_path):
    layers = read_layers(label_studio())
    with pytest.raises(UnknownNameError, match="layer 'sent': choose from ner, mood"):
        read_layers(label_studio(), ["sent"])
    with pytest.raises(KeyError, match="choose from ner, mood"):
        layers["sent"]
    with pytest.raises(KeyError, match="choose from ner, mood"):
        aggregate(layers, "mv-token")["sent"]
    with pytest.raises(UnknownNameError, match="layer 'sent': choose from ner, mood"):
        read_layers(label_studio(), ordinal=["sent"])
    with pytest.raises(UnknownNameError, match="choose from mood"):
        Layers({"mood": layers["mood"]}, ("ner",))
    with pytest.raises(GoldspanError, match=r"no answer 'ner' \(spans, accept\)"):
        read_crowd(prodigy(), columns={"label": "ner"})
    with pytest.raises(InputError, match="leave 'label' out"):
        read_layers(label_studio(), columns={"label": "ner"})
    with pytest.raises(InputError, match=r"several layers \(ner, mood\): pass one"):
        goldspan.write_crowd(layers, tmp_path / "a.jsonl")
    with pytest.raises(
        InputError, match="no layer is on both sides: truth has ner, predicted mood"
    ):
        score(Layers({"ner": layers["ner"]}), Layers({"mood": layers["mood"]}))
    with pytest.raises(InputError, match=r"written as \.jsonl"):
        aggregate(layers, "mv-token").write(tmp_path / "gold.csv")
    with pytest.raises(InputError, match="aggregate it by itself"):
        aggregate(layers, checkpoint="state")


@pytest.mark.skipif(find_spec("spacy") is None, reason="needs spaCy")
def test_entities_categories_and_groups_of_spacy():
    import spacy
    from spacy.tokens import DocBin, Span

    doc = spacy.blank("en")("Ann sang")
    doc.ents = [Span(doc, 0, 1, "PER")]
    doc.cats = {"glad": 1.0, "sad": 0.0}
    doc.spans["verbs"] = [Span(doc, 1, 2, "ACT")]
    data = DocBin(docs=[doc], store_user_data=True).to_bytes()
    layers = read_layers(data)
    tags = {name: [*one.tagged_by_id().values()] for name, one in layers.items()}
    assert tags == {"spans": [["B-PER", "O"]], "cats": [["glad"]], "verbs": [["O", "B-ACT"]]}
    with pytest.raises(GoldspanError, match=r"'nouns' \(spans, cats, verbs\)"):
        read_crowd(data, columns={"label": "nouns"})


def test_lines_of_layers_are_checked():
    row = {"item": "1", "text": "Ann sang", "layers": {"ner": [], "mood": ["glad"]}}
    crowd = read_crowd(lines(row))
    assert "the first of several questions is read (ner, mood)" in str(crowd.import_report)
    with pytest.raises(FormatError, match="<bytes> line 1"):
        read_crowd(lines(row | {"layers": {"ner": [{"start": 0, "end": 99, "type": "PER"}]}}))
    mixed = lines(row, row | {"item": "2", "layers": {"mood": [{"start": 0}]}})
    with pytest.raises(FormatError, match="line 2: expected a list of labels, found"):
        read_crowd(mixed, columns={"label": "mood"})
    with pytest.raises(FormatError, match=r"no layer 'sent' \(ner, mood\)"):
        read_crowd(lines(row), columns={"label": "sent"})
